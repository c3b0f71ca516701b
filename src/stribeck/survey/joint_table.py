"""The signals of one joint in a table: which column holds what, in which unit, guessed from names or as told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stribeck.errors import ConfigError, RecordingError
from stribeck.model.arrays import Array
from stribeck.recordings.bags.messages import DYNAMIC_JOINT_STATES, JOINT_STATES
from stribeck.recordings.bags.storage import is_bag
from stribeck.recordings.signals.units import UNITS, Unit
from stribeck.recordings.tables.readers import Table, read_joint_states, read_table

WORDS = {
    "goal": r"goal|target|command|cmd|set point|desired|\bdes\b|reference|\bref\b",
    "temperature": r"temp",
    "rigid": r"rigid|\bmodel\b|gravity|inverse dynamics|\btau g\b",
    "acceleration": r"accel|\bacc\b|\bddq\b|\bqdd\b|\bddtheta\b|\bddot\b|\balpha\b",
    "current": r"current|\bcurr?\b|\bamps?\b|\bi\b|\biq\b",
    "torque": r"torque|effort|\btau\b|\btau f\b|\btrq\b|\btq\b|friction|moment",
    "velocity": r"veloc|\bvel\b|speed|rpm|omega|\bqd\b|\bdq\b|\bdtheta\b|\bqdot\b|\bv\b|\bw\b",
    "time": r"^(t|time|timestamp|stamp|secs?|seconds|millis|micros|ms|us|ns)\b|\btime",
    "position": r"pos|angle|\bq\b|theta|encoder|\bphi\b|degrees?\b|\bdeg\b|\brad\b",
}
"""Patterns of the words in names of columns, in the order in which they decide."""

NEEDED = ("time", "position", "torque")
SIGNALS = (*NEEDED, "current", "velocity", "acceleration", "rigid", "temperature")
"""The signals of a joint; a current stands for a torque, all others but these are optional."""

UNIT_WORDS: dict[str, Unit] = {
    "deg": "deg", "degree": "deg", "degrees": "deg", "rpm": "rpm", "rad": "rad", "radian": "rad", "radians": "rad",
    "degs": "deg", "ms": "ms", "us": "us", "ns": "ns", "ma": "mA", "mnm": "mN m", "amps": "A", "a": "A", "nm": "N m",
    "turns": "turn", "turn": "turn", "rev": "turn",
}  # fmt: skip
"""Units that names of columns end with, or have in brackets."""

FITTING: dict[str, tuple[Unit, ...]] = {
    "time": ("s", "ms", "us", "ns"),
    "position": ("rad", "deg", "turn", "m", "mm"),
    "velocity": ("rad/s", "deg/s", "rpm", "m/s", "mm/s", "rad", "deg", "turn", "m", "mm"),
    "acceleration": ("rad", "deg", "turn", "m", "mm"),
    "torque": ("N m", "mN m", "N"),
    "rigid": ("N m", "mN m", "N"),
    "current": ("A", "mA"),
    "temperature": (),
}
"""Valid units; those of velocities and accelerations may be named by the unit of the angle alone."""

MOVES = 0.05
"""A joint moves if it travels this share of the largest travel."""

NONE = "none"

STATES = (JOINT_STATES, DYNAMIC_JOINT_STATES)
"""Topics of bags."""


class Column(NamedTuple):
    """A column of a table: its name, and its unit; ``None`` for SI."""

    name: str
    unit: Unit | None = None


@dataclass(frozen=True, eq=False)
class JointTable:
    """The signals of one joint in SI units, (N,) each, NaN where a field is empty.

    :param name: of the recording, for messages.
    :param signals: by name, of :data:`SIGNALS`; a current in A.
    :param columns: where each was found.
    :param declared: signals whose unit is known from a name or was told.
    :param notes: what was chosen among several possibilities.
    """

    name: str
    signals: Mapping[str, Array]
    columns: Mapping[str, str]
    declared: frozenset[str]
    notes: tuple[str, ...] = ()


def parse_columns(text: str) -> dict[str, Column | None]:
    """Columns by signal from ``position=q:deg,torque=i:A,velocity=none``; ``None`` for a signal that is left out.

    :raises ConfigError: for other text, unknown signals and units that do not fit.
    """
    found: dict[str, Column | None] = {}
    for part in filter(None, (word.strip() for word in text.split(","))):
        signal, equals, where = (word.strip() for word in part.partition("="))
        if not (equals and where) or signal not in SIGNALS:
            raise ConfigError(
                f"`columns`: expected SIGNAL=COLUMN[:UNIT], with one of the signals {', '.join(SIGNALS)}; found {part!r}"
            )
        name, _, unit = where.partition(":")
        if unit and unit not in FITTING[signal]:
            raise ConfigError(
                f"`columns`: {signal}: unit {unit!r}; valid: {', '.join(FITTING[signal]) or 'none'}"
            )
        found[signal] = None if name == NONE else Column(name, unit or None)
    return found


def read_joint_table(
    path: Path, told: Mapping[str, Column | None] | None = None, joint: str | None = None
) -> JointTable:
    """Read the signals of one joint from a text, MAT, NPZ or Parquet file, or a bag.

    :param told: columns by signal; the others are guessed by their names.
    :param joint: its name in a bag, or its number from 1 in arrays with a column for each joint; by default the only
        one that moves.
    :raises RecordingError: for a file that cannot be read, and for columns that are missing.
    """
    told = told or {}
    whole = read_joint_states(path, STATES) if is_bag(path) else read_table(path)
    table, notes = _of_joint(whole, joint)
    columns = {signal: column for signal, column in told.items() if column is not None}
    taken = {column.name for column in columns.values()}
    for name in table.arrays:
        signal = signal_of(name)
        if signal == "torque" and not np.isfinite(table.arrays[name]).any():
            continue
        if signal in SIGNALS and signal not in columns and signal not in told and name not in taken:
            columns[signal] = Column(name, unit_of(name, signal))
    if "torque" in columns and "torque" not in told and "current" in told and told["current"]:
        del columns["torque"]
    if "torque" in columns:
        columns.pop("current", None)
    for signal in ("time", "position"):
        if signal not in columns:
            raise RecordingError(_missing(table, signal))
    if "torque" not in columns and "current" not in columns:
        raise RecordingError(_missing(table, "torque"))
    signals = {
        signal: table.column(column.name) * UNITS[column.unit or "rad"] for signal, column in columns.items()
    }
    return JointTable(
        path.name,
        signals,
        {signal: column.name for signal, column in columns.items()},
        frozenset(signal for signal, column in columns.items() if column.unit is not None),
        notes,
    )


def _missing(table: Table, signal: str) -> str:
    others = ", ".join(table.arrays)
    also = ", or give the current (current=COLUMN, with kt=N m/A in `fixed`)" if signal == "torque" else ""
    return f"{table.path}: the column of the {signal} is not known: give `columns` {signal}=COLUMN[:UNIT]{also}; found: {others}"


def words_of(name: str) -> str:
    """The words of a name, in lower case with blanks between them."""
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return re.sub(r"[^a-z0-9]+", " ", text).strip()


def signal_of(name: str) -> str | None:
    """The signal that a column's name stands for."""
    words = re.sub(r"\d+", "", words_of(name)).strip()
    return next((signal for signal, pattern in WORDS.items() if re.search(pattern, words)), None)


def unit_of(name: str, signal: str) -> Unit | None:
    """The unit in a column's name, if it is one of the signal."""
    joined = re.sub(r"N[ .*·_-]?m\b", "Nm", name)
    for word in reversed(words_of(joined.replace("Nm", "nm")).split()):
        unit = UNIT_WORDS.get(word)
        if unit in FITTING[signal]:
            return unit
    return None


def _of_joint(table: Table, joint: str | None) -> tuple[Table, tuple[str, ...]]:
    """The table with the columns of one joint alone."""
    named = sorted({name.rpartition("/")[0] for name in table.arrays if name.endswith("/position")})
    if named:
        travel = {one: _travel(table.arrays[f"{one}/position"]) for one in named}
        chosen, notes = _chosen(table, joint, travel)
        own = {
            name.rpartition("/")[2]: values
            for name, values in table.arrays.items()
            if name == "time" or name.startswith(f"{chosen}/")
        }
        return Table(table.path, tuple(own), own), notes
    widths = {
        values.shape[1] for values in table.arrays.values() if values.ndim == 2 and min(values.shape) > 1
    }
    if not widths:
        if joint is not None:
            raise RecordingError(f"{table.path} contains one joint: remove `joint`")
        return table, ()
    width = max(widths)
    position = next(
        (
            values
            for name, values in table.arrays.items()
            if values.ndim == 2 and values.shape[1] == width and signal_of(name) == "position"
        ),
        None,
    )
    if position is None:
        raise RecordingError(_missing(table, "position"))
    chosen, notes = _chosen(table, joint, {str(k + 1): _travel(position[:, k]) for k in range(width)})
    own = {
        name: values[:, int(chosen) - 1] if values.ndim == 2 and values.shape[1] == width else values
        for name, values in table.arrays.items()
    }
    return Table(table.path, table.names, own), notes


def _travel(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(np.ptp(known)) if len(known) else 0.0


def _chosen(table: Table, joint: str | None, travel: Mapping[str, float]) -> tuple[str, tuple[str, ...]]:
    """The joint that is named, or the only one that moves."""
    if joint is not None:
        if joint not in travel:
            raise RecordingError(f"{table.path} has no joint {joint!r}; it has {', '.join(travel)}")
        return joint, ()
    largest = max(travel.values())
    moving = [name for name, far in travel.items() if far > MOVES * largest]
    if len(moving) != 1:
        raise RecordingError(
            f"{table.path}: exactly one joint must move, found {', '.join(moving) or 'none'} of {', '.join(travel)}: name one with `joint`"
        )
    if len(travel) == 1:
        return moving[0], ()
    return moving[0], (
        f"{table.path.name}: joint {moving[0]} is used, because it is the only one that moves",
    )
