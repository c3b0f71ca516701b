"""Friction laws, servo models, time step and logs on plain arrays; numpy only, no ROS, no files."""
