"""Replay of a bag through the node's compensator: friction torque of a recorded motion."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stribeck.errors import ConfigError, RecordingError
from stribeck.files.cdr import header_stamp
from stribeck.live.compensator import Compensator
from stribeck.live.controller_goals import GoalSource, kind_of
from stribeck.live.learning.residual import LowPass
from stribeck.live.outputs import fading
from stribeck.live.setup import CompensatedJoint
from stribeck.live.telemetry import RateLimiter, apply_telemetry
from stribeck.model.arrays import Array, Mask
from stribeck.recordings.bags.messages import (
    DYNAMIC_JOINT_STATES,
    JOINT_COMMANDS,
    JOINT_STATES,
    SERVO_STATUS,
    RawMessage,
)
from stribeck.recordings.bags.signals import decode
from stribeck.recordings.bags.storage import BagContent
from stribeck.recordings.signals.sources import interface_samples

STATE_TYPES = (JOINT_STATES.type,)
COMMAND_TYPES = (JOINT_COMMANDS.type, "std_msgs/msg/Float64MultiArray")


class Warned(NamedTuple):
    """A warning of the compensator that concerns single joints.

    :param stamp: of the state after which it is first given [ns].
    """

    stamp: int
    text: str


class Cancelled(NamedTuple):
    r"""Which share of the friction a torque cancels, :math:`\sum_t \tau_{ff}\tau_f / \sum_t \tau_f^2` over the rows in motion (n,) [1].

    :param measured: of the measured friction :math:`\tau_f`: motor torque minus that of inertia and gravity; NaN without motion.
    :param identified: of the identified friction.
    :param learned: joints whose scales were learnt (n,).
    """

    measured: Array
    identified: Array
    learned: Mask


class Replay(NamedTuple):
    """Output of a compensator for every state of a bag that contains its joints, in log order.

    :param stamps: header stamps (T,) [ns].
    :param torque: friction torque (T, n) [N m], in the robot's coordinates.
    :param doubts: why the torque is forced to zero; ``None`` where it is not.
    :param off: joints without torque while the others are compensated (T, n), those that are not enabled included.
    :param warnings: why joints are off or their torque fades, as the node logs it, each once.
    :param cancelled: shares of the friction that the torque cancels; ``None`` where nothing is measured.
    """

    stamps: npt.NDArray[np.int64]
    torque: Array
    doubts: tuple[str | None, ...]
    off: npt.NDArray[np.bool_]
    warnings: tuple[Warned, ...]
    cancelled: Cancelled | None


class _Watch:
    """Gathers, state by state, what the torques do not tell."""

    def __init__(self, compensator: Compensator) -> None:
        n = len(compensator.names)
        self._compensator, self._said = compensator, set[str]()
        self._products: Array = np.zeros((2, 2, n))
        self._learned: Mask = np.zeros(n, dtype=np.bool_)
        self._smooth: LowPass | None = None  # as the measured friction
        self._stamp = 0
        self.stamps, self.torque, self.doubts = list[int](), list[Array](), list[str | None]()
        self.off: list[Mask] = []
        self.warnings: list[Warned] = []

    def state(self, stamp: int, torque: Array) -> None:
        """Take the state with a stamp [ns] that was just processed, and its friction torque (n,) [N m]."""
        compensator = self._compensator
        self.stamps.append(stamp)
        self.torque.append(torque)
        self.doubts.append(compensator.doubt)
        off = compensator.joints_off
        began = off & ~self.off[-1] if self.off else off
        if began.any():
            names = [name for name, is_new in zip(compensator.names, began.tolist(), strict=True) if is_new]
            for name in names:
                for reason in compensator.off_reasons:
                    if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", reason):
                        self._say(stamp, f"{name} off", reason)
                        break
        self.off.append(off)
        tank = compensator.feed_forward.tank
        if tank.fades:
            for name, share in zip(compensator.names, tank.share.tolist(), strict=True):
                if share < 1.0:
                    self._say(stamp, f"{name} fades", fading([name]))
        forward, now = compensator.feed_forward, compensator.trusted_state
        if (seen := forward.observer) is None or now is None:
            return
        if self._smooth is None:
            self._smooth = LowPass((2, len(torque)), seen.residual.time_constant)
        self._learned |= seen.learning
        motor, external, _ = compensator.loads.latest
        identified = compensator.model.opposing(
            np.sign(now.velocity), now.velocity, motor, external, now.position
        )
        elapsed = 1e-9 * max(stamp - self._stamp, 0)
        share = -np.expm1(-elapsed / self._smooth.time_constant)
        self._stamp = stamp
        applied, identified = self._smooth.update(
            np.array((compensator.map.servo_torque(torque), identified)), share
        )
        moving = np.abs(now.velocity) > forward.tuning.moving_velocity
        for k, part in enumerate((-seen.torque, identified)):
            self._products[k] += np.where(moving, (applied * part, part * part), 0.0)

    def _say(self, stamp: int, key: str, text: str) -> None:
        if not {key, text} & self._said:
            self._said |= {key, text}
            self.warnings.append(Warned(stamp, text))

    def replay(self) -> Replay:
        """The result of all states."""
        stamps, doubts = np.array(self.stamps, dtype=np.int64), tuple(self.doubts)
        off, warnings = np.array(self.off), tuple(self.warnings)
        return Replay(stamps, np.array(self.torque), doubts, off, warnings, self._cancelled)

    @property
    def _cancelled(self) -> Cancelled | None:
        """Shares over all states."""
        if self._smooth is None:
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            measured, identified = self._products[:, 0] / self._products[:, 1]
        return Cancelled(measured, identified, self._learned)


def replay(
    path: Path, bag: BagContent, compensator: Compensator, joints: Sequence[CompensatedJoint], goals: str = ""
) -> Replay:
    """Play a bag's states, commands, goals and telemetry through a compensator.

    Stamps are used as arrival times; commands without a stamp arrive at their log time. Nothing is learnt from errors of tracking,
    as recorded motion does not answer to the torque: the torque is that of a node whose scales are 1.

    :param path: path of the bag, for messages.
    :param goals: topic of additional goals; empty for none.
    :raises ConfigError: if the bag lacks the topic of the goals, or its message type is not supported.
    :raises RecordingError: for a bag without states, or with messages that cannot be decoded.
    """
    types, source = _types_of(path, bag.messages), None
    goals = f"/{goals.lstrip('/')}" if goals else ""
    if goals and goals not in types:
        raise ConfigError(f"{path} has no {goals}; it has: {', '.join(sorted(types))}")
    if goals:
        source = GoalSource(kind_of(types[goals], f"{path}: {goals}"), compensator)
    compensator.enable(closed_loop=False)
    watch = _Watch(compensator)
    limiters = {topic.name: RateLimiter() for topic in (DYNAMIC_JOINT_STATES, SERVO_STATUS)}
    offset: float | None = None
    for message in bag.messages:
        name, stamp = message.topic.name, header_stamp(message.data)
        if source is not None and name == goals:
            goal = decode(path, message, bag.typestore)
            stamped = stamp.seconds if hasattr(goal, "header") else 0.0
            source.take(goal, stamped or 1e-9 * message.log_time + (offset or 0.0), stamped or None)
        if name == JOINT_STATES.name:
            state = decode(path, message, bag.typestore)
            now = stamp.seconds
            offset = now - 1e-9 * message.log_time if offset is None else offset
            foreign = compensator.merger.foreign
            if source is not None:
                source.before_state(now, now, state.name, state.position)
            output = compensator.on_state(now, now, state.name, state.position, state.velocity, state.effort)
            if compensator.merger.foreign != foreign:
                continue
            watch.state(stamp.nanoseconds, output)
        elif name == JOINT_COMMANDS.name:
            logged = 1e-9 * message.log_time + (offset or 0.0)
            _command(compensator, decode(path, message, bag.typestore), stamp.seconds, logged)
        elif name in limiters and limiters[name].passes(stamp):
            _telemetry(compensator, joints, decode(path, message, bag.typestore), stamp.seconds)
    if not watch.torque:
        raise RecordingError(
            f"{path}: no message on {JOINT_STATES.name} contains {' or '.join(compensator.names)}: give the names of its joints"
        )
    return watch.replay()


def _types_of(path: Path, messages: Sequence[RawMessage]) -> dict[str, str]:
    """Types of the topics, those of states and commands checked."""
    types = {message.topic.name: message.topic.type for message in messages}
    if JOINT_STATES.name not in types:
        present = ", ".join(sorted(types)) or "no messages at all"
        raise RecordingError(f"{path} has no {JOINT_STATES.name}; it has: {present}")
    for name, valid in ((JOINT_STATES.name, STATE_TYPES), (JOINT_COMMANDS.name, COMMAND_TYPES)):
        if types.get(name, valid[0]) not in valid:
            raise RecordingError(f"{path}: {name} has type {types[name]}; valid: {', '.join(valid)}")
    return types


def _command(compensator: Compensator, command: Any, stamp: float, logged: float) -> None:
    """Pass a command on; one without a stamp arrives at its log time."""
    if hasattr(command, "data"):  # unnamed numbers: efforts or goals, depending on the output mode
        efforts = compensator.settings.mode == "sum"
        goals, effort = ((), command.data) if efforts else (command.data, ())
        compensator.on_command(logged, None, None, goals, (), effort)
        return
    compensator.on_command(
        stamp or logged, stamp or None, command.name, command.position, command.velocity, command.effort
    )


def _telemetry(
    compensator: Compensator, joints: Sequence[CompensatedJoint], message: Any, stamp: float
) -> None:
    values: dict[str, dict[str, float]] = defaultdict(dict)
    for interface in ("p_gain", "voltage", "temperature"):
        for name, value in interface_samples(message, interface):
            values[name][interface] = value
    for joint in joints:
        apply_telemetry(compensator, joint, values[joint.model.name], stamp)
