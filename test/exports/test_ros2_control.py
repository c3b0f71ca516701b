"""Parameters for ROS 2: the node's and the controller's."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from helpers import REPOSITORY, published
from stribeck.exports.ros2_control import write
from stribeck.exports.task import ExportTask, JointServo
from stribeck.files.actuators import load_actuator
from stribeck.model.joint import Drive, Servo
from stribeck.model.law import LAWS
from stribeck.rigid.rigid_body import RigidBodyModel
from stribeck.rigid.tree import BASE, KinematicTree, TreeJoint
from stribeck.rigid.urdf import read_urdf
from three_joints import arm_of_three

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


def exported(folder, names):
    """The controller's parameters for joints of a robot of three."""
    values, law = {**published("xl330", "m1"), "q_offset": 0.0}, LAWS["m1"]
    servo = Servo(Drive(load_actuator("xl330"), law, values), kp=400.0)
    joints, output = tuple(JointServo(name, servo) for name in names), folder / "out.yaml"
    task = ExportTask(joints, output, arm_of_three(folder), sources=(Path("m1.json"),) * len(names))
    return yaml.safe_load(write(task).files[output])["friction_compensation"]["ros__parameters"]


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (("j3", "j1", "j2"), ["j1", "j2", "j3"]),
        (("j3", "j2"), ["j2", "j3"]),
        (("j1", "j2", "j3"), ["j1", "j2", "j3"]),
    ],
)
def test_joints_follow_the_one_that_carries_them(tmp_path, given, written):
    """The controller refused a file with another order: "expected a joint before it in joints"."""
    controller = exported(tmp_path, given)
    assert controller["joints"] == written
    assert list(controller["friction"]) == written
    parents = [controller["friction"][name]["link_parent"] for name in written]
    assert parents == ["", *written[:-1]]
    sorted_alike = exported(tmp_path, written)["friction"]
    assert controller["friction"] == sorted_alike


def test_with_a_urdf_the_controller_knows_what_each_joint_moves(tmp_path):
    """Parents, axes, placements and inertias of the tree, from which the weight of the robot follows as from the URDF."""
    names, urdf = ("j1", "j2", "j3"), arm_of_three(tmp_path)
    controller = exported(tmp_path, names)
    links = [controller["friction"][name] for name in names]
    assert [link["link_parent"] for link in links] == ["", "j1", "j2"]
    built = [
        TreeJoint(
            name, "revolute", names.index(link["link_parent"]) if link["link_parent"] else BASE,
            *(np.reshape(link[key], shape) for key, shape in
              (("link_placement", (4, 4)), ("link_axis", 3), ("link_inertia", (4, 4)))),
        )
        for name, link in zip(names, links, strict=True)
    ]  # fmt: skip
    q = np.array([0.3, 0.7, 0.9])
    models = (RigidBodyModel(KinematicTree(tuple(built))), read_urdf(urdf).model(list(names)))
    found, expected = (model.mass_matrix_and_bias(q, 0.0 * np.asarray(q))[1] for model in models)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    declared = yaml.safe_load(DECLARED.read_text())["friction_compensation_controller"]
    assert set(links[0]) <= set(declared["friction"]["__map_joints"])
