"""The share of the friction that joints bear, from how they come to their goals."""

import numpy as np
import pytest

from stribeck.live.learning.overshoot import FALL_TIME, NATURAL, RISE_TIME, Overshoot

DT = 0.002
WIDTH = 0.01


def run(overshoot: Overshoot, seconds: float, behind: float, path: float = 1.0, moves: float = 0.0) -> float:
    """The share after some time."""
    for _ in range(round(seconds / DT)):
        overshoot.update(np.array([behind]), np.array([path]), np.array([moves]), WIDTH, DT)
    return float(overshoot.share[0])


def test_a_joint_beyond_its_goal_bears_less() -> None:
    """The share decays with the fall time, slower for less than the error width, and stays within the dead-band."""
    overshoot = Overshoot(1)
    assert run(overshoot, 0.1, 0.0) == 1.0
    assert run(overshoot, FALL_TIME, -WIDTH) == pytest.approx(np.exp(-1.0))
    assert run(overshoot, FALL_TIME, -0.5 * WIDTH) == pytest.approx(np.exp(-1.5))
    assert run(overshoot, 10.0, 0.0) == pytest.approx(np.exp(-1.5))
    assert overshoot.reduced


def test_a_joint_that_lags_behind_a_goal_that_moves_bears_more() -> None:
    """It rises with the rise time, never above 1, and not while the goal rests: a joint that sticks there may be let go."""
    overshoot = Overshoot(1)
    run(overshoot, 1.0, -WIDTH)
    low = float(overshoot.share[0])
    assert run(overshoot, 5.0, WIDTH) == low
    assert run(overshoot, RISE_TIME, WIDTH, moves=1.0) == pytest.approx(1.0 - (1.0 - low) * np.exp(-1.0))
    assert run(overshoot, 50.0, WIDTH, moves=1.0) == pytest.approx(1.0)


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_a_lag_that_a_reversal_makes_a_lead_is_no_overshoot(way: float) -> None:
    """After the path has turned a joint counts as beyond its goal only once it has been behind it, in both directions."""
    overshoot = Overshoot(1)
    assert run(overshoot, 1.0, way * WIDTH, path=way) == 1.0
    assert run(overshoot, 1.0, way * WIDTH, path=-way) == 1.0
    assert run(overshoot, 0.01, -way * WIDTH, path=-way) == 1.0
    assert run(overshoot, FALL_TIME, way * WIDTH, path=-way) == pytest.approx(np.exp(-1.0))


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_what_a_controller_overshoots_by_itself_takes_nothing(way: float) -> None:
    """A step of 50 widths: a joint that stops 5 widths beyond it keeps its share, one at 11 does not, nor one that swings about it."""
    overshoot = Overshoot(1)
    run(overshoot, 0.01, 50.0 * way * WIDTH, path=way)
    run(overshoot, 0.01, 0.0, path=way)
    assert run(overshoot, 1.0, -5.0 * way * WIDTH, path=way) == 1.0
    assert run(overshoot, FALL_TIME, -1.1 * NATURAL * 50.0 * way * WIDTH, path=way) < 0.4
    low = float(overshoot.share[0])
    assert run(overshoot, 0.1, 0.0, path=way) == low
    assert run(overshoot, 0.1, WIDTH * way, path=way) == low
    assert run(overshoot, FALL_TIME, -WIDTH * way, path=way) == pytest.approx(low * np.exp(-1.0))


def test_a_restart_keeps_the_share_and_a_new_start_does_not() -> None:
    """What was seen of the friction outlives a gap of the states."""
    overshoot = Overshoot(1)
    share = run(overshoot, 0.2, -WIDTH)
    overshoot.restart()
    assert float(overshoot.share[0]) == share
    overshoot.begin()
    assert float(overshoot.share[0]) == 1.0
    assert not overshoot.reduced
