"""What `setup-robot` finds in foreign recordings of a servo: units, signs, zeros, and what it cannot know."""

import numpy as np
import pytest

from bags import Bag, floats, header, message
from helpers import assert_clear
from stribeck.errors import ConfigError, RecordingError
from stribeck.files.actuators import load_actuator
from stribeck.files.commented_yaml import TODO, commented_yaml
from stribeck.recordings.bench import Benches
from stribeck.recordings.signals.sources import load_signals
from stribeck.survey.bench import survey_bench

TIME = np.arange(0.0, 6.0, 0.01)
GOAL = 1.2 * np.sin(2.0 * TIME) + 0.3 * np.sin(5.0 * TIME)
POSITION = np.interp(TIME - 0.06, TIME, GOAL)
VELOCITY = np.gradient(POSITION, TIME)
COUNTS = 4096 / (2.0 * np.pi)


def table(path, **columns):
    np.savetxt(
        path, np.column_stack(list(columns.values())), delimiter=",", header=",".join(columns), comments=""
    )
    return path


def signals_of(*paths, actuator=None, joint=None):
    found = survey_bench(paths, actuator, joint)
    return {one.key[1]: one.value for one in found.entries if one.key[0] == "signals"}, found


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (
            {"t": TIME, "q": POSITION, "q_des": GOAL, "qd": VELOCITY},
            {"time": "s", "position": "rad", "goal": "rad", "velocity": "rad/s"},
        ),
        (
            {"ms": 1e3 * TIME, "pos": np.rad2deg(POSITION), "target": GOAL, "speed": VELOCITY * 30.0 / np.pi},
            {"time": "ms", "position": "deg", "goal": "rad", "velocity": "rpm"},
        ),
        (
            {"stamp": 1e9 * TIME, "angle": 0.1 * np.rad2deg(POSITION), "goal": 0.1 * np.rad2deg(GOAL), "vel": 0.1 * VELOCITY},
            {"time": "ns", "position": "deg", "goal": "deg", "velocity": "rad/s"},
        ),
    ],
    ids=["SI", "degrees, rpm and a goal in radians", "small motion in degrees beside rad/s"],
)  # fmt: skip
def test_units(tmp_path, columns, expected):
    """By size, by the velocity, and by how far the position follows its goal."""
    signals, _ = signals_of(table(tmp_path / "run.csv", **columns))
    assert {name: signals[name]["unit"] for name in expected} == expected
    assert signals["torque_enable"] == {"constant": 1}


def test_counts_signs_and_zero(tmp_path):
    """Counts about the middle, a goal to the other side, and velocities in registers of the other sign."""
    columns = {"t": TIME, "present_position": np.round(2048 + COUNTS * POSITION)}
    columns |= {
        "goal_position": np.round(2048 - COUNTS * GOAL),
        "speed": np.round(-VELOCITY * 30.0 / np.pi / 0.229),
    }
    path = table(tmp_path / "run.csv", **columns)
    signals, _ = signals_of(path)
    encoder = {"unit": "counts", "counts_per_turn": 4096, "offset": -2048.0}
    assert signals["position"] == {"column": "present_position", **encoder}
    assert signals["goal"] == {"column": "goal_position", **encoder, "sign": -1}
    assert signals["velocity"] == {"column": "speed", "unit": "rpm", "scale": 0.229, "sign": -1}
    signals, _ = signals_of(path, actuator=load_actuator("ax12"))
    assert signals["position"]["counts_per_turn"] == pytest.approx(360.0 / 300.0 * 1023.0)
    assert signals["position"]["offset"] == -512.0


def test_a_pendulum_that_hangs_elsewhere(tmp_path):
    """With torque off it comes to rest at its zero."""
    on = (TIME < 4.0).astype(float)
    position = np.where(on, POSITION, 0.0) + 0.8
    columns = {"t": TIME, "position": position, "goal": GOAL + 0.8, "enabled": on}
    signals, found = signals_of(table(tmp_path / "m0.2_l0.1_kp400.csv", **columns))
    assert signals["position"]["offset"] == signals["goal"]["offset"] == -0.8
    assert signals["torque_enable"] == {"column": "enabled"}
    (values,) = [one.value for one in found.entries if one.key[0] == "runs"]
    assert values == {"mass": 0.2, "length": 0.1, "kp": 400.0}


def test_what_cannot_be_known_is_asked_for(tmp_path):
    """The file with open values is refused in one line that names the first; it serves as a table of signals then."""
    path = table(tmp_path / "run.csv", position=POSITION, velocity=VELOCITY)
    signals, found = signals_of(path)
    assert signals["time"] == signals["goal"] == TODO
    assert {"signals.time", "signals.goal", "defaults.mass", "defaults.kp"} <= set(found.open_keys)
    bench = tmp_path / "bench.yaml"
    bench.write_text(commented_yaml("", found.entries))
    with pytest.raises(ConfigError) as caught:
        Benches.read(bench)
    assert_clear(caught.value, "bench.yaml: signals: time is still TODO")
    text = bench.read_text().replace("time: TODO", "time: {rate: 100}")
    bench.write_text(text.replace("goal: TODO", "goal: {column: position}"))
    assert load_signals(bench)["time"][0].rate == 100.0


def test_a_controller_with_its_state(tmp_path):
    """The goal of a trajectory controller is found beside joint states with a second joint that stands still."""
    bag, empty = Bag(), np.zeros(0)
    for time, position, velocity, goal in zip(1.7e9 + TIME, POSITION, VELOCITY, GOAL, strict=True):
        state = {
            "name": ["wheel", "elbow"],
            "position": floats([0.3, position]),
            "velocity": floats([0.0, velocity]),
        }
        bag.add(
            time,
            "/joint_states",
            message("sensor_msgs/JointState", header=header(time), effort=empty, **state),
        )
        points = {}
        for name, values in (
            ("reference", [goal]),
            ("feedback", [position]),
            ("error", [0.0]),
            ("output", [0.0]),
        ):
            zero = message("builtin_interfaces/Duration", sec=0, nanosec=0)
            points[name] = message(
                "trajectory_msgs/JointTrajectoryPoint", positions=floats(values), velocities=empty, accelerations=empty,
                effort=empty, time_from_start=zero,
            )  # fmt: skip
        kind = "control_msgs/JointTrajectoryControllerState"
        bag.add(time, "/jtc/state", message(kind, header=header(time), joint_names=["elbow"], **points))
    bag.write(tmp_path / "bag")
    signals, found = signals_of(tmp_path / "bag")
    place = {"topic": "/jtc/state", "names": "joint_names", "values": "reference.positions"}
    assert signals["goal"] == {**place, "unit": "rad"}
    assert ("defaults", "joint") in [one.key for one in found.entries if one.value == "elbow"]
    with pytest.raises(RecordingError) as caught:
        survey_bench([tmp_path / "bag"], None, "knee")
    assert_clear(caught.value, "no joint 'knee'", "wheel, elbow")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"t": TIME, "position": 0.0 * TIME, "goal": GOAL}, ("does not change",)),
        ({"t": TIME, "alpha": POSITION, "goal": GOAL}, ("a name that means position", "alpha")),
    ],
)
def test_recordings_that_tell_nothing(tmp_path, columns, words):
    with pytest.raises(RecordingError) as caught:
        signals_of(table(tmp_path / "run.csv", **columns))
    assert_clear(caught.value, *words)
