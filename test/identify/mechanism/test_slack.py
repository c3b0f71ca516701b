"""Free deviations of constraints: a load on a mount that nothing measures, whose play the reduced form takes for something else."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stribeck.identify.mechanism.dynamics import BodyState, MultibodyDynamics
from stribeck.identify.mechanism.estimation import MechanismEstimator
from stribeck.identify.mechanism.model_file import model_of
from stribeck.identify.mechanism.problem import EstimationProblem, Point
from stribeck.identify.mechanism.recordings import MechanismRecording, joined, on_grid

STEP, COUNT = 0.005, 300
TRUE = {"load": 0.5, "drag": 2.0, "give": 2e-3}
PLAY = 0.01
"""Deviation of the mount at the beginning [m]."""


def cart(slack=None, **values):
    """A cart on a rail with a motor, and a load on a soft mount; the encoder sees the cart alone."""
    bounds = {"load": ("kg", 0.05, 2.0), "drag": ("N s/m", 0.0, 20.0), "give": ("m/N", 1e-4, 2e-2)}
    mount = {
        "kind": "fixed",
        "parent": "cart",
        "child": "load",
        "point": [0, 0, 0],
        "compliance": "give",
    }
    content = {
        "schema": 1,
        "name": "cart",
        "gravity": 0.0,
        "parameters": {
            name: {"value": values.get(name, TRUE[name]), "unit": unit, "lower": low, "upper": high}
            for name, (unit, low, high) in bounds.items()
        },
        "bodies": {
            "cart": {"mass": 1.0, "com": [0, 0, 0], "inertia": dict.fromkeys(("xx", "yy", "zz"), 0.01)},
            "load": {"mass": "load", "com": [0, 0, 0], "inertia": dict.fromkeys(("xx", "yy", "zz"), 0.01)},
        },
        "joints": {
            "rail": {
                "kind": "prismatic", "parent": "world", "child": "cart", "point": [0, 0, 0], "axis": [1, 0, 0],
                "viscous": "drag",
            },
            "mount": mount if slack is None else mount | {"slack": slack},
        },
        "motors": {"drive": {"joint": "rail", "kt": 1.0, "resistance": 1.0}},
        "sensors": {"place": {"joint": "rail", "deviation": 1e-4}},
    }  # fmt: skip
    return model_of(content, Path("test.yaml")).mechanism


@pytest.fixture(scope="module")
def run():
    """What the encoder reads while the load, displaced at first, swings on its mount."""
    model = cart()
    dynamics = MultibodyDynamics(model)
    time = STEP * np.arange(COUNT)
    volts = 0.6 * np.sin(5.0 * time) + 0.4 * np.sin(3.0 * time + 0.4)
    place = np.zeros(COUNT)
    rough = on_grid(MechanismRecording("made", time, place[:, None], volts[:, None]), model, STEP)
    with jax.enable_x64():
        physical = model.physical(model.values())
        q = np.array(dynamics.layout.zero_pose(physical))
        q[1, 0] = PLAY
        start = BodyState(jnp.asarray(q), jnp.zeros((2, 6)))
        inputs = jnp.asarray(rough.samples.voltage)
        states = jax.jit(lambda s: dynamics.simulate(physical, s, inputs, STEP))(start)
    place = np.asarray(states.q)[:COUNT, 0, 0]
    noisy = place + 1e-4 * np.random.default_rng(0).standard_normal(COUNT)
    return on_grid(MechanismRecording("made", time, noisy[:, None], volts[:, None]), model, STEP)


def estimated(model, run):
    return MechanismEstimator(model, [run], STEP, 1000.0).estimate()


@pytest.mark.slow
def test_free_deviations_find_what_the_reduced_form_misses(run):
    """From starts far off: mass, drag and compliance within 3 % with slack; without it the compliance is wrong by half or more."""
    far = {"load": 0.7, "drag": 1.0, "give": 1e-3}
    free, reduced = estimated(cart(PLAY, **far), run), estimated(cart(**far), run)
    found = {name: (free.estimates[name].value, reduced.estimates[name].value) for name in TRUE}
    for name, true in TRUE.items():
        assert found[name][0] == pytest.approx(true, rel=0.03), found
        low, high = free.estimates[name].interval
        assert low < true < high
    assert abs(found["give"][1] / TRUE["give"] - 1.0) > 0.5, found
    assert free.solution.converged
    assert free.solution.cost < 0.1 * reduced.solution.cost
    held = free.solution.point.q[0]
    assert held[1, 0] - held[0, 0] == pytest.approx(PLAY, rel=0.1), "the play at the beginning"


@pytest.mark.slow
def test_derivatives_by_the_free_impulses_are_those_of_the_stepper(run):
    """State and impulses along the mount, in both residuals, by central differences of a step."""
    model = cart(PLAY)
    problem = EstimationProblem(model, STEP)
    estimator = MechanismEstimator(model, [run], STEP, 1000.0)
    samples, path, starts = joined([run])
    point = estimator.rollout.along(samples, model.parameters.vector(), path)
    chain = problem.linearize(point, samples, starts, 1000.0, np.array([False]))
    e, none = chain.push.shape[2], np.zeros((*point.impulse.shape, 24))
    assert e == 1 + 2 * 6
    for k in range(1, e):
        by = np.zeros_like(point.impulse)
        by[7, 1 + k] = size = 1e-5
        first = BodyState(point.q, point.v)
        ahead, behind = (
            estimator.rollout.near(samples, point, point.chi, first, point.impulse + s * by, none)
            for s in (1, -1)
        )
        moved = np.concatenate([(ahead.q - behind.q)[8, :, :3].ravel(), (ahead.v - behind.v)[8].ravel()]) / (
            2 * size
        )
        expected = np.concatenate([chain.push[7, [0, 1, 2, 6, 7, 8], k], chain.push[7, 12:, k]])
        np.testing.assert_allclose(moved, expected, rtol=1e-4, atol=1e-6)


def test_the_cost_counts_the_first_deviation(run):
    """A deviation of one slack costs one half."""
    problem = EstimationProblem(cart(PLAY), STEP)
    samples, _, starts = joined([run])
    q = np.tile(np.array([0, 0, 0, 1.0, 0, 0, 0]), (len(samples.count), 2, 1))
    at_rest = Point(
        problem.mechanism.parameters.vector(), q, np.zeros((len(q), 2, 6)), np.zeros((len(q), 2 + 12))
    )
    q_off = q.copy()
    q_off[0, 1, 0] = PLAY
    costs = [
        problem.residuals(Point(at_rest.chi, one, at_rest.v, at_rest.impulse), samples, starts, 1000.0).cost
        for one in (q, q_off)
    ]
    assert costs[1] - costs[0] == pytest.approx(0.5, rel=1e-6)
