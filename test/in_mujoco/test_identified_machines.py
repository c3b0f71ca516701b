"""From recordings of a machine to its compensation by the node, its report and its MJCF, without a file edited in between."""

import importlib.util
import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import yaml
from ros_graph import Graph, wait_for

from helpers import DATA, REPOSITORY

pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install '.[mujoco]'")

from builtin_interfaces.msg import Time
from rclpy.lifecycle import TransitionCallbackReturn
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from stribeck.cli.main import main
from stribeck.files.drives import read_drives
from stribeck.nodes.compensation import CompensationNode

GO2 = DATA / "go2"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]


def started(command, capsys):
    """What a command prints; it has to succeed."""
    assert main([str(word) for word in command]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def parameters_of(path):
    """Parameters of the compensation node in a file, by their names in ROS."""
    found = {}
    for section in ("/**", "/**/compensation"):
        for name, value in yaml.safe_load(path.read_text())[section]["ros__parameters"].items():
            of_joint = value.items() if isinstance(value, dict) else [("", value)]
            found |= {f"{name}.{key}".rstrip("."): one for key, one in of_joint}
    return found


class Through:
    """The node, as a compensator of one's own loop in simulated time: each state waits for its torque."""

    def __init__(self, graph, parameters):
        self.joints = parameters["joints"]
        self.node = graph.add(CompensationNode, parameters | {"use_sim_time": True})
        self.out = graph.collect(Float64MultiArray, "compensated_command")
        self.clock = graph.publisher(Clock, "/clock", 1)
        assert self.node.trigger_configure() == TransitionCallbackReturn.SUCCESS
        assert self.node.trigger_activate() == TransitionCallbackReturn.SUCCESS
        self.states = graph.publisher(JointState, "joint_states")
        self.goals = graph.publisher(JointState, "goals")
        wait_for(lambda: self.node._output.get_subscription_count(), "the output is connected")

    def torque(self, q, qd, *, q_goal, qd_goal, t):
        """Friction torque for a state (n,) and its goal at a time [s]."""
        nanoseconds = round(1e9 * (t + 1.0))
        stamp = Time(sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9)
        self.clock.publish(Clock(clock=stamp))
        count = len(self.out)
        for publisher, position, velocity in ((self.goals, q_goal, qd_goal), (self.states, q, qd)):
            message = JointState(name=self.joints, position=position.tolist(), velocity=velocity.tolist())
            message.header.stamp = stamp
            publisher.publish(message)
        wait_for(lambda: len(self.out) > count, f"a torque at {t:.3f} s")
        return np.array(self.out[-1].data)


@pytest.mark.skipif(not GO2.is_dir(), reason="needs the recordings of the Go2")
def test_a_robot(tmp_path, capsys):
    """A Go2 that hangs: three runs, its drives, a simulated one with 0.6 to 1.4 times the friction, its report, its MJCF."""
    runs = [GO2 / f"rx_run{k}.npz" for k in range(3)]
    model, out = GO2 / "go2.xml", tmp_path / "out"
    started(["identify", "robot", *runs, "--model", model, "--output", out, "--quiet"], capsys)
    parameters = parameters_of(out / "compensation.yaml") | {"goal_topic": "goals", "gain": 0.8}
    drives = read_drives(out / "robot.json")

    spec = importlib.util.spec_from_file_location("example", REPOSITORY / "examples/go2/compensate_go2.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.DURATION, example.BEGIN = 10.0, 4.0
    joints = list(drives.joints)
    factors = np.random.default_rng(3).uniform(0.6, 1.4, len(joints))
    plant = example.plant(model, drives, joints, factors)
    without = example.follow(plant, drives, joints)
    with Graph() as graph:
        through = Through(graph, parameters)
        compensated = example.follow(plant, drives, joints, through)
        assert through.node._compensator.present.doubt is None
    ratio = compensated / without
    assert np.mean(ratio) <= 0.7
    assert np.all(ratio <= 1.0)

    report = tmp_path / "report.html"
    left_out = GO2 / "rx_run6.npz"
    summary = tmp_path / "summary.json"
    command = ["evaluate", left_out, "--params", out / "robot.json", "--model", model]
    started([*command, "--report", report, "--json", summary], capsys)
    assert all(joint in report.read_text() for joint in joints)
    assert json.loads(summary.read_text())

    made = tmp_path / "identified.xml"
    command = ["export", "--format", "mjcf", "--plain", "--params", out / "robot.json", "--model", model]
    started([*command, "--output", made], capsys)
    written = ElementTree.parse(made).getroot()
    for joint, drive in drives.joints.items():
        found = written.find(f".//joint[@name='{joint}']").attrib
        for attribute, name in (("armature", "armature"), ("frictionloss", "friction_base")):
            assert float(found[attribute]) == pytest.approx(drive.values[name], rel=1e-4)
