"""Straight ways between poses in joint space, without self-collision."""

from __future__ import annotations

import numpy as np

from stribeck.excitation.contacts import always_touching, contacts
from stribeck.excitation.shapes import shapes_of
from stribeck.identify.arm.model import ArmModel
from stribeck.model.arrays import Array
from stribeck.session.poses import Free

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
