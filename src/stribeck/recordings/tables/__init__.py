"""Tables: text, MAT, NPZ and LeRobot files, and the signals in them."""
