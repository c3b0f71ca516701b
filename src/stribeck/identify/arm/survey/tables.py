"""Positions, velocities and efforts of the joints of an arm in a table: which column or variable holds what, by their names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from stribeck.errors import RecordingError
from stribeck.identify.arm.survey.reading import SIGNALS, JointTracks, Source
from stribeck.model.arrays import Array
from stribeck.recordings.signals.tracks import Track
from stribeck.recordings.signals.units import UNITS
from stribeck.recordings.tables.readers import TEXT_SUFFIXES, Table, read_table
from stribeck.survey.joint_table import signal_of, unit_of

BY_HAND = "write a file by hand, see docs/recordings.md"

SIGNAL_OF = {"position": "position", "velocity": "velocity", "torque": "effort", "current": "effort"}
"""Signals of an arm by those that names of columns stand for."""


def read_joint_table_tracks(path: Path, joints: Sequence[str]) -> JointTracks:
    """Read a table: arrays with a column for each joint of the URDF, or columns named after joints or numbered.

    :param joints: those that the URDF moves, in its order.
    :raises RecordingError: for tables whose names do not tell time, positions and efforts of the joints.
    """
    table = read_table(path)
    clock = next((name for name in table.arrays if signal_of(name) == "time"), None)
    if clock is None:
        raise RecordingError(
            f"{path}: no column is named time, t or stamp; found {', '.join(table.arrays)}: {BY_HAND}"
        )
    unit = unit_of(clock, "time")
    time = table.column(clock) * UNITS[unit or "s"]
    text = path.suffix.lower() in TEXT_SUFFIXES
    places = _columns(table, joints) if text else _variables(table, joints)
    for signal in ("position", "effort"):
        if signal not in places:
            raise RecordingError(
                f"{path}: no column has a name that means {signal} of joints; found {', '.join(table.arrays)}: {BY_HAND}"
            )
    recorded = {signal: list(place.joints) for signal, place in places.items()}
    names = tuple(joint for joint in joints if all(joint in recorded[s] for s in ("position", "effort")))
    tracks: dict[str, dict[str, Track]] = {}
    for signal, place in places.items():
        values = place.values
        if len(values) != len(time):
            raise RecordingError(
                f"{path}: {signal} has {len(values)} rows, but {clock} has {len(time)}: both need the same number"
            )
        tracks[signal] = {
            joint: Track(time, values[:, k]) for k, joint in enumerate(place.joints) if joint in names
        }
    source: dict[str, object] = {"column" if text else "variable": clock}
    sources = {signal: place.source for signal, place in places.items()}
    sources["time"] = Source({**source, "unit": unit} if unit not in (None, "s") else source)
    return JointTracks(path, "", names, tracks, _format(path), sources)


def _format(path: Path) -> str:
    return "csv" if path.suffix.lower() in TEXT_SUFFIXES else path.suffix.lower().removeprefix(".")


class _Place:
    """Where a signal is: its joints, values (N, n), and the keys of its source."""

    def __init__(self, joints: Sequence[str], values: Array, source: Source) -> None:
        self.joints, self.values, self.source = tuple(joints), values, source


def _variables(table: Table, joints: Sequence[str]) -> dict[str, _Place]:
    """Arrays (N, n) by signal."""
    found: dict[str, _Place] = {}
    wrong = []
    for name, values in table.arrays.items():
        signal = SIGNAL_OF.get(signal_of(name) or "")
        if signal not in SIGNALS or signal in found or values.ndim != 2 or min(values.shape) < 1:
            continue
        if values.shape[1] != len(joints):
            wrong.append(f"{name} {values.shape[1]}")
            continue
        found[signal] = _Place(joints, values, Source({"variable": name}, order=tuple(joints)))
    if wrong and not {"position", "effort"} <= set(found):
        raise RecordingError(
            f"{table.path}: found {', '.join(wrong)} columns, expected {len(joints)}, one for each moving "
            f"joint of the URDF ({', '.join(joints)}): give a URDF with the recorded joints, or {BY_HAND}"
        )
    return found


def _columns(table: Table, joints: Sequence[str]) -> dict[str, _Place]:
    """Columns of text by signal and joint."""
    numbers: dict[str, dict[int, str]] = {}
    named: dict[str, dict[str, str]] = {}
    for column in table.arrays:
        joint = max((one for one in joints if one.lower() in column.lower()), key=len, default=None)
        rest = column if joint is None else re.sub(re.escape(joint), "", column, flags=re.IGNORECASE)
        signal = SIGNAL_OF.get(signal_of(rest) or "")
        if signal not in SIGNALS:
            continue
        if joint is not None:
            named.setdefault(signal, {}).setdefault(joint, column)
        elif digits := re.findall(r"\d+", column):
            numbers.setdefault(signal, {}).setdefault(int(digits[-1]), column)
    by_joint = named if named.get("position") else _by_number(table, numbers, joints)
    return {
        signal: _Place(
            tuple(columns),
            np.stack([table.column(name) for name in columns.values()], axis=1),
            Source({}, columns=dict(columns)),
        )
        for signal, columns in by_joint.items()
    }


def _by_number(
    table: Table, numbers: Mapping[str, Mapping[int, str]], joints: Sequence[str]
) -> dict[str, dict[str, str]]:
    """Numbered columns by joint: as many as the URDF has joints, from 0 or from 1."""
    found = {}
    for signal, columns in numbers.items():
        first = min(columns)
        if first not in (0, 1) or sorted(columns) != list(range(first, first + len(joints))):
            raise RecordingError(
                f"{table.path}: found columns {', '.join(columns.values())}, expected {len(joints)}, one for each moving joint of the URDF "
                f"({', '.join(joints)}): name the columns after the joints, or {BY_HAND}"
            )
        found[signal] = {joint: columns[first + k] for k, joint in enumerate(joints)}
    return found
