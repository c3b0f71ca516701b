"""Result of one driver cycle: measurements in joint coordinates, and events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from stribeck.servo.bus import Reading
from stribeck.servo.config import JointConfig

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
DriverState = Literal["off", "on", "fault"]
Kind = Literal["fault", "warning", "info"]

TELEMETRY = ("pwm", "voltage", "temperature", "current", "load", "torque_enable", "p_gain", "gap")
"""Signals published beside the joint states, by their names in recordings."""


@dataclass(frozen=True)
class Event:
    """Something that happened, reported once.

    :param kind: ``fault`` (torque went off by itself), ``warning`` or ``info``.
    :param text: one line.
    :param time: steady clock [s].
    """

    kind: Kind
    text: str
    time: float


@dataclass(frozen=True)
class JointReading:
    """Measurements of one cycle in joint coordinates, SI; one entry per joint, NaN where there is none.

    :param stamp: when the servos were read, steady clock [s]: the median of :attr:`times`.
    :param times: when each servo read its registers [s].
    :param valid: joints with a new sample.
    :param position: [rad].
    :param velocity: [rad/s].
    :param effort: torque from the servo's current and the datasheet's torque constant [N m].
    :param current: in the direction of the joint [A].
    :param load: share of the largest load, of servos that measure it.
    :param pwm: duty in [-1, 1].
    :param voltage: [V].
    :param temperature: [°C].
    """

    stamp: float
    times: FloatArray
    valid: BoolArray
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray
    current: FloatArray
    load: FloatArray
    pwm: FloatArray
    voltage: FloatArray
    temperature: FloatArray


@dataclass(frozen=True)
class DriverSample(JointReading):
    """One cycle of a driver.

    :param torque_enable: 1 energised, 0 not.
    :param p_gain: in firmware units.
    :param gap: 0, or how long a servo was silent before this sample [s].
    :param goal: as sent in this cycle, clipped and in whole counts: [rad], [A] or duty by mode; NaN: none.
    :param goal_stamp: when the goals were sent, steady clock [s].
    :param state: of the driver.
    :param reason: of the fault, empty for none.
    :param events: since the previous sample.
    """

    torque_enable: FloatArray
    p_gain: FloatArray
    gap: FloatArray
    goal: FloatArray
    goal_stamp: float
    state: DriverState
    reason: str
    events: tuple[Event, ...]


def reading_of_joints(joints: Sequence[JointConfig], reading: Reading | None, now: float) -> JointReading:
    """A reading in joint coordinates; all NaN without a reading.

    :param now: stamp if nobody answered [s].
    """
    nothing = np.full(len(joints), np.nan)
    if reading is None:
        return JointReading(now, nothing, np.zeros(len(joints), dtype=bool), *[nothing] * 8)
    maps = [joint.joint_map for joint in joints]
    sign = np.array([m.sign for m in maps])
    constants = [joint.torque_constant for joint in joints]
    valid = reading.valid
    return JointReading(
        stamp=float(np.median(reading.time[valid])) if valid.any() else now,
        times=reading.time,
        valid=valid,
        position=np.array([m.position(q) for m, q in zip(maps, reading.position, strict=True)]),
        velocity=np.array([m.velocity(v) for m, v in zip(maps, reading.velocity, strict=True)]),
        effort=np.array([m.effort(i, k) for m, i, k in zip(maps, reading.current, constants, strict=True)]),
        current=sign * reading.current,
        load=sign * reading.load,
        pwm=sign * reading.pwm,
        voltage=reading.voltage,
        temperature=reading.temperature,
    )


def goals_to_servos(joints: Sequence[JointConfig], goals: FloatArray) -> FloatArray:
    """Goals of joints, clipped to their limits, in servo coordinates; NaN stays NaN."""
    return np.array(
        [
            joint.joint_map.servo_position(np.clip(goal, *joint.position_limits))
            if joint.servo.follows_position
            else joint.joint_map.sign * goal
            for joint, goal in zip(joints, goals, strict=True)
        ]
    )


def goals_to_joints(joints: Sequence[JointConfig], goals: FloatArray) -> FloatArray:
    """Goals of servos in joint coordinates; NaN stays NaN."""
    return np.array(
        [
            joint.joint_map.position(goal) if joint.servo.follows_position else joint.joint_map.sign * goal
            for joint, goal in zip(joints, goals, strict=True)
        ]
    )
