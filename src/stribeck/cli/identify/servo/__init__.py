"""``stribeck identify servo``."""
