"""``identify arm`` with encoders on motors and links: stiffnesses in its results, its table and its file."""

import json

import numpy as np
import pytest

from moving_arms import RATE, ROBOT, arm, linear_friction, motion, urdf
from stribeck.cli.main import main
from stribeck.files.drives import read_drives

STIFFNESS = np.array([2e4, 1.5e4, 8e3])

TWO_ENCODERS = ROBOT.replace(
    "    effort:", "    motor_position: {columns: [10, 13], scale: 0.01}\n    effort:"
)
"""The motors turn 100 times as far as the links."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two runs of an arm whose transmissions twist by the torque of the links; encoders of 17 bits on the links."""
    place = tmp_path_factory.mktemp("elastic")
    true, step = arm(place), 2.0 * np.pi / 2**17
    for seed, name in ((0, "train"), (5, "other")):
        time, position, velocity, acceleration = motion(20.0, 3, seed)
        load = true.inverse_dynamics(position, velocity, acceleration)
        torque = load + linear_friction(velocity, acceleration)
        torque = torque + 0.1 * np.random.default_rng(seed).normal(size=torque.shape)
        motor = 100.0 * (position + load / STIFFNESS)
        columns = [time, np.round(position / step) * step, velocity, torque, motor]
        np.savetxt(place / f"{name}.csv", np.column_stack(columns), delimiter=",")
    urdf(place)
    (place / "robot.yaml").write_text(TWO_ENCODERS)
    assert RATE == 500.0
    return place


def test_stiffness_of_each_joint_is_in_its_interval(folder, tmp_path, capsys):
    """Joints that gravity loads; the base, which it does not, may be not identifiable. The file of drives has what is identifiable."""
    words = ["identify", "arm", str(folder / "train.csv"), "--validate", str(folder / "other.csv")]
    words += ["--machine", str(folder / "robot.yaml"), "--fits", "consistent,full", "--quiet"]
    assert main([*words, "--json", str(tmp_path / "a.json"), "--output", str(tmp_path / "out")]) == 0
    found = json.loads((tmp_path / "a.json").read_text())["elasticity"]
    drives = read_drives(tmp_path / "out" / "little.json").joints
    for joint, true in zip(("base", "shoulder", "elbow"), STIFFNESS, strict=True):
        entry = found[joint]
        if joint != "base":
            assert entry["stiffness"] == pytest.approx(true, rel=0.05)
            assert entry["rms"]["validation"]["error"] < 0.2 * entry["rms"]["validation"]["twist"]
        stated = drives[joint].stated
        if entry["stiffness"] is None:
            assert "transmission_stiffness" not in stated
            assert any("not identifiable" in said for said in drives[joint].statements)
        else:
            lower, upper = entry["stiffness_interval"]
            assert lower * 0.98 <= true <= upper * 1.02
            assert stated["transmission_stiffness"].value == pytest.approx(entry["stiffness"])
    assert "elasticity, from encoders on motors and links" in capsys.readouterr().out


def test_motors_without_their_ratio_are_refused(folder, capsys):
    """One line with the ratio that is missing."""
    machine = folder / "ratio.yaml"
    machine.write_text(TWO_ENCODERS.replace(", scale: 0.01", ""))
    assert main(["identify", "arm", str(folder / "train.csv"), "--machine", str(machine), "--quiet"]) == 1
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert "the motor of base turns 99.98 times as far as the joint" in error
    assert "scale: 0.01" in error
