"""A parameter at its upper bound has an interval if chance explains why it is there, and none if the bound holds it."""

from dataclasses import replace

import numpy as np
import pytest

from recovery import MX106, truth_of
from stribeck.files.actuators import load_actuator
from stribeck.identify.servo.rollout import Rollout
from stribeck.identify.servo.uncertainty import estimate_uncertainty
from stribeck.model.law import law_named
from stribeck.model.parameters import ParameterSet
from stribeck.model.step import batch_for, simulate
from virtual import Encoder, record

NAME = "friction_viscous"


@pytest.mark.slow
@pytest.mark.parametrize(("share", "held"), [(1.0, False), (0.5, True)])
def test_an_upper_bound_at_the_truth_does_not_hold_a_parameter_but_one_below_it_does(share, held):
    """The bound is this share of the true viscous friction; encoders are noisy, all other parameters are the true ones."""
    law, actuator, truth = law_named("m1"), load_actuator(MX106.actuator), truth_of(MX106, "m1")
    bench = replace(MX106, masses=(0.5,), gains=(8.0, 32.0))
    rng = np.random.default_rng(3)
    logs = record(actuator, law, truth.values(), list(bench.plays()), Encoder(1e-3), rng)
    bound = share * truth[NAME].value
    bounded = ParameterSet(
        [replace(one, value=bound, upper=bound) if one.name == NAME else one for one in truth]
    )
    batch = batch_for(logs, 0.005, "exponential")
    rollout = Rollout(batch, actuator, law, bounded, dtype="float64")
    residual = simulate(batch, actuator, law, bounded.values()).position - batch.position
    found = estimate_uncertainty(rollout, bounded.to_unit(bounded.vector()), residual).estimates[NAME]
    if held:
        assert (found.status, found.side, found.interval) == ("at bound", "upper", None)
    else:
        assert found.known
        assert found.side is None
        assert found.interval[0] < bound < found.interval[1]
