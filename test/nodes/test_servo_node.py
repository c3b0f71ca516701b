"""The servo node on a real graph with emulated servos behind it."""

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ros_graph import Graph, wait_for
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterValue
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.lifecycle import TransitionCallbackReturn
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

from driving import emulated
from emulated_bus import EmulatedBus
from exciting import record_yaml
from stribeck.files.goal_messages import seconds
from stribeck.nodes.messages import telemetry_topics
from stribeck.nodes.servo import ServoNode

pytestmark = pytest.mark.real_time

COUNT = 2.0 * math.pi / 4096.0


class Commands:
    """Goals on ``joint_goals``, again and again, until they are to stop."""

    def __init__(self, graph: Graph) -> None:
        self._publisher = graph.publisher(JointState, "joint_goals")
        self.goals: dict[str, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(0.01):
            goals = dict(self.goals)
            if goals:
                self._publisher.publish(JointState(name=list(goals), position=list(goals.values())))

    def stop(self) -> None:
        """No more goals."""
        self._ended.set()
        self._thread.join()


class Setup:
    """A servo node, its emulated servos, and what it publishes."""

    def __init__(self, graph: Graph, bus: EmulatedBus, node: ServoNode) -> None:
        self.graph, self.bus, self.node = graph, bus, node
        self.states = graph.collect(JointState, "joint_states")
        self.sent = graph.collect(JointState, "joint_commands")
        self.diagnostics = graph.collect(DiagnosticArray, "/diagnostics")
        self.telemetry_topic = telemetry_topics()[-1]
        self.telemetry = graph.collect(self.telemetry_topic.type, self.telemetry_topic.name)
        self.commands = Commands(graph)

    def position(self, joint: str = "j1") -> float:
        """Where a joint is, as published last."""
        message = self.states[-1]
        return message.position[message.name.index(joint)]

    def told(self, joint: str = "j1") -> dict[str, float]:
        """What telemetry said last of a joint."""
        return dict(
            next(values for name, values in self.telemetry_topic.read(self.telemetry[-1]) if name == joint)
        )

    def said(self, level: bytes, *parts: str) -> bool:
        """Whether diagnostics of the node said so."""
        return any(
            status.level == level and all(part in status.message for part in parts)
            for array in self.diagnostics
            for status in array.status
            if status.name == "servo"
        )

    def call(self, service: str, on: bool = True) -> Any:
        """Answer of a service of the node."""
        if service == "enable":
            return self.graph.call(SetBool, "/servo/enable", SetBool.Request(data=on))
        return self.graph.call(Trigger, f"/servo/{service}", Trigger.Request())


ERROR, WARN, OK = b"\x02", b"\x01", b"\x00"


@contextmanager
def running(tmp_path: Path, *models: str, **parameters: Any) -> Iterator[Setup]:
    """An active servo node with emulated servos j1, j2, …"""
    joint = parameters.pop("joint", {})
    servos = emulated(*(models or ("xl330",)))
    with EmulatedBus(servos) as bus, Graph() as graph:
        path = record_yaml(tmp_path / "servos.yaml", bus.path, len(servos), joint=joint)
        node = graph.add(ServoNode, {"config": str(path), **parameters})
        assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
        setup = Setup(graph, bus, node)
        try:
            assert node.trigger_activate() == TransitionCallbackReturn.SUCCESS
            wait_for(lambda: len(setup.states) > 5 and setup.telemetry, "states and telemetry")
            yield setup
        finally:
            setup.commands.stop()


def test_goals_are_followed_and_everything_is_said(tmp_path):
    """Position, telemetry and the goal as sent, in whole counts; stamps are of now and rise."""
    with running(tmp_path) as s:
        assert not s.bus.servos[0].torque_enabled, "torque waits for the first goal"
        before = time.time()
        s.commands.goals = {"j1": 0.5}
        wait_for(lambda: abs(s.position() - 0.5) < 0.1 and s.sent, "0.5 rad")
        assert s.sent[-1].position[0] == pytest.approx(0.5, abs=0.5 * COUNT + 1e-9)
        assert s.sent[-1].position[0] / COUNT == pytest.approx(
            round(s.sent[-1].position[0] / COUNT), abs=1e-6
        )
        told = s.told()
        assert {"pwm", "voltage", "temperature", "current", "torque_enable", "p_gain", "gap"} <= set(told)
        assert told["torque_enable"] == 1.0
        assert told["voltage"] == pytest.approx(5.0, abs=0.2)
        assert abs(told["pwm"] * 885 - round(told["pwm"] * 885)) < 1e-6
        stamps = [seconds(message.header.stamp) for message in s.states]
        assert np.all(np.diff(stamps) > 0.0)
        assert before - 5.0 < stamps[-1] <= time.time()


def test_goals_are_clipped_to_the_limits(tmp_path):
    """3 rad are asked for, 1.5 rad is the limit: that is what is sent, and published as sent."""
    with running(tmp_path, joint={"position_limits": [-1.5, 1.5]}) as s:
        s.commands.goals = {"j1": 3.0}
        wait_for(lambda: s.sent, "a goal that was sent")
        assert s.sent[-1].position[0] == pytest.approx(1.5, abs=COUNT)


@pytest.mark.slow
def test_nan_switches_one_joint_off_and_a_joint_that_is_not_named_grows_stale(tmp_path):
    """Two joints: NaN lets one go while the other holds; then only one is named, and the other's goal stops all."""
    with running(tmp_path, "xl330", "xl330") as s:
        one, other = s.bus.servos
        s.commands.goals = {"j1": 0.2, "j2": 0.3, "stranger": 1.0}
        wait_for(lambda: one.torque_enabled and other.torque_enabled, "torque on both")
        s.commands.goals = {"j1": math.nan, "j2": 0.3}
        wait_for(lambda: not one.torque_enabled, "torque off on j1")
        assert other.torque_enabled
        s.commands.goals = {"j1": 0.2, "j2": 0.3}
        wait_for(lambda: one.torque_enabled, "torque on again")
        s.commands.goals = {"j1": 0.2}
        wait_for(lambda: not (one.torque_enabled or other.torque_enabled), "torque off on both")
        wait_for(lambda: s.said(ERROR, "no command for"), "the reason")


@pytest.mark.slow
def test_no_torque_needs_no_commands(tmp_path):
    """A last goal of NaN, and then silence, is no fault."""
    with running(tmp_path) as s:
        s.commands.goals = {"j1": 0.1}
        wait_for(lambda: s.bus.servos[0].torque_enabled, "torque on")
        s.commands.goals = {"j1": math.nan}
        wait_for(lambda: not s.bus.servos[0].torque_enabled, "torque off")
        s.commands.stop()
        count = len(s.states)
        wait_for(lambda: len(s.states) > count + 150, "1.5 s of states")
        assert not s.said(ERROR)


@pytest.mark.slow
def test_stale_commands_switch_torque_off_until_told_otherwise(tmp_path):
    """The reason is in diagnostics; enabling is refused until the fault is cleared; then goals are obeyed again."""
    with running(tmp_path) as s:
        s.commands.goals = {"j1": 0.3}
        wait_for(lambda: s.bus.servos[0].torque_enabled, "torque on")
        s.commands.goals = {}
        wait_for(lambda: not s.bus.servos[0].torque_enabled, "torque off")
        wait_for(lambda: s.said(ERROR, "no command for", "torque is off"), "the reason")
        refused = s.call("enable")
        assert not refused.success
        assert "no command for" in refused.message
        s.commands.goals = {"j1": 0.4}
        assert s.call("clear").success
        count = len(s.states)
        wait_for(lambda: len(s.states) > count + 5, "states after the fault")
        assert not s.bus.servos[0].torque_enabled
        assert s.call("enable").success
        wait_for(lambda: abs(s.position() - 0.4) < 0.1, "0.4 rad")


def test_disabling_and_deactivating_switch_torque_off(tmp_path):
    """Both at once, and neither is a fault; after cleanup the port is free for others."""
    with running(tmp_path) as s:
        for let_go, again in (
            (lambda: s.call("enable", False), lambda: s.call("enable")),
            (s.node.trigger_deactivate, s.node.trigger_activate),
        ):
            s.commands.goals = {"j1": 0.2}
            wait_for(lambda: s.bus.servos[0].torque_enabled, "torque on")
            let_go()
            assert not s.bus.servos[0].torque_enabled
            again()
        s.node.trigger_deactivate()
        assert not s.bus.servos[0].torque_enabled
        assert not s.said(ERROR)
        s.node.trigger_cleanup()
        assert s.node.trigger_configure() == TransitionCallbackReturn.SUCCESS


def test_gain_is_set_while_it_runs_and_confirmed_by_telemetry(tmp_path):
    """One gain for all joints, one for each; what a servo does not take, and another number, is refused."""
    with running(tmp_path, "xl330", "xl330", p_gain=[300.0]) as s:

        def ask(*gains: float) -> Any:
            value = ParameterValue(type=8, double_array_value=gains)
            request = SetParameters.Request(parameters=[ParameterMessage(name="p_gain", value=value)])
            return s.graph.call(SetParameters, "/servo/set_parameters", request).results[0]

        assert s.told("j1")["p_gain"] == s.told("j2")["p_gain"] == 300.0
        assert ask(200.0).successful
        wait_for(lambda: s.told("j1")["p_gain"] == s.told("j2")["p_gain"] == 200.0, "gain 200")
        assert ask(100.0, 400.0).successful
        wait_for(lambda: (s.told("j1")["p_gain"], s.told("j2")["p_gain"]) == (100.0, 400.0), "100 and 400")
        for gains, part in (((100000.0,), "gain"), ((1.5,), "gain"), ((1.0, 2.0, 3.0), "one for each of 2")):
            refused = ask(*gains)
            assert not refused.successful
            assert part in refused.reason


def test_parameters_that_are_set_together_are_taken_together_or_not_at_all(tmp_path):
    """A gain beside something that cannot change now: the servo keeps its gain."""
    with running(tmp_path, p_gain=[300.0]) as s:
        parameters = [
            ParameterMessage(name="p_gain", value=ParameterValue(type=8, double_array_value=[777.0])),
            ParameterMessage(name="rate", value=ParameterValue(type=3, double_value=50.0)),
        ]
        request = SetParametersAtomically.Request(parameters=parameters)
        answer = s.graph.call(SetParametersAtomically, "/servo/set_parameters_atomically", request).result
        assert not answer.successful
        assert "rate" in answer.reason
        assert s.bus.servos[0].numbers["position_p_gain"] == 300


@pytest.mark.slow
def test_a_servo_that_is_not_there_fails_to_configure(tmp_path):
    """And the port is left open for nobody."""
    with EmulatedBus(emulated("xl330")) as bus, Graph() as graph:
        path = record_yaml(tmp_path / "servos.yaml", bus.path, 2)
        node = graph.add(ServoNode, {"config": str(path)})
        assert node.trigger_configure() == TransitionCallbackReturn.FAILURE
        path = record_yaml(tmp_path / "one.yaml", bus.path, 1)
        other = graph.add(ServoNode, {"config": str(path)}, namespace="other")
        assert other.trigger_configure() == TransitionCallbackReturn.SUCCESS


@pytest.mark.parametrize(
    "parameters", [{}, {"config": "/not/there.yaml"}, {"p_gain": [1.0, 2.0]}, {"p_gain": [99999.0]}]
)
def test_parameters_that_do_not_fit_fail_to_configure(tmp_path, parameters):
    """No file, one that is not there, gains for joints that are not there or that no servo has."""
    path = record_yaml(tmp_path / "servos.yaml", "/dev/null", 1)
    with Graph() as graph:
        base = {"config": str(path)} if "p_gain" in parameters else {}
        node = graph.add(ServoNode, {**base, **parameters})
        assert node.trigger_configure() == TransitionCallbackReturn.FAILURE


def test_a_joint_outside_its_limits_is_seen_but_not_energised(tmp_path):
    """The node is active and publishes states, says why torque stays off, and enables when the joint is back."""
    with running(tmp_path, joint={"position_limits": [0.5, 1.0]}) as s:
        wait_for(lambda: s.said(ERROR, "outside"), "the reason")
        s.commands.goals = {"j1": 0.7}
        refused = s.call("enable")
        assert not refused.success
        assert "outside" in refused.message
        assert s.bus.servos[0].first_torque is None
        s.bus.push(1, 0.05, 0.19)  # it comes to rest at 0.75 rad
        wait_for(lambda: 0.5 < s.position() < 1.0 and s.call("enable").success, "enabled in between")


@pytest.mark.slow
def test_a_gap_is_in_diagnostics_and_telemetry(tmp_path):
    """The bus is silent for 60 ms: it runs on, a warning names the joint, telemetry has the gap once."""
    with running(tmp_path) as s:
        s.commands.goals = {"j1": 0.3}
        wait_for(lambda: s.bus.servos[0].torque_enabled, "torque on")
        s.telemetry.clear()
        s.bus.silence(0.06)
        wait_for(lambda: s.said(WARN, "no answer from joint 'j1' for"), "a warning")
        gaps = [values["gap"] for m in s.telemetry for _, values in s.telemetry_topic.read(m)]
        assert max(gaps) > 0.05
        assert s.bus.servos[0].torque_enabled


def test_a_lost_port_is_said_once_and_cleared_when_it_is_back(tmp_path):
    """Unplugged in mid-motion: an error that says what becomes of the servo; clear and enable bring it back."""
    link = tmp_path / "port"
    with EmulatedBus(emulated("xl330"), link=link) as bus, Graph() as graph:
        path = record_yaml(tmp_path / "servos.yaml", str(link), 1)
        node = graph.add(ServoNode, {"config": str(path)})
        assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
        s = Setup(graph, bus, node)
        try:
            node.trigger_activate()
            s.commands.goals = {"j1": 0.3}
            wait_for(lambda: bus.servos[0].torque_enabled, "torque on")
            bus.unplug()
            wait_for(lambda: s.said(ERROR, "lost", "watchdog"), "the reason")
            assert not s.call("clear").success
            bus.plug()
            wait_for(lambda: s.call("clear").success, "cleared")
            assert s.call("enable").success
            wait_for(lambda: abs(s.position() - 0.3) < 0.1, "0.3 rad")
        finally:
            s.commands.stop()


def test_goals_in_current_mode_come_as_effort(tmp_path):
    """[A] as effort moves a joint in current mode; its goal is not published as a position."""
    with running(tmp_path, joint={"mode": "current"}) as s:
        publisher = s.graph.publisher(JointState, "joint_goals")

        def push() -> bool:
            publisher.publish(JointState(name=["j1"], effort=[0.3]))
            return s.position() > 0.3

        wait_for(push, "motion")
        assert not s.sent


def test_goals_that_make_no_sense_are_not_obeyed(tmp_path):
    """Infinite, or without a position: nothing is energised, and nothing ends."""
    with running(tmp_path) as s:
        publisher = s.graph.publisher(JointState, "joint_goals")
        for message in (
            JointState(name=["j1"], position=[math.inf]),
            JointState(name=["j1"]),
            JointState(name=["x"], position=[1.0]),
        ):
            publisher.publish(message)
        count = len(s.states)
        wait_for(lambda: len(s.states) > count + 30, "states")
        assert s.bus.servos[0].first_torque is None
        assert not s.said(ERROR)
