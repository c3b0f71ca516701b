"""Mode sum: friction torque stayed where nobody took it back, or left in one step.

A controller that died left its last effort with friction in it at the robot. The guard went from effort with friction to
effort without at once, where in goal_offset it faded the offset out.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ros_graph import Graph, wait_for
from rclpy.lifecycle import TransitionCallbackReturn
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Int64

from helpers import published
from stribeck.nodes.compensation import CompensationNode
from stribeck.nodes.guard import GuardNode

EFFORT, SLEW = 0.05, 0.2


@pytest.fixture
def parameters(tmp_path: Path) -> dict[str, Any]:
    """One joint between a controller of efforts and an effort interface."""
    path = tmp_path / "m1.json"
    values = {**published("xl330", "m1"), "q_offset": 0.0}
    path.write_text(json.dumps({**values, "model": "m1", "actuator": "xl330"}))
    return {
        "joints": ["hinge"],
        "hinge.parameter_file": str(path),
        "effort_meaning": "none",
        "output_mode": "sum",
        "slew_limit": SLEW,
        "state_timeout": 10.0,
    }


@pytest.fixture
def graph() -> Iterator[Graph]:
    """A graph."""
    with Graph() as found:
        yield found


def start(graph: Graph, make: Any, parameters: dict[str, Any]) -> tuple[Any, list[Float64MultiArray]]:
    """A node that is active, and what it tells the robot."""
    node = graph.add(make, parameters)
    assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    assert node.trigger_activate() == TransitionCallbackReturn.SUCCESS
    out = graph.collect(Float64MultiArray, "compensated_command")
    wait_for(lambda: node._output.get_subscription_count(), "the output is connected")
    return node, out


def message(time: float, effort: float) -> JointState:
    """A state or a command: 1 rad/s, as is wanted."""
    found = JointState(name=["hinge"], position=[0.1 + time], velocity=[1.0], effort=[effort])
    found.header.stamp.sec, found.header.stamp.nanosec = 1, round(1e9 * time)
    return found


def test_a_controller_that_dies_leaves_its_own_effort(graph, parameters):
    """The friction fades out of its last effort after command_timeout, while the joint goes on moving; then silence."""
    node, out = start(graph, CompensationNode, {**parameters, "ramp_time": 0.0})
    wait_for(lambda: node._compensator.enabled, "compensation is enabled")
    states, commands = (graph.publisher(JointState, name) for name in ("joint_states", "controller_command"))
    time = [0.0]

    def working() -> bool:
        time[0] += 0.005
        states.publish(message(time[0], 0.0))
        commands.publish(message(time[0] + 0.001, EFFORT))
        return bool(out) and out[-1].data[0] > EFFORT + 0.01

    wait_for(working, "friction in the effort")

    def parted() -> bool:
        time[0] += 0.005
        states.publish(message(time[0], 0.0))
        return all(abs(m.data[0] - EFFORT) < 1e-12 for m in out[-3:])

    wait_for(parted, "the controller's own effort")
    count = len(out)
    values = np.array([m.data[0] for m in out])
    last = values[int(np.argmax(values)) :]
    assert len(last) > 5, "it fades"
    assert np.all(np.diff(last) <= 1e-12)
    ticks = node._count
    wait_for(lambda: parted() and node._count > ticks + 20, "time goes on")
    assert len(out) == count, "then nothing is said"


def test_the_guard_fades_the_friction_out(graph, parameters):
    """At the slew limit, from the torque that the node gave last."""
    guard, out = start(graph, GuardNode, parameters)
    alive = graph.publisher(Int64, "compensation_alive", 1)
    commands = graph.publisher(JointState, "controller_command")
    friction = graph.user.create_publisher(JointState, "friction_torque", 10)
    wait_for(
        lambda: alive.publish(Int64(data=7)) or guard._status()[2] == {"in_charge": False}, "the node's turn"
    )

    def heard() -> bool:
        alive.publish(Int64(data=7))
        friction.publish(message(0.5, 0.03))
        commands.publish(message(0.5, EFFORT))
        return bool(guard._friction) and guard._command is not None

    wait_for(heard, "the last friction torque")
    time = [0.5]

    def faded() -> bool:
        time[0] += 0.005
        commands.publish(message(time[0], EFFORT))
        return bool(out) and abs(out[-1].data[0] - EFFORT) < 1e-12

    wait_for(faded, "the controller's effort alone")
    values = np.array([m.data[0] for m in out])
    begin = int(np.argmax(values))
    assert values[begin] == pytest.approx(EFFORT + 0.03, abs=0.01)
    assert len(values) - begin > 5, "it fades"
    assert np.all(np.diff(values[begin:]) <= 1e-12)
