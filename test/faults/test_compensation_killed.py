"""The compensation node dies, hangs, or its states stop: what reaches the robot, and how soon."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from ros_graph import Graph, domain, wait_for
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool

from helpers import published
from stribeck.files.actuators import load_actuator
from stribeck.live.friction import goal_offset

pytestmark = pytest.mark.real_time

M1 = {**published("xl330", "m1"), "q_offset": 0.0}
SPEED = {"friction_only": 0.1, "current": 0.1, "sum": 0.1, "goal_offset": 1.0}
"""Of the joint [rad/s]: slow enough to move for a minute, in which a joint without a goal ahead keeps its torque."""
FRICTION = {
    mode: 0.8 * (M1["friction_base"] + speed * M1["friction_viscous"]) for mode, speed in SPEED.items()
}
KP, SUPPLY = 200.0, 5.0
OFFSET = goal_offset(load_actuator("xl330"), M1, KP, SUPPLY, FRICTION["goal_offset"])
GOAL, EFFORT = 0.3, 0.05
SLOWER = 20.0
"""All times are so many times their defaults, in the same relation: a machine with other work stands still for 50 ms.

Virtual time has the defaults: test/live/test_supervision.py, test/live/test_compensator.py.
"""
TIMES = {"heartbeat_timeout": 0.05, "pause_limit": 0.04, "command_timeout": 0.1}
OWN_TIMES = {"state_timeout": 0.04, "state_lag": 0.1}
SLEW = 0.01
"""At which the guard takes friction torque back [N m/s]."""
QUICK = (("friction_only", signal.SIGSTOP), ("sum", signal.SIGKILL), ("goal_offset", signal.SIGKILL))
MODES = ("friction_only", "current", "sum", "goal_offset")
WORKING = {
    "friction_only": FRICTION["friction_only"],
    "current": FRICTION["current"] / M1["kt"],
    "sum": EFFORT + FRICTION["sum"],
}
PASSED = {"friction_only": 0.0, "current": 0.0, "sum": EFFORT, "goal_offset": GOAL}


def write_config(folder: Path, mode: str) -> Path:
    """One joint of law M1; both nodes read the same file."""
    parameters = folder / "m1.json"
    parameters.write_text(json.dumps({**M1, "model": "m1", "actuator": "xl330"}))
    joint = {"parameter_file": str(parameters), "p_gain": KP, "supply_voltage": SUPPLY}
    common = {
        "joints": ["hinge"],
        "output_mode": mode,
        "output_type": "joint_state",
        "hinge": joint,
        "autostart": True,
        **{name: SLOWER * value for name, value in TIMES.items()},
    }
    own = {
        **common,
        "effort_meaning": "none",
        "ramp_time": 0.0,
        **{name: SLOWER * value for name, value in OWN_TIMES.items()},
        "slew_limit": 1e4,
        "guarded": True,
        "enabled": False,
    }
    path = folder / "both.yaml"
    path.write_text(
        json.dumps(
            {
                "compensation": {"ros__parameters": own},
                "guard": {"ros__parameters": {**common, "slew_limit": SLEW}},
            }
        )
    )
    return path


class Robot:
    """A joint that moves and a controller, both at 200 Hz, and what the robot is told."""

    def __init__(self, graph: Graph, mode: str) -> None:
        self.graph, self.mode = graph, mode
        self.received: list[tuple[float, float]] = []
        self.feeding = threading.Event()
        self.feeding.set()
        self._states = graph.user.create_publisher(JointState, "joint_states", 50)
        self._commands = graph.user.create_publisher(JointState, "controller_command", 50)
        graph.user.create_subscription(JointState, "compensated_command", self._take, 50)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop for good."""
        self._ended.set()
        self._thread.join()

    def _take(self, message: JointState) -> None:
        values = message.position if len(message.position) else message.effort
        self.received.append((time.monotonic(), values[0]))

    def _run(self) -> None:
        period = 0.005
        begin = due = time.monotonic()
        while not self._ended.wait(max(0.0, due - time.monotonic())):
            due += period
            stamp = self.graph.user.get_clock().now().to_msg()
            speed = SPEED[self.mode]
            at = GOAL + speed * (due - begin)
            command = JointState(name=["hinge"], position=[at], velocity=[speed], effort=[EFFORT])
            if self.mode == "goal_offset":
                command = JointState(name=["hinge"], position=[GOAL], velocity=[speed])
            command.header.stamp = stamp
            self._commands.publish(command)
            if self.feeding.is_set():
                state = JointState(name=["hinge"], position=[at], velocity=[speed], effort=[0.0])
                state.header.stamp = stamp
                self._states.publish(state)

    guard: subprocess.Popen[bytes]

    def tell(self, data: bytes) -> None:
        """A command as bytes."""
        self._commands.publish(data)

    def last(self) -> float:
        """What the robot was told last."""
        return self.received[-1][1] if self.received else float("nan")

    def told(self, value: float, tolerance: float = 1e-6) -> bool:
        """Whether the robot was just told about ``value``."""
        return abs(self.last() - value) < tolerance


@contextlib.contextmanager
def stack(tmp_path: Path, mode: str) -> Iterator[tuple[Robot, subprocess.Popen[bytes]]]:
    """Compensation node and guard as processes, and a robot."""
    config = write_config(tmp_path, mode)
    environment = {
        **os.environ,
        "ROS_DOMAIN_ID": str(domain()),
        **json.loads(os.environ.get("CHILD_ENV", "{}")),
    }
    environment.pop("_ROS_WHEELS_BOOTSTRAP_COMPLETE", None)
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", f"stribeck.nodes.{name}", "--ros-args", "--params-file", str(config)],
            env=environment,
        )
        for name in ("guard", "compensation")
    ]
    with Graph() as graph:
        robot = Robot(graph, mode)
        robot.guard = processes[0]
        try:
            working = {**WORKING, "goal_offset": GOAL + OFFSET}[mode]
            # Only the guard speaks before the node is enabled: its way to the robot is open from then on.
            wait_for(lambda: robot.told(PASSED[mode], 1e-9), f"{PASSED[mode]} in {mode}")
            enable(robot, working)
            yield robot, processes[1]
        finally:
            robot.end()
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGCONT)
                    process.send_signal(signal.SIGINT)
            codes = [process.wait(timeout=60.0) for process in processes]
    assert codes[0] == 0, "the guard ends with 0 after SIGINT"


def enable(robot: Robot, working: float) -> None:
    """Enable the node, again where a pause of this busy machine has revoked it, until only ``working`` goes out."""
    near = 0.02 * abs(working)
    asked = -2.0

    def only_working() -> bool:
        nonlocal asked
        if len(robot.received) > 20 and all(abs(v - working) < near for _, v in robot.received[-20:]):
            return True
        if time.monotonic() - asked > 1.0:
            robot.graph.call(SetBool, "/compensation/enable", SetBool.Request(data=True))
            asked = time.monotonic()
        return False

    wait_for(only_working, f"only {working} in {robot.mode}")


def first_after(robot: Robot, moment: float, value: float, tolerance: float) -> float:
    """Seconds from ``moment`` until the robot is told about ``value``."""
    wait_for(lambda: robot.told(value, tolerance), f"{value}, was {robot.last()}")
    return next(t for t, v in robot.received if t > moment and abs(v - value) < tolerance) - moment


@pytest.mark.ci
@pytest.mark.parametrize(
    ("mode", "how"),
    [
        pytest.param(mode, how, marks=[pytest.mark.slow] * ((mode, how) not in QUICK))
        for mode in MODES
        for how in (signal.SIGKILL, signal.SIGSTOP)
    ],
)
def test_guard_takes_over_from_a_node_that_dies_or_hangs(tmp_path, mode, how):
    """Within twice the timeout of heartbeats zeros; the controller's effort or goal, with the friction taken back; never a zero goal."""
    with stack(tmp_path, mode) as (robot, node):
        moment = time.monotonic()
        node.send_signal(how)
        allowed = SLOWER * 0.1 + (FRICTION[mode] / SLEW if mode in ("sum", "goal_offset") else 0.0)
        took = first_after(robot, moment, PASSED[mode], 1e-9)
        around = [(round(t - moment, 4), v) for t, v in robot.received if t > moment - 0.02][:12]
        assert took <= allowed, f"took {took:.3f} s: {around}"
        after = [v for t, v in robot.received if t > moment]
        if mode == "goal_offset":
            assert min(after) >= GOAL - 1e-9, "a goal is never replaced by zero"
        if mode in ("sum", "goal_offset"):
            steps = np.abs(np.diff(after))
            most = OFFSET if mode == "goal_offset" else FRICTION[mode]
            assert steps.max() <= 0.6 * most, "the friction is taken back in steps"


@pytest.mark.slow
def test_node_that_wakes_up_again_stays_quiet_until_it_is_enabled(tmp_path):
    """After SIGCONT the guard stays in charge; the enable service gives the torque back."""
    with stack(tmp_path, "sum") as (robot, node):
        node.send_signal(signal.SIGSTOP)
        wait_for(lambda: robot.told(EFFORT), "the controller's effort alone")
        node.send_signal(signal.SIGCONT)
        count = len(robot.received)
        wait_for(lambda: len(robot.received) > count + 60, "0.3 s of commands")
        others = [v for _, v in robot.received[count:] if abs(v - EFFORT) > 1e-9]
        assert len(others) <= 1, "but the command on whose way out it was stopped, it says nothing"
        enable(robot, WORKING["sum"])


@pytest.mark.ci
@pytest.mark.parametrize("mode", ["friction_only", pytest.param("sum", marks=pytest.mark.slow)])
def test_one_of_the_two_speaks_after_the_guard_itself_hung(tmp_path, mode):
    """Whatever the guard makes of its own pause: it and the node do not speak both; enabling gives the torque back."""
    with stack(tmp_path, mode) as (robot, _):
        for _ in range(4):
            robot.guard.send_signal(signal.SIGSTOP)
            count = len(robot.received)
            wait_for(lambda count=count: len(robot.received) > count + 400, "2 s of commands")
            robot.guard.send_signal(signal.SIGCONT)
            wait_for(lambda: agree(robot, 40), "one speaker")
        enable(robot, WORKING[mode])


def agree(robot: Robot, count: int) -> bool:
    """Whether the last commands are all the same."""
    return len({round(value, 9) for _, value in robot.received[-count:]}) == 1


@pytest.mark.ci
def test_a_name_that_is_no_text_ends_nobody(tmp_path):
    """Damaged bytes on the controller's topic: logged by both; the next command is served."""
    with stack(tmp_path, "sum") as (robot, node):
        message = JointState(name=["hinge"], position=[GOAL], velocity=[SPEED["sum"]], effort=[EFFORT])
        robot.tell(serialize_message(message).replace(b"hinge", b"h\xff\xfe\xffe"))
        count = len(robot.received)
        wait_for(lambda: len(robot.received) > count + 60, "0.3 s of commands")
        assert (robot.guard.poll(), node.poll()) == (None, None)
        enable(robot, WORKING["sum"])


@pytest.mark.ci
@pytest.mark.parametrize("mode", ["friction_only", pytest.param("sum", marks=pytest.mark.slow)])
def test_no_friction_torque_after_the_last_state(tmp_path, mode):
    """States stop: zero torque, or the controller's effort alone, within 1.25 times state_timeout and a state on its way."""
    with stack(tmp_path, mode) as (robot, _):
        moment = time.monotonic()
        robot.feeding.clear()
        assert first_after(robot, moment, PASSED[mode], 1e-9) <= SLOWER * (0.05 + 0.01)
        robot.feeding.set()
        wait_for(lambda: robot.told(WORKING[mode], 0.02 * WORKING[mode]), "torque after states came back")
