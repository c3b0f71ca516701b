"""Choice of the joints that recordings can identify: those that the URDF moves, and that move with a known effort."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stribeck.errors import RecordingError
from stribeck.identify.arm.survey.reading import JointTracks
from stribeck.rigid.urdf import Urdf

STILL = {"revolute": 0.01, "continuous": 0.01, "prismatic": 0.002}
"""A joint that travels less in all recordings stands still [rad or m]."""


@dataclass(frozen=True)
class JointChoice:
    """The joints to identify, in the order of the URDF.

    :param notes: one line for each joint that is left out.
    """

    joints: tuple[str, ...]
    notes: tuple[str, ...]


def choose_joints(urdf: Urdf, bags: Sequence[JointTracks]) -> JointChoice:
    """Choose the joints to identify.

    :raises RecordingError: if none is left.
    """
    recorded = list(dict.fromkeys(name for bag in bags for name in bag.names))
    chosen: list[str] = []
    notes = [
        f"{name} is ignored: {'it is fixed in the URDF' if name in urdf.kinds else 'the URDF has no such joint'}"
        for name in recorded
        if name not in urdf.movable
    ]
    for name in urdf.movable:
        reason = _reason_against(name, urdf, bags, recorded)
        if reason is None:
            chosen.append(name)
        else:
            notes.append(f"{name} is ignored: {reason}")
    if not chosen:
        raise RecordingError(
            f"no joint of {urdf.source} ({', '.join(urdf.movable) or 'all fixed'}) can be identified from "
            f"{', '.join(dict.fromkeys(str(bag.path) for bag in bags))}, with joints "
            f"{', '.join(recorded) or 'without names'}: {'; '.join(notes)}"
        )
    return JointChoice(tuple(chosen), tuple(notes))


def _reason_against(
    name: str, urdf: Urdf, bags: Sequence[JointTracks], recorded: Sequence[str]
) -> str | None:
    if name in urdf.mimics:
        return f"it follows {urdf.mimics[name]} (mimic)"
    if name not in recorded:
        return "no recording contains it; it is assumed to be locked at zero"
    positions = [values for bag in bags if len(values := bag.values("position", name))]
    effort = np.concatenate([bag.values("effort", name) for bag in bags])
    if not positions:
        return "its position is never a number"
    travel = max(float(np.ptp(position)) for position in positions)
    if travel < STILL[urdf.kinds[name]]:
        held = " to ".join(
            f"{end:.4g}"
            for end in sorted({round(float(np.median(p)), 4) for p in positions})[
                :: max(1, len(positions) - 1)
            ]
        )
        return f"it is at rest at {held}, and assumed to be locked at zero"
    if len(effort) and np.any(effort) and np.ptp(effort) == 0.0:
        return "its effort is the same in all rows; it is assumed to be locked at zero"
    if len(effort) == 0 or not np.any(effort):
        return "it has no effort; it is assumed to be locked at zero"
    return None
