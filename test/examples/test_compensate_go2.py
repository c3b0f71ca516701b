"""The example that compensates a robot by what `identify-robot` wrote, in a simulation whose friction is another."""

import sys

import pytest

import swinging_leg
from helpers import REPOSITORY
from stribeck.files.drives import Drives, MachineParameters, write_drives
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.model.estimate import fixed
from stribeck.model.law import LAWS

sys.path.insert(0, str(REPOSITORY / "examples" / "go2"))


@pytest.mark.slow
def test_every_joint_follows_more_closely(tmp_path, monkeypatch, capsys):
    """A leg with 0.6 to 1.4 times the friction of the file: two thirds of the error at most, in each joint."""
    import compensate_go2

    monkeypatch.setattr(compensate_go2, "DURATION", 8.0)
    monkeypatch.setattr(compensate_go2, "BEGIN", 3.0)
    drives = {}
    for joint, truth in swinging_leg.TRUE.items():
        estimates = {name: fixed(value, "") for name, value in truth.items()}
        estimates |= {"stiffness": fixed(30.0, "N m/rad"), "derivative": fixed(1.0, "N m s/rad")}
        actuator = torque_actuator("rotary", largest=20.0, resolution=2e-4, derivative_gain=1.0)
        drives[joint] = torque_drive(actuator, LAWS["m1"], estimates)
    tilt = {name: fixed(0.0, "m/s²") for name in ("tilt_x", "tilt_y")}
    write_drives(tmp_path / "robot.json", Drives(drives, MachineParameters("leg", tilt)))
    model = swinging_leg.write_model(tmp_path)
    assert compensate_go2.main(model, tmp_path / "robot.json") < 0.6
    worst = float(capsys.readouterr().out.split("worst")[1])
    assert worst < 0.67
