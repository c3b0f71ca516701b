"""Estimates: values with intervals and a status, covariances, and how a solver ended."""
