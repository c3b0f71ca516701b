"""Friction of an arm's joints, identified together with its inertias.

- :mod:`~stribeck.dynamics.friction.element_torque`: torque of a joint with a friction law for a given motion.
- :mod:`~stribeck.dynamics.friction.selection`: selection of friction terms by cross-validation.
- :mod:`~stribeck.dynamics.friction.full_fit`: inertias and friction laws fitted together.
- :mod:`~stribeck.dynamics.friction.joint_files`: export of a parameter file for each joint.
"""
