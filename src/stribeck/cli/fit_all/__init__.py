"""``stribeck fit-all``."""
