"""The table of signals: which topic and field of a bag holds what."""

from pathlib import Path

import numpy as np
import pytest

from bags import Bag, controller_state, diagnostics, joint_state, message, multi_array, one_run
from helpers import REPOSITORY, refusal
from stribeck.model.log import Setup
from stribeck.recordings.bags.bag import BenchDescription, read_bag
from stribeck.recordings.signals.sources import load_signals

NAMES = ["wrist", "shoulder"]

CONTROLLER = """
position: {topic: /arm_controller/controller_state, names: joint_names, values: feedback.positions}
goal: {topic: /arm_controller/controller_state, names: joint_names, values: reference.positions}
torque_enable: {constant: 1}
"""


def table(folder: Path, text: str) -> Path:
    """A table as a user writes it."""
    path = folder / "signals.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_our_own_table_says_what_the_contract_says():
    """The file in config/ is what is read without --signals."""
    assert load_signals() == load_signals(REPOSITORY / "config" / "signals.yaml")
    assert load_signals()["position"][0].topic == "/joint_states"
    assert [source.topic for source in load_signals()["pwm"]] == ["/dynamic_joint_states", "/servo_status"]


def test_telemetry_may_come_as_a_diagnostic_array(tmp_path):
    """Where control_msgs is not installed, the same names and values go out on /servo_status."""
    one = read_bag(one_run(telemetry="dynamic").write(tmp_path / "dynamic"))[0]
    other = read_bag(one_run(telemetry="diagnostic").write(tmp_path / "diagnostic"))[0]
    for name in ("torque_enable", "supply_voltage", "temperature", "pwm"):
        assert np.array_equal(getattr(one, name).value, getattr(other, name).value)
        assert np.array_equal(getattr(one, name).time, getattr(other, name).time)


def test_floats_in_a_diagnostic_array_come_back_to_the_last_bit(tmp_path):
    """They travel as texts by repr; a text that is no number counts as not told."""
    bag = Bag()
    bag.bench(0.0)
    duties = np.random.default_rng(0).uniform(-1.0, 1.0, 30)
    for k, duty in enumerate(duties):
        time = k / 20
        bag.add(time, "/joint_states", joint_state(time, ["shoulder"], 0.1 * k, 0.0))
        bag.add(time, "/joint_commands", joint_state(time, ["shoulder"], 0.1 * k))
        told = {"torque_enable": 1, "pwm": repr(float(duty)), "temperature": "unknown", "firmware": "v48"}
        bag.add(time, "/servo_status", diagnostics(time, "shoulder", **told))
    (log,) = read_bag(bag.write(tmp_path / "bag"))
    assert log.pwm.value.tolist() == duties.tolist()
    assert log.temperature is None


def test_the_first_source_that_the_bag_has_counts(tmp_path):
    """A bag with both kinds of telemetry is read from the preferred one alone."""
    bag = one_run(telemetry="dynamic")
    for k in range(30):
        bag.add(k / 20, "/servo_status", diagnostics(k / 20, "shoulder", torque_enable=0, voltage=9.0))
    (log,) = read_bag(bag.write(tmp_path / "bag"))
    assert set(log.torque_enable.value) == {1.0}
    assert set(log.supply_voltage.value) == {5.0}


def controller_bag(folder: Path) -> Path:
    """A bag as ros2_control records it: one topic for goal and measurement, no telemetry."""
    bag = Bag()
    bag.bench(0.0)
    for k in range(40):
        time = k / 20
        bag.add(
            time,
            "/arm_controller/controller_state",
            controller_state(time, NAMES, [7.0, time], [8.0, 0.5 * time]),
        )
    return bag.write(folder / "bag")


def test_a_controllers_state_is_read_without_conversion(tmp_path):
    """Fields inside fields, a type that only the bag defines, and a flag that nobody recorded."""
    signals = load_signals(table(tmp_path, CONTROLLER))
    (log,) = read_bag(controller_bag(tmp_path), signals=signals)
    np.testing.assert_allclose(log.goal.value, log.goal.time, atol=1e-12)
    np.testing.assert_allclose(log.position.value, 0.5 * log.position.time, atol=1e-12)
    np.testing.assert_allclose(log.velocity.value, 0.5, atol=1e-8)
    assert log.torque_enable.value.tolist() == [1.0]
    assert log.torque_enable.at(log.position.time).tolist() == [1.0] * 40


def test_messages_without_names_are_read_by_the_order_of_their_joints(tmp_path):
    """Bare arrays have no header either: their time is the log time."""
    text = """
position: {topic: /joint_states, names: name, values: position}
goal: {topic: /goals, values: data, order: [wrist, shoulder]}
torque_enable: {topic: /enabled, values: data, order: [shoulder]}
supply_voltage: {constant: 6.5}
"""
    bag = Bag()
    bag.bench(0.0)
    for k in range(40):
        time = k / 20
        bag.add(time, "/joint_states", joint_state(time, NAMES, [9.0, time]))
        bag.add(time + 0.01, "/goals", multi_array([3.0, 2.0 * time]))
        bag.add(time, "/enabled", multi_array([1.0]))
    (log,) = read_bag(bag.write(tmp_path / "bag"), signals=load_signals(table(tmp_path, text)))
    np.testing.assert_allclose(log.goal.value, 2.0 * np.arange(40) / 20)
    np.testing.assert_allclose(log.goal.time, np.arange(40) / 20 + 0.01)
    assert set(log.torque_enable.value) == {1.0}
    assert log.supply_voltage.value.tolist() == [6.5]


def test_optional_signals_may_be_left_out_of_a_table(tmp_path):
    """What the table does not name is not looked for."""
    text = """
position: {topic: /joint_states, names: name, values: position}
goal: {topic: /joint_commands, names: name, values: position}
torque_enable: {topic: /dynamic_joint_states, interface: torque_enable}
"""
    (log,) = read_bag(one_run().write(tmp_path / "bag"), signals=load_signals(table(tmp_path, text)))
    assert (log.pwm, log.supply_voltage) == (None, None)
    np.testing.assert_allclose(log.velocity.value, 1.0, atol=1e-8)  # the slope, not the topic's number


VALID = {
    "position": "{topic: /p, names: name, values: position}",
    "goal": "{topic: /g, names: name, values: position}",
    "torque_enable": "{constant: 1}",
}


def with_lines(**changes: str | None) -> str:
    """A valid table with lines changed; ``None`` leaves one out."""
    return "".join(f"{key}: {value}\n" for key, value in {**VALID, **changes}.items() if value is not None)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["expected named values", "nothing"]),
        ("[position]", ["expected named values", "a list"]),
        (with_lines(goal=None), ["goal", "missing"]),
        (with_lines(torqe="{constant: 1}"), ["'torqe'", "torque_enable", "supply_voltage"]),
        (with_lines() + "goal: {constant: 1}\n", ["'goal'", "twice"]),
        (with_lines(goal="{topic: /g, names: name}"), ["goal", "needs values"]),
        (with_lines(goal="{topic: /g, names: name, values: x, sing: -1}"), ["goal", "'sing'"]),
        (with_lines(goal="{topic: /g, interface: x, values: y}"), ["goal", "'values'"]),
        (with_lines(goal="{topic: /g, values: x, order: shoulder}"), ["goal", "order", "list"]),
        (
            with_lines(goal="{topic: /g, values: x, order: [1, 2]}"),
            ["goal", "order[0]: expected text, found 1"],
        ),
        (with_lines(goal="{constant: on}"), ["goal", "expected a number"]),
        (with_lines(goal="{constant: .nan}"), ["goal", "finite"]),
        (with_lines(goal="{constant: 1, topic: /g}"), ["goal", "'topic'"]),
        (with_lines(goal="/joint_commands"), ["goal", "expected named values"]),
        (with_lines(goal="{topic: 3, names: name, values: x}"), ["goal", "topic", "expected text"]),
        ("position: {", ["not valid YAML"]),
        ("position: !!python/object/apply:os.system ['true']", ["not valid YAML"]),
    ],
)
def test_tables_that_are_not_valid_are_refused(tmp_path, text, parts):
    """The message names the file and the signal, and says what is wrong."""
    path = table(tmp_path, text)
    refusal(lambda: load_signals(path), path, *parts)


def test_a_table_that_is_not_there_is_refused(tmp_path):
    """The message names it."""
    refusal(lambda: load_signals(tmp_path / "none.yaml"), tmp_path / "none.yaml", "no such file")


@pytest.mark.parametrize(
    "position",
    [
        "{topic: /joint_states, names: name, values: positions}",  # a typing error
        "{topic: /joint_states, names: joint_names, values: position}",
        "{topic: /joint_states, names: name, values: header}",  # no numbers
        "{topic: /joint_states, names: name, values: name}",  # no numbers either
        "{topic: /joint_states, names: name, values: header.stamp.sec}",  # one number, not one per joint
        "{topic: /joint_states, interface: position}",  # not a message with interfaces
        "{topic: /bench, names: name, values: data}",
    ],
)
def test_a_table_that_does_not_fit_the_messages_is_refused(tmp_path, position):
    """Fields that a message does not have, or that hold no numbers: the message names the bag."""
    signals = load_signals(table(tmp_path, with_lines(position=position, goal="{constant: 0}")))
    path = one_run().write(tmp_path / "bag")
    refusal(lambda: read_bag(path, signals=signals), path)


def test_a_signal_on_messages_without_header_needs_an_order(tmp_path):
    """Their time is not known otherwise; the message names the bag."""
    signals = load_signals(table(tmp_path, with_lines(position="{topic: /p, names: data, values: data}")))
    bag = Bag()
    bag.bench(0.0)
    bag.samples(0.0, 2.0)
    for k in range(40):
        bag.add(k / 20, "/p", multi_array([0.0]))
        bag.add(k / 20, "/g", joint_state(k / 20, ["shoulder"], 0.0))
    path = bag.write(tmp_path / "bag")
    refusal(lambda: read_bag(path, signals=signals), path)


def test_a_constant_cannot_stand_for_the_position(tmp_path):
    """Without one measured signal there is no time either."""
    signals = load_signals(table(tmp_path, with_lines(position="{constant: 0}", goal="{constant: 0}")))
    path = one_run().write(tmp_path / "bag")
    refusal(lambda: read_bag(path, signals=signals), path, "position")


def test_a_robots_own_bag_needs_a_table_and_a_description_only(tmp_path):
    """No /bench, topics of its own: nothing has to be converted."""
    bag = Bag()
    for k in range(40):
        time = k / 20
        bag.add(
            time,
            "/arm_controller/controller_state",
            controller_state(time, NAMES, [7.0, time], [8.0, 0.5 * time]),
        )
        bag.add(time, "/chatter", message("std_msgs/String", data="hello"))
    path = bag.write(tmp_path / "bag")
    told = BenchDescription("told", "wrist", "xl330", "unknown", Setup(1.0, 0.2, 0.1, 7.4, 100.0))
    (log,) = read_bag(path, signals=load_signals(table(tmp_path, CONTROLLER)), bench=told)
    assert (set(log.goal.value), set(log.position.value)) == ({7.0}, {8.0})
