"""``stribeck demo``."""
