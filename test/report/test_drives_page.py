"""The report on a file of drives alone: robots, arms, joints and mechanisms, without recordings."""

import re

import pytest

import swinging_leg
from stribeck.cli.main import main
from stribeck.evaluate.draws import drive_friction
from stribeck.files.drives import Drives, MachineParameters, read_drives, write_drives
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.model.estimate import estimate_of, fixed
from stribeck.model.law import LAWS
from stribeck.model.verdict import Reason, Verdict


@pytest.fixture
def robot(tmp_path):
    """A file with two joints: friction of the first with intervals, of the second as it is known exactly."""
    joints = {}
    for joint, truth in swinging_leg.TRUE.items():
        sure = joint == "knee"
        estimates = {
            name: fixed(value, "N m") if sure else estimate_of(value, "N m", (0.8 * value, 1.2 * value))
            for name, value in truth.items()
        }
        reasons = () if sure else (Reason("large_error", "doubtful", "an error <b>of</b> 30 %"),)
        joints[joint] = torque_drive(
            torque_actuator("rotary"), LAWS["m1"], estimates, verdict=Verdict(reasons)
        )
    machine = MachineParameters("leg", {"tilt_x": fixed(0.3, "m/s²")})
    path = tmp_path / "robot.json"
    write_drives(path, Drives(joints, machine, Verdict(joints["hip"].verdict.reasons)))
    return path


def test_a_robot_has_a_report_without_recordings(robot, capsys):
    """Verdict with its reason, a curve and a table for each joint, the machine's parameters; nothing of the file is markup."""
    output = robot.with_name("robot.html")
    assert main(["report", "--params", str(robot), "--output", str(output)]) == 0
    text = output.read_text()
    assert "Friction of leg" in text
    assert "an error &lt;b&gt;of&lt;/b&gt; 30 %" in text
    assert len(re.findall("<figure", text)) == 2
    assert {joint: text.count(f"<summary>{joint}</summary>") for joint in ("hip", "knee", "leg")} == {
        "hip": 1,
        "knee": 1,
        "leg": 1,
    }
    assert "0.24 to 0.36" in text
    assert "tilt_x" in text
    assert main(["report", "--params", str(robot), "--output", str(output)]) == 0
    assert output.read_text() == text


def test_the_band_is_that_of_the_intervals(robot):
    """Coulomb friction at rest: the interval itself; no band where nothing is uncertain."""
    drives = read_drives(robot).joints
    curve = drive_friction(drives["hip"])
    assert curve.budget[0] == pytest.approx(0.3)
    assert curve.low[0] == pytest.approx(0.24, abs=0.01)
    assert curve.high[0] == pytest.approx(0.36, abs=0.01)
    assert curve.budget[-1] == pytest.approx(0.3 + 5.0 * 0.1)
    assert drive_friction(drives["knee"]).low is None


def test_several_files_need_recordings(robot, capsys):
    """One line that says so."""
    words = ["report", "--params", str(robot), str(robot), "--output", str(robot.with_name("r.html"))]
    assert main(words) == 1
    assert "a report without recordings needs exactly one parameter file" in capsys.readouterr().err
