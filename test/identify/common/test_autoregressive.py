"""Standard deviations hold what they promise, whatever the noise: white, filtered, correlated."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import linalg, signal

from experiment import NEIGHBOURHOOD, PROTOCOL, true_parameters, wrong_arm
from intervals import assert_covered, hits_of
from simulation import SensorNoise, SimulatedArm, autoregressive, simulate_tracking
from stribeck.identify.arm.config import FilterSettings
from stribeck.identify.arm.consistent import fit_consistent, fit_log_cholesky
from stribeck.identify.arm.friction.element_torque import parameter_names
from stribeck.identify.arm.friction.full_fit import fit_full
from stribeck.identify.arm.friction.selection import FrictionSelection, ModelChoice
from stribeck.identify.arm.least_squares import fit_linear, fit_rows
from stribeck.identify.arm.motion import motion_of
from stribeck.identify.arm.regressor import design, machine_of, structural_base
from stribeck.identify.common.autoregressive import (
    FLOOR,
    autoregressive_covariance,
    covariance,
    covariance_of,
    standard_deviations,
)
from stribeck.model.law import LAWS
from tracking_arms import PERIOD, coulomb_viscous, fourier_motion, panda, three_joint_arm

REPETITIONS = 100
FEWER = 40
"""For the fast test."""
MORE = 300
"""Where 100 repetitions of nine parameters leave a pooled coverage uncertain by 1 %."""

CORRELATED = 0.98
"""From one sample to the next, 1 ms later; 0.82 from row to row."""

FILTERED = replace(PROTOCOL, effort_filter=FilterSettings(4, 30.0, None))
NOISES = {"white": (PROTOCOL, 0.0), "filtered": (FILTERED, 0.0), "correlated": (PROTOCOL, CORRELATED)}


class Repeated:
    """One motion of an arm with friction, measured again and again.

    :param size: noise of the torques, as a share of the effort limits.
    """

    def __init__(self, arm, kind, size=0.01):
        self.protocol, correlation = NOISES[kind]
        self.plant = SimulatedArm(arm, 0.002 * arm.effort_limits, **coulomb_viscous(arm))
        self.run = simulate_tracking(self.plant, fourier_motion(arm, 0), PERIOD)
        self.noise = SensorNoise(torque=size * arm.effort_limits, correlation=correlation)
        self.machine = machine_of(arm.joints, arm, {})
        self.base = structural_base(self.machine, PROTOCOL.rest, "symmetric")
        self.truth = self.base.values(true_parameters(self.plant))

    def motion(self, seed):
        """The motion with noise of its own."""
        return motion_of(self.run.measured("simulated", self.noise, seed), self.protocol)


def plain_estimates(repeated, repetitions):
    """Ordinary least squares with one regressor for all: errors and standard deviations, (repetitions, b)."""
    first = repeated.motion(0)
    used = fit_rows(first, repeated.protocol)
    columns = repeated.base.reduce(design(repeated.machine, first.states, PROTOCOL.rest).columns)
    columns = np.where(used[:, :, None], columns, 0.0)
    solve = linalg.pinv(columns[used])
    errors, sigma = [], []
    for seed in range(repetitions):
        torque = repeated.motion(seed).torque
        values = solve @ torque[used]
        residual = np.where(used, torque - columns @ values, 0.0)
        noise = np.full(len(used.T), np.sqrt(np.mean(residual[used] ** 2)))
        errors.append(values - repeated.truth)
        sigma.append(standard_deviations(covariance([columns], [residual], noise)))
    return errors, sigma


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(NOISES))
def test_intervals_of_least_squares_hold(tmp_path, kind):
    """Three joints: 93-97 % of the 95 % intervals hold the truth, no parameter's significantly fewer."""
    errors, sigma = plain_estimates(Repeated(three_joint_arm(tmp_path), kind), FEWER)
    assert_covered(hits_of(errors, sigma))


def test_estimates_are_linear_functions_of_the_noise():
    """The covariance of the functions that give the estimates is that of the estimates, of two runs whose noise is correlated in time."""
    rng = np.random.default_rng(0)
    jacobians = [rng.standard_normal((size, 2, 3)) for size in (300, 200)]
    residuals = [
        signal.lfilter([1.0], [1.0, -0.8], rng.standard_normal((size, 2)), axis=0) for size in (300, 200)
    ]
    inverse = linalg.inv(sum(np.einsum("tjp,tjq->pq", one, one) for one in jacobians))
    functions = [one @ inverse for one in jacobians]
    expected = covariance(jacobians, residuals, np.ones(2))
    np.testing.assert_allclose(covariance_of(functions, jacobians, residuals), expected, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("weighting", ["ordinary", "weighted"])
@pytest.mark.parametrize("kind", list(NOISES))
def test_intervals_of_a_panda_hold(kind, weighting):
    """Seven joints, 69 base parameters, by fit_linear."""
    repeated = Repeated(panda(), kind)
    fits = [
        fit_linear(repeated.machine, [repeated.motion(seed)], repeated.protocol, weighting)
        for seed in range(REPETITIONS)
    ]
    assert_covered(hits_of([fit.values - repeated.truth for fit in fits], [fit.sigma for fit in fits]))


@pytest.mark.slow
@pytest.mark.parametrize("fit", [fit_consistent, fit_log_cholesky])
@pytest.mark.parametrize("kind", list(NOISES))
def test_intervals_of_consistent_fits_hold(tmp_path, kind, fit):
    """From two wrong links; what is known before the data makes estimates better than promised, never worse."""
    arm = three_joint_arm(tmp_path)
    repeated = Repeated(arm, kind)
    machine = machine_of(arm.joints, wrong_arm(arm, 0, links=2), {})
    noise = 0.01 * arm.effort_limits
    errors, sigma = [], []
    for seed in range(REPETITIONS):
        found = fit(machine, [repeated.motion(seed)], repeated.protocol, NEIGHBOURHOOD, noise)
        values, spread = found.base(repeated.base)
        errors.append(values - repeated.truth)
        sigma.append(spread)
    assert_covered(hits_of(errors, sigma), highest=0.99)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "correlated"), [("white", 1.0), ("filtered", 2.0), ("correlated", 10.0)])
def test_intervals_of_the_full_model_hold(tmp_path, kind, correlated):
    """Coulomb and viscous friction and offsets of three joints, by the full fit from wrong links.

    Not the rotors: only knowledge about the links tells their inertia from the links', and that is wrong here.
    """
    arm = three_joint_arm(tmp_path)
    repeated = Repeated(arm, kind, size=0.003)
    machine = machine_of(arm.joints, wrong_arm(arm, 0, links=2, by=0.2), {})
    choice = ModelChoice(LAWS["m1"].with_terms(offset=True), correlated=correlated)
    friction = 0.02 * arm.effort_limits
    names = parameter_names(choice.law)
    assert names == ("armature", "friction_base", "friction_viscous", "torque_offset")
    truth = np.column_stack([friction, friction, 0.0 * friction])
    errors, sigma = [], []
    for seed in range(MORE):
        motions = [repeated.motion(seed)]
        selection = FrictionSelection(
            machine,
            lambda _, m=motions: m,
            repeated.protocol,
            machine.inertials,
            np.zeros(3),
            repeated.noise.torque,
        )
        terms = selection.solution(choice)[1]
        found = fit_full(machine, motions, choice, PROTOCOL.rest, repeated.noise.torque, terms)
        errors.append((np.array(found.parameters)[:, 1:] - truth).ravel())
        sigma.append(np.array(found.sigma)[:, 1:].ravel())
    assert_covered(hits_of(errors, sigma))


def test_few_rows_for_many_parameters(tmp_path):
    """A fit takes up noise: with a quarter as many parameters as rows intervals still hold."""
    rng = np.random.default_rng(0)
    rows = np.cumsum(rng.normal(size=(120, 1, 30)), axis=0)  # slow, as motion is
    solve = linalg.pinv(rows[:, 0])
    errors, sigma = [], []
    for _ in range(300):
        noise = autoregressive(rng, (120, 1), 0.3)
        errors.append(solve @ noise[:, 0])
        residual = noise - (rows[:, 0] @ errors[-1])[:, None]
        sigma.append(standard_deviations(covariance([rows], [residual], np.ones(1))))
    assert 0.90 <= np.mean(hits_of(errors, sigma)) <= 0.97


def test_white_noise_gives_the_textbook_covariance():
    """σ² (JᵀJ)⁻¹, with the rows' own weights; over two runs as over one."""
    rng = np.random.default_rng(1)
    rows, sigma = rng.normal(size=(4000, 2, 6)), np.array([0.5, 3.0])
    weighed = (rows / sigma[:, None]).reshape(-1, 6)
    noise = sigma * rng.normal(size=(4000, 2))
    values = linalg.lstsq(weighed, (noise / sigma).ravel())[0]
    residual = noise - rows @ values
    expected = standard_deviations(np.linalg.inv(weighed.T @ weighed))
    one = standard_deviations(covariance([rows], [residual], sigma))
    two = standard_deviations(
        covariance([rows[:1500], rows[1500:]], [residual[:1500], residual[1500:]], sigma)
    )
    np.testing.assert_allclose(one, expected, rtol=0.1)
    np.testing.assert_allclose(two, expected, rtol=0.1)


def test_prior_knowledge_alone_is_its_own_covariance():
    """Directions without data have the variance of the prior, whatever weight the fit gave it."""
    rng = np.random.default_rng(2)
    rows = np.zeros((500, 1, 3))
    rows[:, 0, :2] = rng.normal(size=(500, 2))
    residual = 0.1 * rng.normal(size=(500, 1))
    prior = np.diag([1.0, 1.0, 4.0])
    for weight in (1.0, 10.0):
        found = standard_deviations(covariance([rows], [residual], np.array([0.1]), prior, weight))
        assert found[2] == pytest.approx(0.5)
        np.testing.assert_allclose(found[:2], 0.1 / np.sqrt(500), rtol=0.2)


def test_an_autoregressive_model_goes_on_as_the_process_does():
    """From the exact autocovariance of a second-order process: the rest of it, but for the floor."""
    power = np.zeros(400)
    power[0] = 1.0
    impulse = signal.lfilter([1.0], [1.0, -1.2, 0.5], power)
    exact = np.correlate(impulse, impulse, "full")[len(impulse) - 1 :][:60]
    found = autoregressive_covariance(exact[:20], 10**6, 60)
    np.testing.assert_allclose(found, exact + FLOOR * exact[0] * (np.arange(60) == 0), atol=0.05 * exact[0])
    np.testing.assert_allclose(found[1:20], exact[1:20], atol=0.05 * exact[0])


def test_white_noise_has_no_lags():
    """Order zero for what is within the noise of an estimate; nothing from nothing; impossible lags are not asked."""
    found = autoregressive_covariance(np.array([1.0, 0.02, -0.01, 0.02]), 1000, 10)
    np.testing.assert_array_equal(found[1:], 0.0)
    np.testing.assert_array_equal(autoregressive_covariance(np.zeros(4), 1000, 5), 0.0)
    assert np.all(np.isfinite(autoregressive_covariance(np.array([1.0, 1.5, -3.0]), 1000, 10)))
