"""Servos: control tables as data, the bus, what makes it safe, and an emulated servo."""
