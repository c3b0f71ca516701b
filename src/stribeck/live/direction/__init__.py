"""Direction of the measured and of the intended motion of joints, and the goals it comes from."""
