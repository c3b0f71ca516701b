"""`identify-robot --since`: which joint's friction changed, and since which run."""

import json

import numpy as np
import pytest

import swinging_leg
from stribeck.cli.main import main
from stribeck.identify.robot.drift import change_evidence
from swinging_leg import DELAY, TRUE, recorded, write_model


def earlier_fit(folder):
    """The file of an earlier fit: the true drives."""

    def parameter(value, unit):
        return {"value": value, "unit": unit, "status": "determined"}

    joints = {}
    for joint, truth in TRUE.items():
        units = {"armature": "kg m²", "friction_base": "N m", "friction_viscous": "N m s/rad"}
        parameters = {name: parameter(value, units[name]) for name, value in truth.items()}
        parameters |= {"bias": parameter(0.0, "rad"), "delay": parameter(DELAY, "s")}
        joints[joint] = {"rms": {}, "parameters": parameters, "centre": 0.0}
    tilt = {name: parameter(0.0, "m/s²") for name in ("tilt_x", "tilt_y")}
    content = {"schema": 1, "rms": {}, "per_joint": joints, "per_run": {}, "base": tilt}
    path = folder / "P.json"
    path.write_text(json.dumps(content | {"laws": dict.fromkeys(joints, "m1")}))
    return path


@pytest.mark.slow
def test_the_joint_that_changed_is_named_and_no_other(tmp_path, monkeypatch, capsys):
    """Four runs as before, three with 25 % more friction in the knee; the picture is written."""
    model, path = str(write_model(tmp_path)), str(tmp_path / "P.json")
    first = [str(recorded(tmp_path, f"first{k}", 0.5 + 0.7 * k, seconds=13.0)) for k in range(4)]
    assert (
        main(["identify-robot", "--model", model, "--data", *first, "--json", path, "--no-polish", "--quiet"])
        == 0
    )
    runs = [recorded(tmp_path, f"run{k}", 0.7 * k, seconds=13.0) for k in range(4)]
    changed = {**TRUE, "knee": {**TRUE["knee"], "friction_base": 1.25 * TRUE["knee"]["friction_base"]}}
    monkeypatch.setattr(swinging_leg, "TRUE", changed)
    runs += [recorded(tmp_path, f"run{k}", 0.7 * k, seconds=13.0) for k in range(4, 7)]
    monkeypatch.undo()
    out = tmp_path / "drift.json"
    words = ["identify-robot", "--model", model, "--data", *runs, "--since", path]
    assert main([str(word) for word in [*words, "--json", out, "--output", tmp_path / "out", "--quiet"]]) == 0
    drift = json.loads(out.read_text())["drift"]
    assert not drift["hip"]["changed"]
    assert drift["knee"]["since"] in ("run4", "run5", "run6")
    assert drift["knee"]["friction"][-1] == pytest.approx(1.17 * drift["knee"]["earlier"], rel=0.06)
    assert (tmp_path / "out" / "drift.png").stat().st_size > 10_000
    assert "false alarm" in capsys.readouterr().out


def test_false_alarms_stay_below_their_bound_and_jumps_are_found():
    """Of 1000 sequences of 20 runs without a change at most 5 % alarm; 97 % of jumps by 50 % in the tenth run do."""
    generator = np.random.default_rng(0)
    alarms, hits = 0, 0
    for _ in range(1000):
        runs = generator.normal(0.0, 0.08, 20) + generator.normal(0.0, 0.05)
        variance = np.full(20, 0.08**2)
        alarms += change_evidence(runs, variance, 0.05**2, (0.1, 0.5)).max() > np.log(1.0 / 0.05)
        jumped = runs + 0.5 * (np.arange(20) >= 10)
        hits += change_evidence(jumped, variance, 0.05**2, (0.1, 0.5)).max() > np.log(1.0 / 0.05)
    assert alarms <= 50
    assert hits >= 970


def test_a_fit_of_another_robot_is_refused(tmp_path, capsys):
    """The joints that are missing, and those of the file, in one line; so is a file of another kind."""
    model, run = write_model(tmp_path), recorded(tmp_path, "run", 0.0, seconds=4.0)
    path = earlier_fit(tmp_path)
    content = json.loads(path.read_text())
    for key in ("per_joint", "laws"):
        content[key]["elbow"] = content[key].pop("knee")
    path.write_text(json.dumps(content))
    words = ["identify-robot", "--model", str(model), "--data", str(run), "--since", str(path), "--quiet"]
    assert main(words) == 1
    assert "has no joint knee; it has hip, elbow" in capsys.readouterr().err
    path.write_text('{"schema": 1}')
    assert main(words) == 1
    assert capsys.readouterr().err.count("\n") == 1
