r"""The constants of a calibration folded into the chain: what a controller or a URDF can take.

With corrections :math:`C_j` (the block of frame j without the joint's own motion) and joint offset
:math:`o_j`, the calibrated placements are :math:`P_j' = C_{j-1} P_j T(o_j)`, where T is the joint's own
transform; :math:`C_0` goes to the base. Gains, deflections and harmonics depend on the pose and are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from stribeck.kinematics.chain import AXES, BLOCK, SerialChain, elementary, product
from stribeck.kinematics.model import KinematicModel

FloatArray = npt.NDArray[np.float64]

HORIZONTAL = 1e-9
"""Cosine of the pitch below which roll and yaw turn about the same axis."""


def calibrated_chain(model: KinematicModel, values: FloatArray) -> tuple[FloatArray, SerialChain]:
    """Pose of the base (4, 4), and the chain with offsets and geometry in its placements and flange."""
    constant = {
        term.element: value
        for term, value in zip(model.terms, values, strict=False)
        if term.feature.kind == "constant"
    }
    chain = model.chain
    corrections = [_correction(chain, frame, constant) for frame in range(len(chain.names) + 1)]
    placements = []
    for j, placement in enumerate(chain.placements):
        own = chain.joint_element(j)
        before = corrections[j] if j > 0 else np.eye(4)
        offset = elementary(AXES[chain.kinds[own]], constant.get(own, 0.0))
        placements.append(before @ placement @ offset)
    return (
        model.base @ corrections[0],
        replace(chain, placements=np.stack(placements), flange=corrections[-1] @ chain.flange),
    )


def _correction(chain: SerialChain, frame: int, constant: Mapping[int, float]) -> FloatArray:
    """The block of a frame without the motion of its joint (4, 4)."""
    first = BLOCK * frame + (frame > 0)
    return product(
        *(elementary(AXES[chain.kinds[e]], constant.get(e, 0.0)) for e in range(first, BLOCK * (frame + 1)))
    )


def origin_of(pose: FloatArray) -> tuple[list[float], list[float]]:
    """A pose as in a URDF: xyz [m], and roll, pitch, yaw about fixed axes x, y, z [rad].

    Where roll and yaw turn about the same axis, yaw is 0.
    """
    r = pose[:3, :3]
    flat = float(np.hypot(r[0, 0], r[1, 0]))
    pitch = float(np.arctan2(-r[2, 0], flat))
    if flat > HORIZONTAL:
        roll, yaw = float(np.arctan2(r[2, 1], r[2, 2])), float(np.arctan2(r[1, 0], r[0, 0]))
    else:
        roll, yaw = float(np.arctan2(-r[1, 2], r[1, 1])), 0.0
    return pose[:3, 3].tolist(), [roll, pitch, yaw]
