"""File formats: declarations, parameter files, servo families, machines, parameters of ROS."""
