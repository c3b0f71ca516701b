"""Which messages of a bag make which run."""

import json

import numpy as np
import pytest

from bags import BENCH, Bag, dynamic_joint_state, joint_state, one_run
from helpers import refusal
from stribeck.errors import AbortedRunError
from stribeck.model.log import Setup
from stribeck.recordings.bags.bag import BenchDescription, read_bag
from stribeck.recordings.sources import read_recordings


def test_a_run_lasts_from_its_bench_message_to_its_end(tmp_path):
    """What was recorded before and after belongs to no run."""
    bag = Bag()
    bag.samples(0.0, 1.0)
    bag.bench(1.0)
    bag.samples(1.0, 3.0)
    bag.end(2.99)
    bag.samples(3.0, 4.5)
    (log,) = read_bag(bag.write(tmp_path / "bag"))
    assert (log.position.time[0], log.position.time[-1]) == pytest.approx((1.0, 2.95), abs=1e-9)
    assert len(log.position.time) == len(log.goal.time) == len(log.pwm.time) == 40


def test_a_log_has_what_the_bench_message_and_the_topics_say(tmp_path):
    """Names, set-up and every signal."""
    (log,) = read_bag(one_run().write(tmp_path / "bag"))
    assert (log.name, log.actuator, log.trajectory) == ("first", "xl330", "sin_sin")
    assert log.setup == Setup(mass=0.5, length=0.1, arm_mass=0.02, supply_voltage=5.0, kp=200.0)
    np.testing.assert_allclose(log.position.value, log.position.time, atol=1e-12)
    np.testing.assert_allclose(log.goal.value, 2.0 * log.position.time, atol=1e-12)
    assert set(log.velocity.value) == {1.0}
    assert (set(log.torque_enable.value), set(log.pwm.value)) == ({1.0}, {0.25})
    assert (set(log.supply_voltage.value), set(log.temperature.value)) == ({5.0}, {31.0})
    held = [log.position.held, log.velocity.held, log.goal.held, log.torque_enable.held, log.pwm.held]
    assert held == [False, False, True, True, True]


def test_optional_gains_and_the_software_are_understood(tmp_path):
    """K_i and K_d are zero unless said."""
    bag = Bag()
    bag.bench(0.0, ki=3.0, kd=4.0, software="another recorder 9")
    bag.samples(0.0, 1.5)
    (log,) = read_bag(bag.write(tmp_path / "bag"))
    assert (log.setup.ki, log.setup.kd) == (3.0, 4.0)


def test_the_next_bench_message_of_a_joint_ends_its_run(tmp_path):
    """A recorder that says no end still separates its runs."""
    bag = Bag()
    bag.bench(0.0, run_id="one")
    bag.samples(0.0, 2.0)
    bag.bench(2.0, run_id="two", kp=400.0)
    bag.samples(2.0, 3.5)
    one, two = read_bag(bag.write(tmp_path / "bag"))
    assert (one.name, two.name) == ("one", "two")
    assert (one.setup.kp, two.setup.kp) == (200.0, 400.0)
    assert (len(one.position.time), len(two.position.time)) == (40, 30)


def test_a_bench_message_latched_again_does_not_begin_a_new_run(tmp_path):
    """A recorder that came late, or a second publisher's greeting: the same run goes on."""
    bag = Bag()
    bag.bench(0.0)
    bag.samples(0.0, 1.0)
    bag.bench(1.0, software="said again")
    bag.samples(1.0, 2.0)
    bag.end(2.0)
    (log,) = read_bag(bag.write(tmp_path / "bag"))
    assert len(log.position.time) == 40


def test_the_end_of_another_run_does_not_end_this_one(tmp_path):
    """An event belongs to the run that it names."""
    bag = Bag()
    bag.bench(0.0)
    bag.samples(0.0, 1.0)
    bag.end(1.0, "somebody else")
    bag.samples(1.0, 2.0)
    (log,) = read_bag(bag.write(tmp_path / "bag"))
    assert len(log.position.time) == 40


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_samples_at_the_very_times_of_begin_and_end_belong_to_the_run(tmp_path, storage):
    """With equal log times a run begins before its first sample and ends after its last."""
    bag = Bag()
    bag.samples(0.0, 1.5)
    bag.bench(0.0)
    bag.end(1.45)
    (log,) = read_bag(bag.write(tmp_path / "bag", storage))
    assert len(log.position.time) == 30


def test_runs_of_several_joints_may_overlap(tmp_path):
    """Each joint has its own run at any time; one is chosen by name."""
    bag = Bag()
    bag.bench(0.0, run_id="s", joint="shoulder")
    bag.bench(0.5, run_id="e", joint="elbow", mass=1.0)
    bag.samples(0.0, 2.0, "shoulder")
    bag.samples(0.0, 2.5, "elbow", scale=-3.0)
    bag.end(2.0, "s")
    bag.end(2.5, "e")
    path = bag.write(tmp_path / "bag")
    (shoulder,), (elbow,) = read_bag(path, joint="shoulder"), read_bag(path, joint="elbow")
    assert (shoulder.name, elbow.name) == ("s", "e")
    assert (shoulder.setup.mass, elbow.setup.mass) == (0.5, 1.0)
    assert (len(shoulder.position.time), len(elbow.position.time)) == (40, 40)
    assert set(elbow.velocity.value) == {-3.0}
    refusal(lambda: read_bag(path), path, "elbow, shoulder", "`joint`")
    refusal(lambda: read_bag(path, joint="wrist"), path, "'wrist'", "elbow, shoulder")


def test_one_joint_of_many_in_the_same_messages_is_found_by_name(tmp_path):
    """A robot's JointState holds all joints, in an order of its own that may change."""
    bag = Bag()
    bag.bench(0.0)
    for k in range(30):
        names, position = ["wrist", "shoulder"], [9.0, 0.1 * k]
        if k % 2:
            names, position = names[::-1], position[::-1]
        bag.add(k / 20, "/joint_states", joint_state(k / 20, names, position, position))
        bag.add(k / 20, "/joint_commands", joint_state(k / 20, names, position))
        bag.add(k / 20, "/dynamic_joint_states", dynamic_joint_state(k / 20, "wrist", torque_enable=0.0))
        bag.add(k / 20, "/dynamic_joint_states", dynamic_joint_state(k / 20, "shoulder", torque_enable=1.0))
    (log,) = read_bag(bag.write(tmp_path / "bag"))
    np.testing.assert_allclose(log.position.value, 0.1 * np.arange(30))
    np.testing.assert_allclose(log.velocity.value, log.position.value)
    assert set(log.torque_enable.value) == {1.0}


def test_time_is_the_header_stamp_and_not_the_log_time(tmp_path):
    """A recorder's queue delays messages by tens of milliseconds; the stamps know when it was."""
    bag = Bag()
    bag.bench(0.0)
    for time, topic, content in one_run().messages:
        if topic != "/bench":
            bag.add(100.0 + 1.3 * time, topic, content)
    (log,) = read_bag(bag.write(tmp_path / "bag"))
    np.testing.assert_allclose(log.position.time, np.arange(30) / 20, atol=1e-9)


def without_velocity(count: int) -> Bag:
    """A run of a robot that tells no velocity, of the position t^2."""
    bag = Bag()
    bag.bench(0.0)
    for k in range(count):
        time = k / 20
        bag.add(time, "/joint_states", joint_state(time, ["shoulder"], time**2))
        bag.add(time, "/joint_commands", joint_state(time, ["shoulder"], time))
        bag.add(time, "/dynamic_joint_states", dynamic_joint_state(time, "shoulder", torque_enable=1.0))
    return bag


def test_a_missing_velocity_is_the_slope_of_the_position(tmp_path):
    """Central differences of t^2 are exactly 2 t inside."""
    (log,) = read_bag(without_velocity(40).write(tmp_path / "bag"))
    np.testing.assert_allclose(log.velocity.value[1:-1], 2.0 * log.velocity.time[1:-1], atol=1e-8)
    assert (log.pwm, log.supply_voltage) == (None, None)


def test_a_velocity_that_is_nan_throughout_counts_as_missing(tmp_path):
    """As ros2_control fills an interface that no hardware writes."""
    bag = without_velocity(40)
    for k in range(40):
        bag.messages[1 + 3 * k] = (k / 20, "/joint_states", joint_state(k / 20, ["shoulder"], k / 20, np.nan))
    (log,) = read_bag(bag.write(tmp_path / "bag"))
    np.testing.assert_allclose(log.velocity.value, 1.0, atol=1e-8)


def test_a_run_of_one_sample_without_velocity_is_refused(tmp_path):
    """There is no slope of one point."""
    path = without_velocity(1).write(tmp_path / "bag")
    refusal(lambda: read_bag(path), path, "'first'")


def test_telemetry_that_is_nan_throughout_counts_as_not_told(tmp_path):
    """A driver that has the interface but no sensor."""
    bag = without_velocity(40)
    for k in range(40):
        values = {"voltage": float("nan"), "temperature": 30.0}
        bag.add(k / 20, "/dynamic_joint_states", dynamic_joint_state(k / 20, "shoulder", **values))
    (log,) = read_bag(bag.write(tmp_path / "bag"))
    assert log.supply_voltage is None
    assert set(log.temperature.value) == {30.0}


TOLD = BenchDescription("told", "shoulder", "xl330", "unknown", Setup(1.0, 0.2, 0.1, 7.4, 100.0))
"""A description given by the user, for bags without /bench."""


def test_a_bag_without_bench_messages_is_one_run_if_the_user_describes_it(tmp_path):
    """As any robot records it."""
    bag = Bag()
    bag.samples(0.0, 2.0, "elbow")
    bag.samples(0.0, 2.0, "shoulder", scale=2.0)
    path = bag.write(tmp_path / "bag")
    refusal(lambda: read_bag(path), path, "/bench", "`bench`")
    (log,) = read_bag(path, bench=TOLD)
    assert (log.name, log.setup.mass, len(log.position.time)) == ("told", 1.0, 40)
    assert set(log.velocity.value) == {2.0}


def test_a_bag_that_describes_itself_is_not_described_again(tmp_path):
    """Two truths about one recording: neither is taken silently."""
    path = one_run().write(tmp_path / "bag")
    refusal(lambda: read_bag(path, bench=TOLD), path, "/bench", "do not give `bench`")


def test_a_run_that_was_disturbed_before_its_first_state_is_to_be_recorded_again(tmp_path):
    """A folder is read without it, and does not fail because it lacks a topic."""
    bag = Bag()
    bag.bench(0.0)
    bag.add(0.01, "/joint_commands", joint_state(0.01, ["joint"], 0.1))
    bag.text(0.02, json.dumps({"run_id": "first", "event": "end", "aborted": "joint states stopped"}))
    disturbed = bag.write(tmp_path / "disturbed")
    with pytest.raises(AbortedRunError, match=r"disturbed \(joint states stopped\): record it again"):
        read_bag(disturbed)
    one_run().write(tmp_path / "whole")
    assert len(read_recordings(tmp_path)) == 1


def test_only_the_end_event_ends_a_run(tmp_path):
    """Another event of the run is no end."""
    bag = one_run()
    bag.text(0.5, json.dumps({"run_id": "first", "event": "note"}))
    (log,) = read_bag(bag.write(tmp_path / "bag"))
    assert len(log.position.time) == 30


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("{", ["not valid JSON"]),
        ("", ["not valid JSON"]),
        ("[1, 2]", ["expected named values", "a list"]),
        ('{"run_id": "x"}', ["joint", "mass", "missing"]),
        (json.dumps({**BENCH, "weight": 1}), ["'weight'", "mass"]),
        (json.dumps({**BENCH, "mass": "heavy"}), ["mass", "'heavy'"]),
        (json.dumps({**BENCH, "mass": True}), ["mass", "True"]),
        (json.dumps({**BENCH, "mass": -1.0}), ["mass", "-1"]),
        (json.dumps({**BENCH, "kp": float("nan")}), ["NaN"]),
        (json.dumps({**BENCH, "length": 0}), ["length", "positive"]),
        (json.dumps({**BENCH, "joint": 3}), ["joint", "expected text"]),
        (json.dumps(BENCH)[:-1] + ', "kp": 3}', ["'kp'", "twice"]),
    ],
)
def test_bench_messages_that_are_not_what_the_contract_allows_are_refused(tmp_path, text, parts):
    """The message names the bag and the topic, and says what is wrong."""
    bag = Bag()
    bag.text(0.0, text)
    bag.samples(0.0, 1.5)
    path = bag.write(tmp_path / "bag")
    refusal(lambda: read_bag(path), path, *parts)


@pytest.mark.parametrize("key", BENCH)
def test_every_key_of_a_bench_message_is_needed(tmp_path, key):
    """A load or gain that was forgotten is asked for, not assumed."""
    bag = Bag()
    bag.bench(0.0, **{key: None})
    bag.samples(0.0, 1.5)
    path = bag.write(tmp_path / "bag")
    refusal(lambda: read_bag(path), path, key, "missing")


def test_a_run_without_messages_of_its_joint_is_refused(tmp_path):
    """Most often a name that is spelled differently on two topics."""
    bag = Bag()
    bag.bench(0.0, joint="sholder")
    bag.samples(0.0, 1.5)
    path = bag.write(tmp_path / "bag")
    refusal(lambda: read_bag(path), path, "'first'", "position, goal, torque_enable", "'sholder'")


@pytest.mark.parametrize("topic", ["/joint_states", "/joint_commands", "/dynamic_joint_states"])
def test_a_bag_without_a_needed_topic_is_refused(tmp_path, topic):
    """The message says which topic is missing and which there are."""
    whole = one_run()
    bag = Bag([entry for entry in whole.messages if entry[1] != topic])
    path = bag.write(tmp_path / "bag")
    refusal(lambda: read_bag(path), path, topic, "/bench", "`signals`")


def test_a_bag_of_events_only_holds_no_run(tmp_path):
    """An end without a beginning."""
    bag = Bag()
    bag.end(0.0)
    bag.samples(0.0, 1.5)
    path = bag.write(tmp_path / "bag")
    refusal(lambda: read_bag(path), path, "no run")
