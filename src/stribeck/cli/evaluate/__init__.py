"""``stribeck evaluate``."""
