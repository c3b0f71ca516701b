"""Identification: everything that needs JAX, cmaes or Optuna."""

METHODS = ("hybrid", "cmaes", "lm", "random", "nsgaii", "tpe")
"""Searches by name: three of our own, three samplers of Optuna's."""
