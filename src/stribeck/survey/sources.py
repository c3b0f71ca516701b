"""Candidates for the signals of a servo in foreign recordings: the columns of tables, and the fields of messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stribeck.errors import RecordingError
from stribeck.files.schema import convert
from stribeck.model.arrays import Array
from stribeck.recordings.bags.messages import BENCH
from stribeck.recordings.bags.signals import decode, read_bag_signals
from stribeck.recordings.bags.storage import BagContent, is_bag, read_messages
from stribeck.recordings.signals.sources import SignalSource
from stribeck.recordings.signals.tracks import Track
from stribeck.recordings.tables.readers import Table, read_table
from stribeck.survey.joint_table import MOVES, words_of

WORDS = {
    "torque_enable": r"torque_?(enable|on)|enabled?|motor_?on|power_?on",
    "goal": r"goal|target|command|cmd|set_?point|desired|\bdes\b|reference|\bref\b",
    "supply_voltage": r"volt|supply|\bvin\b|batt?ery|\bu_?bat",
    "temperature": r"temp",
    "pwm": r"pwm|duty",
    "effort": r"effort|torque|\btau\b|current|load|\bamps?\b|\bi\b",
    "velocity": r"veloc|\bvel\b|speed|rpm|omega|\bqd\b|\bdq\b",
    "time": r"^(t|time|timestamp|stamp|secs?|seconds|millis|micros|ms|us|ns)\b|\btime",
    "position": r"pos|angle|\bq\b|theta|encoder|\bphi\b|degrees?\b|\bdeg\b|\brad\b|counts?\b|ticks",
}
"""Patterns of the words in names of columns, topics and fields, in the order in which they decide."""

FIELDS = ("position", "velocity", "effort")
POINTS = ("reference", "desired", "feedback", "actual")
COMMANDED = ("reference", "desired")
FEW = 100
"""Messages of a topic in which names of joints and interfaces are looked for."""


class Candidate(NamedTuple):
    """A place of a recording that may hold a signal.

    :param source: keys of a :class:`~stribeck.recordings.signals.sources.SignalSource`.
    :param label: its words, by which the signal is guessed.
    :param tracks: readings of the servo, one for each recording.
    """

    source: dict[str, Any]
    label: str
    tracks: list[Track]

    @property
    def signal(self) -> str | None:
        """The signal that the words stand for."""
        text = words_of(self.label)
        found = [name for name, pattern in WORDS.items() if re.search(pattern.replace("_?", "[ ]?"), text)]
        if found[:1] == ["goal"] and set(found) & {"velocity", "effort", "pwm"}:
            return None
        return found[0] if found else None

    @property
    def values(self) -> Array:
        """All known readings."""
        return np.concatenate([track.known().value for track in self.tracks])


def candidates_of(paths: Sequence[Path], joint: str | None) -> tuple[list[Candidate], str | None]:
    """Candidates of all recordings, which have the same format, and the servo's joint in bags.

    :param joint: the joint, of bags with several that move.
    :raises RecordingError: for recordings that describe themselves, or of which some are bags and some are tables.
    """
    bags = [path for path in paths if is_bag(path)]
    if bags and len(bags) < len(paths):
        table = next(path for path in paths if path not in bags)
        raise RecordingError(f"{bags[0]} is a bag, but {table} is a table: describe them separately")
    if not bags:
        return _of_tables([read_table(path) for path in paths]), joint
    contents = {path: read_messages(path) for path in bags}
    for path, bag in contents.items():
        if any(message.topic.name == BENCH.name for message in bag.messages):
            raise RecordingError(
                f"{path} describes its own runs on {BENCH.name}: use it without a description"
            )
    places: dict[str, _Place] = {}
    for path, bag in contents.items():
        for place in _places(path, bag):
            known = places.get(place.key, place)
            places[place.key] = known._replace(joints=tuple(dict.fromkeys((*known.joints, *place.joints))))
    named = [place for place in places.values() if place.joints]
    joints = list(dict.fromkeys(name for place in named for name in place.joints))
    read = {path: read_bag_signals(path, bag, _table(named), joints, ()) for path, bag in contents.items()}
    if not joints:
        there = sorted(
            {
                f"{message.topic.name} ({message.topic.type})"
                for bag in contents.values()
                for message in bag.messages
            }
        )
        raise RecordingError(f"{bags[0]}: no messages with joint names; topics: {', '.join(there) or 'none'}")
    servo = joint or _only_moving(bags[0], joints, read, named)
    if servo not in joints:
        raise RecordingError(f"{bags[0]} has no joint {servo!r}; it has: {', '.join(joints)}")
    arrays = []
    for place in (one for one in places.values() if not one.joints):
        order = (servo,) if place.width == 1 else tuple(joints) if place.width == len(joints) else ()
        if order:
            arrays.append(place._replace(source={**place.source, "order": list(order)}))
    for path, bag in contents.items():
        read[path] |= read_bag_signals(path, bag, _table(arrays), joints, ())
    found = []
    for place in (*named, *arrays):
        tracks = [
            signals[place.key][servo] for signals in read.values() if servo in signals.get(place.key, {})
        ]
        if tracks:
            found.append(Candidate(place.source, place.label, tracks))
    return found, servo


class _Place(NamedTuple):
    """A field of the messages of a topic: its source, its joints by their names, or the number of its values."""

    source: dict[str, Any]
    joints: tuple[str, ...] = ()
    width: int = 0

    @property
    def key(self) -> str:
        return " ".join(map(str, self.source.values()))

    @property
    def label(self) -> str:
        """Words on the signal: of an interface, or of the topic and the field, of which the field says more."""
        if "interface" in self.source:
            return str(self.source["interface"])
        if self.source["values"] == "data":
            return str(self.source["topic"])
        point, _, field = self.source["values"].rpartition(".")
        commanded = point in COMMANDED if point else re.search(WORDS["goal"], self.source["topic"].lower())
        return f"{'goal' if commanded else 'measured'} {field}"


def _table(places: Sequence[_Place]) -> dict[str, tuple[SignalSource, ...]]:
    """The table of signals that reads these places; it may be empty."""
    return {place.key: (convert(place.source, SignalSource, place.key),) for place in places}


def _only_moving(
    path: Path,
    joints: Sequence[str],
    read: Mapping[Path, Mapping[str, Mapping[str, Track]]],
    places: Sequence[_Place],
) -> str:
    """The only joint whose position moves."""
    keys = [place.key for place in places if "position" in place.source.get("values", "")]
    travel = dict.fromkeys(joints, 0.0)
    for signals in read.values():
        for track in (one for key in keys for one in signals.get(key, {}).items()):
            values = track[1].known().value
            travel[track[0]] = max(travel[track[0]], float(np.ptp(values)) if len(values) else 0.0)
    largest = max(travel.values(), default=0.0)
    moving = [name for name in joints if travel[name] > MOVES * largest]
    if len(moving) != 1:
        raise RecordingError(
            f"{path} has joints {', '.join(joints) or 'without names'}, of which {', '.join(moving) or 'none'} move{'' if len(moving) > 1 else 's'}: name the "
            "servo's joint with `joint`"
        )
    return moving[0]


def _places(path: Path, bag: BagContent) -> Iterator[_Place]:
    """The fields of all topics with numbers by joint."""
    for topic in sorted({message.topic.name for message in bag.messages}):
        several = [message for message in bag.messages if message.topic.name == topic][:FEW]
        decoded = [
            decode(path, message, bag.typestore)
            for message in several
            if message.topic.type in bag.typestore.types
        ]
        if not decoded:
            continue
        one = decoded[0]
        names = next((key for key in ("name", "joint_names") if hasattr(one, key)), "")
        if hasattr(one, "interface_values") or hasattr(one, "status"):
            yield from _interfaces(topic, decoded)
        elif names:
            joints = tuple(dict.fromkeys(str(name) for state in decoded for name in getattr(state, names)))
            values = [field for field in FIELDS if hasattr(one, field)]
            values += [
                f"{point}.{field}"
                for point in POINTS
                if hasattr(one, point)
                for field in ("positions", "velocities")
            ]
            for field in values:
                yield _Place({"topic": topic, "names": names, "values": field}, joints)
        elif hasattr(one, "data") and np.ndim(one.data) == 1 and not isinstance(one.data, str):
            yield _Place({"topic": topic, "values": "data"}, width=len(one.data))


def _interfaces(topic: str, decoded: Sequence[Any]) -> Iterator[_Place]:
    """The interfaces in messages of a DynamicJointState or DiagnosticArray."""
    found: dict[str, dict[str, None]] = {}
    for state in decoded:
        if hasattr(state, "interface_values"):
            pairs = zip(state.joint_names, state.interface_values, strict=False)
            named = [(joint, name) for joint, values in pairs for name in values.interface_names]
        else:
            named = [(status.name, pair.key) for status in state.status for pair in status.values]
        for joint, name in named:
            found.setdefault(name, {})[joint] = None
    for name, joints in found.items():
        yield _Place({"topic": topic, "interface": name}, tuple(joints))


def _of_tables(tables: Sequence[Table]) -> list[Candidate]:
    """The columns that all tables have; times are counted in the unit of the column of times."""
    first = tables[0]
    for table in tables[1:]:
        if set(table.arrays) != set(first.arrays):
            raise RecordingError(
                f"{table.path} and {first.path} have different columns ({', '.join(table.arrays)}; {', '.join(first.arrays)}): describe each format separately"
            )
    key = "column" if first.path.suffix.lower() in (".csv", ".txt") else "variable"
    numbered = first.names == tuple(str(k) for k in range(len(first.names)))
    columns = [name for name, values in first.arrays.items() if values.size == max(values.shape)]
    found = []
    for name in columns:
        place = int(name) if numbered else name
        tracks = [Track(np.arange(float(table.arrays[name].size)), table.column(name)) for table in tables]
        found.append(Candidate({key: place}, name, tracks))
    times = next((one for one in found if one.signal == "time" and increasing(one.tracks)), None)
    times = times or next((one for one in found if one.signal is None and increasing(one.tracks)), None)
    if times is None:
        return found
    clocks = [track.value for track in times.tracks]
    others = [
        one._replace(
            tracks=[Track(clock, track.value) for clock, track in zip(clocks, one.tracks, strict=True)]
        )
        for one in found
        if one is not times
    ]
    return [times._replace(label="time"), *others]


def increasing(tracks: Sequence[Track]) -> bool:
    """Whether values grow from row to row, as times do."""
    return all(len(track.value) > 1 and bool(np.all(np.diff(track.value) > 0.0)) for track in tracks)
