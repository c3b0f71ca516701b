"""What the compensation node learns on a real graph: goals of every type, the file of what was learnt, what it tells."""

import json
import math
import time
from pathlib import Path

import numpy as np
import pytest
from ros_graph import Graph, wait_for
from builtin_interfaces.msg import Duration, Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.lifecycle import TransitionCallbackReturn
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from helpers import published
from stribeck.live.learning.file import read_learned, write_learned
from stribeck.live.learning.observer import Learned
from stribeck.nodes.compensation import CompensationNode
from stribeck.nodes.messages import HAS_CONTROL_MSGS

pytestmark = pytest.mark.real_time

M1 = {**published("xl330", "m1"), "q_offset": 0.0}
PERIOD = 0.005
LEARNED = (Learned(1.25, 0.75, 0.1, 0.1),)


@pytest.fixture
def parameters(tmp_path: Path) -> dict[str, object]:
    """One joint in mode sum, with goals on a topic of their own and a load whose inertia is known."""
    path = tmp_path / "m1.json"
    path.write_text(json.dumps({**M1, "model": "m1", "actuator": "xl330"}))
    return {
        "joints": ["hinge"],
        "hinge.parameter_file": str(path),
        "hinge.load_mass": 0.1,
        "hinge.load_length": 0.1,
        "output_mode": "sum",
        "effort_meaning": "none",
        "ramp_time": 0.0,
        "slew_limit": 1e5,
        "state_timeout": 10.0,
        "command_timeout": 10.0,
        "state_lag": 10.0,
        "use_sim_time": True,  # without a /clock time is that of the states: none is late, however slow the machine is
        "goal_topic": "wanted",
    }


def stamped(kind: type, time: float, **fields: object) -> object:
    """A message with a header."""
    message = kind(**fields)
    message.header.stamp = Time(sec=int(time), nanosec=round((time % 1.0) * 1e9))
    return message


def place(t: float) -> tuple[float, float]:
    """A slow sine: position and velocity."""
    return 0.5 * math.sin(3.0 * t), 1.5 * math.cos(3.0 * t)


class Robot:
    """A node that is enabled, and a robot that follows its goals."""

    def __init__(self, graph: Graph, parameters: dict[str, object]) -> None:
        self.graph = graph
        self.node = graph.add(CompensationNode, parameters)
        self.told = graph.collect(DiagnosticArray, "/diagnostics")
        self.activate()
        self.torques = graph.collect(JointState, "friction_torque", 1000)
        self.states = graph.publisher(JointState, "joint_states")
        self.efforts = graph.publisher(JointState, "controller_command")
        wait_for(lambda: self.node._torque.get_subscription_count(), "the torque is heard")
        self.time = 100.0

    def activate(self) -> None:
        assert self.node.trigger_configure() == TransitionCallbackReturn.SUCCESS
        assert self.node.trigger_activate() == TransitionCallbackReturn.SUCCESS
        wait_for(lambda: self.node._compensator.enabled, "compensation is enabled")

    def state(self, position: float, velocity: float, more: float = 0.0) -> float:
        """One more state 5 ms later, after an effort that bears gravity and ``more``; the torque that follows."""
        self.time += PERIOD
        effort = 0.1 * 9.80665 * 0.1 * math.sin(position) + more
        self.efforts.publish(stamped(JointState, self.time - 0.001, name=["hinge"], effort=[effort]))
        count = len(self.torques)
        fields = {"name": ["hinge"], "position": [position], "velocity": [velocity], "effort": [0.0]}
        self.states.publish(stamped(JointState, self.time, **fields))
        wait_for(lambda: len(self.torques) > count, "a torque")
        return self.torques[-1].effort[0]

    def follow(self, goals: object, seconds: float) -> None:
        """A motion with goals on their topic, by torques that move a joint without friction so, ours among them."""
        begin, inertia, ours = self.time, 0.1 * 0.1**2 + M1["armature"], 0.0
        while self.time - begin < seconds:
            at, speed = place(self.time + PERIOD - begin)
            message = stamped(JointState, self.time + 0.002, name=["hinge"], position=[at], velocity=[speed])
            goals.publish(message)
            ours = self.state(at, speed, -9.0 * at * inertia - ours)

    def figures(self) -> dict[str, str]:
        """Diagnostics as they are now."""
        return {pair.key: pair.value for pair in self.diagnosis().values}

    def diagnosis(self) -> DiagnosticStatus:
        count = len(self.told)
        self.node.publish_diagnostics()
        wait_for(lambda: len(self.told) > count, "diagnostics")
        return self.told[-1].status[0]


def point(time: float, position: float, velocity: float | None = None) -> JointTrajectoryPoint:
    found = JointTrajectoryPoint(positions=[position], velocities=[] if velocity is None else [velocity])
    found.time_from_start = Duration(sec=int(time), nanosec=round((time % 1.0) * 1e9))
    return found


TYPES = {
    "joint_state": (
        JointState,
        lambda t: stamped(JointState, t, name=["hinge"], position=[1.0], velocity=[1.0]),
    ),
    "array": (Float64MultiArray, lambda t: Float64MultiArray(data=[0.2 + (t - 100.0)])),
    "joint_trajectory": (
        JointTrajectory,
        lambda t: stamped(
            JointTrajectory, 0.0, joint_names=["hinge"], points=[point(0.0, 0.2), point(9.0, 9.2)]
        ),
    ),
}


@pytest.mark.parametrize("kind", TYPES)
def test_goals_of_every_type_are_heard(parameters, kind):
    """A joint at rest whose goal moves on: friction is cancelled in that direction before it moves."""
    message_type, make = TYPES[kind]
    with Graph() as graph:
        robot = Robot(graph, {**parameters, "goal_type": kind, "adapt": False})
        assert robot.state(0.2, 0.0) == 0.0
        goals = graph.publisher(message_type, "wanted")
        torque = 0.0
        for k in range(20):
            if k == 0 or kind != "joint_trajectory":
                goals.publish(make(robot.time + 0.002))
            torque = robot.state(0.2 + 1e-6 * k, 0.0)
        wait_for(lambda: robot.state(0.2, 0.0) > 0.5 * M1["friction_base"], f"{torque} to grow")


@pytest.mark.skipif(HAS_CONTROL_MSGS, reason="control_msgs is installed")
def test_a_type_that_is_not_installed_is_said_at_configure(parameters, capfd):
    """In one line, with what to do."""
    with Graph() as graph:
        node = graph.add(CompensationNode, {**parameters, "goal_type": "controller_state"})
        assert node.trigger_configure() == TransitionCallbackReturn.FAILURE
    assert "goal_type controller_state needs control_msgs, which is not installed" in capfd.readouterr().err


@pytest.mark.skipif(not HAS_CONTROL_MSGS, reason="control_msgs is not installed")
def test_the_state_of_a_trajectory_controller_is_heard(parameters):
    """Its reference is the goal."""
    from control_msgs.msg import JointTrajectoryControllerState

    with Graph() as graph:
        robot = Robot(graph, {**parameters, "goal_type": "controller_state", "adapt": False})
        robot.state(0.2, 0.0)
        goals = graph.publisher(JointTrajectoryControllerState, "wanted")

        def torque() -> float:
            wanted = stamped(JointTrajectoryControllerState, robot.time + 0.002, joint_names=["hinge"])
            wanted.reference = point(0.0, 1.0, 1.0)
            goals.publish(wanted)
            return robot.state(0.2, 0.0)

        wait_for(lambda: torque() > 0.5 * M1["friction_base"], "torque")


def test_goals_that_do_not_count_are_said(parameters, capfd):
    """A goal of other joints, a trajectory that cannot be."""
    with Graph() as graph:
        robot = Robot(graph, parameters)
        graph.publisher(JointState, "wanted").publish(JointState(name=["other"], position=[1.0]))
        robot.state(0.2, 0.0)
        robot.state(0.2, 0.0)
    assert "goals without joint hinge" in capfd.readouterr().err
    with Graph() as graph:
        node = graph.add(CompensationNode, {**parameters, "output_mode": "goal_offset"})
        assert node.trigger_configure() == TransitionCallbackReturn.FAILURE
    assert "the goals are the commands" in capfd.readouterr().err


def test_it_learns_keeps_it_and_goes_on_with_it(parameters, tmp_path):
    """A robot without friction: less is learnt, written on deactivation, read again, forgotten on demand."""
    path = tmp_path / "learned.json"
    with Graph() as graph:
        robot = Robot(graph, {**parameters, "state_file": str(path)})
        scales = graph.collect(Float64MultiArray, "friction_scale")
        external = graph.collect(Float64MultiArray, "external_torque", 1000)
        robot.follow(graph.publisher(JointState, "wanted"), 2.0)
        figures = robot.figures()
        assert float(figures["certainty/hinge"]) > 0.0
        assert {"scale/hinge", "contact/hinge", "energy/hinge"} <= set(figures)
        assert "learning" not in figures
        wait_for(lambda: scales, "friction_scale")
        layout = scales[-1].layout
        assert [(d.label, d.size) for d in layout.dim] == [("hinge", 1), ("dry,viscous,offset", 3)]
        assert scales[-1].data[0] < 0.9
        wait_for(lambda: external, "external_torque")
        assert [d.label for d in external[-1].layout.dim] == ["hinge", "torque,band,threshold"]
        assert np.mean([abs(m.data[0]) <= m.data[1] for m in external]) >= 0.95, "nothing pushes"
        robot.node.trigger_deactivate()
        learned = read_learned(path, [robot.node._in_use.joints[0].identified])
        assert learned == robot.node._compensator.present.learned
        robot.node.trigger_cleanup()
        robot.activate()
        assert robot.node._compensator.present.feed_forward._recalled == learned
        answer = graph.call(Trigger, "/compensation/forget", Trigger.Request())
        assert answer.success
        assert robot.node._compensator.present.feed_forward._recalled is None
        assert not path.exists()
        assert (tmp_path / "learned.json.old").exists()


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["cut", "digest"])
def test_a_file_that_does_not_fit_is_ignored_and_kept(parameters, tmp_path, capfd, damage):
    """One warning; it lies beside once there is something new."""
    path = tmp_path / "learned.json"
    with Graph() as graph:
        robot = Robot(graph, parameters)
        write_learned(path, [robot.node._in_use.joints[0].identified], LEARNED)
    if damage == "cut":
        path.write_text(path.read_text()[:40])
    else:
        (tmp_path / "m1.json").write_text((tmp_path / "m1.json").read_text() + "\n")
    before = path.read_text()
    with Graph() as graph:
        robot = Robot(graph, {**parameters, "state_file": str(path)})
        robot.node.trigger_deactivate()
        assert path.read_text() == before, "nothing was learnt, nothing is written"
    said = capfd.readouterr().err
    assert said.count("the file is ignored, and will be renamed to learned.json.old") == 1


def test_without_inertia_nothing_is_learnt_and_that_is_said(parameters, capfd):
    """Once in the log, and in diagnostics."""
    with Graph() as graph:
        robot = Robot(graph, {**parameters, "hinge.load_mass": 0.0, "hinge.load_length": 0.0})
        assert robot.figures()["learning"].startswith("nothing: there is no urdf")
        assert robot.node._compensator.present.learned is None
    assert capfd.readouterr().err.count("the current friction is not learnt") == 1


def test_states_are_judged_by_the_clock_that_stamps_them(parameters):
    """States that come ever later by the steady clock, as a bag at half its pace: in time by /clock, late without."""
    given = {
        **parameters,
        "output_mode": "friction_only",
        "goal_topic": "",
        "state_lag": 0.05,
        "state_timeout": 0.2,
        "adapt": False,
    }
    assert "with a delay of" in slowly(given, simulated=False)
    assert slowly(given, simulated=True) == "compensating"


def slowly(given: dict[str, object], simulated: bool) -> str:
    """What diagnostics say after thirty states at 5 ms of stamps and 20 ms of a steady clock."""
    with Graph() as graph:
        robot = Robot(graph, {**given, "use_sim_time": simulated})
        clock = graph.publisher(Clock, "/clock") if simulated else None
        for k in range(30):
            due = time.monotonic() + 0.02
            if clock is not None:
                now = round((robot.time + PERIOD) * 1e9)
                clock.publish(Clock(clock=Time(sec=now // 10**9, nanosec=now % 10**9)))
                wait_for(lambda now=now: robot.node.get_clock().now().nanoseconds == now, "the clock")
            wait_for(lambda due=due: time.monotonic() > due, "time")
            robot.state(0.2 + 0.005 * k, 1.0)
        return str(robot.diagnosis().message)


def test_a_tank_that_empties_and_clocks_that_differ_are_warned_of(parameters):
    """Both are warnings while the torque is what it should be."""
    with Graph() as graph:
        robot = Robot(graph, parameters)
        robot.state(0.2, 0.0)
        robot.state(0.2, 0.0)
        compensator = robot.node._compensator.present
        compensator.wishes.commands.difference = 0.5
        status = robot.diagnosis()
        assert (status.level, "time stamps of commands are" in status.message) == (
            DiagnosticStatus.WARN,
            True,
        )
        compensator.feed_forward.tank.content = np.zeros(1)
        status = robot.diagnosis()
        assert (status.level, "decreases to the guaranteed fraction" in status.message) == (
            DiagnosticStatus.WARN,
            True,
        )


def test_a_joint_whose_compensation_has_ended_is_warned_of(parameters):
    """While the others are compensated."""
    with Graph() as graph:
        robot = Robot(graph, parameters)
        robot.state(0.2, 0.0)
        robot.state(0.2, 0.0)
        robot.node._compensator.present.feed_forward.speed_limit.ended = np.array([True])
        status = robot.diagnosis()
        assert status.level == DiagnosticStatus.WARN
        assert status.message.startswith("zero torque of some joints: hinge moves faster than")
