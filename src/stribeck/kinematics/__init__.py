"""Kinematic calibration of serial arms from measured points, and the choice of poses."""
