r"""The pendulum bench: a load at the end of a uniform rod on the servo's shaft.

The pendulum hangs down at :math:`\theta = 0`. Source: Duclusaud et al., §II-A, extended by the mass of the rod.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from stribeck.model.namespace import sine

STANDARD_GRAVITY = 9.80665
"""Standard acceleration of free fall g [m/s²]."""


class Pendulum(NamedTuple):
    """Load and rod: floats for one run, arrays for many.

    :param mass: load mass m [kg].
    :param length: rod length l, shaft to load [m].
    :param arm_mass: mass of the uniform rod m_a [kg].
    """

    mass: Any
    length: Any
    arm_mass: Any


def inertia(pendulum: Pendulum, armature: Any) -> Any:
    r"""Inertia :math:`J = m l^2 + m_a l^2 / 3 + J_m` about the shaft [kg m²].

    :param armature: apparent rotor inertia :math:`J_m` at the output shaft [kg m²].
    """
    return (pendulum.mass + pendulum.arm_mass / 3.0) * pendulum.length**2 + armature


def gravity_amplitude(pendulum: Pendulum) -> Any:
    r"""Largest gravity torque :math:`(m + m_a/2) g l` [N m]."""
    return (pendulum.mass + pendulum.arm_mass / 2.0) * STANDARD_GRAVITY * pendulum.length


def gravity_torque(pendulum: Pendulum, position: Any, q_offset: Any) -> Any:
    r"""External torque :math:`\tau_e = -(m + m_a/2) g l \sin(\theta + \theta_0)` [N m].

    :param position: joint position :math:`\theta` [rad].
    :param q_offset: mounting offset of the bench :math:`\theta_0` [rad].
    """
    return -gravity_amplitude(pendulum) * sine(position + q_offset)
