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
from dataclasses import replace
from operator import le
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stribeck.core.compensation import (
    SLOPE_TIME,
    FrictionModel,
    JointModel,
    check_delay,
    check_gain,
)
from stribeck.core.dynamics import Dynamics
from stribeck.core.feedforward import FeedForward, Loads, State, Wish
from stribeck.core.formulas import Compiler, as_written, compiled_by
from stribeck.core.incoming import Command, Commands, JointOrder, Numbers, Order, StreamClock, picked
from stribeck.core.joint_map import JointMap
from stribeck.core.merging import State as MeasuredState
from stribeck.core.merging import StateMerger
from stribeck.core.namespace import array_namespace
from stribeck.core.observer import Learned
from stribeck.core.plausibility import Plausibility
from stribeck.core.residual import Delayed
from stribeck.core.settings import OUTPUT_MODES as OUTPUT_MODES
from stribeck.core.settings import OutputMode as OutputMode
from stribeck.core.settings import Settings as Settings
from stribeck.errors import ConfigError

FloatArray = npt.NDArray[np.float64]

LONGEST_STEP = 0.05
"""Longest time that the law sees pass between two states [s]."""

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

FRICTION_PER_KELVIN = 0.01
"""By this share of itself friction falls per kelvin: a cautious figure for greased gears [1/K]."""

TIMES_TO_FULL_TORQUE = 50.0
"""Default slew limit: the torque limit this many times per second."""


class _DoubtError(Exception):
    """Why a state cannot be trusted."""


class _BridgedError(Exception):
    """Why a state says nothing, while the last one still holds for a moment."""


class Output(NamedTuple):
    """What to publish.

    :param values: efforts [N m], goals [rad] or currents [A], (n,), by the output mode.
    :param friction: the friction torque in it [N m], (n,).
    """

    values: FloatArray
    friction: FloatArray


class Account(NamedTuple):
    """What is known of the friction of joints now, (n,) each.

    :param dry: share of the identified friction but the viscous [1].
    :param viscous: share of the identified viscous friction [1].
    :param offset: what both do not explain, as the torque that cancels it, in the robot's coordinates [N m].
    :param certainty: how well the shares are known, 0 to 1.
    :param contact: how much of a contact there is, 0 to 1.
    :param energy: what is left, without a goal, of the torque beyond what is certain, 0 to 1.
    """

    dry: FloatArray
    viscous: FloatArray
    offset: FloatArray
    certainty: FloatArray
    contact: FloatArray
    energy: FloatArray


def slew_limited(applied: Any, wanted: Any, slew: Any, dt: Any) -> Any:
    """The wanted torque, or the nearest one that the slew limit allows from the applied torque [N m]."""
    xp = array_namespace(applied, wanted, slew)
    reach = slew * dt
    return xp.minimum(xp.maximum(wanted, applied - reach), applied + reach)


def _finite(values: FloatArray) -> bool:
    """Whether all are numbers; a finite sum of squares tells it fastest."""
    return math.isfinite(values.dot(values)) or all(map(math.isfinite, values.tolist()))


def warmth(difference: float) -> float:
    """Share of the identified friction that a joint still has when it is warmer by ``difference`` [K].

    Lubricants thin: 1 % per kelvin, the half at most. A colder joint has more friction, of which nothing is promised.
    """
    return 1.0 - min(max(FRICTION_PER_KELVIN * difference, 0.0), 0.5)


def inertias(joints: Sequence[JointModel], maps: Sequence[JointMap], dynamics: Dynamics | None) -> FloatArray:
    """Inertia of each joint in the coordinates of its parameter file (n,) [kg m²]: with all others at 0, else the rotor's."""
    rotors = np.array([joint.values.get("armature", 0.0) or math.inf for joint in joints])
    if dynamics is None:
        return rotors
    zero = np.zeros(len(joints))
    whole, _ = dynamics.mass_matrix_and_bias(zero, zero)
    diagonal = whole if whole.ndim == 1 else np.diagonal(whole)
    return np.asarray(diagonal / np.array([m.ratio for m in maps]) ** 2)


class Compensator:
    """The compensation of some joints, without any middleware.

    Off until :meth:`enable`. Every method may be called in any order; nothing raises for bad input of
    a robot: the torque goes to zero and :attr:`doubt` says why.

    :param joints: parameters of each joint.
    :param maps: the robot's convention for each joint.
    :param compiler: makes the law's formulas faster.
    :param dynamics: of the joints in the robot's coordinates and their order; without it nothing is learnt.
    :raises ConfigError: for settings that would not be stable (:func:`check_gain`).
    """

    def __init__(
        self,
        joints: Sequence[JointModel],
        maps: Sequence[JointMap],
        settings: Settings,
        compiler: Compiler = as_written,
        dynamics: Dynamics | None = None,
    ) -> None:
        if not joints:
            raise ConfigError("no joints to compensate; name joints and their parameter files")
        names = [joint.name for joint in joints]
        if len(set(names)) != len(names):
            raise ConfigError(f"joint names must differ, found {', '.join(names)}")
        check_gain(joints, settings.gain, settings.effort_meaning)
        check_delay(joints, inertias(joints, maps, dynamics), settings.loop_delay)
        for joint in joints:
            if settings.mode == "current" and "kt" not in joint.values:
                raise ConfigError(
                    f"joint {joint.name!r}: {joint.actuator.title} has no torque constant, so output_mode current "
                    "is not possible; choose another mode"
                )
        self.names = tuple(names)
        self.settings = settings
        self.model = FrictionModel(joints, compiler)
        self.map = JointMap.stacked(maps)
        self._straight = bool(np.all((self.map.gear == 1.0) & (self.map.offset == 0.0)))
        self.feed_forward = FeedForward(self.model, self.map, settings, compiler, dynamics)
        self._slew_limited = compiled_by(compiler, slew_limited)
        self.enabled = False
        self.doubt: str | None = "not enabled"
        self.torque: FloatArray = np.zeros(len(names))
        self.kp: FloatArray = np.full(len(names), np.nan)
        self.supply: FloatArray = np.array([joint.actuator.supply.nominal for joint in joints])
        self._largest_effort = (LARGEST_EFFORT * self.model.stall).tolist()
        slew = np.full(len(names), settings.slew)
        self._slew = np.where(slew > 0.0, slew, TIMES_TO_FULL_TORQUE * self.model.limit)
        self._order = JointOrder(self.names)
        self._commands, self._goals = Commands(len(names)), Commands(len(names))
        self._clock = StreamClock()
        step = np.array([joint.actuator.resolution for joint in joints]) / self.map.ratio
        moving = self.feed_forward.tuning.moving_velocity / self.map.ratio
        self._plausibility = Plausibility(names, step, moving)
        self._bridged: str | None = None
        self._own, self._controller = Delayed(settings.loop_delay), Delayed(settings.loop_delay)
        self.merger = StateMerger(self.names, settings.state_timeout, settings.other_joints)
        self._telemetry: deque[tuple[float, str, float, float, float]] = deque()
        self._state_arrival = -math.inf
        self._stamp: float | None = None
        self._ramp = 0.0
        self._zero: FloatArray = np.zeros(len(names))
        self._nothing: FloatArray = np.full(len(names), np.nan)
        self._observes = dynamics is not None and settings.adapt
        self._applied = self._slope = self._zero
        self._last_position: FloatArray | None = None
        self._load: FloatArray | None = None
        self._needs_gain = settings.mode == "goal_offset"
        self._looks_at_load = settings.effort_meaning != "none" and self.model.load_dependent

    @property
    def gain(self) -> float:
        """Share of the friction that is cancelled."""
        return self.feed_forward.gain

    @property
    def learned(self) -> tuple[Learned, ...] | None:
        """What was learnt of each joint; ``None`` before any."""
        observer = self.feed_forward.observer
        return None if observer is None else observer.learned

    def account(self) -> Account:
        """What is known of the friction now, for whoever tells it."""
        found, ones = self.feed_forward, np.ones(len(self.names))
        observer, contact, energy = found.observer, found.contact.share, found.tank.share
        if observer is None:
            return Account(ones, ones, self._zero, self._zero, contact, energy)
        offset = np.asarray(self.map.torque(observer.offset))
        return Account(*observer.scales, offset, observer.certainty, contact, energy)

    def recall(self, learned: Sequence[Learned] | None) -> None:
        """Begin with what an earlier run had learnt, or with the parameter files alone.

        :param learned: of each joint, in their order.
        """
        if learned is not None and len(learned) != len(self.names):
            raise ConfigError(f"learned: expected {len(self.names)} joints, found {len(learned)}")
        self.feed_forward.recall(learned)

    # -- switches

    def enable(self) -> None:
        """Start, with the ramp."""
        self.enabled = True
        while self._telemetry:
            self._take_telemetry()
        self._stamp = None
        self._clock.restart()
        self._plausibility.restart()
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
        self.feed_forward.gain = gain
        self.settings = replace(self.settings, gain=gain)

    # -- what comes in

    def on_telemetry(
        self,
        joint: str,
        *,
        kp: float = math.nan,
        supply_voltage: float = math.nan,
        temperature: float = math.nan,
        stamp: float | None = None,
    ) -> None:
        """Firmware gain, supply voltage [V] and temperature [°C] of a joint, where they are known and possible.

        With a ``stamp`` they count for the states that are stamped :data:`TELEMETRY_DELAY` after it.
        """
        if joint not in self.names:
            return
        if stamp is None or not math.isfinite(stamp):
            self._set_telemetry(joint, kp, supply_voltage, temperature)
            return
        if self._telemetry and stamp < self._telemetry[-1][0]:
            self._telemetry.clear()  # time jumped back
        self._telemetry.append((stamp, joint, kp, supply_voltage, temperature))
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
        now: float | None = None,
    ) -> None:
        """A controller's command; fields may be empty. Without ``names`` in the order of the joints.

        A command counts for the states that are stamped after it, or that arrive after it where it has
        no stamp. One that does not name every joint does not count.

        :param now: the time by the clock of the stamps, as :meth:`on_state` has it.
        """
        command = self._command(names, position, velocity, effort)
        if command is not None and self._take(self._commands, arrival, stamp, command, now):
            time = stamp if stamp is not None else self._stamp
            if self._observes and time is not None:
                self._controller.add(time, command.effort)

    def on_goal(
        self,
        arrival: float,
        stamp: float | None,
        names: Sequence[str] | None,
        position: Numbers,
        velocity: Numbers,
        now: float | None = None,
    ) -> None:
        """Where a controller wants the joints, told beside its commands; fields may be empty.

        From the first one on, goals are taken from here instead of from the commands.

        :param now: the time by the clock of the stamps, as :meth:`on_state` has it.
        """
        goal = self._command(names, position, velocity, ())
        if goal is not None:
            self._take(self._goals, arrival, stamp, goal, now)

    def _command(
        self, names: Sequence[str] | None, position: Numbers, velocity: Numbers, effort: Numbers
    ) -> Command | None:
        order, _ = self._order.of(self.names if names is None else tuple(names), strict=False)
        if order is None:
            return None
        return Command(*(picked(values, order) for values in (position, velocity, effort)))

    def _take(
        self, commands: Commands, arrival: float, stamp: float | None, command: Command, now: float | None
    ) -> bool:
        timeout = self.settings.command_timeout
        return commands.add(arrival, stamp, command, self._clock.offset, timeout, now)

    @property
    def notice(self) -> str | None:
        """What is said although the torque is what it should be: clocks that differ."""
        for what, commands in (("goals", self._goals), ("commands", self._commands)):
            if commands.difference:
                side = "behind" if commands.difference > 0.0 else "ahead of"
                return (
                    f"{what} are stamped {abs(commands.difference):.3f} s {side} the states: they count from their "
                    "arrival on; synchronise the clocks"
                )
        return None

    def on_state(
        self,
        arrival: float,
        stamp: float,
        names: Sequence[str],
        position: Numbers,
        velocity: Numbers,
        effort: Numbers,
        now: float | None = None,
    ) -> FloatArray:
        """Friction torque for a measured state, (n,) [N m]: also :attr:`torque`, zero in doubt.

        One state that comes twice, late or jumps is as if it were lost: the torque stays for as long as no
        state at all would leave it.

        :param arrival: when it came, on a steady clock [s].
        :param stamp: header stamp [s].
        :param velocity: may be empty: the slope of the positions is taken.
        :param effort: may be empty where it has no meaning or is not needed.
        :param now: the time by the clock of the stamps, where that need not run as the steady one does:
            simulated time [s].
        """
        with np.errstate(all="ignore"):  # what is absurd ends at the limits, or in doubt
            state = self.merger.take(stamp, names, position, velocity, effort)
            if state is None or not self.enabled:
                return self.torque
            if isinstance(state, str):
                return self._fall_to_zero(state)
            return self._judged(arrival, arrival if now is None else now, state)

    def _judged(self, arrival: float, now: float, state: MeasuredState) -> FloatArray:
        """:meth:`on_state` of an enabled compensator, with what follows from a doubt."""
        try:
            self._check_lag(now, state.stamp)
            return self._follow(arrival, *state)
        except _BridgedError as lost:
            self._bridged = str(lost)
            if self.doubt is None and arrival - self._state_arrival <= self.settings.state_timeout:
                return self.torque
            return self._fall_to_zero(self._bridged)
        except _DoubtError as doubt:
            if (
                math.isfinite(state.stamp) and state.stamp != self._stamp
            ):  # its time has passed: the ramp begins after it
                self._stamp = state.stamp
                self._plausibility.restart()
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

    def _check_lag(self, now: float, stamp: float) -> None:
        """Refuse a state that came later than others.

        :raises _BridgedError: for it.
        """
        if not math.isfinite(stamp):
            return
        if self._stamp is not None and stamp < self._stamp - self.settings.state_timeout:
            self._clock.restart()  # time jumped back
        lag = self._clock.lag(now, stamp)
        if lag > self.settings.state_lag:
            raise _BridgedError(f"states arrive {lag:.2f} s late")

    def _follow(
        self,
        arrival: float,
        stamp: float,
        names: Sequence[str],
        position: Numbers,
        velocity: Numbers,
        effort: Numbers,
        merged: bool,
    ) -> FloatArray:
        """:meth:`on_state` of an enabled compensator.

        :param merged: whether joints were measured at different times: then nothing tells a jump from an old value.
        :raises _DoubtError: if the state says nothing that can be trusted.
        :raises _BridgedError: if it alone says nothing.
        """
        order, before, gap = self._placed(tuple(names), stamp)
        if gap is not None:
            self._fall_to_zero(gap)
        elapsed = 0.0 if before is None else stamp - before
        dt = min(elapsed, LONGEST_STEP)
        at, speed, load = picked(position, order), picked(velocity, order), picked(effort, order)
        told = len(velocity) > 0
        sound = (
            math.isfinite(at.dot(speed)) if told else _finite(at)
        )  # a product that is finite has finite factors
        if not (sound or (told and _finite(at) and _finite(speed))):
            raise _DoubtError("position or velocity is not a number")
        if merged:
            self._plausibility.restart()
        elif before is not None and (jump := self._plausibility.jump(at, speed, elapsed)) is not None:
            raise _BridgedError(jump)
        self._stamp, self._bridged = stamp, None
        while self._telemetry and self._telemetry[0][0] + TELEMETRY_DELAY < stamp:
            self._take_telemetry()
        if self._needs_gain and not (self.kp > 0.0).all():
            raise _DoubtError("the firmware gain is not known: no telemetry yet, and no p_gain is set")
        if not told:
            speed = self._slope_of(at, dt)
        if not merged and (dt > 0.0 or before is None):
            frozen = self._plausibility.frozen(at, speed, dt)
            if frozen is not None and told:
                raise _DoubtError(frozen)
        state = State(stamp, at, speed, at, speed)
        if not self._straight:
            state = State(stamp, at, speed, self.map.servo_position(at), self.map.servo_velocity(speed))
        wanted = self._wanted(state, load, self._wishes(stamp, arrival), dt)
        if not _finite(wanted):
            raise _DoubtError("position, velocity or effort is out of all proportion")
        self._state_arrival, self.doubt = arrival, gap
        self._ramp = min(1.0, self._ramp + dt / self.settings.ramp_time) if self.settings.ramp_time else 1.0
        if self._ramp < 1.0:
            wanted = self._ramp * wanted
        self._applied = self._slew_limited(self._applied, wanted, self._slew, dt)
        self.torque = self._applied if self._straight else self.map.torque(self._applied)
        if self._observes:
            self._own.add(stamp, self.torque)
        return self.torque

    def _wishes(self, stamp: float, arrival: float) -> tuple[Command | None, FloatArray]:
        """Command and commanded velocity that count for a state: goals by their own topic, where they have one."""
        timeout = self.settings.command_timeout
        command, rate = self._commands.before(stamp, arrival, timeout)
        if not self._goals:
            return command, rate
        goal, rate = self._goals.before(stamp, arrival, timeout)
        effort = self._nothing if command is None else command.effort
        if goal is None:
            return (None if command is None else Command(self._nothing, self._nothing, effort)), rate
        return Command(goal.position, goal.velocity, effort), rate

    def _placed(self, names: tuple[str, ...], stamp: float) -> tuple[Order, float | None, str | None]:
        """Order of the joints in a state, stamp of the state before it, and why it is a first one again.

        :raises _DoubtError: if the joints are not ours, or the stamp is none.
        :raises _BridgedError: if time stands still, or a state comes after a later one.
        """
        order, problem = self._order.of(names, strict=self.settings.other_joints == "refuse")
        if order is None:
            raise _DoubtError(problem)
        if not math.isfinite(stamp):
            raise _DoubtError("a stamp is not a number")
        before, timeout = self._stamp, self.settings.state_timeout
        if before is None:
            return order, None, None
        if stamp == before:
            raise _BridgedError("time stands still: a state came twice")
        if before - timeout < stamp < before:
            raise _BridgedError("a state came after a later one")
        if stamp < before:
            self._plausibility.restart()
            return order, None, "time jumped back"
        if stamp - before > timeout:
            gap = self._bridged or f"no states for {1e3 * (stamp - before):.0f} ms"
            self._plausibility.restart()
            return order, None, gap
        return order, before, None

    def _set_telemetry(self, joint: str, kp: float, supply_voltage: float, temperature: float) -> None:
        k = self.names.index(joint)
        identified = self.model.joints[k].temperature
        if math.isfinite(temperature) and identified is not None:
            self.feed_forward.warmth[k] = warmth(temperature - identified)
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
        self._applied = self._slope = self._zero
        self._last_position = None
        self._load = None
        self._own.clear()
        self.feed_forward.restart()

    def _slope_of(self, at: FloatArray, dt: float) -> FloatArray:
        if self._last_position is not None and dt > 0.0:
            share = min(1.0, dt / SLOPE_TIME)
            self._slope = self._slope + share * ((at - self._last_position) / dt - self._slope)
        self._last_position = at
        return self._slope

    def _wanted(
        self,
        state: State,
        effort: FloatArray,
        wishes: tuple[Command | None, FloatArray],
        dt: float,
    ) -> FloatArray:
        """Feed-forward torque of the law, (n,), before ramp and slew.

        :param effort: as measured, in the robot's coordinates.
        :raises _DoubtError: for an effort that is needed and cannot be.
        """
        command, rate = wishes
        wish = self.feed_forward.no_wish
        if command is not None:
            goal = self.map.servo_position(command.position)
            known = np.isfinite(goal) | np.isfinite(command.velocity)
            wish = Wish(goal, self.map.servo_velocity(rate), known)
        motor, external = self._loads(state, effort, command, wish.goal, dt)
        loads = Loads(motor, external, self._looks_at_load)
        # Where more time has passed than the law sees, accelerations would be learnt as friction.
        acting = self._acting(state.stamp, effort) if self._observes and dt < LONGEST_STEP else None
        return self.feed_forward.torque(state, wish, loads, acting, self._applied, dt)

    def _loads(
        self, state: State, effort: FloatArray, command: Command | None, goal: FloatArray, dt: float
    ) -> tuple[FloatArray, FloatArray]:
        """Motor torque without the own feed-forward and external torque, (n,) [N m], zero where they do not matter."""
        if not self._looks_at_load:
            return self._zero, self._zero
        if not self._straight:
            effort = self.map.servo_torque(effort)
        motor = None if command is None else self._controller_torque(state, goal, command)
        if self.settings.effort_meaning == "link":
            external = -self._possible(effort)
            return (-external if motor is None else self._possible(motor)), external
        if motor is None:
            motor = self._own_share_removed(self._possible(effort), dt)
            return motor, -motor
        self._load = None
        return motor, -self._possible(motor)

    def _acting(self, stamp: float, effort: FloatArray) -> FloatArray | None:
        """Torque of the motors that acts at a state, in the robot's coordinates [N m], if it is known."""
        if self.settings.mode == "sum":
            delay = self.feed_forward.loop_delay
            self._own.delay = self._controller.delay = delay
            own, controller = self._own.at(stamp), self._controller.at(stamp)
            if own is None or controller is None or not _finite(controller):
                return None
            return own + controller
        return effort if self.settings.effort_meaning == "motor" and _finite(effort) else None

    def _controller_torque(self, state: State, goal: FloatArray, command: Command) -> FloatArray | None:
        """The controller's torque without feed-forward, where the output mode knows it."""
        found = None
        at, speed = state.position, state.velocity
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
