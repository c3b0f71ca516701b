"""How much friction there is now: recovered where there is motion, bounded always, frozen without."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stribeck.live.learning.adaptation import AdaptationSettings, ScaleFilter

DT = 0.005
SMOOTHING = 0.06
SETTINGS = AdaptationSettings()


def learnt(
    dry: float,
    viscous: float,
    *,
    noise: float = 0.1,
    offset: float = 0.0,
    seconds: float = 20.0,
    unit: float = 1.0,
    joints: int = 1,
) -> ScaleFilter:
    """Joints that swing through ± 3 rad/s, with friction 1 at rest and 0.5 per rad/s, times ``unit`` [N m].

    The errors of their residuals last for the residual's time constant, and are their own.
    """
    rng, one = np.random.default_rng(0), np.ones(joints)
    found = ScaleFilter(unit * one, SETTINGS)
    error, decay = 0.0 * one, np.exp(-DT / SMOOTHING)
    for k in range(round(seconds / DT)):
        speed = 3.0 * np.sin(1.3 * k * DT) * np.sin(0.31 * k * DT)
        coulomb, slope = unit * np.sign(speed) * one, unit * 0.5 * speed * one
        error = decay * error + np.sqrt(1.0 - decay**2) * noise * rng.standard_normal(joints)
        residual = -(dry * coulomb + viscous * slope + unit * offset) + unit * error
        moving = np.full(joints, abs(speed) > 0.2)
        found.update(residual, coulomb, slope, moving, SMOOTHING * one, DT)
    return found


@pytest.mark.parametrize(("dry", "viscous"), [(0.5, 0.5), (1.8, 1.8), (0.5, 1.8), (1.8, 0.5), (1.0, 1.0)])
def test_scales_are_recovered(dry: float, viscous: float) -> None:
    """Friction that fell to a half or rose to 1.8, each part for itself, in noise: at 3 rad/s within 5 %, 5 joints."""
    found = learnt(dry, viscous, joints=5)
    total = found.state[:, 0] + 1.5 * found.state[:, 1]
    np.testing.assert_allclose(total, dry + 1.5 * viscous, rtol=0.05)
    assert np.all(found.deviation < 0.3 * SETTINGS.prior)


def test_without_noise_scales_and_offset_are_found() -> None:
    """Within 0.015, after half a minute."""
    found = learnt(0.5, 1.8, noise=0.0, offset=0.2, seconds=30.0)
    np.testing.assert_allclose(found.state[0], [0.5, 1.8, 0.2], atol=0.015)


def test_the_unit_of_torque_does_not_matter() -> None:
    """A joint of 0.01 N m learns as one of 100 N m."""
    small, large = (learnt(0.6, 1.4, unit=unit, seconds=5.0) for unit in (0.01, 100.0))
    np.testing.assert_allclose(small.state, large.state, rtol=1e-9)
    np.testing.assert_allclose(small.covariance, large.covariance, rtol=1e-9)


def test_one_update_by_hand() -> None:
    """Gain P h/(h P h + R), with h = (1, 0, 1) for a slow motion and errors that last T: R = n² T/dt."""
    found = ScaleFilter(np.ones(1), SETTINGS)
    one = np.ones(1)
    found.update(-1.5 * one, one, 0.0 * one, np.array([True]), SMOOTHING * one, DT)
    prior, drift = 0.25 + 0.05**2 * DT, 0.01 + 0.3**2 * DT
    noise = 0.15**2 * SMOOTHING / DT
    gain = np.array([prior, 0.8 * 0.25, drift]) / (prior + drift + noise)
    np.testing.assert_allclose(found.state[0], np.array([1.0, 1.0, 0.0]) + 0.5 * gain, rtol=1e-12)
    left = (prior + drift) * noise / (prior + drift + noise)
    assert found.deviation[0] == pytest.approx(np.sqrt(left))


def test_without_motion_nothing_changes() -> None:
    """Neither states nor covariance, whatever the residual; a joint that moves learns beside one that does not."""
    found = ScaleFilter(np.ones(2), SETTINGS)
    state, covariance, deviation = found.state.copy(), found.covariance.copy(), found.deviation.copy()
    one = np.ones(2)
    for _ in range(100):
        learning = found.update(-9.0 * one, one, 0.5 * one, np.array([False, True]), SMOOTHING * one, DT)
        np.testing.assert_array_equal(learning, [False, True])
    np.testing.assert_array_equal(found.state[0], state[0])
    np.testing.assert_array_equal(found.covariance[0], covariance[0])
    assert found.deviation[0] == deviation[0]
    assert found.state[1, 0] > 1.5


@pytest.mark.parametrize(("dry", "bound"), [(10.0, 2.2), (-5.0, 0.05)])
def test_scales_end_at_their_bounds(dry: float, bound: float) -> None:
    """Ten times the friction, or friction that drives."""
    assert learnt(dry, dry, seconds=20.0).state[0, 0] == pytest.approx(bound)


def test_an_error_of_the_model_is_learnt_as_an_offset_within_its_own_bound() -> None:
    """Five times the friction at rest beside the friction, with bounds of 0.6 and 2.5; a joint that does not move keeps its offset."""
    found, one = ScaleFilter(np.ones(3), SETTINGS), np.ones(3)
    found.state[2, 2] = 2.0
    limits, moving = np.array([0.6, 2.5, 0.6]), np.array([True, True, False])
    for _ in range(2000):
        found.update(-6.0 * one, one, 0.0 * one, moving, SMOOTHING * one, DT, limits)
    np.testing.assert_allclose(found.state[:, 2], [0.6, 2.5, 2.0], rtol=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(-2.0, 4.0))
def test_states_stay_bounded_and_covariances_covariances(seed: int, magnitude: float) -> None:
    """10⁴ random updates of any size: symmetric, positive semidefinite, finite, states within bounds."""
    rng = np.random.default_rng(seed)
    joints = 50
    found = ScaleFilter(rng.uniform(0.01, 10.0, joints), SETTINGS)
    size = 10.0**magnitude
    for _ in range(200):
        residual, coulomb, viscous = size * rng.standard_normal((3, joints))
        smoothing, dt = rng.uniform(0.02, 0.3, joints), rng.choice([0.0, 0.001, 0.005, 0.05])
        found.update(residual, coulomb, viscous, rng.random(joints) < 0.8, smoothing, dt)
        low, high = SETTINGS.scale_lower, SETTINGS.scale_upper
        assert np.all((found.state[:, :2] >= low) & (found.state[:, :2] <= high))
        assert np.all(np.abs(found.state[:, 2]) <= SETTINGS.offset_limit)
        assert np.isfinite(found.deviation).all()
    scale = np.abs(found.covariance).max(axis=(1, 2))
    asymmetry = np.abs(found.covariance - found.covariance.transpose(0, 2, 1)).max(axis=(1, 2))
    assert np.all(asymmetry <= 1e-9 * scale)
    assert np.all(np.linalg.eigvalsh(found.covariance).min(axis=1) >= -1e-9 * scale)


@settings(deadline=None)
@given(st.floats(0.2, 3.0), st.floats(-1.0, 1.0))
def test_what_is_expected_is_no_innovation(coulomb: float, viscous: float) -> None:
    """The residual of the friction that is estimated; and beyond it, as a share of the friction at rest."""
    found = ScaleFilter(np.array([0.5]), SETTINGS)
    found.state = np.array([[0.7, 1.2, -0.1]])
    dry, slope, offset = found.state[0]
    expected = -(dry * coulomb + slope * viscous + 0.5 * offset)
    arguments = np.array([coulomb]), np.array([viscous])
    assert found.innovation(np.array([expected]), *arguments)[0] == pytest.approx(0.0, abs=1e-12)
    assert found.innovation(np.array([expected - 0.1]), *arguments)[0] == pytest.approx(0.2)
