"""A leader that a hand guides, and a follower that touches a wall: the hand feels the wall, without a force sensor and without ROS.

    python examples/contact/reflect_force.py

Both are simulated levers (:mod:`stop_on_contact`). The leader bears its own weight and part of its friction (``zero_torque`` of ``sb.Compensator``); the
follower follows the leader's position under friction compensation. What the follower's external torque exceeds the threshold of an alarm by acts on
the leader against the hand: nothing in free motion, and the force of the wall less that threshold in contact. For robots of your own, replace
:class:`Lever` by their drivers, one compensator for each.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

import stribeck as sb
from stop_on_contact import LEARNING, LENGTH, MASS, PERIOD, ROTOR, WALL, Lever, files, wanted

INERTIA = ROTOR + MASS * LENGTH**2
"""Of a lever according to its model [kg m²]."""

REFLECTED = 0.5
r"""Share of the follower's external torque that acts on the leader [1].

Torques arrive late by the filter of the external torque and a cycle, T = 22 ms together: a wall behind the follower's controller with stiffness
:math:`K = J\omega^2` drives the leader like a negative damping :math:`-\mathrm{share} \cdot K T`, which has to be less than its viscous friction.
"""

BANDWIDTH = 15.0
"""Of the follower's controller, ω [rad/s]."""

HAND, HAND_DAMPING = 60.0, 6.0
"""Stiffness and damping of the hand [N m/rad, N m s/rad]."""

BEGIN = LEARNING + 1.0
"""The hand moves the leader from then on [s]; before, the follower learns its friction."""


class Moment(NamedTuple):
    """One cycle.

    :param hand, wall: torque of the hand on the leader, and of the wall on the follower [N m].
    :param reflected: torque on the leader that reflects the wall [N m].
    :param leader, follower: positions [rad].
    """

    time: float
    hand: float
    wall: float
    reflected: float
    leader: float
    follower: float


def guided(time: float) -> float:
    """Where the hand leads the leader: from 0 to 1.2 rad within 4 s, 2 s there, and back [rad]."""
    s = min(max(time, 0.0) / 4.0, 1.0) - min(max(time - 6.0, 0.0) / 4.0, 1.0)
    return 0.6 * (1.0 - math.cos(math.pi * s))


def coupled(
    folder: Path,
    share: float = REFLECTED,
    wall: float = WALL,
    released: float = math.inf,
    seconds: float = BEGIN + 11.0,
) -> list[Moment]:
    """Let the follower learn, then guide the leader.

    :param share: of the external torque that is reflected.
    :param released: time after :data:`BEGIN` at which the hand lets go [s].
    """
    drives, urdf = files(folder)
    guiding = sb.Compensator(drives, urdf, effort_meaning="motor", max_torque=15.0)
    following = sb.Compensator(drives, urdf, effort_meaning="motor", max_torque=15.0)
    leader, follower, moments = Lever(wall=math.inf), Lever(wall=wall), []
    borne = pushed = 0.0
    for k in range(round(seconds / PERIOD)):
        time, q, v = PERIOD * k, follower.position, follower.velocity
        goal, rate, bend = wanted(time) if time < LEARNING else (leader.position, leader.velocity, 0.0)
        friction = following.torque([q], [v], effort=[pushed], q_goal=[goal], qd_goal=[rate], t=time)
        found, reflected = following.external_torque, 0.0
        if found is not None and time > LEARNING:
            felt = np.maximum(np.abs(found.torque) - found.threshold, 0.0)
            reflected = share * float(np.copysign(felt, found.torque)[0])
        weight = MASS * 9.81 * LENGTH * math.sin(q)
        accelerated = bend + BANDWIDTH**2 * (goal - q) + 2.0 * BANDWIDTH * (rate - v)
        pushed = INERTIA * accelerated + weight + float(friction[0])
        # What is reflected acts on the leader like another hand: it is not part of its own effort.
        own = guiding.zero_torque([leader.position], [leader.velocity], effort=[borne], t=time)
        borne = float(own[0])
        hand, since = 0.0, time - BEGIN
        if since < released:
            ahead, rising = guided(since), (guided(since + PERIOD) - guided(since)) / PERIOD
            hand = HAND * (ahead - leader.position) + HAND_DAMPING * (rising - leader.velocity)
        leader.advance(borne + reflected + hand)
        follower.advance(pushed)
        moments.append(Moment(time, hand, follower.force, reflected, leader.position, follower.position))
    return moments


def main() -> None:
    """Guide the leader against the wall twice, without and with reflection."""
    for share in (0.0, REFLECTED):
        with tempfile.TemporaryDirectory() as folder:
            moments = coupled(Path(folder), share)
        free = max(abs(m.hand) for m in moments if BEGIN < m.time < BEGIN + 2.0)
        pressed = moments[round((BEGIN + 5.5) / PERIOD)]
        print(
            f"{'with' if share else 'without'} reflection: the hand pushes with {free:.1f} N m at most in free motion, and with {pressed.hand:.1f} N m "
            f"where the follower presses the wall with {pressed.wall:.1f} N m"
        )


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    main()
