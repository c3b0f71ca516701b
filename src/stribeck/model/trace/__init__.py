"""Formulas recorded as graphs of operations, and what is made of them: loops over plain numbers, derivatives."""
