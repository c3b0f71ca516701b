"""Bags: storage, messages, writing, recovery, and the signals in them."""
