"""``stribeck estimate``."""
