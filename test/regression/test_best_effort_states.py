"""Joint states of best effort (the QoS of sensor data) were never heard.

The compensation said "no valid states yet", an excitation ended with "no joint_states of joint come", and `qos_overrides`
were accepted and ignored.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ros_graph import Graph, wait_for
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.qos import QoSProfile, ReliabilityPolicy, qos_profile_sensor_data
from sensor_msgs.msg import JointState

from helpers import REPOSITORY, published
from stribeck.nodes.compensation import CompensationNode
from stribeck.nodes.excitation import ExcitationNode
from stribeck.nodes.recording import RecorderNode

RELIABLE = QoSProfile(depth=10)
RELIABILITY = "qos_overrides./joint_states.subscription.reliability"


@pytest.fixture
def parameters(tmp_path: Path) -> dict[str, Any]:
    """One joint."""
    path = tmp_path / "m1.json"
    values = {**published("xl330", "m1"), "q_offset": 0.0}
    path.write_text(json.dumps({**values, "model": "m1", "actuator": "xl330"}))
    return {"joints": ["hinge"], "hinge.parameter_file": str(path), "effort_meaning": "none"}


@pytest.fixture
def graph() -> Iterator[Graph]:
    """A graph."""
    with Graph() as found:
        yield found


def start(node: Any) -> Any:
    """Configure and activate."""
    assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    assert node.trigger_activate() == TransitionCallbackReturn.SUCCESS
    return node


def send_until(publisher: Any, condition: Any, what: str) -> None:
    """Publish states until a condition holds."""
    time = [0]

    def sent() -> bool:
        time[0] += 5
        message = JointState(name=["hinge"], position=[0.0], velocity=[1.0])
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(time[0] * 1_000_000, 10**9)
        publisher.publish(message)
        return bool(condition())

    wait_for(sent, what)


@pytest.mark.parametrize("qos", [qos_profile_sensor_data, RELIABLE], ids=["best effort", "reliable"])
def test_the_compensation_hears_both_kinds_of_publishers(graph, parameters, qos):
    """And counts their states."""
    node = start(graph.add(CompensationNode, parameters))
    publisher = graph.publisher(JointState, "joint_states", qos)
    send_until(publisher, lambda: node._count > 5, "states that are heard")


def test_the_overrides_of_the_user_count(graph, parameters):
    """Reliable states asked for: those of best effort are not heard, and diagnostics say which of the two to change."""
    node = start(graph.add(CompensationNode, {**parameters, RELIABILITY: "reliable"}))
    (offer,) = graph.user.get_subscriptions_info_by_topic("/joint_states")
    assert offer.qos_profile.reliability == ReliabilityPolicy.RELIABLE
    graph.user.create_publisher(JointState, "joint_states", qos_profile_sensor_data)
    wait_for(lambda: "qos_overrides require reliable" in node._status()[1], "what is wrong")


def test_overrides_that_cannot_be_are_refused(graph, parameters):
    """In one line."""
    node = graph.add(CompensationNode, {**parameters, RELIABILITY: "somewhat"})
    assert node.trigger_configure() == TransitionCallbackReturn.FAILURE
    assert "somewhat" in node._failure_of_transition


def test_an_excitation_hears_a_publisher_of_best_effort_that_comes_later(graph, tmp_path):
    """Reliably as long as all offer that, so that recordings lose nothing; then the weak one too."""
    options = {"config": str(REPOSITORY / "config" / "record_xl330.yaml"), "output": str(tmp_path)}
    node = graph.add(ExcitationNode, options)
    heard: list[bytes] = []
    node._on_state = heard.append
    assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    (offer,) = graph.user.get_subscriptions_info_by_topic("/joint_states")
    assert offer.qos_profile.reliability == ReliabilityPolicy.RELIABLE
    publisher = graph.user.create_publisher(JointState, "joint_states", qos_profile_sensor_data)
    send_until(publisher, lambda: len(heard) > 5, "states that are heard")


def test_the_recorder_takes_the_users_word_for_it(graph, tmp_path):
    """Best effort although publishers are reliable."""
    start(graph.add(RecorderNode, {"output": str(tmp_path), RELIABILITY: "best_effort"}))
    graph.user.create_publisher(JointState, "joint_states", RELIABLE)
    (offer,) = graph.user.get_subscriptions_info_by_topic("/joint_states")
    assert offer.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT
