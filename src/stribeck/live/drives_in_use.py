"""The drives that a compensation node compensates, with all that depends on them; others can take their place while it runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from stribeck.live.compensator import Compensator
from stribeck.live.learning.file import Memory
from stribeck.live.parameters import CompensationParameters
from stribeck.live.setup import (
    CompensatedJoint,
    Learning,
    compensated_joints,
    compensator_of,
    learning_of,
)


class DrivesInUse(NamedTuple):
    """A set of drives and its compensator.

    :param memory: where what is learnt about them is kept; ``None`` if it is not.
    :param remarks: warnings for the log, one line each.
    """

    parameters: CompensationParameters
    joints: list[CompensatedJoint]
    learning: Learning
    compensator: Compensator
    memory: Memory | None
    remarks: tuple[str, ...]

    @classmethod
    def of(cls, parameters: CompensationParameters) -> DrivesInUse:
        """Read the files of the parameters.

        :raises StribeckError: for files that cannot be read, and values that are not valid or would not be stable.
        """
        joints = compensated_joints(parameters)
        learning = learning_of(parameters, joints)
        compensator, memory, remarks = compensator_of(parameters, joints, learning.dynamics), None, []
        if parameters.state_file:
            path = Path(parameters.state_file).expanduser()
            memory = Memory(path, [joint.identified for joint in joints])
            learned, problem = memory.read()
            remarks = [problem] if problem else []
            if learned is not None:
                compensator.recall(learned)
                remarks.append(f"what was learnt before is used again: {path}")
        return cls(parameters, joints, learning, compensator, memory, tuple(remarks))

    def from_file(self, path: str) -> DrivesInUse:
        """Those of the same joints in another file, or in the same one after it has changed; errors as :meth:`of`."""
        return DrivesInUse.of(replace(self.parameters, drives_file=path))

    def same_as(self, other: DrivesInUse | None) -> bool:
        """Whether they are those of another set, by what is in the files."""
        return other is not None and [j.identified for j in self.joints] == [
            j.identified for j in other.joints
        ]
