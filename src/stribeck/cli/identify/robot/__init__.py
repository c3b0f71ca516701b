"""``stribeck identify robot``."""
