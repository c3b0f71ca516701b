"""``stribeck data describe``."""
