"""``stribeck export`` of a file with the drives of a whole robot."""

import json

import pytest
import yaml

import swinging_leg
from stribeck.cli.main import main
from stribeck.files.drives import Drives, write_drives
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.model.estimate import fixed
from stribeck.model.law import LAWS

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
    assert "the file cannot hold the delay of hip, knee" in said
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
    assert "has several joints: give it alone" in capsys.readouterr().err
