"""The plug-in for inverse_dynamics_solver, compiled against stand-ins for ROS: friction as in Python, from what an export writes."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
import yaml

from cpp_compensator import SOURCES, built
from helpers import published
from stribeck.exports.registry import FORMATS
from stribeck.exports.task import ExportTask, JointServo
from stribeck.files.actuators import load_actuator
from stribeck.model.joint import Drive, Servo
from stribeck.model.law import friction_budget, law_named

EIGEN = Path("/usr/include/eigen3")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The plug-in with a program around it."""
    if not EIGEN.is_dir():
        pytest.skip("no Eigen here: apt install libeigen3-dev")
    target = tmp_path_factory.mktemp("solver") / "solver"
    flags = (
        "-O1",
        f"-I{SOURCES / 'stand_ins'}",
        f"-I{SOURCES.parents[1] / 'controllers' / 'include'}",
        f"-isystem{EIGEN}",
    )
    return built(SOURCES / "inverse_dynamics.cpp", target, *flags)


@pytest.fixture
def drives():
    """An MX-106 with M6, and one with M2 that brakes one direction more and has an offset."""
    actuator = load_actuator("mx106")
    rich = law_named("m2").with_terms(asymmetric=True, offset=True)
    more = {"friction_base_negative": 0.1, "friction_viscous_negative": 0.05, "torque_offset": 0.03}
    return {
        "shoulder": Drive(actuator, law_named("m6"), published("mx106", "m6")),
        "elbow": Drive(actuator, rich, {**published("mx106", "m2"), **more}),
    }


def parameters(drives, folder, **changes):
    """Lines of parameters: those of an export to ros2_control, and of the solver."""
    joints = tuple(JointServo(name, Servo(drive, 32.0)) for name, drive in drives.items())
    paths = tuple(folder / f"{name}.json" for name in drives)
    (text,) = (
        FORMATS["ros2_control"].write(ExportTask(joints, folder / "a.yaml", sources=paths)).files.values()
    )
    given = yaml.safe_load(text)["friction_compensation"]["ros__parameters"]
    found = {"arm.rigid_solver": "test/Rigid", "arm.joints": given["joints"]}
    found |= {
        f"arm.friction.{joint}.{key}": v
        for joint, values in given["friction"].items()
        for key, v in values.items()
    }
    found |= changes
    return [
        f"{name} {type(value).__name__} {' '.join(value) if isinstance(value, list) else value}"
        for name, value in found.items()
        if value is not None
    ]


def run(program, lines, states=()):
    """Exit code, numbers and message."""
    rows = [" ".join(map(repr, map(float, state))) for state in states]
    done = subprocess.run([program], input="\n".join([*lines, "", *rows]), capture_output=True, text=True)
    return done.returncode, np.array([line.split() for line in done.stdout.splitlines()], float), done.stderr


@pytest.mark.ci
def test_friction_is_the_law_and_grows_with_the_torque_of_the_motion(program, drives, tmp_path):
    """Without load the budget; under load the fixed point: the motor gives what the motion needs and the friction."""
    rng = np.random.default_rng(0)
    states = np.column_stack([rng.uniform(-1, 1, (200, 2)), rng.uniform(-3, 3, (200, 4))])
    states[:5, 2] = 0.0
    _, found, said = run(program, parameters(drives, tmp_path), states)
    assert said == "expected 2 joints, found 3\n"
    for k, drive in enumerate(drives.values()):
        q, v, a = states[:, k], states[:, 2 + k], states[:, 4 + k]
        offset = drive.values.get("torque_offset", 0.0)

        def against(motor, external, v=v, drive=drive, offset=offset):
            positive, negative = friction_budget(drive.law, drive.values, motor, external, v)
            return np.sign(v) * np.where(v > 0.0, positive, negative) - offset * (v != 0.0)

        np.testing.assert_allclose(found[:, k], against(0.0, 0.0), rtol=1e-12, atol=1e-14)
        rigid = 0.1 * a + 2.0 * q
        friction = found[:, 2 + k] - rigid
        np.testing.assert_allclose(friction, against(rigid + friction, -rigid), rtol=1e-6, atol=1e-9)
        np.testing.assert_array_equal(friction[v == 0.0], 0.0)


def test_a_joint_that_is_not_enabled_has_no_friction(program, drives, tmp_path):
    """The other one has all of it."""
    states = np.array([[0.3, -0.2, 1.0, -1.5, 0.5, 0.4]])
    _, found, _ = run(program, parameters(drives, tmp_path, **{"arm.friction.elbow.enabled": False}), states)
    _, whole, _ = run(program, parameters(drives, tmp_path), states)
    np.testing.assert_array_equal(found[:, [0, 2]], whole[:, [0, 2]])
    assert found[0, 1] == 0.0
    assert found[0, 3] == pytest.approx(0.1 * states[0, 5] + 2.0 * states[0, 1], rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"arm.joints": None}, "parameter arm.joints is missing"),
        ({"arm.rigid_solver": "none/Such"}, "no plug-in none/Such"),
        ({"arm.friction.elbow.law": "m7"}, "elbow.law: expected m1 to m6, found 'm7'"),
        ({"arm.friction.elbow.law": None}, "parameter arm.friction.elbow.law is missing"),
        (
            {"arm.friction.elbow.friction_base": -0.1},
            "elbow.friction_base: must be zero or positive, found -0.1",
        ),
        ({"arm.friction.elbow.max_torque": 0}, "elbow.max_torque: must be positive, found 0"),
    ],
)
def test_wrong_parameters_are_one_clear_line(program, drives, tmp_path, changes, part):
    code, _, said = run(program, parameters(drives, tmp_path, **changes))
    assert code == 1
    assert part in said
    assert said.count("\n") == 1
