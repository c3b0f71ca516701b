"""Units, signs and offsets of signals: the same in bags, text, MAT and NPZ files."""

from pathlib import Path

import numpy as np
import pytest

from bags import Bag, joint_state, multi_array
from helpers import refusal
from stribeck.errors import RecordingError
from stribeck.files.schema import convert
from stribeck.model.log import Setup
from stribeck.recordings.bags.bag import read_bag
from stribeck.recordings.bench import BenchDescription, Benches
from stribeck.recordings.signals.sources import SignalSource, load_signals
from stribeck.recordings.sources import read_recordings

BENCH = BenchDescription("run", "knee", "xl330", "unknown", Setup(0.5, 0.1, 0.02, 5.0, 400.0))
TIME = np.arange(60) / 30
ANGLE = 0.8 * np.sin(2.0 * TIME)
GOAL = 0.9 * np.sin(2.0 * TIME)


def table(folder: Path, text: str) -> dict:
    """A table of signals as a user writes it."""
    path = folder / "signals.yaml"
    path.write_text(text, encoding="utf-8")
    return load_signals(path)


def source(**keys) -> SignalSource:
    """A source that may be anywhere."""
    return convert({"column": "x", **keys}, SignalSource, "test")


@pytest.mark.parametrize(
    ("keys", "reading", "wanted"),
    [
        ({}, 2.0, 2.0),
        ({"unit": "deg"}, 90.0, np.pi / 2),
        ({"unit": "turn", "sign": -1}, 0.25, -np.pi / 2),
        ({"unit": "counts", "counts_per_turn": 4096, "offset": -2048}, 3072, np.pi / 2),
        ({"unit": "rpm", "scale": 0.229}, 100, 22.9 * 2 * np.pi / 60),
        ({"unit": "mA", "scale": 1.5}, 200.0, 0.3),
        ({"unit": "percent", "scale": 100 / 885}, -885, -1.0),
        ({"unit": "deg", "offset": 10.0, "sign": -1, "scale": 2.0}, 5.0, -np.deg2rad(20.0)),
    ],
)
def test_readings_become_si_units(keys, reading, wanted):
    """Sign, unit, scale and offset, as the documentation says: s u (k x + o)."""
    assert source(**keys).in_si([reading])[0] == pytest.approx(wanted, rel=1e-12)


def test_readings_without_conversion_stay_as_they_are():
    """To the last bit: no multiplication, no sum."""
    readings = np.array([-0.0, 0.1, 1e300, np.nan])
    assert source().in_si(readings).tobytes() == readings.tobytes()


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"unit": "counts"}, "counts_per_turn is required for the unit counts"),
        ({"unit": "deg", "counts_per_turn": 4096}, "counts_per_turn is required for the unit counts"),
        ({"sign": 2}, "sign"),
        ({"scale": "gain"}, "is the name of a variable"),
        ({"columns": [0, 2]}, "'column' cannot be combined with columns"),
        ({"topic": "/x"}, "also needs names, values"),
        ({"constant": 1.0, "unit": "deg"}, "'unit' cannot be combined with constant"),
    ],
)
def test_sources_that_contradict_themselves_are_refused(keys, said):
    """In one line, before anything is read."""
    keys = {**({} if {"topic", "constant"} & set(keys) else {"column": "x"}), **keys}
    with pytest.raises(Exception, match=said) as caught:
        convert(keys, SignalSource, "test")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "effort: {column: i, unit: mA}",
            "mA is not a unit of torque: give the drive gain as scale, in N m (or N) per A",
        ),
        ("supply_voltage: {column: i, unit: deg}", "expected V or mV, found 'deg'"),
        ("temperature: {column: i, unit: V}", "unit: expected none, found 'V'"),
        ("velocity: {unit: deg}", "velocity: topic, column, variable or constant missing"),
    ],
)
def test_units_of_another_quantity_are_refused(tmp_path, text, said):
    """A current is no torque without the gain of the drive."""
    lines = "position: {column: a}\ngoal: {column: g}\ntorque_enable: {constant: 1}\n"
    refusal(lambda: table(tmp_path, lines + text), tmp_path, said)


def foreign_bag(folder: Path) -> Path:
    """Encoder counts of one servo, commands at a third of the rate, on topics of its own; another driver beside it."""
    bag = Bag()
    for k, time in enumerate(TIME):
        counts = round(2048 + 4096 * ANGLE[k] / (2 * np.pi))
        bag.add(time, "/servo", joint_state(time, ["knee"], counts))
        bag.add(time + 0.004, "/servo", joint_state(time + 0.004, ["gripper"], 17.0))
        if k % 3 == 0:
            bag.add(time, "/targets", multi_array([-np.rad2deg(GOAL[k])]))
    return bag.write(folder / "bag")


FOREIGN = """
position: {topic: /servo, names: name, values: position, unit: counts, counts_per_turn: 4096, offset: -2048}
goal: {topic: /targets, values: data, order: [knee], unit: deg, sign: -1}
torque_enable: {constant: 1}
"""


def test_a_bag_in_counts_is_read_in_radians_with_commands_held(tmp_path):
    """Units and signs of a table count for bags; a second publisher of another joint does not matter."""
    (log,) = read_bag(foreign_bag(tmp_path), signals=table(tmp_path, FOREIGN), bench=BENCH)
    np.testing.assert_allclose(log.position.value, ANGLE, atol=np.pi / 4096)
    np.testing.assert_allclose(log.goal.value, GOAL[::3], atol=1e-12)
    held = log.goal.at(log.position.time)
    assert np.array_equal(held[3:6], np.repeat(log.goal.value[1], 3))


CSV = """
time: {column: t, unit: ms}
position: {column: "{joint}_angle", unit: deg}
goal: {column: target, unit: deg, sign: -1}
torque_enable: {column: enabled}
effort: {column: current, unit: mA, scale: 1.5}
temperature: {column: temp}
"""


def rows() -> dict[str, np.ndarray]:
    """The columns of a recording in degrees, with commands in every third row."""
    target = np.where(np.arange(60) % 3 == 0, -np.rad2deg(GOAL), np.nan)
    return {
        "t": 1e3 * TIME, "knee_angle": np.rad2deg(ANGLE), "target": target, "enabled": np.ones(60),
        "current": 100.0 * np.cos(TIME),
    }  # fmt: skip


def write_csv(path: Path, columns: dict[str, np.ndarray]) -> Path:
    """A text file with a header; NaN are empty fields."""
    lines = [",".join(columns)]
    lines += [
        ",".join("" if np.isnan(value) else repr(float(value)) for value in row)
        for row in zip(*columns.values(), strict=True)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ["csv", "npz", "mat", "parts"])
def test_a_table_in_degrees_is_read_as_a_run(tmp_path, kind):
    """One file of any kind, or one for each signal; empty fields of a command are no samples, optional signals may lack."""
    folder = tmp_path / "set" / "one"
    folder.mkdir(parents=True)
    columns = rows()
    text = CSV
    if kind == "csv":
        write_csv(folder / "run.csv", columns)
    elif kind == "npz":
        np.savez(folder / "run.npz", **columns)
    elif kind == "mat":
        pytest.importorskip("scipy.io").savemat(folder / "run.mat", columns)
    else:
        text = text.replace("{column: target", "{file: goal.csv, column: target")
        for name in ("position", "torque_enable", "effort", "temperature"):
            text = text.replace(f"{name}: {{", f"{name}: {{file: state.csv, ")
        write_csv(folder / "state.csv", {k: v for k, v in columns.items() if k != "target"})
        write_csv(folder / "goal.csv", {k: v[::3] for k, v in columns.items() if k in ("t", "target")})
    if kind in ("npz", "mat"):
        text = text.replace("column:", "variable:").replace('"{joint}_angle"', "knee_angle")
    (log,) = read_recordings(tmp_path / "set", signals=table(tmp_path, text), bench=BENCH)
    np.testing.assert_allclose(log.position.value, ANGLE, atol=1e-12)
    np.testing.assert_allclose(log.position.time, TIME, atol=1e-12)
    np.testing.assert_allclose(log.goal.value, GOAL[::3], atol=1e-12)
    np.testing.assert_allclose(log.goal.time, TIME[::3], atol=1e-12)
    np.testing.assert_allclose(log.effort.value, 0.15 * np.cos(TIME), atol=1e-12)
    np.testing.assert_allclose(log.velocity.value, np.gradient(ANGLE, TIME), atol=1e-9)
    assert log.temperature is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("{joint}_angle", "angle"), "no numeric column angle for position; found: t, knee_angle"),
        (("{joint}_angle", "{joint}_pos"), "{joint}_pos (joint 'knee')"),
        (("time: {column: t, unit: ms}", ""), "the column of the time is not known"),
        (("time: {column: t,", "time: {column: s,"), "no numeric column s for time; found: t"),
        (("position: {column", "position: {topic: /x, names: n, values"), "has no column for position"),
    ],
)
def test_columns_that_are_not_there_are_answered_with_those_that_are(tmp_path, change, said):
    """One line that names the file and the signal."""
    path = write_csv(tmp_path / "run.csv", rows())
    signals = table(tmp_path, CSV.replace(*change))
    refusal(lambda: read_recordings(path, signals=signals, bench=BENCH), path, said)


def test_a_table_needs_signals_and_a_bench(tmp_path):
    """Both are asked for, by name of the option."""
    path = write_csv(tmp_path / "run.csv", rows())
    refusal(lambda: read_recordings(path), path, "`signals`")
    refusal(lambda: read_recordings(path, signals=table(tmp_path, CSV)), path, "`bench`")


def test_headers_that_a_driver_leaves_empty_are_replaced_by_log_times(tmp_path):
    """Stamps of zero throughout are none."""
    bag = Bag()
    for k, time in enumerate(TIME):
        bag.add(50.0 + time, "/servo", joint_state(0.0, ["knee"], ANGLE[k]))
        bag.add(50.0 + time, "/targets", multi_array([GOAL[k]]))
    text = "position: {topic: /servo, names: name, values: position}\n" + FOREIGN.split("\n", 2)[2]
    (log,) = read_bag(
        bag.write(tmp_path / "bag"),
        signals=table(tmp_path, text.replace(", unit: deg, sign: -1", "")),
        bench=BENCH,
    )
    np.testing.assert_allclose(log.position.time, 50.0 + TIME)
    np.testing.assert_allclose(log.goal.time, 50.0 + TIME)


def test_log_times_are_shifted_to_the_clock_of_the_stamps(tmp_path):
    """A simulation's stamps begin at zero, its log times decades later; commands without header follow the stamps."""
    bag = Bag()
    for k, time in enumerate(TIME):
        bag.add(1.7e9 + time, "/servo", joint_state(10.0 + time, ["knee"], ANGLE[k]))
        bag.add(1.7e9 + time, "/targets", multi_array([GOAL[k]]))
    text = "position: {topic: /servo, names: name, values: position}\n" + FOREIGN.split("\n", 2)[2]
    (log,) = read_bag(
        bag.write(tmp_path / "bag"),
        signals=table(tmp_path, text.replace(", unit: deg, sign: -1", "")),
        bench=BENCH,
    )
    np.testing.assert_allclose(log.goal.time, 10.0 + TIME, atol=1e-5)


def test_the_only_joint_of_a_bag_needs_no_name(tmp_path):
    """Of several one has to be named; the answer lists them."""
    values = {
        "mass": 0.5,
        "length": 0.1,
        "arm_mass": 0.02,
        "supply_voltage": 5.0,
        "kp": 400.0,
        "actuator": "xl330",
    }
    path = tmp_path / "bench.yaml"
    path.write_text("defaults:\n" + "".join(f"  {key}: {value}\n" for key, value in values.items()))
    benches, signals = Benches.read(path), table(tmp_path, FOREIGN)
    bag = foreign_bag(tmp_path)
    refusal(lambda: read_bag(bag, signals=signals, bench=benches), bag, "knee, gripper", "`joint`")
    assert len(read_bag(bag, signals=signals, bench=benches, joint="knee")) == 1
    lone = Bag()
    for time in TIME:
        lone.add(time, "/servo", joint_state(time, ["knee"], 2048))
        lone.add(time, "/targets", multi_array([0.0]))
    assert len(read_bag(lone.write(tmp_path / "lone"), signals=signals, bench=benches)) == 1


def test_a_joint_that_is_not_there_is_answered_with_those_that_are(tmp_path):
    """The joints of each signal that is missing."""
    path, signals = foreign_bag(tmp_path), table(tmp_path, FOREIGN)
    other = BenchDescription("run", "ankle", "xl330", "unknown", BENCH.setup)
    refusal(
        lambda: read_bag(path, signals=signals, bench=other),
        path, "position, goal", "'ankle'", "position is recorded for knee, gripper", "goal is recorded for knee",
    )  # fmt: skip


def test_a_single_velocity_that_is_nan_leaves_the_others_measured(tmp_path):
    """The slope of the position stands in for it alone."""
    bag = Bag()
    bag.bench(0.0, joint="knee")
    for k, time in enumerate(TIME):
        velocity = np.nan if k == 20 else 1.6 * np.cos(2.0 * time)
        bag.add(time, "/joint_states", joint_state(time, ["knee"], ANGLE[k], velocity))
        bag.add(time, "/joint_commands", joint_state(time, ["knee"], GOAL[k]))
        bag.add(time, "/flags", multi_array([1.0]))
    text = """
position: {topic: /joint_states, names: name, values: position}
velocity: {topic: /joint_states, names: name, values: velocity}
goal: {topic: /joint_commands, names: name, values: position}
torque_enable: {constant: 1}
"""
    (log,) = read_bag(bag.write(tmp_path / "bag"), signals=table(tmp_path, text))
    np.testing.assert_array_equal(np.delete(log.velocity.value, 20), np.delete(1.6 * np.cos(2.0 * TIME), 20))
    assert log.velocity.value[20] == pytest.approx(1.6 * np.cos(2.0 * TIME[20]), abs=0.01)


def test_values_by_joint_suit_no_single_servo(tmp_path):
    """They are for arms."""
    text = FOREIGN.replace("offset: -2048", "offset: [0, 1]")
    path = foreign_bag(tmp_path)
    with pytest.raises(
        RecordingError, match="offset: found 2 values, expected one for all joints, or one for each of 1"
    ):
        read_bag(path, signals=table(tmp_path, text), bench=BENCH)
