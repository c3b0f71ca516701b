"""Small mechanisms for tests."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from stribeck.identify.mechanism.dynamics import BodyState, MultibodyDynamics
from stribeck.identify.mechanism.mechanism import Mechanism, Physical
from stribeck.identify.mechanism.model_file import model_of

BLOCK: dict[str, Any] = {
    "schema": 1,
    "name": "block",
    "parameters": {"friction": {"value": 5.0, "unit": "N", "lower": 0, "upper": 100}},
    "bodies": {"block": {"mass": 2.0, "com": [0, 0, 0], "inertia": {"xx": 0.01, "yy": 0.01, "zz": 0.01}}},
    "joints": {
        "slide": {
            "kind": "prismatic", "parent": "world", "child": "block", "point": [0, 0, 0], "axis": [1, 0, 0],
            "coulomb": "friction",
        }
    },
    "base": {"tilt_y": 0.0},
    "sensors": {"place": {"joint": "slide"}},
}  # fmt: skip


def changed(content: dict[str, Any], **sections: Any) -> dict[str, Any]:
    """A copy of a description with other sections."""
    return copy.deepcopy(content) | sections


def mechanism(content: dict[str, Any]) -> Mechanism:
    """The mechanism of a description."""
    return model_of(content, Path("test.yaml")).mechanism


def hanging(dynamics: MultibodyDynamics, physical: Physical, *angles: float) -> BodyState:
    """A chain in the plane of y and z, each link turned about x against the one before, at rest."""
    q = np.array(dynamics.layout.zero_pose(physical))
    total, point, turn = 0.0, np.zeros(3), np.eye(3)
    points = np.asarray(physical.point)
    for k, angle in enumerate(angles):
        if k:
            point = point + turn @ (points[k] - points[k - 1])
        total += angle
        turn = np.array([[1, 0, 0], [0, np.cos(total), -np.sin(total)], [0, np.sin(total), np.cos(total)]])
        q[k, :3] = point + turn @ (np.asarray(physical.com)[k] - points[k])
        q[k, 3:] = [np.cos(total / 2), np.sin(total / 2), 0, 0]
    return BodyState(jnp.asarray(q), jnp.zeros((len(angles), 6)))


def energy_of(dynamics: MultibodyDynamics, physical: Physical, q: Any, before: Any, after: Any) -> Any:
    """Kinetic and potential energy [J] at a configuration between two leapfrog velocities.

    :param before: velocity half a step earlier (nb, 6): v of the state with q.
    :param after: velocity half a step later: v of the next state.
    """
    v = 0.5 * (before + after).reshape(-1)
    kinetic = 0.5 * v @ dynamics.mass_matrix(physical) @ v
    return kinetic - jnp.sum(physical.mass * (q[:, :3] @ jnp.stack(dynamics.gravity(physical))))
