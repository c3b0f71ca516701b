"""Identification: five engines, what they share, and posteriors."""
