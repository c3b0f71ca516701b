"""Converts driver samples to ROS messages, for recordings and for the servo node."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from stribeck.recordings.bags.messages import (
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
from stribeck.session.timing import SYSTEM_CLOCK, SteadyClock, calendar_offset

ENCODERS = {DYNAMIC_JOINT_STATES: dynamic_joint_state, SERVO_STATUS: diagnostic_array}

APART = 0.02
"""Longest time between the readings of joints that have one stamp [s]."""

Indices = npt.NDArray[np.intp]


class SampleMessages:
    """Converts samples to messages, without joints that did not answer and signals that a servo does not
    measure.

    Joints that were read at times more than :data:`APART` apart, as after a repeated request, are in messages of their own.
    The clocks are compared once, so stamps are calendar times that advance like the steady clock.

    :param joints: names, in the order of all arrays.
    :param followers: which joints have position goals; only those appear in ``/joint_commands``.
    :param telemetry: topic for the other signals of the servos: /dynamic_joint_states or /servo_status.
    :param clock: the steady clock of the samples.
    """

    def __init__(
        self,
        joints: Sequence[str],
        followers: Sequence[bool],
        telemetry: Topic = DYNAMIC_JOINT_STATES,
        clock: SteadyClock = SYSTEM_CLOCK,
    ) -> None:
        warm_up()
        self.joints = tuple(joints)
        self._offset = calendar_offset(clock)
        self._followers = np.array(followers, dtype=bool)
        self._telemetry = telemetry
        self._encode = ENCODERS[telemetry]

    def stamp(self, steady: float) -> int:
        """Convert a steady time [s] to wall-clock time [ns]."""
        return self._offset + round(steady * 1e9)

    def __call__(self, sample: DriverSample, unheard: Collection[Topic] = ()) -> Iterator[RawMessage]:
        """Messages of a sample: goals as sent, then states and telemetry.

        :param unheard: topics to which nobody listens: their messages are not made.
        """
        sent = np.flatnonzero(np.isfinite(sample.goal) & self._followers)
        if sent.size and JOINT_COMMANDS not in unheard:
            stamp = self.stamp(sample.goal_stamp)
            data = joint_state(stamp, [self.joints[j] for j in sent], sample.goal[sent])
            yield RawMessage(JOINT_COMMANDS, stamp, data)
        for present in _together(sample):
            stamp = self.stamp(statistics.median(sample.times[present].tolist()))
            names = [self.joints[j] for j in present]
            measured = (values[present] for values in (sample.position, sample.velocity, sample.effort))
            yield RawMessage(JOINT_STATES, stamp, joint_state(stamp, names, *measured))
            if self._telemetry in unheard:
                continue
            table = np.stack([getattr(sample, name) for name in TELEMETRY])[:, present].T.tolist()
            telemetry = {
                name: {key: value for key, value in zip(TELEMETRY, row, strict=True) if value == value}
                for name, row in zip(names, table, strict=True)
            }
            yield RawMessage(self._telemetry, stamp, self._encode(stamp, telemetry))


def _together(sample: DriverSample) -> Iterator[Indices]:
    """The joints that were read within :data:`APART` of each other, by time; usually all that answered."""
    rest = np.flatnonzero(sample.valid)
    while rest.size:
        early = sample.times[rest] <= sample.times[rest].min() + APART
        yield rest[early]
        rest = rest[~early]
