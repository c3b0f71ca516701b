"""Thin ROS 2 nodes: parameters in, messages in, call the library, messages out."""
