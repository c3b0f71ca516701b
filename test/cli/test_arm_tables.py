"""`setup-robot` and `identify-arm` from tables: arrays, named and numbered columns; joints that move one at a time, and that stick."""

import json

import numpy as np
import pytest
import yaml

from helpers import DATA
from moving_arms import JOINTS, RATE, arm, linear_friction, recording, urdf
from stribeck.cli.main import main
from stribeck.identify.arm.config import FilterSettings
from stribeck.identify.arm.recordings import ArmRecording
from stribeck.identify.arm.survey.machine import STUCK, smeared

OPENARM = DATA / "openarm"
PLAIN = {"joint_1": 0.316, "joint_3": 0.276, "joint_4": 0.105, "joint_6": 0.336, "joint_7": 0.324}
"""Errors of a plain fit of one joint on the last third of its recording, moving rows, as stated with the data."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return recording(arm(tmp_path_factory.mktemp("true")), noise=0.1)


def set_up(folder, *paths):
    words = ["setup-robot", "--urdf", str(folder / "arm.urdf"), "--output", str(folder / "m.yaml")]
    return main([*words, "--data", *map(str, paths)])


def identify(folder, *paths):
    words = ["identify-arm", "--urdf", str(folder / "arm.urdf"), "--output", str(folder / "out"), "--quiet"]
    words += ["--fits", "ols,weighted", "--json", str(folder / "r.json"), "--data", *map(str, paths)]
    return main(words)


def columns(run, names):
    """The signals of a run as named columns."""
    signals = {"pos": run.position, "vel": run.velocity, "tau": run.effort}
    return {"t": run.time} | {
        names(signal, k, joint): values[:, k]
        for signal, values in signals.items()
        for k, joint in enumerate(run.joints)
    }


def write_csv(path, table):
    np.savetxt(
        path, np.column_stack(list(table.values())), delimiter=",", header=",".join(table), comments=""
    )
    return path


CSV = {
    "named": lambda signal, k, joint: f"{joint}/{signal}",
    "named behind": lambda signal, k, joint: f"{signal}_{joint}",
    "from zero": lambda signal, k, joint: f"{signal}{k}",
    "from one": lambda signal, k, joint: f"{signal}_{k + 1}",
}


@pytest.mark.slow
@pytest.mark.parametrize("naming", CSV)
def test_columns_of_text_are_found_by_their_names(naming, run, tmp_path):
    """Columns named after joints, or numbered from 0 or 1; the arm is identified from them in one command."""
    urdf(tmp_path)
    path = write_csv(tmp_path / "run.csv", columns(run, CSV[naming]))
    assert identify(tmp_path, path) == 0
    content = yaml.safe_load((tmp_path / "out" / "machine.yaml").read_text())
    place = content["identification"]["recording"]
    assert place["format"] == "csv"
    assert place["position"]["columns"] == [CSV[naming]("pos", k, joint) for k, joint in enumerate(JOINTS)]
    assert json.loads((tmp_path / "r.json").read_text())["fits"]["ols"]["validation"]["moving"]["all"] < 0.1


def test_arrays_of_files_with_a_joint_that_stands_still(run, tmp_path, capsys):
    """NPZ and MAT give one file of the machine but for the format; the joint that never moves is left out with a word."""
    from scipy.io import savemat

    urdf(tmp_path)
    still = run.position.copy()
    still[:, 0] = 0.3
    arrays = {"time": run.time, "q": still, "qd": run.velocity, "tau_measured": run.effort, "q_cmd": still}
    np.savez(tmp_path / "run.npz", **arrays)
    savemat(tmp_path / "run.mat", arrays)
    for kind in ("npz", "mat"):
        assert set_up(tmp_path, tmp_path / f"run.{kind}") == 0
        assert "base is ignored: it is at rest at 0.3" in capsys.readouterr().err
        content = yaml.safe_load((tmp_path / "m.yaml").read_text())
        assert content["joints"] == ["shoulder", "elbow"]
        place = content["identification"]["recording"]
        assert place["format"] == kind
        assert place["effort"]["variable"] == "tau_measured"
        assert place["position"]["order"] == list(JOINTS)
        assert identify(tmp_path, tmp_path / f"run.{kind}") == 0


WRONG = {
    "no time": (lambda t: {k: v for k, v in t.items() if k != "t"}, "time, t or stamp"),
    "no torque": (lambda t: {k: v for k, v in t.items() if "tau" not in k}, "effort of joints"),
    "a joint too few": (
        lambda t: {k: v for k, v in t.items() if "3" not in k},
        "expected 3, one for each moving joint of the URDF",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_tables_that_do_not_tell_are_refused(case, run, tmp_path, capsys):
    """One line: what is missing, and what is there."""
    urdf(tmp_path)
    change, words = WRONG[case]
    path = write_csv(tmp_path / "run.csv", change(columns(run, CSV["from one"])))
    assert set_up(tmp_path, path) == 1
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert words in said[0]
    assert not (tmp_path / "m.yaml").exists()


def alone(folder, joint, *, seconds=20.0, gaps=()):
    """A recording in which one joint moves, to and fro, and the others are held at zero."""
    model = arm(folder)
    time = np.arange(0.0, seconds, 1.0 / RATE)
    pace = 0.8
    position, velocity, acceleration = (np.zeros((len(time), 3)) for _ in range(3))
    moved = 0.6 * np.sin(pace * time) + 0.3 * np.sin(2.3 * pace * time)
    position[:, joint] = moved
    velocity[:, joint] = np.gradient(moved, 1.0 / RATE)
    acceleration[:, joint] = np.gradient(velocity[:, joint], 1.0 / RATE)
    torque = model.inverse_dynamics(position, velocity, acceleration)
    torque[:, joint] += linear_friction(velocity, acceleration)[:, joint]
    torque += 0.05 * np.random.default_rng(joint).standard_normal(torque.shape)
    kept = np.ones(len(time), dtype=bool)
    for first, last in gaps:
        kept &= (time < first) | (time > last)
    arrays = {"time": time, "q": position, "tau": torque}
    path = folder / f"joint_{joint + 1}.npz"
    np.savez(path, **{name: values[kept] for name, values in arrays.items()})
    return path


def test_recordings_of_one_joint_each_combine(tmp_path, capsys):
    """Joints moved one after the other do not determine all base parameters: those that they do are fitted, pieces are named."""
    urdf(tmp_path)
    paths = [alone(tmp_path, k, gaps=[(3.0, 3.5), (3.7, 4.2)] if k == 1 else ()) for k in range(3)]
    assert identify(tmp_path, *paths) == 0
    said = capsys.readouterr().err
    assert "joint_2 to 13.67 s has gaps" in said
    assert "rows are in parts too short to use" in said
    scores = json.loads((tmp_path / "r.json").read_text())["fits"]["weighted"]
    assert max(scores["validation"]["moving"]["per_joint"]) < 0.1
    for joint, truth in zip(JOINTS, (3.0, 2.0, 1.0), strict=True):
        assert scores["parameters"][f"friction_base_{joint}"] == pytest.approx(truth, rel=0.1)


def test_rows_between_two_slips_are_no_motion():
    """A joint that slips once in two seconds stands still in most rows that a filter of 1.4 Hz shows moving; a smooth one does not."""
    time = np.arange(0.0, 60.0, 1.0 / 30.0)
    smooth = 0.5 * np.sin(0.3 * time)
    slips = np.interp(2.0 * np.floor(time / 2.0), time, smooth)
    shares = []
    for position in (smooth, slips):
        run = ArmRecording("run", ("elbow",), time, position[:, None], None, 0.0 * position[:, None])
        shares.append(smeared([run], 0.02, 30.0, FilterSettings(4, 1.4))[0])
    assert shares[0] < 0.01
    assert shares[1] > 3.0 * STUCK


@pytest.mark.slow
@pytest.mark.skipif(not OPENARM.is_dir(), reason="the recordings of the OpenArm are not here")
def test_a_real_arm_recorded_joint_by_joint(tmp_path):
    """Five recordings and a URDF in one command: on the last third better than plain fits of each joint in the mean, and nowhere much worse."""
    words = [
        "identify-arm",
        "--urdf",
        str(OPENARM / "am_d02.urdf"),
        "--quiet",
        "--json",
        str(tmp_path / "r.json"),
    ]
    paths = [str(OPENARM / f"{name}.npz") for name in PLAIN]
    assert main([*words, "--output", str(tmp_path), "--data", *paths]) == 0
    found = json.loads((tmp_path / "r.json").read_text())
    errors = found["fits"]["full"]["validation"]["moving"]["per_joint"]
    assert np.mean(errors) < 0.2
    assert all(one < plain + 0.025 for one, plain in zip(errors, PLAIN.values(), strict=True))
    assert found["verdicts"]["joints"]["ArmLseventh_Joint"] != "usable"
