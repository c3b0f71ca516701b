r"""The calibrated chain, with the constant parameters folded into its placements, as controllers and URDFs need it.

With the correction :math:`C_j` (block j without the joint's own motion) and the joint offset :math:`o_j`, the calibrated
placements are :math:`P_j' = C_{j-1} P_j T(o_j)`, where T is the joint's own transform; :math:`C_0` belongs to the base.
Gains, deflections and harmonics depend on the pose and are left out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stribeck.identify.geometry.chain import AXES, BLOCK, SerialChain, elementary, product
from stribeck.identify.geometry.model import KinematicModel
from stribeck.model.arrays import Array

GIMBAL_LOCK = 1e-9
"""Cosine of the pitch below which roll and yaw are about the same axis."""


def calibrated_chain(model: KinematicModel, values: Array) -> tuple[Array, SerialChain]:
    """Base pose (4, 4), and the chain with calibrated placements and flange."""
    constants = {
        term.element: value
        for term, value in zip(model.terms, values, strict=False)
        if term.feature.kind == "constant"
    }
    chain = model.chain

    def transform(element: int) -> Array:
        return elementary(AXES[chain.kinds[element]], constants.get(element, 0.0))

    corrections = [
        product(*map(transform, range(BLOCK * frame + (frame > 0), BLOCK * (frame + 1))))
        for frame in range(len(chain.names) + 1)
    ]
    placements = [
        (corrections[j] if j > 0 else np.eye(4)) @ placement @ transform(chain.joint_element(j))
        for j, placement in enumerate(chain.placements)
    ]
    flange = corrections[-1] @ chain.flange
    return model.base @ corrections[0], replace(chain, placements=np.stack(placements), flange=flange)


def origin_of(pose: Array) -> tuple[list[float], list[float]]:
    """A pose in URDF form: xyz [m], and rpy about fixed axes [rad], with zero yaw in gimbal lock."""
    r = pose[:3, :3]
    cosine = float(np.hypot(r[0, 0], r[1, 0]))
    pitch = float(np.arctan2(-r[2, 0], cosine))
    if cosine > GIMBAL_LOCK:
        roll, yaw = float(np.arctan2(r[2, 1], r[2, 2])), float(np.arctan2(r[1, 0], r[0, 0]))
    else:
        roll, yaw = float(np.arctan2(-r[1, 2], r[1, 1])), 0.0
    return pose[:3, 3].tolist(), [roll, pitch, yaw]
