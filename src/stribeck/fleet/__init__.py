"""Fits of many servos: which are missing, where they run, and how they compare."""
