"""The posterior of an arm whose friction may be zero.

What happened: friction had logarithmic coordinates, with a long tail where it may be zero. From half a second of the TX40, two of eight chains
of the no-U-turn sampler hung in it: R-hat 1.35, 447 divergent steps, errors of torque between 13 and 28 %.
What must happen: the coordinates are standard normal under the prior, which is half-normal, so that there is no tail.
"""

import jax
import numpy as np
import pytest
from scipy import stats

from heavy_arms import heavy_arm
from stribeck.identify.arm.regressor import machine_of
from stribeck.identify.posterior.knowledge import cad_around
from stribeck.identify.posterior.likelihood import FRICTION, TorquePosterior
from stribeck.identify.posterior.network import link_frames, mechanical_of

ARM = heavy_arm()
N = len(ARM)


@pytest.fixture(scope="module")
def posterior():
    prior = cad_around(mechanical_of(ARM, np.arange(1.0, N + 1.0)))
    scale = np.full(N, 3.0)
    machine = machine_of(ARM.joints, ARM, {})
    return TorquePosterior(prior, link_frames(ARM), machine, (None,) * N, np.ones(N), scale, np.ones(N))


@pytest.mark.ci
def test_drawn_friction_is_half_normal(posterior):
    """Coulomb friction of a third of the typical torque, offsets of either sign, for draws from the prior."""
    with jax.enable_x64():
        x = posterior.draw(np.random.default_rng(0), 4000)
        friction = dict(zip(posterior.friction_names, np.asarray(posterior.friction(x)).T, strict=True))
    joint = ARM.joints[0]
    for name, law in zip(FRICTION, (stats.halfnorm, stats.halfnorm, stats.norm), strict=True):
        assert stats.kstest(friction[f"{name}_{joint}"], law.cdf).pvalue > 0.01, name


def test_no_coordinate_of_friction_has_a_long_tail(posterior):
    """Eight standard deviations away from the centre, on either side, cost 32 nats; a logarithm cost 8."""
    first = posterior.prior.dimension
    with jax.enable_x64():
        x = posterior.draw(np.random.default_rng(1), 1)[0]
        for k in range(first, first + len(posterior.friction_names)):
            middle, low, high = (np.array(x) for _ in range(3))
            middle[k], low[k], high[k] = 0.0, -8.0, 8.0
            costs = [float(posterior.log_prior(one)) for one in (middle, low, high)]
            assert costs[0] - costs[1] == pytest.approx(32.0)
            assert costs[0] - costs[2] == pytest.approx(32.0)
