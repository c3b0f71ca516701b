"""``stribeck identify-arm``."""
