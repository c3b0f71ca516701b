"""Identification of friction laws; the engine that needs JAX, cmaes and Optuna."""

METHODS = ("hybrid", "cmaes", "lm", "random", "nsgaii", "tpe")
"""Search methods by name: three implemented here, three samplers from Optuna."""
