"""The examples that are shipped, as they are, under the real launch."""

import json
import math
import time
from contextlib import ExitStack

import numpy as np
import pytest
import yaml
from ros_graph import Graph, wait_for
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool

from helpers import REPOSITORY, published
from launching import Launched, needs_launch

pytestmark = [needs_launch, pytest.mark.real_time]

PERIOD = 0.005
M1 = {**published("xl330", "m1"), "q_offset": 0.0, "model": "m1", "actuator": "xl330"}
M6 = {**published("xl330", "m6"), "q_offset": 0.0, "model": "m6", "actuator": "xl330"}


@pytest.fixture
def launch(environment, tmp_path):
    """Launches an example of the installation, in a home with parameter files."""
    (tmp_path / "stribeck").mkdir()
    for name, content in {
        **dict.fromkeys(("m6", "shoulder", "elbow"), M6),
        **dict.fromkeys(("left", "right"), M1),
    }.items():
        (tmp_path / "stribeck" / f"{name}.json").write_text(json.dumps(content))

    def start(example, **arguments):
        words = [f"{key}:={value}" for key, value in arguments.items()]
        home = {**environment, "HOME": str(tmp_path)}
        command = ["ros2", "launch", "stribeck", f"{example}.launch.py", *words]
        return Launched(command, home, tmp_path / f"output{arguments.get('namespace', '')}")

    return start


def test_a_ros2_control_robot(launch):
    """Efforts of a controller come out with friction added, in the order of the forward_command_controller: without
    goals the share of it that is certain, 4.6 mN m here."""
    with Graph() as graph, launch("ros2_control") as running:
        for node in ("compensation", "guard"):
            running.reaches(graph, node)
        efforts = graph.publisher(Float64MultiArray, "/my_controller/efforts")
        states = graph.publisher(JointState, "/joint_states")
        out = graph.collect(Float64MultiArray, "/friction_effort_controller/commands")

        began = time.monotonic()

        def cycle():
            now = graph.user.get_clock().now().to_msg()
            # Also a joint that nobody compensates; shoulder and elbow move in opposite directions.
            state = JointState(name=["gripper", "elbow", "shoulder"])
            state.header.stamp = now
            angle = time.monotonic() - began
            state.position = [0.0, -angle, angle]  # positions that stand still beside velocities are doubted
            state.velocity, state.effort = [0.0, -1.0, 1.0], [0.0] * 3
            states.publish(state)
            efforts.publish(Float64MultiArray(data=[0.02, -0.02]))
            graph.executor.wake()

        timer = graph.user.create_timer(PERIOD, cycle)
        # On a busy machine the node may stand still for longer than the guard puts up with: that is for the user to end.
        enable = graph.user.create_client(SetBool, "/compensation/enable")
        again = graph.user.create_timer(1.0, lambda: enable.call_async(SetBool.Request(data=True)))
        found = wait_for(
            lambda: next((m.data for m in out if m.data[0] > 0.024 and m.data[1] < -0.024), None),
            "efforts with friction",
        )
        timer.cancel()
        again.cancel()
        assert found[0] == pytest.approx(-found[1], rel=0.2), "the same servo, the other way round"
        assert running.interrupt() == 0
        running.check_clean_end(2)


def test_a_single_xl330(launch, environment, tmp_path):
    """Goals on /controller_command move the servo to where they say, through compensation and servo node."""
    port = tmp_path / "servo"
    bench = "mass=0.1,length=0.1,arm_mass=0.02"
    emulate = ["stribeck", "emulate", "--servo", "xl330", "--bench", bench, "--link", port]
    with (
        Launched(emulate, environment, tmp_path / "emulator"),
        Graph() as graph,
    ):
        wait_for(port.exists, "the emulated servo")
        with launch("single_xl330", port=port) as running:
            for node in ("servo", "compensation", "guard"):
                running.reaches(graph, node)
            goals = graph.publisher(JointState, "/controller_command")
            states = graph.collect(JointState, "/joint_states")

            def send():
                goal = JointState(name=["joint"], position=[0.4])
                goal.header.stamp = graph.user.get_clock().now().to_msg()
                goals.publish(goal)

            timer = graph.user.create_timer(PERIOD, send)
            wait_for(
                lambda: states and math.isclose(states[-1].position[0], 0.4, abs_tol=0.05),
                "the servo at its goal",
            )
            timer.cancel()
            assert running.interrupt() == 0
            running.check_clean_end(3)


GAINS = {"left": 0.4, "right": 0.8}
"""Of examples/two_robots."""


class TwoRobots:
    """Goals for two joints that go to and fro, and the friction torque of each robot.

    :param speeds: of the goals [rad/s]; negative ones begin downwards.
    """

    def __init__(self, graph, speeds):
        self._graph = graph
        self._began = time.monotonic() - 0.5  # goals begin at position 0
        self._speeds = speeds
        self._goals = {name: graph.publisher(JointState, f"/{name}/controller_command") for name in speeds}
        self.torques = {name: graph.collect(JointState, f"/{name}/friction_torque") for name in speeds}
        self._timer = graph.user.create_timer(PERIOD, self._cycle)
        # On a busy machine a node may stand still for longer than its guard puts up with: that is for the user to end.
        enable = [graph.user.create_client(SetBool, f"/{name}/compensation/enable") for name in speeds]
        self._again = graph.user.create_timer(
            2.0, lambda: [one.call_async(SetBool.Request(data=True)) for one in enable]
        )

    def _cycle(self):
        stamp = self._graph.user.get_clock().now().to_msg()
        for name, speed in self._speeds.items():
            phase = (time.monotonic() - self._began) % 2.0
            position, direction = (phase - 0.5, 1.0) if phase < 1.0 else (1.5 - phase, -1.0)
            goal = JointState(name=["joint"], position=[speed * position], velocity=[speed * direction])
            goal.header.stamp = stamp
            self._goals[name].publish(goal)
            self.cycle(name, goal)

    def cycle(self, name, goal):
        """What else happens at each goal."""

    def wait(self, within):
        """Wait until the largest torque of every robot lies between limits [N m]."""

        def reached():
            largest = {
                n: max((abs(t.effort[0]) for t in found), default=0.0) for n, found in self.torques.items()
            }
            return all(low < largest[name] for name, (low, _) in within.items()) and largest

        largest = wait_for(reached, f"torques within {within}", 40.0)
        self._timer.cancel()
        self._again.cancel()
        for name, (_, high) in within.items():
            assert largest[name] < high, f"{name}: {largest}"


def friction(gain, *speeds):
    """What law M1 gives at speeds, times the gain [N m]."""
    return [gain * (M1["friction_base"] + M1["friction_viscous"] * speed) for speed in speeds]


def test_two_robots_from_one_launch(launch):
    """Each compensates with its own gain, what it hears in its own namespace, and in its own direction."""

    class Tracking(TwoRobots):
        """Joints that are where their goals say."""

        def __init__(self, graph, speeds):
            self._states = {name: graph.publisher(JointState, f"/{name}/joint_states") for name in speeds}
            super().__init__(graph, speeds)

        def cycle(self, name, goal):
            goal.effort = [0.0]
            self._states[name].publish(goal)

    with Graph() as graph, launch("two_robots") as running:
        for name in GAINS:
            for node in ("compensation", "guard"):
                running.reaches(graph, f"{name}/{node}")
        robots = Tracking(graph, {"left": 0.5, "right": 0.5})
        robots.wait({name: friction(gain, 0.4, 0.6) for name, gain in GAINS.items()})
        assert running.interrupt() == 0
        running.check_clean_end(4)


def test_two_emulated_robots_from_one_launch_each(launch, environment, tmp_path):
    """Servo, compensation and guard twice, in two namespaces, with own ports, parameters and gains; both follow their
    goals."""
    content = yaml.safe_load((REPOSITORY / "examples" / "single_xl330" / "record.yaml").read_text())
    content |= {"rate": 100, "command_timeout": 2.0, "silence_timeout": 2.0, "watchdog": 2.0}
    (tmp_path / "servo.yaml").write_text(yaml.safe_dump(content))
    bench = "mass=0.1,length=0.1,arm_mass=0.02"
    speeds = {"left": 0.5, "right": -0.5}
    with Graph() as graph, ExitStack() as stack:
        for name, gain in GAINS.items():
            port = tmp_path / name
            emulate = ["stribeck", "emulate", "--servo", "xl330", "--bench", bench, "--link", port]
            stack.enter_context(Launched(emulate, environment, tmp_path / f"emulator_{name}"))
            wait_for(port.exists, "the emulated servo")
            parameters = {
                "joints": ["joint"],
                "joint": {"parameter_file": f"~/stribeck/{name}.json"},
                "output_mode": "goal_offset",
                "output_type": "joint_state",
                "effort_meaning": "motor",
                "adapt": False,
                "gain": gain,
                "state_timeout": 0.2,
                "pause_limit": 1.0,  # of a machine that does other things beside
                "heartbeat_timeout": 1.5,
            }
            path = tmp_path / f"{name}.yaml"
            path.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters}}))
            given = {"namespace": name, "port": port, "servo": tmp_path / "servo.yaml", "compensation": path}
            running = stack.enter_context(launch("single_xl330", **given))
            stack.callback(running.check_clean_end, 3)
            stack.callback(lambda running=running: running.interrupt())
            for node in ("servo", "compensation", "guard"):
                running.reaches(graph, f"{name}/{node}")
        states = {name: graph.collect(JointState, f"/{name}/joint_states") for name in GAINS}
        robots = TwoRobots(graph, speeds)
        for name in GAINS:
            wait_for(
                lambda name=name: np.ptp([0.0] + [state.position[0] for state in states[name]]) > 0.2,
                f"{name} follows its goals",
            )
        robots.wait({name: friction(gain, 0.3, 1.2) for name, gain in GAINS.items()})
