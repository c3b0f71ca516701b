"""``stribeck posterior``, as a user runs it."""

import json
from pathlib import Path

import numpy as np
import pytest

from helpers import XL330, needs_xl330
from small_arm import JOINTS, small_robot
from stribeck.cli.main import main
from stribeck.files.drives import read_drive
from stribeck.identify.arm.model import load_arm
from stribeck.identify.posterior.network import inertia_regressor

ROTORS = ["--rotors", "0.05,0.02,0.3"]


def _inertias(folder: Path) -> Path:
    """Inertias of the small arm, with 3 % of noise, as a CSV file."""
    arm = load_arm(folder / "small.urdf", JOINTS)
    rng = np.random.default_rng(0)
    poses = rng.uniform([-2.0, -2.0, 0.0], [2.0, 2.0, 0.1], (30, 3))
    axes = np.arange(30) % 3
    truth = np.concatenate([arm.inertials, [0.055, 0.022, 0.31]])
    exact = inertia_regressor(arm, poses)[np.arange(30), axes] @ truth
    path = folder / "inertias.csv"
    measured = exact * (1.0 + 0.03 * rng.standard_normal(30))
    np.savetxt(path, np.column_stack([poses, axes + 1, measured]), delimiter=",")
    return path


def test_zero_shot_prediction_of_an_arm(tmp_path, capsys):
    """Without measurements: masses and inertias with intervals that hold what the URDF says."""
    path = tmp_path / "zero.json"
    assert main(["posterior", "--config", str(small_robot(tmp_path)), *ROTORS, "--json", str(path)]) == 0
    content = json.loads(path.read_text())
    assert content["mode"] == "zero-shot"
    said = capsys.readouterr().out
    assert "zero-shot: the prior's prediction" in said
    counts = content["within_intervals"]["prior"]
    assert counts["mechanical_parameters"] == [33, 33], "the CAD prior lies about the URDF"
    assert counts["base_parameters"][0] == counts["base_parameters"][1] > 0
    assert "33 of 33" in said
    low, high = content["parameters"]["J_shoulder"]["interval"]
    assert low < 0.05 < high


@pytest.mark.slow
def test_zero_shot_and_inference_of_an_arm(tmp_path, capsys):
    """Without measurements the prior's prediction; with inertias narrower intervals, pictures, JSON and NetCDF."""
    robot = small_robot(tmp_path)
    zero, known = tmp_path / "zero.json", tmp_path / "known.json"
    assert main(["posterior", "--config", str(robot), *ROTORS, "--json", str(zero)]) == 0
    measured = ["--inertias", str(_inertias(tmp_path))]
    outputs = ["--json", str(known), "--netcdf", str(tmp_path / "d.nc"), "--plots", str(tmp_path / "plots")]
    assert main(["posterior", "--config", str(robot), *ROTORS, *measured, *outputs, "--draws", "100"]) == 0
    before, after = (json.loads(path.read_text()) for path in (zero, known))
    assert (before["mode"], after["mode"]) == ("zero-shot", "inference")
    first, then = (content["parameters"]["J_shoulder"] for content in (before, after))
    assert then["deviation"] < first["deviation"]
    assert after["total_variation"]["J_shoulder"] > 0.02
    assert {path.name for path in (tmp_path / "plots").iterdir()} == {
        "posterior.png",
        "base_parameters.png",
        "inertias.png",
        "links.png",
    }
    measures = after["measures"]
    assert measures["posterior"]["inertia_rmse"] < min(5.0, measures["prior"]["inertia_rmse"])
    assert measures["posterior"]["base_cosine"] > 0.99
    within, of = after["within_intervals"]["posterior"]["inertias"]
    assert 0.85 * of <= within <= of
    said = capsys.readouterr()
    assert "effective samples at least" in said.err
    assert "R-hat" in said.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--config", "ROBOT"], "--rotors missing"),
        (["--config", "ROBOT", "--rotors", "1,2"], "expected 3 inertias, found 2"),
        (["--config", "ROBOT", *ROTORS, "--prior", "empirical"], "arms with 6 links, but this one has 3"),
        (["--config", "ROBOT", *ROTORS, "--inertias", "none.csv"], "no such file"),
        (["--config", "ROBOT", *ROTORS, "--json", "ROBOT/x"], "is not a folder"),
        (["--config", "ROBOT", *ROTORS, "--inertias", "/dev/null"], "expected .csv"),
        (["--config", "ROBOT", *ROTORS, "--seconds", "1"], "name recordings"),
    ],
)
def test_wrong_options_are_one_clear_line(tmp_path, capsys, options, words):
    """Each mistake ends with exit code 1 and one line."""
    robot = small_robot(tmp_path)
    given = [option.replace("ROBOT", str(robot)) for option in options]
    assert main(["posterior", *given, "--quiet"]) == 1
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert words in lines[0]


@needs_xl330
@pytest.mark.slow
def test_posterior_of_a_real_servo_says_what_one_load_cannot_tell(tmp_path, capsys):
    """Real runs to a parameter file with intervals, and words."""
    output = tmp_path / "m3.json"
    options = ["--logdir", str(XL330), "--arm-mass", "0", "--model", "m3", "--output", str(output), "--quiet"]
    more = [
        "--validation-kp",
        "400",
        "--independent",
        "--json",
        str(tmp_path / "s.json"),
        "--plots",
        str(tmp_path / "plots"),
    ]
    assert main(["posterior", *options, *more]) == 0
    assert "the same load" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "plots").iterdir()} == {"posterior.png", "ridges.png"}
    summary = json.loads((tmp_path / "s.json").read_text())
    assert summary["validation_mae"] < 0.1
    known, beside = (found["parameters"]["R"]["deviation"] for found in (summary, summary["independent"]))
    assert beside < 0.5 * known
    assert read_drive(output).intervals["friction_viscous"][0] > 0.0
