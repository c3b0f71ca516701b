"""Identification: everything that needs JAX, cmaes or Optuna."""
