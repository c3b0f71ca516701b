"""Recordings: bags, tables and JSON, their signals and units."""
