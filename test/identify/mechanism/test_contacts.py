"""Contacts with friction bounded by the normal force, against closed forms: blocks on slopes, disks that roll and slip."""

import math
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechanisms import energy_of, mechanism
from stribeck.errors import ConfigError
from stribeck.identify.mechanism.contacts import contact_rows
from stribeck.identify.mechanism.dynamics import BodyState, MultibodyDynamics
from stribeck.identify.mechanism.problem import EstimationProblem
from stribeck.model.bench import STANDARD_GRAVITY as G


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64():
        yield


pytestmark = pytest.mark.slow

RADIUS, MASS = 0.1, 2.0
GRIP = 0.4


def free_body(contacts, inertia=0.02, grip=GRIP, name="body"):
    """A body that no joint holds, above the plane z = 0; the base is tilted about y by a parameter."""
    return {
        "schema": 1,
        "name": name,
        "parameters": {
            "slope": {"value": 0.0, "unit": "rad", "lower": -1.5, "upper": 1.5},
            "mu": {"value": grip, "unit": "1", "lower": 0.0, "upper": 2.0},
        },
        "bodies": {
            "body": {
                "mass": MASS,
                "com": [0, 0, RADIUS],
                "inertia": {"xx": inertia, "yy": inertia, "zz": inertia},
            }
        },
        "joints": {"loose": {"kind": "free", "parent": "world", "child": "body", "point": [0, 0, RADIUS]}},
        "base": {"tilt_y": "slope"},
        "contacts": contacts,
    }


BLOCK = free_body(
    {
        f"corner_{x}_{y}": {"body": "body", "point": [0.2 * x, 0.2 * y, 0.0], "grip": "mu"}
        for x in (-1, 1)
        for y in (-1, 1)
    }
)
DISK = free_body(
    {"rim": {"body": "body", "point": [0, 0, RADIUS], "radius": RADIUS, "grip": "mu"}},
    inertia=0.5 * MASS * RADIUS**2,
)


@cache
def simulator(kind, steps, h):
    """States of a body on a slope for a slope, a grip and a first velocity, compiled once."""
    at = mechanism(BLOCK if kind == "block" else DISK)
    dynamics = MultibodyDynamics(at)

    @jax.jit
    def run(slope, grip, first):
        physical = at.physical(jnp.array([slope, grip]))
        start = BodyState(dynamics.layout.zero_pose(physical), first)
        return dynamics.simulate(physical, start, jnp.zeros((steps, 0)), h)

    return run


def moved(kind, slope, grip, velocity=(0.0, 0.0, 0.0), spin=(0.0, 0.0, 0.0), seconds=1.0, h=0.001):
    first = jnp.array([[*velocity, *spin]])
    return jax.tree.map(np.asarray, simulator(kind, round(seconds / h), h)(slope, grip, first))


def test_a_block_sticks_up_to_the_angle_of_friction():
    """tan θ = μ to 0.1 %: below it the block creeps by the regularization alone, above it accelerates."""
    sticks = []
    for share in (1.0 - 1e-3, 1.0 + 1e-3):
        found = moved("block", math.atan(GRIP * share), GRIP, seconds=2.0)
        sticks.append(abs(float(found.v[-1, 0, 0])) < 2e-3)
    assert sticks == [True, False]


@pytest.mark.parametrize("slope", [0.0, 0.2])
def test_a_sliding_block_stops_where_the_closed_form_says(slope):
    """v² / 2 g (μ cos θ - sin θ) to 0.5 %, on the level and downhill."""
    found = moved("block", slope, GRIP, velocity=(1.0, 0.0, 0.0), seconds=1.5, h=0.0005)
    pull = GRIP * math.cos(slope) - math.sin(slope)
    assert float(found.q[-1, 0, 0]) == pytest.approx(1.0 / (2.0 * G * pull), rel=5e-3)
    assert abs(float(found.v[-1, 0, 0])) < 2e-3


def test_a_disk_rolls_and_slips():
    """Down a slope: 2/3 g sin θ without slip while μ ≥ tan θ / 3; beyond it g (sin θ - μ cos θ), and 2 μ g cos θ / r about its axis."""
    slope = 0.4
    rolls = moved("disk", slope, GRIP)
    speed, spin = float(rolls.v[-1, 0, 0]), float(rolls.v[-1, 0, 4])
    seconds = (len(rolls.v) - 1) * 0.001
    assert speed == pytest.approx(2.0 / 3.0 * G * math.sin(slope) * seconds, rel=2e-3)
    assert spin * RADIUS == pytest.approx(speed, abs=2e-3)
    slips = moved("disk", slope, 0.1)
    expected = G * (math.sin(slope) - 0.1 * math.cos(slope)) * seconds
    assert float(slips.v[-1, 0, 0]) == pytest.approx(expected, rel=2e-3)
    assert float(slips.v[-1, 0, 4]) == pytest.approx(
        2.0 * 0.1 * G * math.cos(slope) / RADIUS * seconds, rel=2e-3
    )


def test_a_disk_that_slides_ends_rolling():
    """Thrown without spin on the level, it rolls from 2/3 of its velocity on."""
    found = moved("disk", 0.0, GRIP, velocity=(1.0, 0.0, 0.0), seconds=0.5, h=0.0005)
    assert float(found.v[-1, 0, 0]) == pytest.approx(2.0 / 3.0, rel=3e-3)
    assert float(found.v[-1, 0, 4]) * RADIUS == pytest.approx(2.0 / 3.0, rel=3e-3)


def test_friction_takes_energy_and_contacts_give_none():
    """A block that is dropped and slides: its energy never rises by more than rounding, and it ends on the plane."""
    at = mechanism(BLOCK)
    dynamics, h = MultibodyDynamics(at), 0.001
    physical = at.physical(at.values())
    q = dynamics.layout.zero_pose(physical).at[0, 2].add(0.05)
    first = BodyState(q, jnp.array([[0.8, 0.3, 0.0, 0.0, 0.0, 0.0]]))
    states = jax.jit(lambda s: dynamics.simulate(physical, s, jnp.zeros((800, 0)), h))(first)
    energy = np.array(
        [
            float(energy_of(dynamics, physical, states.q[k], states.v[k], states.v[k + 1]))
            for k in range(0, 799, 7)
        ]
    )
    assert np.max(np.diff(energy)) < 1e-4 * energy[0]
    assert np.asarray(contact_rows(at, physical, states.q[-1]).gap) == pytest.approx(0.0, abs=1e-4)


def test_rows_are_the_derivatives_of_gap_and_place():
    """Normal velocities are changes of the gaps along q ⊞ t v, by finite differences, in a turned pose."""
    from stribeck.identify.mechanism import rotation

    at = mechanism(BLOCK)
    physical = at.physical(at.values())
    rng = np.random.default_rng(0)
    q = rotation.plus(
        MultibodyDynamics(at).layout.zero_pose(physical), jnp.asarray(0.3 * rng.normal(size=(1, 6)))
    )
    v = jnp.asarray(rng.normal(size=(1, 6)))
    rows = contact_rows(at, physical, q)
    gaps = [np.asarray(contact_rows(at, physical, rotation.plus(q, t * v)).gap) for t in (-1e-6, 1e-6)]
    np.testing.assert_allclose(rows.normal @ v.reshape(-1), (gaps[1] - gaps[0]) / 2e-6, rtol=1e-6, atol=1e-8)


def test_derivatives_of_the_motion_are_finite_differences():
    """Of the place of a sliding block by its grip and the slope."""

    block = mechanism(BLOCK)
    dynamics = MultibodyDynamics(block)

    def place(values):
        first = jnp.array([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
        physical = block.physical(values)
        start = BodyState(dynamics.layout.zero_pose(physical), first)
        return dynamics.simulate(physical, start, jnp.zeros((100, 0)), 0.001).q[-1, 0, 0]

    at, place = jnp.array([0.1, GRIP]), jax.jit(place)
    slope = jax.jit(jax.jacfwd(place))(at)
    for k in range(2):
        step = jnp.zeros(2).at[k].set(1e-5)
        assert float(slope[k]) == pytest.approx(float(place(at + step) - place(at - step)) / 2e-5, rel=1e-4)


def test_parameters_are_not_estimated_through_contacts():
    """One line says so."""
    with pytest.raises(ConfigError, match="contacts cannot be estimated"):
        EstimationProblem(mechanism(DISK), 0.005)


def test_contacts_are_checked():
    """Unknown bodies, the world, a grip below zero."""
    for change, said in (
        ({"body": "wheel"}, "unknown 'wheel'"),
        ({"body": "world"}, "unknown 'world'"),
        ({"grip": -0.1}, "negative"),
    ):
        contact = {**DISK["contacts"]["rim"], **change}
        with pytest.raises(ConfigError, match=said):
            mechanism({**DISK, "contacts": {"rim": contact}})
