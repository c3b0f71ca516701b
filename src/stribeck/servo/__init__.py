"""Dynamixel servos: control tables as data, the bus, and the driver that makes it safe."""
