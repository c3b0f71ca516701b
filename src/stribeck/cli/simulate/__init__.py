"""``stribeck simulate``."""
