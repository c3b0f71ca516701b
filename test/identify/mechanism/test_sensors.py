"""Sensors by expressions: points, distances, forces and inertial units against closed forms, and parameters from them."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechanisms import BLOCK, changed, hanging
from stribeck.errors import ConfigError
from stribeck.identify.mechanism.dynamics import BodyState, MultibodyDynamics
from stribeck.identify.mechanism.estimation import MechanismEstimator
from stribeck.identify.mechanism.model_file import model_of
from stribeck.identify.mechanism.problem import EstimationProblem, GridSamples, Point
from stribeck.identify.mechanism.recordings import MechanismRecording, on_grid

STEP = 0.002
MASS, LENGTH, INERTIA = 0.5, 0.2, 0.004
GRAVITY = 9.80665


def pendulum(sensors, **parameters):
    """A rod on a shaft along x, hanging along -z in the zero pose."""
    known = {"friction": {"value": 0.01, "unit": "N m s/rad", "lower": 0.0, "upper": 0.1}}
    return {
        "schema": 1,
        "name": "pendulum",
        "parameters": known | parameters,
        "bodies": {
            "rod": {"mass": MASS, "com": [0, 0, -LENGTH], "inertia": dict.fromkeys(("xx", "yy", "zz"), INERTIA)}
        },
        "joints": {
            "shaft": {
                "kind": "revolute", "parent": "world", "child": "rod", "point": [0, 0, 0], "axis": [1, 0, 0],
                "viscous": "friction",
            }
        },
        "sensors": sensors,
        "estimation": {"step": STEP, "ratio": 1000},
    }  # fmt: skip


def expressions(**texts):
    """Sensors by name."""
    units = {
        "tip": "m",
        "height": "m",
        "far": "m",
        "speed": "m/s",
        "along": "m/s²",
        "turning": "rad/s",
        "pull": "N",
    }
    return {
        name: {"expression": text, "unit": units[name], "deviation": 1e-4} for name, text in texts.items()
    }


ALL = expressions(
    tip="point(rod, 0, 0, -0.3).y",
    far="norm(point(rod, 0, 0, -0.3) - point(world, 0, 0.5, 0))",
    speed="velocity(rod, 0, 0, -0.3).y",
    turning="gyroscope(rod).x",
    along="accelerometer(rod, 0, 0, -0.3).z",
    pull="force(shaft).z",
)


def motion(model, angle, count):
    """States of a swing from rest, and the angle and its rate at the steps."""
    dynamics = MultibodyDynamics(model)
    with jax.enable_x64():
        physical = model.physical(model.values())
        start = hanging(dynamics, jax.tree.map(np.asarray, physical), angle)
        states = jax.jit(lambda s: dynamics.simulate(physical, s, jnp.zeros((count, 0)), STEP))(
            BodyState(jnp.asarray(start.q), jnp.asarray(start.v))
        )
        turned = jax.vmap(
            lambda q: jnp.stack(dynamics.layout.coordinates(dynamics.layout.pose(physical, q)))
        )(states.q)
    return Point(
        model.parameters.vector(), np.asarray(states.q), np.asarray(states.v), np.zeros((count, 1))
    ), np.asarray(turned)[:, 0]


def seen(model, point):
    """Signals (N - 1, ns) at the steps, without noise."""
    count = len(point.q)
    empty = np.zeros((count, len(model.sensors)))
    samples = GridSamples(np.zeros((count, 0)), empty, empty, empty + 1.0, np.arange(count) < count - 1)
    return EstimationProblem(model, STEP).signals(point, samples)[:-1]


@pytest.mark.slow
def test_expressions_are_the_closed_forms_of_a_pendulum():
    """Point, distance, speed, gyroscope, accelerometer and force of a swinging rod by hand."""
    model = model_of(pendulum(ALL), Path("test.yaml")).mechanism
    point, angle = motion(model, 1.0, 400)
    found = dict(zip(ALL, seen(model, point).T, strict=True))
    rate = np.gradient(angle, STEP)[:-1]
    bend = np.gradient(np.gradient(angle, STEP), STEP)[:-1]
    angle = angle[:-1]
    inner = slice(3, -3)
    tip = 0.3 * np.sin(angle), -0.3 * np.cos(angle)
    expected = {
        "tip": (tip[0], 1e-5),
        "far": (np.hypot(tip[0] - 0.5, tip[1]), 1e-5),
        "speed": (0.3 * np.cos(angle) * rate, 2e-3),
        "turning": (rate, 1e-9),
        "along": (0.3 * rate**2 + GRAVITY * np.cos(angle), 0.05),
        "pull": (MASS * (LENGTH * rate**2 + GRAVITY * np.cos(angle)), 0.02),
    }
    for name, (value, tolerance) in expected.items():
        assert np.abs(found[name] - value)[inner].max() < tolerance, name
    assert np.abs(bend).max() > 10.0, "a motion that would show errors"


def test_derivatives_are_those_of_finite_differences():
    """Of all quantities, by the parameters and along the motion of the states."""
    model = model_of(pendulum(ALL), Path("test.yaml")).mechanism
    problem = EstimationProblem(model, STEP)
    point, _ = motion(model, 1.0, 12)
    q, v, reached, chi = (part[3:4] for part in problem._flat(point))
    place = np.full((1, len(ALL)), 0.3)
    jacobian = problem.functions.signal_jacobian(q, v, reached, chi, place)[0]
    at = 2 * problem.half
    for k in range(problem.half):
        by = np.zeros_like(reached)
        by[0, k] = 1e-6
        ahead, behind = (
            problem.functions.signals(q, v, reached + s * by, chi, place)[0, :, 0] for s in (1.0, -1.0)
        )
        np.testing.assert_allclose(jacobian[:, at + k], (ahead - behind) / 2e-6, rtol=1e-5, atol=1e-4)


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("of", [("tip", "far"), ("along", "turning", "tip")])
def test_friction_comes_back_from_sensors_that_see_no_joint(of):
    """Noisy signals of points and inertial units alone, starting with twice the friction."""
    known = {name: ALL[name] | {"deviation": 0.002} for name in of}
    model = model_of(pendulum(known), Path("test.yaml")).mechanism
    point, _ = motion(model, 1.0, 1500)
    clean = seen(model, point)
    noisy = clean + 0.002 * np.random.default_rng(0).standard_normal(clean.shape)
    time = STEP * np.arange(len(clean))
    run = on_grid(MechanismRecording("made", time, noisy, np.zeros((len(time), 0))), model, STEP)
    content = pendulum(known)
    content["parameters"]["friction"]["value"] = 0.02
    estimator = MechanismEstimator(model_of(content, Path("test.yaml")).mechanism, [run], STEP, 1000.0)
    found = estimator.estimate()
    assert found.solution.converged
    one = found.estimates["friction"]
    assert one.value == pytest.approx(0.01, rel=0.02)
    assert one.interval[0] - 1e-4 < 0.01 < one.interval[1] + 1e-4


@pytest.mark.parametrize(
    ("sensor", "words"),
    [
        ({"expression": "point(block, 0, 0, 0)", "unit": "m"}, "is a vector, but a number is needed: use .x"),
        ({"expression": "point(arm, 0, 0, 0).x", "unit": "m"}, "unknown body 'arm'; valid: world, block"),
        ({"expression": "angle(slide)", "unit": "m"}, "calls angle; valid: point"),
        ({"expression": "position(slide) ** 2", "unit": "m"}, "operator other than"),
        (
            {"expression": "position(slide) + point(block, 0, 0, 0)", "unit": "m"},
            "combines a vector with a number",
        ),
        ({"expression": "__import__('os').x", "unit": "m"}, "calls __import__"),
        ({"expression": "position(slide) / 0", "unit": "m"}, "divides by zero"),
        ({"expression": "position(slide) / (friction - friction)", "unit": "m"}, "divides by zero"),
        ({"expression": "position(slide) / sin(0)", "unit": "m"}, "divides by zero"),
        ({"expression": "point(block, 0, 0, 0).x / (1 - 1)", "unit": "m"}, "divides by zero"),
        ({"expression": "position(slide)"}, "unit"),
        ({"expression": "position(slide)", "unit": "m", "joint": "slide"}, "either joint or expression"),
    ],
)
def test_expressions_that_are_none_are_refused(sensor, words):
    """In one line that says what is valid."""
    with pytest.raises(ConfigError, match="(?s)" + words.replace("(", r"\(").replace("*", r"\*")):
        model_of(changed(BLOCK, sensors={"place": sensor}), Path("test.yaml"))


def test_units_are_those_of_expressions_and_of_joints():
    """Pictures showed signals of expressions in the unit of the last joint."""
    of_joint = {"angle": {"joint": "shaft"}, "rate": {"joint": "shaft", "quantity": "velocity"}}
    model = model_of(pendulum(ALL | of_joint), Path("test.yaml")).mechanism
    found = {sensor.name: model.unit(sensor) for sensor in model.sensors}
    assert found == {name: sensor["unit"] for name, sensor in ALL.items()} | {"angle": "rad", "rate": "rad/s"}
