"""Zero torque and the exchange of drives on a real graph: what the node publishes, refuses and says."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from ros_graph import Graph, wait_for
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from api_made import file_of_joints
from helpers import published
from stribeck.errors import ConfigError, NodeStateError
from stribeck.nodes.compensation import CompensationNode
from stribeck.rigid.urdf import read_urdf
from three_joints import arm_of_three

pytestmark = pytest.mark.real_time

M1 = {**published("xl330", "m1"), "q_offset": 0.0}
MASS, LENGTH, PERIOD = 0.1, 0.1, 0.005
WEIGHT = MASS * 9.80665 * LENGTH * math.sin(0.3)
FREE = 0.8 * 0.25 * (M1["friction_base"] + 0.5 * M1["friction_viscous"])
"""Torque against friction at 0.5 rad/s without goals [N m]."""


def file_of(path: Path, factor: float = 1.0) -> str:
    """A file of drives with so much of the friction."""
    values = {
        **M1,
        "friction_base": factor * M1["friction_base"],
        "friction_viscous": factor * M1["friction_viscous"],
    }
    path.write_text(json.dumps({**values, "model": "m1", "actuator": "xl330"}))
    return str(path)


class Rig:
    """A node of one joint with a pendulum, its states, and what comes out."""

    def __init__(self, graph: Graph, tmp_path: Path, **changes: object) -> None:
        parameters = {
            "joints": ["hinge"], "drives_file": file_of(tmp_path / "one.json"), "hinge.load_mass": MASS,
            "hinge.load_length": LENGTH, "effort_meaning": "none", "ramp_time": 0.1, "slew_limit": 1e5,
            "state_timeout": 10.0, "state_lag": 10.0, "guiding_temperature": 70.0, **changes,
        }  # fmt: skip
        self.node = graph.add(CompensationNode, parameters)
        assert self.node.trigger_configure() == TransitionCallbackReturn.SUCCESS
        assert self.node.trigger_activate() == TransitionCallbackReturn.SUCCESS
        wait_for(lambda: self.node._compensator.enabled, "compensation is enabled")
        self.out = graph.collect(Float64MultiArray, "compensated_command")
        self.told = graph.collect(DiagnosticArray, "/diagnostics")
        self.states = graph.publisher(JointState, "joint_states")
        self.commands = graph.publisher(JointState, "controller_command")
        wait_for(lambda: self.node._output.get_subscription_count(), "the output is connected")
        self.time, self.position = 1.0, 0.3

    def send(self, count: int, velocity: float = 0.0) -> np.ndarray:
        """So many states 5 ms apart; the outputs that follow."""
        for _ in range(count):
            self.time += PERIOD
            self.position += velocity * PERIOD
            message = JointState(name=["hinge"], position=[self.position], velocity=[velocity], effort=[0.0])
            message.header.stamp.sec = int(self.time)
            message.header.stamp.nanosec = round((self.time % 1.0) * 1e9)
            before = len(self.out)
            self.states.publish(message)
            wait_for(lambda before=before: len(self.out) > before, "an output")
        return np.array([found.data[0] for found in self.out[-count:]])

    def guide(self) -> None:
        """Begin the mode with the first state."""
        self.states.publish(JointState(name=["hinge"], position=[0.3], velocity=[0.0], effort=[0.0]))
        wait_for(lambda: self.node._compensator.present.trusted_state, "a state")
        self.node._on_zero_torque(True)

    def words(self) -> str:
        """Sentence of the diagnostics as they are now."""
        count = len(self.told)
        self.node.publish_diagnostics()
        wait_for(lambda: len(self.told) > count, "diagnostics")
        return self.told[-1].status[0].message


def test_the_mode_bears_the_weight_and_lets_it_down(tmp_path):
    """From the first state on the whole weight; left, it falls to nothing within the ramp time, and friction torque alone remains."""
    with Graph() as graph:
        rig = Rig(graph, tmp_path)
        rig.send(3)
        assert rig.node._on_zero_torque(True) == "zero-torque mode is on: the robot can be guided by hand"
        np.testing.assert_allclose(rig.send(30), WEIGHT, rtol=1e-6)
        assert rig.words() == "zero-torque mode"
        rig.node._on_zero_torque(False)
        found = rig.send(30)
        assert np.all(np.diff(found[:20]) < 0.0)
        assert found[9] == pytest.approx(0.5 * WEIGHT, rel=1e-3)
        wait_for(lambda: rig.send(20)[-1] == 0.0 and not rig.node._zero.on, "the joint rests")


def test_a_controller_counts_more(tmp_path):
    """While one sends commands the mode is refused; one that begins to ends it, and diagnostics say so."""
    with Graph() as graph:
        rig = Rig(graph, tmp_path)
        rig.send(3)
        rig.node._on_zero_torque(True)
        rig.send(3)
        rig.commands.publish(JointState(name=["hinge"], position=[0.3]))
        wait_for(lambda: not rig.node._zero.on, "the command arrives")
        assert rig.words() == "zero-torque mode has ended: a controller sends commands"
        with pytest.raises(NodeStateError, match="stop it first"):
            rig.node._on_zero_torque(True)


def test_switching_off_leaves_no_torque(tmp_path):
    with Graph() as graph:
        rig = Rig(graph, tmp_path)
        rig.send(3)
        rig.node._on_zero_torque(True)
        assert rig.send(3)[-1] == pytest.approx(WEIGHT, rel=1e-6)
        rig.node._on_enable(False)
        wait_for(lambda: rig.out[-1].data[0] == 0.0, "zero")
        with pytest.raises(NodeStateError, match="compensation is off"):
            rig.node._on_zero_torque(True)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"hinge.load_mass": 0.0, "hinge.load_length": 0.0}, "gravity torque of the robot"),
        ({"guarded": True}, "guard"),
    ],
    ids=["no weight", "guarded"],
)
def test_what_cannot_carry_is_refused(tmp_path, changes, part):
    """Without a weight, and with a guard, in one line."""
    with Graph() as graph:
        rig = Rig(graph, tmp_path)
        rig.send(2)
        rig.node.trigger_deactivate()
        rig.node.trigger_cleanup()
        rig.node.set_parameters([Parameter(name, value=value) for name, value in changes.items()])
        rig.node.trigger_configure()
        rig.node.trigger_activate()
        rig.node._on_enable(True)
        rig.states.publish(JointState(name=["hinge"], position=[0.3], velocity=[0.0], effort=[0.0]))
        wait_for(lambda: rig.node._count, "a state")
        with pytest.raises(ConfigError, match=part):
            rig.node._on_zero_torque(True)


def test_a_push_at_the_tool_is_published_as_a_wrench(tmp_path):
    """Three joints at rest whose motors hold against a force beyond their friction: it comes back in the frame of the base, without a moment."""
    with Graph() as graph:
        names = ["j1", "j2", "j3"]
        urdf, tool, q = arm_of_three(tmp_path), [0.0, 0.0, 0.2], np.array([0.3, 0.7, 0.9])
        parameters = {
            "joints": names, "drives_file": str(file_of_joints(tmp_path / "p.json", *names)), "urdf": str(urdf),
            "effort_meaning": "motor", "state_timeout": 10.0, "state_lag": 10.0, "tool_point": tool,
        }  # fmt: skip
        node = graph.add(CompensationNode, parameters)
        assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
        assert node.trigger_activate() == TransitionCallbackReturn.SUCCESS
        wait_for(lambda: node._compensator.enabled, "compensation is enabled")
        found, states = (
            graph.collect(WrenchStamped, "external_wrench"),
            graph.publisher(JointState, "joint_states"),
        )
        wait_for(lambda: node._wrench._publisher.get_subscription_count(), "the wrench is heard")
        model, force = read_urdf(urdf).model(names), np.array([8.0, -3.0, 5.0])
        motor = model.mass_matrix_and_bias(q, 0.0 * q)[1] - model.jacobian(q, tool)[:3].T @ force
        for k in range(400):
            message = JointState(name=names, position=q.tolist(), velocity=[0.0] * 3, effort=motor.tolist())
            message.header.stamp.sec, message.header.stamp.nanosec = 1 + k // 200, 5_000_000 * (k % 200)
            count = node._count
            states.publish(message)
            wait_for(lambda count=count: node._count > count, "a state")
        wait_for(lambda: found and found[-1].wrench.force.x > 5.0, "a wrench")
        assert found[-1].header.frame_id == "l0"
        seen = found[-1].wrench
        np.testing.assert_allclose([seen.force.x, seen.force.y, seen.force.z], force, atol=2.0)
        assert math.isnan(seen.torque.x)


def test_before_it_is_configured_there_is_nothing_to_save_or_to_revert(tmp_path):
    """The timer of what was learnt runs from the beginning."""
    with Graph() as graph:
        node = graph.add(
            CompensationNode, {"joints": ["hinge"], "state_file": str(tmp_path / "learned.json")}
        )
        node._save()
        with pytest.raises(NodeStateError, match="no previous file"):
            node._on_revert()


def test_another_file_is_taken_over_by_its_parameter_and_given_back(tmp_path):
    """Three times the friction, without a step, and back by the service; a file that is not there changes nothing."""
    with Graph() as graph:
        rig = Rig(graph, tmp_path)
        assert rig.send(50, 0.5)[-1] == pytest.approx(FREE)
        other = file_of(tmp_path / "other.json", 3.0)
        (result,) = rig.node.set_parameters([Parameter("drives_file", value=other)])
        assert result.successful
        found = rig.send(60, 0.5)
        assert found[-1] == pytest.approx(3.0 * FREE)
        assert np.diff(found).max() < 1.2 * 2.0 * FREE * PERIOD / 0.1
        assert "one.json" in rig.node._on_revert()
        back = rig.send(60, 0.5)
        assert back[-1] == pytest.approx(FREE)
        assert np.diff(back).min() > -1.2 * 2.0 * FREE * PERIOD / 0.1
        assert rig.node.get_parameter("drives_file").value.endswith("one.json")
        (result,) = rig.node.set_parameters([Parameter("drives_file", value=str(tmp_path / "nothing.json"))])
        assert not result.successful
        assert rig.send(3, 0.5)[-1] == pytest.approx(FREE)


def test_a_command_that_cannot_be_passed_on_does_not_end_the_mode(tmp_path):
    """Without an effort in the mode sum the weight stays borne; one with an effort counts at once."""
    with Graph() as graph:
        rig = Rig(graph, tmp_path, output_mode="sum")
        rig.guide()
        np.testing.assert_allclose(rig.send(3), WEIGHT, rtol=1e-6)
        rig.commands.publish(JointState(name=["hinge"], effort=[math.nan]))
        wait_for(lambda: rig.node._compensator.present.wishes.commands, "the command arrives")
        np.testing.assert_allclose(rig.send(3), WEIGHT, rtol=1e-6)
        rig.commands.publish(JointState(name=["hinge"], effort=[0.05]))
        wait_for(lambda: not rig.node._zero.on, "the command arrives")
        wait_for(lambda: rig.out[-1].data[0] == 0.05, "it is passed on")


def test_left_in_the_mode_sum_the_last_torque_is_zero(tmp_path):
    """Nothing follows it, and its receiver keeps it."""
    with Graph() as graph:
        rig = Rig(graph, tmp_path, output_mode="sum")
        rig.guide()
        rig.send(3)
        rig.node._on_zero_torque(False)
        while rig.node._zero.on:
            rig.send(1)
        wait_for(lambda: [found.data[0] for found in rig.out[-4:]] == [0.0] * 4, "zero is repeated")
        assert {found.data[0] for found in rig.out[-4:]} == {0.0}


def test_a_file_that_was_overwritten_is_given_back_as_it_was_read(tmp_path):
    """The former drives take over from memory; what the file holds now does not matter."""
    with Graph() as graph:
        rig = Rig(graph, tmp_path)
        assert rig.send(50, 0.5)[-1] == pytest.approx(FREE)
        same = file_of(tmp_path / "one.json", 3.0)
        rig.node.set_parameters([Parameter("drives_file", value=same)])
        assert rig.send(60, 0.5)[-1] == pytest.approx(3.0 * FREE)
        (tmp_path / "one.json").unlink()
        rig.node._on_revert()
        assert rig.send(60, 0.5)[-1] == pytest.approx(FREE)


def test_drives_stay_while_a_hand_guides(tmp_path):
    """Their weight must not change under it."""
    with Graph() as graph:
        rig = Rig(graph, tmp_path)
        rig.send(3)
        rig.node._on_zero_torque(True)
        rig.send(3)
        other = file_of(tmp_path / "other.json", 3.0)
        (result,) = rig.node.set_parameters([Parameter("drives_file", value=other)])
        assert not result.successful
        assert "end the mode first" in result.reason
        np.testing.assert_allclose(rig.send(3), WEIGHT, rtol=1e-6)
