"""Recorded joints of bags and tables whose topics, columns and joints are not known yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from stribeck.errors import RecordingError
from stribeck.model.arrays import Array
from stribeck.recordings.bags.messages import JOINT_STATES
from stribeck.recordings.bags.signals import decode, read_bag_signals
from stribeck.recordings.bags.storage import BagContent, read_messages
from stribeck.recordings.signals.sources import SignalSource
from stribeck.recordings.signals.tracks import Track

SIGNALS = ("position", "velocity", "effort")

SAMPLED = 200
"""Number of messages of a topic in which names of joints are looked for."""


@dataclass(frozen=True)
class Source:
    """Keys of the source of a signal in a machine's file.

    :param keys: its place.
    :param order: joints of an array's columns.
    :param columns: columns of text by joint.
    """

    keys: Mapping[str, object] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)

    def of(self, joints: Sequence[str]) -> dict[str, object]:
        """The keys for some joints."""
        if self.columns:
            return {"columns": [self.columns[joint] for joint in joints]}
        return {**self.keys, "order": list(self.order)} if self.order else dict(self.keys)


@dataclass(frozen=True)
class JointTracks:
    """Positions, velocities and efforts of the joints of a bag or a table, as recorded.

    :param topic: the topic of a bag that holds them.
    :param names: all joints of that topic or table.
    :param tracks: by signal and joint, of the joints that were asked for.
    :param format: ``bag``, ``csv``, ``mat`` or ``npz``.
    :param sources: of the signals, and of ``time`` in a table.
    """

    path: Path
    topic: str
    names: tuple[str, ...]
    tracks: Mapping[str, Mapping[str, Track]]
    format: str = "bag"
    sources: Mapping[str, Source] = field(default_factory=dict)

    def values(self, signal: str, joint: str) -> Array:
        """All known values of a signal of a joint."""
        track = self.tracks.get(signal, {}).get(joint)
        return np.zeros(0) if track is None else track.known().value


def read_joint_tracks(path: Path, joints: Sequence[str]) -> JointTracks:
    """Read the topic of joint states that has most of the joints, with effort if one has.

    :param joints: joints of the URDF.
    :raises RecordingError: for a bag without joint states.
    """
    bag = read_messages(path)
    topics = {message.topic.name for message in bag.messages if message.topic.type == JOINT_STATES.type}
    found = {topic: _names(path, bag, topic) for topic in sorted(topics)}
    if not found:
        present = sorted({f"{message.topic.name} ({message.topic.type})" for message in bag.messages})
        raise RecordingError(
            f"{path}: no topic of type {JOINT_STATES.type}; found: {', '.join(present) or 'no messages'}. "
            "Name the signals in a file written by hand, see docs/recordings.md"
        )

    def merit(topic: str) -> tuple[int, int, bool]:
        names = found[topic]
        known = [name for name in names if name in joints]
        return sum(names[name] for name in known), len(known), topic == JOINT_STATES.name

    topic = max(found, key=merit)
    names = found[topic]
    table = {signal: (SignalSource(topic=topic, names="name", values=signal),) for signal in SIGNALS}
    wanted = [name for name in names if name in joints]
    place = {} if topic == JOINT_STATES.name else {"topic": topic, "names": "name"}
    sources = {signal: Source({**place, "values": signal} if place else {}) for signal in SIGNALS}
    tracks = read_bag_signals(path, bag, table, wanted, ())
    return JointTracks(path, topic, tuple(names), tracks, sources=sources)


def _names(path: Path, bag: BagContent, topic: str) -> dict[str, bool]:
    """Names of the joints in a topic, and whether they have a position and an effort."""
    messages = [message for message in bag.messages if message.topic.name == topic]
    names: dict[str, bool] = {}
    for message in messages[:: max(1, len(messages) // SAMPLED)] + messages[:SAMPLED]:
        state = decode(path, message, bag.typestore)
        for k, name in enumerate(state.name):
            whole = len(state.position) > k and len(state.effort) > k and bool(np.isfinite(state.effort[k]))
            names[name] = names.get(name, False) or whole
    return names
