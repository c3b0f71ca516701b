r"""Relative error of predicted torques: :math:`rel = \|y - \hat y\| / \|y\|`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stribeck.identify.arm.motion import ProcessedMotion
from stribeck.model.arrays import Array


def relative_error(measured: Array, predicted: Array) -> float:
    r""":math:`\|y - \hat y\|/\|y\|`; NaN if all measurements are zero."""
    norm = float(np.linalg.norm(measured))
    return float(np.linalg.norm(measured - predicted)) / norm if norm > 0.0 else float("nan")


def scores(motions: Sequence[ProcessedMotion], predictions: Sequence[Array]) -> dict[str, Any]:
    """Relative errors over the rows of all runs, as ``{"moving": {"per_joint", "all"}, "every_row": …}``."""
    measured = np.concatenate([motion.torque for motion in motions])
    predicted = np.concatenate(list(predictions))
    moving = np.concatenate([motion.moving for motion in motions])
    masks = {"moving": moving, "every_row": np.ones_like(moving)}
    return {
        name: {
            "per_joint": [
                _finite(relative_error(measured[mask[:, j], j], predicted[mask[:, j], j]))
                for j in range(measured.shape[1])
            ],
            "all": _finite(relative_error(measured[mask], predicted[mask])),
        }
        for name, mask in masks.items()
    }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
