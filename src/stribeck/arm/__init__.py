"""Robot arms and linear axes: dynamics from a URDF, identification, kinematic calibration."""
