"""An arm calibrated in a graph: poses chosen, visited, recorded with a tracker, and identified, on a simulated IRB 120."""

import json
import threading

import numpy as np
import pytest
from ros_graph import Graph, wait_for
from geometry_msgs.msg import PointStamped
from rclpy.lifecycle import TransitionCallbackReturn
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from fake_robot import FakeRobot
from simulated_arms import MARKERS, irb120, true_arm, write_data
from stribeck.cli.main import main
from stribeck.nodes.excitation import ExcitationNode
from stribeck.nodes.identification import IdentificationNode
from stribeck.nodes.qos import latched
from stribeck.session.poses import read_poses_file, write_poses

pytestmark = [pytest.mark.real_time, pytest.mark.slow, pytest.mark.timeout(400)]

NOISE = 5e-5
"""Standard deviation of the tracker along each axis [m]."""

COUNT = 30

MACHINE = """\
schema: 1
name: irb120
joints: [joint_1, joint_2, joint_3, joint_4, joint_5, joint_6]
calibration:
  data:
    joints: {file: measured_joints.txt, unit: deg}
    markers:
      SMR_1: {topic: /tracker/SMR_1, file: measured_SMR_1.txt, unit: mm}
      SMR_2: {topic: /tracker/SMR_2, file: measured_SMR_2.txt, unit: mm}
      SMR_3: {topic: /tracker/SMR_3, file: measured_SMR_3.txt, unit: mm}
  nominal:
    lengths: mm
    angles: deg
    dh: [[0, 290, 0, -90], [-90, 0, 270, 0], [0, 0, 70, -90], [0, 302, 0, 90], [0, 0, 0, -90], [180, 72, 0, 0]]
  extra: []
"""


class Tracker:
    """Three reflectors on the tool, measured at every state of the joints."""

    def __init__(self, graph, arm):
        self._arm, self._rng, self._lock = arm, np.random.default_rng(7), threading.Lock()
        self._out = {
            name: graph.user.create_publisher(PointStamped, f"tracker/{name}", 50) for name in MARKERS
        }
        graph.user.create_subscription(JointState, "joint_states", self._on_state, 50)
        self._count = 0

    def _on_state(self, message):
        self._count += 1
        if self._count % 5:
            return
        position = np.array(message.position)[None]
        points = self._arm.model.predict(position, self._arm.values)[0]
        for name, place in zip(MARKERS, points + NOISE * self._rng.standard_normal((3, 3)), strict=True):
            out = PointStamped(header=message.header)
            out.point.x, out.point.y, out.point.z = map(float, place)
            self._out[name].publish(out)


def session(folder, poses):
    """A session of the excitation node that visits poses."""
    joint = (
        "{position_limits: [-3, 3], limits: {velocity: 4, acceleration: 30}, bench: {mass: 1, length: 0.1, arm_mass: 0}, "
        "actuator: torque_joint}"
    )
    lines = ["joints:", *(f"  {name}: {joint}" for name in irb120().names)]
    lines += [f"plays: {{trajectories: [{poses}], gains: [1.0]}}", f"output: {folder / 'bags'}"]
    lines += ["soft_start: {speed: 3.0, acceleration: 20.0}", "supply_voltage: 24"]
    path = folder / "session.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


def activate(node):
    assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    assert node.trigger_activate() == TransitionCallbackReturn.SUCCESS


def test_an_arm_is_calibrated_in_a_graph(tmp_path):
    """Hidden poses are predicted within 1.2 times the noise of the tracker, by the geometry that the node identified."""
    arm, rng = true_arm(), np.random.default_rng(3)
    machine, chosen = tmp_path / "irb120.yaml", tmp_path / "poses.yaml"
    machine.write_text(MACHINE)
    np.savetxt(tmp_path / "candidates.txt", rng.uniform(-110.0, 110.0, (300, 6)))
    words = [
        "--machine",
        machine,
        "--candidates",
        tmp_path / "candidates.txt",
        "--count",
        COUNT,
        "--output",
        chosen,
    ]
    assert main(["design", "poses", *map(str, words)]) == 0
    content = read_poses_file(chosen)
    assert len(content.poses) == COUNT
    write_poses(
        chosen, type(content)(1, content.joints, content.poses, speed=3.0, acceleration=20.0, rest=0.9)
    )
    hidden = write_data(tmp_path / "hidden", arm.measure(60, 11, NOISE))
    topics = [f"/tracker/{name} geometry_msgs/msg/PointStamped" for name in MARKERS]
    with Graph() as graph, FakeRobot(graph, irb120().names, "forward"):
        tracker = Tracker(graph, arm)
        parameters = {
            "config": str(session(tmp_path, chosen)),
            "commander": "forward",
            "autoplay": True,
            "topics": topics,
        }
        excitation = graph.add(ExcitationNode, parameters)
        ended = graph.collect(String, "/excitation/result", latched())
        activate(excitation)
        wait_for(lambda: ended, "the end of the visit", timeout=200.0)
        assert json.loads(ended[-1].data)["end"] == "finished", ended[-1].data
        summary = tmp_path / "summary.json"
        node = graph.add(
            IdentificationNode,
            {
                "engine": "geometry",
                "watch": str(tmp_path / "bags"),
                "output": str(tmp_path / "result"),
                "min_bags": 1,
                "settle_time": 0.0,
                "fit_options": ["--machine", str(machine), "--validate", str(hidden), "--json", str(summary)],
            },
        )
        written = graph.collect(String, "/identification/result", latched())
        activate(node)
        wait_for(lambda: written or node._failure, "the calibration", timeout=150.0)
        assert not node._failure
        assert tracker._count > 1000
    assert (tmp_path / "result" / "calibration.json").is_file()
    found = json.loads(summary.read_text())
    assert found["poses"]["train"] >= COUNT
    mean = found["fits"]["full"]["validation"]["mean_mm"]
    assert mean <= 1.2 * 1e3 * NOISE * np.sqrt(8.0 / np.pi), "the mean length of the tracker's noise"
