"""The prior that goes with the current limit: what it says, its derivatives, and that it is off without."""

import numpy as np
import pytest

from stribeck.files.actuators import load_actuator
from stribeck.identify.common.minimise import NormalEquations
from stribeck.identify.servo.prior import DIRECTION_SPREAD, WithPrior, prior_for
from stribeck.model.law import law_named


def xl330(effects=("current-limit",), law="m6"):
    actuator = load_actuator("xl330").with_effects(effects)
    return actuator, actuator.parameters(law_named(law))


class Parabola:
    """A loss with known derivatives in place of a rollout."""

    def __init__(self, dimension):
        self.dimension = dimension

    def losses(self, unit):
        return 1.0 + np.sum((np.asarray(unit) - 0.4) ** 2, axis=1)

    def normal_equations(self, unit):
        points = np.asarray(unit)
        hessian = np.broadcast_to(2.0 * np.eye(self.dimension), (len(points), self.dimension, self.dimension))
        return NormalEquations(self.losses(points), 2.0 * (points - 0.4), hessian)


def test_without_the_current_limit_there_is_no_prior():
    """The paper's law is fitted to the data alone."""
    for effects in ((), ("supply",), ("delay",)):
        actuator, parameters = xl330(effects)
        assert prior_for(actuator, parameters, 12) is None


def test_the_exponent_at_a_hand_computed_point():
    """The motor constant one deviation off, one direction two deviations apart: (1 + 4)/2 over 3 samples a run."""
    actuator, parameters = xl330()
    prior = prior_for(actuator, parameters, runs=3)
    values = {
        "kt": 0.35 + 0.035,
        "load_friction_motor": 0.3,
        "load_friction_external": 0.3 - 2.0 * DIRECTION_SPREAD,
        "load_friction_motor_stribeck": 0.2,
        "load_friction_external_stribeck": 0.2,
    }
    unit = parameters.to_unit(parameters.with_values(values).vector())
    assert prior.exponent(unit[None])[0] == pytest.approx(0.5 * 5.0 / 9.0)


def test_a_fixed_parameter_has_no_prior():
    """--set takes a parameter out, and a contrast of which one part is fixed."""
    actuator, parameters = xl330()
    fixed = parameters.fixed({"kt": 0.4, "load_friction_motor": 0.2})
    assert len(prior_for(actuator, fixed, 3).rows) == 1
    assert prior_for(actuator, parameters.fixed(parameters.values()).freed(["alpha"]), 3) is None


def test_laws_without_directions_keep_the_motor_constant():
    """M4 has no directional terms."""
    actuator, parameters = xl330(law="m4")
    assert len(prior_for(actuator, parameters, 3).rows) == 1


def test_derivatives_are_those_of_finite_differences():
    """Gradient of the weighed loss, by central differences."""
    actuator, parameters = xl330()
    dimension = len(parameters.free)
    problem = WithPrior(Parabola(dimension), prior_for(actuator, parameters, 3))
    points = np.random.default_rng(0).random((2, dimension))
    step = 1e-6
    equations = problem.normal_equations(points)
    np.testing.assert_allclose(equations.loss, problem.losses(points))
    for k in range(dimension):
        nudge = step * np.eye(dimension)[k]
        difference = (problem.losses(points + nudge) - problem.losses(points - nudge)) / (2 * step)
        np.testing.assert_allclose(equations.gradient[:, k], difference, rtol=1e-5, atol=1e-8)
