"""Signals of the joints in a bag: which of its topics hold them, and their values in SI units by time stamp."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rosbags.typesys.store import Typestore

from stribeck.errors import AbortedRunError, RecordingError
from stribeck.files.cdr import header_stamp
from stribeck.recordings.bags.messages import BENCH, RawMessage
from stribeck.recordings.bags.storage import BagContent
from stribeck.recordings.signals.sources import REQUIRED_SIGNALS, SignalSource, SignalTable
from stribeck.recordings.signals.tracks import Track, merged

T = TypeVar("T")

TRAILING_BYTES = (0, 4, 8, 12, 16)
"""ROS may append unused alignment bytes of empty sequences to a message."""

FIRST_MESSAGES = 100
"""Messages in which all joints of a topic occur."""

OTHER_CLOCK = 1.0
"""Log times further than this from the stamps [s] are of another clock, and are shifted by the difference."""


def decode(path: Path, message: RawMessage, typestore: Typestore) -> Any:
    """Deserialise a message of the bag ``path``.

    :raises RecordingError: for an unknown type or damaged bytes.
    """
    if message.topic.type not in typestore.types:
        raise RecordingError(
            f"{path}: messages on {message.topic.name} have type {message.topic.type}, which the bag does not define"
        )
    reason: Exception | None = None
    for surplus in TRAILING_BYTES:
        try:
            return typestore.deserialize_cdr(message.data[: len(message.data) - surplus], message.topic.type)
        except Exception as error:  # the generated decoders raise arbitrary errors for damaged bytes
            reason = error
    raise RecordingError(f"{path}: a message on {message.topic.name} cannot be decoded") from reason


def chosen_sources(
    path: Path, signals: SignalTable, present: Iterable[str], required: Sequence[str] = REQUIRED_SIGNALS
) -> dict[str, SignalSource]:
    """The first available source of each signal.

    :raises RecordingError: if a required signal has none.
    """
    present = sorted(present)
    chosen = {}
    for signal, sources in signals.items():
        here = [source for source in sources if source.place in ("bag", "constant")]
        for source in here:
            if source.constant is not None or source.topic in present:
                chosen[signal] = source
                break
        else:
            if signal in required and not here:
                raise RecordingError(
                    f"{path} is a bag, but the table of signals has no topic for {signal}: add it"
                )
            if signal in required:
                wanted = " or ".join(source.topic for source in here)
                raise RecordingError(
                    f"{path} has no topic {wanted} for {signal}; found: {', '.join(present) or 'none'}. Give the correct topic in a table of `signals`"
                )
    return chosen


class Stamps:
    """Times of the messages of a bag: header stamps, or log times on their clock where there are none.

    :param bag: with topics whose headers are not filled in, or whose messages have none.
    """

    def __init__(self, bag: BagContent) -> None:
        stamps: dict[str, list[int]] = defaultdict(list)
        self._shift = 0.0
        for message in bag.messages:
            found = stamps[message.topic.name]
            fields = bag.typestore.fielddefs.get(message.topic.type, ((), ()))[1] if len(found) < 2 else ()
            if any(name == "header" for name, _ in fields):
                found.append(header_stamp(message.data).nanoseconds)
                if found[-1] and not self._shift:
                    ahead = 1e-9 * (found[-1] - message.log_time)
                    self._shift = ahead if abs(ahead) > OTHER_CLOCK else 0.0
        self._stamped = {topic for topic, found in stamps.items() if any(found) or len(found) == 1}

    def time(self, message: RawMessage, decoded: Any) -> float:
        """Time of a message [s]."""
        if message.topic.name not in self._stamped:
            return message.log_time * 1e-9 + self._shift
        stamp = decoded.header.stamp
        return float(stamp.sec + stamp.nanosec * 1e-9)


def message_samples(
    path: Path, message: RawMessage, source: SignalSource, decoded: Any, signal: str, stamps: Stamps
) -> tuple[float, list[tuple[str, float]]]:
    """Time and readings of one signal in a message, before their conversion to SI units.

    :raises RecordingError: if its fields are missing.
    """
    try:
        return stamps.time(message, decoded), list(source.samples(decoded))
    except (AttributeError, TypeError, ValueError) as error:
        raise RecordingError(
            f"{path}: messages on {message.topic.name} ({message.topic.type}) do not contain {signal} where the table of signals expects it: {error}"
        ) from None


def joints_of(path: Path, bag: BagContent, source: SignalSource) -> list[str]:
    """The joints with a signal in a bag, judged by the first messages; several publishers may take turns.

    :raises RecordingError: if there is none.
    """
    messages = [message for message in bag.messages if message.topic.name == source.topic][:FIRST_MESSAGES]
    stamps, names = Stamps(bag), dict[str, None]()
    for message in messages:
        decoded = decode(path, message, bag.typestore)
        samples = message_samples(path, message, source, decoded, "position", stamps)[1]
        names |= dict.fromkeys(str(joint) for joint, _ in samples)
    if not names:
        raise RecordingError(f"{path} contains no joint position on {source.topic}")
    return list(names)


def read_bag_signals(
    path: Path,
    bag: BagContent,
    signals: SignalTable,
    joints: Sequence[str],
    required: Sequence[str] = ("position",),
) -> dict[str, dict[str, Track]]:
    """Signals of some joints in SI units, by signal and joint; values by joint are in the order of ``joints``.

    A topic may have several publishers: messages are merged by the names of the joints.

    Runs whose end on ``/bench`` says that they were disturbed are left out.

    :param required: signals that every joint must have; others may be missing, or hold NaN.
    :raises AbortedRunError: if nothing else is in the bag.
    :raises RecordingError: for missing topics and joints, and contradicting values with one time.
    """
    bag = bag._replace(messages=undisturbed(path, bag))
    chosen = chosen_sources(path, signals, {m.topic.name for m in bag.messages}, required)
    by_topic: dict[str, list[tuple[str, SignalSource]]] = defaultdict(list)
    for signal, source in chosen.items():
        by_topic[source.topic].append((signal, source))
    raw: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    stamps = Stamps(bag)
    for message in bag.messages:
        if message.topic.name not in by_topic or not message.topic.name:
            continue
        decoded = decode(path, message, bag.typestore)
        for signal, source in by_topic[message.topic.name]:
            time, samples = message_samples(path, message, source, decoded, signal, stamps)
            for joint, value in samples:
                raw[signal][joint].append((time, value))
    found = {signal: _tracks(path, signal, source, raw[signal], joints) for signal, source in chosen.items()}
    for signal in required:
        missing = [joint for joint in joints if joint not in found[signal]]
        if missing:
            raise RecordingError(
                f"{path}: no joint {', '.join(missing)} on {chosen[signal].topic}; found: {', '.join(map(str, raw[signal])) or 'no joint'}"
            )
    return found


def read_undisturbed(paths: Sequence[Path], read: Callable[[Path], T]) -> list[T]:
    """What ``read`` makes of the files, without bags whose only run was disturbed: the session has repeated it.

    :raises AbortedRunError: if nothing is left.
    """
    results: list[T] = []
    aborted = []
    for path in paths:
        try:
            results.append(read(path))
        except AbortedRunError as error:
            aborted.append(error)
    if aborted and not results:
        raise aborted[0]
    return results


def undisturbed(path: Path, bag: BagContent) -> list[RawMessage]:
    """The messages outside disturbed runs.

    :raises AbortedRunError: if there are no others.
    """
    began: dict[str, int] = {}
    spans: list[tuple[int, int]] = []
    reason = ""
    for message in bag.messages:
        if message.topic.name == BENCH.name and message.topic.type == BENCH.type:
            try:
                data = json.loads(decode(path, message, bag.typestore).data)
            except ValueError:
                continue
            run = str(data.get("run_id")) if isinstance(data, dict) else ""
            if isinstance(data, dict) and "aborted" in data and run in began:
                spans.append((began[run], message.log_time))
                reason = str(data["aborted"])
            elif run:
                began.setdefault(run, message.log_time)
    if not spans:
        return bag.messages
    left = [m for m in bag.messages if not any(first <= m.log_time <= last for first, last in spans)]
    if not any(message.topic.name != BENCH.name for message in left):
        raise AbortedRunError(f"{path}: its only run was disturbed ({reason}): record it again")
    return left


def _tracks(
    path: Path,
    signal: str,
    source: SignalSource,
    raw: Mapping[str, list[tuple[float, float]]],
    joints: Sequence[str],
) -> dict[str, Track]:
    source.check_width(len(joints), f"{path}: {signal}")
    tracks = {}
    for index, joint in enumerate(joints):
        if joint in raw:
            time, value = merged(path, f"{signal} of {joint}", Track(*np.array(raw[joint]).T))
            tracks[joint] = Track(time, source.in_si(value, index))
    return tracks
