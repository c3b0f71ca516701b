r"""What drives a joint: references, controllers with the proof that they are stable, and hands.

PD: :math:`\tau = J(\ddot q_d + \omega^2 e + 2\omega\dot e) + \hat g(q)`; impedance: the same, soft. A hand is a spring and damper on a path, which grips and lets go.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plants.friction import FloatArray
from plants.joints import Condition, motor_inertia

START, END = 0.7, 6.2
"""References move between these times [s]; before and after they rest."""

LARGEST_DELAY = 0.5
"""Bandwidth times delay and half a sample, of a condition that is admitted [rad]."""

GAIN_MARGIN = 1.5
"""Factor on the controller's gains with which the loop must still be stable."""


@dataclass(frozen=True)
class Reference:
    """A path at the samples, and where it rests: position, velocity, acceleration (T,)."""

    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    rest: FloatArray


def jerk_step(u: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Minimum jerk from 0 to 1 over u in [0, 1], with its derivatives: :math:`10u^3 - 15u^4 + 6u^5`."""
    u = np.clip(u, 0.0, 1.0)
    return (
        u**3 * (10.0 - 15.0 * u + 6.0 * u * u),
        30.0 * u * u * (1.0 - u) ** 2,
        60.0 * u * (1.0 - u) * (1.0 - 2.0 * u),
    )


def swing(
    t: FloatArray, amplitude: float, frequency: float, begin: float = START, end: float = END
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A sine that is eased in and out within 0.6 s, by the product rule."""
    rise, fall = jerk_step((t - begin) / 0.6), jerk_step((end - t) / 0.6)
    w = 2.0 * np.pi * frequency
    s, c = np.sin(w * (t - begin)), np.cos(w * (t - begin))
    envelope = rise[0] * fall[0]
    slope = (rise[1] * fall[0] - rise[0] * fall[1]) / 0.6
    bend = (rise[2] * fall[0] - 2.0 * rise[1] * fall[1] + rise[0] * fall[2]) / 0.36
    return (
        amplitude * envelope * s,
        amplitude * (slope * s + envelope * w * c),
        amplitude * (bend * s + 2.0 * slope * w * c - envelope * w * w * s),
    )


def _moves(
    t: FloatArray, stroke: float, move: float, rest: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """To and fro with rests between."""
    total = [np.zeros_like(t) for _ in range(3)]
    begin, sign = START, 1.0
    while begin + move <= END:
        for out, part, power in zip(total, jerk_step((t - begin) / move), range(3), strict=True):
            out += sign * stroke * part / move**power
        begin, sign = begin + move + rest, -sign
    return total[0], total[1], total[2]


def reference(name: str, t: FloatArray) -> Reference:
    """A path by name: ``sine``, ``slow``, ``moves``, ``creep``, ``push`` (one move, then rest), ``rest``."""
    if name == "sine":
        path = swing(t, 0.4, 0.4)
    elif name == "slow":
        path = swing(t, 0.1, 0.25)
    elif name == "moves":
        path = _moves(t, 0.6, 1.0, 0.8)
    elif name == "creep":
        path = _moves(t, 0.2, 2.0, 0.75)
    elif name == "push":
        path = _moves(t, 1.0, 2.0, 9.0)
    elif name == "rest":
        path = (np.zeros_like(t), np.zeros_like(t), np.zeros_like(t))
    else:
        raise ValueError(f"unknown reference {name!r}")
    rests = (path[1] == 0.0) & (path[2] == 0.0)
    return Reference(*path, rests.astype(np.float64))


def gains(condition: Condition) -> tuple[float, float, float]:
    """Proportional [N m/rad], derivative [N m s/rad] and acceleration gain [kg m²]."""
    inertia, w = condition.data.inertia, condition.bandwidth
    if condition.control == "zero" and not condition.prelude:
        return 0.0, 0.0, 0.0
    return inertia * w * w, 2.0 * inertia * w, inertia


def is_admitted(condition: Condition) -> bool:
    r"""Whether the loop without compensation is stable, and one count of the encoder is less than the friction.

    A differentiated velocity jumps by :math:`K_d\Delta/T` with a count; half the Coulomb friction is allowed.
    """
    if condition.control == "zero":
        return True
    dt = 1.0 / condition.rate
    if condition.bandwidth * (condition.delay + 0.5) * dt > LARGEST_DELAY:
        return False
    count = 2.0 * np.pi / 2.0**condition.bits
    if (
        not condition.measured_velocity
        and gains(condition)[1] * count / dt > 0.5 * condition.data.coulomb * condition.coulomb_scale
    ):
        return False
    decay = np.exp(-0.1 * condition.bandwidth * dt)
    return spectral_radius(condition, 1.0) < decay and spectral_radius(condition, GAIN_MARGIN) < 1.0


def spectral_radius(condition: Condition, factor: float) -> float:
    """Of the sampled loop without friction, its gains times a factor.

    State: motor and link position and velocity, the last position, and the commands under way.
    """
    joint, dt, delay = condition.data, 1.0 / condition.rate, condition.delay
    rigid = condition.drive == "rigid"
    motor = motor_inertia(condition)
    link = joint.inertia - joint.inertia * joint.motor_share
    k = 0.0 if rigid else link * (2.0 * np.pi * joint.locked) ** 2
    d = 0.0 if rigid else 0.06 * np.sqrt(k * link)
    a = np.zeros((5, 5))
    a[0, 1] = a[2, 3] = 1.0
    a[1, :4], a[3, :4] = np.array([-k, -d, k, d]) / motor, np.array([k, d, -k, -d]) / link
    a[1, 4] = 1.0 / motor
    step = _exponential(a * dt)
    kp, kd, _ = (factor * gain for gain in gains(condition))
    size = 5 + delay
    loop = np.zeros((size, size))
    loop[:4, :4] = step[:4, :4]
    loop[:4, size - 1] = step[:4, 4]
    loop[4, 0] = 1.0
    for n in range(6, size):
        loop[n, n - 1] = 1.0
    if condition.measured_velocity:
        loop[5, 0], loop[5, 1] = -kp, -kd
    else:
        loop[5, 0], loop[5, 4] = -kp - kd / dt, kd / dt
    if rigid:
        keep = [0, 1, *range(4, size)]
        loop = loop[np.ix_(keep, keep)]
    return float(np.abs(np.linalg.eigvals(loop)).max())


def _exponential(matrix: FloatArray) -> FloatArray:
    """Matrix exponential by scaling and squaring."""
    halvings = max(0, int(np.ceil(np.log2(max(np.abs(matrix).sum(axis=1).max(), 1e-12)))) + 4)
    small = matrix / 2.0**halvings
    total, term = np.eye(len(matrix)), np.eye(len(matrix))
    for n in range(1, 12):
        term = term @ small / n
        total = total + term
    for _ in range(halvings):
        total = total @ total
    return np.asarray(total)


@dataclass(frozen=True)
class Hand:
    """When a hand grips, and how far it has come on its path, at the inner steps, (T,).

    :param grips: 1 where it holds the joint.
    :param path: share of a stroke, from where it gripped.
    :param slope: its slope [1/s].
    """

    grips: FloatArray
    path: FloatArray
    slope: FloatArray


STROKE = 1.5
"""Duration of a hand's stroke [s]; its length is 0.8 s times the peak speed."""


def hand_schedule(name: str, t: FloatArray) -> Hand:
    """``hand``: two cycles of guiding to and fro, then push and release; ``coast``: one push; ``hold``: grip at 1.4 s, while the joint moves."""
    grips, path, slope = np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
    if name == "hand":
        for begin, sign in ((0.6, 1.0), (5.8, -1.0)):
            forth, back = jerk_step((t - begin) / STROKE), jerk_step((t - begin - STROKE) / STROKE)
            push = jerk_step((t - begin - 2.0 * STROKE - 0.2) / STROKE)
            held = (t >= begin) & (t < begin + 2.5 * STROKE + 0.2)
            grips += held
            path += held * sign * (forth[0] - back[0] + push[0])
            slope += held * sign * (forth[1] - back[1] + push[1]) / STROKE
    elif name == "coast":
        push = jerk_step((t - 0.6) / STROKE)
        grips = ((t >= 0.6) & (t < 0.6 + 0.5 * STROKE)).astype(np.float64)
        path, slope = grips * push[0], grips * push[1] / STROKE
    elif name == "hold":
        grips = (t >= 1.4).astype(np.float64)
    return Hand(grips, path, slope)
