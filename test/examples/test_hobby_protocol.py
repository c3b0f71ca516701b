"""The tutorial of the SO-101 on its bus, line by line, on an emulated arm that is MuJoCo's, without ROS."""

import json

import numpy as np
import pytest

from helpers import REPOSITORY
from tutorial_blocks import blocks, executed

pytest.importorskip("jax", reason="the tutorial identifies: pip install '.[fit]'")
pytest.importorskip("mujoco", reason="the emulated arm is MuJoCo's: pip install '.[mujoco]'")
pytest.importorskip("pinocchio", reason="trajectories are designed: pip install '.[arm]'")

PAGE = REPOSITORY / "docs" / "tutorial_so101_bus.md"
RECORDED = 2 * 80.0
"""Most that both rounds of recording take [s]."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the lines of the page leave behind."""
    place = tmp_path_factory.mktemp("so101")
    for name in ("config", "examples"):
        (place / name).symlink_to(REPOSITORY / name)
    for language, text in blocks(PAGE):
        executed(place, language, text)
    return place


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
    assert check["seconds"] + RECORDED <= 900.0
