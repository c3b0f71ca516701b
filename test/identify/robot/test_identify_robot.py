"""`stribeck identify-robot`: drives from goals and positions, on motion that MuJoCo's own servos made."""

import json

import numpy as np
import pytest

from helpers import DATA
from stribeck.cli.main import main
from stribeck.files.drives import read_drives
from stribeck.identify.robot.problem import problem_of
from stribeck.identify.robot.recordings import read_runs
from stribeck.identify.robot.tree import load_tree
from stribeck.model.law import LAWS
from swinging_leg import TRUE, recorded, write_model


@pytest.fixture(scope="module")
def leg(tmp_path_factory):
    """The leg's model, three runs, and one whose goals lie two rows later."""
    folder = tmp_path_factory.mktemp("leg")
    runs = [recorded(folder, f"run{k}", 0.7 * k) for k in range(3)]
    return write_model(folder), runs, recorded(folder, "late", 1.9, late=0.010)


@pytest.fixture(scope="module")
def fitted(leg):
    """What `--json` holds after a fit."""
    model, runs, late = leg
    path = model.parent / "fit.json"
    words = [
        "identify-robot",
        "--model",
        model,
        "--data",
        *runs,
        "--validate",
        late,
        "--json",
        path,
        "--output",
        model.parent / "out",
        "--quiet",
    ]
    assert main([str(word) for word in words]) == 0
    return json.loads(path.read_text())


@pytest.mark.slow
def test_drives_of_a_leg_are_recovered(fitted):
    """Armature, Coulomb and viscous friction and delay of both joints, which MuJoCo's own friction made."""
    for joint, truth in TRUE.items():
        found = fitted["per_joint"][joint]["parameters"]
        assert found["friction_base"]["value"] == pytest.approx(truth["friction_base"], rel=0.03)
        assert found["friction_viscous"]["value"] == pytest.approx(truth["friction_viscous"], rel=0.15)
        assert found["armature"]["value"] == pytest.approx(truth["armature"], rel=0.1)
        assert found["delay"]["value"] == pytest.approx(0.012, abs=0.001)
    assert fitted["laws"] == {"hip": "m1", "knee": "m1"}
    assert fitted["rms"]["train"] < 1e-3


@pytest.mark.slow
def test_the_file_states_how_wide_draws_are(fitted, leg):
    """Three runs give intervals; the model that made the recordings needs hardly any error."""
    drives = read_drives(leg[0].parent / "out" / "robot.json").joints
    assert list(drives) == ["hip", "knee"]
    for drive in drives.values():
        assert 0.0 <= drive.loss.draw_error < 0.1
        assert 0.0 < drive.loss.draw_share <= 1.0
        assert 0.8 < drive.loss.draw_coverage <= 1.0
        assert drive.bounds["armature"] == (1e-4, 1.0)
        assert set(drive.bounds) == {name for name, one in drive.stated.items() if one.status != "fixed"}


@pytest.mark.slow
def test_goals_that_lie_rows_later_in_one_run_are_noticed(fitted):
    """Two rows; the run is then predicted as well as the others."""
    (run,) = fitted["per_run"]["validation"]
    assert run["rows_late"] == 2
    assert fitted["rms"]["validation"] < 1e-3


@pytest.mark.slow
def test_what_the_data_cannot_tell_is_a_direction(fitted):
    """One for each joint, and it hides its parts: together they raise the error less than alone."""
    assert [doubt["joint"] for doubt in fitted["not_determined"]] == ["hip", "knee"]
    for doubt in fitted["not_determined"]:
        assert len(doubt["change"]) > 1
        assert doubt["rms_rise"] < 0.5 * doubt["rms_rise_alone"]


@pytest.mark.slow
def test_simulated_motion_and_pictures_are_written(fitted, leg):
    """Of each run, and three pictures."""
    folder = leg[0].parent / "out"
    with np.load(folder / "run0-simulated.npz") as content:
        assert content["simulated"].shape == content["position"].shape
        assert np.sqrt(np.mean((content["simulated"] - content["position"])[200:] ** 2)) < 1e-3
    for name in ("errors", "friction", "worst-run"):
        assert (folder / f"{name}.png").stat().st_size > 10_000


def changed(run, folder, **arrays):
    """A copy of a run with other arrays."""
    with np.load(run) as content:
        whole = dict(content)
    whole.update({name: change(whole[name]) for name, change in arrays.items()})
    path = folder / "changed.npz"
    np.savez(path, **whole)
    return path


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"dof_pos": np.degrees, "des_dof_pos": np.degrees}, "too much for radians"),
        (
            {"dof_pos": lambda q: q[:, :1], "des_dof_pos": lambda q: q[:, :1]},
            "contains 1 joints, but leg.xml has 2",
        ),
        ({"dof_pos": lambda q: q + np.array([0.0, 5.0])}, "the columns must be hip, knee"),
        ({"time": lambda t: np.where(t < 4.0, t, t - 4.0)}, "time goes back"),
        ({"time": lambda t: 0.01 * t}, "lasts less than 3 s"),
        ({"des_dof_pos": lambda q: np.full_like(q, np.nan)}, "at least one joint has no goals"),
    ],
)
def test_impossible_recordings_are_refused_in_one_line(leg, tmp_path, capsys, arrays, words):
    """Degrees, missing joints, joints in another order, joined runs, short runs, no goals."""
    model, runs, _ = leg
    path = changed(runs[0], tmp_path, **arrays)
    assert main(["identify-robot", "--model", str(model), "--data", str(path)]) == 1
    error = capsys.readouterr().err.strip()
    assert words in error
    assert error.count("\n") == 0


def test_a_run_with_a_blocked_joint_is_left_out(leg, tmp_path):
    """The knee stands still while its goal moves: the run says which joint, and since when."""
    model, runs, _ = leg
    stuck = changed(
        runs[0], tmp_path, dof_pos=lambda q: np.where([True, False], q, np.minimum(q, q[800])[800])
    )
    (run,) = read_runs([stuck], load_tree(model))
    assert run.flaw is not None
    assert run.flaw.startswith("knee stops moving at")


def test_models_without_moving_joints_are_refused(tmp_path, capsys):
    """No XML, no robot, no joint: one line each."""
    for text, words in (
        ("x", "is not XML"),
        ("<sdf/>", "robot (URDF) or mujoco (MJCF)"),
        ("<mujoco/>", "no movable joint"),
    ):
        path = tmp_path / "model.xml"
        path.write_text(text)
        assert main(["identify-robot", "--model", str(path), "--data", "x.npz"]) == 1
        assert words in capsys.readouterr().err


@pytest.mark.slow
def test_equal_drives_are_a_population(leg, tmp_path):
    """Two joints that are told well stay as they are; the scatter between them is theirs."""
    model, runs, _ = leg
    path = tmp_path / "same.json"
    words = ["--model", model, "--data", *runs, "--same", "hip,knee", "--json", path, "--quiet"]
    assert main([str(word) for word in ("identify-robot", *words)]) == 0
    found = json.loads(path.read_text())
    for joint, truth in TRUE.items():
        values = found["per_joint"][joint]["parameters"]
        assert values["friction_base"]["value"] == pytest.approx(truth["friction_base"], rel=0.03)
    assert found["same"]["friction_base"]["mean"] == pytest.approx(0.4, rel=0.03)
    assert found["same"]["friction_base"]["scatter"] == pytest.approx(0.2 * 0.5**0.5, rel=0.1)


def test_one_joint_has_no_equal(leg, capsys):
    """`--same` needs two joints."""
    model, runs, _ = leg
    assert main(["identify-robot", "--model", str(model), "--data", str(runs[0]), "--same", "hip"]) == 1
    assert "two joints" in capsys.readouterr().err


@pytest.mark.slow
def test_go2_runs_are_predicted_from_others(tmp_path):
    """Free-running over whole runs, all joints together: a run that was not fitted within 3.3 mrad."""
    if not (DATA / "go2").is_dir():
        pytest.skip("needs the recordings of the Go2")
    runs = [str(DATA / "go2" / f"rx_run{k}.npz") for k in range(7)]
    path = tmp_path / "go2.json"
    words = ["--data", *runs[:5], "--validate", *runs[5:], "--json", str(path), "--quiet"]
    assert main(["identify-robot", "--model", str(DATA / "go2" / "go2.xml"), *words]) == 0
    found = json.loads(path.read_text())
    assert found["rms"]["train"] < 2.8e-3
    assert found["rms"]["validation"] < 3.3e-3


def test_all_terms_of_a_law_are_identified(leg):
    """Of M6 both quadratic terms, which stayed 0; only the Stribeck exponent is not free."""
    model, runs, _ = leg
    tree = load_tree(model)
    problem = problem_of(tree, read_runs(runs[:1], tree), [0, 1], LAWS["m6"], free=["armature"])
    found = {name for name, joint in problem.columns if joint == 0}
    assert found == {"armature", *LAWS["m6"].parameter_names} - {"alpha"}
