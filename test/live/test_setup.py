"""From parameters to a compensator: tuning per joint, and what friction is learnt from. No ROS here."""

from pathlib import Path

import numpy as np
import pytest

from helpers import write_json
from stribeck.errors import ConfigError
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import Drives, write_drives
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.identify.common.quantiles import normal_estimate
from stribeck.live.direction.motion import Tuning
from stribeck.live.parameters import CompensationParameters
from stribeck.live.setup import compensated_joints, compensator_of, learning_of
from stribeck.model.bench import Pendulum, inertia
from stribeck.model.joint import CorrelationMatrix
from stribeck.model.law import LAWS

XL330 = load_actuator("xl330")
NAMES = ["shoulder", "elbow"]
AUTOMATIC = Tuning.of_resolution(XL330.resolution)
ARMATURE = XL330.published["m1"]["armature"]

URDF = """<robot name="arm"><link name="base"/>
{links}
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/><axis xyz="0 1 0"/>
<origin xyz="0 0 -0.2"/></joint>
<joint name="finger" type="prismatic"><parent link="fore"/><child link="tip"/><axis xyz="0 1 0"/></joint></robot>
""".format(
    links="".join(
        f'<link name="{name}"><inertial><mass value="0.1"/><origin xyz="0 0 -0.1"/><inertia ixx="1e-4" iyy="1e-4" '
        'izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for name in ("upper", "fore", "tip")
    )
)


@pytest.fixture
def set_up(tmp_path: Path):
    """Values of the node's parameters, and its joints."""
    write_json(tmp_path / "m1.json", {**XL330.published["m1"], "model": "m1", "actuator": "xl330"})
    (tmp_path / "arm.urdf").write_text(URDF)

    def make(**given):
        files = {f"{name}.parameter_file": "m1.json" for name in NAMES}
        own = {name.replace("__", "."): value for name, value in given.items()}
        values = CompensationParameters.complete(
            {"joints": NAMES, "effort_meaning": "motor", **files, **own}, "test"
        )
        joints = compensated_joints(values, tmp_path)
        return values, joints, learning_of(values, joints, tmp_path)

    return make


def test_tuning_is_automatic_global_or_a_joints_own(set_up):
    """In the joint's coordinates, from which those of the servo are turns of the gear; 0 is automatic."""
    values, joints, _ = set_up()
    assert joints[0].model.tuning == AUTOMATIC
    values, joints, _ = set_up(
        deadband=0.01, overshoot_fraction=0.5, elbow__deadband=0.02, elbow__ratio=3.0, elbow__presliding=0.004
    )
    shoulder, elbow = (joint.model.tuning for joint in joints)
    assert (shoulder.deadband, shoulder.overshoot_fraction, shoulder.presliding) == (
        0.01,
        0.5,
        AUTOMATIC.presliding,
    )
    assert elbow.deadband == pytest.approx(0.06)
    assert elbow.presliding == pytest.approx(0.012)
    assert elbow.overshoot_fraction == 0.5
    assert elbow.error_width == AUTOMATIC.error_width
    assert compensator_of(values, joints).names == ("shoulder", "elbow")


def test_files_of_before_say_what_they_said(set_up):
    """The numbers that stood in config/compensation.yaml."""
    old = {"deadband": 0.0046, "error_width": 0.012, "command_velocity": 0.1, "moving_velocity": 0.3}
    tuning = set_up(**old)[1][0].model.tuning
    assert {name: getattr(tuning, name) for name in old} == old


def test_a_urdf_gives_the_dynamics(set_up):
    """Rotors as the joints feel them are added; joints that are not compensated are locked, and that is said."""
    _, _, learning = set_up(urdf="arm.urdf", elbow__ratio=2.0)
    assert learning.gap == ""
    assert "not compensated are assumed to be locked at 0: finger" in learning.words[0]
    bare = set_up(urdf="arm.urdf")[2].dynamics
    np.testing.assert_allclose(
        learning.dynamics.mass_matrix_and_bias(np.zeros(2), np.zeros(2))[0]
        - bare.mass_matrix_and_bias(np.zeros(2), np.zeros(2))[0],
        np.diag([0.0, 3.0 * ARMATURE]),
        atol=1e-12,
    )
    q = np.array([0.3, -0.1])
    hung = set_up(urdf="arm.urdf", gravity=[0.0, 0.0, 9.80665])[2].dynamics
    up, down = (model.mass_matrix_and_bias(q, np.zeros(2))[1] for model in (bare, hung))
    np.testing.assert_allclose(up, -down)
    with pytest.raises(ConfigError, match="gravity: expected three numbers, found 1"):
        set_up(urdf="arm.urdf", gravity=[9.81])
    with pytest.raises(ConfigError, match="payload needs a urdf"):
        set_up(payload=[1.0, 0.0, 0.0, 0.1])


def test_loads_of_each_joint_give_the_dynamics(set_up):
    """A bench and a bare inertia; the pendulum hangs where the parameter file says, whatever the sign."""
    given = {"shoulder__load_mass": 0.1, "shoulder__load_length": 0.2, "elbow__inertia": 1e-3}
    _, joints, learning = set_up(**given, shoulder__sign=-1.0, shoulder__offset=0.5)
    matrix, _ = learning.dynamics.mass_matrix_and_bias(np.array([0.5, 1.0]), np.zeros(2))
    assert matrix[0, 0] == pytest.approx(inertia(Pendulum(0.1, 0.2, 0.0), ARMATURE))
    assert matrix[1, 1] == pytest.approx(1e-3 + ARMATURE)
    hangs = joints[0].map.position(-joints[0].model.values.get("q_offset", 0.0))
    assert learning.dynamics.mass_matrix_and_bias(np.array([hangs, 1.0]), np.zeros(2))[1] == pytest.approx(
        [0.0, 0.0]
    )
    beside = learning.dynamics.mass_matrix_and_bias(np.array([hangs + 0.1, 1.0]), np.zeros(2))[1]
    assert beside[0] > 0.0, "gravity pulls back"
    with pytest.raises(ConfigError, match="give it also for elbow, or give a urdf"):
        set_up(shoulder__inertia=1e-3)
    with pytest.raises(ConfigError, match="shoulder: the load has a mass but no load_length"):
        set_up(shoulder__load_mass=0.1, shoulder__inertia=1e-3, elbow__inertia=1e-3)
    with pytest.raises(ConfigError, match="elbow: the load has load_length but no load_mass or rod_mass"):
        set_up(elbow__load_length=0.1, shoulder__inertia=1e-3, elbow__inertia=1e-3)


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"adapt": False}, "adapt is false"),
        ({}, "neither inertia nor load"),
        ({"urdf": "arm.urdf", "effort_meaning": "none"}, "effort_meaning is none"),
        ({"urdf": "arm.urdf", "output_mode": "sum", "command_type": "array"}, "set goal_topic"),
        ({"urdf": "arm.urdf", "output_mode": "sum", "command_type": "array", "goal_topic": "goals"}, ""),
        ({"urdf": "arm.urdf"}, ""),
    ],
)
def test_why_nothing_is_learnt(set_up, given, part):
    """One reason, or none."""
    gap = set_up(**given)[2].gap
    assert part in gap
    assert bool(gap) == bool(part)


def test_a_joint_that_is_not_enabled_has_no_torque_and_the_others_keep_theirs(set_up):
    """`<joint>.enabled: false`: the torque of that joint stays exactly zero."""

    def torques(**given):
        values, joints, learning = set_up(**given)
        compensator = compensator_of(values, joints, learning.dynamics)
        compensator.enable(closed_loop=False)
        found = []
        for k in range(200):
            stamp = 0.01 * k
            speed = 2.0 * np.cos(3.0 * stamp)
            at = 2.0 / 3.0 * np.sin(3.0 * stamp)
            found.append(compensator.on_state(stamp, stamp, NAMES, [at, at], [speed, speed], [0.0, 0.0]))
        return np.array(found), learning.words

    both, _ = torques()
    one, words = torques(elbow__enabled=False)
    assert np.abs(both).max(axis=0).min() > 0.003
    assert (one[:, 1] == 0.0).all()
    np.testing.assert_array_equal(one[:, 0], both[:, 0])
    assert words[0] == "not compensated, because <joint>.enabled is false: elbow"


@pytest.mark.parametrize(("deviation", "named"), [(5.0, True), (1.0, False)])
def test_caution_that_leaves_nothing_is_remarked_on(tmp_path: Path, deviation: float, named: bool) -> None:
    """Coulomb and Stribeck friction whose sum is known, each alone not: the quantile lowers each by its own interval.

    What happened: of 5.5 N m of an elbow's friction 0.03 N m were left, without a word.
    """
    law, estimates = LAWS["m2"], {}
    for name, value in {"friction_base": 6.0, "friction_stribeck": -2.0}.items():
        estimates[name] = normal_estimate(value, "N m", deviation, bounds=(-100.0, 100.0))
    matrix = CorrelationMatrix(tuple(estimates), ((1.0, -0.99), (-0.99, 1.0)))
    drive = torque_drive(torque_actuator("rotary"), law, estimates, correlation=matrix)
    write_drives(tmp_path / "arm.json", Drives({"elbow": drive}))
    given = {
        "joints": ["elbow"],
        "effort_meaning": "motor",
        "elbow.parameter_file": "arm.json",
        "elbow.max_torque": 9.0,
    }
    for quantile in (0.1, 0.5):
        values = CompensationParameters.complete({**given, "friction_quantile": quantile}, "test")
        words = learning_of(values, compensated_joints(values, tmp_path), tmp_path).words
        said = [
            line
            for line in words
            if line.startswith("friction_quantile leaves little of the identified friction: elbow ")
        ]
        assert len(said) == (named and quantile < 0.5)
