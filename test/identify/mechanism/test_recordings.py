import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from bags import Bag, joint_state
from helpers import REPOSITORY, refusal
from stribeck.errors import ConfigError, RecordingError, TooShortError
from stribeck.identify.mechanism.dynamics import MultibodyDynamics
from stribeck.identify.mechanism.model_file import model_of, read_model
from stribeck.identify.mechanism.recordings import on_grid, read_mechanism_recordings


def written(path, rows, head="time,arm,pendulum,voltage"):
    path.write_text(head + "\n" + "\n".join(",".join(str(x) for x in row) for row in rows) + "\n")
    return path


def rows(count=200, h=0.01, **changes):
    time = h * np.arange(count)
    columns = {
        "time": time,
        "arm": 0.3 * np.sin(time),
        "pendulum": 0.2 * np.cos(time),
        "voltage": np.sin(3 * time),
    }
    columns |= changes
    return list(zip(*columns.values(), strict=True))


def read(path, note=lambda _: None):
    return read_mechanism_recordings([path], read_model("furuta"), note)[0]


def test_samples_come_back_on_the_grid(tmp_path):
    """Two samples a step: their mean, its place, and how many they are."""
    one = read(written(tmp_path / "a.csv", rows(h=0.005)))
    run = on_grid(one, read_model("furuta").mechanism, 0.01)
    time = 0.01 * np.arange(50) + 0.0025
    np.testing.assert_allclose(run.samples.value[:50, 0], 0.3 * np.sin(time), atol=1e-5)
    np.testing.assert_allclose(run.samples.place[:50, 0], 0.25)
    np.testing.assert_allclose(run.samples.count[:50, 0], 2.0)


def test_commands_are_held_and_samples_before_them_left_out(tmp_path):
    """A sparse command column: what drove the motor before the first command is not known."""
    sparse = ["" for _ in range(200)]
    sparse[40], sparse[100] = "1.5", "2.5"
    told = []
    one = read(written(tmp_path / "a.csv", rows(voltage=sparse)), told.append)
    assert len(one.time) == 160
    assert one.voltage[0, 0] == 1.5
    assert one.voltage[70, 0] == 2.5
    assert "40 samples before the first command" in told[0]
    run = on_grid(one, read_model("furuta").mechanism, 0.01)
    assert run.samples.voltage[60, 0] == pytest.approx(2.0)  # half a step before it changes, half after


@pytest.mark.parametrize(("first", "rate"), [(40, 0.0), (0, 2.0), (2, 2.0)])
def test_the_first_rate_is_that_before_the_first_command(tmp_path, first, rate):
    """At rest, then thrown at 2 rad/s by a command: rows before it tell the rate, without enough of them those after."""
    time = 0.002 * (np.arange(240) - first)
    thrown = np.where(time > 0.0, 2.0 * time + 15.0 * time**2, 0.0).round(9)
    still = np.zeros(240)
    columns = {
        "time": time,
        "arm": still,
        "pendulum": thrown,
        "voltage": ["" if t < 0.0 else "1" for t in time],
    }
    one = read(written(tmp_path / "a.csv", rows(240, **columns)))
    run = on_grid(one, read_model("furuta").mechanism, 0.01)
    np.testing.assert_allclose(run.start_rate, [0.0, rate], atol=1e-5)


def test_missing_samples_have_no_weight(tmp_path):
    """Empty fields and missing rows leave steps without samples, and the smooth path goes straight across."""
    some = rows(arm=["" if 50 <= k < 70 else 0.01 * k for k in range(200)])
    one = read(written(tmp_path / "a.csv", some[:100] + some[120:]))
    run = on_grid(one, read_model("furuta").mechanism, 0.01)
    assert run.samples.count[50:70, 0].sum() == 0
    assert run.samples.count[50:70, 1].min() == 1
    assert run.samples.count[100:120].sum() == 0
    np.testing.assert_allclose(run.path[105:115, 0], 0.01 * np.arange(105, 115), atol=1e-6)


def test_angles_that_count_turns_stay_so_across_a_gap(tmp_path):
    """An arm that turns by 5 rad while nothing is recorded."""
    turned = 0.05 * np.arange(300)
    some = rows(300, arm=turned)
    one = read(written(tmp_path / "a.csv", some[:100] + some[200:]))
    np.testing.assert_allclose(one.signals[:, 0], np.delete(turned, slice(100, 200)), atol=1e-9)
    run = on_grid(one, read_model("furuta").mechanism, 0.01)
    np.testing.assert_allclose(run.path[110:190, 0], turned[110:190], atol=1e-6)


def test_angles_shown_within_a_turn_are_made_continuous(tmp_path):
    """An encoder that starts over at π."""
    turned = 0.05 * np.arange(300)
    shown = (turned + np.pi) % (2.0 * np.pi) - np.pi
    one = read(written(tmp_path / "a.csv", rows(300, arm=shown)))
    np.testing.assert_allclose(one.signals[:, 0], turned, atol=1e-9)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"time": 0.01 * (np.arange(200) % 150)}, "time does not increase"),
        ({"arm": 57.3 * np.sin(3 * np.arange(200)) * 20}, "degrees"),
        ({"arm": [""] * 200}, "fewer than two values"),
        ({"voltage": [""] * 200}, "no value in any row"),
    ],
)
def test_recordings_that_say_something_impossible_are_refused(tmp_path, changes, said):
    """One clear line that names the file."""
    with pytest.raises(RecordingError, match=r"a\.csv") as error:
        read(written(tmp_path / "a.csv", rows(**changes)))
    assert said in str(error.value)


def test_unknown_columns_are_answered_with_those_that_exist(tmp_path):
    """The message lists the columns of the file."""
    path = written(tmp_path / "a.csv", rows(), head="t,arm,pendulum,voltage")
    with pytest.raises(RecordingError, match="no numeric column 'time'; found: t, arm, pendulum, voltage"):
        read(path)


def test_files_that_are_no_recordings_are_refused(tmp_path):
    """Short, ragged, missing, and of no known kind."""
    with pytest.raises(TooShortError):
        read(written(tmp_path / "short.csv", rows(5)))
    (tmp_path / "ragged.csv").write_text("time,arm\n0,1\n0.1\n")
    with pytest.raises(RecordingError, match="row 3 has 1 fields"):
        read(tmp_path / "ragged.csv")
    with pytest.raises(RecordingError, match="no such file"):
        read(tmp_path / "none.csv")
    (tmp_path / "words.csv").write_text("time,arm\nnow,here\nthen,there\n")
    with pytest.raises(RecordingError, match="no numeric column"):
        read(tmp_path / "words.csv")
    (tmp_path / "twice.csv").write_text("time,arm,arm\n0,1,1\n")
    with pytest.raises(RecordingError, match="two columns named 'arm'"):
        read(tmp_path / "twice.csv")
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(RecordingError, match=r"expected \.csv or \.txt or \.mat or \.npz or a bag"):
        read(Path(tmp_path / "x.json"))


def test_time_in_milliseconds_is_noticed(tmp_path):
    """Samples 10 s apart tell nothing at steps of 10 ms."""
    one = read(written(tmp_path / "a.csv", rows(time=10.0 * np.arange(200))))
    with pytest.raises(RecordingError, match=r"10 s apart, which is 1000 steps of 0\.01 s"):
        on_grid(one, read_model("furuta").mechanism, 0.01)


def test_files_of_spreadsheets_begin_with_a_mark(tmp_path):
    """A byte-order mark is no part of the first column's name."""
    path = written(tmp_path / "a.csv", rows())
    path.write_text(path.read_text(), encoding="utf-8-sig")
    assert len(read(path).time) == 200


def test_a_clamped_joint_has_its_brake_and_a_release_its_start(tmp_path):
    """The brake's torque is an input behind the voltages; the first row is what the model says, at rest."""
    text = yaml.safe_load(read_model("furuta").path.read_text())
    text["data"] |= {"clamped": {"held": {"shoulder": 2.0}}, "release": {"arm": 0.1, "pendulum": 0.7}}
    model = model_of(text, tmp_path / "m.yaml")
    dynamics = MultibodyDynamics(model.mechanism)
    for name, torque in (("held", 2.0), ("free", 0.0)):
        (one,) = read_mechanism_recordings([written(tmp_path / f"{name}.csv", rows())], model)
        run = on_grid(one, model.mechanism, 0.01)
        np.testing.assert_allclose(run.samples.voltage[:, 1], torque)
        np.testing.assert_allclose(run.path[0], [0.1, 0.7])
        np.testing.assert_allclose(run.start_rate, 0.0)
        assert run.released
        physical = model.mechanism.physical(model.mechanism.values())
        dry = dynamics._dry(physical, run.samples.voltage[0])
        np.testing.assert_allclose(np.array(dry) - np.asarray(physical.coulomb), [torque, 0.0], atol=1e-7)


def test_brakes_and_releases_of_unknown_joints_are_refused(tmp_path):
    """The message names what exists."""
    text = yaml.safe_load(read_model("furuta").path.read_text())
    wrong = text | {"data": text["data"] | {"clamped": {"held": {"hip": 2.0}}}}
    with pytest.raises(ConfigError, match="unknown 'hip'; valid: shoulder, elbow"):
        model_of(wrong, tmp_path / "m.yaml")
    wrong = text | {"data": text["data"] | {"release": {"arm": 0.1}}}
    with pytest.raises(ConfigError, match="pendulum"):
        model_of(wrong, tmp_path / "m.yaml")


def test_a_foreign_bag_is_read_from_its_topics_in_its_units(tmp_path):
    """Sensors of two publishers in degrees and counts, commands at a fifth of the rate in millivolts, no /joint_states."""
    bag, counts = Bag(), 4096 / (2.0 * np.pi)
    for k in range(200):
        time = 0.01 * k
        bag.add(time, "/encoders", joint_state(time, ["a", "b"], [np.rad2deg(0.3 * np.sin(time)), 7.0]))
        late = time + 0.004
        bag.add(late, "/encoders", joint_state(late, ["p"], 2048 + counts * 0.2 * np.cos(late)))
        if k % 5 == 0:
            bag.add(time, "/drive", joint_state(time, ["a"], 1e3 * np.sin(3.0 * time)))
    content = yaml.safe_load((REPOSITORY / "config" / "mechanisms" / "furuta.yaml").read_text())
    place = {"topic": "/encoders", "names": "name", "values": "position"}
    arm, pendulum = list(content["data"]["sensors"])
    (motor,) = content["data"]["motors"]
    content["data"]["sensors"] = {
        arm: {**place, "joint": "a", "unit": "deg"},
        pendulum: {**place, "joint": "p", "unit": "counts", "counts_per_turn": 4096, "offset": -2048},
    }
    content["data"]["motors"] = {motor: {**place, "topic": "/drive", "joint": "a", "unit": "mV"}}
    model = model_of(content, tmp_path / "furuta.yaml")
    whole = bag.write(tmp_path / "bag")
    (one,) = read_mechanism_recordings([whole], model)
    bag.bench(0.0, run_id="late")
    bag.text(2.1, json.dumps({"run_id": "late", "event": "end", "aborted": "joint states stopped"}))
    disturbed = bag.write(tmp_path / "disturbed")
    assert len(read_mechanism_recordings([whole, disturbed], model)) == 1
    refusal(
        lambda: read_mechanism_recordings([disturbed], model),
        "was disturbed (joint states stopped)",
        "record it again",
    )
    first = np.isfinite(one.signals[:, 0])
    assert first.sum() == 200
    np.testing.assert_allclose(one.signals[first, 0], 0.3 * np.sin(one.time[first]), atol=1e-9)
    np.testing.assert_allclose(one.signals[~first, 1], 0.2 * np.cos(one.time[~first]), atol=1e-9)
    held = np.sin(3.0 * 0.05 * np.floor(one.time / 0.05 + 1e-6))
    np.testing.assert_allclose(one.voltage[:, 0], held, atol=1e-9)
    content["data"]["sensors"][arm].pop("joint")
    with pytest.raises(ConfigError, match="joint is missing"):
        model_of(content, tmp_path / "furuta.yaml")
