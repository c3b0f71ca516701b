"""Drives that are known by torque and motion alone were exported as position servos, and only with a made-up firmware gain."""

import mujoco
import pytest
import yaml

from stribeck.cli.main import main
from stribeck.files.drives import Drives, read_drive, write_drives
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.model.estimate import fixed
from stribeck.model.law import LAWS

VALUES = {
    "armature": (0.01, "kg m^2"),
    "friction_base": (0.4, "N m"),
    "friction_viscous": (0.2, "N m s/rad"),
}

MODEL = (
    '<mujoco><worldbody><body><joint name="elbow"/><geom size="0.1"/></body></worldbody>'
    '<actuator><position joint="elbow" kp="30" ctrlrange="-1 1"/></actuator></mujoco>'
)


@pytest.fixture
def identified(tmp_path):
    """A file as `identify joint` writes it."""
    found = {name: fixed(*one) for name, one in VALUES.items()}
    drive = torque_drive(torque_actuator("rotary", largest=30.0), LAWS["m1"], found)
    path = tmp_path / "joint.json"
    write_drives(path, Drives({"elbow": drive}))
    return path


def exported(source, form, output, *words):
    """Run the command."""
    command = ["export", "--format", form, "--params", source, "--output", output, *words]
    assert main([str(word) for word in command]) == 0


@pytest.mark.parametrize("given", [False, True], ids=["to include", "in a model"])
def test_ctrl_is_the_torque_in_mujoco(identified, tmp_path, given):
    """Clipped at the limit; friction as identified; and the file is read again."""
    made, model = tmp_path / "made.xml", tmp_path / "model.xml"
    model.write_text(MODEL)
    exported(identified, "mjcf", made, *(["--model", model] if given else []))
    if not given:
        outer = f'<mujoco><include file="{made.name}"/><worldbody><body><joint name="elbow" class="torque_joint_m1_elbow"/>'
        whole = tmp_path / "whole.xml"
        whole.write_text(f'{outer}<geom size="0.1"/></body></worldbody></mujoco>')
    compiled = mujoco.MjModel.from_xml_path(str(made if given else whole))
    assert (compiled.dof_frictionloss[0], compiled.dof_damping[0]) == (0.4, 0.2)
    assert compiled.dof_armature[0] == 0.01
    data = mujoco.MjData(compiled)
    for command, torque in ((7.0, 7.0), (-50.0, -30.0)):
        data.ctrl[:] = command
        data.qpos[:], data.qvel[:] = 1.0, 2.0
        mujoco.mj_forward(compiled, data)
        assert data.qfrc_actuator[0] == pytest.approx(torque)
    again = tmp_path / "again.json"
    command = ["import-model", made, "--format", "mjcf", "--servo", "torque_joint", "--joint", "elbow"]
    assert main([str(word) for word in (*command, "--output", again)]) == 0
    read = read_drive(again)
    assert {name: read.values[name] for name in VALUES} == {
        name: value for name, (value, _) in VALUES.items()
    }
    assert read.actuator.control.torque_max == 30.0


def test_a_stated_gain_makes_a_position_controller(identified, tmp_path):
    """As before."""
    made = tmp_path / "made.xml"
    exported(identified, "mjcf", made, "--kp", 50)
    assert 'gainprm="50"' in made.read_text()


def test_ros_needs_no_gain_and_gets_none(identified, tmp_path):
    """Neither the node nor the controller."""
    made = tmp_path / "compensation.yaml"
    exported(identified, "ros2_control", made)
    content = yaml.safe_load(made.read_text())
    node = content["/**"]["ros__parameters"]["elbow"]
    controller = content["friction_compensation"]["ros__parameters"]["friction"]["elbow"]
    assert node == {"parameter_file": str(identified), "max_torque": 15.0}
    assert not {"p_gain", "supply_voltage"} & controller.keys()
    assert (controller["servo"], controller["output_max"]) == ("torque", 30.0)


def test_formats_with_position_control_only_still_ask_for_the_gain(identified, tmp_path, capsys):
    """Isaac Lab's drive has a stiffness."""
    command = ["export", "--format", "isaaclab", "--params", identified, "--output", tmp_path / "made.py"]
    assert main([str(word) for word in command]) == 1
    assert "give it with --kp" in capsys.readouterr().err
