"""Inverse dynamics of arms and linear axes: regressor, inertial parameters and joint friction from recordings."""
