"""Real arms: what a designed trajectory gains over the best of 2000 random ones, in a minute, within all limits."""

from typing import Any

import pytest

from excitation import one
from helpers import DATA
from stribeck.files.robots import example_robots

needs_tx40 = pytest.mark.skipif(not (DATA / "tx40").is_dir(), reason="the URDF of the TX40 is not here")
needs_panda = pytest.mark.skipif(
    not example_robots("panda.urdf"), reason="example-robot-data is not installed"
)


def check(summary: dict[str, Any], gain: float) -> None:
    """Limits of the summary; ``one`` has looked for violations. On a busy machine a minute is too short for all random ones."""
    assert 1000 <= summary["random"]["count"] <= 2000
    assert summary["gain"] >= gain
    assert summary["median_sigma_ratio"] <= 0.6


@pytest.mark.slow
@needs_tx40
@pytest.mark.parametrize("seed", [0, 1])
def test_tx40_within_its_joint_limits_gains_forty(seed: int) -> None:
    """Log det +40, standard deviations by 0.6."""
    check(one("tx40", "joint limits", seed), 40.0)


@pytest.mark.slow
@needs_tx40
@pytest.mark.parametrize("seed", [0, 1])
def test_tx40_clear_of_floor_and_itself_gains_twenty(seed: int) -> None:
    """Log det +20, standard deviations by 0.6."""
    check(one("tx40", "floor and bodies", seed), 20.0)


@pytest.mark.slow
@needs_panda
@pytest.mark.parametrize("seed", [0, 1])
def test_panda_clear_of_floor_and_itself_gains_twenty(seed: int) -> None:
    """Log det +20, standard deviations by 0.6."""
    check(one("panda", "floor and bodies", seed), 20.0)
