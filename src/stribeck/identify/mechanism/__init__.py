"""Mechanisms in maximal coordinates: regularised time-discrete dynamics and parameter estimation."""
