"""Samples of a driver as messages of the bag contract: what recordings hold and the servo node publishes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np

from stribeck.io.messages import (
    DYNAMIC_JOINT_STATES,
    JOINT_COMMANDS,
    JOINT_STATES,
    SERVO_STATUS,
    RawMessage,
    Topic,
    diagnostic_array,
    dynamic_joint_state,
    joint_state,
    warm_up,
)
from stribeck.servo.sample import TELEMETRY, DriverSample

ENCODERS = {DYNAMIC_JOINT_STATES: dynamic_joint_state, SERVO_STATUS: diagnostic_array}
"""Topics of telemetry, and who makes their messages."""


def wall_offset() -> int:
    """What to add to steady times for stamps on the wall clock [ns].

    One look at both clocks is enough for a session: stamps are then of today, and steady.
    """
    return time.time_ns() - time.monotonic_ns()


class SampleMessages:
    """Makes the messages of samples.

    Joints that did not answer are left out, and so is what a servo does not tell.

    :param joints: names, in the order of all arrays.
    :param followers: whose goals are positions; those of the others are no ``/joint_commands``.
    :param telemetry: topic of what the servos say beside their motion: /dynamic_joint_states or /servo_status.
    :param offset: see :func:`wall_offset` [ns].
    """

    def __init__(
        self,
        joints: Sequence[str],
        followers: Sequence[bool],
        telemetry: Topic = DYNAMIC_JOINT_STATES,
        offset: int | None = None,
    ) -> None:
        warm_up()
        self.joints = tuple(joints)
        self.offset = wall_offset() if offset is None else offset
        self._followers = np.array(followers, dtype=bool)
        self._telemetry = telemetry
        self._encode = ENCODERS[telemetry]

    def stamp(self, steady: float) -> int:
        """A steady time [s] on the wall clock [ns]."""
        return self.offset + round(steady * 1e9)

    def __call__(self, sample: DriverSample) -> Iterator[RawMessage]:
        """Goals as sent, then states and telemetry."""
        sent = np.flatnonzero(np.isfinite(sample.goal) & self._followers)
        if sent.size:
            stamp = self.stamp(sample.goal_stamp)
            data = joint_state(stamp, [self.joints[j] for j in sent], sample.goal[sent])
            yield RawMessage(JOINT_COMMANDS, stamp, data)
        present = np.flatnonzero(sample.valid)
        if not present.size:
            return
        stamp = self.stamp(sample.stamp)
        names = [self.joints[j] for j in present]
        measured = (values[present] for values in (sample.position, sample.velocity, sample.effort))
        yield RawMessage(JOINT_STATES, stamp, joint_state(stamp, names, *measured))
        table = np.stack([getattr(sample, name) for name in TELEMETRY])[:, present].T.tolist()
        told = {
            name: {key: value for key, value in zip(TELEMETRY, row, strict=True) if value == value}
            for name, row in zip(names, table, strict=True)
        }
        yield RawMessage(self._telemetry, stamp, self._encode(stamp, told))
