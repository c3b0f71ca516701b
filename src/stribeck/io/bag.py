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
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.typesys.store import Typestore

import stribeck
from stribeck.core.log import MINIMUM_DURATION, Log, Series, Setup
from stribeck.errors import RecordingError, TooShortError
from stribeck.io import strict
from stribeck.io.messages import (
    BENCH,
    DYNAMIC_JOINT_STATES,
    JOINT_COMMANDS,
    JOINT_STATES,
    RawMessage,
    dynamic_joint_state,
    joint_state,
    text,
)
from stribeck.io.recovery import CutOffError, Note
from stribeck.io.schema import Schema, convert
from stribeck.io.signals import REQUIRED_SIGNALS, SignalTable, Source, load_signals
from stribeck.io.storage import Storage, read_messages, write_messages

TELEMETRY = {
    "pwm": "pwm",
    "supply_voltage": "voltage",
    "temperature": "temperature",
    "torque_enable": "torque_enable",
}
"""Signals of a log that are recorded as telemetry, and their ros2_control interface names."""

HELD_SIGNALS = ("goal", "torque_enable", "pwm")

TRAILING_BYTES = (0, 4, 8, 12, 16)
"""ROS may append unused alignment bytes of empty sequences to a message."""

EVERY_JOINT = "*"
"""Used instead of a joint's name: runs of all joints are read as runs of one servo."""

SETUP_KEYS = ("mass", "length", "arm_mass", "supply_voltage", "kp", "ki", "kd")


class BenchMessage(Schema):
    """The JSON of a ``/bench`` message that begins a run.

    :param run_id: name of the run.
    :param joint: name of the joint.
    :param actuator: servo family.
    :param trajectory: name of the trajectory.
    :param mass: at the end of the rod [kg].
    :param length: of the rod [m].
    :param arm_mass: mass of the rod [kg].
    :param supply_voltage: nominal supply [V].
    :param kp, ki, kd: firmware gain.
    :param software: program that recorded the run.
    """

    run_id: str
    joint: str
    actuator: str
    mass: float
    length: float
    arm_mass: float
    supply_voltage: float
    kp: float
    trajectory: str
    ki: float = 0.0
    kd: float = 0.0
    software: str = ""


@dataclass(frozen=True)
class BenchDescription:
    """Description of a run in its ``/bench`` message."""

    run_id: str
    joint: str
    actuator: str
    trajectory: str
    setup: Setup

    def to_json(self) -> str:
        """The text of the ``/bench`` message."""
        return json.dumps(
            {
                "run_id": self.run_id,
                "joint": self.joint,
                "actuator": self.actuator,
                "trajectory": self.trajectory,
                **{key: getattr(self.setup, key) for key in SETUP_KEYS},
                "software": f"stribeck {stribeck.__version__}",
            }
        )

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any], what: str) -> BenchDescription:
        """A description from the content of a ``/bench`` message.

        :raises RecordingError: for missing, unknown or impossible values.
        """
        bench = convert(dict(data), BenchMessage, what, RecordingError)
        try:
            setup = Setup(**{key: getattr(bench, key) for key in SETUP_KEYS})
        except RecordingError as error:
            raise RecordingError(f"{what}: {error}") from None
        return cls(bench.run_id, bench.joint, bench.actuator, bench.trajectory, setup)


@dataclass
class _Run:
    """Samples of one run while a bag is read: times and values by signal.

    :param ended: whether its end event or the next run ended it, rather than the end of the bag.
    """

    bench: BenchDescription
    ended: bool = False
    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    values: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    @property
    def seconds(self) -> float:
        """Time between the first sample and the last [s], negative without samples."""
        times = [time for found in self.times.values() for time in found]
        return max(times) - min(times) if times else -1.0


def write_bag(path: Path, logs: Sequence[Log], *, joint: str = "joint", storage: Storage = "mcap") -> None:
    """Write runs of one joint, one after the other, as a new bag.

    Header stamps are the times of the logs, rounded to 1 ns. The log times of each run follow those of the previous one.

    :raises RecordingError: for logs whose velocity was not sampled together with the position.
    :raises OutputError: if the bag exists or cannot be written.
    """
    topics = (BENCH, JOINT_STATES, JOINT_COMMANDS, DYNAMIC_JOINT_STATES)
    write_messages(path, topics, _log_messages(logs, joint), storage)


def read_bag(
    path: Path,
    *,
    signals: SignalTable | None = None,
    joint: str | None = None,
    bench: BenchDescription | None = None,
    note: Note | None = None,
) -> list[Log]:
    """Read the runs of a bag.

    A bag that was cut off by a crash is read as far as possible. Its last run then ends with its last sample and has
    "(cut off)" appended to its name. If there is a ``note``, runs that are too short are left out and noted, provided
    that other runs remain.

    :param signals: sources of the signals in the bag; by default those of the bag format above.
    :param joint: the joint to read, or :data:`EVERY_JOINT`; needed if the bag has runs of several.
    :param bench: describes a bag without ``/bench``, which is then read as one run of the ``joint`` in it.
    :param note: receives lines about cut-off bags and left-out runs.
    :raises RecordingError: for a bag that is damaged, has no runs, or has invalid runs.
    :raises CutOffError: for a bag that was cut off before its first run.
    :raises TooShortError: for a bag without a run of at least a second.
    """
    signals = signals or load_signals()
    messages, typestore, cut_off = read_messages(path, note)
    present = {message.topic.name for message in messages}
    if bench is None and BENCH.name not in present:
        raise RecordingError(
            f"{path} has no {BENCH.name} topic, so its loads and gains are not known: describe it with --bench "
            "mass=KG,length=M,arm_mass=KG,kp=GAIN,supply_voltage=V,actuator=NAME,joint=NAME"
        )
    if bench is not None and BENCH.name in present:
        raise RecordingError(f"{path} describes its runs itself on {BENCH.name}: leave --bench out")
    try:
        chosen = _chosen(path, signals, present)
    except RecordingError as error:
        raise (
            CutOffError(f"{path} was cut off before its first run: {error}") if cut_off else error
        ) from None
    runs = _collect(path, messages, typestore, chosen, bench)
    joints = sorted({run.bench.joint for run in runs})
    if joint is None and len(joints) > 1:
        raise RecordingError(
            f"{path} has runs of several joints ({', '.join(joints)}): choose one with --joint, or "
            f"--joint '{EVERY_JOINT}' if one servo, or several alike, took turns with different loads"
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
    return _logs_of(path, runs, cut_off, note)


def _log_messages(logs: Sequence[Log], joint: str) -> Iterator[RawMessage]:
    offset = 0
    for log in logs:
        messages = sorted(_run_messages(log, joint), key=lambda message: message.log_time)
        shift = max(0, offset - messages[0].log_time)
        for message in messages:
            yield message._replace(log_time=message.log_time + shift)
        offset = messages[-1].log_time + shift + 1


def _run_messages(log: Log, joint: str) -> Iterator[RawMessage]:
    if not np.array_equal(log.position.time, log.velocity.time):
        raise RecordingError(f"run {log.name!r}: velocity was not sampled together with the position")
    series = [log.position, log.goal, *(getattr(log, name) for name in TELEMETRY)]
    first = min(_nanoseconds(found.time[0]) for found in series if found is not None)
    last = max(_nanoseconds(found.time[-1]) for found in series if found is not None)
    bench = BenchDescription(log.name, joint, log.actuator, log.trajectory, log.setup)

    yield RawMessage(BENCH, first, text(bench.to_json()))
    for time, position, velocity in zip(
        log.position.time, log.position.value, log.velocity.value, strict=True
    ):
        stamp = _nanoseconds(time)
        # The servo does not measure effort.
        state = joint_state(stamp, [joint], [position], [velocity], [math.nan])
        yield RawMessage(JOINT_STATES, stamp, state)
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


def _chosen(path: Path, signals: SignalTable, present: Iterable[str]) -> dict[str, Source]:
    """The first available source of each signal; :class:`RecordingError` if a required signal has none."""
    present = sorted(present)
    chosen = {}
    for signal, sources in signals.items():
        for source in sources:
            if source.constant is not None or source.topic in present:
                chosen[signal] = source
                break
        else:
            if signal in REQUIRED_SIGNALS:
                wanted = " or ".join(source.topic for source in sources)
                raise RecordingError(
                    f"{path} has no topic {wanted} for {signal}; it has: {', '.join(present) or 'none'}. "
                    "Name the right ones with --signals FILE"
                )
    return chosen


def _collect(
    path: Path,
    messages: Sequence[RawMessage],
    typestore: Typestore,
    sources: Mapping[str, Source],
    bench: BenchDescription | None,
) -> list[_Run]:
    by_topic: dict[str, list[tuple[str, Source]]] = defaultdict(list)
    for signal, source in sources.items():
        if source.constant is None:
            by_topic[source.topic].append((signal, source))
    active: dict[str, _Run] = {}
    finished: list[_Run] = []
    if bench is not None:
        active[bench.joint] = _Run(bench)
    # With equal log times a run begins before its first sample and ends after its last.
    for message in sorted(messages, key=lambda m: (m.log_time, _rank(m, typestore))):
        if message.topic.name == BENCH.name and bench is None:
            _bench_event(path, message, typestore, active, finished)
        elif message.topic.name in by_topic and active:
            decoded = decode(path, message, typestore)
            for signal, source in by_topic[message.topic.name]:
                time, samples = _samples(path, message, source, decoded, signal)
                for joint, value in samples:
                    if joint in active:
                        active[joint].times[signal].append(time)
                        active[joint].values[signal].append(value)
    for run in finished:
        run.ended = True
    for run in (*finished, *active.values()):
        for signal, source in sources.items():
            if source.constant is not None and run.times["position"]:
                run.times[signal], run.values[signal] = [run.times["position"][0]], [source.constant]
    return [*finished, *active.values()]


def _samples(
    path: Path, message: RawMessage, source: Source, decoded: Any, signal: str
) -> tuple[float, list[tuple[str, float]]]:
    """Time and samples of one signal in a message; :class:`RecordingError` if its fields are missing."""
    try:
        time = message.log_time * 1e-9 if source.order else _stamp(decoded)
        return time, list(source.samples(decoded))
    except (AttributeError, TypeError, ValueError) as error:
        raise RecordingError(
            f"{path}: messages on {message.topic.name} ({message.topic.type}) do not hold {signal} where the table of "
            f"signals says: {error}"
        ) from None


def _rank(message: RawMessage, typestore: Typestore) -> int:
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
            finished += [active.pop(joint) for joint in ended]
        return
    bench = BenchDescription.from_mapping(data, what)
    if bench.joint in active:
        if active[bench.joint].bench == bench:
            return  # the latched message, repeated for a recorder that joined late
        finished.append(active.pop(bench.joint))
    active[bench.joint] = _Run(bench)


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


def _stamp(message: Any) -> float:
    stamp = message.header.stamp
    return float(stamp.sec + stamp.nanosec * 1e-9)


def _logs_of(path: Path, runs: Sequence[_Run], cut_off: bool, note: Note | None) -> list[Log]:
    """All runs except those cut off too early and, with a ``note``, those that are too short."""
    tell = note or (lambda _: None)
    logs = []
    for run in runs:
        lost = cut_off and not run.ended
        try:
            log = _log(path, run)
            logs.append(replace(log, name=f"{log.name} (cut off)") if lost else log)
        except TooShortError as error:
            if not lost and (note is None or len(runs) == 1):
                raise
            tell(f"{error}; this run {'was cut off, and ' if lost else ''}is left out")
        except RecordingError as error:
            if not lost:
                raise
            tell(f"{error}; this run was cut off, and is left out")
    if not logs and cut_off:
        raise CutOffError(f"{path} was cut off before it held a run that can be used")
    if not logs:
        raise TooShortError(f"{path} holds no run of at least {MINIMUM_DURATION:g} s")
    return logs


def _log(path: Path, run: _Run) -> Log:
    what = f"{path}: run {run.bench.run_id!r}"
    missing = [signal for signal in REQUIRED_SIGNALS if not run.times[signal]]
    if missing:
        kind = TooShortError if 0.0 <= run.seconds < MINIMUM_DURATION else RecordingError
        raise kind(f"{what} has no {', '.join(missing)} of joint {run.bench.joint!r}")
    try:
        series = {
            signal: Series(np.array(times), np.array(run.values[signal]), held=signal in HELD_SIGNALS)
            for signal, times in run.times.items()
            if times and not (signal not in REQUIRED_SIGNALS and np.all(np.isnan(run.values[signal])))
        }
        position = series["position"]
        if len(position.time) < 2:
            raise TooShortError("a single sample is no run")
        if "velocity" not in series:
            slope = np.gradient(position.value, position.time)
            series["velocity"] = Series(position.time, slope, held=False)
        return Log(
            name=run.bench.run_id,
            actuator=run.bench.actuator,
            trajectory=run.bench.trajectory,
            setup=run.bench.setup,
            **series,
        )
    except RecordingError as error:
        where = path if f"{error}".startswith("run ") else what
        raise type(error)(f"{where}: {error}") from None
