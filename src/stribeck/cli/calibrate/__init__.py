"""``stribeck calibrate``."""
