"""Emulated Dynamixel servos on a pseudo-terminal: control table, protocol, physics and faults."""
