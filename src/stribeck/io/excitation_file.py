"""Exciting trajectories as files: their own format, read and written here alone, and points for ROS.

.. code-block:: yaml

    schema: 1
    robot: tx40
    joints: [joint_1, joint_2]
    duration: 10.0                 # s, one period of the first harmonic
    sine: [[…], […]]               # a of each joint, rad/s
    cosine: [[…], […]]             # b of each joint, rad/s
    offset: [0.1, 0.2]             # q0, rad
    log_det: 126.8                 # of the information, as far as known

The formula is in :mod:`stribeck.core.fourier`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from stribeck.core.fourier import FourierTrajectory
from stribeck.errors import ConfigError
from stribeck.io import strict
from stribeck.io.files import write_atomically

FloatArray = npt.NDArray[np.float64]

REQUIRED = ("schema", "robot", "joints", "duration", "sine", "cosine", "offset")
OPTIONAL = ("log_det",)


@dataclass(frozen=True, eq=False)
class ExcitationFile:
    """What a file holds.

    :param robot: name of the robot that the trajectory is for.
    :param trajectory: the motion.
    :param log_det: log determinant of the information, ``None`` where nobody knows.
    """

    robot: str
    trajectory: FourierTrajectory
    log_det: float | None = None


def write_excitation(path: Path, content: ExcitationFile) -> None:
    """Write a trajectory; numbers come back exactly.

    :raises OutputError: if the file cannot be written.
    """
    motion = content.trajectory
    data: dict[str, Any] = {
        "schema": 1,
        "robot": content.robot,
        "joints": list(motion.joints),
        "duration": motion.duration,
        "sine": motion.sine.tolist(),
        "cosine": motion.cosine.tolist(),
        "offset": motion.offset.tolist(),
    }
    if content.log_det is not None:
        data["log_det"] = content.log_det
    write_atomically(path, _dumped(data))


def read_excitation_file(path: Path) -> ExcitationFile:
    """Read a trajectory.

    :raises ConfigError: for a file that is not valid, or a motion that does not start and end at rest.
    """
    what = str(path)
    data = strict.parse_yaml(strict.read_text(path, ConfigError), path, ConfigError)
    found = strict.mapping(data, what, ConfigError)
    strict.check_keys(found, REQUIRED, OPTIONAL, what, ConfigError)
    if found["schema"] != 1:
        raise ConfigError(f"{what}: schema {found['schema']!r} is not known; valid: 1")
    joints = found["joints"]
    if not isinstance(joints, list) or not joints or not all(isinstance(name, str) for name in joints):
        raise ConfigError(f"{what}: joints: expected a list of names, found {joints!r}")
    if len(set(joints)) < len(joints):
        raise ConfigError(f"{what}: joints: a name stands twice in {joints}")
    log_det = found.get("log_det")
    return ExcitationFile(
        strict.text(found["robot"], f"{what}: robot", ConfigError),
        _trajectory(found, tuple(joints), what),
        None if log_det is None else strict.number(log_det, f"{what}: log_det", ConfigError),
    )


def _trajectory(found: Mapping[str, Any], joints: tuple[str, ...], what: str) -> FourierTrajectory:
    rows = {key: _rows(found[key], len(joints), f"{what}: {key}") for key in ("sine", "cosine")}
    offset = _numbers(found["offset"], f"{what}: offset")
    try:
        return FourierTrajectory(
            joints,
            strict.number(found["duration"], f"{what}: duration", ConfigError),
            rows["sine"],
            rows["cosine"],
            offset,
        )
    except ConfigError as error:
        raise ConfigError(f"{what}: {str(error).removeprefix(f'{what}: ')}") from None


def _rows(value: Any, joints: int, what: str) -> FloatArray:
    if not isinstance(value, list) or len(value) != joints:
        raise ConfigError(f"{what}: expected a list of coefficients for each of {joints} joints")
    rows = [_numbers(row, what) for row in value]
    if len({len(row) for row in rows}) > 1 or not len(rows[0]):
        raise ConfigError(f"{what}: expected equally many coefficients for each joint")
    return np.array(rows)


def _numbers(value: Any, what: str) -> FloatArray:
    if not isinstance(value, list):
        raise ConfigError(f"{what}: expected a list of numbers, found {value!r}")
    return np.array([strict.number(item, what, ConfigError) for item in value])


def write_joint_trajectory(path: Path, trajectory: FourierTrajectory, rate: float) -> None:
    """The points of a trajectory as YAML of a trajectory_msgs/JointTrajectory, as ``ros2 topic pub`` takes it.

    :param rate: points per second [Hz]; the last point is at the end, whatever the rate.
    :raises ConfigError: for a rate that is not positive.
    """
    if not 0.0 < rate < math.inf:
        raise ConfigError(f"the rate of points must be positive, found {rate:g} Hz")
    time = np.append(np.arange(0.0, trajectory.duration - 1e-9, 1.0 / rate), trajectory.duration)
    states = (part.tolist() for part in trajectory.states(time))
    points = [
        {
            "positions": position,
            "velocities": velocity,
            "accelerations": acceleration,
            "time_from_start": _duration(float(t)),
        }
        for t, position, velocity, acceleration in zip(time, *states, strict=True)
    ]
    header = {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""}
    message = {"header": header, "joint_names": list(trajectory.joints), "points": points}
    write_atomically(path, _dumped(message))


def _duration(time: float) -> dict[str, int]:
    sec, nanosec = divmod(round(time * 1e9), 1_000_000_000)
    return {"sec": sec, "nanosec": nanosec}


def _dumped(data: Any) -> str:
    return yaml.safe_dump(data, sort_keys=False, default_flow_style=None, width=110, allow_unicode=True)
