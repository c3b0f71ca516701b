"""Thin ROS 2 nodes: they read parameters and messages, call the library, and publish the results."""
