"""URDFs without Pinocchio: what is read, and what is refused in one line."""

import numpy as np
import pytest

from stribeck.errors import ConfigError
from stribeck.files.robots import example_robots
from stribeck.rigid.urdf import parse_urdf, read_urdf

ROBOT = """<?xml version="1.0"?>
<robot name="small">
  <link name="base"/>
  <link name="upper">
    <inertial>
      <origin xyz="0.1 0 0" rpy="0 0 1.5707963267948966"/>
      <mass value="2"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.025"/>
    </inertial>
  </link>
  <link name="flange"/>
  <link name="tool">
    <inertial><mass value="0.5"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial>
  </link>
  <link name="slider">
    <inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
  </link>
  <joint name="turn" type="continuous">
    <origin xyz="0 0 0.3"/><parent link="base"/><child link="upper"/><axis xyz="0 2 0"/>
  </joint>
  <joint name="flange" type="fixed">
    <origin xyz="0.4 0 0" rpy="0 1.5707963267948966 0"/><parent link="upper"/><child link="flange"/>
  </joint>
  <joint name="mount" type="fixed"><origin xyz="0 0 0.1"/><parent link="flange"/><child link="tool"/></joint>
  <joint name="slide" type="prismatic"><parent link="flange"/><child link="slider"/><axis xyz="0 0 1"/></joint>
  <joint name="other" type="revolute">
    <parent link="base"/><child link="finger"/><mimic joint="turn" multiplier="2"/>
  </joint>
  <link name="finger"/>
</robot>
"""
STRAIGHT = 2.0 * 0.1**2 + 0.01 + 0.5 * 0.5**2
"""Inertia about the axis of ``turn`` without the slider: the inertial's x axis is the link's y axis."""


def test_what_a_urdf_says_is_read():
    """Poses, axes that are no unit vectors, inertials with their own frame, fixed links, mimic joints."""
    robot = parse_urdf(ROBOT)
    assert robot.movable == ("turn", "slide", "other")
    assert robot.kinds["turn"] == "continuous"
    assert robot.mimics == {"other": "turn"}
    assert robot.doubts == ()
    model = robot.model(gravity=(0.0, 0.0, -10.0))
    assert model.names == ("turn", "slide")
    mass, bias = model.mass_matrix_and_bias([0.0, 0.2], [0.0, 0.0])
    slider = 1.0 * 0.6**2 + 1.0
    assert np.allclose(mass, [[STRAIGHT + slider, 0.0], [0.0, 1.0]], atol=1e-14)
    assert bias[0] == pytest.approx(-10.0 * (2.0 * 0.1 + 0.5 * 0.5 + 0.6))
    assert bias[1] == pytest.approx(0.0, abs=1e-14)
    assert model.mass_matrix_and_bias([0.0, 0.2], [3.0, 0.0])[1][1] == pytest.approx(-9.0 * 0.6)


def test_joints_can_be_chosen_and_locked():
    """A slider locked at 0; rotors count."""
    model = parse_urdf(ROBOT).model(["turn"], armature=[0.5])
    expected = STRAIGHT + 1.0 * 0.4**2 + 1.0 + 0.5
    assert model.mass_matrix_and_bias([0.4], [0.0])[0][0, 0] == pytest.approx(expected)


def test_files_are_read_in_the_encoding_they_name(tmp_path):
    """Latin-1, and a byte order mark."""
    path = tmp_path / "robot.urdf"
    text = ROBOT.replace("?>", "?><!-- 45° -->", 1)
    path.write_bytes(text.replace('"1.0"', '"1.0" encoding="latin-1"', 1).encode("latin-1"))
    assert len(read_urdf(path).tree.joints) == 5
    path.write_bytes(text.encode("utf-8-sig"))
    assert len(read_urdf(path).tree.joints) == 5


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("</robot>", "", "is not a URDF: no element found"),
        ("<robot", "<!DOCTYPE lol [<!ENTITY a 'b'>]><robot", "contains a DOCTYPE"),
        ("robot", "sdf", "its root is <sdf>, expected <robot>"),
        ('name="small">', 'xmlns:xacro="http://ros.org/xacro"><xacro:arm/>', "with `xacro"),
        ('link name="finger"', 'link name="tool"', "link tool occurs twice"),
        ('link name="finger"', "link", "a <link> has no name"),
        ('joint name="mount"', 'joint name="turn"', "joint turn occurs twice"),
        ('parent link="base"', 'parent link="floor"', "joint turn: unknown parent link 'floor'"),
        ('<child link="upper"/>', "", "joint turn: no child link"),
        ('link="finger"', 'link="slider"', "link slider has two parent joints, slide and other"),
        (
            'name="finger"/>',
            'name="finger"/><link name="stray"/>',
            r"2 links have no parent joint \(base, stray\)",
        ),
        (
            '<parent link="base"/><child link="upper"/>',
            '<parent link="tool"/><child link="upper"/>',
            "joint turn is part of a loop",
        ),
        ('type="prismatic"', 'type="floating"', "joint slide is floating.*valid: revolute, continuous"),
        ('type="prismatic"', 'type="planar"', "joint slide is planar"),
        ('type="prismatic"', 'type="ball"', "joint slide: unknown type 'ball'; valid: revolute"),
        ('axis xyz="0 2 0"', 'axis xyz="0 0 0"', "joint turn: the axis is zero"),
        ('axis xyz="0 2 0"', 'axis xyz="0 2"', "joint turn: axis: expected 3 finite numbers, found '0 2'"),
        (
            'xyz="0 0 0.3"',
            'xyz="0 0 ${h}"',
            r"joint turn: origin xyz: expected 3 finite numbers \[m\], found '0 0 \${h}'",
        ),
        ('xyz="0 0 0.3"', 'rpy="0 0 nan"', r"joint turn: origin rpy: expected 3 finite numbers \[rad\]"),
        ('mass value="2"', 'mass value="-2"', "link upper: the mass must not be negative, found -2 kg"),
        (
            'mass value="2"',
            'mass value="2 kg"',
            r"link upper: mass: expected a finite number \[kg\], found '2 kg'",
        ),
        ('<mass value="2"/>', "", "link upper: mass is missing"),
        ('iyz="0" izz="0.025"', 'iyz="0"', "link upper: inertia izz is missing"),
        (
            'ixx="0.01"',
            'ixx="-0.01"',
            "link upper: principal moments of inertia must not be negative, found -0.01",
        ),
        ('ixx="0.01" ixy="0"', 'ixx="0.01" ixy="1"', "link upper: principal moments of inertia"),
        ('ixx="0.01"', 'ixx="inf"', r"inertia ixx: expected a finite number \[kg m\^2\]"),
    ],
)
def test_a_damaged_urdf_is_one_line(old, new, message):
    """What was found, where, and what is expected."""
    assert old in ROBOT
    replaced = ROBOT.replace(old, new) if old == "robot" else ROBOT.replace(old, new, 1)
    with pytest.raises(ConfigError, match=message) as caught:
        parse_urdf(replaced, "robot.urdf")
    assert str(caught.value).startswith("robot.urdf")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("joints", "message"),
    [
        (["wrist"], "no movable joint 'wrist'; valid: turn, slide, other"),
        (["mount"], "no movable joint 'mount'"),
        (["turn", "other"], "joint other follows another one"),
        (["turn", "turn"], "must be different"),
    ],
)
def test_joints_that_cannot_move_are_refused(joints, message):
    """Unknown, fixed and mimic joints, and joints that stand twice."""
    with pytest.raises(ConfigError, match=message):
        parse_urdf(ROBOT).model(joints)


def test_files_that_are_not_there_are_refused(tmp_path):
    """Missing files, folders, no XML, no links, nothing that moves."""
    path = tmp_path / "robot.urdf"
    with pytest.raises(ConfigError, match="no such file"):
        read_urdf(path)
    with pytest.raises(ConfigError, match="is a folder"):
        read_urdf(tmp_path)
    path.write_bytes(b"\x00\xff\xfe" * 50)
    with pytest.raises(ConfigError, match="is not a URDF"):
        read_urdf(path)
    path.write_text(ROBOT.replace('"1.0"', '"1.0" encoding="klingon"', 1))
    with pytest.raises(ConfigError, match="is not a URDF: unknown encoding"):
        read_urdf(path)
    with pytest.raises(ConfigError, match="contains no <link>"):
        parse_urdf("<robot/>")
    with pytest.raises(ConfigError, match="all joints are fixed"):
        parse_urdf('<robot><link name="base"/></robot>').model()


def test_an_inertia_that_no_body_has_is_a_doubt():
    """One can compute with it, so that it is said and not refused."""
    robot = parse_urdf(ROBOT.replace('izz="0.025"', 'izz="0.25"'))
    assert len(robot.doubts) == 1
    assert (
        "link upper: principal moments of inertia 0.01, 0.02, 0.25 kg m^2 are impossible" in robot.doubts[0]
    )
    assert len(robot.model()) == 2


@pytest.mark.ci
def test_every_example_robot_is_read_or_refused_in_one_line():
    """All URDFs of example-robot-data: none raises anything else, nearly all are read, masses are positive."""
    paths = example_robots("*.urdf")
    if not paths:
        pytest.skip("example-robot-data is not installed")
    refused = []
    for path in paths:
        try:
            robot = read_urdf(path)
        except ConfigError as problem:
            refused.append(str(problem))
            continue
        if robot.movable:
            assert min(joint.pseudo_inertia[3, 3] for joint in robot.model().tree.joints) >= 0.0
    assert len(refused) < 0.05 * len(paths), "\n".join(refused)
