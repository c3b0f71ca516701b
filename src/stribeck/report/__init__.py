"""Figures and reports; computes nothing."""
