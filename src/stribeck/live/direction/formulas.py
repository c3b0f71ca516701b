"""Elementwise formulas of the feed-forward torque, each compiled into one call of the live loop.

Common arguments: ``goal`` is NaN without a goal; ``path`` is the direction of the goal's path and ``led`` its weight;
``motion`` is the direction of the measured motion; ``behind`` is the error beyond the dead-band; masks are booleans.
"""

from __future__ import annotations

from typing import Any

from stribeck.live.direction.goals import LEADING
from stribeck.live.direction.motion import Tuning, intended_direction, motion_direction
from stribeck.live.direction.travel import noise
from stribeck.model.namespace import array_namespace

STEPS = 2.0
"""A quantised velocity alone indicates motion only above this number of quantisation steps [1]."""

NOISE = 4.0
"""Velocities above this many standard deviations of their noise count as motion [1]."""

FOLLOWING = 0.2
"""A joint slower than this fraction of its goal's velocity counts as stuck [1]."""

GOAL_LOOP = 6.0
"""With a goal, the motion decides above the velocity that friction produces in this many loop times [1]."""

FREE_LOOP = 2.0
"""The same without a goal, where only a part of the friction is added."""


AHEAD = 0.5
"""Distance by which a goal is ahead of its joint, as a fraction of the dead-band [1]."""


LATEST = 0.1
"""A goal that repeats the measured position is at most so late [s]."""

SLOW = 0.1
"""Fraction of the moving velocity below which a joint stands still [1]."""


def unled(unled: Any, goal: Any, rate: Any, command_velocity: Any, dt: Any) -> Any:
    """Time since a goal last gave a position or a significant velocity [s]."""
    xp = array_namespace(goal, rate)
    says = xp.isfinite(goal) | (xp.abs(rate) >= LEADING * command_velocity)
    return xp.where(says, 0.0, unled + dt)


def threshold(moving_velocity: Any, known: Any, steep: Any, bends: Any) -> Any:
    """Velocity above which a joint counts as moving: above its noise, and high enough for a stable loop [rad/s]."""
    xp = array_namespace(known, steep, bends)
    least = xp.maximum(xp.where(known, GOAL_LOOP, FREE_LOOP) * steep, NOISE * noise(bends))
    return xp.maximum(moving_velocity, least)


def moving(velocity: Any, moving_velocity: Any) -> Any:
    """Direction of a measured motion, from its velocity alone."""
    return motion_direction(velocity, Tuning(moving_velocity=moving_velocity))


def measured(speed: Any, smooth: Any, step: Any, moving_velocity: Any) -> Any:
    """Direction of the measured motion; from the smoothed velocity where velocities are coarsely quantised."""
    coarse = STEPS * step > moving_velocity
    return moving(array_namespace(speed, smooth).where(coarse, smooth, speed), moving_velocity)


def present(goal: Any, rate: Any, age: Any) -> Any:
    """Where a goal of that age is now, NaN without a goal [rad]."""
    return goal + rate * age


def surely_present(goal: Any, rate: Any, age: Any, speed: Any, direction: Any) -> Any:
    """The same, less in the direction of motion by what the velocity may have changed meanwhile [rad].

    Goals that are former positions and velocities of the joint itself, which slows down, are thus not ahead of it.
    """
    xp = array_namespace(goal, rate, speed)
    return present(goal, rate, age) - direction * xp.abs(rate - speed) * xp.abs(age)


def behind(goal: Any, position: Any, deadband: Any) -> Any:
    """Error beyond the dead-band, 0 without a goal [rad]."""
    xp = array_namespace(goal, position)
    error = xp.where(xp.isfinite(goal), goal - position, 0.0)
    return error - xp.minimum(xp.maximum(error, -deadband), deadband)


def error_share(goal: Any, position: Any, deadband: Any) -> Any:
    """Error divided by the dead-band, clipped to [-1, 1], 0 without a goal."""
    xp = array_namespace(goal, position)
    error = xp.where(xp.isfinite(goal), goal - position, 0.0)
    return xp.minimum(xp.maximum(error / xp.maximum(deadband, 1e-9), -1.0), 1.0)


def refilled(
    known: Any, goal: Any, extreme: Any, direction: Any, since: Any, deadband: Any, smooth: Any, moving_velocity: Any
) -> Any:  # fmt: skip
    """Whether the energy tank of a joint is refilled: without a goal at standstill, else if the goal leads the joint.

    It does if it is ahead of where its joint has been since the last reversal. A goal that repeats the measured position
    never is; one that is late may be for as long as it is late. One without a position cannot be told from a measured velocity, and is believed.

    :param extreme: furthest position since that reversal [rad].
    :param direction: of the motion since then, -1, 0 or 1.
    :param since: time since then [s].
    """
    xp = array_namespace(goal, extreme)
    ahead = ((goal - extreme) * direction > AHEAD * deadband) & (since > LATEST)
    leads = ahead | ~xp.isfinite(goal)
    return (known & leads) | (~known & (xp.abs(smooth) < SLOW * moving_velocity))


def moving_at(speed: Any, smooth: Any, moving_velocity: Any) -> Any:
    """Velocity, 0 of a joint at standstill [rad/s]."""
    xp = array_namespace(speed, smooth)
    return xp.where(xp.abs(smooth) < SLOW * moving_velocity, 0.0, speed)


def goes(smooth: Any, moving_velocity: Any) -> Any:
    """1 for a joint that moves, 0 at standstill."""
    xp = array_namespace(smooth)
    return xp.where(xp.abs(smooth) < SLOW * moving_velocity, 0.0, 1.0)


def slip(rate: Any, smooth: Any) -> Any:
    """Velocity of a goal minus that of its joint [rad/s], 0 without a goal."""
    xp = array_namespace(rate, smooth)
    return xp.where(xp.isfinite(rate), rate - smooth, 0.0)


def guaranteed(torque: Any, gain: Any, dry: Any, viscous: Any, fraction: Any) -> Any:
    """Part of a torque of the law that the guaranteed friction takes at the same motion [N m]."""
    xp = array_namespace(torque, gain)
    most = xp.maximum(gain * xp.maximum(dry, viscous), 1e-9)
    return torque * xp.minimum(fraction / most, 1.0)


def free(motion: Any, turned: Any, pushed: Any) -> Any:
    """Direction of a joint without a goal: that of its motion; at rest, that in which its controller pushes it."""
    share = array_namespace(motion).abs(motion)
    return share * turned + (1.0 - share) * pushed


def free_at(velocity: Any, moving_velocity: Any, turned: Any) -> Any:
    """Direction of a joint without a goal, from its velocity."""
    return free(moving(velocity, moving_velocity), turned, 0.0)


def intended(
    speed: Any, position: Any, goal: Any, rate: Any, moving_velocity: Any, deadband: Any, error_width: Any,
    command_velocity: Any, overshoot_fraction: Any,
) -> Any:  # fmt: skip
    """Direction from the error and the goal's velocity."""
    xp = array_namespace(goal, position)
    error = xp.where(xp.isfinite(goal), goal - position, 0.0)
    tuning = Tuning(deadband, error_width, command_velocity, moving_velocity, overshoot_fraction)
    return intended_direction(speed, error, rate, tuning)


def direction(
    motion: Any, behind: Any, path: Any, leads: Any, led: Any, known: Any, intended: Any, free: Any,
    error_width: Any, overshoot_fraction: Any,
) -> Any:  # fmt: skip
    """Direction of the actual or intended motion, in [-1, 1]."""
    xp = array_namespace(motion, path, intended)
    ahead = xp.minimum(xp.maximum(-behind * path / error_width, 0.0), 1.0)
    moves = xp.where(leads, motion, 0.0)
    along = (1.0 - (1.0 - overshoot_fraction) * ahead) * (moves + (1.0 - xp.abs(moves)) * path)
    return xp.where(known, led * along + (1.0 - led) * intended, free)


def law_velocity(rate: Any, speed: Any, smooth: Any, motion: Any, path: Any, leads: Any, led: Any) -> Any:
    """Velocity at which the law is evaluated [rad/s]: the measured one, or with a goal the slower of goal and joint."""
    xp = array_namespace(rate, speed, motion)
    slower = xp.maximum(smooth * path, 0.0)
    slower = xp.where(rate != 0.0, xp.minimum(xp.abs(rate), slower), slower)
    moving = xp.where(xp.abs(motion) > 0.1, speed, 0.0)
    return xp.where(leads, led * slower * path + (1.0 - led) * speed, moving)


def following(direction: Any, velocity: Any, path: Any, rate: Any, command_velocity: Any) -> Any:
    """Whether each joint moves with its goal."""
    xp = array_namespace(velocity, path)
    along = xp.where(direction * path > 0.0, velocity * path, 0.0)
    return along > xp.maximum(FOLLOWING * xp.abs(rate), 0.3 * command_velocity)


def stuck(
    boost: Any,
    growth: Any,
    most: Any,
    release: Any,
    leads: Any,
    follows: Any,
    path: Any,
    behind: Any,
    contact: Any,
) -> Any:
    """Extra torque of joints that stick although their goal moves on, as a fraction of the friction at rest."""
    xp = array_namespace(boost, path)
    sticks = leads & ~follows & (path * behind > 0.0) & (contact < 0.5)
    return xp.where(sticks, xp.minimum(boost + growth, most), boost * release)


def learned_gain(gain: Any, led: Any, certainty: Any, reached: Any) -> Any:
    """Gain that grows from ``gain`` to ``reached`` with the certainty of the learnt friction."""
    return gain + led * certainty * (reached - gain)


def offset(
    torque: Any,
    led: Any,
    direction: Any,
    offset: Any,
    boost: Any,
    path: Any,
    at_rest: Any,
    limit: Any,
    contact: Any,
) -> Any:
    """Torque with the learnt offset [N m], zero if opposite to the direction, clipped, and faded at a contact."""
    xp = array_namespace(torque, direction)
    added = torque + led * xp.abs(direction) * offset + boost * path * at_rest
    torque = xp.where(direction * added > 0.0, added, 0.0)
    return xp.minimum(xp.maximum(torque, -limit), limit) * (1.0 - contact)


def faded(full: Any, least: Any, share: Any) -> Any:
    """A gain or scale that falls to the guaranteed one with the share of a tank."""
    xp = array_namespace(full, least, share)
    floor = xp.minimum(full, least)
    return xp.where(share < 1.0, floor + share * (full - floor), full)
