"""`identify arm` of recordings in which some joints stand still was refused with "move every joint"."""

import json
from dataclasses import replace

import numpy as np
import pytest

from moving_arms import JOINTS, ROBOT, arm, linear_friction, motion, protocol, recording, save, urdf
from stribeck.cli.main import main
from stribeck.errors import RecordingError
from stribeck.files.drives import read_drives
from stribeck.identify.arm.model import load_arm
from stribeck.identify.arm.motion import moving_joints
from stribeck.identify.arm.recordings import ArmRecording

HELD = {"base": 0.0, "elbow": 0.4}


def moved_alone(model, joint, held=HELD, seed=0, name="run"):
    """A recording in which one joint moves and the others are held, with the torques that hold them."""
    time, position, velocity, acceleration = motion(10.0, 3, seed)
    for k, other in enumerate(model.joints):
        if other != joint:
            position[:, k], velocity[:, k], acceleration[:, k] = held[other], 0.0, 0.0
    torque = model.inverse_dynamics(position, velocity, acceleration) + linear_friction(
        velocity, acceleration
    )
    torque = torque + 0.05 * np.random.default_rng(seed).normal(size=torque.shape)
    return ArmRecording(name, model.joints, time, position, velocity, torque)


def identify(folder, *words):
    (folder / "arm.yaml").write_text(ROBOT)
    words = ["--machine", str(folder / "arm.yaml"), "--json", str(folder / "r.json"), "--quiet", *words]
    return main(["identify", "arm", *words])


def test_the_joint_that_moves_is_identified_and_the_others_are_named(tmp_path, capsys):
    """In a pose away from zero, with its friction and the gravity of the links behind it."""
    model = arm(tmp_path)
    save(moved_alone(model, "shoulder"), tmp_path / "one.csv")
    save(moved_alone(model, "shoulder", seed=3), tmp_path / "two.csv")
    out = tmp_path / "out"
    words = ["--validate", str(tmp_path / "two.csv"), "--output", str(out), "--fits", "weighted,full"]
    assert identify(tmp_path, str(tmp_path / "one.csv"), *words) == 0
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["joints"] == ["shoulder"]
    assert found["left_out"] == pytest.approx(HELD)
    for fit in found["fits"].values():
        assert fit["validation"]["moving"]["per_joint"][0] < 0.05
        assert fit["parameters"]["friction_base_shoulder"] == pytest.approx(2.0, rel=0.1)
    assert "elbow is not identified: it stays at 0.4 in all fitted recordings" in capsys.readouterr().err
    assert list(read_drives(out / "little.json").joints) == ["shoulder"]
    assert "elbow" not in (out / "compensation.yaml").read_text()


def test_recordings_in_which_another_joint_moves_are_not_predicted(tmp_path, capsys):
    model = arm(tmp_path)
    save(moved_alone(model, "shoulder"), tmp_path / "one.csv")
    save(recording(model, noise=0.05), tmp_path / "all.csv")
    assert (
        identify(
            tmp_path, str(tmp_path / "one.csv"), "--validate", str(tmp_path / "all.csv"), "--fits", "weighted"
        )
        == 0
    )
    assert (
        "all is not predicted: base, elbow moves in it, but in none of the fitted" in capsys.readouterr().err
    )
    assert "validation" not in json.loads((tmp_path / "r.json").read_text())["fits"]["weighted"]


def test_joints_are_locked_where_they_are_held(tmp_path):
    """Torques of the joints that move are those of the whole arm in that pose, revolute and prismatic."""
    for kind in ("revolute", "prismatic"):
        path = urdf(tmp_path, kind=kind)
        run = moved_alone(load_arm(path, JOINTS), "elbow", {"base": 0.3, "shoulder": -0.7})
        whole = load_arm(path, JOINTS).inverse_dynamics(
            run.position, run.velocity, np.gradient(run.velocity, run.time, axis=0)
        )
        locked = load_arm(path, ["elbow"], {"base": 0.3, "shoulder": -0.7})
        acceleration = np.gradient(run.velocity[:, 2:], run.time, axis=0)
        alone = locked.inverse_dynamics(run.position[:, 2:], run.velocity[:, 2:], acceleration)
        assert np.allclose(alone[:, 0], whole[:, 2], atol=1e-9)


def test_poses_too_far_apart_are_refused(tmp_path):
    """One locked arm cannot have two poses; without motion at all that is said."""
    model = arm(tmp_path)
    rules = protocol()
    there = moved_alone(model, "shoulder", {"base": 0.0, "elbow": 1.2}, name="there")
    with pytest.raises(RecordingError, match=r"elbow is more than 0\.1 away from its pose in other rows"):
        moving_joints([moved_alone(model, "shoulder"), there], rules)
    still = replace(there, velocity=0.0 * there.velocity)
    with pytest.raises(RecordingError, match=r"no joint moves faster than 0\.05"):
        moving_joints([still], rules)
