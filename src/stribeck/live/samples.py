"""What the feed-forward torque of joints is computed from at one state: motion, goals and loads."""

from __future__ import annotations

from typing import NamedTuple

from stribeck.model.arrays import Array, Mask


class State(NamedTuple):
    """A measured state at ``stamp`` [s], (n,) each, [rad] and [rad/s].

    ``joint_position`` and ``joint_velocity`` are in the robot's coordinates, the others in the parameter files'.
    """

    stamp: float
    joint_position: Array
    joint_velocity: Array
    position: Array
    velocity: Array


class Wish(NamedTuple):
    """Goals of a controller, (n,) each.

    :param goal: NaN where unknown [rad].
    :param rate: velocity of the goal [rad/s].
    :param known: joints whose goal has a position or a velocity.
    :param age: time from the goal to the state [s].
    """

    goal: Array
    rate: Array
    known: Mask
    age: float


class Loads(NamedTuple):
    """Motor and external torques on the transmissions [N m], (n,) each.

    :param motor: without the feed-forward torque.
    :param matter: whether the friction depends on them.
    """

    motor: Array
    external: Array
    matter: bool
