"""Linear fits of arms whose parameters are known, and motion that tells too little."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import signal

from moving_arms import FRICTION, JOINTS, arm, linear_friction, low_pass, protocol, recording
from stribeck.errors import ConfigError, RecordingError, TooShortError
from stribeck.identify.arm import least_squares
from stribeck.identify.arm.least_squares import fit_linear
from stribeck.identify.arm.motion import motion_of
from stribeck.identify.arm.regressor import friction_law, machine_of, structural_base
from stribeck.identify.arm.residuals import relative_error, scores

RULES = protocol()


@pytest.fixture
def machine(tmp_path):
    return machine_of(JOINTS, arm(tmp_path), {})


def true_values(machine):
    """Base parameters of the arm that moves."""
    base = structural_base(machine, RULES.rest, "symmetric")
    friction = np.array(
        [FRICTION[name] for name in ("Ia", "friction_viscous", "friction_base", "torque_offset")]
    ).T.ravel()
    return base.values(np.concatenate([machine.inertials, friction]))


@pytest.mark.parametrize("weighting", ["ordinary", "weighted", "robust", "generalised"])
def test_exact_torques_give_the_exact_parameters(machine, weighting):
    """Without noise, up to the error of central differences of the acceleration."""
    motion = motion_of(recording(machine.arm), RULES)
    fit = fit_linear(machine, [motion], RULES, weighting)
    assert np.allclose(fit.values, true_values(machine), rtol=2e-3, atol=2e-3)
    assert scores([motion], [fit.predict(motion)])["every_row"]["all"] < 1e-3


def test_filtered_positions_alone_give_them_too(machine):
    """Velocity and acceleration from positions, through filters on both sides."""
    rules = protocol(position_filter=low_pass(40.0), effort_filter=low_pass(40.0), moving=0.3, fit="moving")
    run = replace(recording(machine.arm), velocity=None)
    fit = fit_linear(machine, [motion_of(run, rules)], rules)
    assert np.allclose(fit.values, true_values(machine), rtol=0.03, atol=0.03)


def test_two_runs_are_one_problem(machine):
    """Twice the rows, the standard deviations fall by the root of two."""
    runs = [recording(machine.arm, noise=0.5, seed=seed) for seed in (0, 10)]
    motions = [motion_of(run, RULES) for run in runs]
    one, both = (fit_linear(machine, some, RULES) for some in (motions[:1], motions))
    assert np.median(both.sigma / one.sigma) == pytest.approx(2**-0.5, rel=0.25)


def shared_noise(run, correlation, seed, memory=0.0, size=1.0):
    """A run with noise of a size [N m], correlated between shoulder and elbow, autoregressive with memory."""
    mixing = np.linalg.cholesky(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, correlation], [0.0, correlation, 1.0]]))
    noise = np.random.default_rng(seed).standard_normal(run.effort.shape) @ mixing.T
    noise = signal.lfilter([np.sqrt(1.0 - memory**2)], [1.0, -memory], noise, axis=0)
    return motion_of(replace(run, effort=run.effort + size * noise), RULES)


@pytest.mark.slow
@pytest.mark.parametrize("memory", [0.0, 0.9])
def test_noise_that_joints_share_is_told_apart(machine, memory):
    """Two joints with a correlation of 0.95: over ten recordings the generalised fit is nearer to the truth than the weighted one in nine
    of ten, states the covariance, and Hausman's test rejects it once at most."""
    clean = recording(machine.arm)
    errors, rejected = {"weighted": [], "generalised": []}, 0
    for seed in range(10):
        motion = shared_noise(clean, 0.95, seed, memory)
        fits = {weighting: fit_linear(machine, [motion], RULES, weighting) for weighting in errors}
        whole, plain = fits["generalised"], fits["weighted"]
        for weighting, fit in fits.items():
            errors[weighting].append((fit.values - true_values(machine)) / plain.sigma)
            assert fit.spread[1, 2] == pytest.approx(0.95, abs=0.2 if memory else 0.1)
        rejected += whole.rejected
        assert whole.rejected or np.median(whole.sigma / plain.sigma) < 0.8
    assert rejected <= 1
    sizes = {weighting: np.sqrt(np.mean(np.square(found))) for weighting, found in errors.items()}
    assert sizes["weighted"] == pytest.approx(1.0, abs=0.25)
    assert sizes["generalised"] < 0.85 * sizes["weighted"]


def test_independent_noise_makes_both_fits_alike(machine):
    """Without a correlation, the generalised fit differs from the weighted one by a tenth of the standard deviations, and is not rejected."""
    clean = recording(machine.arm)
    for seed in range(5):
        motion = shared_noise(clean, 0.0, seed)
        plain, whole = (fit_linear(machine, [motion], RULES, w) for w in ("weighted", "generalised"))
        assert not whole.rejected
        assert np.sqrt(np.mean(((whole.values - plain.values) / plain.sigma) ** 2)) < 0.1


@pytest.mark.ci
def test_an_error_of_the_model_is_not_carried_to_other_joints(machine, monkeypatch):
    """The shoulder has friction that depends on the elbow, and noise that is correlated with the elbow's: the whole covariance would
    worsen the prediction of another motion's elbow by a tenth; the test of Hausman keeps the weighted fit."""

    def friction(velocity, acceleration):
        found = linear_friction(velocity, acceleration)
        found[:, 1] += 0.3 * np.sign(velocity[:, 2]) + 0.15 * velocity[:, 2]
        return found

    clean = recording(machine.arm, friction=friction)
    other = motion_of(recording(machine.arm, friction=friction, seed=20), RULES)
    for seed in range(3):
        motion = shared_noise(clean, 0.8, seed, size=0.3)
        plain, kept = (fit_linear(machine, [motion], RULES, w) for w in ("weighted", "generalised"))
        assert kept.rejected
        np.testing.assert_array_equal(kept.values, plain.values)
        with monkeypatch.context() as changes:
            changes.setattr(least_squares, "HAUSMAN_LEVEL", 0.0)
            whole = fit_linear(machine, [motion], RULES, "generalised")
        wrong = [np.linalg.norm((other.torque - fit.predict(other))[:, 2]) for fit in (whole, plain)]
        assert wrong[0] > 1.1 * wrong[1]


def test_outliers_do_not_move_the_robust_fit(machine):
    """One row of a hundred is absurd; least squares follows, the robust fit does not."""
    run = recording(machine.arm, noise=0.05)
    effort = run.effort.copy()
    effort[::500] += 200.0
    motion = motion_of(replace(run, effort=effort), RULES)
    error = {}
    for weighting in ("ordinary", "robust"):
        values = fit_linear(machine, [motion], RULES, weighting).values
        error[weighting] = np.linalg.norm(values - true_values(machine))
    assert error["robust"] < 0.1 * error["ordinary"]


def test_weights_follow_the_noise(machine):
    """A joint that is ten times as noisy loses its say; noise and parameters come out right."""
    run = recording(machine.arm)
    noise = np.array([0.05, 0.5, 0.05])
    effort = run.effort + noise * np.random.default_rng(3).normal(size=run.effort.shape)
    motion = motion_of(replace(run, effort=effort), RULES)
    fits = {w: fit_linear(machine, [motion], RULES, w) for w in ("ordinary", "weighted")}
    assert fits["weighted"].noise == pytest.approx(noise, rel=0.1)
    assert np.median(fits["weighted"].sigma / fits["ordinary"].sigma) < 0.7


def test_asymmetric_friction_is_told_apart(machine):
    """Different friction in each direction, recovered; where both are alike it equals the symmetric fit."""

    def friction(velocity, acceleration):
        return np.where(velocity > 0, 2.0 + 1.0 * velocity, -3.0 + 1.5 * velocity)

    motion = motion_of(recording(machine.arm, friction=friction), RULES)
    named = fit_linear(machine, [motion], RULES, friction="asymmetric").named
    for joint in JOINTS:
        found = [named[f"{name}_{joint}"] for name in friction_law("asymmetric").parameter_names]
        assert found == pytest.approx([2.0, 1.0, 3.0, 1.5], rel=0.05)


def test_a_coupling_acts_on_both_joints(tmp_path):
    """A motor that turns with the sum of two joints is felt at both."""
    machine = machine_of(JOINTS, arm(tmp_path), {"wrist": {"shoulder": 1.0, "elbow": 1.0}})

    def friction(velocity, acceleration):
        turned = velocity[:, 1] + velocity[:, 2]
        return np.outer(0.7 * turned + 1.2 * np.sign(turned), [0.0, 1.0, 1.0])

    named = fit_linear(machine, [motion_of(recording(machine.arm, friction=friction), RULES)], RULES).named
    assert named["friction_viscous_wrist"] == pytest.approx(0.7, rel=0.02)
    assert named["friction_base_wrist"] == pytest.approx(1.2, rel=0.02)


def test_a_joint_that_stands_still_is_named(machine):
    run = recording(machine.arm)
    position, velocity = run.position.copy(), run.velocity.copy()
    position[:, 1], velocity[:, 1] = 0.3, 0.0
    motion = motion_of(replace(run, position=position, velocity=velocity), RULES)
    with pytest.raises(RecordingError, match=r"too little motion: shoulder never moves faster than 0\.05"):
        fit_linear(machine, [motion], RULES)


def test_parameters_that_a_motion_leaves_open_are_named(machine):
    """Two joints that move as one cannot be told apart."""
    run = recording(machine.arm)
    position, velocity = np.repeat(run.position[:, :1], 3, 1), np.repeat(run.velocity[:, :1], 3, 1)
    motion = motion_of(replace(run, position=0 * position + 0.2 * position, velocity=0.2 * velocity), RULES)
    slow = protocol(moving=0.001)
    same = replace(motion, states=replace(motion.states, acceleration=0.0 * motion.states.acceleration))
    with pytest.raises(RecordingError, match=r"too little motion to determine .*Ia_"):
        fit_linear(machine, [same], slow)


def test_rows_and_filters_that_cannot_be(machine):
    run = recording(machine.arm)
    with pytest.raises(ConfigError, match="has 5000 rows, but the protocol asks for rows 0 to 90000"):
        motion_of(run, protocol(rows={"run": (0, 90000)}))
    with pytest.raises(ConfigError, match="half the sampling rate, 250 Hz"):
        motion_of(run, protocol(effort_filter=low_pass(300.0)))
    with pytest.raises(TooShortError, match="no row remains"):
        motion_of(run, protocol(drop=2490))


def test_jitter_needs_a_rate(machine):
    """Irregular samples are refused with what to do, and fitted once resampled."""
    run = recording(machine.arm)
    time = run.time + np.random.default_rng(0).uniform(0, 1e-3, len(run.time))
    with pytest.raises(ConfigError, match="set protocol: resample"):
        motion_of(replace(run, time=time), RULES)
    motion = motion_of(replace(run, time=time), protocol(resample=500.0))
    assert np.ptp(np.diff(motion.time)) < 1e-9


def test_relative_error_by_hand():
    assert relative_error(np.array([3.0, 4.0]), np.array([3.0, 3.0])) == pytest.approx(0.2)


def test_a_delay_shifts_the_states(machine):
    """Fine states come later by the delay; the rows stay."""
    run = recording(machine.arm)
    early, late = motion_of(run, RULES), motion_of(run, RULES, delay=0.02)
    assert np.allclose(late.fine.position[:-5], early.fine.position[2:-3], atol=2e-3)
    assert np.array_equal(late.states.position, early.states.position)
