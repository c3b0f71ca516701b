"""Estimates with intervals and a status, their covariances, and the status of solvers."""
