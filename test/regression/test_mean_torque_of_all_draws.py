"""The mean torque of an arm's posterior.

What happened: `identify arm --bayes --seconds` and `torque.csv` had the mean torque of every sixth draw, the URDF and drives the mean of all: with chains that
disagree, errors of torque differed by more than 1 %. 799 draws passed for at most 400.
What must happen: the mean is that of all draws, and so is the feed-forward of the files.
"""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from heavy_arms import heavy_arm
from stribeck.identify.arm.motion import States
from stribeck.identify.arm.regressor import design, machine_of
from stribeck.identify.posterior.arm import ArmDraws, ArmParameters
from stribeck.identify.posterior.knowledge import cad_around
from stribeck.identify.posterior.likelihood import TorquePosterior
from stribeck.identify.posterior.measures import MOST, mean_torque, torques_of
from stribeck.identify.posterior.network import link_frames, mechanical_of

ARM = heavy_arm()
N = len(ARM)
MACHINE = machine_of(ARM.joints, ARM, {"wrist": dict.fromkeys(ARM.joints[-2:], 1.0)})
REST = 1e-4
MOTION = SimpleNamespace(states=States(1.0, *np.random.default_rng(1).uniform(-1.0, 1.0, (3, 5, N))))


def drawn(count):
    """Draws from the prior of links and friction; the first, which every subset with a stride has, is far away from the others."""
    prior = cad_around(mechanical_of(ARM, np.arange(1.0, N + 1.0)))
    ones = np.ones(N + 1)
    posterior = TorquePosterior(prior, link_frames(ARM), MACHINE, (None,) * N, np.ones(N), ones, ones)
    with jax.enable_x64():
        x = posterior.draw(np.random.default_rng(0), count)
    x[0, prior.dimension : -N] += 5.0
    return ArmDraws(posterior, x[None])


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("count", [40, 2 * MOST - 1, 6 * MOST])
def test_the_mean_torque_is_that_of_all_draws_and_of_the_files(count):
    """It equals the torque of mean inertials and mean drives, whatever the number of draws."""
    draws = drawn(count)
    found = mean_torque(draws, MACHINE, MOTION, REST)
    columns = design(MACHINE, MOTION.states, REST).columns
    assert found == pytest.approx(np.mean([columns @ p for p in draws.linear], axis=0))
    of_files = ArmParameters(draws)
    couplings = draws.linear[:, 14 * N :].mean(axis=0)
    written = [of_files.inertials().ravel(), of_files.drives.mean(axis=0).ravel(), couplings]
    assert found == pytest.approx(columns @ np.concatenate(written))
    single = torques_of(draws, MACHINE, MOTION, REST)
    assert min(count, MOST // 2) <= len(single) <= MOST
    assert single[0] == pytest.approx(columns @ draws.linear[0])
