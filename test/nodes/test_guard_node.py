"""The guard and the node that it guards, in one process: who speaks, leases, and automatic returns."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ros_graph import Graph, wait_for
from rclpy.lifecycle import TransitionCallbackReturn
from sensor_msgs.msg import JointState
from std_msgs.msg import Int64
from std_srvs.srv import SetBool

from helpers import published
from stribeck.nodes.command_output import REVOKED
from stribeck.nodes.compensation import CompensationNode
from stribeck.nodes.guard import GuardNode
from stribeck.nodes.qos import latched

pytestmark = pytest.mark.real_time


@pytest.fixture
def parameters(tmp_path: Path) -> dict[str, Any]:
    """What both nodes know."""
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


@pytest.mark.parametrize("make", [CompensationNode, GuardNode])
def test_a_pause_limit_that_is_not_below_the_lease_is_refused(graph, parameters, make):
    """Both would speak; one line says both numbers and where they belong."""
    node = graph.add(make, {**parameters, "pause_limit": 0.2, "heartbeat_timeout": 0.2})
    assert node.trigger_configure() == TransitionCallbackReturn.FAILURE
    for part in ("pause_limit must be shorter than heartbeat_timeout", "0.2 s", "/**"):
        assert part in node._failure_of_transition


def test_automatic_returns_are_bounded_and_said(graph, parameters, capfd):
    """Two of them, each in the log and in diagnostics; then only the service, which allows them anew."""
    node = start(graph.add(CompensationNode, {**parameters, "automatic_returns": 2}))
    wait_for(lambda: node._compensator.enabled, "compensation is enabled")
    states = graph.publisher(JointState, "joint_states")
    revoked = graph.publisher(Int64, REVOKED, latched())
    wait_for(lambda: states.publish(JointState(name=["hinge"])) or node._count, "a state")

    def trip() -> None:
        revoked.publish(Int64(data=node._enabling.period))
        wait_for(lambda: node._enabling.tripped, "the guard's word is heard")
        assert not node._compensator.enabled

    for count in (1, 2):
        trip()
        level, text, figures = node._status()
        assert (level, figures["automatic returns"]) == ("warn", f"{count} of 2")
        assert f"automatic return {count} of 2" in text
        wait_for(lambda: node._compensator.enabled, "it returns by itself")
    trip()
    assert node._status()[1].endswith("enable compensation again")
    graph.call(SetBool, "/compensation/enable", SetBool.Request(data=True))
    assert node._status()[2]["automatic returns"] == "0 of 2"
    said = capfd.readouterr().err
    assert [said.count(f"automatic return {count} of 2") for count in (1, 2)] == [1, 1]
