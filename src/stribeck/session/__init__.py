"""Excitation sessions: what is played on joints, watched and recorded. No ROS."""
