"""Reads and writes recordings, parameter files and servo descriptions; only this package accesses files."""
