"""Measured poses in bags: where all joints rest, their positions and what an external tracker measured.

Joint positions are those of ``/joint_states``; points and poses those of topics of ``geometry_msgs/PointStamped``,
``PoseStamped`` or ``TransformStamped``, or of a frame on ``/tf``, in metres. Each rest gives one row: medians of the joints and
of what the tracker sent during it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stribeck.errors import RecordingError
from stribeck.model.arrays import Array
from stribeck.recordings.bags.messages import JOINT_STATES
from stribeck.recordings.bags.signals import decode
from stribeck.recordings.bags.storage import BagContent, read_messages

MOTION = 1e-3
"""Largest change of a joint within :data:`WINDOW` at rest [rad or m]."""

WINDOW = 0.2
"""Time over which a joint is watched [s]."""

SETTLING, SHORTEST = 0.2, 0.2
"""Beginning of a rest that is not used, and least duration of the remainder [s]."""

POINT, POSE, TRANSFORM, TF = (
    f"{package}/msg/{name}"
    for package, name in (
        ("geometry_msgs", "PointStamped"),
        ("geometry_msgs", "PoseStamped"),
        ("geometry_msgs", "TransformStamped"),
        ("tf2_msgs", "TFMessage"),
    )
)


def rests_of(time: Array, position: Array) -> list[tuple[float, float]]:
    """Beginning and end of each rest of all joints [s], without the time of settling.

    :param time: of the states (N,) [s].
    :param position: of all joints (N, n) [rad or m].
    """
    after = np.searchsorted(time, time + WINDOW)
    last = np.minimum(after, len(time) - 1)
    moved = np.array([np.ptp(position[k : end + 1], axis=0).max() for k, end in enumerate(last)])
    still = (moved < MOTION) & (after < len(time))
    edges = np.flatnonzero(np.diff(np.concatenate([[False], still, [False]]).astype(int)))
    found = []
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        begin, stop = float(time[first]) + SETTLING, float(time[last[end - 1]])
        if stop - begin >= SHORTEST:
            found.append((begin, stop))
    return found


def read_rest_rows(
    path: Path, joints: Sequence[str], topics: Sequence[tuple[str, str]]
) -> tuple[Array, list[Array]]:
    """Joint positions (P, n) [rad or m] at the rests of a bag, and of each topic what was measured there.

    :param joints: names in the joint states.
    :param topics: name and child frame, which is needed on ``/tf`` alone.
    :returns: positions, and arrays (P, 3) of points or (P, 7) of poses ``x y z qx qy qz qw`` [m].
    :raises RecordingError: for a bag without these joints or topics, or without a rest at which all of them were measured.
    """
    bag = read_messages(path)
    time, position = _joint_positions(path, bag, joints)
    measured = [_measurements(path, bag, topic, child) for topic, child in topics]
    rows: list[Array] = []
    found: list[list[Array]] = [[] for _ in topics]
    for begin, end in rests_of(time, position):
        seen = [values[(stamps >= begin) & (stamps <= end)] for stamps, values in measured]
        if all(len(one) for one in seen):
            rows.append(np.median(position[(time >= begin) & (time <= end)], axis=0))
            for into, one in zip(found, seen, strict=True):
                into.append(_middle(one))
    if not rows:
        raise RecordingError(
            f"{path}: the joints are never at rest while {', '.join(topic for topic, _ in topics)} is "
            f"measured: hold each pose for {WINDOW + SETTLING + SHORTEST:g} s"
        )
    return np.array(rows), [np.array(one) for one in found]


def _middle(values: Array) -> Array:
    """Median of points, and of poses with their quaternions on one side and of unit length."""
    if values.shape[1] == 3:
        return np.asarray(np.median(values, axis=0))
    turns = values[:, 3:] * np.where(values[:, 3:] @ values[0, 3:] < 0.0, -1.0, 1.0)[:, None]
    middle = np.median(turns, axis=0)
    return np.concatenate([np.median(values[:, :3], axis=0), middle / np.linalg.norm(middle)])


def _joint_positions(path: Path, bag: BagContent, joints: Sequence[str]) -> tuple[Array, Array]:
    times, rows, names = [], [], set[str]()
    for message in bag.messages:
        if message.topic.type != JOINT_STATES.type or message.topic.name.endswith("_commands"):
            continue
        state = decode(path, message, bag.typestore)
        names |= set(state.name)
        at = {name: state.position[k] for k, name in enumerate(state.name) if k < len(state.position)}
        if set(joints) <= set(at):
            times.append(_stamp(state.header))
            rows.append([float(at[name]) for name in joints])
    if not rows:
        missing = sorted(set(joints) - names)
        raise RecordingError(
            f"{path}: no joint states contain {', '.join(missing or joints)}; found: {', '.join(sorted(names)) or 'none'}"
        )
    order = np.argsort(times, kind="stable")
    return np.array(times)[order], np.array(rows)[order]


def _measurements(path: Path, bag: BagContent, topic: str, child: str) -> tuple[Array, Array]:
    """Times (M,) [s] and points (M, 3) or poses (M, 7) [m] of a topic."""
    times: list[float] = []
    rows: list[list[float]] = []
    for message in (one for one in bag.messages if one.topic.name == topic):
        content = decode(path, message, bag.typestore)
        for stamp, values in _rows(message.topic.type, content, child):
            times.append(stamp)
            rows.append(values)
    if not rows:
        present = ", ".join(sorted({f"{one.topic.name} ({one.topic.type})" for one in bag.messages}))
        frame = f" with the frame {child!r}" if child else ""
        raise RecordingError(f"{path}: no messages on {topic}{frame}; topics in the bag: {present}")
    order = np.argsort(times, kind="stable")
    return np.array(times)[order], np.array(rows)[order]


def _rows(kind: str, content: Any, child: str) -> list[tuple[float, list[float]]]:
    """Times and numbers of a message."""
    if kind == POINT:
        return [(_stamp(content.header), _numbers(content.point, "xyz"))]
    if kind == POSE:
        numbers = _numbers(content.pose.position, "xyz") + _numbers(content.pose.orientation, "xyzw")
        return [(_stamp(content.header), numbers)]
    if kind in (TRANSFORM, TF):
        every = content.transforms if kind == TF else [content]
        return [
            (
                _stamp(one.header),
                _numbers(one.transform.translation, "xyz") + _numbers(one.transform.rotation, "xyzw"),
            )
            for one in every
            if not child or one.child_frame_id == child
        ]
    raise RecordingError(f"{kind} contains no poses; valid: {POINT}, {POSE}, {TRANSFORM}, {TF}")


def _numbers(part: Any, names: str) -> list[float]:
    return [float(getattr(part, name)) for name in names]


def _stamp(header: Any) -> float:
    return float(header.stamp.sec + 1e-9 * header.stamp.nanosec)
