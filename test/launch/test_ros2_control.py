"""The controller inside a controller_manager of ros2_control, where it is built: everything documented, and as good as in Python."""

import json
import os
import re
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ros_graph import Graph, domain, wait_for
from builtin_interfaces.msg import Duration
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from compensating import model
from launching import Launched, needs_launch
from stribeck.live.compensator import Compensator
from stribeck.live.settings import Settings, Timing
from stribeck.model.joint_map import JointMap

PROGRAM = "lib/stribeck_controllers/test_in_controller_manager"
PREFIXES = [Path(place) for place in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if place]
FOUND = [place / PROGRAM for place in PREFIXES if (place / PROGRAM).exists()]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.real_time,
    pytest.mark.skipif(
        not FOUND,
        reason="stribeck_controllers is not built with its tests: colcon build --base-paths . controllers, with ros2_control",
    ),
]

RATE, INNER = 250.0, 1e-4
INERTIA, COULOMB, VISCOUS, P, D = 0.05, 0.3, 0.1, 20.0, 2.0


@pytest.fixture(scope="module")
def figures(tmp_path_factory):
    """What the tests in the controller manager measured; they have to pass."""
    file = tmp_path_factory.mktemp("ros2_control") / "figures.json"
    done = subprocess.run(
        [FOUND[0]],
        env={**os.environ, "STRIBECK_FIGURES": str(file)},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return json.loads(file.read_text())


def goal(t):
    """Position and velocity of the motion [rad], [rad/s]."""
    w = 0.5 * np.pi
    return 0.5 * (1.0 - np.cos(w * t)), 0.5 * w * np.sin(w * t)


def simulated(gain):
    """Error of the same joints under the Python compensator, in the same loop [rad]."""
    joint = model("a", "m1", 3.0, friction_base=COULOMB, friction_viscous=VISCOUS, armature=0.0)
    joint = replace(
        joint, actuator=replace(joint.actuator, resolution=1e-4)
    )  # as the parameters of the controller
    ours = Compensator(
        [joint], [JointMap()], Settings("sum", "none", gain=gain or 0.8, timing=Timing(loop_delay=1.0 / RATE))
    )
    if gain:
        ours.enable()
    q = v = effort = 0.0
    errors = []
    inner = round(1.0 / RATE / INNER)
    for k in range(1500):
        t = k / RATE
        for _ in range(inner):
            pushed = (v + effort / INERTIA * INNER) / (1.0 + VISCOUS / INERTIA * INNER)
            v = np.sign(pushed) * max(0.0, abs(pushed) - COULOMB / INERTIA * INNER)
            q += v * INNER
        at, rate = goal(t)
        wanted = P * (at - q) + D * (rate - v)
        ours.on_command(t, t - 0.5 / RATE, ["a"], (), (), np.array([wanted]))
        before = goal(max(t - 1.0 / RATE, 0.0))
        ours.on_goal(t, t - 1.0 / RATE, ["a"], np.array([before[0]]), np.array([before[1]]))
        torque = ours.on_state(t, t, ["a"], np.array([q]), np.array([v]), ())
        effort = wanted + float(torque[0])
        if k >= 500:
            errors.append(at - q)
    return float(np.sqrt(np.mean(np.square(errors))))


def test_the_controller_does_what_is_documented_in_a_controller_manager(figures):
    """Chained behind a trajectory controller; NaN references, missing interfaces, parameters out of range, reloading."""
    assert figures["with"] < 0.35 * figures["without"]


def test_it_tracks_as_well_as_the_python_compensator(figures):
    """Error of the trajectory controller with and without compensation, within 2 % of the same loop in Python."""
    assert figures["without"] == pytest.approx(simulated(0.0), rel=0.02)
    assert figures["with"] == pytest.approx(simulated(0.8), rel=0.02)


@needs_launch
def test_the_example_compensates_and_again_after_its_controller_manager_was_killed(tmp_path):
    """Trajectory controller, compensation and mock hardware from one command; SIGKILL, started again: the same."""
    from control_msgs.msg import DynamicJointState

    def column(state, name):
        """A value of each joint in ~/state."""
        return [joint.values[list(joint.interface_names).index(name)] for joint in state.interface_values]

    environment = {**os.environ, "ROS_DOMAIN_ID": str(domain())}
    goal = JointTrajectoryPoint(positions=[2.0, -2.0], time_from_start=Duration(sec=20))
    path = JointTrajectory(joint_names=["shoulder", "elbow"], points=[goal])
    for attempt in ("first", "second"):
        command = ["ros2", "launch", "stribeck_controllers", "example.launch.py"]
        with Graph() as graph, Launched(command, environment, tmp_path / attempt) as running:
            running.says("Configured and activated joint_trajectory_controller")
            states = graph.collect(DynamicJointState, "/friction_compensation/state")
            paths = graph.publisher(JointTrajectory, "/joint_trajectory_controller/joint_trajectory")
            wait_for(paths.get_subscription_count, "the trajectory controller")
            paths.publish(path)
            wait_for(
                lambda found=states: (
                    found and np.min(np.multiply(column(found[-1], "friction_torque"), [1, -1])) > 0.1
                ),
                "friction torque in the direction of the goals",
            )
            assert not any(column(states[-1], "fault"))
            node = re.search(r"\[ros2_control_node-\d+\]: process started with pid \[(\d+)\]", running.output)
            os.kill(int(node[1]), signal.SIGKILL)
            running.says("process has died")
            running.interrupt()
