"""The paths of §VI-B on a real arm of two servos: files that a session plays, and recordings as tests of laws.

``validate_2r.py --write-paths DIR`` writes a file for each path. ``stribeck record`` or the excitation node plays them at both gains,
``validate_2r.py --recordings BAGS --params DIR`` simulates each run with every law from its first measured state, with the goals
that were sent and the measured supply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stribeck.errors import ConfigError
from stribeck.model.joint import Drive
from stribeck.model.log import Log
from stribeck.recordings.sources import read_recordings
from stribeck.session.points import MotionPointsFile
from two_link import Motion, joint_angles
from two_link_benches import Bench
from two_link_validation import PERIOD, PathTests, Validation, path_errors

Array = npt.NDArray[np.float64]

POINTS = 0.01
"""Time between the points of a path [s]: cubics between them are within 10 µrad of it."""


def path_points(bench: Bench, path: str, joints: tuple[str, str]) -> MotionPointsFile:
    """A path as positions of both joints."""
    found = bench.paths[path]
    count = round(found.duration / POINTS)
    time = np.linspace(0.0, found.duration, count + 1)
    angles = np.stack(joint_angles(bench.links, *found.at(time)), axis=1)
    return MotionPointsFile(
        schema=1, joints=joints, period=found.duration / count, positions=tuple(map(tuple, angles.tolist()))
    )


def write_paths(folder: Path, bench: Bench, paths: Sequence[str], joints: tuple[str, str]) -> list[Path]:
    """Files of points, named as the paths are, so that recordings say which path they are of."""
    files = [folder / f"{path}.yaml" for path in paths]
    for path, file in zip(paths, files, strict=True):
        path_points(bench, path, joints).write(file)
    return files


@dataclass(frozen=True, eq=False)
class RecordedPaths:
    """Recorded runs on one grid.

    :param tests: with the goals that were sent.
    :param truth: what was measured; its first sample is where simulations start.
    :param supplies: of both servos (N, 2, L) [V].
    """

    tests: PathTests
    truth: Motion
    supplies: Array


def read_paths(folder: Path, bench: Bench, joints: tuple[str, str]) -> RecordedPaths:
    """Runs of the bench's paths, of both joints.

    :param joints: names in the recordings, from the base outwards.
    :raises ConfigError: without such runs, for one joint alone, and for gains that the bench does not have.
    """
    every = [_runs_on_paths(folder, bench, joints[0])]
    if every[0]:
        every.append(_runs_on_paths(folder, bench, joints[1]))
    else:
        raise ConfigError(
            f"{folder}: no runs of joint {joints[0]} on paths; valid: trajectories called {', '.join(bench.paths)} "
            "(--write-paths writes their files)"
        )
    pairs = {_key(bench, one, two, folder): (one, two) for one, two in _pairs(*every, folder)}
    if len(pairs) < len(every[0]):
        raise ConfigError(
            f"{folder}: {len(every[0])} runs, but only {len(pairs)} paths and gains: name one run of each"
        )
    return _gridded(bench, pairs)


def _runs_on_paths(folder: Path, bench: Bench, joint: str) -> list[Log]:
    return [log for log in read_recordings(folder, joint=joint) if log.trajectory in bench.paths]


def _pairs(first: list[Log], second: list[Log], folder: Path) -> list[tuple[Log, Log]]:
    """Runs of both joints that were recorded at the same time."""
    found = []
    for one in first:
        same = [
            two for two in second if two.trajectory == one.trajectory and abs(two.start - one.start) < 1.0
        ]
        if len(same) != 1:
            raise ConfigError(
                f"{folder}: run {one.name!r} of joint {one.setup.joint} has {len(same)} runs of the other joint at its time, expected 1"
            )
        found.append((one, same[0]))
    return found


def _key(bench: Bench, one: Log, two: Log, folder: Path) -> tuple[str, str]:
    gains = (one.setup.kp, two.setup.kp)
    for name, pair in bench.gains.items():
        if gains == pair:
            return one.trajectory, name
    valid = ", ".join(f"{name} {pair[0]:g} and {pair[1]:g}" for name, pair in bench.gains.items())
    raise ConfigError(f"{folder}: run {one.name!r} has gains {gains[0]:g} and {gains[1]:g}; valid: {valid}")


def _gridded(bench: Bench, pairs: Mapping[tuple[str, str], tuple[Log, Log]]) -> RecordedPaths:
    """All runs side by side; after its end a run holds its last sample, which does not count."""
    parts = {"position": [], "velocity": [], "goal": [], "supply_voltage": []}
    lasting = []
    for one, two in pairs.values():
        start = max(one.start, two.start)
        both = [log.resample(PERIOD, start=start) for log in (one, two)]
        count = min(len(part.time) for part in both)
        lasting.append(count)
        for name, columns in parts.items():
            columns.append(np.stack([getattr(part, name)[:count] for part in both], axis=1))
    longest = max(lasting)
    whole = {
        name: np.stack(
            [np.concatenate([c, np.repeat(c[-1:], longest - len(c), axis=0)]) for c in columns], axis=2
        )
        for name, columns in parts.items()
    }
    gains = np.array([bench.gains[gain] for _, gain in pairs]).T
    tests = PathTests(bench, tuple(pairs), gains, whole["goal"], 0, np.array(lasting))
    return RecordedPaths(tests, Motion(whole["position"], whole["velocity"]), whole["supply_voltage"])


def validate_recordings(recorded: RecordedPaths, laws: Mapping[str, tuple[Drive, Drive]]) -> Validation:
    """Test laws on recorded runs.

    :param laws: both servos, by law.
    """
    tests, truth = recorded.tests, recorded.truth
    start = Motion(truth.position[0], truth.velocity[0])
    motions = {law: tests.motion(servos, start, supplies=recorded.supplies) for law, servos in laws.items()}
    errors = {law: path_errors(tests, truth, motion) for law, motion in motions.items()}
    return Validation(tests, truth, motions, errors)
