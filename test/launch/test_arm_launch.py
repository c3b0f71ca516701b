"""`ros2 launch stribeck arm.launch.py`: a simulated arm is excited, identified and compensated, without a command line between."""

import json
import threading
import time

import numpy as np
import pytest
import yaml
from ros_graph import Graph, wait_for
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from fake_robot import PERIOD, FakeRobot
from launching import Launched, needs_launch
from moving_arms import FRICTION, JOINTS, arm, linear_friction, urdf
from stribeck.files.drives import read_drives
from stribeck.identify.arm.model import load_arm
from stribeck.model.law import friction_budget
from stribeck.session.excitation_file import ExcitationFile, write_excitation
from stribeck.session.fourier import FourierTrajectory

pytestmark = [needs_launch, pytest.mark.real_time, pytest.mark.slow, pytest.mark.timeout(500)]

PULL = 30.0
"""Bandwidth with which joints follow their goals [rad/s]."""


class TorqueArm(FakeRobot):
    """An arm whose states have the torque of its motors: rigid bodies, rotors, viscous and Coulomb friction."""

    def __init__(self, graph, model):
        super().__init__(graph, JOINTS, "forward", start=0.0)
        self._model, self._rng = model, np.random.default_rng(0)
        self._velocity = np.zeros(len(JOINTS))

    def _move(self):
        due = time.monotonic()
        while not self._ended.wait(max(0.0, due - time.monotonic())):
            due += PERIOD
            with self._lock:
                goal = self._goal
            acceleration = PULL**2 * (goal - self.position) - 2.0 * PULL * self._velocity
            rows = (self.position[None], self._velocity[None], acceleration[None])
            torque = self._model.inverse_dynamics(*rows)[0] + linear_friction(self._velocity, acceleration)
            message = JointState(name=list(JOINTS), position=self.position.tolist())
            message.velocity = self._velocity.tolist()
            message.effort = (torque + 0.05 * self._rng.standard_normal(len(torque))).tolist()
            message.header.stamp = self._node.get_clock().now().to_msg()
            self._states.publish(message)
            self._velocity = self._velocity + PERIOD * acceleration
            self.position = self.position + PERIOD * self._velocity


def excitation(folder):
    """A motion of all joints that starts and ends at rest, in a session's file."""
    rng = np.random.default_rng(2)
    duration, harmonics = 12.0, 5
    w = 2.0 * np.pi / duration
    l_w = w * np.arange(1, harmonics + 1)
    sine = rng.uniform(-0.5, 0.5, (3, harmonics))
    cosine = rng.uniform(-0.5, 0.5, (3, harmonics))
    # At rest at both ends: the sums of velocities and accelerations vanish.
    sine[:, -1] = -sine[:, :-1].sum(axis=1)
    cosine[:, -1] = -(cosine[:, :-1] * l_w[:-1]).sum(axis=1) / l_w[-1]
    offset = np.zeros(3)
    motion = FourierTrajectory(JOINTS, duration, sine, cosine, offset)
    write_excitation(folder / "motion.yaml", ExcitationFile("arm", motion))
    joint = {
        "position_limits": [-3.0, 3.0],
        "limits": {"velocity": 6.0, "acceleration": 60.0, "following_error": 2.0},
        "bench": {"mass": 1.0, "length": 0.1, "arm_mass": 0.0},
        "actuator": "torque_joint",
    }
    content = {
        "joints": dict.fromkeys(JOINTS, joint),
        "plays": {"trajectories": [str(folder / "motion.yaml")], "gains": [1.0]},
        "output": str(folder / "bags"),
        "supply_voltage": 24.0,
        "state_timeout": 2.0,
    }
    path = folder / "session.yaml"
    path.write_text(yaml.safe_dump(content))
    parameters = folder / "excitation.yaml"
    parameters.write_text("/**/excitation:\n  ros__parameters: {commander: forward}\n")
    return path, parameters


def test_an_arm_is_excited_identified_and_compensated(environment, tmp_path):
    """One launch: the friction is that of the simulated arm, and the compensation publishes torques at the end."""
    true = arm(tmp_path)
    model = urdf(tmp_path, mass=2.2)
    session, parameters = excitation(tmp_path)
    words = {
        "bench_file": session,
        "model": model,
        "params_file": parameters,
        "bags": tmp_path / "bags",
        "output": tmp_path / "result",
    }
    command = [
        "ros2",
        "launch",
        "stribeck",
        "arm.launch.py",
        *(f"{key}:={value}" for key, value in words.items()),
    ]
    with (
        Graph() as graph,
        TorqueArm(graph, true),
        Launched(command, environment, tmp_path / "output") as running,
    ):
        wait_for(
            lambda: running.over or (tmp_path / "result" / "arm.json").is_file(), "the result", timeout=300.0
        )
        assert not running.over, running.output
        running.reaches(graph, "compensation")
        torques = graph.collect(Float64MultiArray, "/compensated_command")
        wait_for(lambda: torques, "a torque", timeout=30.0)
        assert len(torques[0].data) == len(JOINTS)
        assert running.interrupt() == 0
    drives = read_drives(tmp_path / "result" / "arm.json")
    for k, joint in enumerate(JOINTS):
        drive = drives.joints[joint]
        found, _ = friction_budget(drive.law, drive.values, 0.0, 0.0, 0.8)
        assert found == pytest.approx(
            FRICTION["friction_base"][k] + 0.8 * FRICTION["friction_viscous"][k], rel=0.3
        )
    assert load_arm(tmp_path / "result" / "arm.urdf", JOINTS) is not None
    assert json.dumps(drives.verdict.use)
    assert threading.active_count() < 20
