"""Live compensation: states and commands in, feed-forward torque out, and zero whenever in doubt.

Two clocks. What is stale is decided by arrival on a steady clock. The law's own time (ramp-in, slew
limit, filters) is the difference of header stamps, clipped to [0, :data:`LONGEST_STEP`], and stamps
give order: of what comes in, a state sees what is stamped before it, however close to it that arrives.
So a recording played at any rate gives the same torque. Arrays are (n,), one number per joint, in the
robot's coordinates where they come in and go out.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import le
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from stribeck.core.compensation import (
    EFFORT_MEANINGS,
    Compiler,
    EffortMeaning,
    FrictionModel,
    JointModel,
    Tuning,
    as_written,
    check_gain,
    intended_direction,
    motion_direction,
)
from stribeck.core.incoming import Command, Commands, JointOrder, Numbers, Order, picked
from stribeck.core.joint_map import JointMap
from stribeck.core.merging import StateMerger
from stribeck.core.namespace import array_namespace
from stribeck.errors import ConfigError

FloatArray = npt.NDArray[np.float64]

OutputMode = Literal["friction_only", "sum", "goal_offset", "current"]
OUTPUT_MODES: tuple[OutputMode, ...] = get_args(OutputMode)

LONGEST_STEP = 0.05
"""Longest time that the law sees pass between two states [s]."""

VELOCITY_FILTER = 0.02
"""Time constant of the measured velocity, where it is the slope of the positions [s]."""

LOAD_FILTER = 0.05
r"""Time constant of the measured motor torque from which the own share is taken [s].

A share :math:`\delta` of delay leaves at most :math:`\delta / T` of the own torque in the estimate,
so that even with 20 ms of delay the loop through the robot stays a contraction.
"""

WAITING_TELEMETRY = 128
"""Telemetry per joint that may wait for the states it counts for."""

TELEMETRY_DELAY = 0.1
"""Telemetry counts for states stamped this much later [s], so that it does not matter how fast it is read."""

LARGEST_EFFORT = 10.0
"""Efforts beyond this many times the stall torque of the motor are no measurement."""

LOWEST_SUPPLY = 0.5
"""Supply voltages below this are no measurement of a servo that answers [V]."""

TIMES_TO_FULL_TORQUE = 50.0
"""Default slew limit: the torque limit this many times per second."""


class _DoubtError(Exception):
    """Why a state cannot be trusted."""


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
    :param command_timeout: age of the last command from which it is not passed on, and says nothing of
        the intended motion any more [s]. The first is decided by arrival, the second by stamps.
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


def eased(applied: Any, wanted: Any, reach: Any) -> Any:
    """The torque that is wanted, or as near to it as may be reached from the torque that is applied [N m]."""
    xp = array_namespace(applied, wanted, reach)
    return xp.minimum(xp.maximum(wanted, applied - reach), applied + reach)


def _finite(values: FloatArray) -> bool:
    """Whether all are numbers. For a few, Python's own function is the cheapest."""
    return all(map(math.isfinite, values.tolist()))


class Compensator:
    """The compensation of some joints, without any middleware.

    Off until :meth:`enable`. Every method may be called in any order; nothing raises for bad input of
    a robot: the torque goes to zero and :attr:`doubt` says why.

    :param joints: parameters of each joint.
    :param maps: the robot's convention for each joint.
    :param compiler: makes the law's formulas faster.
    :raises ConfigError: for settings that would not be stable (:func:`check_gain`).
    """

    def __init__(
        self,
        joints: Sequence[JointModel],
        maps: Sequence[JointMap],
        settings: Settings,
        compiler: Compiler = as_written,
    ) -> None:
        if not joints:
            raise ConfigError("no joints to compensate; name joints and their parameter files")
        names = [joint.name for joint in joints]
        if len(set(names)) != len(names):
            raise ConfigError(f"joint names must differ, found {', '.join(names)}")
        check_gain(joints, settings.gain, settings.effort_meaning)
        for joint in joints:
            if settings.mode == "current" and "kt" not in joint.values:
                raise ConfigError(
                    f"joint {joint.name!r}: {joint.actuator.title} has no torque constant, so output_mode current "
                    "is not possible; choose another mode"
                )
        self.names = tuple(names)
        self.settings = settings
        self.model = FrictionModel(joints, compiler)
        tuning = settings.tuning
        self._intended = compiler(
            lambda velocity, error, rate: intended_direction(velocity, error, rate, tuning),
            ("velocity", "error", "rate"),
        )
        self._moving = compiler(lambda velocity: motion_direction(velocity, tuning), ("velocity",))
        self._eased = compiler(eased, ("applied", "wanted", "reach"))
        self.map = JointMap.stacked(maps)
        self.gain = settings.gain
        self.enabled = False
        self.doubt: str | None = "not enabled"
        self.torque: FloatArray = np.zeros(len(names))
        self.kp: FloatArray = np.full(len(names), np.nan)
        self.supply: FloatArray = np.array([joint.actuator.supply.nominal for joint in joints])
        self._largest_effort = (LARGEST_EFFORT * self.model.stall).tolist()
        slew = np.full(len(names), settings.slew)
        self._slew = np.where(slew > 0.0, slew, TIMES_TO_FULL_TORQUE * self.model.limit)
        self._order = JointOrder(self.names)
        self.merger = StateMerger(self.names, settings.state_timeout, settings.other_joints)
        self._commands = Commands(len(names))
        self._telemetry: deque[tuple[float, str, float, float]] = deque()
        self._state_arrival = -math.inf
        self._stamp: float | None = None
        self._ramp = 0.0
        self._zero: FloatArray = np.zeros(len(names))
        self._applied = self._solution = self._slope = self._zero
        self._last_position: FloatArray | None = None
        self._load: FloatArray | None = None
        self._needs_gain = settings.mode == "goal_offset"
        self._looks_at_load = settings.effort_meaning != "none" and self.model.load_dependent

    # -- switches

    def enable(self) -> None:
        """Start, with the ramp."""
        self.enabled = True
        while self._telemetry:
            self._take_telemetry()
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

    def on_telemetry(
        self,
        joint: str,
        *,
        kp: float = math.nan,
        supply_voltage: float = math.nan,
        stamp: float | None = None,
    ) -> None:
        """Firmware gain and supply voltage of a joint, where they are known and possible.

        With a ``stamp`` they count for the states that are stamped :data:`TELEMETRY_DELAY` after it.
        """
        if joint not in self.names:
            return
        if stamp is None or not math.isfinite(stamp):
            self._set_telemetry(joint, kp, supply_voltage)
            return
        if self._telemetry and stamp < self._telemetry[-1][0]:
            self._telemetry.clear()  # time jumped back
        self._telemetry.append((stamp, joint, kp, supply_voltage))
        while self._telemetry and (
            len(self._telemetry) > WAITING_TELEMETRY * len(self.names) or not self.enabled
        ):
            self._take_telemetry()

    def on_command(
        self,
        arrival: float,
        stamp: float | None,
        names: Sequence[str] | None,
        position: Numbers,
        velocity: Numbers,
        effort: Numbers,
    ) -> None:
        """A controller's command; fields may be empty. Without ``names`` in the order of the joints.

        A command counts for the states that are stamped after it, or that arrive after it where it has
        no stamp. One that does not name every joint does not count.
        """
        order, _ = self._order.of(self.names if names is None else tuple(names), strict=False)
        if order is not None:
            command = Command(*(picked(values, order) for values in (position, velocity, effort)))
            self._commands.add(arrival, stamp, command)

    def on_state(
        self,
        arrival: float,
        stamp: float,
        names: Sequence[str],
        position: Numbers,
        velocity: Numbers,
        effort: Numbers,
    ) -> FloatArray:
        """Friction torque for a measured state, (n,) [N m]: also :attr:`torque`, zero in doubt.

        :param arrival: when it came, on a steady clock [s].
        :param stamp: header stamp [s].
        :param velocity: may be empty: the slope of the positions is taken.
        :param effort: may be empty where it has no meaning or is not needed.
        """
        with np.errstate(all="ignore"):  # what is absurd ends at the limits, or in doubt
            state = self.merger.take(stamp, names, position, velocity, effort)
        if state is None or not self.enabled:
            return self.torque
        if isinstance(state, str):
            return self._fall_to_zero(state)
        try:
            with np.errstate(all="ignore"):
                return self._follow(arrival, *state)
        except _DoubtError as doubt:
            return self._fall_to_zero(str(doubt))

    def expire(self, now: float) -> bool:
        """Fall to zero if the states are stale at ``now`` [s]; whether that happened just now."""
        if self.doubt is not None or now - self._state_arrival <= self.settings.state_timeout:
            return False
        self._fall_to_zero(f"no states for {1e3 * (now - self._state_arrival):.0f} ms")
        return True

    def fade(self, torque: FloatArray, dt: float) -> FloatArray:
        """Somebody else's friction torque, (n,) [N m], taken back towards zero at the slew limit during ``dt`` [s].

        For whoever takes over from a compensator; it becomes :attr:`torque` of this one.
        """
        start, reach = self.map.servo_torque(torque), self._slew * dt
        self._applied = np.sign(start) * np.maximum(np.abs(start) - reach, 0.0)
        self.torque = np.asarray(self.map.torque(self._applied))
        return self.torque

    # -- what goes out

    def output(self, now: float) -> Output | None:
        """What to publish at ``now`` [s]; ``None`` if there is no fresh command to pass on."""
        mode = self.settings.mode
        if mode == "friction_only":
            return Output(self.torque, self.torque)
        if mode == "current":
            return Output(self.map.sign * self.model.currents(self._applied), self.torque)
        command = self._commands.latest(now, self.settings.command_timeout)
        if command is None:
            return None
        own = command.effort if mode == "sum" else command.position
        if not np.isfinite(own).all():
            return None
        if mode == "sum":
            return Output(own + self.torque, self.torque)
        with np.errstate(all="ignore"):  # a firmware gain next to nothing asks for any offset
            torque = self._applied + self._own_feed_forward(command)
            goal = own + self.map.velocity(self.model.offsets(torque, self.kp, self.supply))
        return Output(goal, self.torque) if np.isfinite(goal).all() else None

    # -- inside

    def _follow(
        self,
        arrival: float,
        stamp: float,
        names: Sequence[str],
        position: Numbers,
        velocity: Numbers,
        effort: Numbers,
    ) -> FloatArray:
        """:meth:`on_state` of an enabled compensator.

        :raises _DoubtError: if the state says nothing that can be trusted.
        """
        order, before, gap = self._placed(tuple(names), stamp)
        if gap is not None:
            self._fall_to_zero(gap)
        dt = 0.0 if before is None else min(stamp - before, LONGEST_STEP)
        at, speed, load = (picked(values, order) for values in (position, velocity, effort))
        if not (_finite(at) and (_finite(speed) or not len(velocity))):
            raise _DoubtError("position or velocity is not a number")
        while self._telemetry and self._telemetry[0][0] + TELEMETRY_DELAY < stamp:
            self._take_telemetry()
        if self._needs_gain and not (self.kp > 0.0).all():
            raise _DoubtError("the firmware gain is not known: no telemetry yet, and no p_gain is set")
        speed = (
            self.map.servo_velocity(speed)
            if len(velocity)
            else self._slope_of(self.map.servo_position(at), dt)
        )
        command, rate = self._commands.before(stamp, arrival, self.settings.command_timeout)
        wanted = self._wanted(at, speed, self.map.servo_torque(load), command, rate, dt)
        if not _finite(wanted):
            raise _DoubtError("position, velocity or effort is out of all proportion")
        self._state_arrival, self.doubt = arrival, gap
        self._ramp = min(1.0, self._ramp + dt / self.settings.ramp_time) if self.settings.ramp_time else 1.0
        if self._ramp < 1.0:
            wanted = self._ramp * wanted
        self._applied = self._eased(self._applied, wanted, self._slew * dt)
        self.torque = self.map.torque(self._applied)
        return self.torque

    def _placed(self, names: tuple[str, ...], stamp: float) -> tuple[Order, float | None, str | None]:
        """Order of the joints in a state, stamp of the state before it, and why it is a first one again.

        :raises _DoubtError: if the joints are not ours, or time stands still.
        """
        before, self._stamp = self._stamp, stamp if math.isfinite(stamp) else None
        order, problem = self._order.of(names, strict=self.settings.other_joints == "refuse")
        if order is None:
            raise _DoubtError(problem)
        if self._stamp is None:
            raise _DoubtError("a stamp is not a number")
        if before is None:
            return order, None, None
        if stamp == before:
            raise _DoubtError("time stands still: a state came twice")
        if stamp < before:
            return order, None, "time jumped back"
        if stamp - before > self.settings.state_timeout:
            return order, None, f"no states for {1e3 * (stamp - before):.0f} ms"
        return order, before, None

    def _set_telemetry(self, joint: str, kp: float, supply_voltage: float) -> None:
        k = self.names.index(joint)
        if math.isfinite(kp) and kp >= 0.0:
            self.kp[k] = kp
        if math.isfinite(supply_voltage) and supply_voltage > LOWEST_SUPPLY:
            self.supply[k] = supply_voltage

    def _take_telemetry(self) -> None:
        """Take over the oldest telemetry that waits for a later state."""
        self._set_telemetry(*self._telemetry.popleft()[1:])

    def _fall_to_zero(self, reason: str) -> FloatArray:
        self.doubt = reason
        self._restart()
        self.torque = np.zeros(len(self.names))
        return self.torque

    def _restart(self) -> None:
        """Forget everything that a doubt or a gap makes worthless; the ramp begins anew."""
        self._ramp = 0.0
        self._applied = self._solution = self._slope = self._zero
        self._last_position = None
        self._load = None

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
    ) -> FloatArray:
        """Feed-forward torque of the law, (n,), before ramp and slew.

        :raises _DoubtError: for an effort that is needed and cannot be.
        """
        motor = None
        if command is not None:
            at, gain, goal = self.map.servo_position(at), self.gain, self.map.servo_position(command.position)
            error = np.where(np.isfinite(goal), goal - at, 0.0)
            direction = self._intended(speed, error, self.map.servo_velocity(rate))
            motor = self._controller_torque(at, speed, goal, command)
        else:
            # Without any command nothing tells motion that is wanted from motion that the
            # compensation causes itself: never more than the friction.
            gain, direction = min(self.gain, 1.0), self._moving(speed)
        if not self._looks_at_load:
            return self.model.feed_forward(gain, direction, speed, self._zero, self._zero)
        if self.settings.effort_meaning == "link":
            external = -self._possible(effort)
            motor = -external if motor is None else self._possible(motor)
        elif motor is None:
            motor = self._own_share_removed(self._possible(effort), dt)
            external = -motor
        else:
            self._load = None
            external = -self._possible(motor)
        self._solution = self.model.feed_forward(gain, direction, speed, motor, external, self._solution)
        return self._solution

    def _controller_torque(
        self, at: FloatArray, speed: FloatArray, goal: FloatArray, command: Command
    ) -> FloatArray | None:
        """The controller's torque without feed-forward, where the output mode knows it."""
        found = None
        if not self._looks_at_load:
            return None
        if self.settings.mode == "sum":
            found = np.asarray(self.map.servo_torque(command.effort))
        elif self.settings.mode == "goal_offset":
            offset = self.model.offsets(self._own_feed_forward(command), self.kp, self.supply)
            found = self.model.firmware_torque(goal + offset, at, speed, self.kp, self.supply)
        return found if found is not None and np.isfinite(found).all() else None

    def _possible(self, torque: FloatArray) -> FloatArray:
        """A torque of the servos, if they can have it.

        :raises _DoubtError: if not.
        """
        if all(map(le, map(abs, torque.tolist()), self._largest_effort)):
            return torque
        if not np.isfinite(torque).all():
            raise _DoubtError(f"effort is not a number, but effort_meaning is {self.settings.effort_meaning}")
        raise _DoubtError(f"an effort beyond {LARGEST_EFFORT:g} times the stall torque cannot be")

    def _own_feed_forward(self, command: Command) -> FloatArray:
        """Torque that a controller asks for beside its goal (gravity, say), 0 where it says nothing."""
        return np.asarray(np.where(np.isfinite(command.effort), self.map.servo_torque(command.effort), 0.0))

    def _own_share_removed(self, effort: FloatArray, dt: float) -> FloatArray:
        """The measured motor torque without the own feed-forward in it, both filtered alike."""
        apart = effort - self._applied
        if self._load is not None:
            apart = self._load + min(1.0, dt / LOAD_FILTER) * (apart - self._load)
        self._load = apart
        return apart
