import copy
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechanisms import BLOCK, changed, energy_of, hanging, mechanism
from stribeck.identify.mechanism import rotation
from stribeck.identify.mechanism.dynamics import BodyState, MultibodyDynamics
from stribeck.identify.mechanism.model_file import read_model
from stribeck.model.bench import STANDARD_GRAVITY


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64():
        yield


def energies(name, h, seconds, *angles):
    """Energy above the lowest state over time, as a share of its first value."""
    at = read_model(name).mechanism
    dynamics = MultibodyDynamics(at)
    physical = at.physical(at.values())
    run = jax.jit(lambda start: dynamics.simulate(physical, start, jnp.zeros((int(seconds / h), 0)), h))
    found = run(hanging(dynamics, physical, *angles))
    energy = jax.vmap(lambda q, a, b: energy_of(dynamics, physical, q, a, b))(
        found.q[:-1], found.v[:-1], found.v[1:]
    )
    lowest = float(np.sum(np.asarray(physical.mass * physical.com[:, 2])) * STANDARD_GRAVITY)
    return np.asarray((energy - lowest) / (energy[0] - lowest))


@pytest.mark.slow
def test_energy_of_the_frictionless_double_pendulum():
    """Over 10 s at 5 ms it never grows by 1 %, loses less than 5 %, and both fall with the step."""
    coarse, fine = (energies("double_pendulum", h, 10.0, 1.5, 0.5) for h in (0.005, 0.0025))
    assert coarse.max() < 1.01
    assert coarse.min() > 0.95
    assert fine.max() - 1.0 <= max(coarse.max() - 1.0, 1e-6)
    assert 1.0 - fine.min() < 0.5 * (1.0 - coarse.min())


@pytest.mark.slow
def test_four_bar_stays_closed():
    """A loop with three redundant constraints swings for 4 s with gaps below 1e-4 m, never NaN."""
    at = read_model("four_bar").mechanism
    dynamics = MultibodyDynamics(at)
    physical = at.physical(at.values())
    start = BodyState(dynamics.layout.zero_pose(physical), jnp.zeros((3, 6)))
    # A push at the coupler: the parallelogram falls to its side.
    start = start._replace(
        v=start.v.at[0].set([0, -0.03, 0, 0.3, 0, 0]).at[2].set([0, -0.03, 0, 0.3, 0, 0]).at[1, 1].set(-0.06)
    )
    h = 0.002
    found = jax.jit(lambda s: dynamics.simulate(physical, s, jnp.zeros((2000, 0)), h))(start)
    poses = jax.vmap(lambda q: jnp.stack(dynamics.layout.deviation(dynamics.layout.pose(physical, q))))(
        found.q
    )
    angle = jax.vmap(lambda q: dynamics.layout.coordinates(dynamics.layout.pose(physical, q))[0])(found.q)
    assert float(jnp.abs(angle).max()) > 1.0
    assert float(jnp.abs(poses[:, dynamics.layout.translation]).max()) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("damping", [0.25, 0.05])
def test_gap_of_a_turning_joint_by_hand(damping):
    """A turn at rate ω pulls a joint apart by ω² r h² (1 + γ) / 8γ, γ = 1/(1 + 4τ/h): at least a quarter of ω² r h²."""
    rate, radius, h = 10.0, 0.2, 0.005
    body = {"mass": 2.0, "com": [radius, 0, 0], "inertia": {"xx": 0.01, "yy": 0.01, "zz": 0.01}}
    hinge = {"kind": "revolute", "parent": "world", "child": "block", "point": [0, 0, 0], "axis": [0, 0, 1]}
    soft = {"compliance": 1e-10, "damping": damping}
    at = mechanism(changed(BLOCK, bodies={"block": body}, joints={"slide": hinge}, regularization=soft))
    dynamics = MultibodyDynamics(at)
    physical = at.physical(at.values())
    turning = jnp.array([[0.0, rate * radius, 0.0, 0.0, 0.0, rate]])
    start = BodyState(dynamics.layout.zero_pose(physical), turning)
    found = jax.jit(lambda s: dynamics.simulate(physical, s, jnp.zeros((200, 0)), h))(start)
    deviation = jnp.stack(dynamics.layout.deviation(dynamics.layout.pose(physical, found.q[-1])))
    speed, gamma = float(found.v[-1, 0, 5]), 1.0 / (1.0 + 4.0 * damping)
    expected = speed**2 * radius * h**2 * (1.0 + gamma) / (8.0 * gamma)
    assert float(jnp.linalg.norm(deviation[dynamics.layout.translation])) == pytest.approx(expected, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("share", "slides"), [(0.98, False), (1.02, True)])
def test_block_sticks_and_slips_at_the_analytic_threshold(share, slides):
    """On a plane tilted by α a block of mass m slips when m g sin α exceeds the friction."""
    friction, mass = 5.0, 2.0
    angle = float(np.arcsin(share * friction / (mass * STANDARD_GRAVITY)))
    at = mechanism(changed(BLOCK, base={"tilt_y": angle}))
    dynamics = MultibodyDynamics(at)
    physical = at.physical(at.values())
    h, steps = 0.002, 500
    start = BodyState(dynamics.layout.zero_pose(physical), jnp.zeros((1, 6)))
    found = jax.jit(lambda s: dynamics.simulate(physical, s, jnp.zeros((steps, 0)), h))(start)
    moved, time = float(found.q[-1, 0, 0]), (steps - 1) * h
    if slides:
        # Regularised friction reaches its bound at the slip velocity, from which the block accelerates.
        expected = 0.5 * (share - 1.0) * friction / mass * time**2 + at.regularization.slip * time
        assert moved == pytest.approx(expected, rel=0.01)
    else:
        assert abs(float(found.v[-1, 0, 0])) <= at.regularization.slip
        assert abs(moved) <= at.regularization.slip * time


@pytest.mark.slow
def test_driven_block_stops_where_friction_work_equals_kinetic_energy():
    """A block at speed v on level ground stops after m v² / (2 F)."""
    at = mechanism(BLOCK)
    dynamics = MultibodyDynamics(at)
    physical = at.physical(at.values())
    start = BodyState(dynamics.layout.zero_pose(physical), jnp.zeros((1, 6)).at[0, 0].set(1.0))
    found = jax.jit(lambda s: dynamics.simulate(physical, s, jnp.zeros((600, 0)), 0.001))(start)
    assert float(found.q[-1, 0, 0]) == pytest.approx(2.0 / (2 * 5.0), rel=0.01)


@pytest.mark.slow
def test_energy_over_torque_that_varies_with_the_angle():
    """A rotor in a torque of a cos nφ + b sin nφ keeps ½ J ω² - (a sin nφ - b cos nφ) / n, turning through its waves."""
    order, inertia, (a, b), h = 5, 0.01, (0.03, -0.02), 0.001
    waves = [{"order": order, "cos": a, "sin": b}]
    body = {"mass": 2.0, "com": [0, 0, 0], "inertia": {"xx": 0.01, "yy": 0.01, "zz": inertia}}
    hinge = {"kind": "revolute", "parent": "world", "child": "block", "point": [0, 0, 0], "axis": [0, 0, 1]}
    at = mechanism(changed(BLOCK, bodies={"block": body}, joints={"slide": hinge | {"ripple": waves}}))
    dynamics = MultibodyDynamics(at)
    physical = at.physical(at.values())
    start = BodyState(dynamics.layout.zero_pose(physical), jnp.zeros((1, 6)).at[0, 5].set(3.0))
    found = jax.jit(lambda s: dynamics.simulate(physical, s, jnp.zeros((1000, 0)), h))(start)
    angle = np.unwrap(2.0 * np.arctan2(found.q[:-1, 0, 6], found.q[:-1, 0, 3]))
    rate = 0.5 * np.asarray(found.v[:-1, 0, 5] + found.v[1:, 0, 5])
    stored = (a * np.sin(order * angle) - b * np.cos(order * angle)) / order
    energy = 0.5 * inertia * rate**2 - stored
    assert angle.max() > 2.0
    assert np.ptp(stored) > 0.1 * energy[0]
    assert np.ptp(energy) < 1e-3 * np.ptp(stored)


@pytest.mark.slow
def test_step_and_inverse_dynamics_agree():
    """The impulse that a step took beyond the model's forces is zero, reactions as (2.30) says."""
    at = read_model("furuta_motor").mechanism
    dynamics = MultibodyDynamics(at)
    physical = at.physical(at.values())
    rng = np.random.default_rng(0)
    h, voltage = 0.005, jnp.array([2.0])
    state = BodyState(dynamics.layout.zero_pose(physical), jnp.asarray(rng.normal(size=(2, 6))))
    step = jax.jit(lambda state: dynamics.step(physical, state, voltage, h))
    impulses = jax.jit(
        lambda state, v, reaction: dynamics.impulses(physical, state, [v], [reaction], voltage, h)
    )
    for _ in range(3):
        after = step(state)
        gap = jnp.stack(impulses(state, after.v, jnp.zeros(len(dynamics.layout.translation)))[1][0])
        reaction = -gap / jnp.stack([jnp.asarray(x) for x in dynamics.softness(physical, h).sigma])
        impulse, left = impulses(state, after.v, reaction)
        np.testing.assert_allclose(jnp.stack(impulse[0]), 0.0, atol=1e-9)
        np.testing.assert_allclose(jnp.stack(left[0]), 0.0, atol=1e-9)
        state = after


@pytest.mark.slow
def test_jacobian_of_constraints_is_their_derivative():
    """G v is the change of g along q ⊞ t v, and impulses spread by its transpose."""
    at = read_model("four_bar").mechanism
    layout = MultibodyDynamics(at).layout
    physical = at.physical(at.values())
    rng = np.random.default_rng(1)
    q = rotation.plus(layout.zero_pose(physical), jnp.asarray(0.3 * rng.normal(size=(3, 6))))
    found = layout.constraints(physical, q)
    v = jnp.asarray(rng.normal(size=(3, 6)))
    _, expected = jax.jvp(
        lambda t: jnp.stack(layout.deviation(layout.pose(physical, rotation.plus(q, t * v)))), (0.0,), (1.0,)
    )
    np.testing.assert_allclose(found.jacobian @ v.reshape(-1), expected, atol=1e-12)
    reaction, drive = rng.normal(size=len(expected)), rng.normal(size=4)
    spread = layout.spread(layout.pose(physical, q), list(reaction), list(drive))
    flat = np.concatenate([np.array([*force, *torque]) for force, torque in spread])
    np.testing.assert_allclose(flat, found.jacobian.T @ reaction + found.motion.T @ drive, atol=1e-12)


def test_tilted_base_turns_gravity():
    """A tilt of 0.1 about y pulls along x by g sin 0.1; of 0.2 about x along -y."""
    at = mechanism(BLOCK)
    physical = at.physical(at.values())
    gravity = MultibodyDynamics(at).gravity
    assert float(gravity(physical._replace(tilt=jnp.array([0.0, 0.1])))[0]) == pytest.approx(
        STANDARD_GRAVITY * np.sin(0.1)
    )
    assert float(gravity(physical._replace(tilt=jnp.array([0.2, 0.0])))[1]) == pytest.approx(
        -STANDARD_GRAVITY * np.sin(0.2)
    )


def test_softness_by_hand():
    """γ = 1/(1 + 4τ/h), Σ = 4 ε γ / h² (2.9, 2.10), at τ = h/4, ε = 1e-6 m/N, ℓ = 0.5 m, h = 0.01 s."""
    at = mechanism(BLOCK)
    soft = replace(at.regularization, compliance=1e-6, damping=0.25, length=0.5)
    physical = at.physical(at.values())
    found = MultibodyDynamics(replace(at, regularization=soft)).softness(physical, 0.01)
    np.testing.assert_allclose(found.upsilon, 0.5)
    np.testing.assert_allclose(found.sigma, [0.02, 0.02, 0.08, 0.08, 0.08])


@pytest.mark.slow
def test_a_joint_may_be_softer_than_the_others():
    """A block on a fixed joint of 1e-4 m/N sags by m g ε, another one by nothing that is seen."""
    soft = copy.deepcopy(BLOCK)
    (name,) = soft["joints"]
    soft["joints"][name] |= {"kind": "fixed", "compliance": "softness"}
    soft["joints"][name].pop("coulomb", None)
    soft["joints"][name].pop("viscous", None)
    soft["sensors"] = {}
    soft["parameters"] = {
        **soft.get("parameters", {}),
        "softness": {"value": 1e-4, "unit": "m/N", "lower": 1e-6, "upper": 1e-2},
    }
    at = mechanism(soft)
    dynamics, values = MultibodyDynamics(at), at.values()

    def sag(values):
        physical = at.physical(values)
        start = BodyState(dynamics.layout.zero_pose(physical), jnp.zeros((1, 6)))
        states = dynamics.simulate(physical, start, jnp.zeros((2000, 0)), 0.005)
        return (start.q - states.q[-1])[0, 2]

    found, slope = jax.value_and_grad(sag)(jnp.asarray(values))
    weight = float(at.physical(values).mass[0]) * STANDARD_GRAVITY
    assert float(found) == pytest.approx(weight * 1e-4, rel=1e-3)
    number = list(at.parameters.names).index("softness")
    assert float(slope[number]) == pytest.approx(weight, rel=1e-3)
