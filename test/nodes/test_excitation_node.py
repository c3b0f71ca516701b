"""The excitation node with a servo node and emulated servos: disturbances, emergency stop, causes, dry run."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ros_graph import Graph, wait_for
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.lifecycle import TransitionCallbackReturn
from std_msgs.msg import Bool
from std_srvs.srv import SetBool, Trigger

from driving import emulated
from emulated_bus import EmulatedBus
from exciting import PATIENT, record_yaml, robot_yaml
from stribeck.nodes.excitation import ExcitationNode
from stribeck.nodes.qos import latched
from stribeck.nodes.servo import ServoNode
from stribeck.nodes.statuses import outcome_of
from stribeck.recordings.sources import read_recordings

pytestmark = pytest.mark.real_time

LONGEST = 200.0
"""Longest session [s]."""


class Bench:
    """Servo node and excitation node on a graph, active.

    :ivar results: how sessions ended.
    :ivar phases: of the session.
    """

    def __init__(self, graph: Graph, bus: EmulatedBus, config: Path) -> None:
        self.graph, self.bus = graph, bus
        self.results: list[DiagnosticStatus] = graph.collect(
            DiagnosticStatus, "/excitation/result", latched()
        )
        self.progress: list[DiagnosticStatus] = graph.collect(
            DiagnosticStatus, "/excitation/progress", latched()
        )
        self.servo = graph.add(ServoNode, {"config": str(config)})
        self.excitation = graph.add(ExcitationNode, {"config": str(config)})
        for node in (self.servo, self.excitation):
            assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
            assert node.trigger_activate() == TransitionCallbackReturn.SUCCESS
        heard = graph.user.get_subscriptions_info_by_topic
        wait_for(lambda: any(one.node_name == "excitation" for one in heard("/joint_states")), "a listener")

    def trigger(self, service: str) -> Any:
        """Call a service of type Trigger."""
        return self.graph.call(Trigger, service, Trigger.Request())

    def start(self) -> None:
        """Start a session."""
        self.results.clear()
        answer = self.trigger("/excitation/start")
        assert answer.success, answer.message

    def reaches(self, phase: str) -> None:
        """Wait for a phase of the session."""
        wait_for(lambda: self.phase == phase or self.results, f"phase {phase}", LONGEST)
        assert self.phase == phase, self.results

    @property
    def phase(self) -> str:
        """The latest phase."""
        return str(self.progress[-1].message) if self.progress else ""

    def ends(self) -> dict[str, Any]:
        """How the session ended."""
        wait_for(lambda: self.results, "the end of the session", LONGEST)
        return outcome_of(self.results[-1])


@contextmanager
def bench(tmp_path: Path, **top: Any) -> Iterator[Bench]:
    """Both nodes with one emulated servo and one run of 6 s."""
    with EmulatedBus(emulated("xl330")) as bus, Graph() as graph:
        yield Bench(graph, bus, record_yaml(tmp_path / "record.yaml", bus.path, **top))


def test_answers_lost_for_a_while_repeat_the_run(tmp_path, capfd):
    """The servo node switches torque off, the excitation node says why, recovers it, and plays the run again."""
    with bench(tmp_path) as s:
        s.start()
        s.reaches("running")
        s.bus.silence(PATIENT["silence_timeout"] + 0.5)
        result = s.ends()
    assert result["end"] == "finished", result
    assert len(result["bags"]) == 1
    lines = [text for text in capfd.readouterr().err.splitlines() if "repeated" in text]
    assert len(lines) == len(result["disturbed"]) >= 1
    expected = "[excitation]: run 1 (sin_sin, gain 400): servo: joint 'j1': its servo has not answered for"
    assert any(expected in line for line in lines)
    (log,) = read_recordings(tmp_path / "bags")
    assert log.duration == pytest.approx(6.0, abs=0.3)


def test_a_status_is_not_older_than_its_stamp(tmp_path):
    """What was true before a recovery does not count as a fault after it, however long the status takes.

    What happened: the stamp was that of the publication, and a run was repeated twice for one disturbance.
    """
    with bench(tmp_path) as s:
        told = s.graph.collect(DiagnosticArray, "/diagnostics")
        before, asked = s.servo._status, []

        def status():
            asked.append(s.servo.get_clock().now().nanoseconds)
            return before()

        s.servo._status = status
        s.servo.publish_diagnostics()
        name = s.servo.get_fully_qualified_name().lstrip("/")
        wait_for(lambda: [one for one in told if one.status[0].name == name], "diagnostics")
        stamped = [one.header.stamp for one in told if one.status[0].name == name][-1]
        assert stamped.sec * 10**9 + stamped.nanosec <= asked[-1]


@pytest.mark.ci
def test_an_emergency_stop_that_the_servos_hear_first_is_the_cause(tmp_path):
    """It is heard here when the session has already ended for want of torque.

    What happened: the session had failed, because a joint had switched its torque off.
    """
    with bench(tmp_path) as s:
        button = s.graph.publisher(Bool, "emergency_stop")
        s.start()
        s.reaches("running")
        player = s.excitation._player
        wait_for(lambda: s.bus.servos[0].torque_enabled, "torque")
        s.servo._driver.disable("for a test")
        wait_for(lambda: player.session.over, "the end for want of torque")
        button.publish(Bool(data=True))
        result = s.ends()
    assert result["end"] == "interrupted"
    assert result["reason"].endswith("emergency stop")


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("qos", [10, latched()], ids=["volatile", "latched"])
def test_an_emergency_stop_switches_torque_off_until_it_is_cleared(tmp_path, qos):
    """In mid-run: torque off, the session ends and is not repeated; neither start nor enable nor clear help while it is
    pressed, and after its release only clear and enable."""
    with bench(tmp_path) as s:
        button = s.graph.publisher(Bool, "emergency_stop", qos)
        wait_for(lambda: button.get_subscription_count() >= 2, "both nodes listen")
        s.start()
        s.reaches("running")
        wait_for(lambda: s.bus.servos[0].torque_enabled, "torque")
        button.publish(Bool(data=True))
        wait_for(lambda: not s.bus.servos[0].torque_enabled, "torque off")
        result = s.ends()
        assert (result["end"], result["disturbed"]) == ("interrupted", [])
        assert result["reason"].endswith("emergency stop")
        assert s.servo._driver.state == "fault"
        for service, part in (
            ("/excitation/start", "emergency stop is pressed"),
            ("/servo/clear", "still pressed"),
            ("/servo/recover", "emergency stop"),
        ):
            answer = s.trigger(service)
            assert not answer.success
            assert part in answer.message
        button.publish(Bool(data=False))
        wait_for(lambda: not s.servo._emergency_stop.pressed, "the release")
        wait_for(lambda: not s.excitation._emergency_stop.pressed, "the release")
        enabled = s.graph.call(SetBool, "/servo/enable", SetBool.Request(data=True))
        assert not enabled.success
        assert "emergency stop" in enabled.message
        assert s.trigger("/servo/clear").success
        assert s.graph.call(SetBool, "/servo/enable", SetBool.Request(data=True)).success
        assert not s.bus.servos[0].torque_enabled


def test_a_stop_that_was_pressed_before_the_nodes_started_is_heard(tmp_path):
    """Latched by its publisher: the servo node is activated into the fault."""
    with EmulatedBus(emulated("xl330")) as bus, Graph() as graph:
        button = graph.user.create_publisher(Bool, "emergency_stop", latched())
        button.publish(Bool(data=True))
        config = record_yaml(tmp_path / "record.yaml", bus.path)
        servo = graph.add(ServoNode, {"config": str(config)})
        wait_for(lambda: servo._emergency_stop.pressed, "the stop")
        assert servo.trigger_configure() == TransitionCallbackReturn.SUCCESS
        assert servo.trigger_activate() == TransitionCallbackReturn.SUCCESS
        assert (servo._driver.state, servo._driver.reason) == ("fault", "emergency stop")
        assert bus.servos[0].first_torque is None


def test_a_servo_node_that_cannot_configure_ends_the_start_with_its_reason(tmp_path):
    """Not after the patience of the start with a guess; its own words, which its diagnostics repeat."""
    with Graph() as graph:
        config = record_yaml(tmp_path / "record.yaml", "/nowhere/servo")
        results = graph.collect(DiagnosticStatus, "/excitation/result", latched())
        excitation = graph.add(ExcitationNode, {"config": str(config), "patience": 500.0})
        assert excitation.trigger_configure() == TransitionCallbackReturn.SUCCESS
        assert excitation.trigger_activate() == TransitionCallbackReturn.SUCCESS
        assert graph.call(Trigger, "/excitation/start", Trigger.Request()).success
        servo = graph.add(ServoNode, {"config": str(config)})
        heard = graph.collect(DiagnosticArray, "/diagnostics")
        assert servo.trigger_configure() == TransitionCallbackReturn.FAILURE
        wait_for(lambda: results, "the end")
        result = outcome_of(results[-1])
        assert result["end"] == "failed"
        assert result["reason"].startswith("servo: cannot configure: cannot open /nowhere/servo")
        wait_for(lambda: heard, "its diagnostics")


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("make", [record_yaml, robot_yaml])
def test_a_dry_run_moves_nothing_and_says_what_was_checked(tmp_path, make):
    """By a service: limits, picture, and that collisions were not checked without a URDF; no servo is there at all."""
    arguments = (
        (tmp_path / "record.yaml", "/nowhere/servo") if make is record_yaml else (tmp_path / "robot.yaml",)
    )
    commander = "servo" if make is record_yaml else "forward"
    with Graph() as graph:
        config = make(*arguments)
        node = graph.add(ExcitationNode, {"config": str(config), "commander": commander})
        answer = graph.call(Trigger, "/excitation/dry_run", Trigger.Request(), LONGEST)
        assert answer.success, answer.message
        assert "limits: satisfied" in answer.message
        assert "self-collisions: not checked" in answer.message
        assert node._player is None
    assert (tmp_path / "bags" / "dry_run.png").is_file()


def test_a_dry_run_beyond_the_limits_says_which(tmp_path):
    """In one line, as the answer of the service."""
    with Graph() as graph:
        config = record_yaml(
            tmp_path / "record.yaml", "/nowhere/servo", joint={"position_limits": [-1.0, 1.0]}
        )
        graph.add(ExcitationNode, {"config": str(config)})
        answer = graph.call(Trigger, "/excitation/dry_run", Trigger.Request(), LONGEST)
    assert not answer.success
    assert "its limits are -1 to 1 rad" in answer.message
    assert len(answer.message.splitlines()) == 1
    assert math.isfinite(len(answer.message))
