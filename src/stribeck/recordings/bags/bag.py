"""The bag format of recordings: writes runs to rosbag2 bags and reads them back.

=========================  ================================  ==========================================
topic                      type                              content
=========================  ================================  ==========================================
``/joint_states``          sensor_msgs/JointState            measured position, velocity, effort
``/joint_commands``        sensor_msgs/JointState            goal position as sent after clipping
``/dynamic_joint_states``  control_msgs/DynamicJointState    all other values that the servo reports
``/bench``                 std_msgs/String, latched          JSON: description of the run and its bench
=========================  ================================  ==========================================

A run lasts from its ``/bench`` message to ``{"run_id": …, "event": "end"}`` or to the next ``/bench``
message of that joint. Times are header stamps; log times only define the order.

``{"run_id": …, "event": "end", "aborted": "joint states are …"}`` ends a run whose timing was disturbed: late states or
lost answers. Such a run is left out; the session has repeated it, if it could.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.typesys.store import Typestore

from stribeck import strict
from stribeck.errors import AbortedRunError, RecordingError, TooShortError
from stribeck.files.schema import convert
from stribeck.model.log import MINIMUM_DURATION, Log, Series
from stribeck.recordings.bags.messages import (
    BENCH,
    DYNAMIC_JOINT_STATES,
    JOINT_COMMANDS,
    JOINT_STATES,
    RawMessage,
    dynamic_joint_state,
    joint_state,
    text,
)
from stribeck.recordings.bags.recovery import CutOffError, Note
from stribeck.recordings.bags.signals import (
    Stamps,
    chosen_sources,
    decode,
    joints_of,
    message_samples,
    undisturbed,
)
from stribeck.recordings.bags.storage import BagContent, Storage, read_messages, write_messages
from stribeck.recordings.bench import BenchDescription, Benches
from stribeck.recordings.signals.sources import REQUIRED_SIGNALS, SignalSource, SignalTable, load_signals
from stribeck.recordings.signals.tracks import Track, log_of_tracks

TELEMETRY = {
    "pwm": "pwm",
    "supply_voltage": "voltage",
    "temperature": "temperature",
    "torque_enable": "torque_enable",
}
"""Signals of a log that are recorded as telemetry, and their ros2_control interface names."""

EVERY_JOINT = "*"
"""Used instead of a joint's name: runs of all joints are read as runs of one servo."""


@dataclass
class _Run:
    """Samples of one run while a bag is read: times and readings by signal, and then tracks in SI units.

    :param ended: whether its end event or the next run ended it, rather than the end of the bag.
    :param aborted: what disturbed the run, empty for a run that is to be read.
    :param seen: the joints that have samples in the bag, by signal.
    """

    bench: BenchDescription
    ended: bool = False
    aborted: str = ""
    samples: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    tracks: dict[str, Track] = field(default_factory=dict)
    seen: Mapping[str, Iterable[str]] = field(default_factory=dict)

    def convert(
        self, path: Path, sources: Mapping[str, SignalSource], seen: Mapping[str, Iterable[str]]
    ) -> None:
        """Convert readings to SI units, and add constants."""
        self.seen = seen
        for signal, source in sources.items():
            if source.constant is not None and self.samples["position"]:
                start = self.samples["position"][0][0]
                self.tracks[signal] = Track(np.array([start]), np.array([source.constant]))
            elif self.samples[signal]:
                source.check_width(1, f"{path}: {signal}")
                times, readings = np.array(self.samples[signal]).T
                self.tracks[signal] = Track(times, source.in_si(readings, 0))

    @property
    def seconds(self) -> float:
        """Time between the first sample and the last [s], negative without samples."""
        times = [time for track in self.tracks.values() for time in track.time]
        return max(times) - min(times) if times else -1.0


def write_bag(
    path: Path, logs: Sequence[Log], *, joint: str | None = None, storage: Storage = "mcap"
) -> None:
    """Write runs, one after the other, as a new bag.

    Header stamps are the times of the logs, rounded to 1 ns. The log times of each run follow those of the previous one.

    Velocities and efforts that were not sampled together with the position are interpolated.

    :param joint: name of the joint in the bag, by default that of each run.
    :raises OutputError: if the bag exists or cannot be written.
    """
    topics = (BENCH, JOINT_STATES, JOINT_COMMANDS, DYNAMIC_JOINT_STATES)
    write_messages(path, topics, _log_messages(logs, joint), storage)


def read_bag(
    path: Path,
    *,
    signals: SignalTable | None = None,
    joint: str | None = None,
    bench: BenchDescription | Benches | None = None,
    place: Path | None = None,
    note: Note | None = None,
) -> list[Log]:
    """Read the runs of a bag.

    A bag that was cut off by a crash is read as far as possible. Its last run then ends with its last sample and has
    "(cut off)" appended to its name. If there is a ``note``, runs that are too short are left out and noted, provided
    that other runs remain.

    :param signals: sources of the signals in the bag; by default those of the bag format above.
    :param joint: the joint to read, or :data:`EVERY_JOINT`; needed if the bag has runs of several.
    :param bench: describes a bag without ``/bench``, which is then read as one run of the ``joint`` in it; without a
        joint, of the only one in the bag.
    :param place: path of the bag that the patterns of ``bench`` match, if it is another.
    :param note: receives lines about cut-off bags and left-out runs.
    :raises RecordingError: for a bag that is damaged, has no runs, or has invalid runs.
    :raises AbortedRunError: for a bag all of whose runs were disturbed.
    :raises CutOffError: for a bag that was cut off before its first run.
    :raises TooShortError: for a bag without a run of at least a second.
    """
    signals = signals or load_signals()
    bag = read_messages(path, note)
    present, cut_off = {message.topic.name for message in bag.messages}, bag.cut_off
    bench = _description(path, place or path, bench, joint, BENCH.name in present)
    try:
        chosen = chosen_sources(path, signals, present)
    except RecordingError as error:
        undisturbed(path, bag)  # a run can be disturbed before its first state
        raise (
            CutOffError(f"{path} was cut off before its first run: {error}") if cut_off else error
        ) from None
    if bench is not None and not bench.joint:
        present_joints = joints_of(path, bag, chosen["position"])
        if len(present_joints) > 1:
            raise RecordingError(
                f"{path} has positions of several joints ({', '.join(present_joints)}): choose one with `joint`"
            )
        bench = replace(bench, joint=present_joints[0])
    runs = _collect(path, bag, chosen, bench)
    return _logs_of(path, _of_joint(path, runs, joint), cut_off, note)


def _description(
    path: Path,
    place: Path,
    bench: BenchDescription | Benches | None,
    joint: str | None,
    self_described: bool,
) -> BenchDescription | None:
    """The description of a bag that has none itself; :class:`RecordingError` if it has none or two."""
    if not self_described and bench is None:
        raise RecordingError(
            f"{path} has no topic {BENCH.name}, so its loads and gains are not known: give `bench`: "
            "mass=KG,length=M,arm_mass=KG,kp=GAIN,supply_voltage=V,actuator=NAME, or a bench file"
        )
    if isinstance(bench, Benches):
        named = bench.patterns(place)
        if self_described and named:
            raise RecordingError(
                f"{path} describes its own runs on {BENCH.name}: remove {named[0]!r} from {bench.what}"
            )
        if self_described and bench.content.runs:
            return None
        bench = bench.describe(place, joint)
    if self_described and bench is not None:
        raise RecordingError(f"{path} describes its own runs on {BENCH.name}: do not give `bench`")
    return bench


def _of_joint(path: Path, runs: list[_Run], joint: str | None) -> list[_Run]:
    """The runs of a joint, or of the only one; :class:`RecordingError` if there are none, or of several joints."""
    joints = sorted({run.bench.joint for run in runs})
    if joint is None and len(joints) > 1:
        raise RecordingError(
            f"{path} has runs of several joints ({', '.join(joints)}): choose one with `joint`, or give "
            f"`joint` '{EVERY_JOINT}' if they are one servo, or equal servos, with different loads"
        )
    if joint not in (None, EVERY_JOINT):
        runs = [run for run in runs if run.bench.joint == joint]
        if not runs:
            raise RecordingError(
                f"{path} has no run of joint {joint!r}; it has: {', '.join(joints) or 'none'}"
            )
    if not runs:
        raise RecordingError(f"{path} holds no run")
    if joint == EVERY_JOINT and len(joints) > 1:
        for run in runs:
            run.bench = replace(run.bench, run_id=f"{run.bench.run_id} {run.bench.joint}")
    return runs


def _log_messages(logs: Sequence[Log], joint: str | None) -> Iterator[RawMessage]:
    offset = 0
    for log in logs:
        messages = sorted(_run_messages(log, joint or log.setup.joint), key=lambda message: message.log_time)
        shift = max(0, offset - messages[0].log_time)
        for message in messages:
            yield message._replace(log_time=message.log_time + shift)
        offset = messages[-1].log_time + shift + 1


def _run_messages(log: Log, joint: str) -> Iterator[RawMessage]:
    series = [log.position, log.goal, *(getattr(log, name) for name in TELEMETRY)]
    first = min(_nanoseconds(found.time[0]) for found in series if found is not None)
    last = max(_nanoseconds(found.time[-1]) for found in series if found is not None)
    bench = BenchDescription(log.name, joint, log.actuator, log.trajectory, log.setup)

    yield RawMessage(BENCH, first, text(bench.to_json()))
    times = log.position.time
    unknown = np.full(len(times), math.nan)
    efforts = unknown if log.effort is None else log.effort.at(times)
    for time, *values in zip(times, log.position.value, log.velocity.at(times), efforts, strict=True):
        stamp = _nanoseconds(time)
        yield RawMessage(JOINT_STATES, stamp, joint_state(stamp, [joint], *([value] for value in values)))
    for time, goal in zip(log.goal.time, log.goal.value, strict=True):
        stamp = _nanoseconds(time)
        yield RawMessage(JOINT_COMMANDS, stamp, joint_state(stamp, [joint], [goal]))
    for stamp, interfaces in _telemetry(log):
        yield RawMessage(DYNAMIC_JOINT_STATES, stamp, dynamic_joint_state(stamp, {joint: interfaces}))
    yield RawMessage(BENCH, last, text(json.dumps({"run_id": log.name, "event": "end"})))


def _telemetry(log: Log) -> Iterator[tuple[int, dict[str, float]]]:
    """Stamps and interface values; values with the same time share a message."""
    merged: dict[int, dict[str, float]] = defaultdict(dict)
    for signal, interface in TELEMETRY.items():
        series: Series | None = getattr(log, signal)
        if series is not None:
            for time, value in zip(series.time, series.value, strict=True):
                merged[_nanoseconds(time)][interface] = float(value)
    yield from sorted(merged.items())


def _nanoseconds(time: float) -> int:
    return round(time * 1e9)


def _collect(
    path: Path, bag: BagContent, sources: Mapping[str, SignalSource], bench: BenchDescription | None
) -> list[_Run]:
    by_topic: dict[str, list[tuple[str, SignalSource]]] = defaultdict(list)
    for signal, source in sources.items():
        if source.constant is None:
            by_topic[source.topic].append((signal, source))
    active: dict[str, _Run] = {}
    finished: list[_Run] = []
    if bench is not None:
        active[bench.joint] = _Run(bench)
    stamps = Stamps(bag)
    seen: dict[str, dict[str, None]] = defaultdict(dict)
    # With equal log times a run begins before its first sample and ends after its last.
    for message in sorted(bag.messages, key=lambda m: (m.log_time, _rank(m))):
        if message.topic.name == BENCH.name and bench is None:
            _bench_event(path, message, bag.typestore, active, finished)
        elif message.topic.name in by_topic and active:
            decoded = decode(path, message, bag.typestore)
            for signal, source in by_topic[message.topic.name]:
                time, samples = message_samples(path, message, source, decoded, signal, stamps)
                for joint, value in samples:
                    seen[signal][joint] = None
                    if joint in active:
                        active[joint].samples[signal].append((time, value))
    for run in finished:
        run.ended = True
    for run in (*finished, *active.values()):
        run.convert(path, sources, seen)
    return [*finished, *active.values()]


def _rank(message: RawMessage) -> int:
    if message.topic.name != BENCH.name:
        return 1
    return 2 if b'"event"' in message.data else 0


def _bench_event(
    path: Path, message: RawMessage, typestore: Typestore, active: dict[str, _Run], finished: list[_Run]
) -> None:
    what = f"{path}: {BENCH.name}"
    content = decode(path, message, typestore).data
    data = convert(strict.parse_json(content, path, RecordingError), dict[str, Any], what, RecordingError)
    if "event" in data:
        if data["event"] == "end":
            ended = [joint for joint, run in active.items() if run.bench.run_id == data.get("run_id")]
            for joint in ended:
                active[joint].aborted = str(data.get("aborted", ""))
                finished.append(active.pop(joint))
        return
    bench = BenchDescription.from_mapping(data, what)
    if bench.joint in active:
        if active[bench.joint].bench == bench:
            return  # the latched message, repeated for a recorder that joined late
        finished.append(active.pop(bench.joint))
    active[bench.joint] = _Run(bench)


def _logs_of(path: Path, runs: Sequence[_Run], cut_off: bool, note: Note | None) -> list[Log]:
    """All runs except aborted ones, those cut off too early and, with a ``note``, those that are too short."""
    note_line = note or (lambda _: None)
    logs = []
    aborted = [f"run {run.bench.run_id!r} was disturbed ({run.aborted})" for run in runs if run.aborted]
    if aborted and len(aborted) == len(runs):
        raise AbortedRunError(f"{path}: {'; '.join(dict.fromkeys(aborted))}: record it again")
    for line in dict.fromkeys(aborted):
        note_line(f"{path}: {line}, and is not used")
    for run in (run for run in runs if not run.aborted):
        lost = cut_off and not run.ended
        try:
            log = _log(path, run)
            logs.append(replace(log, name=f"{log.name} (cut off)") if lost else log)
        except TooShortError as error:
            if not lost and (note is None or len(runs) == 1):
                raise
            note_line(f"{error}; this run {'was cut off, and ' if lost else ''}is not used")
        except RecordingError as error:
            if not lost:
                raise
            note_line(f"{error}; this run was cut off, and is not used")
    if not logs and cut_off:
        raise CutOffError(f"{path} was cut off before it contained a run that can be used")
    if not logs:
        raise TooShortError(f"{path} contains no run of at least {MINIMUM_DURATION:g} s")
    return logs


def _log(path: Path, run: _Run) -> Log:
    what = f"{path}: run {run.bench.run_id!r}"
    missing = [signal for signal in REQUIRED_SIGNALS if signal not in run.tracks]
    if missing:
        kind = TooShortError if 0.0 <= run.seconds < MINIMUM_DURATION else RecordingError
        found = "; ".join(
            f"{signal} is recorded for {', '.join(map(str, run.seen[signal]))}"
            for signal in missing
            if run.seen.get(signal)
        )
        raise kind(
            f"{what} has no {', '.join(missing)} of joint {run.bench.joint!r}{found and f' ({found})'}"
        )
    return log_of_tracks(run.tracks, run.bench, path)
