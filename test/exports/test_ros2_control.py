"""Parameters for ROS 2: the node's and the controller's."""

from pathlib import Path

import pytest
import yaml

from helpers import REPOSITORY, published
from stribeck.exports.ros2_control import write
from stribeck.exports.task import ExportTask, JointServo
from stribeck.files.actuators import load_actuator
from stribeck.model.joint import Drive, Servo
from stribeck.model.law import LAWS

DECLARED = REPOSITORY / "controllers" / "src" / "friction_compensation_controller_parameters.yaml"


@pytest.mark.parametrize("name", ["xl330", "erob80_50"])
def test_the_controller_takes_every_parameter_of_the_file(name):
    """Declared names, the file's values, and a positive limit of the torque, for servos controlled by voltage and by current."""
    values, law = {**published(name, "m6"), "q_offset": 0.0}, LAWS["m6"]
    servo = Servo(Drive(load_actuator(name), law, values), kp=400.0)
    output = Path("out.yaml")
    found = yaml.safe_load(
        write(ExportTask((JointServo("knee", servo),), output, sources=(Path("m6.json"),))).files[output]
    )
    controller = found["friction_compensation"]["ros__parameters"]
    declared = yaml.safe_load(DECLARED.read_text())["friction_compensation_controller"]
    assert set(controller) - {"type"} <= set(declared)
    knee = controller["friction"]["knee"]
    assert set(knee) <= set(declared["friction"]["__map_joints"])
    assert all(knee[key] == values[key] for key in law.parameter_names)
    assert knee["max_torque"] > 0.0
