"""The file that ``stribeck identify-robot --json`` writes, as far as other runs read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from stribeck.files.schema import Schema, read_json
from stribeck.model.estimate import Estimate


class FittedJoint(Schema):
    """A joint.

    :param rms: error by kind of run [rad].
    :param parameters: by name.
    :param centre: position around which friction varies [rad].
    """

    rms: Any
    parameters: dict[str, Estimate]
    centre: float = 0.0


class RobotFitFile(Schema):
    """The file.

    :param rms: total errors [rad].
    :param per_joint: by name of the joint.
    :param per_run: errors of the runs.
    :param laws: friction law by name of the joint.
    :param base: parameters of the base.
    :param not_determined: what the data tell least.
    :param same: mean and scatter of parameters of joints with equal drives.
    :param seconds: time that the fit took.
    """

    schema: Literal[1]
    rms: Any
    per_joint: dict[str, FittedJoint]
    per_run: Any
    laws: dict[str, str]
    base: dict[str, Estimate]
    not_determined: Any = None
    same: Any = None
    seconds: float = 0.0


def read_robot_file(path: Path) -> RobotFitFile:
    """Read the file.

    :raises ConfigError: for a file of another kind.
    """
    return read_json(path, RobotFitFile)
