"""Live friction compensation: states, commands and goals in, feed-forward torque out; no ROS."""
