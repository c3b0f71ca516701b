"""Evaluation of identified drives on recordings: errors, comparison of laws, suggestions, replay."""
