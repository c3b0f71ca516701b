"""Kinematic calibration of serial arms from measured points, and selection of the poses to measure."""
