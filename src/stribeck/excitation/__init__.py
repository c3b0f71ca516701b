"""Design of exciting trajectories for robot arms: as informative as the limits permit."""
