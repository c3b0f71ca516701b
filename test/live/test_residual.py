"""The torque that a model lacks is the filtered external torque, whatever the inertia does."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stribeck.live.learning.residual import Delayed, LowPass, MomentumResidual

T = np.array([0.03, 0.05])


class TwoLinks:
    """A planar arm of two links, in closed form."""

    def __init__(self) -> None:
        self.calls = 0

    def mass_matrix_and_bias(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """M with a coupling that turns from 0.7 to -0.1 with the elbow; Coriolis and gravity torques."""
        self.calls += 1
        c, s = math.cos(q[1]), math.sin(q[1])
        mass = np.array([[1.5 + 0.8 * c, 0.3 + 0.4 * c], [0.3 + 0.4 * c, 0.3]])
        h = 0.4 * s
        bias = np.array([-h * (2.0 * v[0] * v[1] + v[1] ** 2), h * v[0] ** 2])
        gravity = np.array([6.0 * math.cos(q[0]) + 2.0 * math.cos(q[0] + q[1]), 2.0 * math.cos(q[0] + q[1])])
        return mass, bias + gravity


class Constant:
    """A constant inertia, with or without coupling."""

    def __init__(self, mass: np.ndarray) -> None:
        self.mass = mass

    def mass_matrix_and_bias(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """No bias."""
        return self.mass, np.zeros(2)


def motion(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position, velocity and acceleration of both joints."""
    rate, size = np.array([3.0, 5.0]), np.array([0.8, 1.2])
    return size * np.sin(rate * t), size * rate * np.cos(rate * t), -size * rate**2 * np.sin(rate * t)


def external(t: float) -> np.ndarray:
    """A contact on one joint, friction on the other."""
    return np.array([-1.5 if 0.4 < t < 0.8 else 0.0, -0.4 * math.tanh(50.0 * motion(t)[1][1])])


def arm(dt: float, period: float) -> tuple[np.ndarray, float, TwoLinks]:
    """Errors of the residual against an exact filter of the external torque, and the largest torque of the motors."""
    model, exact = TwoLinks(), np.zeros(2)
    residual = MomentumResidual(model, T, period)
    truth = TwoLinks()
    errors, largest = [], 0.0
    for k in range(round(1.0 / dt)):
        t = k * dt
        q, v, a = motion(t)
        mass, bias = truth.mass_matrix_and_bias(q, v)
        torque = mass @ a + bias - external(t)
        largest = max(largest, float(np.abs(torque).max()))
        found = residual.update(q, v, torque, dt if k else 0.0)
        fine = 5
        for i in range(fine if k else 0):  # dr/dt = (τ_x - r)/T
            exact = exact + -np.expm1(-dt / fine / T) * (external(t - dt + (i + 0.5) * dt / fine) - exact)
        errors.append(np.abs(found - exact).max())
    return np.array(errors[10:]), largest, model


def test_the_residual_is_the_filtered_external_torque() -> None:
    """At 1 kHz within 0.3 % of the torques of inertia, Coriolis and gravity, and 5 % of the contact of 1.5 N m."""
    errors, largest, _ = arm(1e-3, 0.0)
    assert errors.max() < 0.003 * largest
    assert errors.max() < 0.05 * 1.5


def test_the_error_goes_with_the_step() -> None:
    """First order: a quarter of the step, about a quarter of the error."""
    coarse, fine = (arm(dt, 0.0)[0].max() for dt in (4e-3, 1e-3))
    assert fine < 0.3 * coarse


def test_the_model_is_held_between_its_evaluations() -> None:
    """Every 5 ms at 1 kHz: a fifth of the work, and an error within 1.5 % of the torques all the same."""
    errors, largest, model = arm(1e-3, 0.005)
    assert model.calls == pytest.approx(1000 / 5, abs=2)
    assert errors.max() < 0.015 * largest


@settings(deadline=None)
@given(
    st.lists(st.tuples(*[st.floats(-5.0, 5.0)] * 4), min_size=1, max_size=40),
    st.floats(0.001, 0.02),
    st.sampled_from([np.array([0.5, 2.0]), np.array([[1.0, 0.4], [0.4, 0.5]])]),
)
def test_with_a_constant_inertia_it_is_exact_at_any_step(
    rows: list[tuple[float, ...]], dt: float, mass: np.ndarray
) -> None:
    """r = the discrete filter of the external torque, to rounding; M as a matrix or as its diagonal."""
    full = np.diag(mass) if mass.ndim == 1 else mass
    residual, low_pass = MomentumResidual(Constant(mass), T), LowPass((2,), T)
    v = np.array([0.3, -0.2])
    residual.update(np.zeros(2), v, np.zeros(2), 0.0)
    for row in rows:
        torque, outside = np.array(row[:2]), np.array(row[2:])
        v = v + np.linalg.solve(full, torque + outside) * dt
        found = residual.update(np.zeros(2), v, torque, dt)
        wanted = low_pass.update(outside, residual.share)
        np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_a_joint_at_rest_under_gravity_lacks_what_holds_it() -> None:
    """r → h - τ with T, by hand."""
    residual = MomentumResidual(TwoLinks(), T)
    q, none = np.array([0.0, math.pi / 2]), np.zeros(2)
    residual.update(q, none, none, 0.0)
    for _ in range(10):
        found = residual.update(q, none, np.array([1.0, 0.0]), 0.005)
    np.testing.assert_allclose(found, np.array([5.0, 0.0]) * -np.expm1(-0.05 / T), atol=1e-12)


def test_a_restart_forgets() -> None:
    """The momentum of before is no torque."""
    residual = MomentumResidual(Constant(np.ones(2)), T)
    residual.update(np.zeros(2), np.ones(2), np.ones(2), 0.005)
    residual.restart()
    np.testing.assert_array_equal(residual.update(np.zeros(2), 9.0 * np.ones(2), np.zeros(2), 0.0), 0.0)


def test_a_low_pass_is_that_of_its_step_response() -> None:
    """1 - exp(-t/T)."""
    low_pass = LowPass((2,), T)
    for _ in range(7):
        found = low_pass.update(np.ones(2), -np.expm1(-0.005 / T))
    np.testing.assert_allclose(found, -np.expm1(-0.035 / T))


# -- delays


def test_torques_act_when_the_delay_is_over() -> None:
    """Before the first is, the first; then the last that was sent so long ago."""
    delayed = Delayed(0.010)
    assert delayed.at(0.0) is None
    for k in range(5):
        delayed.add(0.005 * k, np.array([float(k)]))
    found = [delayed.at(t) for t in (0.0, 0.010, 0.0149, 0.015, 0.0201, 1.0)]
    assert [int(value[0]) for value in found if value is not None] == [0, 0, 0, 1, 2, 4]
    delayed.clear()
    assert delayed.at(1.0) is None


@settings(deadline=None)
@given(st.integers(0, 10), st.integers(1, 60))
def test_a_delay_of_whole_periods_shifts_by_them(periods: int, count: int) -> None:
    """In spite of rounding: never by one more or less."""
    delayed = Delayed(0.004 * periods)
    for k in range(count):
        delayed.add(0.004 * k, np.array([float(k)]))
        found = delayed.at(0.004 * k)
        assert found is not None
        assert found[0] == max(k - periods, 0)


@pytest.mark.parametrize("delay", [0, 3])
def test_aligned_torques_leave_no_residual(delay: int) -> None:
    """A motor that acts three periods after it is told: with the delay told, nothing is lacking; without, much is."""
    dt, v = 0.005, np.zeros(2)
    apart = {known: (Delayed(known * dt), MomentumResidual(Constant(np.ones(2)), T)) for known in (0, delay)}
    sent = [np.zeros(2)] * delay
    worst = dict.fromkeys(apart, 0.0)
    for k in range(200):
        torque = np.array([math.sin(40.0 * k * dt), math.cos(25.0 * k * dt) - 1.0])
        sent.append(torque)
        if k:
            v = v + sent[k] * dt
        for known, (delayed, residual) in apart.items():
            delayed.add(k * dt, torque)
            acting = delayed.at(k * dt)
            assert acting is not None
            found = residual.update(np.zeros(2), v, acting, dt if k else 0.0)
            worst[known] = max(worst[known], float(np.abs(found).max()))
    assert worst[delay] < 1e-9
    assert delay == 0 or worst[0] > 0.3
