"""A richer law with its extra terms at zero is the simpler law: whole simulations, bit for bit."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import driven, free_swings, published
from stribeck.files.actuators import load_actuator
from stribeck.model.actuator import Actuator
from stribeck.model.law import LAWS, FrictionLaw, friction_budget
from stribeck.model.log import Batch
from stribeck.model.step import Simulation, simulate
from stribeck.model.terms import FRICTION_PARAMETERS

TRAJECTORIES = ("sin_time_square", "up_and_down", "lift_and_drop")


@pytest.fixture(scope="module", params=["xl330", "mx106", "erob80_50"])
def servo(request) -> Actuator:
    """A small and a large servo driven by voltage, and one driven by current."""
    return load_actuator(request.param)


@pytest.fixture(scope="module")
def batch(servo) -> Batch:
    """Three runs of 2 s that move fast, move slowly, and drop."""
    return driven(servo, TRAJECTORIES, duration=2.0)


@pytest.fixture(scope="module")
def plain(servo, batch) -> dict[str, Simulation]:
    """Motions with the published parameters of every law."""
    return {law: simulated(batch, servo, law, published(servo.name, law)) for law in LAWS}


def simulated(
    batch: Batch, servo: Actuator, law: str | FrictionLaw, values: Mapping[str, float]
) -> Simulation:
    """The simulation of a batch; what the law does not name is not given to it."""
    law = LAWS[law] if isinstance(law, str) else law
    names = {*law.parameter_names, "kt", "R", "armature", "q_offset"}
    return simulate(batch, servo, law, {name: value for name, value in values.items() if name in names})


def assert_identical(one: Simulation, other: Simulation) -> None:
    """Equal to the last bit, and not because nothing moves."""
    assert np.ptp(one.position) > 0.3
    assert np.array_equal(one.position, other.position)
    assert np.array_equal(one.velocity, other.velocity)


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize(
    ("rich", "simple", "zero"),
    [
        ("m2", "m1", ["friction_stribeck"]),
        ("m3", "m1", ["load_friction_base"]),
        ("m4", "m2", ["load_friction_base", "load_friction_stribeck"]),
        ("m4", "m3", ["friction_stribeck", "load_friction_stribeck"]),
        ("m6", "m5", ["load_friction_motor_quad", "load_friction_external_quad"]),
        (
            "m5",
            "m2",
            [
                "load_friction_motor",
                "load_friction_external",
                "load_friction_motor_stribeck",
                "load_friction_external_stribeck",
            ],
        ),
    ],
)
def test_a_law_with_zero_terms_is_the_simpler_law(servo, batch, rich, simple, zero):
    """Zero coefficients add exact zeros to the budget, so 400 steps agree to the last bit."""
    values = published(servo.name, rich)
    assert any(values[name] != 0.0 for name in zero), "these terms say nothing about this servo"
    without = {**values, **dict.fromkeys(zero, 0.0)}
    assert_identical(simulated(batch, servo, rich, without), simulated(batch, servo, simple, without))


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_an_asymmetric_law_with_equal_sides_is_the_symmetric_law(servo, batch, plain, law):
    """Two equal budgets are one."""
    values = published(servo.name, law)
    both = {
        **values,
        "friction_base_negative": values["friction_base"],
        "friction_viscous_negative": values["friction_viscous"],
    }
    asymmetric = LAWS[law].with_terms(asymmetric=True)
    assert_identical(simulated(batch, servo, asymmetric, both), plain[law])


@pytest.mark.ci
@pytest.mark.parametrize("law", LAWS)
def test_an_offset_torque_of_zero_is_none(servo, batch, plain, law):
    """Adding zero torque changes nothing."""
    values = published(servo.name, law)
    offset = LAWS[law].with_terms(offset=True)
    with_zero = simulated(batch, servo, offset, {**values, "torque_offset": 0.0})
    assert_identical(with_zero, plain[law])


@pytest.mark.parametrize("law", LAWS)
def test_an_offset_torque_and_its_mirror_image_mirror_the_free_swing(law):
    """Offset tau_0 from angle a, and -tau_0 from -a, give mirrored motions: the sign is used right.

    A hanging pendulum at rest with a constant torque must also end on the side it pushes to.
    """
    values = {**published("xl330", law), "q_offset": 0.0}
    offset = LAWS[law].with_terms(offset=True)
    servo = load_actuator("xl330")
    both = {**values, "torque_offset": np.array([0.1, 0.1, -0.1, -0.1])}
    position = simulate(free_swings((0.0, 0.7, -0.0, -0.7), 3.0), servo, offset, both).position
    assert np.array_equal(position[:, :2], -position[:, 2:])
    assert position[-1, 0] > 0.05


def common_load_terms(values: Mapping[str, float]) -> dict[str, float]:
    """M5's values with motor and external coefficients equal to M4's single ones."""
    return {
        **values,
        "load_friction_motor": values["load_friction_base"],
        "load_friction_external": values["load_friction_base"],
        "load_friction_motor_stribeck": values["load_friction_stribeck"],
        "load_friction_external_stribeck": values["load_friction_stribeck"],
    }


def test_the_directional_law_with_equal_coefficients_is_the_load_dependent_law(servo, batch, plain):
    """|K a - K b| and K |a - b| differ in the last place only, and 400 steps keep them close.

    Roundings of 1e-16 per step are amplified by a few powers of ten while the joint sticks and slips.
    """
    values = common_load_terms(published(servo.name, "m4"))
    directional, single = simulated(batch, servo, "m5", values), plain["m4"]
    assert np.ptp(directional.position) > 0.3
    np.testing.assert_allclose(directional.position, single.position, rtol=0.0, atol=1e-11)


@pytest.mark.ci
@settings(deadline=None, derandomize=True, max_examples=300)
@given(data=st.data())
def test_the_directional_budget_with_equal_coefficients_is_the_load_dependent_budget(data):
    """The same for budgets at any torques, to 1e-12 of the largest term: rounding of one subtraction."""
    bounds = FRICTION_PARAMETERS.items()
    values = {name: data.draw(st.floats(known.lower, known.upper), label=name) for name, known in bounds}
    motor, external, velocity = (data.draw(st.floats(-20.0, 20.0)) for _ in range(3))
    single, _ = friction_budget(LAWS["m4"], values, motor, external, velocity)
    directional, _ = friction_budget(LAWS["m5"], common_load_terms(values), motor, external, velocity)
    largest = values["friction_base"] + abs(motor) + abs(external)
    assert directional == pytest.approx(single, rel=1e-12, abs=1e-12 * largest)


def test_laws_differ_where_their_terms_are_not_zero(servo, batch):
    """The equalities above say something: with no term at zero every law moves differently.

    Differences are a thousand times what rounding makes of equal laws (1e-11).
    """
    values = published(servo.name, "m6") | published(servo.name, "m4")
    values |= dict.fromkeys([name for name in values if name.startswith("load_friction")], 0.05)
    values |= {"friction_stribeck": 0.02, "dtheta_stribeck": 1.0, "alpha": 2.0}
    values |= {"load_friction_motor": 0.08, "load_friction_motor_quad": 0.01}
    motions = [simulated(batch, servo, law, values) for law in LAWS]
    for k, one in enumerate(motions):
        for other in motions[:k]:
            assert np.max(np.abs(one.position - other.position)) > 1e-8
