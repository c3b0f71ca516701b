r"""Drive/backdrive diagrams: when a motor moves its load, holds it, or is moved by it; and friction curves.

Motor torque :math:`\tau_m \ge 0` and external torque :math:`\tau_e = -x`, :math:`x \ge 0`, oppose each
other. Three states are possible: the joint moves with the motor (drive), stands still (static zone),
or moves with the load (backdrive). Source: Duclusaud et al., "Extended Friction Models for the
Physics Simulation of Servo Actuators", §II-C, §III-F, figs. 2-4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stribeck.model.arrays import Array, Mask
from stribeck.model.joint import Drive
from stribeck.model.law import FrictionLaw, friction_budget, with_offset
from stribeck.model.terms.term import Values

SPEEDS = (0.0, 1.0, 2.0, 3.0)
"""Speeds of a diagram [rad/s], rest first, as in fig. 4 of the paper."""

LOCKING_RATIO = 100.0
"""Ratio to the largest torques beyond which a joint that is not backdriven counts as self-locking."""

SCAN_STEPS = 1000
"""Steps of the scan from balance to the end of the range, finer near balance."""

BISECTIONS = 60
"""Bisections of a step of the scan, enough to exhaust float64 precision."""


class Boundaries(NamedTuple):
    """Edges of the static zone over the motor torque, as external torques (N,) [N m].

    :param drive: highest opposing external torque against which the joint is still driven; NaN where
        friction alone stops the motor.
    :param backdrive: lowest external torque that moves the joint against the motor; NaN where there is
        none within the range (self-locking).
    """

    drive: Array
    backdrive: Array


@dataclass(frozen=True, eq=False)
class DiagramCurve:
    """Diagram of one friction law with its parameters.

    :param label: text for a legend.
    :param motor_torque: motor torques (N,), from 0 upwards [N m].
    :param speeds: speeds (S,), from 0 upwards [rad/s].
    :param drive: drive torques (S, N) [N m], see :class:`Boundaries`.
    :param backdrive: backdrive torques (S, N) [N m].
    """

    label: str
    motor_torque: Array
    speeds: Array
    drive: Array
    backdrive: Array


def diagram_curve(
    label: str, law: FrictionLaw, p: Values, motor_torque: npt.ArrayLike, speeds: npt.ArrayLike = SPEEDS
) -> DiagramCurve:
    """Find the boundaries of the static zone at several speeds; arguments as in :func:`boundaries`."""
    torque = np.asarray(motor_torque, dtype=np.float64)
    edges_by_speed = [boundaries(law, p, torque, float(speed)) for speed in np.atleast_1d(speeds)]
    return DiagramCurve(
        label=label,
        motor_torque=torque,
        speeds=np.atleast_1d(np.asarray(speeds, dtype=np.float64)),
        drive=np.stack([edges.drive for edges in edges_by_speed]),
        backdrive=np.stack([edges.backdrive for edges in edges_by_speed]),
    )


def boundaries(law: FrictionLaw, p: Values, motor_torque: npt.ArrayLike, speed: float = 0.0) -> Boundaries:
    r"""Drive and backdrive torques at a constant speed, or at the onset of motion for speed 0.

    With the net torque :math:`\tau = \tau_m - x + \tau_0` the joint

    - is driven at speed v if :math:`\tau > \tau_f^{m+}(\tau_m, -x, v)`; the drive torque is the
      highest such x in :math:`[0, \tau_m + \tau_0]`;
    - is backdriven at speed v if :math:`-\tau > \tau_f^{m-}(\tau_m, -x, -v)`; the backdrive torque is
      the lowest such x in :math:`[\max(0, \tau_m + \tau_0), x_{max}]`, :math:`x_{max}` being :data:`LOCKING_RATIO` times
      the sum of the largest motor torque and the largest friction without external torque.

    The static zone between them is the one that contains the balance :math:`x = \tau_m + \tau_0`. Both edges are
    searched outwards from there, by a scan and bisection, because the states need not be ordered: the term Q of M6
    jumps where :math:`\tau_m = x`. Q is undefined at the jump itself; there the side that is further from balance
    decides. A state that spans less than a step of the scan (at most 0.2 % of the range) may be missed.

    :param p: values of the law's parameters by name, floats.
    :param motor_torque: :math:`\tau_m \ge 0` at the output shaft (N,) [N m].
    :param speed: :math:`v \ge 0` [rad/s], with the motor in drive and against it in backdrive.

    :math:`\tau_f^{m\pm}` is :func:`~stribeck.model.law.friction_budget`, :math:`\tau_0` the offset
    torque of a law that has one.
    """
    motor = np.asarray(motor_torque, dtype=np.float64)
    balance = with_offset(law, p, motor)
    lowest = np.maximum(balance, 0.0)
    unloaded = np.maximum(*friction_budget(law, p, motor, np.zeros_like(motor), speed))
    highest = LOCKING_RATIO * float(np.max(motor) + np.max(unloaded))

    def driven(external: Array) -> Mask:
        x = np.nextafter(external, 0.0)
        return np.asarray(balance - x > friction_budget(law, p, motor, -x, speed)[0])

    def backdriven(external: Array) -> Mask:
        x = np.nextafter(external, np.inf)
        return np.asarray(x - balance > friction_budget(law, p, motor, -x, -speed)[1])

    return Boundaries(
        drive=_first(driven, lowest, np.zeros_like(motor)),
        backdrive=_first(backdriven, lowest, np.maximum(lowest, highest)),
    )


def _first(moves: Callable[[Array], Mask], start: Array, end: Array) -> Array:
    """First point where ``moves`` is true on the way from ``start`` to ``end``, all (N,); NaN if there is none."""
    way = np.linspace(0.0, 1.0, SCAN_STEPS + 1)[:, np.newaxis] ** 2
    scan = start + way * (end - start)  # (K, N)
    moving = moves(scan)
    first = np.argmax(moving, axis=0)
    column = np.arange(len(start))
    still_at, moving_at = scan[np.maximum(first - 1, 0), column], scan[first, column]
    for _ in range(BISECTIONS):
        middle = 0.5 * (still_at + moving_at)
        in_motion = moves(middle)
        still_at = np.where(in_motion, still_at, middle)
        moving_at = np.where(in_motion, middle, moving_at)
    return np.where(np.any(moving, axis=0), moving_at, np.nan)


MARGIN = 1.25
"""Friction is plotted up to this multiple of the recorded load."""

CURVE_POINTS = 121
"""Points of friction curves and diagrams."""


@dataclass(frozen=True, eq=False)
class Friction:
    """Friction budget of a law [N m], with motor torque and external torque in opposite balance.

    :param velocity: (V,) [rad/s].
    :param loads: external torque of each curve over velocity (L,) [N m].
    :param over_velocity: friction (L, V).
    :param load: external torque (X,) [N m].
    :param speeds: speed of each curve over load (S,) [rad/s].
    :param over_load: friction (S, X).
    """

    velocity: Array
    loads: Array
    over_velocity: Array
    load: Array
    speeds: Array
    over_load: Array


def friction_of(file: Drive, fastest: float, largest_load: float) -> Friction:
    """Curves up to a velocity [rad/s], and up to a load [N m] with its margin."""
    law, values = file.law, file.values
    velocity = np.linspace(*law.speed_range(max(fastest, 1e-3)), CURVE_POINTS)
    loads = np.array([0.0, 0.5, 1.0]) * largest_load / MARGIN
    load = np.linspace(0.0, largest_load, CURVE_POINTS)
    speeds = np.array([0.0, *(speed for speed in SPEEDS[1:] if speed <= fastest)])

    def budget(motor: Array, moving: Array) -> Array:
        positive, negative = friction_budget(law, values, motor, -motor, moving)
        chosen = np.where(moving < 0.0, negative, positive)
        return np.asarray(np.broadcast_to(chosen, np.broadcast_shapes(motor.shape, moving.shape)))

    return Friction(
        velocity=velocity,
        loads=loads,
        over_velocity=budget(loads[:, None], velocity[None]),
        load=load,
        speeds=speeds,
        over_load=budget(load[None], speeds[:, None]),
    )
