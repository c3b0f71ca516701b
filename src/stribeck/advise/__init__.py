"""Advice for joints of position servos: where they stick, sag, move in stairs and hunt, and what would help."""
