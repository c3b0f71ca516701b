"""What the recorder's tests record: a run of one joint at 200 Hz on the four topics of the contract."""

import json
import math
from collections.abc import Iterator
from pathlib import Path

from bags import BENCH as RUN
from stribeck.recordings.bags.mcap import McapBag
from stribeck.recordings.bags.messages import (
    BENCH,
    DYNAMIC_JOINT_STATES,
    JOINT_COMMANDS,
    JOINT_STATES,
    dynamic_joint_state,
    joint_state,
    text,
)

TOPICS = (BENCH, JOINT_STATES, JOINT_COMMANDS, DYNAMIC_JOINT_STATES)
RATE = 200
PERIOD = 1_000_000_000 // RATE
LEAD = 5
"""Periods by which the goal is ahead of the position."""

Recorded = tuple[str, bytes, int]
"""Topic, CDR bytes, log time [ns]."""


def begin(time: int, run_id: str = "first") -> Recorded:
    """A run begins."""
    return BENCH.name, text(json.dumps({**RUN, "run_id": run_id})), time


def end(time: int, run_id: str = "first") -> Recorded:
    """A run ends."""
    return BENCH.name, text(json.dumps({"run_id": run_id, "event": "end"})), time


def samples(first: int, count: int) -> Iterator[Recorded]:
    """States, commands and telemetry, samples ``first`` and on."""
    for k in range(first, first + count):
        time, position, goal = k * PERIOD, math.sin(k / RATE), math.sin((k + LEAD) / RATE)
        velocity = math.cos(k / RATE)
        told = {"torque_enable": 1.0, "voltage": 5.0, "temperature": 31.0, "pwm": k % 885 / 885}
        yield JOINT_STATES.name, joint_state(time, ["shoulder"], [position], [velocity], [math.nan]), time
        yield JOINT_COMMANDS.name, joint_state(time, ["shoulder"], [goal]), time
        yield DYNAMIC_JOINT_STATES.name, dynamic_joint_state(time, {"shoulder": told}), time


def run(seconds: float, run_id: str = "first", start: float = 0.0) -> list[Recorded]:
    """A whole run with its end."""
    first, count = round(start * RATE), round(seconds * RATE)
    return [
        begin(first * PERIOD, run_id),
        *samples(first, count),
        end((first + count) * PERIOD, run_id),
    ]


def unfinished_bytes(recorded: list[Recorded], chunk: float = 0.2) -> bytes:
    """An MCAP file as a recorder leaves it that is killed: chunks of ``chunk`` seconds, no index."""
    bag, edge = McapBag("unfinished", TOPICS), chunk
    for topic, data, time in recorded:
        if time * 1e-9 >= edge:
            bag.close_chunk()
            edge += chunk
        bag.add(topic, data, time)
    bag.close_chunk()
    return bag.take()


def unfinished_bag(folder: Path, content: bytes) -> Path:
    """A bag folder that holds nothing but a storage file."""
    folder.mkdir(parents=True)
    (folder / f"{folder.name}.mcap").write_bytes(content)
    return folder
