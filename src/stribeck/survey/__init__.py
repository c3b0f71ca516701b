"""Guesses about foreign recordings, with their reasons."""
