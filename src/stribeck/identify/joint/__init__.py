"""Friction of one joint from a table of its motion and torque."""
