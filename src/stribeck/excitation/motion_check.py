"""Checks of a given motion of a robot by its URDF: self-collisions, torques; ways between poses without self-collision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stribeck.excitation.contacts import always_touching, contacts
from stribeck.excitation.shapes import has_bodies, shapes_of
from stribeck.identify.arm.model import ArmModel, load_arm
from stribeck.model.arrays import Array
from stribeck.session.poses import Free

SPACING = 0.02
"""Largest motion of a joint between two positions that are checked [rad, m]."""

SAMPLES = 100
"""Number of random positions by which pairs are found that always touch."""


@dataclass(frozen=True)
class Collisions:
    """Result of a check.

    :param checked: number of positions.
    :param found: time of the first collision [s] by pair of links.
    :param ignored: pairs that touch at nearly every position, as overlapping meshes do.
    """

    checked: int
    found: dict[tuple[str, ...], float]
    ignored: tuple[tuple[str, ...], ...]


def torques(
    path: Path, joints: Sequence[str], position: Array, velocity: Array, acceleration: Array
) -> tuple[Array, Array]:
    """Largest torques of a motion without friction and rotors, and the effort limits of the URDF, (J,) each [N m, N].

    :param position, velocity, acceleration: (N, J).
    :raises ConfigError: for an invalid URDF and unknown joints.
    """
    arm = load_arm(path, joints)
    needed = np.abs(arm.inverse_dynamics(position, velocity, acceleration)).max(axis=0)
    return np.asarray(needed), arm.effort_limits


def self_collisions(path: Path, joints: Sequence[str], time: Array, position: Array) -> Collisions | None:
    """Check a motion; joints that do not take part are at zero. ``None`` if the URDF has no collision geometry.

    :param path: URDF.
    :param time: (N,) [s].
    :param position: (N, J) [rad, m]; NaN where unknown, which is left out.
    :raises ConfigError: for an invalid URDF, unknown joints, and missing meshes.
    """
    arm = load_arm(path, joints)
    if not has_bodies(arm):
        return None
    shapes = shapes_of(arm, {})
    lower, upper = (
        np.where(np.isfinite(side), side, np.pi * sign)
        for side, sign in zip(arm.position_limits, (-1, 1), strict=True)
    )
    anywhere = np.random.default_rng(0).uniform(lower, upper, (SAMPLES, len(joints)))
    touching = always_touching(arm, shapes, (), np.vstack([0.5 * (lower + upper), anywhere]))
    known = np.isfinite(position).all(axis=1)
    time, position = time[known], position[known]
    way = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(position, axis=0)).max(axis=1))])
    chosen = np.unique(
        np.searchsorted(way, np.arange(0.0, way[-1] + SPACING, SPACING)).clip(max=len(way) - 1)
    )
    hits = contacts(arm, shapes, touching, position[chosen])
    found = {
        tuple(sorted(pair)): float(time[chosen][int(np.argmax(hit))])
        for pair, hit in hits.items()
        if hit.any()
    }
    return Collisions(len(chosen), found, tuple(sorted(tuple(sorted(pair)) for pair in touching)))


STEP = 0.02
"""Largest step of a joint between two checked positions [rad or m]."""

AROUND = 200
"""Random positions from which pairs of bodies are taken that always touch."""


def free_ways(arm: ArmModel) -> Free:
    """Ways without self-collision of the bodies of a URDF; pairs that always touch are ignored.

    :raises ConfigError: for a URDF without collision geometry.
    """
    shapes = shapes_of(arm, {})
    lower, upper = (np.clip(side, -np.pi, np.pi) for side in arm.position_limits)
    around = np.random.default_rng(0).uniform(lower, upper, (AROUND, len(arm)))
    around[0] = 0.5 * (lower + upper)
    ignored = always_touching(arm, shapes, frozenset(), around)

    def free(first: Array, then: Array) -> bool:
        count = max(2, int(np.ceil(np.max(np.abs(then - first)) / STEP)) + 1)
        way = first + np.linspace(0.0, 1.0, count)[:, None] * (then - first)
        return not any(np.any(seen) for seen in contacts(arm, shapes, ignored, way).values())

    return free
