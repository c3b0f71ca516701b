"""Figures and reports of computed results; nothing is computed here."""
