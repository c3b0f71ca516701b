"""What to excite, from YAML: taken over exactly, or refused with the place and the reason."""

import copy
import math

import numpy as np
import pytest
import yaml

from helpers import refusal
from stribeck.files.schema import convert
from stribeck.session.config import RobotFile, session_of
from stribeck.session.excitation_file import ExcitationFile, write_excitation
from stribeck.session.fourier import FourierTrajectory, rest_basis

GOOD = {
    "joints": {
        "elbow": {
            "position_limits": [-1.9, 1.8],
            "limits": {
                "velocity": 12.5,
                "acceleration": math.inf,
                "following_error": 1.0,
                "temperature": 60,
            },
            "bench": {"mass": 0.1, "length": 0.2, "arm_mass": 0.02},
            "center": 0.1,
            "scale": -0.5,
            "actuator": "xl330",
        }
    },
    "plays": {"trajectories": ["sin_sin", "steps"], "gains": [100, 200], "repetitions": 2},
    "soft_start": {"speed": 0.7, "acceleration": 3},
    "output": "bags",
}


def read(content, **options):
    """The session of a file's content."""
    file = convert({**content, **options}, RobotFile, "record.yaml")
    return session_of(file, file.joints, [joint.actuator for joint in file.joints.values()], "record.yaml")


def changed(path, value):
    """The good file with one value changed, or taken out where it is ``...``."""
    content = copy.deepcopy(GOOD)
    place = content
    for key in path[:-1]:
        place = place[key]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return content


def test_a_session_is_taken_over_exactly():
    """Every number of the file arrives where it belongs."""
    found = read(GOOD, position_margin=0.15, state_timeout=0.4)
    (joint,) = found.joints
    assert (joint.name, joint.center, joint.scale) == ("elbow", 0.1, -0.5)
    limits = joint.limits
    assert (limits.position_lower, limits.position_upper, limits.velocity) == (-1.9, 1.8, 12.5)
    assert math.isinf(limits.acceleration)
    assert (limits.following_error, limits.temperature) == (1.0, 60.0)
    assert tuple(found.bench_joints[0].load) == (0.1, 0.2, 0.02)
    assert [(p.trajectory.name, p.kp) for p in found.plays] == [
        ("sin_sin", 100.0),
        ("steps", 100.0),
        ("sin_sin", 200.0),
        ("steps", 200.0),
    ] * 2
    assert (found.options.soft_speed, found.options.soft_acceleration) == (0.7, 3.0)
    assert (found.options.position_margin, found.options.state_timeout) == (0.15, 0.4)


def test_infinity_is_a_limit_that_yaml_can_write():
    """``.inf`` admits everything."""
    content = changed(["joints", "elbow", "limits"], yaml.safe_load("{velocity: .inf, acceleration: .inf}"))
    assert math.isinf(read(content).joints[0].limits.velocity)


ELBOW = ["joints", "elbow"]


@pytest.mark.parametrize(
    ("path", "value", "parts"),
    [
        (["joints"], [], ("joints", "named values")),
        (ELBOW, 3, ("elbow", "named values")),
        ([*ELBOW, "limits"], ..., ("elbow", "limits missing")),
        ([*ELBOW, "bench"], ..., ("elbow", "bench missing")),
        ([*ELBOW, "position_limits"], ..., ("position_limits missing",)),
        ([*ELBOW, "position_limits"], [1.0], ("position_limits", "2 values")),
        ([*ELBOW, "position_limits"], [1.0, -1.0], ("elbow", "not below")),
        ([*ELBOW, "limits", "velocity"], ..., ("velocity missing",)),
        ([*ELBOW, "limits", "velocity"], math.nan, ("velocity", "finite")),
        ([*ELBOW, "limits", "velocity"], -1.0, ("elbow", "velocity", "above 0")),
        ([*ELBOW, "limits", "jerk"], 1.0, ("unknown key 'jerk'", "acceleration")),
        ([*ELBOW, "bench", "mass"], ..., ("bench", "mass missing")),
        ([*ELBOW, "bench", "mass"], -0.1, ("bench", "mass", "positive")),
        ([*ELBOW, "bench", "load"], 1.0, ("unknown key 'load'",)),
        ([*ELBOW, "center"], "up", ("center", "number")),
        ([*ELBOW, "scale"], 0, ("elbow", "scale", "zero")),
        (["plays", "trajectories"], ["sin_cos"], ("plays", "sin_cos", "sin_sin")),
        (["plays", "trajectories"], "sin_sin", ("trajectories", "list")),
        (["plays", "trajectories"], [], ("nothing to execute", "trajectory")),
        (["plays", "trajectories"], [1], ("trajectories", "text")),
        (["plays", "gains"], [], ("nothing to execute", "gain")),
        (["plays", "gains"], ["high"], ("gains", "number")),
        (["plays", "gains"], [0], ("gain", "positive")),
        (["plays", "repetitions"], 1.5, ("repetitions", "whole")),
        (["plays", "repetitions"], 0, ("repetitions", "at least 1")),
        (["plays", "pause"], 1, ("unknown key 'pause'",)),
        (["soft_start", "speed"], 0, ("soft_start", "speed", "above 0")),
        (["soft_start", "jerk"], 1, ("unknown key 'jerk'",)),
    ],
)
def test_what_is_not_valid_is_refused_with_its_place(path, value, parts):
    """Missing, unknown and impossible values, one line each."""
    refusal(lambda: read(changed(path, value)), *parts)


@pytest.mark.parametrize("value", [0, -0.1, "soon", math.nan])
def test_a_state_timeout_that_is_none_is_refused(value):
    """By its name."""
    refusal(lambda: read(GOOD, state_timeout=value), "record.yaml: state_timeout")


def test_a_file_of_excite_is_a_trajectory(tmp_path):
    """Its goals are the joint's, under the name of the file; a file that is not there is named."""
    z = 0.3 * np.random.default_rng(0).normal(size=(1, 5))
    motion = FourierTrajectory.from_coefficients(("elbow",), 3.0, z @ rest_basis(3).T)
    path = tmp_path / "best.yaml"
    write_excitation(path, ExcitationFile("arm", motion))
    found = read(changed(["plays", "trajectories"], ["sin_sin", str(path)]))
    trajectory = found.plays[1].trajectory
    assert (trajectory.name, trajectory.duration) == ("best", 3.0)
    time = np.linspace(0.0, 3.0, 7)
    np.testing.assert_array_equal(trajectory.joint_goals["elbow"](time), motion.states(time)[0][:, 0])
    gone = changed(["plays", "trajectories"], [str(tmp_path / "gone.yaml")])
    refusal(lambda: read(gone), "gone.yaml", "no such file")
