"""``stribeck posterior``."""
