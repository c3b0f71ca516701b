"""Friction of an arm's joints, identified together with its inertias.

- :mod:`~stribeck.dynamics.friction.element_torque`: torque that a joint with one of our friction laws needs for a known motion.
- :mod:`~stribeck.dynamics.friction.selection`: which friction terms the data support, by cross-validation.
- :mod:`~stribeck.dynamics.friction.full_fit`: inertias and friction laws fitted together.
- :mod:`~stribeck.dynamics.friction.joint_files`: the result as a parameter file for each joint.
"""
