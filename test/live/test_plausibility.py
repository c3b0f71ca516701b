"""Whether measured states belong to one motion."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stribeck.live.states.plausibility import FROZEN_TIME, LARGEST_MISFIT, Plausibility

DT = 0.005
STEP = 0.0015


def watch(names: tuple[str, ...] = ("a",), step: float = STEP) -> Plausibility:
    n = len(names)
    return Plausibility(names, np.full(n, step), np.full(n, 0.3))


def test_a_jump_by_hand() -> None:
    """Misfit against the mean velocity beyond 0.05 rad, 8 steps and what the velocity makes in the time."""
    found = watch()
    found.frozen(np.zeros(1), np.array([1.0]), 0.0)
    allowed = LARGEST_MISFIT + 8.0 * STEP + 1.0 * DT + 1.0 * DT  # the mean velocity's way, and as much again
    for at, jumps in ((allowed - 1e-6, False), (allowed + 1e-6, True), (-0.2, True), (math.pi, True)):
        said = found.jump(np.array([at]), np.array([1.0]), DT)
        assert (said is not None) == jumps, at
    assert said == "a jumps by 3.14 rad in 5 ms"


def test_the_joint_that_jumps_most_is_named() -> None:
    """Of several."""
    found = watch(("a", "b", "c"))
    found.frozen(np.zeros(3), np.zeros(3), 0.0)
    said = found.jump(np.array([0.0, 0.5, 0.2]), np.zeros(3), DT)
    assert said is not None
    assert said.startswith("b jumps by 0.5 rad")


def test_nothing_can_be_said_of_the_first_state() -> None:
    """Nor of the first after a restart."""
    found = watch()
    assert found.jump(np.array([5.0]), np.zeros(1), DT) is None
    found.frozen(np.array([5.0]), np.zeros(1), 0.0)
    assert found.jump(np.zeros(1), np.zeros(1), DT) is not None
    found.restart()
    assert found.jump(np.zeros(1), np.zeros(1), DT) is None


@settings(deadline=None)
@given(
    st.floats(0.1, 3.0),
    st.floats(0.3, 12.0),
    st.floats(0.001, 0.05),
    st.floats(0.0, 0.02),
    st.sampled_from([1e-4, STEP, 0.005]),
)
def test_motions_of_joints_are_plausible(
    amplitude: float, rate: float, dt: float, delay: float, step: float
) -> None:
    """Sines to 36 rad/s in encoder steps, with velocities up to 20 ms late: neither jump nor standstill."""
    found = watch(step=step)
    if amplitude * rate * rate * delay > 8.0:  # a velocity that is wrong by more than that is none
        return
    for k in range(60):
        at = np.array([round(amplitude * math.sin(rate * k * dt) / step) * step])
        speed = np.array([amplitude * rate * math.cos(rate * (k * dt - delay))])
        assert found.jump(at, speed, dt) is None
        assert found.frozen(at, speed, dt) is None


@pytest.mark.parametrize("speed", [1.0, -2.0, 0.4])
def test_a_position_that_stands_still_is_said_within_a_tenth_of_a_second(speed: float) -> None:
    """Not before FROZEN_TIME, and not before it should have moved by 4 steps."""
    found, times = watch(), []
    for k in range(20):
        found.frozen(np.array([0.01 * k]), np.array([speed]), DT)
    for k in range(1, 40):
        said = found.frozen(np.array([0.19]), np.array([speed]), DT)
        if said is not None:
            times.append(k * DT)
            assert "position of a has been constant" in said
            assert f"{speed:.3g} rad/s" in said
    assert FROZEN_TIME <= times[0] <= 0.1
    assert len(times) >= 19  # it stays
    assert found.frozen(np.array([0.2]), np.array([speed]), DT) is None  # and ends with the next step


def test_a_joint_at_rest_may_stand_still() -> None:
    """Velocities of noise, or below half of what counts as motion, for as long as one likes."""
    rng, found = np.random.default_rng(3), watch()
    for _ in range(2000):
        assert found.frozen(np.ones(1), rng.uniform(-0.14, 0.14, 1), DT) is None
    rng, found = np.random.default_rng(4), watch()
    for _ in range(2000):  # noise beyond that has no mean
        assert found.frozen(np.ones(1), rng.choice([-0.2, 0.2], 1), DT) is None


def test_a_coarse_encoder_is_not_frozen() -> None:
    """Steps of 3 mrad at 0.2 rad/s, 15 ms apart, of which nothing is known."""
    found = watch(step=0.0)
    for k in range(1000):
        at = np.array([round(0.2 * k * DT / 0.003) * 0.003])
        assert found.frozen(at, np.array([0.2]), DT) is None
