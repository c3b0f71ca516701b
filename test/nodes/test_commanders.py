"""Sessions through the commanders: what reaches controllers of ros2_control, and what ends a session."""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ros_graph import PATIENCE, Graph, wait_for
from rcl_interfaces.msg import SetParametersResult
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from fake_robot import FakeRobot, reference_of
from helpers import refusal
from stribeck.files.goal_messages import seconds
from stribeck.model.bench import Pendulum
from stribeck.model.trajectories import Trajectory
from stribeck.nodes import commanders
from stribeck.nodes.commanders import (
    ActionCommander,
    Commander,
    ForwardCommander,
    TrajectoryCommander,
)
from stribeck.nodes.messages import HAS_CONTROL_MSGS
from stribeck.nodes.player import Listener, Player
from stribeck.nodes.recording import contract_topics
from stribeck.nodes.setters import GainSetter
from stribeck.nodes.waiting import Waiting
from stribeck.recordings.bags.bag import read_bag
from stribeck.recordings.bags.messages import JOINT_COMMANDS, JOINT_STATES
from stribeck.session.bags import BenchJoint, Outcome
from stribeck.session.config import SessionConfig
from stribeck.session.directive import SessionOptions
from stribeck.session.fourier import FourierTrajectory, rest_basis
from stribeck.session.limits import Limits, Play, SessionJoint
from stribeck.session.session import Session

pytestmark = pytest.mark.real_time

WAVE = Trajectory("wave", "ends at full speed", 1.3, lambda t: 0.5 * np.sin(4.0 * t))
LONG = replace(WAVE, name="long", duration=20.0)
NAMES = ("shoulder", "elbow")
STALE = 2.0
"""States may be so old [s]: longer than a machine that is busy with other tests stands still."""
RECOVERS = 3.0
"""Longest time in which states must be in time again [s]."""
QUICK = SessionOptions(
    soft_speed=3.0,
    soft_acceleration=20.0,
    settle_timeout=2.0,
    gain_timeout=PATIENCE,
    state_timeout=STALE,
    recovery_time=0.2,
    recovery_timeout=RECOVERS,
)
KINDS = {"forward": ForwardCommander, "trajectory": TrajectoryCommander, "trajectory_action": ActionCommander}
CONTROLLERS = {
    "forward": "forward_position_controller",
    "trajectory": "joint_trajectory_controller",
    "trajectory_action": "joint_trajectory_controller",
}
ACTION = pytest.param(
    "trajectory_action",
    marks=pytest.mark.skipif(not HAS_CONTROL_MSGS, reason="control_msgs is not installed"),
)
ALL = ["forward", "trajectory", ACTION]


class Playing:
    """A session in progress: player, robot and what was said."""

    def __init__(
        self,
        graph: Graph,
        robot: FakeRobot,
        kind: str,
        folder: Path,
        plays: Sequence[Play],
        patience: float = PATIENCE,
        **gains: Any,
    ) -> None:
        limits = Limits(-1.5, 1.5, 20.0, 30.0)
        joints = (SessionJoint("shoulder", limits, center=0.2), SessionJoint("elbow", limits, scale=-0.5))
        load = Pendulum(0.1, 0.1, 0.02)
        self.robot, self.graph = robot, graph
        self.bench: list[dict[str, Any]] = []
        self.said: list[str] = []
        self.phases: list[str] = []
        self.outcome: Outcome | None = None
        self.commands: list[tuple[float, np.ndarray]] = []
        self.setter = GainSetter(graph.user, **gains) if gains else None
        self.commander: Commander = KINDS[kind](
            graph.user, joints, self.setter, self._on_sent, CONTROLLERS[kind]
        )
        config = SessionConfig(
            tuple(plays),
            joints,
            tuple(BenchJoint(name, "xl330", load) for name in NAMES),
            QUICK,
            folder,
            rate=100.0,
            supply_voltage=5.0,
        )
        self.player = Player(
            config,
            self.commander,
            Listener(
                lambda text: self.bench.append(json.loads(text)),
                lambda directive: self.phases.append(directive.phase),
                lambda _, text: self.said.append(text),
                lambda outcome: setattr(self, "outcome", outcome),
            ),
            topics=[heard.topic for heard in contract_topics()],
            patience=patience,
            allow_overvoltage=False,
        )
        graph.user.create_subscription(JointState, "joint_states", self._on_state, 50, raw=True)
        self.player.start()

    def _on_sent(self, data: bytes) -> None:
        self.player.record(JOINT_COMMANDS, data)
        message = deserialize_message(data, JointState)
        self.commands.append((seconds(message.header.stamp), np.array(message.position)))

    def _on_state(self, data: bytes) -> None:
        self.player.record(JOINT_STATES, data)
        message = deserialize_message(data, JointState)
        self.player.states.move(slice(None), time.monotonic(), message.position, message.velocity)

    def reaches(self, phase: str) -> None:
        """Wait for a phase."""
        wait_for(lambda: phase in self.phases or self.outcome, f"phase {phase}")
        assert phase in self.phases, f"{self.outcome}"

    def ends(self, timeout: float = PATIENCE) -> Outcome:
        """How it ended."""
        return wait_for(lambda: self.outcome, "the end", timeout)


@contextmanager
def playing(
    tmp_path: Path, kind: str, plays: Sequence[Play] = (Play(WAVE, 100.0),), robot: str = "", **options: Any
) -> Iterator[Playing]:
    """A session on a robot."""
    with Graph() as graph, FakeRobot(graph, NAMES, robot or kind) as fake:
        found = Playing(graph, fake, kind, tmp_path, plays, **options)
        try:
            yield found
        finally:
            found.player.stop("the test is over")
            found.commander.destroy()


def largest_step(commands: Sequence[tuple[float, np.ndarray]]) -> float:
    """Largest change between two commands [rad]."""
    return float(np.abs(np.diff([goal for _, goal in commands], axis=0)).max())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ALL)
def test_a_session_through_a_controller(tmp_path, kind):
    """It starts softly from where the robot is, plays about centers and by scales, ends at rest at the centers; the
    bag has commands and states of both joints, and /bench announces and ends the run."""
    with playing(tmp_path, kind) as s:
        outcome = s.ends()
        assert (outcome.end, outcome.reason) == ("finished", "")
        assert [message.get("joint", message.get("event")) for message in s.bench] == [*NAMES, "end"]
        np.testing.assert_allclose(s.commands[0][1], [0.3, 0.3], atol=1e-6)
        np.testing.assert_allclose(s.commands[-1][1], [0.2, 0.0], atol=1e-9)
        assert largest_step(s.commands) < 20.0 * 0.05, "no jump"
        for name, center, scale in zip(NAMES, (0.2, 0.0), (1.0, -0.5), strict=True):
            (log,) = read_bag(outcome.bags[0], joint=name)
            assert log.goal.value.max() == pytest.approx(center + 0.5 * abs(scale), abs=0.01)
            assert (log.setup.kp, log.setup.supply_voltage, log.trajectory) == (100.0, 5.0, "wave")
            assert log.duration == pytest.approx(WAVE.duration, abs=0.1)
        wait_for(lambda: np.allclose(s.robot.position, [0.2, 0.0], atol=1e-3), "the robot at rest")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["forward", "trajectory"])
def test_a_designed_trajectory_moves_all_joints_together(tmp_path, kind):
    """The bag has both joints on their own series at the same time, without centers and scales."""
    z = 0.4 * np.random.default_rng(0).normal(size=(2, 5))
    motion = FourierTrajectory.from_coefficients(NAMES, 2.0, z @ rest_basis(3).T)
    with playing(tmp_path, kind, [Play(motion.to_play("designed"), 100.0)]) as s:
        outcome = s.ends()
        assert (outcome.end, outcome.reason) == ("finished", "")
        np.testing.assert_allclose(s.commands[-1][1], [0.2, 0.0], atol=1e-9)
        for joint, name in enumerate(NAMES):
            (log,) = read_bag(outcome.bags[0], joint=name)
            assert log.trajectory == "designed"
            since = log.goal.time - log.goal.time[0]
            time = since[since < 1.9]
            expected = motion.states(time)[0][:, joint]
            assert np.median(np.abs(log.goal.value[: len(time)] - expected)) < 0.03


def due(trajectories: Sequence[JointTrajectory], time: float) -> np.ndarray:
    """Reference of a controller at a time [s], if each trajectory has come by its beginning."""
    *before, last = [one for one in trajectories if seconds(one.header.stamp) <= time]
    start = due(before, seconds(last.header.stamp)) if before else np.full(len(NAMES), np.nan)
    return reference_of(last, start, time)


@pytest.mark.parametrize("kind", ["trajectory", ACTION])
def test_trajectories_are_what_joint_commands_say(tmp_path, kind):
    """One trajectory for each piece of motion, no more; the reference that a controller makes of them, however late they
    reach it, is what is published as command at that time, within 25 ms at 2 rad/s."""
    with playing(tmp_path, kind) as s:
        s.ends()
        assert len(s.robot.trajectories) == 4, "hold, approach, run with its stop, return"
        run = max(s.robot.trajectories, key=lambda message: len(message.points))
        last = run.points[-1].time_from_start
        assert last.sec + 1e-9 * last.nanosec > WAVE.duration + 0.03, "the way to rest is part of it"
        begun = s.robot.trajectories[1].header.stamp
        commands = [(t, goal) for t, goal in s.commands if t > seconds(begun)]
        references = np.array([due(s.robot.trajectories, t) for t, _ in commands])
        for j in range(2):
            reference = references[:, j]
            error = np.abs(reference - [goal[j] for _, goal in commands])
            assert error.max() < 0.05
            assert np.median(error) < 0.02


@pytest.mark.parametrize("kind", ALL)
def test_nobody_there_is_said_before_anything_moves(tmp_path, kind):
    """No controller: the session fails and says what to start."""
    with playing(tmp_path, kind, robot="none", patience=0.5) as s:
        outcome = s.ends()
        assert outcome.end == "failed"
        assert "controller" in outcome.reason
        assert not s.commands
        assert not list(tmp_path.iterdir())


def test_no_states_are_said_before_anything_moves(tmp_path):
    """A controller is there and joint_states are not."""
    with Graph() as graph, FakeRobot(graph, ["stranger", "other"], "forward") as robot:
        robot.silent.set()
        s = Playing(graph, robot, "forward", tmp_path, [Play(WAVE, 100.0)], 0.5)
        outcome = s.ends()
        assert outcome.end == "failed"
        assert "joint_states of shoulder, elbow" in outcome.reason
        assert not s.commands
        s.commander.destroy()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ALL)
def test_states_that_stop_end_a_session(tmp_path, kind):
    """In mid-run: the goals brake to rest and stay, the bag is finished and marked, the reason is the age of the states."""
    with playing(tmp_path, kind, [Play(LONG, 100.0)]) as s:
        s.reaches("running")
        wait_for(lambda: s.phases.count("running") > 60, "a piece of the run")
        s.robot.silent.set()
        outcome = s.ends()
        assert outcome.end == "failed"
        assert "joint states are" in outcome.reason
        assert (outcome.bags, len(outcome.disturbed)) == ((), 1)
        assert s.bench[-1] == {
            "run_id": outcome.disturbed[0].name,
            "event": "end",
            "aborted": s.bench[-1]["aborted"],
        }
        assert "late at their source" in s.bench[-1]["aborted"]
        assert largest_step(s.commands) < 20.0 * 0.05


@pytest.mark.slow
@pytest.mark.parametrize("kind", ALL)
def test_states_that_are_late_for_a_while_repeat_the_run(tmp_path, kind):
    """In mid-run: the goals brake to rest, return, and the whole run is played again without a jump.

    The bag ends with the last command before the end of the run: a pause of the loop there is missing from it.
    """
    long = replace(WAVE, name="long", duration=3.0)
    with playing(tmp_path, kind, [Play(long, 100.0)]) as s:
        s.reaches("running")
        wait_for(lambda: s.phases.count("running") > 60, "a piece of the run")
        s.robot.silent.set()
        s.reaches("recovering")
        s.robot.silent.clear()
        outcome = s.ends()
        assert (outcome.end, len(outcome.bags), len(outcome.disturbed)) == ("finished", 1, 1)
        (line,) = [text for text in s.said if "repeated" in text]
        assert line.endswith(
            "late at their source; the limit is 2 s; its recording is given up and the run is repeated "
            "(disturbance 1 of this run, at most 3 are allowed)"
        )
        assert largest_step(s.commands) < 20.0 * 0.05
        (log,) = read_bag(outcome.bags[0], joint="elbow")
        pause = float(np.diff([time for time, _ in s.commands if time >= s.commands[-1][0] - 10.0]).max())
        assert long.duration - 0.1 - pause <= log.duration <= long.duration + 0.1


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("kind", ALL)
def test_an_emergency_stop_ends_our_commands_and_sends_no_zero(tmp_path, kind):
    """In motion: nothing more is sent to a forward controller; a trajectory is replaced by one that brakes from where it
    was. The robot stays there; the session ends."""
    with playing(tmp_path, kind, [Play(LONG, 100.0)]) as s:
        s.reaches("running")
        wait_for(lambda: s.phases.count("running") > 60, "a piece of the run")
        s.player.emergency_stop("emergency stop")
        outcome = s.ends()
        assert (outcome.end, outcome.reason) == ("interrupted", "emergency stop")
        assert "returning" not in s.phases
        last = s.commands[-1][1]
        assert largest_step(s.commands) < 20.0 * 0.05
        assert np.abs(last - [0.2, 0.0]).max() > 0.0, "not where it rests"
        if kind == "forward":
            sent = s.phases.count("aborted")
            assert len(s.robot.goals) <= len(s.phases) - sent, "nothing after the stop"
        else:
            points = s.robot.trajectories[-1].points
            assert not any(points[-1].velocities)
        wait_for(lambda: np.allclose(s.robot.position, last, atol=1e-2), "the robot stands there")


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("kind", ALL)
def test_an_abort_returns_to_rest_and_a_second_one_brakes_at_once(tmp_path, kind):
    """Softly to the centers; or to a stop where it is, within the deceleration allowed."""
    with playing(tmp_path, kind, [Play(LONG, 100.0)]) as s:
        s.reaches("running")
        wait_for(lambda: s.phases.count("running") > 30, "a piece of the run")
        s.player.abort()
        s.reaches("returning")
        assert s.ends().end == "interrupted"
        np.testing.assert_allclose(s.commands[-1][1], [0.2, 0.0], atol=1e-9)
    with playing(tmp_path, kind, [Play(LONG, 100.0)]) as s:
        s.reaches("running")
        wait_for(lambda: s.phases.count("running") > 30, "a piece of the run")
        s.player.abort()
        s.player.abort()
        assert s.ends().end == "interrupted"
        assert "returning" not in s.phases
        assert largest_step(s.commands) < 20.0 * 0.05
        wait_for(
            lambda: np.allclose(s.robot.position, s.commands[-1][1], atol=1e-2), "the robot stands there"
        )


@pytest.mark.skipif(not HAS_CONTROL_MSGS, reason="control_msgs is not installed")
@pytest.mark.parametrize(
    ("how", "phase", "said"), [("refuses", "", "refuses"), ("gives_up", "running", "path tolerance violated")]
)
def test_the_action_ends_a_session(tmp_path, how, phase, said):
    """A trajectory that is refused, and one that the controller gives up, with its words."""
    with playing(tmp_path, "trajectory_action", [Play(LONG, 100.0)]) as s:
        if phase:
            s.reaches(phase)
        setattr(s.robot, how, True)
        outcome = s.ends()
        assert outcome.end == "failed"
        assert said in outcome.reason


def test_an_action_without_control_msgs_is_refused_at_once(monkeypatch):
    """Before there is anything that could move."""
    monkeypatch.setattr(commanders, "HAS_CONTROL_MSGS", False)
    joint = SessionJoint("j", Limits(-1.0, 1.0, 1.0, 1.0))
    with Graph() as graph:
        refusal(
            lambda: ActionCommander(graph.user, [joint], None, lambda _: None, "c"),
            "control_msgs",
            "commander trajectory",
        )


def test_gains_are_set_by_the_parameter_of_a_node(tmp_path):
    """Two gains: the parameter has the first and then the second; a node that refuses one ends the session."""
    with playing(
        tmp_path, "forward", [Play(WAVE, 100.0), Play(WAVE, 200.0)], target="driver", parameter="gains"
    ) as s:
        driver = s.graph.add(partial(Node, "driver"), {})
        driver.declare_parameter("gains", [0.0])
        s.reaches("running")
        assert list(driver.get_parameter("gains").value) == [100.0]
        assert s.ends().end == "finished"
        assert list(driver.get_parameter("gains").value) == [200.0]
    with playing(tmp_path, "forward", target="driver", parameter="unknown") as s:
        s.graph.add(partial(Node, "driver"), {})
        outcome = s.ends()
        assert outcome.end == "failed"
        assert "unknown" in outcome.reason


@pytest.mark.slow
def test_a_run_waits_until_its_gain_is_confirmed(tmp_path):
    """However long the driver's node takes: the session does not go on before its answer."""
    with playing(tmp_path, "forward", target="driver", parameter="gains") as s:
        driver, asked, may = Node("driver", context=s.graph.context), threading.Event(), threading.Event()
        driver.declare_parameter("gains", [0.0])

        def set_gains(_):
            asked.set()
            assert may.wait(PATIENCE)
            return SetParametersResult(successful=True)

        driver.add_on_set_parameters_callback(set_gains)
        executor = SingleThreadedExecutor(context=s.graph.context)
        executor.add_node(driver)
        thread = threading.Thread(target=executor.spin, daemon=True)
        thread.start()
        try:
            wait_for(asked.is_set, "a request")
            wait_for(lambda: s.phases.count("gain") > 40, "many cycles of the session")
            assert set(s.phases) <= {"waiting", "enabling", "gain"}
            may.set()
            s.reaches("running")
            assert list(driver.get_parameter("gains").value) == [100.0]
            assert s.ends().end == "finished"
        finally:
            may.set()
            executor.shutdown()
            thread.join()
            driver.destroy_node()


def test_a_motion_and_its_command_begin_together_however_late():
    """A session that stood still for 0.15 s after the begin of a motion from rest: the trajectory begins when it is sent, and the
    command beside it has that time and its first point."""
    joint, sent = SessionJoint("shoulder", Limits(-1.5, 1.5, 20.0, 30.0), center=0.4), []
    with Graph() as graph:
        trajectories = graph.collect(JointTrajectory, "/c/joint_trajectory")
        commander = TrajectoryCommander(graph.user, [joint], None, sent.append, "c")
        commander.prepare(Waiting(graph.user.clock, PATIENCE, threading.Event()))
        session = Session(
            [Play(WAVE, 100.0)], [joint], releases_torque=False, whole_segments=True, options=QUICK
        )
        now = graph.user.clock.now() - 60.0
        directive = session.update(now, 0.3)
        while directive.phase != "approaching":
            now += 0.01
            directive = session.update(now, 0.3)
        late = session.update(now + 0.15, 0.3)
        assert late.goals[0] != directive.goals[0]
        before = 1e-9 * commander.stamp()
        commander.send(late, session, now + 0.15)
        (trajectory,) = wait_for(lambda: trajectories, "a trajectory")
        command = deserialize_message(sent[-1], JointState)
        assert before <= seconds(trajectory.header.stamp) <= 1e-9 * commander.stamp()
        assert seconds(command.header.stamp) == pytest.approx(seconds(trajectory.header.stamp), abs=1e-3)
        assert list(command.position) == list(trajectory.points[0].positions) == [directive.goals[0]]
        commander.destroy()
