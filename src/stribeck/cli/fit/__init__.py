"""``stribeck fit``."""
