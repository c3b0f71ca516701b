"""`stribeck doctor`: every planted fault is named, with what mends it; a sound machine and graph are only described."""

import resource
import threading
import time

import pytest

from stribeck.cli.main import main
from stribeck.nodes.checks import (
    Diagnosis,
    Endpoint,
    Observed,
    StateTrack,
    graph_findings,
    machine_findings,
)

STATES, ARRAY = "sensor_msgs/msg/JointState", "std_msgs/msg/Float64MultiArray"
ARM = ("shoulder", "elbow")


def track(
    rate: float = 200.0, *, behind: float = 0.0, position: float = 0.5, seconds: float = 2.0, speeds: int = 2
) -> StateTrack:
    """Regular states with stamps 1 ms before they arrive."""
    found = StateTrack()
    for k in range(int(seconds * rate)):
        arrival = 1000.0 + k / rate
        found.add(arrival, arrival - 1e-3 - behind, [position, position], [0.0] * speeds, 2)
    return found


def graph(**changes) -> Observed:
    """A robot with a driver, a controller, compensation and guard."""
    seen = Observed(
        nodes=["/driver", "/controller", "/compensation", "/guard"],
        endpoints=[
            Endpoint("/joint_states", STATES, "/driver", True),
            Endpoint("/joint_states", STATES, "/compensation", False, reliable=False),
            Endpoint("/controller_command", STATES, "/controller", True),
            Endpoint("/compensated_command", ARRAY, "/compensation", True),
            Endpoint("/compensated_command", ARRAY, "/guard", True),
        ],
        states={("/joint_states", ARM): track()},
    )
    for name, value in changes.items():
        setattr(seen, name, value)
    return seen


def with_endpoints(*more: Endpoint, **changes) -> Observed:
    seen = graph(**changes)
    seen.endpoints += more
    return seen


def with_states(found: StateTrack, joints: tuple[str, ...] = ARM, **more: StateTrack) -> Observed:
    return graph(
        states={("/joint_states", joints): found, **{("/joint_states", (n,)): t for n, t in more.items()}}
    )


def doubled() -> StateTrack:
    """Two drivers that publish the same joints."""
    both = StateTrack()
    for k in range(400):
        arrival = 1000.0 + k * 0.0025
        both.add(arrival, arrival - (1e-3 if k % 2 else 4e-3), [0.0, 0.0], [0.0, 0.0], 2)
    return both


def unstamped() -> StateTrack:
    found = track()
    found.stamps = [0.0] * len(found.stamps)
    return found


def stuttering() -> StateTrack:
    """Five messages in each hundred come 60 ms late."""
    found = track()
    found.arrivals = [time + 0.06 * (k // 20) for k, time in enumerate(found.arrivals)]
    found.stamps = [time - 1e-3 for time in found.arrivals]
    return found


FAULTS = {
    "best effort": (
        with_endpoints(
            Endpoint("/joint_states", STATES, "/camera", True, reliable=False),
            Endpoint("/joint_states", STATES, "/planner", False),
        ),
        "/planner receives nothing from /camera, which is best effort",
    ),
    "late joiner": (
        with_endpoints(
            Endpoint("/robot_description", "std_msgs/msg/String", "/driver", True),
            Endpoint("/robot_description", "std_msgs/msg/String", "/rviz", False, latched=True),
        ),
        "does not keep messages for late subscribers",
    ),
    "two drivers": (
        with_endpoints(
            Endpoint("/joint_states", STATES, "/driver2", True), states={("/joint_states", ARM): doubled()}
        ),
        "the same joints (elbow, shoulder) are published by several nodes: /driver, /driver2",
    ),
    "a joint twice": (with_states(track(), elbow=track()), "the same joints (elbow) are published"),
    "two commanders": (
        with_endpoints(
            Endpoint("/forward_effort_controller/commands", ARRAY, "/compensation", True),
            Endpoint("/forward_effort_controller/commands", ARRAY, "/teleop", True),
        ),
        "2 nodes publish commands for the joints: /compensation, /teleop",
    ),
    "clock": (with_states(track(behind=3.0)), "3.00 s behind this computer's clock"),
    "two clocks": (
        with_states(track(), gripper=track(behind=0.2)),
        "clocks of its publishers differ by 0.20 s",
    ),
    "no stamps": (with_states(unstamped()), "no time stamps (zero)"),
    "slow": (with_states(track(10.0)), "10 Hz, 99 % of intervals below 100.0 ms: too slow"),
    "jitter": (with_states(stuttering()), "messages are late or lost"),
    "not a number": (with_states(track(position=float("nan"))), "lack a finite position"),
    "degrees": (with_states(track(position=90.0)), "positions reach 90 rad: are they in degrees or counts?"),
    "no velocity": (with_states(track(speeds=0)), "have no velocity"),
    "silent": (graph(states={}), "has a publisher, but no message was received"),
    "nobody": (Observed(), "no node publishes joint_states"),
    "one name twice": (graph(nodes=["/driver", "/driver"]), "2 nodes have the name /driver"),
    "two types": (
        with_endpoints(Endpoint("/controller_command", ARRAY, "/teleop", True)),
        "has several message types: sensor_msgs/msg/JointState, std_msgs/msg/Float64MultiArray",
    ),
    "diagnostics": (
        graph(problems={"compensation": "zero torque: no valid states yet"}),
        "compensation: zero torque: no valid states yet",
    ),
}


def wrong(found) -> list[Diagnosis]:
    return [one for one in found if one.level in ("warning", "error")]


def test_a_sound_graph_is_only_described():
    """Nothing to mend, and it says who commands and how fast states come."""
    found = list(graph_findings(graph()))
    assert wrong(found) == []
    said = "\n".join(f"{one.subject}: {one.text}" for one in found)
    assert "/compensated_command: commands are published by /compensation and /guard" in said
    assert "/joint_states: shoulder, elbow: 200 Hz" in said


@pytest.mark.parametrize("name", FAULTS)
def test_every_planted_fault_is_named(name):
    """The fault itself, with what mends it, and at most one thing that follows from it."""
    seen, text = FAULTS[name]
    found = wrong(graph_findings(seen))
    (named,) = [one for one in found if text in one.text]
    assert named.fix
    assert len(found) <= 2, found


def machine(tmp_path, environment=None, *, has=lambda _: True, limits=(98, resource.RLIM_INFINITY)):
    numbers = dict(zip((resource.RLIMIT_RTPRIO, resource.RLIMIT_MEMLOCK), limits, strict=True))
    sound = {"ROS_DISTRO": "jazzy"}
    environment = sound if environment is None else environment
    return list(machine_findings(environment, tmp_path, has, lambda which: (numbers[which],) * 2))


def test_a_sound_machine_is_only_described(tmp_path):
    """Also that of a container, which has no /sys."""
    assert wrong(machine(tmp_path)) == []


def test_what_is_wrong_with_a_machine_is_named(tmp_path):
    """A governor, an FTDI adapter, limits, a domain that cannot be, and packages that are missing."""
    timer = tmp_path / "sys/bus/usb-serial/devices/ttyUSB0/latency_timer"
    governor = tmp_path / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
    for path, text in ((timer, "16\n"), (governor, "powersave\n")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    found = machine(tmp_path, {"ROS_DOMAIN_ID": "240"}, has=lambda name: name == "rclpy", limits=(0, 65536))
    said = {one.text: one.fix for one in found if one.fix}
    for part, fix in {
        "ttyUSB0 delivers answers after 16 ms": "echo 1 | sudo tee /sys/bus/usb-serial/devices/ttyUSB0/latency_timer",
        "CPU governor powersave": "cpupower",
        "no real-time priority": "rtprio",
        "64 KiB of memory": "memlock",
        "ROS_DOMAIN_ID is '240'": "export",
        "no control_msgs": "apt install",
        "no numexpr": "pip install numexpr",
    }.items():
        (named,) = [text for text in said if part in text]
        assert fix in said[named]


def capable(tmp_path, *numbers):
    """A machine whose processes have these capabilities."""
    status = tmp_path / "proc/self/status"
    status.parent.mkdir(parents=True)
    status.write_text(f"Name:\tpython\nCapEff:\t{sum(1 << number for number in numbers):016x}\n")


def test_real_time_by_capability_is_as_good_as_by_limits(tmp_path):
    """CAP_SYS_NICE and CAP_IPC_LOCK without any limit raised, as in a container: nothing to mend."""
    capable(tmp_path, 14, 23)
    found = machine(tmp_path, limits=(0, 65536))
    assert wrong(found) == []
    (said,) = [one.text for one in found if one.subject == "real time"]
    assert "priority up to 99" in said
    assert "realtime_priority" in said


def test_without_permission_it_is_said_what_gives_it(tmp_path):
    """Another capability does not help; limits.conf and the capability are named."""
    capable(tmp_path, 12)
    (found,) = [one for one in machine(tmp_path, limits=(0, -1)) if one.level == "warning"]
    assert "no real-time priority" in found.text
    assert "limits.conf" in found.fix
    assert "SYS_NICE" in found.fix


@pytest.mark.parametrize(
    ("files", "level", "said"),
    [
        ({}, "note", "not PREEMPT_RT"),
        ({"sys/kernel/realtime": "1\n"}, "ok", "PREEMPT_RT: latencies"),
        ({"sys/kernel/realtime": "0\n"}, "note", "not PREEMPT_RT"),
        (
            {"proc/sys/kernel/sched_rt_runtime_us": "0\n"},
            "warning",
            "real-time threads are not permitted to run",
        ),
    ],
)
def test_what_the_kernel_offers_is_said(tmp_path, files, level, said):
    """Preemption, and whether real-time threads may run at all."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    found = [one for one in machine(tmp_path) if one.subject == "kernel"]
    assert [one.level for one in found if said in one.text] == [level]


def test_a_computer_without_ros(tmp_path, monkeypatch, capsys):
    """The page ends after the computer; exit code 2 with --strict, else 0."""
    monkeypatch.setattr("stribeck.nodes.checks.find_spec", lambda _: None)
    monkeypatch.setattr("stribeck.cli.doctor.find_spec", lambda _: None)
    assert main(["doctor", "--json", str(tmp_path / "found.json")]) == 0
    said = capsys.readouterr().out
    assert "rclpy cannot be imported" in said
    assert "pip install 'stribeck[fit]'" in said
    assert "graph" not in said
    assert main(["doctor", "--strict"]) == 2


@pytest.mark.real_time
def test_beside_a_graph():
    """Planted in a real graph: a publisher of best effort, old stamps, degrees, two commanders, two nodes of one name."""
    from ros_graph import Graph, domain
    from rclpy.node import Node
    from rclpy.qos import qos_profile_sensor_data
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64MultiArray

    from stribeck.nodes.survey import observe

    with Graph() as running:
        nodes = [Node("teleop", context=running.context, namespace=space) for space in ("/a", "/a", "/b")]
        running.nodes += nodes
        for node in nodes[1:]:
            node.create_publisher(Float64MultiArray, "/efforts/commands", 1)
        nodes[0].create_subscription(JointState, "/joint_states", lambda _: None, 10)
        publisher = nodes[0].create_publisher(JointState, "/joint_states", qos_profile_sensor_data)
        over = threading.Event()

        def publish():
            while not over.wait(0.01):
                message = JointState(name=["hinge"], position=[90.0], velocity=[0.0])
                message.header.stamp.sec = int(time.time()) - 5
                publisher.publish(message)

        thread = threading.Thread(target=publish)
        thread.start()
        try:
            said = "\n".join(
                f"{one.subject} {one.text}" for one in wrong(graph_findings(observe(3.0, domain())))
            )
        finally:
            over.set()
            thread.join()
    for part in (
        "/a/teleop receives nothing from /a/teleop",
        "2 nodes have the name /a/teleop",
        "behind this computer's clock",
        "positions reach 90 rad",
        "2 nodes publish commands for the joints: /a/teleop, /b/teleop",
    ):
        assert part in said, said
