"""Implements ``stribeck record --dry-run``: checks a session and draws it; no bus is opened and nothing moves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from stribeck.cli.inputs import warn
from stribeck.cli.table import print_table
from stribeck.errors import ConfigError
from stribeck.files.folders import check_writable
from stribeck.model.arrays import Array
from stribeck.servo.excitation_setup import has_bus, read_session
from stribeck.session.config import SessionConfig
from stribeck.session.limits import check_plays
from stribeck.session.rehearsal import (
    Demand,
    Rehearsal,
    check_rehearsal,
    demands,
    distinct_plays,
    motion_of,
    rehearse,
)

PICTURE = "dry_run.png"
"""Default name of the picture, in the folder of the bags."""

DRAWN = 4000
"""Largest number of points of a curve."""


def run_dry(
    path: Path,
    output: Path | None,
    rate: float | None,
    *,
    urdf: Path | None,
    picture: Path | None,
    keep_torque: bool,
) -> int:
    """Check limits, torques and self-collisions, print them, and draw the motion.

    :param path: the session's file, with or without a bus.
    :param keep_torque: whether torque stays on at the end although the file has a bus.
    :raises ConfigError: for whatever must not be moved.
    """
    config = read_session(path)
    config = replace(config, output=output or config.output, rate=rate or config.rate)
    releases = has_bus(path) and not keep_torque
    check_plays(config.plays, config.joints, releases_torque=releases)
    rehearsal = rehearse(config, releases_torque=releases)
    print("dry run: no bus is opened, nothing moves")
    _print_demands(config, demands(config))
    check_rehearsal(rehearsal, config.joints)
    print(
        f"limits: satisfied in all {len(distinct_plays(config.plays))} motions and in the transitions between them"
    )
    _draw(config, rehearsal, picture or config.output / PICTURE)
    _check_robot(config, rehearsal, urdf)
    return 0


def _print_demands(config: SessionConfig, found: Sequence[Demand]) -> None:
    limits = {joint.name: joint.limits for joint in config.joints}
    rows = []
    for one in found:
        limit = limits[one.joint]
        travel = (
            f"{one.lower:.2f} to {one.upper:.2f}",
            f"{limit.position_lower:g} to {limit.position_upper:g}",
        )
        speeds = *_pair(one.velocity, limit.velocity), *_pair(one.acceleration, limit.acceleration)
        rows.append([one.trajectory, one.joint, *travel, *speeds, *_pair(one.torque, one.stall_torque)])
    header = ["trajectory", "joint", "position [rad]", "limits"]
    header += ["speed [rad/s]", "limit", "acceleration [rad/s²]", "limit", "torque [N m]", "stall torque"]
    print_table(header, rows, left=2)
    over = sorted({f"{one.trajectory} ({one.joint})" for one in found if one.torque > one.stall_torque})
    if over:
        warn(
            f"these goals cannot be followed, because they need more than the stall torque: {', '.join(over)}"
        )


def _pair(value: float, limit: float) -> tuple[str, str]:
    """A figure and its limit; a dash for what is unknown."""
    return tuple("–" if math.isnan(number) else f"{number:.3g}" for number in (value, limit))  # type: ignore[return-value]


def _draw(config: SessionConfig, rehearsal: Rehearsal, path: Path) -> None:
    """Position and velocity of the goals over time, within their limits."""
    if find_spec("matplotlib") is None:
        print("picture: not drawn, because matplotlib is not installed: pip install 'stribeck[fit]'")
        return
    from stribeck.report.excitation_figures import Row, draw_excitation
    from stribeck.report.style import save

    check_writable(path)
    every = slice(None, None, max(1, len(rehearsal.time) // DRAWN))
    limits = [joint.limits for joint in config.joints]
    speed = np.array([limit.velocity for limit in limits])
    lower, upper = (
        np.array([getattr(one, f"position_{side}") for one in limits]) for side in ("lower", "upper")
    )
    rows = [
        Row("goal [rad]", rehearsal.goal[every], lower, upper),
        Row("velocity [rad/s]", rehearsal.velocity[every], -speed, speed),
    ]
    names = [joint.name for joint in config.joints]
    title = ", ".join(play.trajectory.name for play in distinct_plays(config.plays))
    width = max(2.1, 7.0 / len(names))
    save(draw_excitation(rehearsal.time[every], names, rows, title, width), path)
    print(f"picture: {path}")


def _check_robot(config: SessionConfig, rehearsal: Rehearsal, urdf: Path | None) -> None:
    """Self-collisions and torques of the robot; one line where they cannot be checked.

    :raises ConfigError: for a collision, or a torque beyond the URDF's limit.
    """
    missing = [name for name in ("pinocchio", "coal") if find_spec(name) is None]
    if urdf is None:
        print("self-collisions: not checked, because no URDF is given (--model FILE)")
        return
    if missing:
        print(
            f"self-collisions: not checked, because they need {' and '.join(missing)}: pip install 'stribeck[arm]'"
        )
        return
    from stribeck.excitation.motion_check import self_collisions, torques

    names = [joint.name for joint in config.joints]
    for play in distinct_plays(config.plays):
        motion = motion_of(play, config.joints)
        if len(motion[0]):
            _check_torques(play.trajectory.name, names, *torques(urdf, names, *motion))
    found = self_collisions(urdf, names, rehearsal.time, rehearsal.goal)
    if found is None:
        print(f"self-collisions: not checked, because {urdf} has no collision geometry")
        return
    for pair in found.ignored:
        print(f"self-collisions: {' and '.join(pair)} touch in nearly every position: not checked")
    if found.found:
        pair, time = min(found.found.items(), key=lambda item: item[1])
        raise ConfigError(
            f"{' and '.join(pair)} would collide {time:.2f} s after the start"
            + (f", and {len(found.found) - 1} further pairs of links" if len(found.found) > 1 else "")
            + ": change center, scale or trajectory"
        )
    print(
        f"self-collisions: none at {found.checked} positions (other joints at zero, motion with torque off not checked)"
    )


def _check_torques(trajectory: str, names: Sequence[str], needed: Array, allowed: Array) -> None:
    parts = [
        f"{name} {torque:.3g}" + (f" of {limit:.3g}" if limit > 0.0 else "")
        for name, torque, limit in zip(names, needed, allowed, strict=True)
    ]
    print(f"torques computed from the URDF, {trajectory}: {', '.join(parts)}")
    over = [name for name, torque, limit in zip(names, needed, allowed, strict=True) if torque > limit > 0.0]
    if over:
        raise ConfigError(
            f"trajectory {trajectory!r} needs more torque than the URDF allows for joint {', '.join(over)}: lower the scale, or remove the trajectory"
        )
