"""A robot of which only the URDF is known."""

from pathlib import Path

import numpy as np
import pytest

from small_arm import JOINTS, URDF
from stribeck.excitation.defaults import robot_of_urdf

SLIDE = '<limit effort="20" velocity="1" lower="0" upper="0.1"/>'
FINGER = """  <link name="tip"><inertial><mass value="0.1"/><inertia ixx="1e-5" ixy="0" ixz="0" iyy="1e-5" iyz="0" izz="1e-5"/></inertial></link>
  <link name="tip2"/>
  <joint name="left_finger" type="prismatic"><parent link="slider"/><child link="tip"/><axis xyz="0 1 0"/>
    <limit effort="5" velocity="1" lower="0" upper="0.02"/></joint>
  <joint name="other" type="prismatic"><parent link="slider"/><child link="tip2"/><axis xyz="0 1 0"/>
    <limit effort="5" velocity="1" lower="0" upper="0.02"/><mimic joint="left_finger"/></joint>
</robot>"""


def urdf(folder: Path, *changes: tuple[str, str]) -> Path:
    """The small arm with replaced parts."""
    text = URDF
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "arm.urdf").write_text(text)
    return folder / "arm.urdf"


def test_grippers_and_mimic_joints_are_locked(tmp_path: Path) -> None:
    """And named; their mass stays with the link that carries them."""
    alone = robot_of_urdf(urdf(tmp_path, ("</robot>", FINGER)))
    assert list(alone.arm.joints) == JOINTS
    assert alone.said[0].startswith("joints: ")
    assert alone.said[0].endswith("left_finger, other")
    assert alone.arm.inertials[20] == pytest.approx(0.6)


def test_limits_of_the_urdf_are_kept(tmp_path: Path) -> None:
    """Speeds beyond the default ones are reduced to them."""
    limits = robot_of_urdf(urdf(tmp_path)).limits
    np.testing.assert_allclose(limits.effort, [30, 15, 20])
    np.testing.assert_allclose(limits.upper, [2.5, 2.6, 0.1])
    np.testing.assert_allclose(limits.velocity, [3.0, np.pi, 0.25])
    np.testing.assert_allclose(limits.acceleration, [10, 10, 2])


def test_missing_limits_have_defaults_that_are_said(tmp_path: Path) -> None:
    """Position, velocity and effort of a slide, a continuous joint, and efforts that suffice to hold the arm."""
    path = urdf(
        tmp_path,
        (SLIDE, ""),
        ('"elbow" type="revolute"', '"elbow" type="continuous"'),
        ('<limit effort="30" velocity="3" lower="-2.5" upper="2.5"/>', '<limit effort="0" velocity="0"/>'),
    )
    alone = robot_of_urdf(path)
    limits = alone.limits
    np.testing.assert_allclose(limits.upper, [2 * np.pi, 2 * np.pi, 0.1])
    np.testing.assert_allclose(limits.lower, -limits.upper)
    still = np.zeros((50, 3))
    held = np.abs(alone.arm.inverse_dynamics(limits.anywhere(50).T, still, still)).max(axis=0)
    assert (limits.effort[[0, 2]] > held[[0, 2]]).all()
    text = "\n".join(alone.said)
    for words in (
        "the URDF states no limits",
        "continuous",
        "effort: limited to",
        "acceleration: limited to 10 rad/s^2",
    ):
        assert words in text
    assert "(shoulder, slide)" in text
