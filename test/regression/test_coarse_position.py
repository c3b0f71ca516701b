"""A gripper's XL320, of 1024 counts, barely moved: noise and steps of its position were taken for motion, and its velocity,
which was right, for one in other units. Its bag was left out of the fit."""

import numpy as np
import pytest

from helpers import log_of, refusal
from stribeck.recordings.signals.run_units import check_units

COUNT = np.radians(300.0) / 1024.0


def coarse(amplitude, velocity_scale=1.0, seed=0):
    """A slow swing at 200 Hz, with half a count of noise, rounded to counts; velocities are right but for a factor."""
    time = np.arange(0.0, 6.0, 0.005)
    rng = np.random.default_rng(seed)
    noisy = amplitude * np.sin(0.8 * time) + rng.normal(0.0, 0.8 * COUNT, len(time))
    velocity = velocity_scale * 0.8 * amplitude * np.cos(0.8 * time)
    return log_of(
        time, COUNT * np.round(noisy / COUNT), velocity=velocity, goal=amplitude * np.sin(0.8 * time)
    )


@pytest.mark.parametrize("amplitude", [0.0, 0.1, 0.3, 0.5, 0.8, 1.2])
@pytest.mark.parametrize("seed", range(3))
def test_a_coarse_position_does_not_make_a_right_velocity_wrong(amplitude, seed):
    """From no motion to plenty of it."""
    check_units(coarse(amplitude, seed=seed), "gripper")


@pytest.mark.parametrize(
    ("scale", "said"), [(57.3, "rev/min"), (9.55, "rev/min"), (0.1, "rev/min"), (-1.0, "sign"), (0.0, "0")]
)
def test_wrong_velocities_of_a_coarse_position_are_still_noticed(scale, said):
    """In degrees, in rev/min, of the other sign, of zero: where the joint moves clearly."""
    assert said in refusal(lambda: check_units(coarse(1.2, scale), "gripper"), "gripper", "velocity")
