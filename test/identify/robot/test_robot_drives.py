"""The file of drives of a robot: everything that its later use needs, also from files of an earlier version."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from stribeck.cli.identify.robot.run import _print as print_fit
from stribeck.files.drives import read_drives, write_drives
from stribeck.identify.robot.drives import robot_drives
from stribeck.identify.robot.identify import RobotFit, RunScore
from stribeck.identify.robot.problem import problem_of
from stribeck.identify.robot.recordings import read_runs
from stribeck.identify.robot.tree import load_tree
from stribeck.identify.robot.verdict import judge_robot
from stribeck.model.estimate import estimate_of
from stribeck.model.law import LAWS
from swinging_leg import TRUE, recorded, write_model


@pytest.fixture(scope="module")
def fit(tmp_path_factory):
    """A fit as the search would end with the true drives, with friction over the position."""
    folder = tmp_path_factory.mktemp("leg")
    tree = load_tree(write_model(folder))
    runs = read_runs([recorded(folder, "run", 0.0, seconds=4.0)], tree)
    law = LAWS["m1"].with_terms(position=True)
    problem = problem_of(tree, runs, [0, 1], law, free=("armature", "bias", "delay"))
    estimates = {
        joint: {name: estimate_of(value, "", (0.9 * value, 1.1 * value)) for name, value in truth.items()}
        | {
            "friction_slope": estimate_of(-0.1, "N m/rad", (-0.2, 0.0)),
            "delay": estimate_of(0.012, "s", None),
        }
        for joint, truth in TRUE.items()
    }
    score = RunScore(runs[0], runs[0].position, np.array([1e-6, 4e-6]))
    base = {"tilt_x": estimate_of(0.3, "m/s²", (0.2, 0.4))}
    return RobotFit(tree, problem, problem.start(), (score,), (), estimates, base, (), 1e-3, {})


def test_a_drive_has_friction_gains_limits_and_the_noise_of_its_recordings(fit, tmp_path):
    """Written and read: estimates, the gain of the recordings, the model's torque limit, the centre, errors of the joint."""
    path = tmp_path / "robot.json"
    write_drives(path, robot_drives(fit, judge_robot(fit)))
    found = read_drives(path)
    assert list(found.joints) == ["hip", "knee"]
    assert found.machine.estimates["tilt_x"].value == 0.3
    for k, (joint, truth) in enumerate(TRUE.items()):
        drive = found.joints[joint]
        assert {name: drive.values[name] for name in truth} == pytest.approx(truth)
        assert drive.estimates["friction_base"].interval == pytest.approx(
            (0.9 * truth["friction_base"], 1.1 * truth["friction_base"])
        )
        assert "position" in drive.law.inputs
        assert drive.values["friction_slope"] == -0.1
        goal = fit.problem.runs[0].goal[:, k]
        assert drive.values["friction_centre"] == pytest.approx(np.median(goal), abs=1e-9)
        farthest = max(np.abs(run.position[:, k] - np.median(goal)).max() for run in fit.problem.runs)
        assert drive.values["friction_reach"] == drive.estimates["friction_reach"].value
        assert drive.values["friction_reach"] == pytest.approx(farthest, abs=1e-9)
        assert [name for name in drive.stated if name in ("friction_centre", "friction_reach")] == [
            "friction_centre",
            "friction_reach",
        ]
        stiffness = fit.problem.runs[0].stiffness[k]
        assert drive.estimates["stiffness"].value == stiffness
        limit = fit.tree.limits[k]
        assert drive.actuator.datasheet_torque == (limit if np.isfinite(limit) else None)
        assert drive.loss.train == pytest.approx((1e-3, 2e-3)[k])
        assert 1e-9 < drive.actuator.resolution < 1e-3


def test_the_verdict_on_each_joint_is_in_the_file(fit, tmp_path):
    """What happened: one calf had another friction than in the fitted runs, and nothing said so. What must happen: it is named,
    and the other joints stay as they are."""
    assert judge_robot(fit).use == "usable"
    path, other = tmp_path / "robot.json", replace(fit.train[0], squares=np.array([1e-6, 0.09]))
    verdict = judge_robot(replace(fit, validation=(other,)))
    assert verdict.use == "doubtful"
    assert {(one.key, one.joint) for one in verdict.reasons} >= {
        ("large_error", "knee"),
        ("does_not_carry_over", "knee"),
    }
    write_drives(path, robot_drives(fit, verdict))
    found = read_drives(path)
    assert found.verdict.use == "doubtful"
    assert found.joints["knee"].verdict.use == "unusable"
    assert found.joints["hip"].verdict.use == "doubtful", "all joints together do not carry over"
    excess = {**fit.estimates["hip"], "friction_base": estimate_of(60.0, "N m", (59.0, 61.0))}
    verdict = judge_robot(replace(fit, estimates={**fit.estimates, "hip": excess}))
    assert [one.key for one in verdict.of("hip").reasons] == (
        ["implausible"] if np.isfinite(fit.tree.limits[0]) else []
    )


def test_gains_that_differ_between_runs_are_not_one(fit):
    """No stiffness is stated then."""
    run = fit.problem.runs[0]
    other = SimpleNamespace(**{**vars(run), "stiffness": 2.0 * run.stiffness, "path": run.path})
    both = SimpleNamespace(**{**vars(fit.problem), "runs": (run, other)})
    changed = SimpleNamespace(**{**vars(fit), "problem": both, "joints": fit.joints})
    assert "stiffness" not in robot_drives(changed, judge_robot(fit)).joints["hip"].estimates


def test_a_joint_that_was_recorded_at_its_goal_alone_has_a_file(fit, tmp_path):
    """Its friction over the position reaches nowhere; the file is read again."""
    path = tmp_path / "robot.json"
    write_drives(path, robot_drives(fit, judge_robot(fit)))
    content = json.loads(path.read_text())
    content["joints"]["hip"]["friction_reach"] = 0.0
    path.write_text(json.dumps(content))
    assert read_drives(path).joints["hip"].values["friction_reach"] == 0.0


def test_files_without_the_reach_of_friction_over_the_position_are_read(fit, tmp_path):
    """The files of drives of earlier versions: their friction follows its formula everywhere, as it did; backlash was called play."""
    path = tmp_path / "robot.json"
    write_drives(path, robot_drives(fit, judge_robot(fit)))
    content = json.loads(path.read_text())
    for joint in content["joints"].values():
        del joint["friction_reach"], joint["stribeck"]["estimates"]["friction_reach"]
        joint["stribeck"]["estimates"]["play"] = {"value": 0.004, "unit": "rad", "status": "determined"}
        joint["stribeck"]["bounds"] = {"play": [0.0, 0.1]}
        joint["stribeck"]["correlation"] = {"names": ["armature", "play"], "matrix": [[1.0, 0.5], [0.5, 1.0]]}
    path.write_text(json.dumps(content))
    for drive in read_drives(path).joints.values():
        assert drive.values["friction_reach"] == 1000.0
        assert drive.stated["friction_reach"].status == "fixed"
        assert drive.stated["backlash"].value == 0.004
        assert drive.bounds == {"backlash": (0.0, 0.1)}
        assert drive.correlation.names == ("armature", "backlash")


def test_files_of_earlier_versions_are_read_as_drives(tmp_path):
    """The JSON of version 0.1, as `--json` still has it, with and without friction over the position."""

    def parameter(value, unit):
        return {"value": value, "unit": unit, "status": "determined"}

    plain = {"armature": 0.02, "friction_base": 0.4, "friction_viscous": 0.1, "bias": 0.0, "delay": 0.01}
    sloped = plain | {"friction_slope": -0.2, "friction_curve": 0.1, "play": 0.003}
    joints = {
        name: {"rms": {}, "centre": 0.7, "parameters": {k: parameter(v, "") for k, v in values.items()}}
        for name, values in (("hip", plain), ("knee", sloped))
    }
    content = {
        "schema": 1,
        "rms": {},
        "per_joint": joints,
        "per_run": {},
        "laws": {"hip": "m1", "knee": "m1"},
    }
    path = tmp_path / "robot.json"
    path.write_text(json.dumps(content | {"base": {"tilt_x": parameter(0.1, "m/s²")}}))
    found = read_drives(path)
    assert found.joints["hip"].values["friction_base"] == 0.4
    assert "position" not in found.joints["hip"].law.inputs
    assert found.joints["knee"].values["friction_centre"] == 0.7
    assert found.joints["knee"].values["friction_reach"] == 1000.0
    assert found.joints["knee"].estimates["delay"].value == 0.01
    assert found.joints["knee"].estimates["backlash"].value == 0.003
    assert found.machine.estimates["tilt_x"].value == 0.1


def test_the_terminal_shows_intervals_and_what_is_not_determined(fit, capsys):
    """The table had values alone: a stiffness of 5 between 0.1 and 10 looked like one that is known."""
    told = {joint: dict(found) for joint, found in fit.estimates.items()}
    told["hip"]["armature"] = estimate_of(0.5, "kg m²", (0.1, 1.0))
    print_fit(replace(fit, estimates=told), ())
    out = capsys.readouterr().out
    assert "0.3 ± 0.03 " in out
    assert "0.5 ± 0.45*" in out
    assert "* not determined" in out
