"""At home in any graph, under the real launch: recorders of others, late joiners, rates, best effort, a second publisher."""

import json
import threading
import time

import numpy as np
import pytest
import yaml
from ros_graph import Graph, wait_for
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from helpers import REPOSITORY, published
from launching import Launched, needs_launch, needs_rosbag2
from stribeck.recordings.sources import read_recordings

pytestmark = [needs_launch, pytest.mark.real_time]

M1 = {**published("xl330", "m1"), "q_offset": 0.0, "model": "m1", "actuator": "xl330"}
FRICTION = M1["friction_base"] + 0.5 * M1["friction_viscous"]
"""At 0.5 rad/s [N m]."""

PAUSES = {"pause_limit": 1.0, "heartbeat_timeout": 1.5}
"""Of a machine that does other things beside."""


@pytest.fixture
def config(tmp_path):
    """Parameters of compensation and guard, in which nothing depends on rate or QoS."""
    (tmp_path / "m1.json").write_text(json.dumps(M1))
    parameters = {
        "joints": ["hinge"],
        "hinge": {"parameter_file": str(tmp_path / "m1.json")},
        "effort_meaning": "none",
        "output_type": "joint_state",
        "other_joints": "ignore",
        "adapt": False,
        "gain": 0.8,
        "automatic_returns": 100,
        **PAUSES,
    }
    path = tmp_path / "compensation.yaml"
    path.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters}}))
    return path


class Robot(threading.Thread):
    """A driver and a controller: states of best effort and goals, 0.5 rad/s to and fro; a gripper on the same topic."""

    def __init__(self, graph, rate):
        super().__init__(daemon=True)
        node = graph.user
        self._states, self._gripper, self._goals = (
            node.create_publisher(JointState, topic, qos)
            for topic, qos in (
                ("/joint_states", qos_profile_sensor_data),
                ("/joint_states", 10),
                ("/controller_command", 10),
            )
        )
        self._node, self._period, self._over = node, 1.0 / rate, threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self.join()

    def run(self):
        began = due = time.monotonic()
        while not self._over.wait(max(0.0, due - time.monotonic())):
            due = max(due + self._period, time.monotonic())
            phase = (time.monotonic() - began) % 4.0
            position, velocity = (0.5 * phase, 0.5) if phase < 2.0 else (2.0 - 0.5 * phase, -0.5)
            state = JointState(name=["hinge"], position=[position], velocity=[velocity], effort=[0.0])
            state.header.stamp = self._node.get_clock().now().to_msg()
            self._goals.publish(state)
            self._states.publish(state)
            gripper = JointState(name=["gripper"], position=[0.1], velocity=[0.0], effort=[0.0])
            gripper.header.stamp = state.header.stamp
            self._gripper.publish(gripper)


@pytest.mark.parametrize("rate", [50, 1000])
def test_a_node_that_joins_late_compensates_at_any_rate(environment, config, tmp_path, rate):
    """Best-effort states that flow already, 50 Hz and 1 kHz with the same parameters, beside a gripper's."""
    command = ["ros2", "launch", "stribeck", "compensate.launch.py", f"params_file:={config}"]
    with Graph() as graph, Robot(graph, rate), Launched(command, environment, tmp_path / "output") as running:
        torques = graph.collect(JointState, "/friction_torque", qos_profile_sensor_data)
        running.reaches(graph, "compensation")
        found = wait_for(
            lambda: (
                max((abs(t.effort[0]) for t in torques), default=0.0) > 0.75 * FRICTION
                and [t.effort[0] for t in torques]
            ),
            "the friction torque",
            30.0,
        )
        assert max(np.abs(found)) < 0.85 * FRICTION
        assert all(list(t.name) == ["hinge"] for t in torques)
        assert running.interrupt() == 0
        running.check_clean_end(2)


@pytest.fixture
def servo(environment, tmp_path):
    """The port of an emulated XL330."""
    port = tmp_path / "servo"
    bench = "mass=0.1,length=0.1,arm_mass=0.02"
    command = ["stribeck", "emulate", "--servo", "xl330", "--bench", bench, "--link", port]
    with Launched(command, environment, tmp_path / "emulator"):
        wait_for(port.exists, "the emulated servo")
        yield port


def plain(folder):
    """`ros2 bag record`, as anybody uses it."""
    return ["ros2", "bag", "record", "--all", "--output", folder / "plain"]


def recorder(folder):
    """Our recorder node, which knows nothing of the session."""
    words = ["-p", f"output:={folder}", "-p", "prefix:=plain", "-p", "autostart:=true"]
    return ["ros2", "run", "stribeck", "recorder", "--ros-args", *words]


@pytest.mark.parametrize("record", [pytest.param(plain, marks=needs_rosbag2), recorder])
def test_a_bag_of_another_recorder_is_as_good(environment, servo, tmp_path, record):
    """The run that the excitation records itself is in the other bag, sample by sample."""
    content = yaml.safe_load((REPOSITORY / "config" / "record_demo.yaml").read_text())
    content["plays"] = {"trajectories": ["up_and_down"], "gains": [200]}
    content |= {"command_timeout": 2.0, "silence_timeout": 2.0, "watchdog": 2.0}
    (tmp_path / "record.yaml").write_text(yaml.safe_dump(content))
    given = {"bench_file": tmp_path / "record.yaml", "port": servo, "output": tmp_path / "own"}
    words = [f"{name}:={value}" for name, value in {**given, "autoplay": "false"}.items()]
    launch = ["ros2", "launch", "stribeck", "record.launch.py", *words]
    with (
        Graph() as graph,
        Launched(launch, environment, tmp_path / "launch") as session,
        Launched(record(tmp_path), environment, tmp_path / "recorder") as other,
    ):
        for node in ("servo", "excitation"):
            session.reaches(graph, node)
        wait_for(lambda: graph.user.count_subscribers("/joint_states") >= 2, "both recorders", 30.0)
        wait_for(lambda: graph.user.count_subscribers("/bench") >= 1, "the other recorder", 30.0)
        assert graph.call(Trigger, "/excitation/start", Trigger.Request()).success
        wait_for(lambda: "run 1/1" in session.output, "the run", 30.0)
        wait_for(lambda: list((tmp_path / "own").glob("*/metadata.yaml")), "the session's own bag", 60.0)
        other.interrupt(group=True)
        session.interrupt()
    (own,) = read_recordings(tmp_path / "own")
    (log,) = read_recordings(next(tmp_path.glob("plain*")))
    assert log.setup == own.setup
    shared, mine, theirs = np.intersect1d(own.position.time, log.position.time, return_indices=True)
    assert len(shared) > 0.9 * len(own.position.time), "hardly a state is missing"
    np.testing.assert_array_equal(own.position.value[mine], log.position.value[theirs])
