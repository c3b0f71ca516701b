"""Constant-velocity programmes: their motion, what `record` makes of them, and the friction that is found from one."""

import numpy as np
import pytest

from joint_tables import columns, steady, write_table
from stribeck.cli.main import main
from stribeck.errors import ConfigError
from stribeck.identify.joint.identify import identify_joint
from stribeck.identify.joint.recording import recording_of
from stribeck.session.config import _trajectory
from stribeck.session.limits import Limits, SessionJoint, extent, followed
from stribeck.session.sweep import PLATEAU, SweepFile, spaced_speeds, sweep_of
from stribeck.survey.joint_table import read_joint_table

VALUES = {"joint": "elbow", "range": (-0.8, 1.0), "speeds": (0.01, 0.05, 0.2, 0.6), "acceleration": 4.0, "places": 3, "others": {"base": 0.3}}  # fmt: skip


def moved(sweep, dt=0.005):
    play = sweep.to_play("sweep")
    time = np.arange(0.0, play.duration, dt)
    return time, play.joint_goals["elbow"](time)


def test_the_motion_keeps_its_limits():
    """Position, velocity and acceleration stay within what was asked; it starts and ends at one place, at rest."""
    sweep = sweep_of(VALUES)
    position = moved(sweep, 1e-3)[1]
    velocity = np.diff(position) / 1e-3
    assert position.min() >= -0.8 - 1e-9
    assert position.max() <= 1.0 + 1e-9
    assert np.abs(velocity).max() <= 0.6 * (1.0 + 1e-6)
    assert np.abs(np.diff(velocity)).max() / 1e-3 <= 4.0 * 1.01
    assert position[0] == pytest.approx(position[-1], abs=1e-9)
    assert max(abs(velocity[0]), abs(velocity[-1])) < 0.01


def test_every_speed_is_played_in_both_directions_and_slow_ones_at_every_place():
    """The time at each speed and direction is that of the even parts; fast sweeps need the whole travel."""
    sweep = sweep_of(VALUES)
    velocity = np.diff(moved(sweep)[1]) / 0.005
    for speed, places in ((0.01, 3), (0.05, 3), (0.2, 1), (0.6, 1)):
        for sign in (1.0, -1.0):
            even = np.sum(np.abs(velocity - sign * speed) < 1e-6) * 0.005
            assert even >= places * min(PLATEAU, (1.8 - speed**2 / 4.0) / speed) - 0.1
    assert len({round(0.5 * (a + b), 6) for a, b, v in sweep.legs() if v == 0.01}) == 3


def test_other_joints_are_held():
    """Every joint of the session has a goal; the moving one follows the limits that `record` checks."""
    play = sweep_of(VALUES).to_play("sweep")
    assert play.joint_goals["base"](np.array([0.0, 7.0])) == pytest.approx([0.3, 0.3])
    joint = SessionJoint("elbow", Limits(-1.0, 1.2, 1.0, 5.0))
    alone, _ = followed(play, joint)
    found = extent(alone)
    assert found.acceleration == pytest.approx(4.0, rel=0.01)
    assert found.end_velocity == pytest.approx(0.0, abs=1e-6)


def test_the_command_writes_what_record_reads(tmp_path, capsys):
    """Numbers on the command line or from a URDF give a file that the session plays."""
    words = ["design", "sweep", "--joint", "elbow", "--output", str(tmp_path / "s.yaml")]
    assert main([*words, "--lower", "-0.8", "--upper", "1", "--velocity", "0.6", "--set", "base=0.3"]) == 0
    assert "sweeps of elbow at 8 speeds" in capsys.readouterr().out
    assert SweepFile.read(tmp_path / "s.yaml").speeds == spaced_speeds(0.6, 8)
    assert set(_trajectory(str(tmp_path / "s.yaml")).joint_goals) == {"elbow", "base"}
    urdf = tmp_path / "arm.urdf"
    urdf.write_text('<robot name="r"><link name="a"/><link name="b"/><joint name="elbow" type="revolute"><parent link="a"/>'
                    '<child link="b"/><limit lower="-2" upper="2" velocity="1" effort="1"/></joint></robot>')  # fmt: skip
    assert main([*words, "--model", str(urdf)]) == 0
    assert SweepFile.read(tmp_path / "s.yaml").range == pytest.approx((-1.8, 1.8))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--lower, --upper, --velocity missing"),
        (["--lower", "1", "--upper", "0", "--velocity", "1"], "expected [lower, upper]"),
        (["--lower", "0", "--upper", "0.01", "--velocity", "5"], "widen the range"),
        (
            ["--lower", "0", "--upper", "1", "--velocity", "1", "--set", "elbow=1"],
            "elbow is the joint that moves",
        ),
    ],
)
def test_what_does_not_fit_is_one_line(words, message, tmp_path, capsys):
    """The value, and what to do."""
    assert main(["design", "sweep", "--joint", "elbow", "--output", str(tmp_path / "s.yaml"), *words]) == 1
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert message in said[0]
    assert not (tmp_path / "s.yaml").exists()


@pytest.mark.slow
def test_friction_is_found_from_a_programme(tmp_path):
    """A joint with bristles follows the programme: the sweep is recognised at its speeds, and steady friction is found within 5 %."""
    sweep = sweep_of({**VALUES, "speeds": spaced_speeds(0.6, 6), "places": 1})
    time, position = moved(sweep)
    table = columns((time, position, np.gradient(position, 0.005)))
    result = identify_joint(
        [recording_of(read_joint_table(write_table(tmp_path / "s.csv", table), {}, None))]
    )
    speeds = {float(f"{abs(one.velocity):.2g}") for one in result.plateaus}
    assert {float(f"{v:.2g}") for v in sweep.played} <= speeds
    at = np.array([0.01, 0.05, 0.2, 0.5])
    p = result.fit.values
    weight = np.exp(-((at / p["dtheta_stribeck"]) ** p["alpha"]))
    found = p["friction_base"] + weight * p["friction_stribeck"] + p["friction_viscous"] * at
    assert found == pytest.approx(steady(at), rel=0.05)


def test_a_file_with_errors_is_refused(tmp_path):
    """Unknown keys and speeds that do not ascend."""
    path = tmp_path / "s.yaml"
    path.write_text("schema: 1\njoint: elbow\nrange: [0, 1]\nspeeds: [0.3, 0.1, 0.2]\nacceleration: 2\n")
    with pytest.raises(ConfigError, match="increasing speeds"):
        _trajectory(str(path))
