"""``stribeck advise``: what would help joints of position servos that stick, sag or hunt."""
