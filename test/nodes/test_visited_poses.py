"""An arm calibrated in a graph: poses chosen, visited, recorded with a tracker, and identified, on a simulated IRB 120."""

import json

import numpy as np
import pytest
from ros_graph import Graph, wait_for
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.lifecycle import TransitionCallbackReturn

from calibrating import MACHINE, NOISE, Tracker, session
from fake_robot import FakeRobot
from simulated_arms import MARKERS, irb120, true_arm, write_data
from stribeck.cli.main import main
from stribeck.nodes.excitation import ExcitationNode
from stribeck.nodes.identification import IdentificationNode
from stribeck.nodes.qos import latched
from stribeck.nodes.statuses import outcome_of
from stribeck.session.poses import PosesFile

pytestmark = [pytest.mark.real_time, pytest.mark.slow, pytest.mark.timeout(400)]

COUNT = 30


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
        "--set",
        "speed=3",
        "--set",
        "acceleration=20",
        "--set",
        "rest=0.9",
        "--output",
        chosen,
    ]
    assert main(["design", "poses", *map(str, words)]) == 0
    content = PosesFile.read(chosen)
    assert len(content.poses) == COUNT
    assert (content.speed, content.acceleration, content.rest) == (3.0, 20.0, 0.9)
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
        ended = graph.collect(DiagnosticStatus, "/excitation/result", latched())
        activate(excitation)
        wait_for(lambda: ended, "the end of the visit", timeout=200.0)
        assert outcome_of(ended[-1])["end"] == "finished", ended[-1]
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
        written = graph.collect(DiagnosticStatus, "/identification/result", latched())
        activate(node)
        wait_for(lambda: written or node._failure, "the calibration", timeout=150.0)
        assert not node._failure
        assert tracker._count > 1000
    assert (tmp_path / "result" / "calibration.json").is_file()
    found = json.loads(summary.read_text())
    assert found["poses"]["train"] >= COUNT
    mean = found["fits"]["full"]["validation"]["mean_mm"]
    assert mean <= 1.2 * 1e3 * NOISE * np.sqrt(8.0 / np.pi), "the mean length of the tracker's noise"
