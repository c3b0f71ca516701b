"""The same formulas under numpy and under JAX, and derivatives where the equations have kinks."""

import numpy as np
import pytest

from helpers import PUBLISHED, SETUP, published, setup_for
from stribeck.files.actuators import actuator_names, load_actuator
from stribeck.model.bench import Pendulum
from stribeck.model.control_laws import ControlState, Gains, ServoCommand
from stribeck.model.law import LAWS, friction_budget
from stribeck.model.step import INTEGRATORS, Plant, PlantState, delayed, step
from stribeck.model.terms.stribeck import stribeck_weight

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

DT = 0.005
COUNT = 400

AGREEMENT = {"rtol": 1e-12, "atol": 1e-13}
"""Both compute in float64; XLA's exp, log and sin, and its fused multiply-adds, round differently in
the last places."""


@pytest.fixture(autouse=True)
def float64():
    """JAX computes in float64 here."""
    with jax.enable_x64(True):
        yield


def all_terms(law: str):
    """A law with asymmetry and offset, and values for them."""
    return LAWS[law].with_terms(asymmetric=True, offset=True), {
        **published("xl330", law),
        "friction_base_negative": 0.003,
        "friction_viscous_negative": 0.008,
        "torque_offset": 0.01,
    }


@pytest.mark.parametrize("terms", [False, True])
@pytest.mark.parametrize("law", LAWS)
def test_budgets_agree(law, terms):
    """Random torques and velocities, rest among them."""
    chosen, values = all_terms(law) if terms else (LAWS[law], published("xl330", law))
    rng = np.random.default_rng(1)
    motor, external, velocity = rng.normal(size=(3, COUNT))
    velocity[::7] = 0.0
    here = friction_budget(chosen, values, motor, external, velocity)
    there = friction_budget(chosen, values, *map(jnp.asarray, (motor, external, velocity)))
    for one, other in zip(here, there, strict=True):
        assert isinstance(one, np.ndarray)
        assert isinstance(other, jax.Array)
        assert other.dtype == np.float64
        np.testing.assert_allclose(other, one, **AGREEMENT)


def assert_step_agrees(plant, values, control, supply):
    """One step from random states, half of them at rest or nearly so."""
    rng = np.random.default_rng(2)
    position, goal = rng.uniform(-2.0, 2.0, (2, COUNT))
    velocity = rng.normal(size=COUNT) * 10.0 ** rng.uniform(-4, 1, COUNT)
    velocity[::5] = 0.0
    enable = (rng.uniform(size=COUNT) < 0.7).astype(np.float64)
    here = step(
        plant, values, PlantState(position, velocity, control), ServoCommand(goal, enable, supply), DT
    )
    there = jax.jit(lambda state, command: step(plant, values, state, command, DT))(
        PlantState(*map(jnp.asarray, (position, velocity)), jax.tree.map(jnp.asarray, control)),
        ServoCommand(jnp.asarray(goal), jnp.asarray(enable), supply),
    )
    np.testing.assert_allclose(there.position, here.position, **AGREEMENT)
    np.testing.assert_allclose(there.velocity, here.velocity, **AGREEMENT)
    stopped = here.velocity == 0.0
    assert np.array_equal(np.asarray(there.velocity) == 0.0, stopped)
    for one, other in zip(here.control, there.control, strict=True):
        np.testing.assert_allclose(other, one, **AGREEMENT)


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("law", LAWS)
def test_a_step_of_every_law_and_integrator_agrees(law, integrator):
    """Positions, velocities, and which joints stop."""
    chosen, values = all_terms(law)
    plant = Plant(
        load_actuator("xl330"), chosen, Pendulum(0.5, 0.1, 0.05), Gains(200.0, 0.0, 0.0), integrator
    )
    assert_step_agrees(plant, values, ControlState(0.0, 0.0), 5.0)


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("name", actuator_names())
def test_a_step_of_every_servo_agrees(name):
    """Voltage, current and torque laws, with integral, derivative and ramp, and the current limit."""
    servo = load_actuator(name)
    setup = setup_for(servo)
    values = {parameter.name: parameter.value for parameter in servo.parameters(LAWS["m6"])}
    if "current-limit" in servo.effects:
        values["current_limit"] = 0.3
    gains = Gains(setup.kp, 0.3 * setup.kp, 0.2 * setup.kp)
    plant = Plant(servo, LAWS["m6"], Pendulum(setup.mass, setup.length, setup.arm_mass), gains)
    control = servo.control.first_state(np.linspace(-1.0, 1.0, COUNT))
    assert_step_agrees(plant, values, control, setup.supply_voltage)


@pytest.mark.ci
def test_a_delayed_command_agrees():
    """One delay, and a delay of each candidate's own."""
    signal = np.random.default_rng(3).normal(size=(10, 4))
    for delay in (np.float64(0.0125), np.array([0.0, 0.004, 0.02])):
        for k in (0, 3, 9):
            here = delayed(signal, k, delay, DT)
            there = delayed(jnp.asarray(signal), jnp.asarray(k), jnp.asarray(delay), DT)
            np.testing.assert_allclose(there, here, **AGREEMENT)


@pytest.mark.parametrize("velocity", [0.0, -0.0, 1e-40, -1e-40, 1e-12, 0.3, 1e3])
@pytest.mark.parametrize("alpha", [0.76, 1.0, 2.0, 10.0])
def test_the_stribeck_weight_has_finite_derivatives_everywhere(velocity, alpha):
    """|x|^alpha has no derivative in alpha at rest, and for alpha < 1 none in x: ours are finite."""
    for argument in range(3):
        slope = jax.grad(stribeck_weight, argument)(velocity, 0.5, alpha)
        assert np.isfinite(slope)


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize(
    ("name", "law"), [(name, law) for name, law in PUBLISHED if law in ("m2", "m4", "m5", "m6")]
)
def test_budgets_have_finite_derivatives_at_rest(name, law):
    """With respect to alpha, v_s and velocity, loaded and unloaded, by JAX's own reverse mode."""
    values = published(name, law)

    def budget(alpha, dtheta_stribeck, velocity, motor, external):
        given = {**values, "alpha": alpha, "dtheta_stribeck": dtheta_stribeck}
        return friction_budget(LAWS[law], given, motor, external, velocity)[0]

    for motor, external in ((0.0, 0.0), (0.3, -0.2), (0.2, -0.2), (0.1, 0.4)):
        point = (values["alpha"], values["dtheta_stribeck"], 0.0, motor, external)
        assert np.all(np.isfinite(jax.grad(budget, (0, 1, 2, 3, 4))(*point)))
        at_rest = jax.grad(budget, (0, 1))(*point)
        assert np.allclose(at_rest, 0.0, atol=1e-12), "the weight at rest is 1 whatever its shape"


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("law", LAWS)
def test_derivatives_of_a_step_are_finite_at_rest_and_are_differences_in_motion(law):
    """Forward mode through a whole step, with respect to every parameter of the fit."""
    servo = load_actuator("xl330")
    values = published("xl330", law)
    plant = Plant(servo, LAWS[law], Pendulum(SETUP.mass, SETUP.length, 0.0), Gains(200.0, 0.0, 0.0))
    names = list(values)

    def velocity_after(vector, velocity):
        given = dict(zip(names, vector, strict=True))
        state = PlantState(0.3, velocity, ControlState(0.0, 0.0))
        return step(plant, given, state, ServoCommand(0.6, 1.0, 5.0), DT).velocity

    point = np.array(list(values.values()))
    derivatives = jax.jit(jax.jacfwd(velocity_after))
    assert np.all(np.isfinite(derivatives(point, 0.0)))
    slope = np.asarray(derivatives(point, 0.8))
    value = jax.jit(velocity_after)
    for k in range(len(names)):
        # Central differences leave 1e-6 of truncation, and of rounding 1e-16 / width = 1e-7.
        width = 1e-6 * max(abs(point[k]), 1e-3)
        aside = width * np.eye(len(names))[k]
        change = (value(point + aside, 0.8) - value(point - aside, 0.8)) / (2 * width)
        assert slope[k] == pytest.approx(float(change), rel=1e-5, abs=1e-6)
