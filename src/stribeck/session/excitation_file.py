"""Files of exciting trajectories: Fourier coefficients in YAML, and trajectory points for ROS.

.. code-block:: yaml

    schema: 1
    robot: tx40
    joints: [joint_1, joint_2]
    duration: 10.0
    sine: [[…], […]]
    cosine: [[…], […]]
    offset: [0.1, 0.2]
    log_det: 126.8

The formula is in :mod:`stribeck.session.fourier`.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from stribeck.errors import ConfigError
from stribeck.files.folders import write_atomically
from stribeck.session.fourier import FourierTrajectory
from stribeck.session.motion_file import MotionFile, dumped


class FourierFile(MotionFile):
    """The keys of a trajectory's file.

    :param schema: version of the format.
    :param robot: name of the robot that the trajectory is for.
    :param joints: names of its joints.
    :param duration: one period of the first harmonic [s].
    :param sine: coefficients a, a list for each joint [rad/s].
    :param cosine: coefficients b, a list for each joint [rad/s].
    :param offset: centre :math:`q_0` of each joint [rad].
    :param log_det: log determinant of the information matrix, if known.
    """

    schema: Literal[1]
    robot: str
    joints: tuple[str, ...]
    duration: float
    sine: tuple[tuple[float, ...], ...]
    cosine: tuple[tuple[float, ...], ...]
    offset: tuple[float, ...]
    log_det: float | None = None

    def __post_init__(self) -> None:
        if not self.joints:
            raise ValueError("joints: expected a list of names, found an empty one")
        if len(set(self.joints)) < len(self.joints):
            raise ValueError(f"joints: names must be different, found {list(self.joints)}")
        for key, rows in (("sine", self.sine), ("cosine", self.cosine)):
            if len(rows) != len(self.joints):
                raise ValueError(f"{key}: expected coefficients for each of {len(self.joints)} joints")
            if len({len(row) for row in rows}) > 1 or not rows[0]:
                raise ValueError(f"{key}: expected equally many coefficients for each joint")


@dataclass(frozen=True, eq=False)
class ExcitationFile:
    """A robot's name, its exciting trajectory, and the log determinant of the information matrix, if known."""

    robot: str
    trajectory: FourierTrajectory
    log_det: float | None = None


def write_excitation(path: Path, content: ExcitationFile) -> None:
    """Write a trajectory, with numbers in full precision.

    :raises OutputError: if the file cannot be written.
    """
    motion = content.trajectory
    sine, cosine = (tuple(map(tuple, rows.tolist())) for rows in (motion.sine, motion.cosine))
    FourierFile(
        schema=1,
        robot=content.robot,
        joints=motion.joints,
        duration=motion.duration,
        sine=sine,
        cosine=cosine,
        offset=tuple(motion.offset.tolist()),
        log_det=content.log_det,
    ).write(path)


def read_excitation_file(path: Path) -> ExcitationFile:
    """Read a trajectory.

    :raises ConfigError: for an invalid file, or a motion that does not start and end at rest.
    """
    content = FourierFile.read(path)
    try:
        motion = FourierTrajectory(
            content.joints,
            content.duration,
            np.array(content.sine),
            np.array(content.cosine),
            np.array(content.offset),
        )
    except ConfigError as error:
        raise ConfigError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from None
    return ExcitationFile(content.robot, motion, content.log_det)


def write_joint_trajectory(path: Path, trajectory: FourierTrajectory, rate: float) -> None:
    """Write the points of a trajectory as YAML of a trajectory_msgs/JointTrajectory, for ``ros2 topic pub``.

    :param rate: points per second [Hz]; the last point is at the end of the trajectory for any rate.
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
            "time_from_start": dict(
                zip(("sec", "nanosec"), divmod(round(float(t) * 1e9), 10**9), strict=True)
            ),
        }
        for t, position, velocity, acceleration in zip(time, *states, strict=True)
    ]
    header = {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""}
    message = {"header": header, "joint_names": list(trajectory.joints), "points": points}
    write_atomically(path, dumped(message))
