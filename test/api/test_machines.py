"""Recordings of arms and robots predicted by files of drives, without fitting anything: command line and API."""

import json
from dataclasses import replace

import numpy as np
import pytest

import stribeck as sb
from moving_arms import JOINTS, ROBOT, arm, recording, save
from stribeck.cli.main import main
from stribeck.errors import StribeckError
from stribeck.files.drives import Drives, MachineParameters, write_drives
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.identify.common.machine_motion import errors_of
from stribeck.model.estimate import estimate_of, fixed
from stribeck.model.law import LAWS
from stribeck.model.provenance import Provenance, SearchRecord
from swinging_leg import TRUE, recorded, write_model

COUPLED = ROBOT.replace("  protocol:", "  couplings: {wrist: {shoulder: 1, elbow: 1}}\n  protocol:")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two recordings of an arm whose wrist has a coupled motor, its file, and a full fit to the first."""
    folder = tmp_path_factory.mktemp("arm")
    model = arm(folder)
    (folder / "little.yaml").write_text(COUPLED)
    for name, seed in (("one", 0), ("two", 5)):
        save(recording(model, noise=0.05, seed=seed, seconds=4.0), folder / f"{name}.csv")
    words = ["--machine", str(folder / "little.yaml"), "--fits", "full", "--output", str(folder), "--quiet"]
    words += ["--validate", str(folder / "two.csv"), "--json", str(folder / "fit.json")]
    assert main(["identify", "arm", str(folder / "one.csv"), *words]) == 0
    return folder


def evaluate(folder, *words):
    machine = ["--machine", str(folder / "little.yaml"), "--json", str(folder / "r.json")]
    return main(["evaluate", *words, "--params", str(folder / "little.json"), *machine])


def test_errors_are_those_that_the_fit_announced(folder, capsys):
    """Of fitted and other recordings, by file and joint; couplings, delay and inertial parameters come from the file alone."""
    (folder / "broken.csv").write_text("1,2,3\n4,5\n")
    one, two, broken = (str(folder / f"{name}.csv") for name in ("one", "two", "broken"))
    assert evaluate(folder, one, two, broken) == 0
    told = capsys.readouterr()
    assert "broken" in told.err
    assert "not used" in told.err
    assert "relative error of torque [%], rows with motion" in told.out
    (found,) = json.loads((folder / "r.json").read_text())["results"]
    announced = json.loads((folder / "fit.json").read_text())["fits"]["full"]
    for name, part in (("one", "train"), ("two", "validation")):
        (row,) = (line.split() for line in told.out.splitlines() if line.startswith(f"{name} "))
        assert float(row[-1]) == pytest.approx(100.0 * announced[part]["moving"]["all"], abs=0.01)
    for entry, part in zip(found["per_file"], ("train", "validation"), strict=True):
        errors = [entry["per_joint"][joint]["relative"] for joint in JOINTS]
        assert errors == pytest.approx(announced[part]["moving"]["per_joint"], rel=1e-6)
    assert found["per_joint"]["elbow"]["unit"] == "N m"
    runs = sb.read(folder / "little.json").drives["elbow"].provenance.runs
    assert (runs.train, runs.validation) == (("one",), ("two",))


def test_pictures_and_report(folder, tmp_path):
    words = ["--plot", str(tmp_path / "plots"), "--report", str(tmp_path / "r.html")]
    assert evaluate(folder, str(folder / "two.csv"), *words) == 0
    assert (tmp_path / "plots" / "two.png").stat().st_size > 10_000
    page = (tmp_path / "r.html").read_text()
    assert "Recordings" in page
    assert "% " in page or "%<" in page


def test_fits_predict_in_python(folder):
    """Fresh and read from the file alike; a servo's run is refused."""
    fit = sb.read(folder / "little.json")
    (found,) = fit.predict(folder / "two.csv", machine=str(folder / "little.yaml"))
    assert found.predicted.shape == found.measured.shape
    assert found.errors["base"].relative < 0.05
    assert found.errors == errors_of([found])
    assert len(found.plot().axes) == 3
    with pytest.raises(StribeckError, match="`machine` is needed"):
        fit.predict(folder / "two.csv")


def test_what_cannot_be_predicted_is_said(folder, tmp_path, capsys):
    """Drives of another machine; a recording in which a joint without a drive moves; options of servos."""
    content = sb.read(folder / "little.json")._content
    machine = ["--machine", str(folder / "little.yaml")]
    other = {"wrist": content.joints["base"], "elbow": content.joints["elbow"]}
    write_drives(tmp_path / "other.json", replace(content, joints=other))
    assert (
        main(["evaluate", str(folder / "one.csv"), "--params", str(tmp_path / "other.json"), *machine]) == 1
    )
    assert "the file contains drives of wrist, elbow, but" in capsys.readouterr().err
    two = {joint: content.joints[joint] for joint in ("base", "shoulder")}
    write_drives(tmp_path / "two.json", replace(content, joints=two))
    words = ["--params", str(tmp_path / "two.json"), *machine]
    assert main(["evaluate", str(folder / "one.csv"), *words]) == 1
    assert "elbow moves in it, but the file has no drive of it" in capsys.readouterr().err
    assert evaluate(folder, str(folder / "one.csv"), "--diagram", str(tmp_path / "d.png")) == 1
    assert "--diagram and its --output need parameter files of servos" in capsys.readouterr().err


def robot_file(path, friction=1.0):
    """Drives of the leg as they truly are, but for the size of their friction."""
    joints = {}
    for joint, truth in TRUE.items():
        values = dict(truth) | {"delay": 0.012}
        values["friction_base"] *= friction
        estimates = {
            name: estimate_of(value, "", (0.9 * value, 1.1 * value)) for name, value in values.items()
        }
        joints[joint] = torque_drive(torque_actuator("rotary", derivative_gain=1.0), LAWS["m1"], estimates)
    base = {"tilt_x": fixed(0.0, "m/s²"), "tilt_y": fixed(0.0, "m/s²")}
    record = SearchRecord(method="identify-robot")
    write_drives(path, Drives(joints, MachineParameters("leg.xml", base), None, Provenance(search=record)))


def test_positions_of_a_robot_from_its_goals(tmp_path, capsys):
    """True drives predict them to a few mrad, drives with twice the friction much worse; the model has to be given."""
    model, run = write_model(tmp_path), recorded(tmp_path, "run", 0.0, seconds=4.0)
    errors = []
    for friction in (1.0, 2.0):
        robot_file(tmp_path / "robot.json", friction)
        words = ["--params", str(tmp_path / "robot.json"), "--json", str(tmp_path / "r.json")]
        assert main(["evaluate", str(run), *words, "--model", str(model)]) == 0
        (found,) = json.loads((tmp_path / "r.json").read_text())["results"]
        assert found["quantity"] == "position"
        errors.append(max(one["rms"] for one in found["per_joint"].values()))
    assert errors[0] < 0.003
    assert errors[1] > 3.0 * errors[0]
    capsys.readouterr()
    assert main(["evaluate", str(run), *words]) == 1
    assert "leg.xml, whose model is needed: give its URDF or MJCF" in capsys.readouterr().err
    (motion,) = sb.read(tmp_path / "robot.json").predict(run, model=model)
    assert np.isfinite(motion.predicted).all()
    assert motion.errors["hip"].rms == pytest.approx(found["per_joint"]["hip"]["rms"])
