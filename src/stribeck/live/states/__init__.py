"""Incoming states of joints: order, merging, admission, plausibility."""
