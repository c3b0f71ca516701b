"""Joint limits, and the check of plays against them before torque goes on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stribeck.errors import ConfigError
from stribeck.model.arrays import Array
from stribeck.model.trajectories import Trajectory

GRID = 0.001
"""Largest step of the grid on which goals are evaluated [s]."""

JUMP_TIME = 1e-9
"""A goal jumps if it changes as much within this time [s] as within a grid step."""

ROUNDING = 1e-6
"""Relative tolerance of limits for rounding errors of goal differences."""


@dataclass(frozen=True)
class Limits:
    """Limits of a joint; ``inf`` is no limit.

    :param position_lower, position_upper: [rad].
    :param velocity: largest speed of the goal [rad/s].
    :param acceleration: largest acceleration of the goal [rad/s²].
    :param following_error: difference of goal and position that stops a session if it persists [rad].
    :param temperature: temperature that stops a session [°C].
    :raises ConfigError: for an empty range.
    """

    position_lower: float
    position_upper: float
    velocity: float
    acceleration: float
    following_error: float = 1.2
    temperature: float = 65.0

    def __post_init__(self) -> None:
        if not self.position_lower < self.position_upper:
            raise ConfigError(
                f"limits: position: the lower limit {self.position_lower:g} rad is not below the upper one, {self.position_upper:g} rad: swap them"
            )
        for name in ("velocity", "acceleration", "following_error", "temperature"):
            if not getattr(self, name) > 0.0:
                raise ConfigError(f"limits: {name} must be positive, found {getattr(self, name):g}")


@dataclass(frozen=True)
class SessionJoint:
    """A joint of a session.

    :param name: name in messages and recordings.
    :param center: position that trajectories start from [rad].
    :param scale: amplitude factor of trajectories.
    :param hangs: whether it hangs at 0 when torque is off, as a pendulum on a bench; a robot lies at its centers.
    :raises ConfigError: for a center or a scale that is not finite, or a scale of zero.
    """

    name: str
    limits: Limits
    center: float = 0.0
    scale: float = 1.0
    hangs: bool = True

    def __post_init__(self) -> None:
        if not math.isfinite(self.center):
            raise ConfigError(f"joint {self.name!r}: center must be finite, found {self.center}")
        if not math.isfinite(self.scale) or self.scale == 0.0:
            raise ConfigError(f"joint {self.name!r}: scale must be finite and not zero, found {self.scale}")


@dataclass(frozen=True)
class Play:
    """One run: every joint follows the trajectory with gain ``kp``.

    :param trajectory: goal over time.
    :param kp: proportional gain, in firmware units.
    :raises ConfigError: for a gain that is not positive and finite.
    """

    trajectory: Trajectory
    kp: float

    def __post_init__(self) -> None:
        if not 0.0 < self.kp < math.inf:
            raise ConfigError(f"a gain must be positive and finite, found {self.kp}")


def plays_of(
    trajectories: Sequence[Trajectory], gains: Sequence[float], repetitions: int = 1
) -> tuple[Play, ...]:
    """Combine every trajectory with every gain, grouped by gain.

    :raises ConfigError: for empty lists or fewer than one repetition.
    """
    for values, name in ((trajectories, "trajectory"), (gains, "gain")):
        if not values:
            raise ConfigError(f"nothing to execute: name at least one {name}")
    if repetitions < 1:
        raise ConfigError(f"repetitions must be at least 1, found {repetitions}")
    return tuple(Play(t, kp) for _ in range(repetitions) for kp in gains for t in trajectories)


@dataclass(frozen=True)
class Extent:
    """Range and speed of a trajectory while torque is on.

    :param lower, upper: lowest and highest goal [rad].
    :param velocity: largest speed [rad/s].
    :param acceleration: largest acceleration [rad/s²].
    :param end: last goal [rad].
    :param end_velocity: goal velocity at the end, 0 if torque is off by then [rad/s].
    """

    lower: float
    upper: float
    velocity: float
    acceleration: float
    end: float
    end_velocity: float


def followed(trajectory: Trajectory, joint: SessionJoint) -> tuple[Trajectory, SessionJoint]:
    """The trajectory as one joint follows it, and the joint with the center and scale that apply.

    :raises ConfigError: for a trajectory with goals of other joints only.
    """
    if not trajectory.joint_goals:
        return trajectory, joint
    if joint.name not in trajectory.joint_goals:
        raise ConfigError(
            f"trajectory {trajectory.name!r} has no goals for joint {joint.name!r}, only for {', '.join(trajectory.joint_goals)}"
        )
    single = replace(trajectory, goal=trajectory.joint_goals[joint.name], joint_goals={})
    return single, replace(joint, center=0.0, scale=1.0)


def goal_velocity(trajectory: Trajectory, time: float) -> float:
    """Goal velocity [rad/s] from a difference over 2 µs, one-sided at both ends."""
    early, late = max(time - 1e-6, 0.0), min(time + 1e-6, trajectory.duration)
    goals = trajectory.goal(np.array([early, late]))
    return float((goals[1] - goals[0]) / (late - early))


def extent(trajectory: Trajectory) -> Extent:
    """Evaluate a trajectory on a grid of at most 1 ms, until torque goes off.

    The start is not checked: a trajectory may start with a velocity. A goal that jumps has infinite velocity and
    acceleration.
    """
    until = min(trajectory.duration, trajectory.torque_until)
    if until <= 0.0:
        return Extent(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    steps = max(2, math.ceil(until / GRID))
    time = np.linspace(0.0, until, steps + 1)
    goal = trajectory.goal(time)
    change = np.diff(goal)
    dt = until / steps
    velocity = float(np.max(np.abs(change))) / dt
    acceleration = float(np.max(np.abs(np.diff(change)))) / dt**2
    if _jumps(trajectory, time, int(np.argmax(np.abs(change)))):
        velocity = acceleration = math.inf
    end_velocity = 0.0 if until < trajectory.duration else goal_velocity(trajectory, until)
    return Extent(float(goal.min()), float(goal.max()), velocity, acceleration, float(goal[-1]), end_velocity)


def _jumps(trajectory: Trajectory, time: Array, interval: int) -> bool:
    """Whether the goal jumps within a grid interval: one half of the interval then has the whole change."""
    early, late = float(time[interval]), float(time[interval + 1])
    first, last = trajectory.goal(np.array([early, late]))
    whole = abs(last - first)
    if whole == 0.0:
        return False
    while late - early > JUMP_TIME:
        middle = 0.5 * (early + late)
        between = float(trajectory.goal(np.array([middle]))[0])
        if abs(between - first) >= abs(last - between):
            late, last = middle, between
        else:
            early, first = middle, between
    return bool(abs(last - first) > 0.5 * whole)


def check_plays(plays: Sequence[Play], joints: Sequence[SessionJoint], *, releases_torque: bool) -> None:
    """Reject a session that would exceed the limits, before torque goes on.

    Positions include the braking distance at the end of a run. The part of a trajectory after torque goes off
    is ignored.

    :param releases_torque: whether torque may go off, as for a servo on a bench; otherwise trajectories that
        switch torque off are rejected.
    :raises ConfigError: naming trajectory, joint, value and limit.
    """
    if not plays or not joints:
        raise ConfigError("a session needs at least one entry in plays, and at least one joint")
    names = [joint.name for joint in joints]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"joint {twice[0]!r} occurs twice; name each joint once")
    for joint in joints:
        _check_rest(joint, releases_torque)
    for trajectory in {id(play.trajectory): play.trajectory for play in plays}.values():
        if trajectory.torque_until < trajectory.duration and not releases_torque:
            raise ConfigError(
                f"trajectory {trajectory.name!r} switches torque off, which only a servo on a bench may do: remove it, or execute it through the servo node"
            )
        strangers = sorted(set(trajectory.joint_goals) - set(names))
        if strangers:
            raise ConfigError(
                f"trajectory {trajectory.name!r} also moves joint {strangers[0]!r}, which is not listed: add it to joints, or remove the trajectory"
            )
        common = None if trajectory.joint_goals else extent(trajectory)
        for joint in joints:
            single, placed = followed(trajectory, joint)
            _check_extent(trajectory.name, common or extent(single), placed)


def rest_position(joint: SessionJoint, releases_torque: bool) -> float:
    """Position between runs [rad]: hanging if torque goes off at the end and the joint hangs, otherwise its center."""
    return 0.0 if releases_torque and joint.hangs else joint.center


def _check_rest(joint: SessionJoint, releases_torque: bool) -> None:
    limits, rest = joint.limits, rest_position(joint, releases_torque)
    if not limits.position_lower <= rest <= limits.position_upper:
        raise ConfigError(
            f"the rest position of joint {joint.name!r} is {rest:g} rad, outside its limits of "
            f"{limits.position_lower:g} to {limits.position_upper:g} rad: widen limits: position, or change "
            + ("the zero of the joint (joint_map: offset)" if releases_torque else "center")
        )


def _check_extent(name: str, goals: Extent, joint: SessionJoint) -> None:
    limits, scale = joint.limits, joint.scale
    velocity = scale * goals.end_velocity
    braking = (
        0.0 if math.isinf(limits.acceleration) else velocity * abs(velocity) / (2.0 * limits.acceleration)
    )
    ends = [joint.center + scale * goal for goal in (goals.lower, goals.upper, goals.end + braking / scale)]
    where = f"trajectory {name!r}: joint {joint.name!r}"
    advice = "lower the joint's scale, remove the trajectory, or raise"
    if min(ends) < limits.position_lower or max(ends) > limits.position_upper:
        raise ConfigError(
            f"{where} would move from {min(ends):.4g} to {max(ends):.4g} rad, but its limits are "
            f"{limits.position_lower:g} to {limits.position_upper:g} rad: {advice} limits: position"
        )
    for figure, limit, key, unit in (
        (goals.velocity, limits.velocity, "velocity", "rad/s"),
        (goals.acceleration, limits.acceleration, "acceleration", "rad/s²"),
    ):
        reached = figure * abs(scale)
        if reached > limit * (1.0 + ROUNDING):
            jumps = " (its goal jumps, which only a limit of .inf permits)" if math.isinf(reached) else ""
            raise ConfigError(
                f"{where} would reach {reached:.4g} {unit}{jumps}, but its limit is {limit:g} {unit}: {advice} limits: {key}"
            )
