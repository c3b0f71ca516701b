"""Draws of a law whose friction at rest is less than in motion had negative friction at rest."""

import numpy as np
import pytest

from stribeck.evaluate.draws import draws_of, uncertain_of
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.identify.common.quantiles import normal_estimate
from stribeck.model.law import law_named

VALUES = {"friction_base": (3.4, 0.83), "friction_stribeck": (-3.4, 15.0), "friction_viscous": (2.5, 0.8)}


def drive(**changes):
    """A joint with a Stribeck term that is not determined, at its lower end."""
    found = {
        name: normal_estimate(
            value, "N m", deviation, bounds=(-np.inf if "stribeck" in name else 0.0, np.inf)
        )
        for name, (value, deviation) in {**VALUES, **changes}.items()
    }
    found |= {"dtheta_stribeck": normal_estimate(0.08, "rad/s", 0.02, bounds=(0.0035, 0.8))}
    found |= {"alpha": normal_estimate(1.0, "1", 0.1, bounds=(0.5, 3.0))}
    return torque_drive(torque_actuator("rotary"), law_named("m2"), found)


@pytest.mark.parametrize("width", [15.0, 0.3], ids=["wide", "narrow"])
def test_friction_at_rest_is_never_negative(width):
    """Half of the draws of the normal distribution would be; Coulomb friction keeps its spread."""
    one = drive(friction_stribeck=(-3.4, width))
    assert uncertain_of(one).sums
    drawn = draws_of(one, 2000, 3)
    rest = drawn["friction_base"] + drawn["friction_stribeck"]
    assert rest.min() >= 0.0
    assert rest.max() > width
    assert np.std(drawn["friction_viscous"]) == pytest.approx(0.8, rel=0.1)


def test_far_from_zero_friction_at_rest_is_as_before():
    """The condition changes nothing where no draw violates it."""
    one = drive(friction_stribeck=(1.0, 0.1), friction_base=(3.4, 0.1))
    drawn = draws_of(one, 4000, 3)
    assert np.mean(drawn["friction_stribeck"]) == pytest.approx(1.0, abs=0.01)
    assert np.std(drawn["friction_stribeck"]) == pytest.approx(0.1, rel=0.05)


def test_rare_draws_are_found_one_coordinate_after_the_other():
    """Where hardly any normal draw has positive friction at rest."""
    from stribeck.evaluate import draws

    known = uncertain_of(drive(friction_base=(3.4, 0.1), friction_stribeck=(-3.4, 0.1)))
    k = known.names.index("friction_stribeck")
    mean = known.mean.copy()
    mean[k] -= 1.0
    points = draws._within(replace_mean(known, mean), 300, np.random.default_rng(0))
    rest = points[:, k] + points[:, known.names.index("friction_base")]
    assert rest.shape == (300,)
    assert rest.min() >= -1e-12
    assert np.median(rest) < 0.05


def replace_mean(known, mean):
    """The same uncertain parameters about another point."""
    return known._replace(mean=mean)
