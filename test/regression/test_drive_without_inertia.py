"""A motor of a mechanism has no inertia of its own; its export to MJCF divided by zero."""

import pytest

from stribeck.cli.main import main
from stribeck.files.drives import Drives, MachineParameters, write_drives
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.model.estimate import fixed
from stribeck.model.law import LAWS

MODEL = """
<mujoco>
  <worldbody><body><joint name="shoulder" axis="0 0 1"/><inertial pos="0.05 0 0" mass="0.04" diaginertia="1e-5 2e-4 2e-4"/></body></worldbody>
</mujoco>
"""
FOUND = {
    "armature": (0.0, "kg m^2"),
    "friction_base": (0.003, "N m"),
    "friction_viscous": (0.005, "N m s/rad"),
}


def test_a_drive_without_inertia_is_exported(tmp_path, capsys):
    """Into a model, whose links have the inertia, and as a file to include; the error is that of a loaded joint."""
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install '.[mujoco]'")
    law, actuator = LAWS["m1"], torque_actuator("rotary")
    drive = torque_drive(actuator, law, {name: fixed(*one) for name, one in FOUND.items()})
    file, model, target = (tmp_path / name for name in ("P.json", "model.xml", "out.xml"))
    write_drives(file, Drives({"shoulder": drive}, MachineParameters("pendulum", {})))
    model.write_text(MODEL)
    words = ["export", "--format", "mjcf", "--params", str(file), "--kp", "0.2", "--output", str(target)]
    for more in ([], ["--model", str(model)]):
        assert main([*words, *more]) == 0
        said = capsys.readouterr().out
        assert float(said.split("shoulder: ")[1].split(" mrad")[0]) < 0.1, said
    dof = mujoco.MjModel.from_xml_path(str(target))
    assert (dof.dof_armature[0], dof.dof_damping[0], dof.dof_frictionloss[0]) == (0.0, 0.005, 0.003)
