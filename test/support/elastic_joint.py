r"""A joint with an elastic transmission, simulated independently of the package: two masses, LuGre friction, encoders on both sides.

.. math::

    J_m\ddot q_m = \tau - F_m - \tau_t, \qquad J_l\ddot q_l = \tau_t - F_l - m g l\,\sin q_l, \qquad
    \tau_t = k\,x + d\,\dot x, \quad x = \text{twist beyond half the play}

Rigid joints are one mass. The motor follows a sum of sines by position control.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

STEP, EVERY = 1e-4, 40
"""Time step [s], and steps between samples: 250 Hz."""

COUNTS = 2**17
"""Counts per turn of both encoders."""

RATIO = 100.0


@dataclass(frozen=True)
class ElasticJoint:
    """Parameters, all at the link's side.

    :param stiffness: k [N m/rad]; ``None`` for a rigid joint.
    :param damping: d [N m s/rad].
    :param play: whole width of the backlash [rad].
    :param gravity: m g l [N m].
    :param noise: standard deviation of the measured torque, each sample [N m].
    :param skew: time by which the link is read earlier than the motor [s].
    """

    stiffness: float | None = 2e4
    damping: float = 20.0
    play: float = 0.0
    motor_inertia: float = 0.6
    link_inertia: float = 1.0
    gravity: float = 25.0
    coulomb: float = 6.0
    stribeck: float = 3.0
    viscous: float = 8.0
    link_coulomb: float = 0.5
    noise: float = 1.0
    skew: float = 0.001


@dataclass(frozen=True)
class Recorded:
    """Samples of several runs, (T, runs) each: motor and link position at the link's side [rad], motor torque at the link's side [N m]."""

    motor: np.ndarray
    link: np.ndarray
    torque: np.ndarray


def record(joint: ElasticJoint, seeds, seconds: float = 20.0) -> Recorded:
    """Simulate one run for each seed, all at once."""
    seeds = list(seeds)
    generators = [np.random.default_rng(seed) for seed in seeds]
    frequency = np.array([g.uniform(0.1, 1.5, 5) for g in generators]).T * 2.0 * np.pi
    phase = np.array([g.uniform(0.0, 2.0 * np.pi, 5) for g in generators]).T
    amplitude = 0.6 / frequency**0.5
    rows = round(seconds / STEP)
    motor = np.zeros(len(seeds)) + np.sum(amplitude * np.sin(phase), axis=0)
    link, velocity, link_velocity, bristle = motor.copy(), 0.0 * motor, 0.0 * motor, 0.0 * motor
    taken = np.empty((3, rows // EVERY, len(seeds)))
    earlier = round(joint.skew / STEP)
    links = np.empty((rows, len(seeds)))
    for k in range(rows):
        angle = frequency * (k * STEP) + phase
        goal, rate = (
            np.sum(amplitude * np.sin(angle), axis=0),
            np.sum(amplitude * frequency * np.cos(angle), axis=0),
        )
        torque = 3000.0 * (goal - motor) + 150.0 * (rate - velocity)
        steady = (
            joint.coulomb + joint.stribeck * np.exp(-((velocity / 0.1) ** 2))
        ) / 2e4  # bristles of 2e4 N m/rad
        limit = steady * np.sign(velocity)
        bristle = limit + (bristle - limit) * np.exp(-np.abs(velocity) * STEP / steady)
        friction = 2e4 * bristle + joint.viscous * velocity
        load = joint.gravity * np.sin(link) + joint.link_coulomb * np.tanh(link_velocity / 0.01)
        if joint.stiffness is None:
            velocity = velocity + STEP * (torque - friction - load) / (
                joint.motor_inertia + joint.link_inertia
            )
            motor = motor + STEP * velocity
            link, link_velocity = motor, velocity
        else:
            twist = motor - link
            beyond = np.sign(twist) * np.maximum(np.abs(twist) - 0.5 * joint.play, 0.0)
            touching = np.abs(twist) >= 0.5 * joint.play
            through = joint.stiffness * beyond + joint.damping * touching * (velocity - link_velocity)
            velocity = velocity + STEP * (torque - friction - through) / joint.motor_inertia
            link_velocity = link_velocity + STEP * (through - load) / joint.link_inertia
            motor, link = motor + STEP * velocity, link + STEP * link_velocity
        links[k] = link
        if k % EVERY == 0 and k // EVERY < taken.shape[1]:
            taken[:, k // EVERY] = motor, links[max(k - earlier, 0)], torque
    noise = np.array([g.standard_normal(taken.shape[1]) for g in generators]).T
    step = 2.0 * np.pi / COUNTS
    motor, link, torque = taken
    return Recorded(
        np.round(motor * RATIO / step) * step / RATIO,
        np.round(link / step) * step,
        torque + joint.noise * noise,
    )
