"""``stribeck design trajectory``."""
