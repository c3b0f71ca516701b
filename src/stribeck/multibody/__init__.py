"""Regularised time-discrete multibody dynamics."""
