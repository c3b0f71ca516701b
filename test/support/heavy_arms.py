"""Six-joint arms of the MABI Max 100's kind: 1050 kg, widths of the priors by table I of Reiners et al. 2025.

The paper gives no geometry; this one is that of a welding robot of that mass.
"""

from pathlib import Path

import numpy as np
import pinocchio as pin

from stribeck.identify.arm.model import ArmModel
from stribeck.identify.posterior.knowledge import ArmDatasheet, LinkTable

TOTAL_MASS, REACH = 1050.0, 1.0
ROTORS = np.array([217.160, 635.076, 86.192, 29.752, 14.580, 6.362])
"""Reiners et al. 2025, table I; σ = 63.620 of axis 6 read as 6.362."""

SHEET = ArmDatasheet(TOTAL_MASS, REACH, ROTORS)
TABLE = LinkTable(
    mass=np.array(
        [[344.92, 138.55], [121.57, 80.92], [153.91, 86.77], [55.47, 40.28], [26.27, 15.24], [25.99, 26.62]]
    ),
    radius=np.array(
        [
            [0.2388, 0.0404],
            [0.4824, 0.0670],
            [0.1261, 0.0606],
            [0.5393, 0.3040],
            [0.0787, 0.0437],
            [0.2293, 0.2309],
        ]
    ),
    diagonal=np.array([20.771, 16.158, 97.039, 23.289, 0.2113, 0.2801]),
    off=np.array([32.968, 18.388, 0.3628, 0.0660, 0.0101, 0.0041]),
    total_mass=TOTAL_MASS,
    reach=REACH,
)

_AXES = ("z", "y", "y", "x", "y", "x")
_PLACES = ((0, 0, 0.6), (0.35, 0, 0.2), (0, 0, 1.1), (0.25, 0, 0.2), (1.0, 0, 0), (0.25, 0, 0))


def heavy_arm() -> ArmModel:
    """The geometry, with links of 1 kg."""
    model, parent = pin.Model(), 0
    for k, (axis, place) in enumerate(zip(_AXES, _PLACES, strict=True)):
        joint = getattr(pin, f"JointModelR{axis.upper()}")()
        parent = model.addJoint(
            parent, joint, pin.SE3(np.eye(3), np.array(place, dtype=float)), f"joint_{k + 1}"
        )
        model.appendBodyToJoint(parent, pin.Inertia(1.0, np.zeros(3), 0.01 * np.eye(3)), pin.SE3.Identity())
    return ArmModel(model, tuple(model.names)[1:], Path("heavy_arm"))


def measured_rows(arm: ArmModel, rng: np.random.Generator, count: int) -> np.ndarray:
    """Rows of the inertia regressor of so many poses, at each of which one axis is measured, in turn (count, 66)."""
    from stribeck.identify.posterior.network import inertia_regressor

    poses = rng.uniform(-np.pi, np.pi, (count, len(arm)))
    return inertia_regressor(arm, poses)[np.arange(count), np.arange(count) % len(arm)]
