"""Bayesian identification: priors, posteriors, samplers, and what zero to many measurements say of an arm or a servo."""
