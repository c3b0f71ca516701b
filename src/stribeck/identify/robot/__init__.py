"""Identification of whole robots from ordinary motion: goals and positions in, the drive of every joint out."""
