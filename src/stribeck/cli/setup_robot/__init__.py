"""``stribeck setup-robot``."""
