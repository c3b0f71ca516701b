"""``stribeck calibrate`` as a user meets it."""

import json

import numpy as np
import pytest

from simulated_arms import MARKERS, irb120, true_arm, write_data
from stribeck.cli.main import main
from stribeck.identify.geometry.result_file import read_calibration_file

NOISE = 5e-5


@pytest.fixture(scope="module")
def arm():
    return true_arm()


@pytest.fixture(scope="module")
def folder(arm, tmp_path_factory):
    return write_data(tmp_path_factory.mktemp("arm") / "train", arm.measure(40, 1, NOISE))


@pytest.fixture(scope="module")
def others(arm, tmp_path_factory):
    data = arm.measure(20, 2, NOISE)
    data.points[4] += 0.01
    return write_data(tmp_path_factory.mktemp("arm") / "validation", data)


def calibrate(*words):
    return main(["calibrate", "--config", "irb120", *map(str, words)])


def refused(capsys, *words):
    """Run a command that has to fail, and give its one line."""
    assert calibrate(*words) == 1
    error = capsys.readouterr().err
    assert error.startswith("stribeck: ")
    assert error.count("\n") == 1
    return error


def test_summary_has_errors_of_every_fit_and_set(folder, others, tmp_path, capsys):
    """The interface for scripts: schema, fits, sets, errors in mm, blunders with set and row."""
    path = tmp_path / "s.json"
    assert calibrate("--data", folder, "--validate", others, "--terms", "none", "--json", path) == 0
    summary = json.loads(path.read_text())
    assert summary["schema"] == 1
    assert list(summary["fits"]) == ["nominal", "offsets", "full"]
    for fit in summary["fits"].values():
        assert list(fit) == ["train", "validation"]
        assert all(list(errors) == ["mean_mm", "median_mm", "max_mm"] for errors in fit.values())
    assert summary["fits"]["full"]["train"]["mean_mm"] < 0.1
    assert summary["fits"]["full"]["validation"]["max_mm"] == pytest.approx(17.3, abs=0.5)
    assert [(b["set"], b["pose"]) for b in summary["blunders"]] == [("validation", 4)]
    assert {u["parameter"] for u in summary["undetermined"]} >= {"joint_1.z", "joint_1.offset"}
    assert summary["parameters"]["joint_2.offset"]["status"] == "determined"
    printed = capsys.readouterr().out
    assert "full" in printed
    assert "4 (17.3" in printed


def test_without_validation_there_is_none(folder, tmp_path):
    """All poses fitted: the summary has no validation."""
    path = tmp_path / "s.json"
    assert calibrate("--data", folder, "--fits", "nominal,offsets", "--json", path) == 0
    fits = json.loads(path.read_text())["fits"]
    assert list(fits) == ["nominal", "offsets"]
    assert list(fits["offsets"]) == ["train"]


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        (["--train-rows", "5:30"], list(range(5, 30))),
        (["--train-every", "2"], list(range(0, 40, 2))),
    ],
)
def test_splits_are_what_they_say(folder, tmp_path, words, rows):
    """Rows fitted, and all others validated."""
    path = tmp_path / "s.json"
    assert calibrate("--data", folder, *words, "--fits", "nominal", "--json", path) == 0
    summary = json.loads(path.read_text())
    assert summary["train_rows"] == rows
    assert summary["poses"] == {"train": len(rows), "validation": 40 - len(rows)}


def test_random_splits_follow_the_seed(folder, tmp_path):
    """The same seed gives the same poses, another seed others."""
    found = []
    for seed in (1, 1, 2):
        path = tmp_path / "s.json"
        words = ("--train-poses", 20, "--seed", seed, "--fits", "nominal", "--json", path)
        assert calibrate("--data", folder, *words) == 0
        found.append(json.loads(path.read_text())["train_rows"])
    assert found[0] == found[1] != found[2]


def test_chosen_poses_are_fitted_in_one_command(folder, tmp_path):
    """--select-by d-optimal takes the poses that --select names."""
    fitted, chosen = tmp_path / "fit.json", tmp_path / "chosen.json"
    words = ("--train-poses", 15, "--select-by", "d-optimal", "--terms", "none")
    assert calibrate("--data", folder, *words, "--json", fitted) == 0
    assert calibrate("--data", folder, "--select", 15, "--json", chosen) == 0
    rows = json.loads(chosen.read_text())["selected"]
    assert json.loads(fitted.read_text())["train_rows"] == sorted(rows)


def test_next_poses_are_written_in_the_units_of_the_file(folder, others, tmp_path, capsys):
    """Poses chosen among candidates, beyond those measured: degrees, as the joint files have them."""
    candidates = others / "measured_joints.txt"
    words = ("--data", folder, "--candidates", candidates, "--select", 5, "--output", tmp_path / "next.txt")
    assert calibrate(*words) == 0
    assert "40 measured already" in capsys.readouterr().out
    written, offered = np.loadtxt(tmp_path / "next.txt"), np.loadtxt(candidates)
    assert written.shape == (5, 6)
    assert all(np.abs(offered - row).max(axis=1).min() < 1e-6 for row in written)


def test_poses_are_chosen_before_anything_was_measured(others, tmp_path):
    """Joint positions are enough."""
    path = tmp_path / "s.json"
    assert calibrate("--candidates", others / "measured_joints.txt", "--select", 7, "--json", path) == 0
    assert len(set(json.loads(path.read_text())["selected"])) == 7


def test_result_files_and_pictures(folder, others, tmp_path):
    """A folder gets calibration.json, from which the arm can be read again, and two pictures."""
    words = ("--terms", "none", "--output", tmp_path / "out", "--plots", tmp_path / "plots")
    assert calibrate("--data", folder, "--validate", others, *words) == 0
    found = read_calibration_file(tmp_path / "out" / "calibration.json")
    assert found.model.chain.names == irb120().names
    data = true_arm().measure(10, 3)
    assert np.linalg.norm(found.predict(data.positions) - data.points, axis=2).mean() < NOISE
    for name in ("errors.png", "poses.png"):
        assert (tmp_path / "plots" / name).read_bytes().startswith(b"\x89PNG")


def test_a_nominal_urdf_gives_a_calibrated_one(tmp_path):
    """From a URDF beside the data: the calibrated one reaches the measured points without gains or deflections."""
    pytest.importorskip("pinocchio")
    from stribeck.identify.geometry.calibration import calibrate as fit
    from stribeck.identify.geometry.model import GEOMETRY, KinematicModel, candidate_terms
    from stribeck.identify.geometry.robust_fit import PointData
    from stribeck.identify.geometry.urdf import read_urdf_chain

    folder, truth = tmp_path / "data", 2e-3
    (tmp_path / "arm.urdf").write_text(URDF)
    chain = read_urdf_chain(tmp_path / "arm.urdf")
    model = KinematicModel(chain, np.eye(4), candidate_terms(chain), MARKERS).keep(GEOMETRY)
    values = np.zeros(len(model.names))
    values[-9:] = [0.1, 0, 0.1, 0, 0.1, 0.1, 0, 0, 0.2]
    values[model.names.index("shoulder.x")] = truth
    positions = np.random.default_rng(0).uniform(-2, 2, (30, 3))
    data = PointData(positions, model.predict(positions, values), np.arange(30))
    write_data(folder, data)
    (tmp_path / "arm.yaml").write_text(YAML)
    (folder / "arm.urdf").write_text(URDF)
    words = ["--data", str(folder), "--output", str(tmp_path / "out"), "--terms", "none"]
    assert main(["calibrate", "--config", str(tmp_path / "arm.yaml"), *words]) == 0
    calibrated = read_urdf_chain(tmp_path / "out" / "arm_calibrated.urdf")
    found = fit(calibrated, MARKERS, data, fits=["nominal"])["nominal"]
    assert found.errors(data).largest < 1e-8
    assert fit(chain, MARKERS, data, fits=["nominal"])["nominal"].errors(data).largest > 0.1 * truth


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data", "DATA", "--train-rows", "0:10", "--train-every", "2"], "give one of them"),
        (["--data", "DATA", "--train-rows", "0:50"], "valid: rows from 0:40"),
        (["--data", "DATA", "--train-poses", "50"], "there are only 40 poses"),
        (["--data", "DATA", "--train-poses", "3"], "at least 6 poses are needed"),
        (["--data", "DATA", "--select-by", "d-optimal"], "--select-by is the rule by which --train-poses"),
        (["--data", "DATA", "--select", "41"], "cannot choose 41 poses out of 40"),
        (["--data", "nowhere"], "no such file or folder"),
        (["--data", "DATA/measured_joints.txt"], "no file measured_SMR_1.txt"),
        (["--data", "DATA", "--json", "DATA"], "an input of this command"),
        (["--data", "DATA", "--select", "4", "--output", "DATA/measured_joints.txt"], "an input of this"),
    ],
)
def test_mistakes_are_one_line(folder, capsys, words, message):
    """Exit code 1, and what to do."""
    assert message in refused(capsys, *(word.replace("DATA", str(folder)) for word in words))


@pytest.mark.parametrize("words", [["--train-rows", "9:3"], ["--terms", "magic"], ["--select", "0"]])
def test_wrong_usage_is_one_line(words, capsys):
    """Exit code 1, before anything is read."""
    assert "help: stribeck" in refused(capsys, "--data", "x", *words)


def test_sets_between_which_the_tracker_was_moved_are_refused(folder, arm, tmp_path, capsys):
    """The base's reflector tells."""
    moved = write_data(tmp_path / "moved", arm.measure(10, 5))
    np.savetxt(moved / "measured_base_1.txt", np.tile([2600.0, 500.0, -500.0], (10, 1)))
    assert "was moved" in refused(capsys, "--data", folder, "--validate", moved)


YAML = """
schema: 1
name: arm
urdf: arm.urdf
calibration:
  data:
    joints: {file: measured_joints.txt, unit: deg}
    markers:
      SMR_1: {file: measured_SMR_1.txt, unit: mm}
      SMR_2: {file: measured_SMR_2.txt, unit: mm}
      SMR_3: {file: measured_SMR_3.txt, unit: mm}
  nominal: {urdf: true}
"""

URDF = """<robot name="arm"><link name="base"/><link name="a"/><link name="b"/><link name="c"/>
<joint name="waist" type="continuous"><parent link="base"/><child link="a"/>
<origin xyz="0 0 0.3"/><axis xyz="0 0 1"/></joint>
<joint name="shoulder" type="continuous"><parent link="a"/><child link="b"/>
<origin xyz="0.05 0 0.1"/><axis xyz="0 1 0"/></joint>
<joint name="elbow" type="continuous"><parent link="b"/><child link="c"/>
<origin xyz="0.4 0 0" rpy="0.1 0 0"/><axis xyz="0 1 0"/></joint></robot>
"""
