"""`identify-arm` on tables made wrong in ways that users do: the cause, named, in one line, with a machine's file and without."""

import numpy as np
import pytest

from moving_arms import ROBOT, arm, recording
from stribeck.cli.main import main

DEGREE = np.pi / 180.0


@pytest.fixture(scope="module")
def signals(tmp_path_factory):
    run = recording(arm(tmp_path_factory.mktemp("true")), noise=0.1)
    return run.time, run.position, run.velocity, run.effort


def turned(values, joint):
    other = values.copy()
    other[:, joint] *= -1.0
    return other


def rows(signals, *parts):
    """Rows of some parts of a recording, one after the other."""
    return tuple(np.concatenate([values[part] for part in parts]) for values in signals)


CASES = {
    "position in degrees": (lambda t, q, v, e: (t, q / DEGREE, v, e), "degrees", "positions are in degrees"),
    "both in degrees": (lambda t, q, v, e: (t, q / DEGREE, v / DEGREE, e), "degrees", "positions are in degrees"),
    "velocity in degrees": (lambda t, q, v, e: (t, q, v / DEGREE, e), "in deg/s", "in deg/s"),
    "velocity in rpm": (lambda t, q, v, e: (t, q, v * 30.0 / np.pi, e), "in rpm", "in rpm"),
    "velocity of the motor": (lambda t, q, v, e: (t, q, 100.0 * v, e), "motor side", "motor side"),
    "a velocity of the other sign": (lambda t, q, v, e: (t, q, turned(v, 1), e), "wrong sign", "wrong sign"),
    "velocity and position exchanged": (lambda t, q, v, e: (t, v, q, e), "one of them is wrong", "one of them is wrong"),
    "currents": (lambda t, q, v, e: (t, q, v, e / 12.0), "a current", "currents or torques of the motors"),
    "torque in N mm": (lambda t, q, v, e: (t, q, v, 1e3 * e), "N mm", "efforts are taken as mN m"),
    "torque of the motor": (lambda t, q, v, e: (t, q, v, e / 100.0), "torques of the motors", "torques of the motors"),
    "position of the motor": (lambda t, q, v, e: (t, 100.0 * q, 100.0 * v, e / 100.0), "that of the motor", "torques of the motors"),
    "torques of the other sign": (lambda t, q, v, e: (t, q, v, -e), "has the opposite sign to gravity", "is opposite to that in the URDF"),
    "a torque of the other sign": (lambda t, q, v, e: (t, q, v, turned(e, 1)), "effort of shoulder has the opposite sign", "effort of shoulder"),
    "doubled time": (lambda t, q, v, e: (2.0 * t, q, v, e), "doubled", "doubled"),
    "halved time": (lambda t, q, v, e: (0.5 * t, q, v, e), "halved", "halved"),
    "time in milliseconds": (lambda t, q, v, e: (1e3 * t, q, v, e), "milliseconds", "milliseconds"),
    "two tests in one file": (
        lambda *s: rows(s, slice(0, 3000), slice(0, 2500)), "contains two tests", "contains two tests"
    ),
    "rows out of order": (lambda *s: rows(s, slice(0, 500), slice(400, None)), "not in the order of time", "not in the order of time"),
    "repeated rows": (
        lambda *s: tuple(np.repeat(x[::2], 2, axis=0) for x in s), "rows have the same time as the row before", "rows have the same time as"
    ),
    "a gap": (lambda *s: rows(s, slice(0, 2000), slice(3000, None)), "has gaps", "has gaps"),
    "a still joint": (
        lambda t, q, v, e: (t, q * [0, 1, 1], v * [0, 1, 1], e), "base is not identified: it stays", "base is ignored: it is at rest"
    ),
    "no torque": (lambda t, q, v, e: (t, q, v, 0.0 * e), "torques are zero", "it has no effort"),
    "the same torque in all rows": (lambda t, q, v, e: (t, q, v, 0.0 * e + 1.0), "the same in all rows", "the same in all rows"),
    "a torque that is missing": (
        lambda t, q, v, e: (t, q, v, np.where(np.arange(len(t))[:, None] == 9, np.nan, e)), "not finite in row 9", "not finite in row 9"
    ),
    "too short": (lambda *s: rows(s, slice(0, 40)), "40 samples are too few", "expected 2 s or more"),
}  # fmt: skip


@pytest.mark.parametrize("way", ["described", "surveyed"])
@pytest.mark.parametrize("case", CASES)
def test_the_cause_is_named(case, way, signals, tmp_path, capsys):
    """An error is one line and exit code 1; what can be used is used with a word, or is no usable result."""
    arm(tmp_path)
    change, described, surveyed = CASES[case]
    changed = change(*signals)
    table = np.column_stack(changed)
    names = ["t", *(f"{signal}{k}" for signal in ("pos", "vel", "tau") for k in range(3))]
    path = tmp_path / "run.csv"
    np.savetxt(path, table, delimiter=",", fmt="%.9g", header=",".join(names), comments="")
    words = ["--urdf", str(tmp_path / "arm.urdf"), "--output", str(tmp_path / "out")]
    if way == "described":
        (tmp_path / "robot.yaml").write_text(ROBOT)
        words = ["--config", str(tmp_path / "robot.yaml")]
    code = main(["identify-arm", *words, "--data", str(path), "--fits", "ols", "--quiet"])
    said = capsys.readouterr()
    lines = said.err.strip().splitlines()
    assert any(
        (described if way == "described" else surveyed) in line for line in [*lines, *said.out.splitlines()]
    )
    if code:
        assert code == 1
        assert sum("warning" not in line for line in lines) == 1
