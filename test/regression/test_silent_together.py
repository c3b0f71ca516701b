"""Controller and compensation node fall silent together, as on a machine that stands still while the controller ends.

What happened: the command was too old for the guard to pass it on, the node had given up speaking, and the last effort kept
its friction torque for good (found by ``make soak``). What must happen: the guard publishes the controller's effort alone.
"""

import json
import time

import pytest
from ros_graph import Graph, wait_for
from rclpy.lifecycle import TransitionCallbackReturn
from sensor_msgs.msg import JointState
from std_msgs.msg import Int64

from helpers import published
from stribeck.nodes.guard import GuardNode
from stribeck.nodes.qos import best_effort

pytestmark = pytest.mark.real_time

EFFORT, FRICTION, LEASE, TIMEOUT = 0.05, 0.02, 1.5, 0.3


def guarded(graph, tmp_path):
    """An active guard that heard an enabled node, a command and its friction; what it says, and the sign of life."""
    path = tmp_path / "m1.json"
    path.write_text(
        json.dumps({**published("xl330", "m1"), "q_offset": 0.0, "model": "m1", "actuator": "xl330"})
    )
    times = {"heartbeat_timeout": LEASE, "pause_limit": 1.0, "command_timeout": TIMEOUT}
    parameters = {"joints": ["hinge"], "hinge.parameter_file": str(path), "effort_meaning": "none", **times}
    guard = graph.add(GuardNode, {**parameters, "output_mode": "sum", "output_type": "joint_state"})
    assert guard.trigger_configure() == TransitionCallbackReturn.SUCCESS
    assert guard.trigger_activate() == TransitionCallbackReturn.SUCCESS
    said = graph.collect(JointState, "compensated_command")
    alive = graph.publisher(Int64, "compensation_alive", best_effort(1))
    friction = graph.publisher(JointState, "friction_torque", best_effort(1))
    commands = graph.publisher(JointState, "controller_command")
    wait_for(lambda: alive.publish(Int64(data=7)) or not guard._heartbeat.in_charge, "the node is in charge")
    message = JointState(name=["hinge"], effort=[FRICTION])
    wait_for(lambda: friction.publish(message) or guard._friction, "the friction torque")
    commands.publish(JointState(name=["hinge"], effort=[EFFORT]))
    wait_for(lambda: guard._command is not None, "the command")
    return guard, said, alive


def test_friction_does_not_stay_when_controller_and_node_fall_silent_together(tmp_path):
    """Three times the effort alone, then nothing."""
    with Graph() as graph:
        guard, said, _ = guarded(graph, tmp_path)
        assert not said
        wait_for(lambda: guard._heartbeat.in_charge, "the guard takes over")
        wait_for(lambda: [m.effort[0] for m in said[-3:]] == [EFFORT] * 3, "the effort without friction")
        assert all(EFFORT <= m.effort[0] <= EFFORT + FRICTION for m in said)


def test_an_effort_from_which_the_node_took_the_friction_is_left_alone(tmp_path):
    """The node was alive long after the last command: the guard says nothing about that command."""
    with Graph() as graph:
        guard, said, alive = guarded(graph, tmp_path)
        end = time.monotonic() + guard._parting_time + 0.1
        wait_for(
            lambda: alive.publish(Int64(data=7)) or time.monotonic() > end, "signs of life after the command"
        )
        wait_for(lambda: guard._heartbeat.in_charge, "the guard takes over")
        wait_for(lambda: time.monotonic() > guard._last + 0.1, "some ticks")
        assert not said
