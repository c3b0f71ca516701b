"""Dynamixel servos: control tables, bus communication, and a driver with safety monitoring."""
