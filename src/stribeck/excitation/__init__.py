"""Exciting trajectories for robot arms: as informative as the limits allow."""
