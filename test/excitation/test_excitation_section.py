"""The section ``excitation:`` of a robot's file, and what stands in ours."""

from pathlib import Path
from typing import Any

import pytest

from small_arm import small_robot
from stribeck.errors import ConfigError
from stribeck.excitation.section import ExcitationSection, excitation_section
from stribeck.files.robots import read_robot


def section(folder: Path, **content: Any) -> ExcitationSection:
    return excitation_section(read_robot(str(small_robot(folder, excitation=content))), 3)


def test_nothing_said_means_the_defaults(tmp_path: Path) -> None:
    """A file without the section is one with an empty one."""
    config = read_robot(str(small_robot(tmp_path, excitation=None)))
    assert excitation_section(config, 3) == section(tmp_path) == ExcitationSection()


def test_one_number_stands_for_all_joints(tmp_path: Path) -> None:
    """As in ``limits``."""
    assert section(tmp_path, noise=0.5, coefficient_limit=[1, 2, 3]) == ExcitationSection(
        noise=(0.5, 0.5, 0.5), coefficient_limit=(1.0, 2.0, 3.0)
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"speed": 1}, "unknown key 'speed'; valid: coefficient_limit"),
        ({"noise": [1, 2]}, "noise: expected 3 numbers, found 2"),
        ({"noise": 0}, "noise: must be above 0, found 0"),
        ({"clearance": -1}, "clearance: must be at least 0, found -1"),
        ({"floor": "low"}, "floor: expected a number"),
        ({"capsules": {"upper": [1, 2]}}, "upper\\[0\\]: expected a list of 7 numbers, found 1"),
        ({"capsules": {"upper": [[0, 0, 0, 0, 0, 1]]}}, "upper\\[0\\]: expected 7 values, found 6"),
        ({"capsules": {"upper": [[0, 0, 0, 0, 0, 1, 0]]}}, "upper\\[0\\]\\[6\\]: must be above 0, found 0"),
        ({"ignore": ["upper"]}, "ignore\\[0\\]: expected a list of 2 texts, found text 'upper'"),
    ],
)
def test_what_is_not_valid_is_refused(tmp_path: Path, content: dict[str, Any], words: str) -> None:
    """File, key and what is expected."""
    with pytest.raises(ConfigError, match=words):
        section(tmp_path, **content)


@pytest.mark.parametrize(("name", "joints"), [("tx40", 6), ("panda", 7)])
def test_robots_of_the_project_have_all_limits(name: str, joints: int) -> None:
    """Positions, velocities, accelerations, efforts and a floor."""
    config = read_robot(name)
    assert len(config.joints) == joints
    assert config.position_limits(joints) is not None
    assert all(config.limit(limit, joints) is not None for limit in ("velocity", "acceleration", "effort"))
    assert excitation_section(config, joints).floor == 0.0
