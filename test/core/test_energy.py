"""Energy of a pendulum that swings freely: the default step neither makes nor loses any."""

import numpy as np
import pytest

from helpers import FRICTIONLESS, PUBLISHED, free_swings, published, setup_for
from stribeck.core.bench import gravity_amplitude, inertia
from stribeck.core.friction import LAWS
from stribeck.core.log import Batch, Setup
from stribeck.core.step import Integrator, simulate
from stribeck.io.actuators import load_actuator

POINT_MASS = Setup(mass=1.0, length=0.1, arm_mass=0.0, supply_voltage=5.0, kp=0.0)

AMPLITUDES = (0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.1)


def relative_energy(batch: Batch, integrator: Integrator) -> np.ndarray:
    """E = J w^2 / 2 + m g l (1 - cos theta) over its first value, of frictionless runs, (T, R)."""
    motion = simulate(batch, load_actuator("xl330"), LAWS["m1"], FRICTIONLESS, integrator=integrator)
    kinetic = 0.5 * inertia(batch.pendulum, 0.0) * motion.velocity**2
    energy = kinetic + gravity_amplitude(batch.pendulum) * (1.0 - np.cos(motion.position))
    return energy / energy[0]


@pytest.fixture(scope="module")
def minute() -> np.ndarray:
    """Relative energy over 60 s at 5 ms with the default integrator, one column per amplitude."""
    return relative_energy(free_swings(AMPLITUDES, 60.0, POINT_MASS), "semi-implicit")


def test_energy_of_a_frictionless_pendulum_stays_within_3_percent_for_a_minute(minute):
    """The default integrator is symplectic: energy oscillates within omega dt / 2 = 2.5 %, no more."""
    assert np.all(np.isfinite(minute))
    assert np.max(np.abs(minute - 1.0)) < 0.03


def test_energy_of_a_frictionless_pendulum_does_not_drift(minute):
    """The mean over the last 10 s is that over the first 10 s, but for the unfinished oscillation.

    An energy that swings by 2.5 % over some 16 periods leaves at most 2.5 % / 16 / pi of its mean.
    """
    first, last = minute[:2000].mean(axis=0), minute[-2000:].mean(axis=0)
    np.testing.assert_allclose(last, first, rtol=1e-3)


@pytest.mark.parametrize(
    ("integrator", "amplitude", "factor"),
    [("paper", 1.5, 2.07), ("paper", 0.1, 4.36), ("bam", 1.5, 0.30), ("bam", 0.1, 0.23)],
)
def test_the_other_integrators_change_the_energy_by_the_documented_factors(integrator, amplitude, factor):
    """The figures of the docstring after 6 s; they are given to two or three digits, hence 2 %."""
    energy = relative_energy(free_swings([amplitude], 6.0, POINT_MASS), integrator)
    assert energy[-1, 0] == pytest.approx(factor, rel=0.02)


@pytest.mark.parametrize(("amplitude", "swing"), [(1.5, 0.022), (0.1, 0.025)])
def test_the_default_integrator_swings_by_the_documented_share(amplitude, swing):
    """The docstring's 2.2 % at 1.5 rad and 2.5 % at 0.1 rad are what is seen, to their last digit."""
    energy = relative_energy(free_swings([amplitude], 6.0, POINT_MASS), "semi-implicit")
    assert np.max(np.abs(energy - 1.0)) == pytest.approx(swing, abs=0.0005)


def turning_heights(position: np.ndarray, q_offset: float) -> np.ndarray:
    """Heights 1 - cos of the samples at which a motion turns round, the first sample included."""
    before, here, after = position[:-2], position[1:-1], position[2:]
    turns = 1 + np.flatnonzero((here - before) * (after - here) < 0.0)
    return 1.0 - np.cos(position[np.concatenate([[0], turns])] + q_offset)


@pytest.mark.parametrize(("name", "law"), PUBLISHED)
def test_no_swing_goes_higher_than_the_one_before_with_published_friction(name, law):
    """With friction, successive turning points sink; 0.1 % is what sampling at 5 ms may hide.

    A turning point lies up to dt / 2 beside a sample, which there costs (omega dt)^2 / 4 of the
    height: 0.06 % for 0.1 m.
    """
    setup = setup_for(load_actuator(name))
    values = published(name, law)
    batch = free_swings((0.1, 0.5, 1.5, 2.8, 3.1), 10.0, setup)
    motion = simulate(batch, load_actuator(name), LAWS[law], values)
    for run in range(5):
        heights = turning_heights(motion.position[:, run], values["q_offset"])
        assert np.all(heights[1:] <= 1.001 * heights[:-1])


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("share", [0.0, 0.001, 0.03])
def test_no_swing_goes_higher_than_the_one_before_with_hardly_any_friction(law, share):
    """The same with a share of the published friction, so small that only the step matters.

    Amplitudes stay where the pendulum does not stand still at the top, and the load is long enough
    to turn often.
    """
    values = {
        name: share * value if name.startswith(("friction", "load_friction")) else value
        for name, value in published("xl330", law).items()
    }
    batch = free_swings((0.1, 0.5, 1.5, 2.5), 20.0, POINT_MASS)
    motion = simulate(batch, load_actuator("xl330"), LAWS[law], values)
    for run in range(4):
        heights = turning_heights(motion.position[:, run], values["q_offset"])
        assert len(heights) > 20
        assert np.all(heights[1:] <= 1.001 * heights[:-1])


@pytest.mark.parametrize(
    ("name", "law"), [("xl330", law) for law in LAWS] + [("mx106", "m6"), ("erob80_50", "m4")]
)
def test_a_free_swing_ends_in_a_rest_that_nothing_disturbs(name, law):
    """Friction brings the joint to rest: velocity exactly 0.0, position constant to the last bit."""
    values = published(name, law)
    values["friction_base"] = max(values["friction_base"], 1e-3)
    batch = free_swings((0.5, 1.5), 20.0, setup_for(load_actuator(name)))
    motion = simulate(batch, load_actuator(name), LAWS[law], values)
    assert np.all(motion.velocity[-200:] == 0.0)
    assert np.all(motion.position[-200:] == motion.position[-1])
