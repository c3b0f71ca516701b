"""``stribeck excite``."""
