"""``stribeck identify joint``: friction of one joint from tables of its motion and torque."""
