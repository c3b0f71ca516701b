"""``stribeck export``."""
