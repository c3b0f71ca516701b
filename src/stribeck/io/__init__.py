"""Recordings, parameter files and servo descriptions in and out: the only place that touches files."""
