r"""The gain at which a position servo hunts: describing function of its friction, and simulation.

With a delay T in the loop, a joint that was deflected by A swings on if the loop feeds it as much energy as friction takes. The describing
function of dry friction :math:`F` at amplitude A and angular frequency :math:`\omega` is :math:`4F/(\pi A \omega)`, a damping. The limit cycle has

.. math:: K\cos\omega T = J\omega^2, \quad K\sin\omega T = (D + b)\,\omega + \frac{4F}{\pi A}

with damping D and the mean slope b of friction over speed. Both give one equation for :math:`\omega` in
:math:`(0, \pi/2T)`, whose left-hand side grows monotonically: :math:`J\omega^2\tan\omega T = (D + b)\omega + 4F/(\pi A)`. Below the gain K a
deflection of A dies away. Without a delay no gain hunts. Source: K. J. Åström and R. M. Murray, Feedback Systems, 2nd ed.,
Princeton 2021, section 10.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from stribeck.advise.plant import JointPlant
from stribeck.model.arrays import Array

AMPLITUDE = 0.1
"""Deflection that has to die away [rad]: a step of a program, or a push."""

STEPS_OF_DELAY, LONGEST_STEP = 10, 1e-3
"""Time steps of a simulation in a delay, and the longest one [s]."""

PERIODS = 25.0
"""Simulated time in periods of the limit cycle."""

GAINS, SPREAD = 33, 1.6
"""Number of gains that a simulation compares, and the ratio of the largest to that of the describing function."""


@dataclass(frozen=True)
class Hunting:
    """Where a joint hunts.

    :param stiffness: smallest K at which a deflection of :data:`AMPLITUDE` does not die away [N m/rad], infinite for none.
    :param described: by the describing function alone [N m/rad].
    :param frequency: of the oscillation [Hz].
    """

    stiffness: float
    described: float
    frequency: float


def describing(plant: JointPlant, amplitude: float = AMPLITUDE) -> tuple[float, float]:
    """Stiffness and angular frequency of the limit cycle with an amplitude [N m/rad, rad/s]; infinite without a delay."""
    if plant.delay <= 0.0 or plant.inertia <= 0.0:
        return math.inf, math.inf
    friction = float(np.mean(plant.breakaway()))
    low, high = 0.0, 0.5 * math.pi / plant.delay
    for _ in range(60):
        omega = 0.5 * (low + high)
        damping = plant.damping + plant.viscous(max(amplitude * omega, 1e-3))
        taken = damping * omega + 4.0 * friction / (math.pi * amplitude)
        if plant.inertia * omega**2 * math.tan(omega * plant.delay) < taken:
            low = omega
        else:
            high = omega
    return plant.inertia * omega**2 / math.cos(omega * plant.delay), omega


def hunting(plant: JointPlant, amplitude: float = AMPLITUDE) -> Hunting:
    """The gain at which the joint hunts, by simulating gains around that of the describing function."""
    described, omega = describing(plant, amplitude)
    if not math.isfinite(described):
        return Hunting(math.inf, math.inf, math.nan)
    gains = described * np.geomspace(1.0 / SPREAD, SPREAD, GAINS)
    kept = released(plant, gains, amplitude, PERIODS * 2.0 * math.pi / omega) > 0.5 * amplitude
    first = int(np.argmax(kept)) if kept.any() else None
    found = described if first is None or first == 0 else float(np.sqrt(gains[first] * gains[first - 1]))
    return Hunting(found, described, omega / (2.0 * math.pi))


def released(plant: JointPlant, stiffness: Array, amplitude: float, duration: float) -> Array:
    """Largest deflection in the last fifth of a time after a release from ``amplitude``, at each stiffness (n,) [rad].

    The load is balanced, and the motor not limited: saturation only shrinks the torque that would drive the oscillation on.
    """
    dt = min(LONGEST_STEP, plant.delay / STEPS_OF_DELAY)
    late = round(plant.delay / dt)
    steps = int(duration / dt)
    sampled = np.geomspace(1e-4, 100.0, 200)
    plus, minus = plant.friction(sampled, -plant.load)
    table = 0.5 * (plus + minus)
    position, velocity = np.full(len(stiffness), amplitude), np.zeros(len(stiffness))
    history, largest = np.tile(position, (late + 1, 1)), np.zeros(len(stiffness))
    for step in range(steps):
        drive = -stiffness * history[step % (late + 1)] - plant.damping * velocity
        friction = np.interp(np.abs(velocity), sampled, table)
        held = (velocity == 0.0) & (np.abs(drive) <= friction)
        direction = np.where(velocity != 0.0, np.sign(velocity), np.sign(drive))
        faster = velocity + np.where(held, 0.0, drive - direction * friction) * dt / plant.inertia
        velocity = np.where(velocity * faster < 0.0, 0.0, faster)
        velocity = np.clip(velocity, -100.0, 100.0)
        position = np.clip(position + dt * velocity, -10.0, 10.0)
        history[step % (late + 1)] = position
        if step > 0.8 * steps:
            largest = np.maximum(largest, np.abs(position))
    return largest
