"""``stribeck identify-robot``."""
