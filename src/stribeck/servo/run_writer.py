"""Runs to bags, one bag for each, without making the loop wait that drives the servos.

Messages are made and bags opened and closed in a thread of its own; the loop only hands samples over.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stribeck.errors import StribeckError
from stribeck.io.bag import BenchDescription
from stribeck.io.messages import (
    BENCH,
    DYNAMIC_JOINT_STATES,
    JOINT_COMMANDS,
    JOINT_STATES,
    dynamic_joint_state,
    joint_state,
    text,
)
from stribeck.io.recorder import BagRecorder
from stribeck.servo.driver import Sample

FloatArray = npt.NDArray[np.float64]

TOPICS = (BENCH, JOINT_STATES, JOINT_COMMANDS, DYNAMIC_JOINT_STATES)


@dataclass(frozen=True)
class _Start:
    """A run begins: where its bag goes, what ``/bench`` says, and the goals that hold until others are sent."""

    path: Path
    benches: tuple[BenchDescription, ...]
    goals: FloatArray
    time: float


@dataclass(frozen=True)
class _End:
    """The run is over."""

    time: float


class RunWriter:
    """Writes the samples of a driver into bags.

    :param joints: names, in the order of all arrays.
    :ivar bags: finished bags so far.
    :ivar failure: why nothing is recorded any more, empty as long as all is well.
    """

    def __init__(self, joints: Sequence[str]) -> None:
        self.joints = tuple(joints)
        self.bags: list[Path] = []
        self.failure = ""
        # Stamps are on the wall clock, and steady: one look at both clocks is enough for a session.
        self._offset = time.time_ns() - time.monotonic_ns()
        self._bag: BagRecorder | None = None
        self._run_id = ""
        self._recording = False
        self._queue: queue.SimpleQueue[_Start | _End | Sample | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="run writer", daemon=True)
        self._thread.start()

    def start(self, path: Path, benches: Sequence[BenchDescription], goals: FloatArray, now: float) -> None:
        """Record what comes from now on into a new bag.

        :param path: of the bag.
        :param benches: what ``/bench`` says of each joint; all have one run id.
        :param goals: last goals sent before the run, (J,) [rad]; NaN for none.
        :param now: steady clock [s].
        """
        self._queue.put(_Start(path, tuple(benches), goals, now))
        self._recording = True

    def add(self, sample: Sample) -> None:
        """Record a sample, if a run is on."""
        if self._recording:
            self._queue.put(sample)

    def end(self, now: float) -> None:
        """The run is over; its bag is finished in the background."""
        if self._recording:
            self._queue.put(_End(now))
        self._recording = False

    def close(self) -> None:
        """End the run, and wait until its bag is finished."""
        self.end(time.monotonic())
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            if self.failure:
                continue
            try:
                self._take(item)
            except StribeckError as error:
                self.failure = str(error)
                if self._bag is not None:
                    self._give_up(self._bag)

    def _take(self, item: _Start | _End | Sample) -> None:
        match item:
            case _Start():
                self._begin(item)
            case _End():
                self._finish(item)
            case _:
                self._write_sample(item)

    def _begin(self, start: _Start) -> None:
        self._bag = BagRecorder(start.path, TOPICS)
        stamp = self._stamp(start.time)
        self._run_id = start.benches[0].run_id
        for bench in start.benches:
            self._bag.write(BENCH.name, text(bench.to_json()), stamp)
        self._write_goals(self._bag, start.goals, start.time)

    def _finish(self, end: _End) -> None:
        if self._bag is None:
            return
        message = text(json.dumps({"run_id": self._run_id, "event": "end"}))
        self._bag.write(BENCH.name, message, self._stamp(end.time))
        bag, self._bag = self._bag, None
        bag.close()
        self.bags.append(bag.path)

    def _write_sample(self, sample: Sample) -> None:
        bag = self._bag
        if bag is None:
            return
        self._write_goals(bag, sample.goal, sample.goal_stamp)
        present = np.flatnonzero(sample.valid)
        if not present.size:
            return
        stamp = self._stamp(sample.stamp)
        names = [self.joints[j] for j in present]
        measured = (sample.position, sample.velocity, sample.effort)
        message = joint_state(stamp, names, *(values[present].tolist() for values in measured))
        bag.write(JOINT_STATES.name, message, stamp)
        telemetry = {self.joints[j]: _interfaces(sample.telemetry, int(j)) for j in present}
        bag.write(DYNAMIC_JOINT_STATES.name, dynamic_joint_state(stamp, telemetry), stamp)

    def _write_goals(self, bag: BagRecorder, goals: FloatArray, at: float) -> None:
        sent = np.flatnonzero(np.isfinite(goals))
        if sent.size:
            stamp = self._stamp(at)
            names = [self.joints[j] for j in sent]
            bag.write(JOINT_COMMANDS.name, joint_state(stamp, names, goals[sent].tolist()), stamp)

    def _stamp(self, steady: float) -> int:
        return self._offset + round(steady * 1e9)

    def _give_up(self, bag: BagRecorder) -> None:
        """Close a bag that cannot be written any more; what is on the disk can be recovered."""
        self._bag = None
        try:
            bag.close()
        except StribeckError as error:
            if str(error) != self.failure:
                self.failure += f"; {error}"


def _interfaces(telemetry: Mapping[str, FloatArray], joint: int) -> dict[str, float]:
    """What a servo says of itself; what it does not tell is left out."""
    values = {name: float(found[joint]) for name, found in telemetry.items()}
    return {name: value for name, value in values.items() if np.isfinite(value)}
