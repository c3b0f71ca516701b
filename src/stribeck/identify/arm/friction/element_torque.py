r"""Inverse dynamics with friction laws: the torque of each joint for a given motion.

The motor of every element (a joint, or a coupling) has to exert

.. math::

    \tau_m = I_a\ddot q - \tau_e - \tau_0 + z\,\tau_f^m(\tau_m, \tau_e, \dot q), \qquad \tau_e = -Y\pi

with the budget :math:`\tau_f^m` of :func:`~stribeck.model.law.friction_budget` and the developed share of friction
z in [-1, 1] (the sign of the velocity, or :func:`~stribeck.identify.arm.signals.linear_presliding`). A budget that depends on the
load makes the equation implicit; its slope in :math:`\tau_m` is below one, so fixed-point iteration converges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from stribeck.identify.arm.motion import States
from stribeck.model.arrays import Array
from stribeck.model.law import FrictionLaw, friction_budget, offset_torque

ITERATIONS = 12
"""Fixed-point iterations; exact to 1e-6 for a law whose budget grows by a third of the torque."""


class Element(NamedTuple):
    r"""Motion and load of one element at N times, each (N,).

    :param position, velocity, acceleration: :math:`q, \dot q, \ddot q`.
    :param developed: z in [-1, 1].
    :param load: torque :math:`Y\pi` of the links; zeros for a coupling.
    """

    position: Any
    velocity: Any
    acceleration: Any
    developed: Any
    load: Any


@dataclass(frozen=True)
class ElementTorque:
    r"""Torque of an element in addition to that of the links (N,), and its derivatives.

    :param torque: :math:`\tau_m - Y\pi` [N m].
    :param by_parameters: derivatives with respect to rotor inertia and the law's parameters (N, 1 + k).
    :param by_load: derivative with respect to the torque of the links (N,).
    :param budget: largest possible friction in the direction of z (N,).
    """

    torque: Array
    by_parameters: Array
    by_load: Array
    budget: Array


def parameter_names(law: FrictionLaw) -> tuple[str, ...]:
    """Names of an element's parameters: its rotor inertia, then the law's."""
    return ("armature", *law.parameter_names)


def element_torque(law: FrictionLaw, parameters: Array, element: Element) -> ElementTorque:
    """Torque of an element with derivatives.

    :param parameters: in the order of :func:`parameter_names` (1 + k,).
    """
    with jax.enable_x64():
        parts = _with_derivatives(law, parameters, *element)
    return ElementTorque(*(np.asarray(part) for part in parts))


def friction_part(law: FrictionLaw, parameters: Array, element: Element) -> Array:
    """Friction of an element without its offset (N,) [N m]."""
    inertia = parameters[0] * element.acceleration
    offset = offset_torque(law, dict(zip(law.parameter_names, parameters[1:], strict=True)), element.position)
    return np.asarray(element_torque(law, parameters, element).torque - inertia + offset)


def friction_curve(law: FrictionLaw, values: Mapping[str, float], velocity: Array) -> Array:
    """Friction at constant velocities (N,) without load [N m]."""
    still = np.zeros_like(velocity)
    element = Element(still, velocity, still, np.sign(velocity), still)
    ordered = np.array([values[name] for name in parameter_names(law)])
    return friction_part(law, ordered, element)


def _torque(
    law: FrictionLaw,
    parameters: jax.Array,
    element: Element,
) -> tuple[jax.Array, jax.Array]:
    position, velocity, acceleration, developed, load = element
    values = dict(zip(law.parameter_names, parameters[1:], strict=True))
    driving = parameters[0] * acceleration + load - offset_torque(law, values, position)

    def budget_at(motor: jax.Array) -> jax.Array:
        positive, negative = friction_budget(law, values, motor, -load, velocity, position)
        return jnp.asarray(jnp.where(developed >= 0.0, positive, negative))

    budget = budget_at(driving)
    motor = driving + developed * budget
    for _ in range(law.rounds(ITERATIONS)):
        budget = budget_at(motor)
        motor = driving + developed * budget
    return motor - load, budget


@partial(jax.jit, static_argnums=0)
def _with_derivatives(
    law: FrictionLaw,
    parameters: jax.Array,
    *element: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    given = Element(*element)
    load = given.load

    def torque(theta: jax.Array, pull: jax.Array) -> tuple[jax.Array, jax.Array]:
        return _torque(law, theta, given._replace(load=pull))

    value, budget = torque(parameters, load)
    by_parameters = jax.jacfwd(lambda theta: torque(theta, load)[0])(parameters)
    by_load = jax.jvp(lambda pull: torque(parameters, pull)[0], (load,), (jnp.ones_like(load),))[1]
    return value, by_parameters, by_load, budget


def elements_of(weights: Array, motion: States, developed: Array, load: Array) -> Sequence[Element]:
    """The elements of a motion.

    :param weights: velocity of each element as a weighted sum of joint velocities (E, n).
    :param motion: positions, velocities and accelerations of the joints (N, n).
    :param load: torques of the joints (N, n).
    :param developed: share z of the elements (N, E).
    """
    moved = (signal @ weights.T for signal in (motion.position, motion.velocity, motion.acceleration))
    loads = np.pad(load, ((0, 0), (0, len(weights) - load.shape[1])))
    columns = (*(signal.T for signal in moved), developed.T, loads.T)
    return [Element(*parts) for parts in zip(*columns, strict=True)]
