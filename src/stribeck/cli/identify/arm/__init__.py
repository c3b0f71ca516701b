"""``stribeck identify arm``."""
