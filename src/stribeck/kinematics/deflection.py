r"""Moments of gravity that bend an arm, as features that are linear in unknown masses and stiffnesses.

A joint that gives way by :math:`c_j` rad per N m turns by :math:`c_j \tau_j(q)`, where the moment of gravity
is linear in the mass and the first moments of the links behind it:

.. math:: \tau_j = u_j \cdot \sum_{i \ge j} \left[m_i (p_i - p_j) + R_i\,(m_i c_i)\right] \times g

with the axis :math:`u_j`, the positions and rotations :math:`p_i, R_i` of the links' frames, and gravity g.
The products :math:`c_j m_i` and :math:`c_j m_i c_i` are the parameters; the columns here are their factors,
with lengths in multiples of the reach and gravity 1, so that parameters are in rad. Of the columns that
depend on others or are constant, those that stand first are kept.

Source: Khalil and Besnard, "Geometric calibration of robots with flexible joints and links", J. Intelligent
and Robotic Systems 34 (2002).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stribeck.kinematics.chain import BLOCK, SerialChain, move
from stribeck.kinematics.independence import independent_columns

FloatArray = npt.NDArray[np.float64]

MOMENTS = ("m", "mx", "my", "mz")
"""Mass and first moments of a link."""

TRIAL_POSES = 200
TRIAL_SEED = 0


@dataclass(frozen=True)
class MomentColumn:
    """What turns a joint's frame, and about which axis.

    :param joint: the joint 0…n−1 that turns.
    :param axis: rx, ry (across the joint's axis) or rz (about it).
    :param link: the joint whose link pulls.
    :param moment: one of :data:`MOMENTS`.
    :param index: of the column in the result of :func:`moments`.
    """

    joint: int
    axis: str
    link: int
    moment: str
    index: tuple[int, int, int]


def moments(chain: SerialChain, gravity: Sequence[float], positions: FloatArray) -> list[list[FloatArray]]:
    """Columns of moments by joint and axis x, y, z of its frame: (poses, 4 (n − joint)) each.

    :param gravity: direction in the frame of the base.
    :param positions: joint positions (poses, n) [rad, m].
    """
    down = np.asarray(gravity, float) / np.linalg.norm(gravity)
    motion = move(chain, np.eye(4), chain.magnitudes(positions))
    frames = [_frame(chain, motion.axes, j) for j in range(len(chain.names))]
    origins = motion.origins[:, BLOCK + BLOCK - 1 :: BLOCK]
    found = []
    for j, frame in enumerate(frames):
        pulls = []
        for i in range(j, len(frames)):
            arm = (origins[:, i] - origins[:, j]) / max(chain.reach, 1e-9)
            pulls += [np.cross(arm, down), *(np.cross(frames[i][:, axis], down) for axis in range(3))]
        found.append(
            [np.stack([np.sum(frame[:, axis] * pull, -1) for pull in pulls], 1) for axis in range(3)]
        )
    return found


def _frame(chain: SerialChain, axes: FloatArray, joint: int) -> FloatArray:
    """The axes x, y, z of a joint's frame behind its motion (poses, 3, 3), axis by axis."""
    elements = [chain.element(joint + 1, axis) for axis in ("x", "y", "z")]
    return axes[:, elements]


def moment_columns(chain: SerialChain, gravity: Sequence[float]) -> list[MomentColumn]:
    """The columns that neither depend on others of the same joint and axis nor are constant."""
    rng = np.random.default_rng(TRIAL_SEED)
    trial = rng.uniform(-np.pi, np.pi, (TRIAL_POSES, len(chain.names)))
    found = []
    for joint, by_axis in enumerate(moments(chain, gravity, trial)):
        for axis, columns in enumerate(by_axis):
            constant = np.ones((TRIAL_POSES, 1))
            for c in independent_columns(np.hstack([constant, columns]))[1:]:
                link, moment = joint + (c - 1) // 4, MOMENTS[(c - 1) % 4]
                found.append(
                    MomentColumn(joint, ("rx", "ry", "rz")[axis], link, moment, (joint, axis, c - 1))
                )
    return found
