"""Bayesian identification of arms and servos: priors, likelihoods, posteriors, samplers and diagnostics."""
