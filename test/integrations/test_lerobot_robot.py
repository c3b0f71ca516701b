"""The plug-in for LeRobot under lerobot itself, with emulated servos: `STRIBECK_LEROBOT` names its interpreter."""

import json
import math
import os
import subprocess

import pytest

from driving import emulator_process
from helpers import REPOSITORY
from stribeck.emulator.joint import published_parameters
from stribeck.files.drives import Drives, write_drives
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.model.estimate import fixed
from stribeck.model.law import law_named

LEROBOT = "STRIBECK_LEROBOT"
NAMES = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")
MASS, LENGTH, GAIN = 0.3, 0.12, 16

CLIENT = """
import sys, time
from lerobot.robots import RobotConfig, make_robot_from_config
from lerobot.robots.so_follower import SOFollowerRobotConfig
from lerobot_robot_stribeck import StribeckFollowerConfig

kind, port, folder = sys.argv[1:4]
common = {"port": port, "id": "arm", "calibration_dir": __import__("pathlib").Path(folder)}
if kind == "plain":
    config = SOFollowerRobotConfig(**common)
else:
    assert RobotConfig.get_choice_class("stribeck_follower") is StribeckFollowerConfig
    config = StribeckFollowerConfig(drives=f"{folder}/robot.json", urdf=f"{folder}/arm.urdf", **common)
robot = make_robot_from_config(config)
for attempt in range(20):  # lerobot asks each servo once, and this machine may be busy
    try:
        robot.connect(calibrate=False)
        break
    except (RuntimeError, ConnectionError) as error:
        if attempt == 19:
            raise
        if robot.bus.is_connected:
            robot.bus.disconnect(False)
joints = list(robot.bus.motors)
goal = {f"{name}.pos": (50.0 if name == "gripper" else 40.0) for name in joints}
until = time.monotonic() + 6.0
while time.monotonic() < until:  # the arm is driven for a time, as by any program of LeRobot
    try:
        assert robot.send_action(goal) == goal
        seen = robot.get_observation()
    except ConnectionError:
        if kind != "plain":  # whose thread asks again
            raise
    time.sleep(0.02)
robot.disconnect()
print(max(abs(seen[f"{name}.pos"] - 40.0) for name in joints[:5]))
"""


def prepared(folder):
    """Calibration, drives and URDF of five joints, each with a mass on a rod."""
    motors = {
        name: {"id": k + 1, "drive_mode": 0, "homing_offset": 0, "range_min": 0, "range_max": 4095}
        for k, name in enumerate(NAMES)
    }
    (folder / "arm.json").write_text(json.dumps(motors))
    servo, law = published_parameters("sts3215"), law_named("m1")
    stiffness = 7.4 * servo.actuator.control.gain * GAIN * servo.values["kt"] / servo.values["R"]
    estimates = {
        "stiffness": fixed(stiffness, "N m/rad"),
        "derivative": fixed(servo.values["kt"] ** 2 / servo.values["R"], "N m s/rad"),
        "armature": fixed(servo.values["armature"], "kg m^2"),
        **{name: fixed(servo.values[name], "") for name in law.parameter_names},
    }
    actuator = torque_actuator("rotary", largest=1.9, resolution=2 * math.pi / 4096, derivative_gain=1.0)
    drive = torque_drive(actuator, law, estimates)
    write_drives(folder / "robot.json", Drives(dict.fromkeys(NAMES[:5], drive)))
    links = "".join(
        f'<link name="{name}_link"><inertial><origin xyz="0 0 {-LENGTH}"/><mass value="{MASS}"/>'
        '<inertia ixx="1e-6" iyy="1e-6" izz="1e-6" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        f'<joint name="{name}" type="continuous"><parent link="base"/><child link="{name}_link"/><axis xyz="0 -1 0"/></joint>'
        for name in NAMES[:5]
    )
    (folder / "arm.urdf").write_text(f'<robot name="arm"><link name="base"/>{links}</robot>')


@pytest.mark.real_time
@pytest.mark.slow
@pytest.mark.skipif(LEROBOT not in os.environ, reason=f"${LEROBOT} names no interpreter with lerobot")
def test_the_plug_in_holds_goals_better_than_lerobots_follower(tmp_path):
    """LeRobot makes the robot by its registered name; its error at rest is less than a third of the plain follower's."""
    prepared(tmp_path)
    plug_in = REPOSITORY / "integrations" / "lerobot_robot_stribeck"
    paths = os.pathsep.join([str(REPOSITORY / "src"), str(plug_in)])
    servos = ("--servo", "sts3215", "--id", *map(str, range(1, 7)), "--bench", f"mass={MASS},length={LENGTH}")
    errors = {}
    for kind in ("plain", "offset"):
        with emulator_process(tmp_path / f"port_{kind}", *servos) as port:
            command = [os.environ[LEROBOT], "-c", CLIENT, kind, port, str(tmp_path)]
            done = subprocess.run(
                command,
                env=os.environ | {"PYTHONPATH": paths},
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
        assert done.returncode == 0, done.stderr[-2000:]
        errors[kind] = float(done.stdout.split()[-1])
    assert errors["offset"] < errors["plain"] / 3.0, errors


@pytest.mark.slow
@pytest.mark.skipif(LEROBOT not in os.environ, reason=f"${LEROBOT} names no interpreter with lerobot")
def test_the_tests_of_the_plug_in_pass_under_lerobot():
    """All of them run there: none is skipped. The interpreter needs pytest."""
    done = subprocess.run(
        [os.environ[LEROBOT], "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=REPOSITORY / "integrations" / "lerobot_robot_stribeck",
        env=os.environ | {"PYTHONPATH": str(REPOSITORY / "src")},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert "skipped" not in done.stdout
