"""Friction of an arm's joints, identified together with its inertias.

- :mod:`~stribeck.identify.arm.friction.element_torque`: torque of a joint with a friction law for a given motion.
- :mod:`~stribeck.identify.arm.friction.selection`: selection of friction terms by cross-validation.
- :mod:`~stribeck.identify.arm.friction.full_fit`: inertias and friction laws fitted together.
- :mod:`~stribeck.identify.arm.friction.drives`: the joints as drives.
"""
