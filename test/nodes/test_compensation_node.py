"""The compensation node on a real graph: what it publishes in each mode, and its faults."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from ros_graph import Graph, wait_for
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from rclpy.clock import ClockType
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool

from helpers import published
from stribeck.nodes.compensation import CompensationNode

pytestmark = pytest.mark.real_time

M1 = {**published("xl330", "m1"), "q_offset": 0.0}
BUDGET = M1["friction_base"] + 1.0 * M1["friction_viscous"]
FREE = 0.25 * BUDGET
"""What is sure of it: without goals no more is cancelled."""
STALE = 5.0
"""Age of states above which the torque is zero [s]: longer than a machine that is busy with other work stands still."""


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
        "state_timeout": STALE,
        "state_lag": 10.0,
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


class Rig:
    """A node that is enabled, a robot with a clock, and what comes out."""

    def __init__(self, graph: Graph, parameters: dict[str, object]) -> None:
        self.graph = graph
        self.node = graph.add(CompensationNode, parameters)
        activate(self.node)
        self.out = graph.collect(Float64MultiArray, "compensated_command")
        self.told = graph.collect(DiagnosticArray, "/diagnostics")
        self.states = graph.publisher(JointState, "joint_states")
        wait_for(lambda: self.node._output.get_subscription_count(), "the output is connected")
        self.time = 100.0
        self.position = 0.2

    def send(self, **changes: object) -> float:
        """One more state 5 ms later; the torque that follows."""
        dt = changes.pop("dt", 0.005)
        self.time += dt
        self.position += 1.0 * dt
        message = state(self.time, position=self.position)
        for name, value in changes.items():
            setattr(message, name, value)
        count = len(self.out)
        self.states.publish(message)
        wait_for(lambda: len(self.out) > count, "an output")
        return self.out[-1].data[0]

    def run(self) -> None:
        """Two good states: full torque."""
        self.send()
        assert self.send() == pytest.approx(0.8 * FREE)

    def diagnosis(self) -> tuple[bytes, str]:
        """Level and sentence, as they are now."""
        count = len(self.told)
        self.node.publish_diagnostics()
        wait_for(lambda: len(self.told) > count, "diagnostics")
        status = self.told[-1].status[0]
        return status.level, status.message


@pytest.fixture
def rig(parameters):
    """A rig on a graph of its own."""
    with Graph() as graph:
        yield Rig(graph, parameters)


@pytest.mark.slow
def test_friction_torque_of_a_moving_joint(parameters):
    """0.8 of what is sure of the budget in the direction of motion, one message per state; zero on deactivation."""
    with Graph() as graph:
        node = graph.add(CompensationNode, parameters)
        activate(node)
        out = graph.collect(Float64MultiArray, "compensated_command")
        states = graph.publisher(JointState, "joint_states")
        wait_for(lambda: node._output.get_subscription_count(), "the output is connected")
        for k in range(5):
            states.publish(state(1.0 + 0.005 * k, position=0.2 + 0.005 * k))
            wait_for(lambda k=k: len(out) > k, f"output {k}")
        assert out[0].data[0] == 0.0, "the first state has no time before it"
        np.testing.assert_allclose([m.data[0] for m in out[1:]], 0.8 * FREE)
        node.trigger_deactivate()
        wait_for(lambda: out[-1].data[0] == 0.0, "zero after deactivation")


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"position": [math.nan]}, "not a number"),
        ({"velocity": [math.inf]}, "not a number"),
        ({"dt": -2.0 * STALE}, "time jumped back"),
        ({"name": ["hinge", "hinge"], "position": [0.0, 0.0], "velocity": [1.0, 1.0]}, "joint hinge twice"),
        ({"name": ["hinge", "other"], "position": [0.0, 0.0], "velocity": [1.0, 1.0]}, "unknown joint other"),
        ({"dt": 2.0 * STALE}, "no states for 10000 ms"),
    ],
    ids=["nan", "infinite", "back", "doubled", "unknown", "gap"],
)
def test_a_state_in_doubt_gives_zero_and_says_why(rig, changes, part):
    """One such state: zero at once, a warning that says what was found; good states bring the torque back."""
    rig.run()
    assert rig.send(**changes) == 0.0
    level, message = rig.diagnosis()
    assert (level, part in message) == (DiagnosticStatus.WARN, True), message
    rig.run()
    assert rig.diagnosis() == (DiagnosticStatus.OK, "compensating")


def test_a_state_that_comes_twice_is_as_if_it_were_lost(rig):
    """The torque stays for as long as no state at all would leave it."""
    rig.run()
    assert rig.send(dt=0.0) == pytest.approx(0.8 * FREE)
    rig.run()


@pytest.mark.parametrize(("meaning", "expected"), [("motor", 0.0), ("none", 0.8 * FREE)])
def test_an_effort_that_cannot_be(parameters, tmp_path, meaning, expected):
    """1e9 N m: zero where the law needs the effort, nothing at all where it has no meaning."""
    values = {**published("xl330", "m3"), "q_offset": 0.0}
    if meaning == "motor":
        (tmp_path / "m1.json").write_text(json.dumps({**values, "model": "m3", "actuator": "xl330"}))
    with Graph() as graph:
        rig = Rig(graph, {**parameters, "effort_meaning": meaning})
        rig.send()
        assert rig.send() != 0.0
        assert rig.send(effort=[1e9]) == pytest.approx(expected)


def test_misspelt_parameters_are_said(parameters, capfd):
    """Of a joint: refused, and diagnostics say so. Of the node: a warning with what is valid; others' are let be."""
    with Graph() as graph:
        node = graph.add(CompensationNode, {**parameters, "hinge.max_torqe": 0.1})
        told = graph.collect(DiagnosticArray, "/diagnostics")
        assert node.trigger_configure() == TransitionCallbackReturn.FAILURE
        wait_for(lambda: told and told[-1].status[0].level == DiagnosticStatus.ERROR, "the failure")
        assert "hinge.max_torqe" in told[-1].status[0].message
        assert "max_torque" in told[-1].status[0].message
    with Graph() as graph:
        node = graph.add(
            CompensationNode, {**parameters, "gian": 0.4, "p_gain": 100.0, "use_sim_time": False}
        )
        assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    unknown, _, valid = capfd.readouterr().err.rpartition("; valid: ")
    assert unknown.endswith("unknown parameters, which have no effect: gian")
    assert " gain," in valid


def test_a_guard_that_is_not_there_is_missed(parameters):
    """``guarded`` promises that somebody watches."""
    with Graph() as graph:
        rig = Rig(
            graph, {**parameters, "guarded": True, "pause_limit": STALE, "heartbeat_timeout": 2.0 * STALE}
        )
        rig.run()
        level, message = rig.diagnosis()
        assert (level, "no guard is running" in message) == (DiagnosticStatus.WARN, True), message


def test_bytes_that_are_no_state_end_nothing(rig):
    """A publisher with damaged messages: they are logged, the next states are served."""
    rig.run()
    rig.states.publish(b"\x00\x07\x00\x00junk")
    rig.states.publish(b"\x00\x01\x00\x00" + b"\xff" * 40)
    rig.run()


@pytest.mark.slow
def test_time_of_the_graph_that_stands_still_stops_nothing(parameters):
    """use_sim_time without a /clock: torque follows the stamps of states, staleness the steady clock."""
    with Graph() as graph:
        rig = Rig(graph, {**parameters, "use_sim_time": True})
        assert rig.node.get_clock().clock_type == ClockType.ROS_TIME
        assert rig.node.get_clock().now().nanoseconds == 0, "there is no clock"
        rig.run()
        count = len(rig.out)
        wait_for(lambda: len(rig.out) > count and rig.out[-1].data[0] == 0.0, "zero when states stop")
        assert "no states for" in rig.diagnosis()[1]
        rig.run()


def test_the_file_may_be_edited_while_it_runs(rig, tmp_path):
    """What was read counts until the node is configured again; a broken file is then refused in one line."""
    rig.run()
    path = tmp_path / "m1.json"
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    assert rig.send() == pytest.approx(0.8 * FREE)
    rig.node.trigger_deactivate()
    rig.node.trigger_cleanup()
    assert rig.node.trigger_configure() == TransitionCallbackReturn.FAILURE
    values = {**json.loads(text), "friction_base": 2.0 * M1["friction_base"]}
    path.write_text(json.dumps(values))
    activate(rig.node)
    wait_for(lambda: rig.node._output.get_subscription_count(), "the output is connected again")
    rig.send()
    assert rig.send() == pytest.approx(0.8 * (FREE + 0.25 * M1["friction_base"]))


def set_parameter(rig: Rig, name: str, value: object) -> tuple[bool, str]:
    """As ``ros2 param set`` does."""
    request = SetParametersAtomically.Request(parameters=[Parameter(name, value=value).to_parameter_msg()])
    result = rig.graph.call(
        SetParametersAtomically, "/compensation/set_parameters_atomically", request
    ).result
    return result.successful, result.reason


def test_the_gain_can_be_set_while_it_runs(rig):
    """It counts from the next state on; what is no gain, and what cannot change now, is refused with the reason."""
    rig.run()
    assert set_parameter(rig, "gain", 0.4) == (True, "")
    assert rig.send() == pytest.approx(0.4 * FREE)
    for name, value, part in (
        ("gain", 7.0, ""),
        ("gain", math.nan, ""),
        ("output_mode", "sum", "while the node is not configured"),
        ("hinge.parameter_file", "other.json", "while the node is not configured"),
    ):
        done, reason = set_parameter(rig, name, value)
        assert not done, name
        assert part in reason
    assert rig.send() == pytest.approx(0.4 * FREE)
    request = GetParameters.Request(names=["gain"])
    found = rig.graph.call(GetParameters, "/compensation/get_parameters", request).values
    assert found[0].double_value == 0.4


def test_the_enable_service(rig):
    """Off is zero at once and stays; on starts anew; before activation it is refused with what to do."""
    enable = lambda on: rig.graph.call(SetBool, "/compensation/enable", SetBool.Request(data=on))  # noqa: E731
    rig.run()
    count = len(rig.out)
    assert enable(False).success
    wait_for(lambda: len(rig.out) > count and rig.out[-1].data[0] == 0.0, "zero")
    assert rig.send() == 0.0
    assert enable(True).success
    rig.run()
    rig.node.trigger_deactivate()
    answer = enable(True)
    assert (answer.success, answer.message) == (False, "activate the node first")


def test_a_law_that_would_feed_on_itself_is_refused(parameters, tmp_path, capfd):
    """M3 with a friction that grows by more than the torque against it: one line, and the node is not configured."""
    values = {**published("xl330", "m3"), "load_friction_base": 1.2, "q_offset": 0.0}
    (tmp_path / "m1.json").write_text(json.dumps({**values, "model": "m3", "actuator": "xl330"}))
    with Graph() as graph:
        node = graph.add(CompensationNode, {**parameters, "effort_meaning": "motor"})
        assert node.trigger_configure() == TransitionCallbackReturn.FAILURE
        node = graph.add(CompensationNode, {**parameters, "effort_meaning": ""})
        assert node.trigger_configure() == TransitionCallbackReturn.FAILURE
    said = capfd.readouterr().err
    assert "for the compensation to be stable" in said
    assert "effort_meaning must be one of" in said


def test_load_terms_that_are_zero_are_said(parameters, tmp_path):
    """effort_meaning none and a law with load: on the diagnostics, as a figure beside it."""
    values = {**published("xl330", "m3"), "q_offset": 0.0}
    (tmp_path / "m1.json").write_text(json.dumps({**values, "model": "m3", "actuator": "xl330"}))
    with Graph() as graph:
        rig = Rig(graph, parameters)
        rig.send()
        rig.diagnosis()
        figures = {pair.key: pair.value for pair in rig.told[-1].status[0].values}
        assert figures["load terms"] == "zero: effort_meaning is none"
