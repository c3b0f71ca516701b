"""The compensation node stands still between a command and its answer, and the controller ends meanwhile.

What happened: the guard had taken over and sent the controller's effort alone; then the node published its answer, with the
friction torque. No later command replaced it, and the receiver applied it for good. What must happen: the node sees that it was
late and publishes the controller's effort alone.
"""

import json
import time

import pytest
from ros_graph import Graph, wait_for
from rclpy.lifecycle import TransitionCallbackReturn
from sensor_msgs.msg import JointState

from helpers import published
from stribeck.nodes.compensation import CompensationNode

pytestmark = pytest.mark.real_time

EFFORT = 0.05


def test_an_answer_after_a_pause_is_followed_by_the_effort_alone(tmp_path, monkeypatch):
    """One pause while the friction torque is computed: the last message holds the effort of the controller."""
    path = tmp_path / "m1.json"
    path.write_text(
        json.dumps({**published("xl330", "m1"), "q_offset": 0.0, "model": "m1", "actuator": "xl330"})
    )
    modes = {"output_mode": "sum", "output_type": "joint_state", "effort_meaning": "none", "ramp_time": 0.0}
    limits = {
        "guarded": True,
        "pause_limit": 1.5,
        "heartbeat_timeout": 2.0,
        "slew_limit": 1e5,
        "state_timeout": 10.0,
    }
    with Graph() as graph:
        node = graph.add(
            CompensationNode, {"joints": ["hinge"], "hinge.parameter_file": str(path), **modes, **limits}
        )
        assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
        assert node.trigger_activate() == TransitionCallbackReturn.SUCCESS
        said = graph.collect(JointState, "compensated_command")
        states = graph.publisher(JointState, "joint_states")
        commands = graph.publisher(JointState, "controller_command")
        wait_for(lambda: node._output.get_subscription_count(), "the output is connected")
        node._enable()

        def moves() -> bool:
            now = time.time_ns()
            state = JointState(
                name=["hinge"], position=[1e-9 * now % 1.0 + 0.2], velocity=[1.0], effort=[0.0]
            )
            command = JointState(name=["hinge"], effort=[EFFORT])
            for message, publisher in ((command, commands), (state, states)):
                message.header.stamp.sec, message.header.stamp.nanosec = divmod(now, 10**9)
                publisher.publish(message)
            return bool(said) and said[-1].effort[0] > EFFORT + 1e-4

        wait_for(moves, "friction torque")
        heard = len(said)
        compute = type(node._compensator).output

        def output(compensator, now):
            monkeypatch.setattr(type(node.clock), "now", lambda _: time.monotonic() + 1.9)
            return compute(compensator, now)

        monkeypatch.setattr(type(node._compensator), "output", output)
        commands.publish(JointState(name=["hinge"], effort=[EFFORT]))
        wait_for(lambda: node._enabling.muted, "the node notices its pause")
        # Answers to earlier commands may still have been on their way.
        last = lambda: [message.effort[0] for message in said[heard:]][-2:]  # noqa: E731
        wait_for(lambda: last()[1:] == [EFFORT], "an answer, and its correction after it")
        assert last()[0] > EFFORT + 1e-4
