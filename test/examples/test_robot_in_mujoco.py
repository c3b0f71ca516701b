"""The example that puts identified drives into plain MJCF."""

import sys

import numpy as np
import pytest

from helpers import REPOSITORY
from stribeck.files.drives import Drives, write_drives
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.model.estimate import fixed
from stribeck.model.law import LAWS

pytest.importorskip("mujoco")
sys.path.insert(0, str(REPOSITORY / "examples"))

LEG = """<mujoco><worldbody><body name="base"><freejoint/><geom size="0.1"/>
<body pos="0 0 -0.1"><joint name="hip" axis="0 1 0"/><inertial mass="1" pos="0 0 -0.2" diaginertia="0.01 0.01 0.01"/></body>
</body></worldbody><actuator><motor joint="hip" ctrlrange="-20 20"/></actuator></mujoco>"""


def write_robot(path, joint, values):
    """A file of drives with one joint."""
    estimates = {name: fixed(value, "") for name, value in values.items()}
    write_drives(path, Drives({joint: torque_drive(torque_actuator("rotary"), LAWS["m1"], estimates)}))


def test_a_leg_goes_to_its_goal_less_its_bias(tmp_path):
    """The written model needs no Stribeck and has the drive of the file; without friction it ends where the spring is at rest."""
    from robot_in_mujoco import main

    (tmp_path / "leg.xml").write_text(LEG)
    drive = {"armature": 0.05, "bias": 0.1, "delay": 0.004, "friction_base": 0.0, "friction_viscous": 0.2}
    write_robot(tmp_path / "robot.json", "hip", drive)
    time = 0.005 * np.arange(800)
    goal, rest = np.full((800, 1), 0.4), 0.0
    for _ in range(50):
        rest = 0.3 - 9.80665 * 0.2 * np.sin(rest) / 100.0
    motion = {"time": time, "dof_pos": np.full((800, 1), rest), "des_dof_pos": goal}
    np.savez(tmp_path / "run.npz", **motion, kp=np.array([100.0]), kd=np.array([2.0]))
    error = main(tmp_path / "leg.xml", tmp_path / "robot.json", tmp_path / "run.npz", tmp_path / "out")
    assert error < 1e-3
    text = (tmp_path / "out" / "identified.xml").read_text()
    assert 'armature="0.05"' in text
    assert 'frictionloss="0"' in text
    assert (tmp_path / "out" / "motion.png").stat().st_size > 10_000


ARM = """<mujoco><worldbody><body pos="0 0 1"><joint name="lift" axis="0 1 0"/>
<inertial mass="0.5" pos="0 0 -0.2" diaginertia="0.001 0.001 0.001"/><body pos="0 0 -0.3"><joint name="jaw" axis="0 1 0" damping="0.3"/>
<inertial mass="0.1" pos="0 0 -0.05" diaginertia="0.001 0.001 0.001"/></body></body></worldbody>
<actuator><position joint="lift" kp="900"/><position name="jaw" joint="jaw" kp="50"/></actuator></mujoco>"""


def test_an_arm_without_known_gains_has_the_identified_stiffness(tmp_path):
    """A hobby arm whose jaw was excluded: the jaw keeps the controller of the given model, and stays."""
    from robot_in_mujoco import main

    (tmp_path / "arm.xml").write_text(ARM)
    drive = {"armature": 0.02, "stiffness": 8.0, "bias": 0.0, "delay": 0.0}
    drive |= {"friction_base": 0.0, "friction_viscous": 0.6}
    write_robot(tmp_path / "robot.json", "lift", drive)
    time, rest = 0.02 * np.arange(200), 0.0
    for _ in range(50):
        rest = (
            0.4
            - 9.80665 * (0.5 * 0.2 * np.sin(rest) + 0.1 * (0.3 * np.sin(rest) + 0.05 * np.sin(rest))) / 8.0
        )
    goal, position = np.tile([0.4, 0.0], (200, 1)), np.tile([rest, 0.0], (200, 1))
    np.savez(tmp_path / "run.npz", t=time, goal=goal, position=position)
    assert main(tmp_path / "arm.xml", tmp_path / "robot.json", tmp_path / "run.npz", tmp_path / "out") < 2e-3
    text = (tmp_path / "out" / "identified.xml").read_text()
    assert 'name="jaw" joint="jaw" kp="50"' in text
    assert 'name="lift" joint="lift" kp="8"' in text
    assert "900" not in text
