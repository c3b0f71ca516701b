"""Recordings of arms and robots, measured and predicted joint by joint, and their errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from stribeck.model.arrays import Array, Mask

Quantity = Literal["torque", "position"]


@dataclass(frozen=True, eq=False)
class MachineMotion:
    """A recording of an arm or a robot, measured and predicted.

    :ivar name: of the recording.
    :ivar joints: names (n,).
    :ivar quantity: ``torque`` of the joints, or ``position``.
    :ivar units: of that quantity (n,).
    :ivar time: (T,) [s].
    :ivar measured, predicted: (T, n).
    :ivar counted: rows of each joint that count in the errors (T, n): of torques those in which it moves.
    """

    name: str
    joints: tuple[str, ...]
    quantity: Quantity
    units: tuple[str, ...]
    time: Array
    measured: Array
    predicted: Array
    counted: Mask


@dataclass(frozen=True)
class JointErrors:
    """Errors of one joint over some recordings.

    :param rms: root mean square error, in ``unit``; NaN where no row counts.
    :param relative: the same relative to what was measured, NaN for positions, too.
    """

    rms: float
    relative: float
    unit: str

    def to_json(self) -> dict[str, Any]:
        """Both errors, ``None`` for NaN."""
        numbers = {"rms": self.rms, "relative": self.relative}
        return {name: one if np.isfinite(one) else None for name, one in numbers.items()} | {
            "unit": self.unit
        }


def overall_error(motions: Sequence[MachineMotion]) -> float:
    r"""Error over all joints and rows that count: of torque :math:`\|y - \hat y\|/\|y\|`, of position the root mean square.

    NaN for positions with different units, and if nothing counts.

    :param motions: one or more recordings with the same joints.
    """
    is_torque = motions[0].quantity == "torque"
    if not is_torque and len(set(motions[0].units)) > 1:
        return float("nan")
    measured = np.concatenate([one.measured[one.counted] for one in motions])
    error = np.concatenate([(one.predicted - one.measured)[one.counted] for one in motions])
    size = float(np.linalg.norm(measured)) if is_torque else np.sqrt(len(error))
    return float(np.linalg.norm(error) / size) if size > 0.0 else float("nan")


def errors_of(motions: Sequence[MachineMotion]) -> dict[str, JointErrors]:
    r"""Errors by joint over all rows that count: :math:`\|y - \hat y\|/\sqrt N` and :math:`\|y - \hat y\|/\|y\|`.

    :param motions: one or more recordings with the same joints.
    """
    found = {}
    for k, joint in enumerate(motions[0].joints):
        measured, error = (
            np.concatenate([values[one.counted[:, k], k] for one, values in zip(motions, part, strict=True)])
            for part in ([one.measured for one in motions], [one.predicted - one.measured for one in motions])
        )
        rms = float(np.sqrt(np.mean(error**2))) if len(error) else float("nan")
        size = float(np.linalg.norm(measured))
        is_torque = motions[0].quantity == "torque" and size > 0.0
        relative = float(np.linalg.norm(error)) / size if is_torque else float("nan")
        found[joint] = JointErrors(rms, relative, motions[0].units[k])
    return found
