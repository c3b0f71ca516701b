"""What recordings and a URDF tell about a machine: joints, units, signs, filters, thresholds."""
