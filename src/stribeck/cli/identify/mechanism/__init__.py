"""``stribeck identify mechanism``."""
