"""The tutorial of the SO-101 on its bus, line by line, on an emulated arm that is MuJoCo's, without ROS."""

import json

import numpy as np
import pytest
import yaml

from helpers import REPOSITORY
from tutorial_blocks import blocks, executed

pytest.importorskip("jax", reason="the tutorial identifies: pip install '.[fit]'")
pytest.importorskip("mujoco", reason="the emulated arm is MuJoCo's: pip install '.[mujoco]'")
pytest.importorskip("pinocchio", reason="trajectories are designed: pip install '.[arm]'")

PAGE = REPOSITORY / "docs" / "tutorial_so101_bus.md"
ROUNDS, MOTIONS, DURATION = ("warm_up", "recordings"), 3, 20.0
"""Folders of the rounds of recording; motions of each, and how long one takes [s]."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the lines of the page leave behind."""
    place = tmp_path_factory.mktemp("so101")
    for name in ("config", "examples"):
        (place / name).symlink_to(REPOSITORY / name)
    for language, text in blocks(PAGE):
        executed(place, language, text)
    return place


def recorded(folder):
    """Seconds of a round, by the stamps of its bags: from the first to the last, with the ways between the motions."""
    bags = [
        yaml.safe_load(path.read_text())["rosbag2_bagfile_information"]
        for path in folder.glob("*/metadata.yaml")
    ]
    assert len(bags) == MOTIONS
    begins = [bag["starting_time"]["nanoseconds_since_epoch"] for bag in bags]
    ends = [begin + bag["duration"]["nanoseconds"] for begin, bag in zip(begins, bags, strict=True)]
    return 1e-9 * (max(ends) - min(begins))


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_from_box_to_less_error_at_rest_and_in_motion(folder):
    """At rest at most 0.35 of none and 0.6 of the weight alone, slowly at most 0.5 of none, no joint worse; in 15 minutes."""
    for name in ("motion.png", "report.html", "advice.html"):
        assert (folder / name).stat().st_size > 10_000
    check = json.loads((folder / "check.json").read_text())
    none, weight, both = (check["errors"][name] for name in ("none", "weight", "weight and friction"))

    def rms(errors, part):
        return np.sqrt(np.mean(np.square(errors[part])))

    assert rms(both, "rest") <= 0.35 * rms(none, "rest")
    assert rms(both, "rest") <= 0.6 * rms(weight, "rest")
    assert rms(both, "slow") <= 0.5 * rms(none, "slow")
    for part in ("rest", "slow"):
        assert np.all(np.array(both[part]) <= none[part])
    rounds = [recorded(folder / name) for name in ROUNDS]
    assert min(rounds) >= MOTIONS * DURATION
    assert check["seconds"] + sum(rounds) <= 900.0
