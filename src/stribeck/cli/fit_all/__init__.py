"""``stribeck identify fleet``."""
