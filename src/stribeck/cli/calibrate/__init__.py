"""``stribeck identify geometry``."""
