"""Joints that stand still in all fitted recordings: they are locked where they are held, and left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stribeck.errors import RecordingError
from stribeck.identify.arm.config import Protocol
from stribeck.identify.arm.motion import motion_of
from stribeck.identify.arm.recordings import ArmRecording

SAME_POSE = 0.1
"""Largest distance of a joint from where it is locked [rad or m]: further away, gravity turns too much."""


@dataclass(frozen=True)
class MovingJoints:
    """The joints of recordings that move, and those that do not.

    :param joints: names of those that move, in the order of the recordings.
    :param held: positions of the others [rad or m], medians over the recordings.
    """

    joints: tuple[str, ...]
    held: Mapping[str, float]

    def of(self, run: ArmRecording) -> ArmRecording:
        """A recording of the joints that move."""
        columns = [run.joints.index(joint) for joint in self.joints]
        velocity, motor = (None if one is None else one[:, columns] for one in (run.velocity, run.motor))
        return replace(
            run,
            joints=self.joints,
            position=run.position[:, columns],
            velocity=velocity,
            effort=run.effort[:, columns],
            motor=motor,
        )

    def astray(self, run: ArmRecording) -> tuple[str, ...]:
        """Held joints that a recording has further than :data:`SAME_POSE` from their positions."""
        return tuple(
            joint
            for joint, position in self.held.items()
            if np.abs(run.position[:, run.joints.index(joint)] - position).max() > SAME_POSE
        )


def moving_joints(runs: Sequence[ArmRecording], protocol: Protocol) -> MovingJoints:
    """The joints that are faster than ``moving`` of the protocol in one recording or more.

    :raises RecordingError: if there is none, or if one of the others is held in poses too far apart for one locked arm.
    """
    speeds = np.max([np.abs(motion_of(run, protocol).states.velocity).max(axis=0) for run in runs], axis=0)
    names = runs[0].joints
    moving = tuple(name for name, speed in zip(names, speeds, strict=True) if speed > protocol.moving)
    if not moving:
        raise RecordingError(
            f"too little motion: no joint moves faster than {protocol.moving:g} (protocol: moving); the fastest reaches {speeds.max():.3g}"
        )
    positions = np.median(np.concatenate([run.position for run in runs]), axis=0).tolist()
    found = MovingJoints(
        moving, {name: at for name, at in zip(names, positions, strict=True) if name not in moving}
    )
    for run in runs:
        if found.held and (astray := found.astray(run)):
            raise RecordingError(
                f"{run.name}: {', '.join(astray)} is more than {SAME_POSE:g} away from its pose in other rows, but never moves faster than "
                f"{protocol.moving:g} (protocol: moving): give recordings of one pose at a time"
            )
    return found
