"""``stribeck export`` of a file with the drives of a whole robot."""

import json
from dataclasses import replace

import numpy as np
import pytest
import yaml

import stribeck.cli.export.run
import stribeck.exports.draws
import swinging_leg
from stribeck.cli.main import main
from stribeck.exports.runs import bench_runs
from stribeck.files.drives import Drives, read_drives, write_drives
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.model.estimate import estimate_of, fixed
from stribeck.model.law import LAWS
from stribeck.model.provenance import ModelErrors

GAINS = {"hip": (30.0, 1.0), "knee": (20.0, 0.5)}


@pytest.fixture
def drives(tmp_path):
    """A file as identify-robot writes it, with a gain of its own for each joint."""
    found = {}
    for joint, truth in swinging_leg.TRUE.items():
        estimates = {name: fixed(value, "") for name, value in truth.items()}
        kp, kd = GAINS[joint]
        estimates |= {"stiffness": fixed(kp, ""), "derivative": fixed(kd, ""), "delay": fixed(0.012, "s")}
        actuator = torque_actuator("rotary", largest=20.0, derivative_gain=1.0)
        found[joint] = torque_drive(actuator, LAWS["m1"], estimates)
    path = tmp_path / "robot.json"
    write_drives(path, Drives(found))
    return path


def export(drives, form, output, *words):
    """The exit code."""
    return main(
        [
            "export",
            "--to",
            form,
            "--params",
            str(drives),
            "--output",
            str(drives.parent / output),
            *map(str, words),
        ]
    )


def test_every_joint_of_a_robot_goes_into_its_model(drives, capsys):
    """No option but the model, one of whose meshes is missing: armature, friction, gains and torque limit; the mesh is still named."""
    model = swinging_leg.write_model(drives.parent)
    assert export(drives, "mjcf", "out.xml", "--model", model) == 0
    said = capsys.readouterr().err
    assert "missing.obj" in said
    assert "the file cannot contain the delay of hip, knee" in said
    text = (drives.parent / "out.xml").read_text()
    assert 'file="missing.obj"' in text
    for joint, truth in swinging_leg.TRUE.items():
        (line,) = (line for line in text.splitlines() if f'<joint name="{joint}"' in line)
        assert f'armature="{truth["armature"]:g}"' in line
        assert f'frictionloss="{truth["friction_base"]:g}"' in line
        (line,) = (line for line in text.splitlines() if f'joint="{joint}"' in line and "<general" in line)
        kp, kd = GAINS[joint]
        assert f'gainprm="{kp:g}"' in line
        assert f'biasprm="0 -{kp:g} -{kd:g}"' in line
        assert 'forcerange="-20 20"' in line
    losses = json.loads((drives.parent / "out.xml.loss").read_text())["joints"]
    assert [one["joint"] for one in losses] == ["hip", "knee"]


def test_the_parameters_of_the_nodes_name_each_joint_of_the_file(drives):
    """One file for all joints, with gain and torque limit of each."""
    assert export(drives, "ros2_control", "out.yaml") == 0
    parameters = yaml.safe_load((drives.parent / "out.yaml").read_text())["/**"]["ros__parameters"]
    assert parameters["joints"] == ["hip", "knee"]
    assert {name: parameters[name]["p_gain"] for name in GAINS} == {
        name: kp for name, (kp, _) in GAINS.items()
    }
    assert {parameters[name]["parameter_file"] for name in GAINS} == {str(drives)}


def test_joints_are_chosen_and_wrong_ones_named(drives, capsys):
    """Some of the joints; one that the file does not have; and two files of which one has several joints."""
    assert export(drives, "csv", "out.csv", "--joint", "knee") == 0
    assert {line.split(",")[0] for line in (drives.parent / "out.csv").read_text().splitlines()[1:]} == {
        "knee"
    }
    assert export(drives, "csv", "out.csv", "--joint", "elbow") == 1
    assert "no joint 'elbow'; it has hip, knee" in capsys.readouterr().err
    assert export(drives, "csv", "out.csv", "--params", drives, drives) == 1
    assert "contains several joints: give only this file" in capsys.readouterr().err


@pytest.mark.ci
def test_draws_of_a_robot_differ_by_joint_and_scale_its_controllers(drives, monkeypatch):
    """Uncertain friction and stiffness, and an error of the model in rad: variants with gains and friction of their own, joint by joint."""
    monkeypatch.setattr(stribeck.exports.draws, "TRIALS", 16)
    monkeypatch.setattr(stribeck.cli.export.run, "bench_runs", lambda *given: bench_runs(*given)[:2])
    found = {}
    for joint, drive in read_drives(drives).joints.items():
        near = {"friction_base": drive.values["friction_base"], "stiffness": GAINS[joint][0]}
        stated = {
            name: estimate_of(value, "", (0.95 * value, 1.05 * value), bounds=(0.0, 1e3))
            for name, value in near.items()
        }
        loss = ModelErrors("root mean square of position", "rad", 0.004)
        found[joint] = replace(drive, stated={**drive.stated, **stated}, loss=loss)
    write_drives(drives, Drives(found))
    model = swinging_leg.write_model(drives.parent)
    assert export(drives, "mjcf", "out.xml", "--model", model, "--draws", 20) == 0
    gains = {joint: [] for joint in GAINS}
    for k in range(20):
        lines = (drives.parent / f"out_{k:04d}.xml").read_text().splitlines()
        for joint in GAINS:
            (line,) = (line for line in lines if f'joint="{joint}"' in line and "<general" in line)
            gains[joint].append(float(line.split('gainprm="')[1].split('"')[0]))
    table = np.load(drives.parent / "out.xml.draws.npz")
    said = json.loads((drives.parent / "out.xml.loss").read_text())["joints"]
    for (joint, (kp, _)), one in zip(GAINS.items(), said, strict=True):
        assert gains[joint] == pytest.approx(kp * table[f"{joint}/ratio"], rel=1e-4)
        assert one["draws"]["error"] > 0.0
        assert one["draws"]["reached"] == pytest.approx(one["draws"]["wanted"], rel=0.05)
    assert abs(np.corrcoef(gains["hip"], gains["knee"])[0, 1]) < 0.7
