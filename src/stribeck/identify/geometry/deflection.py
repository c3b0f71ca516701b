r"""Deflection under gravity, as features that are linear in unknown masses and compliances.

A joint of compliance :math:`c_j` [rad/(N m)] deflects by :math:`c_j \tau_j(q)`, where the moment of gravity is linear
in the masses and first moments of the links beyond it:

.. math:: \tau_j = u_j \cdot \sum_{i \ge j} \left[m_i (p_i - p_j) + R_i\,(m_i c_i)\right] \times g

with the axis :math:`u_j`, the positions and rotations :math:`p_i, R_i` of the link frames, and gravity g. The products
:math:`c_j m_i` and :math:`c_j m_i c_i` are the parameters; the columns here are their factors. Lengths are in multiples
of the reach and gravity has magnitude 1, so parameters are in rad. Columns that are constant or depend on earlier ones
are left out.

Source: Khalil and Besnard 2002.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stribeck.identify.common.independence import independent_columns
from stribeck.identify.geometry.chain import BLOCK, SerialChain, move
from stribeck.model.arrays import Array

MOMENTS = ("m", "mx", "my", "mz")
"""Mass and first moments of a link."""

TRIAL_POSES = 200
TRIAL_SEED = 0


@dataclass(frozen=True)
class MomentColumn:
    """A moment of gravity, and the rotation that it causes.

    :param joint: index of the deflecting joint, 0…n−1.
    :param axis: rx, ry (across the joint axis) or rz (about it).
    :param link: the joint whose link causes the moment.
    :param moment: one of :data:`MOMENTS`.
    :param index: index of the column in the result of :func:`moments`.
    """

    joint: int
    axis: str
    link: int
    moment: str
    index: tuple[int, int, int]


def moments(chain: SerialChain, gravity: Sequence[float], positions: Array) -> list[list[Array]]:
    """Columns of moments by joint and axis x, y, z of its frame: (poses, 4 (n − joint)) each.

    :param gravity: direction in the base frame.
    :param positions: joint positions (poses, n) [rad, m].
    """
    down = np.asarray(gravity, float) / np.linalg.norm(gravity)
    motion = move(chain, np.eye(4), chain.magnitudes(positions))
    frames = [
        motion.axes[:, [chain.element(j + 1, axis) for axis in ("x", "y", "z")]]
        for j in range(len(chain.names))
    ]  # axes x, y, z of each joint's frame after its motion (poses, 3, 3)
    origins = motion.origins[:, BLOCK + BLOCK - 1 :: BLOCK]
    by_joint = []
    for j, frame in enumerate(frames):
        pulls = []
        for i in range(j, len(frames)):
            arm = (origins[:, i] - origins[:, j]) / max(chain.reach, 1e-9)
            pulls += [np.cross(arm, down), *(np.cross(frames[i][:, axis], down) for axis in range(3))]
        by_joint.append(
            [np.stack([np.sum(frame[:, axis] * pull, -1) for pull in pulls], 1) for axis in range(3)]
        )
    return by_joint


def moment_columns(chain: SerialChain, gravity: Sequence[float]) -> list[MomentColumn]:
    """The columns that are neither constant nor dependent on others of the same joint and axis."""
    rng = np.random.default_rng(TRIAL_SEED)
    trial = rng.uniform(-np.pi, np.pi, (TRIAL_POSES, len(chain.names)))
    constant = np.ones((TRIAL_POSES, 1))
    return [
        MomentColumn(
            joint, ("rx", "ry", "rz")[axis], joint + (c - 1) // 4, MOMENTS[(c - 1) % 4], (joint, axis, c - 1)
        )
        for joint, by_axis in enumerate(moments(chain, gravity, trial))
        for axis, columns in enumerate(by_axis)
        for c in independent_columns(np.hstack([constant, columns]))[1:]
    ]
