"""``stribeck design poses``."""
