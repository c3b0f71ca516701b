"""Faults: how they are written, and when they happen."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from helpers import refusal
from stribeck.emulator.faults import Fault, Faults, damaged, parse_fault


def course(*faults, until, step=0.005, torque=None, packets=False):
    """What begins and ends when, with torque coming on at a time; time begins at 100 s."""
    running = Faults(faults, np.random.default_rng(1))
    running.begin(100.0)
    found = []
    for k in range(round(until / step) + 1):
        if torque is not None and k * step >= torque:
            running.first_torque = 100.0 + torque
        found += [
            (round(k * step, 6), fault.kind, on) for fault, on in running.changes(100.0 + k * step, packets)
        ]
    return found


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("lost:p=0.05", Fault("lost", p=0.05)),
        ("late:p=0.1,delay=0.03,id=2", Fault("late", p=0.1, servo=2, settings={"delay": 0.03})),
        ("corrupt:bytes=0.01", Fault("corrupt", settings={"bytes": 0.01})),
        ("foreign:at=1,for=2,as=7", Fault("foreign", at=1.0, duration=2.0, settings={"as": 7.0})),
        ("silence:every=2,for=0.05", Fault("silence", every=2.0, duration=0.05)),
        ("brownout:at=3,to=3.4", Fault("brownout", at=3.0, settings={"to": 3.4})),
        (
            "push:after=3, for=0.1, torque=-0.05",
            Fault("push", after=3.0, duration=0.1, settings={"torque": -0.05}),
        ),
        ("overload:after=2", Fault("overload", after=2.0)),
        ("unplug:at=4", Fault("unplug", at=4.0)),
    ],
)
def test_faults_are_read_as_written(text, fault):
    """Text and object are the same fault, defaults included."""
    assert parse_fault(text) == fault


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("hunger:p=1", ("hunger", "lost", "unplug")),
        ("lost", ("lost", "p", "at")),
        ("lost:p=2", ("probability", "2")),
        ("lost:p=x", ("number", "'x'")),
        ("lost:p=nan", ("finite",)),
        ("lost:p=0.1,p=0.2", ("p=0.2", "once")),
        ("lost:torque=1", ("torque", "valid")),
        ("push:p=0.1,at=3", ("exclude each other",)),
        ("push:at=1,after=1", ("exclude each other",)),
        ("silence:at=1,for=0", ("for", "positive")),
        ("silence:every=-1", ("every", "positive")),
    ],
)
def test_what_is_no_fault_is_refused_in_one_line(text, parts):
    """The message says what was found and what is valid."""
    refusal(lambda: parse_fault(text), *parts)


def test_a_schedule_begins_and_ends_on_time():
    """At 0.098 s for 0.05 s, once; seen at the next look, every 5 ms."""
    assert course(parse_fault("silence:at=0.098,for=0.05"), until=1.0) == [
        (0.1, "silence", True),
        (0.15, "silence", False),
    ]


def test_a_repeated_schedule_begins_each_time():
    """From 0.198 s on, every 0.3 s, for 0.1 s."""
    found = course(parse_fault("silence:at=0.198,every=0.3,for=0.1"), until=1.0)
    assert [time for time, _, on in found if on] == [0.2, 0.5, 0.8]
    assert [time for time, _, on in found if not on] == [0.3, 0.6, 0.9]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("silence:every=0.5,for=0.05", [(0.5, True), (0.55, False)]),
        ("silence:at=0.38,for=0.05", [(0.4, True), (0.43, False)]),
        ("silence:at=0.3,for=0.05", []),
        ("overload:at=0.3", [(0.4, True)]),
    ],
)
def test_what_a_schedule_had_before_a_fault_was_added_does_not_count(text, expected):
    """Added at 0.4 s: what was over is not made up for, what would still be on is on for the rest of its time."""
    running = Faults((), np.random.default_rng(1))
    running.begin(0.0)
    running.add(parse_fault(text), 0.4)
    times = [round(0.4 + 0.005 * k, 3) for k in range(50)]
    assert [(time, on) for time in times for _, on in running.changes(time)] == expected


def test_a_schedule_may_count_from_the_first_torque():
    """Nothing happens before torque came on; then the delay counts."""
    fault = parse_fault("overload:after=0.098")
    assert course(fault, until=1.0) == []
    assert course(fault, until=1.0, torque=0.4) == [(0.5, "overload", True)]


def test_chance_is_given_by_packets_alone():
    """With a probability a fault begins with a packet, lasts, and can begin again."""
    fault = parse_fault("silence:p=0.1,for=0.05")
    assert course(fault, until=2.0) == []
    found = course(fault, until=50.0, packets=True)
    begins = [time for time, _, on in found if on]
    # About one in ten packets of those that are not in a silence: 10000 / (10 + 10).
    assert 400 < len(begins) < 600
    assert all(b - a > 0.0499 for a, b in pairwise(begins))


def test_packets_are_hit_as_often_as_asked():
    """One in five, of one servo only."""
    running = Faults([parse_fault("lost:p=0.2,id=3")], np.random.default_rng(2))
    hits = Counter(servo for servo in (3, 4) for _ in range(5000) if running.hit("lost", servo, 1.0))
    assert hits[3] == pytest.approx(1000, abs=4 * math.sqrt(5000 * 0.2 * 0.8))
    assert hits[4] == 0
    assert running.hit("late", 3, 1.0) is None


def test_packet_faults_keep_to_their_window():
    """Every packet within the window, none outside."""
    running = Faults([parse_fault("lost:at=1,for=0.5")], np.random.default_rng(2))
    running.begin(10.0)
    assert [running.hit("lost", 1, t) is not None for t in (10.9, 11.0, 11.49, 11.5)] == [
        False,
        True,
        True,
        False,
    ]


def test_packet_faults_without_a_schedule_last_from_when_they_are_added():
    """Also those that were there before the start; without a duration they do not end."""
    brief, lasting = parse_fault("lost:p=1,for=2"), parse_fault("late:p=1")
    running = Faults([brief, lasting], np.random.default_rng(2))
    running.begin(10.0)
    assert [running.hit("lost", 1, t) is not None for t in (10.0, 11.99, 12.0, 30.0)] == [
        True,
        True,
        False,
        False,
    ]
    running.add(brief, 40.0)
    assert [running.hit("lost", 1, t) is not None for t in (40.0, 41.99, 42.0)] == [True, True, False]
    assert running.hit("late", 1, 1e6) is not None


def test_damage_changes_bytes():
    """One byte by default, about the share of bytes otherwise; the length stays."""
    rng = np.random.default_rng(5)
    data = bytes(range(200))
    for _ in range(50):
        found = damaged(data, parse_fault("corrupt:p=1"), rng)
        assert sum(a != b for a, b in zip(found, data, strict=True)) == 1
    changed = sum(
        a != b
        for _ in range(50)
        for a, b in zip(damaged(data, parse_fault("corrupt:bytes=0.1"), rng), data, strict=True)
    )
    assert 800 < changed < 1200
