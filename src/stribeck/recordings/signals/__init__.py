"""Signals of recordings: where they are, their units, and their joints."""
