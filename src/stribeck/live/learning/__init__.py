"""Present friction learnt from motion: residual torque, Kalman filters, contact, energy, and the file that keeps it."""
