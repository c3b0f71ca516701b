"""Excitation sessions: play trajectories on joints, monitor and record them, without ROS."""
