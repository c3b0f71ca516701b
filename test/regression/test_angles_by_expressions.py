"""`expression: position(hinge)` with `unit: rad` was no angle: where its recording wrapped, the fit saw jumps of a turn."""

from pathlib import Path

import jax
import numpy as np
import pytest

from mechanisms import BLOCK, changed
from stribeck.identify.mechanism import assembly
from stribeck.identify.mechanism.model_file import model_of
from stribeck.identify.mechanism.problem import EstimationProblem, GridSamples, Point
from stribeck.identify.mechanism.recordings import on_grid, read_mechanism_recordings

STEP, COUNT = 0.01, 200
ANGLE = np.linspace(0.0, 5.0 * np.pi, COUNT)
"""Two and a half turns."""


def wheel(sensor):
    """A wheel on a shaft, with a second one on top of it."""
    joint = {"kind": "revolute", "point": [0, 0, 0], "axis": [1, 0, 0]}
    return changed(
        BLOCK,
        bodies=dict.fromkeys(("wheel", "cap"), BLOCK["bodies"]["block"]),
        joints={
            "hinge": joint | {"parent": "world", "child": "wheel", "coulomb": "friction"},
            "top": joint | {"kind": "prismatic", "parent": "wheel", "child": "cap"},
        },
        sensors={"angle": sensor | {"deviation": 1e-3}, "place": {"joint": "top"}},
        data={"time": "time", "sensors": {"angle": "angle", "place": "place"}},
    )


BY_JOINT = {"joint": "hinge"}
BY_EXPRESSION = {"expression": "position(hinge)", "unit": "rad"}
SENSORS = [BY_JOINT, BY_EXPRESSION]


def read(folder, sensor):
    """Its problem, and a recording whose angle wraps at half a turn."""
    model = model_of(wheel(sensor), Path("test.yaml"))
    path = folder / "run.csv"
    wrapped = np.angle(np.exp(1j * ANGLE))
    rows = np.column_stack([STEP * np.arange(COUNT), wrapped, np.zeros(COUNT)])
    np.savetxt(path, rows, delimiter=",", header="time,angle,place", comments="")
    (recording,) = read_mechanism_recordings([path], model)
    return EstimationProblem(model.mechanism, STEP), recording


@pytest.mark.parametrize("sensor", SENSORS)
def test_recordings_go_on_beyond_a_turn(tmp_path, sensor):
    """As those of a joint."""
    _, recording = read(tmp_path, sensor)
    np.testing.assert_allclose(recording.signals[:, 0], ANGLE, atol=1e-9)


@pytest.mark.slow
def test_configurations_and_misfits_are_those_of_a_joints_sensor(tmp_path):
    """They follow the angle through all turns, and what is left of it is no turn."""
    found = {}
    for sensor in SENSORS:
        problem, recording = read(tmp_path, sensor)
        run = on_grid(recording, problem.mechanism, STEP)
        with jax.enable_x64():
            values = np.asarray(problem.base)
            first = np.arange(len(run.path)) == 0
            q = np.asarray(assembly.configurations(problem, values, run.path, first))
        point = Point(np.array([5.0]), q, np.zeros((len(q), 2, 6)), np.zeros((len(q), 2)))
        still = run.samples._replace(place=np.zeros_like(run.samples.place), value=run.path)
        found[sensor is BY_JOINT] = q, problem.signals(point, GridSamples(*still))[:-1]
    (joint, known), (expression, misfit) = found[True], found[False]
    half = np.sign(np.sum(joint[..., 3:] * expression[..., 3:], axis=-1, keepdims=True))
    np.testing.assert_allclose(half * expression[..., 3:], joint[..., 3:], atol=1e-6)
    assert np.abs(known).max() < 1e-5
    assert np.abs(misfit).max() < 1e-5


@pytest.mark.parametrize(
    ("expression", "unit", "angle"),
    [
        ("offset - position('hinge') + 0.5", "rad", True),
        ("2 * position(hinge)", "rad", False),
        ("position(hinge) + position(top)", "rad", False),
        ("position(hinge)", "1", False),
        ("offset", "rad", False),
    ],
)
def test_only_unscaled_sums_of_angles_are_angles(expression, unit, angle):
    """A turn of another joint, or a factor, would change them."""
    content = wheel({"expression": expression, "unit": unit})
    content["parameters"]["offset"] = {"value": 0.1, "unit": "rad", "free": False}
    mechanism = model_of(content, Path("test.yaml")).mechanism
    assert mechanism.is_angle(mechanism.sensors[0]) is angle
