"""The compensation node on a real graph: what it publishes in each mode, and its faults."""

import json
from pathlib import Path

import numpy as np
import pytest
from ros_graph import Graph, wait_for
from rclpy.lifecycle import TransitionCallbackReturn
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from helpers import published
from stribeck.nodes.compensation import CompensationNode

M1 = {**published("xl330", "m1"), "q_offset": 0.0}
BUDGET = M1["friction_base"] + 1.0 * M1["friction_viscous"]


@pytest.fixture
def parameters(tmp_path: Path) -> dict[str, object]:
    """Parameters for one joint of law M1, at full torque from the first state on."""
    path = tmp_path / "m1.json"
    path.write_text(json.dumps({**M1, "model": "m1", "actuator": "xl330"}))
    return {
        "joints": ["hinge"],
        "hinge.parameter_file": str(path),
        "effort_meaning": "none",
        "ramp_time": 0.0,
        "slew_limit": 1e5,
    }


def state(time: float, velocity: float = 1.0, position: float = 0.2) -> JointState:
    """A state of the joint at a time."""
    message = JointState(name=["hinge"], position=[position], velocity=[velocity], effort=[0.0])
    message.header.stamp.sec = int(time)
    message.header.stamp.nanosec = round((time % 1.0) * 1e9)
    return message


def activate(node: CompensationNode) -> None:
    """Configure and activate."""
    assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    assert node.trigger_activate() == TransitionCallbackReturn.SUCCESS
    wait_for(lambda: node._compensator.enabled, "compensation is enabled")


def test_friction_torque_of_a_moving_joint(parameters):
    """0.8 of the budget in the direction of motion, one message per state; zero on deactivation."""
    with Graph() as graph:
        node = graph.add(CompensationNode, parameters)
        activate(node)
        out = graph.collect(Float64MultiArray, "compensated_command")
        states = graph.publisher(JointState, "joint_states")
        wait_for(lambda: node._output.get_subscription_count(), "the output is connected")
        for k in range(5):
            states.publish(state(1.0 + 0.005 * k))
            wait_for(lambda k=k: len(out) > k, f"output {k}")
        assert out[0].data[0] == 0.0, "the first state has no time before it"
        np.testing.assert_allclose([m.data[0] for m in out[1:]], 0.8 * BUDGET)
        node.trigger_deactivate()
        wait_for(lambda: out[-1].data[0] == 0.0, "zero after deactivation")
