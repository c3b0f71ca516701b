"""The simulated experiment: wrong links come right, on the motion that was fitted and on another one."""

from dataclasses import replace

import numpy as np
import pytest

from experiment import (
    NEIGHBOURHOOD,
    PROTOCOL,
    differing,
    run_experiment,
    true_parameters,
    wrong_arm,
)
from simulation import SensorNoise, SimulatedArm, simulate_tracking
from stribeck.errors import ConfigError
from stribeck.identify.arm.config import FilterSettings
from stribeck.identify.arm.consistent import fit_consistent, fit_log_cholesky
from stribeck.identify.arm.friction.full_fit import fit_full
from stribeck.identify.arm.friction.selection import FrictionSelection, ModelChoice
from stribeck.identify.arm.inertia import about_com, consistency
from stribeck.identify.arm.least_squares import fit_linear
from stribeck.identify.arm.motion import motion_of
from stribeck.identify.arm.regressor import machine_of, structural_base
from stribeck.model.law import LAWS
from tracking_arms import PERIOD, coulomb_viscous, fourier_motion, panda, three_joint_arm


def panda_experiment(seed, friction=True):
    """Noise of 1 % of the effort limits, four links wrong by 30 %."""
    arm = panda()
    rubbing = coulomb_viscous(arm) if friction else {}
    plant = SimulatedArm(arm, 0.002 * arm.effort_limits if friction else None, **rubbing)
    noise = SensorNoise(torque=0.01 * arm.effort_limits)
    motions = fourier_motion(arm, seed), fourier_motion(arm, 100 + seed)
    return run_experiment(plant, *motions, PERIOD, noise, seed)


def assert_at_the_floor(found):
    """Both costs fall to the noise, the validation cost to within 10 % of it."""
    assert found.training.floor == pytest.approx(7.0)
    assert found.training.result < 1.02 * found.training.floor
    assert found.training.result < 0.7 * found.training.wrong
    assert found.validation.result < 0.8 * found.validation.wrong
    assert abs(found.validation.excess) < 0.10
    assert found.training.iterations[-1] == pytest.approx(found.training.result, rel=1e-3)
    assert np.all(consistency(found.fit.inertials) > 0.0)


@pytest.mark.slow
def test_a_panda_comes_right():
    """Four links wrong by 30 %: the validation cost within 10 % of the noise floor, and parameters right."""
    found = panda_experiment(0)
    assert_at_the_floor(found)
    assert len(found.wrong) == 4
    estimates = found.estimates
    before, after = (
        np.abs(values - estimates.truth) / estimates.sigma for values in (estimates.start, estimates.values)
    )
    assert np.sqrt(np.mean(after**2)) < 1.3 < 5.0 < np.sqrt(np.mean(before**2))
    assert len(estimates.expressions) == len(estimates.truth) == 69


@pytest.mark.slow
@pytest.mark.parametrize("friction", [True, False])
@pytest.mark.parametrize("seed", range(1, 8))
def test_any_panda_comes_right(seed, friction):
    """Other motions, noise and wrong links; with and without friction."""
    assert_at_the_floor(panda_experiment(seed, friction))


def recorded(arm, law, friction, *, noise=0.003, seed=0, filtered=False):
    """A motion of an arm as the protocol makes it, and the protocol."""
    plant = SimulatedArm(arm, 0.003 * arm.effort_limits, law, friction)
    run = simulate_tracking(plant, fourier_motion(arm, seed), PERIOD)
    protocol = replace(PROTOCOL, effort_filter=FilterSettings(4, 30.0, None) if filtered else None)
    measured = run.measured("simulated", SensorNoise(torque=noise * arm.effort_limits), seed)
    return plant, motion_of(measured, protocol), protocol


def fit_whole(arm, motion, protocol, choice):
    """Weighted least squares, and the full fit that begins with the selection's terms."""
    machine = machine_of(arm.joints, arm, {})
    linear = fit_linear(machine, [motion], protocol, "weighted")
    selection = FrictionSelection(
        machine, lambda _: [motion], protocol, machine.inertials, np.zeros(len(arm)), linear.noise
    )
    terms = selection.solution(choice)[1]
    return linear, fit_full(machine, [motion], choice, protocol.rest, linear.noise, terms)


def errors_of(arm, full, friction):
    """Errors of all friction parameters over their standard deviations."""
    found = []
    for k, joint in enumerate(arm.joints):
        values = full.values(joint)
        sigma = dict(zip(values, full.sigma[k], strict=True))
        found += [
            (values[name] - np.broadcast_to(true, len(arm))[k]) / sigma[name]
            for name, true in friction.items()
        ]
    return np.array(found)


@pytest.mark.slow
def test_both_consistent_fits_agree(tmp_path):
    """IPOPT and log-Cholesky coordinates, the truth well inside: one cost, and base parameters within a sigma."""
    arm = three_joint_arm(tmp_path)
    friction = coulomb_viscous(arm)
    plant, motion, protocol = recorded(arm, **friction, noise=0.01)
    machine = machine_of(arm.joints, wrong_arm(arm, 1, links=2), {})
    base = structural_base(machine, protocol.rest, "symmetric")
    fits = [
        fit(machine, [motion], protocol, NEIGHBOURHOOD, 0.01 * arm.effort_limits)
        for fit in (fit_consistent, fit_log_cholesky)
    ]
    costs = [
        np.sum(((motion.torque - fit.predict(motion)) / fits[0].noise)[motion.moving] ** 2) for fit in fits
    ]
    assert costs[1] == pytest.approx(costs[0], rel=0.01)
    (first, sigma), (second, _) = (fit.base(base) for fit in fits)
    assert np.sqrt(np.mean(((second - first) / sigma) ** 2)) < 0.5
    assert np.sqrt(np.mean(((first - base.values(true_parameters(plant))) / sigma) ** 2)) < 1.5
    for fit in fits:
        assert np.all(consistency(fit.inertials) > 0.0)
        assert np.all(fit.values[[not name.startswith("torque_offset") for name in fit.names]] >= -1e-9)


@pytest.mark.ci
@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("filtered", [False, True])
def test_the_full_model_finds_coulomb_and_viscous_friction(tmp_path, filtered):
    """Law M1: within intervals, four in five within 95 % ones; inertias consistent."""
    arm = three_joint_arm(tmp_path)
    given = coulomb_viscous(arm)
    _, motion, protocol = recorded(arm, **given, filtered=filtered, seed=1)
    choice = ModelChoice(LAWS["m1"].with_terms(offset=True))
    full = fit_whole(arm, motion, protocol, choice)[1]
    errors = errors_of(arm, full, {**given["friction"], "torque_offset": 0.0})
    assert np.abs(errors).max() < 3.5
    assert np.mean(np.abs(errors) < 1.96) >= 0.75
    assert np.all(consistency(full.inertials) > 0.0)


@pytest.mark.slow
def test_the_full_model_finds_load_dependent_friction(tmp_path):
    """Law M4, with friction that fades and friction that grows with the load: within intervals."""
    arm = three_joint_arm(tmp_path)
    size = 0.02 * arm.effort_limits
    friction = {
        "friction_base": size,
        "friction_viscous": size,
        "friction_stribeck": 1.5 * size,
        "load_friction_base": np.array([0.05, 0.06, 0.08]),
        "load_friction_stribeck": np.array([0.02, 0.03, 0.02]),
        "dtheta_stribeck": np.array([0.3, 0.2, 0.3]),
        "alpha": 1.0,
    }
    _, motion, protocol = recorded(arm, LAWS["m4"], friction, seed=1)
    full = fit_whole(arm, motion, protocol, ModelChoice(LAWS["m4"], stribeck=0.1))[1]
    errors = errors_of(arm, full, friction)
    assert np.abs(errors).max() < 3.5
    assert np.mean(np.abs(errors) < 1.96) >= 0.8
    loads = [full.values(joint)["load_friction_base"] for joint in arm.joints]
    np.testing.assert_allclose(loads, friction["load_friction_base"], rtol=0.15)


@pytest.mark.ci
def test_without_prior_the_full_model_is_weighted_least_squares(tmp_path):
    """Law M1 and next to no prior knowledge: the same predictions and the same noise."""
    arm = three_joint_arm(tmp_path)
    _, motion, protocol = recorded(arm, **coulomb_viscous(arm))
    choice = ModelChoice(LAWS["m1"].with_terms(offset=True), prior=1e4, correlated=1e-9)
    linear, full = fit_whole(arm, motion, protocol, choice)
    difference = (full.predict(motion) - linear.predict(motion))[motion.moving]
    assert np.sqrt(np.mean(difference**2)) < 1e-4 * np.sqrt(np.mean(motion.torque**2))
    np.testing.assert_allclose(full.noise, linear.noise, rtol=2e-3)


@pytest.mark.slow
def test_watching_does_not_change_the_fit(tmp_path):
    """The iterates lead from the start to what comes out."""
    arm = three_joint_arm(tmp_path)
    _, motion, protocol = recorded(arm, **coulomb_viscous(arm))
    start = wrong_arm(arm, 0, links=2)
    machine, noise = machine_of(arm.joints, start, {}), 0.003 * arm.effort_limits
    seen = []
    watched = fit_consistent(
        machine, [motion], protocol, NEIGHBOURHOOD, noise, lambda i, parameters: seen.append((i, parameters))
    )
    alone = fit_consistent(machine, [motion], protocol, NEIGHBOURHOOD, noise)
    np.testing.assert_array_equal(watched.parameters, alone.parameters)
    np.testing.assert_allclose(seen[-1][1], watched.parameters, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(seen[0][1][: start.inertials.size], start.inertials, rtol=0.05, atol=0.01)
    assert [i for i, _ in seen].count(0) == 3


def test_wrong_links_are_possible_ones_and_repeat():
    """So many links, each off by the share in mass, lever and inertia; the same seed the same ones."""
    arm = panda()
    wrong, again, other = wrong_arm(arm, 4), wrong_arm(arm, 4), wrong_arm(arm, 5)
    np.testing.assert_array_equal(wrong.inertials, again.inertials)
    joints = differing(wrong, arm)
    assert len(joints) == 4
    assert joints != differing(other, arm)
    for k, joint in enumerate(arm.joints):
        true, found = (about_com(a.inertials.reshape(-1, 10)[k]) for a in (arm, wrong))
        ratios = [np.linalg.norm(f) / np.linalg.norm(t) for f, t in zip(found, true, strict=True)]
        if joint in joints:
            np.testing.assert_allclose(np.abs(np.array(ratios) - 1.0), 0.3, rtol=1e-6)
        else:
            np.testing.assert_allclose(ratios, 1.0, rtol=1e-9)
    assert np.all(consistency(wrong.inertials.reshape(-1, 10)) > 0.0)


def test_what_makes_no_sense_is_refused(tmp_path):
    """More wrong links than there are; true parameters of friction that is not linear in any."""
    arm = three_joint_arm(tmp_path)
    with pytest.raises(ConfigError, match="the arm has 3"):
        wrong_arm(arm, 0)
    with pytest.raises(ConfigError, match="between 0 and 1"):
        wrong_arm(arm, 0, links=2, by=1.0)
    values = {"friction_base": 0.1, "load_friction_base": 0.1, "friction_viscous": 0.1}
    with pytest.raises(ConfigError, match="law m3"):
        true_parameters(SimulatedArm(arm, None, LAWS["m3"], values))
