"""Predictions of arms and the seed's measures on them."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from heavy_arms import heavy_arm, measured_rows
from stribeck.identify.arm.motion import States
from stribeck.identify.arm.regressor import machine_of
from stribeck.identify.posterior.arm import ArmDraws
from stribeck.identify.posterior.knowledge import cad_around
from stribeck.identify.posterior.likelihood import InertiaPosterior
from stribeck.identify.posterior.measures import Nominal, measures, nominal_of, torques_of
from stribeck.identify.posterior.network import inertia_base, link_frames, mechanical_of

ARM, ROTORS = heavy_arm(), np.arange(1.0, 7.0)


@pytest.fixture(scope="module")
def draws():
    """Of a CAD prior around the arm's own links."""
    rng = np.random.default_rng(0)
    prior = cad_around(mechanical_of(ARM, ROTORS))
    posterior = InertiaPosterior(prior, link_frames(ARM), measured_rows(ARM, rng, 12))
    with jax.enable_x64():
        return ArmDraws(posterior, posterior.draw(rng, 40)[None])


@pytest.mark.slow
def test_zero_shot_torques_are_those_of_rigid_bodies_and_rotors(draws):
    """Without friction: the regressor's torque and each rotor's inertia times acceleration."""
    rng = np.random.default_rng(1)
    states = States(1.0, *rng.uniform(-1.0, 1.0, (3, 5, 6)))
    machine = machine_of(ARM.joints, ARM, {})
    found = torques_of(draws, machine, SimpleNamespace(states=states), 1e-4)
    standard = draws.standard[0, 3]
    rigid = ARM.regressor(states.position, states.velocity, states.acceleration) @ standard[:60]
    assert found[3] == pytest.approx(rigid + standard[60:] * states.acceleration)


def test_measures_of_a_prior_around_its_own_model(draws):
    """Means of a CAD prior are near its model; measured inertias twice as large are 50 % away."""
    nominal = nominal_of(ARM, ROTORS)
    assert isinstance(nominal, Nominal)
    twice = 2.0 * draws.posterior.regressor @ nominal.standard
    found = measures(draws, inertia_base(ARM), nominal, twice)
    assert found["base_cosine"] > 0.99
    assert found["mechanical_mae"] < 10.0
    assert found["inertia_rmse"] == pytest.approx(50.0, abs=3.0)
    assert measures(draws, inertia_base(ARM), nominal_of(ARM, None), None) == {}
