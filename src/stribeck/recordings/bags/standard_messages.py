"""Recordings of other machines as messages of our own topics: what a node would have heard in SI units."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from stribeck.errors import RecordingError
from stribeck.recordings.bags.messages import (
    DYNAMIC_JOINT_STATES,
    JOINT_COMMANDS,
    JOINT_STATES,
    RawMessage,
    contract_types,
    dynamic_joint_state,
    joint_state,
)
from stribeck.recordings.bags.recovery import Note
from stribeck.recordings.bags.signals import chosen_sources, joints_of, read_bag_signals
from stribeck.recordings.bags.storage import BagContent, is_bag, read_messages
from stribeck.recordings.signals.sources import SignalTable
from stribeck.recordings.signals.tracks import Track
from stribeck.recordings.tables.readers import read_table
from stribeck.recordings.tables.signals import read_table_tracks

Tracks = Mapping[str, Mapping[str, Track]]
"""Samples by signal and joint."""

TELEMETRY = {"supply_voltage": "voltage", "temperature": "temperature"}


def as_standard_messages(
    path: Path, signals: SignalTable, joints: Sequence[str] = (), note: Note | None = None
) -> BagContent:
    """States, commands and telemetry of a recording as messages of :mod:`stribeck.recordings.bags.bag`.

    :param joints: names of the joints; by default all of a bag, and ``joint`` of a table.
    :raises RecordingError: for a recording without positions of the joints.
    """
    if is_bag(path):
        bag = read_messages(path, note)
        present = {message.topic.name for message in bag.messages}
        source = chosen_sources(path, signals, present, ("position",))["position"]
        tracks: Tracks = read_bag_signals(path, bag, signals, joints or joints_of(path, bag, source))
    else:
        table = read_table(path)
        found: dict[str, dict[str, Track]] = defaultdict(dict)
        for joint in joints or ("joint",):
            for signal, track in read_table_tracks(
                path, {None: table}, signals, joint, ("position",)
            ).items():
                found[signal][joint] = track
        tracks = found
    messages = [*_states(tracks), *_commands(tracks), *_telemetry(tracks)]
    if not messages:
        raise RecordingError(f"{path} holds no states")
    return BagContent(sorted(messages, key=lambda message: message.log_time), contract_types())


def _states(tracks: Tracks) -> Iterator[RawMessage]:
    """Joints that were sampled together share their messages; fields of signals that are missing are empty."""
    groups: dict[tuple[bytes, tuple[bool, ...]], list[str]] = defaultdict(list)
    signals = ("position", "velocity", "effort")
    for joint, track in tracks["position"].items():
        measured = tuple(joint in tracks.get(signal, ()) for signal in signals)
        groups[track.time.tobytes(), measured].append(joint)
    for (_, measured), names in groups.items():
        time = tracks["position"][names[0]].time
        columns = [
            np.stack([_sampled(tracks[signal][name], time) for name in names], axis=1) if there else None
            for signal, there in zip(signals, measured, strict=True)
        ]
        for k, stamp in enumerate(_stamps(time)):
            rows = [() if values is None else values[k] for values in columns]
            yield RawMessage(JOINT_STATES, stamp, joint_state(stamp, names, *rows))


def _sampled(track: Track, time: np.ndarray) -> np.ndarray:
    """Values at other times; samples of its own stay as they are."""
    if np.array_equal(track.time, time) or not len(known := track.known().time):
        return track.value if len(track.time) == len(time) else np.full(len(time), np.nan)
    return np.asarray(np.interp(time, known, track.known().value))


def _commands(tracks: Tracks) -> Iterator[RawMessage]:
    for joint, track in tracks.get("goal", {}).items():
        for stamp, goal in zip(_stamps(track.time), track.value, strict=True):
            if not np.isnan(goal):
                yield RawMessage(JOINT_COMMANDS, stamp, joint_state(stamp, [joint], [goal]))


def _telemetry(tracks: Tracks) -> Iterator[RawMessage]:
    for signal, interface in TELEMETRY.items():
        for joint, track in tracks.get(signal, {}).items():
            for stamp, value in zip(_stamps(track.time), track.value, strict=True):
                data = dynamic_joint_state(stamp, {joint: {interface: float(value)}})
                yield RawMessage(DYNAMIC_JOINT_STATES, stamp, data)


def _stamps(time: np.ndarray) -> list[int]:
    return [round(1e9 * float(seconds)) for seconds in time]
