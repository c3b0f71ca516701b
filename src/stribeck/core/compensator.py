"""Live compensation: states and commands in, feed-forward torque out, and zero whenever in doubt.

Two clocks. What is stale is decided by arrival on a steady clock. The law's own time (ramp-in, slew
limit, filters) is the difference of header stamps, clipped to [0, :data:`LONGEST_STEP`], and stamps
give order; so a recording played at any rate gives the same torque. Arrays are (n,), one number per
joint, in the robot's coordinates where they come in and go out.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from stribeck.core.compensation import (
    EFFORT_MEANINGS,
    EffortMeaning,
    FrictionModel,
    JointModel,
    Tuning,
    check_gain,
    intended_direction,
)
from stribeck.core.joint_map import JointMap
from stribeck.errors import ConfigError

FloatArray = npt.NDArray[np.float64]

OutputMode = Literal["friction_only", "sum", "goal_offset", "current"]
OUTPUT_MODES: tuple[OutputMode, ...] = get_args(OutputMode)

LONGEST_STEP = 0.05
"""Longest time that the law sees pass between two states [s]."""

COMMAND_FILTER = 0.02
"""Time constant of the commanded velocity, where it is the slope of the goals [s]."""

VELOCITY_FILTER = 0.02
"""Time constant of the measured velocity, where it is the slope of the positions [s]."""

LOAD_FILTER = 0.05
r"""Time constant of the measured motor torque from which the own share is taken [s].

A share :math:`\delta` of delay leaves at most :math:`\delta / T` of the own torque in the estimate,
so that even with 20 ms of delay the loop through the robot stays a contraction.
"""

KEPT_COMMANDS = 16

TIMES_TO_FULL_TORQUE = 50.0
"""Default slew limit: the torque limit this many times per second."""


class Command(NamedTuple):
    """What a controller wants, (n,) each, NaN where it does not say.

    Beside a goal position, an effort is the controller's own feed-forward (gravity, say): in the mode
    ``goal_offset`` it becomes part of the offset. The goal itself must be where the joint is meant to go.
    """

    position: FloatArray
    velocity: FloatArray
    effort: FloatArray


class Output(NamedTuple):
    """What to publish.

    :param values: efforts [N m], goals [rad] or currents [A], (n,), by the output mode.
    :param friction: the friction torque in it [N m], (n,).
    """

    values: FloatArray
    friction: FloatArray


@dataclass(frozen=True)
class Settings:
    """How a compensator works.

    :param mode: what goes out.
    :param effort_meaning: what the effort of the states is: torque of the motor, torque at the link,
        or nothing that can be used, in which case load terms are zero.
    :param gain: share of the friction that is cancelled [1].
    :param state_timeout: age of the last state from which the torque is zero [s].
    :param command_timeout: age of the last command from which it is not passed on [s].
    :param ramp_time: from zero to full torque after a start or a doubt [s].
    :param slew: largest change of torque [N m/s] in the coordinates of the parameter files; 0 for
        :data:`TIMES_TO_FULL_TORQUE` times each joint's limit.
    :param other_joints: whether states that hold joints without a parameter file count as a doubt.
    :param tuning: rest and reversals.
    """

    mode: OutputMode
    effort_meaning: EffortMeaning
    gain: float = 0.8
    state_timeout: float = 0.04
    command_timeout: float = 0.1
    ramp_time: float = 0.5
    slew: float = 0.0
    other_joints: Literal["refuse", "ignore"] = "refuse"
    tuning: Tuning = field(default_factory=Tuning)

    def __post_init__(self) -> None:
        if self.mode not in OUTPUT_MODES:
            raise ConfigError(f"unknown output mode {self.mode!r}; valid: {', '.join(OUTPUT_MODES)}")
        if self.effort_meaning not in EFFORT_MEANINGS:
            raise ConfigError(
                f"effort_meaning must be one of {', '.join(EFFORT_MEANINGS)}, found {self.effort_meaning!r}: "
                "say what the effort in the joint states is"
            )
        for name in ("state_timeout", "command_timeout"):
            if not 0.0 < getattr(self, name) <= 10.0:
                raise ConfigError(f"{name} must be in (0, 10] s, found {getattr(self, name):g}")
        for name in ("ramp_time", "slew"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise ConfigError(f"{name} must be zero or positive, found {getattr(self, name):g}")


class Compensator:
    """The compensation of some joints, without any middleware.

    Off until :meth:`enable`. Every method may be called in any order; nothing raises for bad input of
    a robot: the torque goes to zero and :attr:`doubt` says why.

    :param joints: parameters of each joint.
    :param maps: the robot's convention for each joint.
    :raises ConfigError: for settings that would not be stable (:func:`check_gain`).
    """

    def __init__(self, joints: Sequence[JointModel], maps: Sequence[JointMap], settings: Settings) -> None:
        if not joints:
            raise ConfigError("no joints to compensate; name joints and their parameter files")
        names = [joint.name for joint in joints]
        if len(set(names)) != len(names):
            raise ConfigError(f"joint names must differ, found {', '.join(names)}")
        check_gain(joints, settings.gain, settings.effort_meaning)
        self.names = tuple(names)
        self.settings = settings
        self.model = FrictionModel(joints)
        self.map = JointMap.stacked(maps)
        self.gain = settings.gain
        self.enabled = False
        self.doubt: str | None = "not enabled"
        self.torque: FloatArray = np.zeros(len(names))
        self.kp: FloatArray = np.full(len(names), np.nan)
        self.supply: FloatArray = np.array([joint.actuator.supply.nominal for joint in joints])
        slew = np.full(len(names), settings.slew)
        self._slew = np.where(slew > 0.0, slew, TIMES_TO_FULL_TORQUE * self.model.limit)
        self._orders: dict[tuple[str, ...], tuple[npt.NDArray[np.intp] | None, str]] = {}
        self._commands: deque[tuple[float | None, Command, FloatArray]] = deque(maxlen=KEPT_COMMANDS)
        self._command_arrival = -math.inf
        self._state_arrival = -math.inf
        self._stamp: float | None = None
        self._ramp = 0.0
        self._applied = self._solution = self._slope = np.zeros(len(names))
        self._last_position: FloatArray | None = None
        self._load: tuple[FloatArray, FloatArray] | None = None

    # -- switches

    def enable(self) -> None:
        """Start, with the ramp."""
        self.enabled = True
        self._stamp = None
        self._fall_to_zero("no valid states yet")

    def disable(self, reason: str = "not enabled") -> None:
        """Zero at once, until :meth:`enable`."""
        self.enabled = False
        self._fall_to_zero(reason)

    def set_gain(self, gain: float) -> None:
        """Another gain from the next state on.

        :raises ConfigError: for a gain that would not be stable; the old one stays.
        """
        check_gain(self.model.joints, gain, self.settings.effort_meaning)
        self.gain = gain
        self.settings = replace(self.settings, gain=gain)

    # -- what comes in

    def on_telemetry(self, joint: str, *, kp: float = math.nan, supply_voltage: float = math.nan) -> None:
        """Firmware gain and supply voltage of a joint, where they are known and possible."""
        if joint in self.names:
            k = self.names.index(joint)
            if math.isfinite(kp) and kp >= 0.0:
                self.kp[k] = kp
            if math.isfinite(supply_voltage) and supply_voltage > 0.5:
                self.supply[k] = supply_voltage

    def on_command(
        self,
        arrival: float,
        stamp: float | None,
        names: Sequence[str] | None,
        position: Sequence[float],
        velocity: Sequence[float],
        effort: Sequence[float],
    ) -> None:
        """A controller's command; fields may be empty. Without ``names`` in the order of the joints.

        A command counts for the states that are stamped after it, or that arrive after it where it has
        no stamp.
        """
        order, _ = self._order_of(self.names if names is None else tuple(names), strict=False)
        if order is None:
            return
        command = Command(*(_picked(values, order) for values in (position, velocity, effort)))
        rate = self._command_velocity(stamp, arrival, command)
        self._commands.append((stamp, command, rate))
        self._command_arrival = arrival

    def on_state(
        self,
        arrival: float,
        stamp: float,
        names: Sequence[str],
        position: Sequence[float],
        velocity: Sequence[float],
        effort: Sequence[float],
    ) -> FloatArray:
        """Friction torque for a measured state, (n,) [N m]: also :attr:`torque`, zero in doubt.

        :param arrival: when it came, on a steady clock [s].
        :param stamp: header stamp [s].
        :param velocity: may be empty: the slope of the positions is taken.
        :param effort: may be empty where it has no meaning or is not needed.
        """
        if not self.enabled:
            return self.torque
        before, self._stamp = self._stamp, stamp
        order, problem = self._order_of(tuple(names), strict=self.settings.other_joints == "refuse")
        if order is None:
            return self._fall_to_zero(problem)
        if before is not None and stamp <= before:
            return self._fall_to_zero(
                "time jumped back" if stamp < before else "time stands still: a state came twice"
            )
        at, speed, load = (_picked(values, order) for values in (position, velocity, effort))
        if not np.isfinite(at).all() or (len(velocity) and not np.isfinite(speed).all()):
            return self._fall_to_zero("position or velocity is not a number")
        elapsed = 0.0 if before is None else stamp - before
        if elapsed > self.settings.state_timeout:
            self._restart()
        dt = min(elapsed, LONGEST_STEP)
        at = self.map.servo_position(at)
        speed = self.map.servo_velocity(speed) if len(velocity) else self._slope_of(at, dt)
        load = self.map.servo_torque(load)
        command, rate = self._command_for(stamp, arrival)
        with np.errstate(all="ignore"):  # what is absurd ends at the limits, or as no number, below
            wanted = self._wanted(at, speed, load, command, rate, dt)
        if wanted is None:
            return self._fall_to_zero(
                f"effort is not a number, but effort_meaning is {self.settings.effort_meaning}"
            )
        if not np.isfinite(wanted).all():
            return self._fall_to_zero("position, velocity or effort is out of all proportion")
        self._state_arrival, self.doubt = arrival, None
        self._ramp = min(1.0, self._ramp + dt / self.settings.ramp_time) if self.settings.ramp_time else 1.0
        reach = self._slew * dt
        self._applied = np.clip(self._ramp * wanted, self._applied - reach, self._applied + reach)
        self.torque = self.map.torque(self._applied)
        return self.torque

    def expire(self, now: float) -> bool:
        """Fall to zero if the states are stale at ``now`` [s]; whether that happened just now."""
        if self.doubt is not None or now - self._state_arrival <= self.settings.state_timeout:
            return False
        self._fall_to_zero(f"no states for {1e3 * (now - self._state_arrival):.0f} ms")
        return True

    # -- what goes out

    def output(self, now: float) -> Output | None:
        """What to publish at ``now`` [s]; ``None`` if there is no fresh command to pass on."""
        mode = self.settings.mode
        if mode == "friction_only":
            return Output(self.torque, self.torque)
        if mode == "current":
            return Output(self.map.sign * self.model.currents(self._applied), self.torque)
        if not self._commands or now - self._command_arrival > self.settings.command_timeout:
            return None
        command = self._commands[-1][1]
        own = command.effort if mode == "sum" else command.position
        if not np.isfinite(own).all():
            return None
        if mode == "sum":
            return Output(own + self.torque, self.torque)
        torque = self._applied + self._own_feed_forward(command)
        offset = self.model.offsets(torque, self.kp, self.supply)
        return Output(own + self.map.velocity(offset), self.torque)

    # -- inside

    def _fall_to_zero(self, reason: str) -> FloatArray:
        self.doubt = reason
        self._restart()
        self.torque = np.zeros(len(self.names))
        return self.torque

    def _restart(self) -> None:
        """Forget everything that a doubt or a gap makes worthless; the ramp begins anew."""
        zero = np.zeros(len(self.names))
        self._ramp = 0.0
        self._applied = zero
        self._solution = zero
        self._last_position = None
        self._slope = zero
        self._load = None

    def _order_of(self, names: tuple[str, ...], *, strict: bool) -> tuple[npt.NDArray[np.intp] | None, str]:
        """Where each joint stands in a message, or why that cannot be said."""
        found = self._orders.get(names)
        if found is None:
            found = self._find_order(names)
            if len(self._orders) < 64:
                self._orders[names] = found
        order, problem = found
        if strict and order is not None and len(names) != len(self.names):
            unknown = sorted(set(names) - set(self.names))
            return None, f"unknown joint {', '.join(unknown)} (other_joints: ignore lets it pass)"
        return order, problem

    def _find_order(self, names: tuple[str, ...]) -> tuple[npt.NDArray[np.intp] | None, str]:
        doubled = sorted({name for name in self.names if names.count(name) > 1})
        missing = [name for name in self.names if name not in names]
        if doubled:
            return None, f"joint {', '.join(doubled)} stands twice in one message"
        if missing:
            return None, f"joint {', '.join(missing)} missing"
        return np.array([names.index(name) for name in self.names]), ""

    def _command_velocity(self, stamp: float | None, arrival: float, command: Command) -> FloatArray:
        """Commanded velocity: as said, else the filtered slope of the goals."""
        time = arrival if stamp is None else stamp
        zero = np.zeros(len(self.names))
        slope = zero
        if self._commands:
            last_stamp, last, rate = self._commands[-1]
            elapsed = time - (self._command_arrival if last_stamp is None else last_stamp)
            if elapsed < 0.0:
                self._commands.clear()
            elif elapsed > LONGEST_STEP:
                slope = zero
            elif elapsed > 0.0:
                share = min(1.0, elapsed / COMMAND_FILTER)
                slope = rate + share * ((command.position - last.position) / elapsed - rate)
            else:
                slope = rate
        said = np.where(np.isfinite(command.velocity), command.velocity, slope)
        return np.asarray(np.where(np.isfinite(said), said, 0.0))

    def _command_for(self, stamp: float, arrival: float) -> tuple[Command | None, FloatArray]:
        """The last command before a state, with its velocity; none if it is stale."""
        if arrival - self._command_arrival <= self.settings.command_timeout:
            for given, command, rate in reversed(self._commands):
                if given is None or given < stamp:
                    return command, rate
        return None, np.zeros(len(self.names))

    def _slope_of(self, at: FloatArray, dt: float) -> FloatArray:
        if self._last_position is not None and dt > 0.0:
            share = min(1.0, dt / VELOCITY_FILTER)
            self._slope = self._slope + share * ((at - self._last_position) / dt - self._slope)
        self._last_position = at
        return self._slope

    def _wanted(
        self,
        at: FloatArray,
        speed: FloatArray,
        effort: FloatArray,
        command: Command | None,
        rate: FloatArray,
        dt: float,
    ) -> FloatArray | None:
        """Feed-forward torque of the law, (n,), before ramp and slew; ``None`` without a needed effort."""
        error, gain = np.zeros_like(at), self.gain
        goal = np.full_like(at, np.nan)
        if command is not None:
            goal = self.map.servo_position(command.position)
            error = np.where(np.isfinite(goal), goal - at, 0.0)
            rate = self.map.servo_velocity(rate)
        else:
            # Without any command nothing tells motion that is wanted from motion that the
            # compensation causes itself: never more than the friction.
            gain = min(gain, 1.0)
        direction = intended_direction(speed, error, rate, self.settings.tuning)
        zero = np.zeros_like(at)
        if self.settings.effort_meaning == "none" or not self.model.load_dependent:
            return self.model.feed_forward(gain, direction, speed, zero, zero)
        motor = self._controller_torque(at, speed, goal, command)
        measured = self._own_share_removed(effort, dt) if motor is None else None
        if self.settings.effort_meaning == "link":
            external = -effort
            motor = effort if motor is None else motor
        else:
            motor = measured if motor is None and measured is not None else motor
            external = zero if motor is None else -motor
        if motor is None or not (np.isfinite(motor).all() and np.isfinite(external).all()):
            return None
        self._solution = self.model.feed_forward(gain, direction, speed, motor, external, self._solution)
        return self._solution

    def _controller_torque(
        self, at: FloatArray, speed: FloatArray, goal: FloatArray, command: Command | None
    ) -> FloatArray | None:
        """The controller's torque without feed-forward, where the output mode knows it."""
        if command is None:
            return None
        found = None
        if self.settings.mode == "sum":
            found = np.asarray(self.map.servo_torque(command.effort))
        elif self.settings.mode == "goal_offset":
            offset = self.model.offsets(self._own_feed_forward(command), self.kp, self.supply)
            found = self.model.firmware_torque(goal + offset, at, speed, self.kp, self.supply)
        return found if found is not None and np.isfinite(found).all() else None

    def _own_feed_forward(self, command: Command) -> FloatArray:
        """Torque that a controller asks for beside its goal (gravity, say), 0 where it says nothing."""
        return np.asarray(np.where(np.isfinite(command.effort), self.map.servo_torque(command.effort), 0.0))

    def _own_share_removed(self, effort: FloatArray, dt: float) -> FloatArray:
        """The measured motor torque without the own feed-forward in it, both filtered alike."""
        if self._load is None:
            self._load = (effort, self._applied)
        share = min(1.0, dt / LOAD_FILTER)
        total, own = self._load
        self._load = (total + share * (effort - total), own + share * (self._applied - own))
        return self._load[0] - self._load[1]


def _picked(values: Sequence[float], order: npt.NDArray[np.intp]) -> FloatArray:
    """Values in the order of the joints, NaN for those that a message does not give."""
    given = np.asarray(values, dtype=np.float64)
    if len(given) <= int(order.max()):
        given = np.concatenate([given, np.full(int(order.max()) + 1 - len(given), np.nan)])
    return np.asarray(given[order])
