"""Live compensation: states and commands in, feed-forward torque out, and zero whenever in doubt.

Two clocks. What is stale is decided by arrival on a steady clock. The law's own time (ramp-in, slew
limit, filters) is the difference of header stamps, clipped to [0, :data:`LONGEST_STEP`], and stamps
give order: of what comes in, a state sees what is stamped before it, however close to it that arrives.
So a recording played at any rate gives the same torque. Arrays are (n,), one number per joint, in the
robot's coordinates where they come in and go out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stribeck.core.admission import LONGEST_STEP, StateAdmission
from stribeck.core.compensation import (
    FrictionModel,
    JointModel,
    check_delay,
    check_gain,
)
from stribeck.core.doubt import BridgedError, DoubtError, finite
from stribeck.core.dynamics import Dynamics
from stribeck.core.feedforward import FeedForward, State, Wish
from stribeck.core.formulas import Compiler, as_written, compiled_by
from stribeck.core.incoming import Command, ControllerWishes, Numbers, picked
from stribeck.core.joint_map import JointMap
from stribeck.core.loads import LoadEstimate
from stribeck.core.merging import MergedState, StateMerger
from stribeck.core.namespace import array_namespace
from stribeck.core.observer import Learned
from stribeck.core.plausibility import Plausibility
from stribeck.core.servo_state import ServoStates
from stribeck.core.settings import Settings
from stribeck.errors import ConfigError

FloatArray = npt.NDArray[np.float64]

TIMES_TO_FULL_TORQUE = 50.0
"""Default slew limit: the torque limit this many times per second."""


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
        slew = np.full(len(names), settings.slew)
        self._slew = np.where(slew > 0.0, slew, TIMES_TO_FULL_TORQUE * self.model.limit)
        step = np.array([joint.actuator.resolution for joint in joints]) / self.map.ratio
        moving = self.feed_forward.tuning.moving_velocity / self.map.ratio
        self._admission = StateAdmission(names, settings, Plausibility(names, step, moving))
        self.servos = ServoStates(joints)
        self.feed_forward.warmth = self.servos.warmth
        self.wishes = ControllerWishes(len(names), settings.command_timeout)
        observes = dynamics is not None and settings.adapt
        self._loads = LoadEstimate(self.model, self.map, settings, self.servos, observes)
        self.merger = StateMerger(self.names, settings.state_timeout, settings.other_joints)
        self._state_arrival = -math.inf
        self._ramp = 0.0
        self._zero: FloatArray = np.zeros(len(names))
        self._applied = self._zero
        self._needs_gain = settings.mode == "goal_offset"

    @property
    def gain(self) -> float:
        """Share of the friction that is cancelled."""
        return self.feed_forward.gain

    @property
    def kp(self) -> FloatArray:
        """Firmware gains, NaN where unknown, (n,)."""
        return self.servos.kp

    @property
    def supply(self) -> FloatArray:
        """Supply voltages (n,) [V]."""
        return self.servos.supply

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
        self.servos.advance(math.inf)
        self._admission.restart()
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

        With a ``stamp`` they count for the states that are stamped :data:`~stribeck.core.servo_state.TELEMETRY_DELAY`
        after it.
        """
        self.servos.take(joint, kp, supply_voltage, temperature, stamp, self.enabled)

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
        if command is not None and self.wishes.command(
            arrival, stamp, command, self._admission.clock.offset, now
        ):
            self._loads.commanded(stamp if stamp is not None else self._admission.stamp, command.effort)

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
            self.wishes.goal(arrival, stamp, goal, self._admission.clock.offset, now)

    def _command(
        self, names: Sequence[str] | None, position: Numbers, velocity: Numbers, effort: Numbers
    ) -> Command | None:
        order, _ = self._admission.order.of(self.names if names is None else tuple(names), strict=False)
        if order is None:
            return None
        return Command(*(picked(values, order) for values in (position, velocity, effort)))

    @property
    def notice(self) -> str | None:
        """What is worth saying although the torque is right: clocks that differ."""
        return self.wishes.notice

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

    def _judged(self, arrival: float, now: float, state: MergedState) -> FloatArray:
        """:meth:`on_state` of an enabled compensator, with what follows from a doubt."""
        try:
            return self._follow(arrival, now, state)
        except BridgedError as lost:
            self._admission.bridged(str(lost))
            if self.doubt is None and arrival - self._state_arrival <= self.settings.state_timeout:
                return self.torque
            return self._fall_to_zero(str(lost))
        except DoubtError as doubt:
            self._admission.doubted(state.stamp)
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
        command = self.wishes.latest(now)
        if command is None:
            return None
        own = command.effort if mode == "sum" else command.position
        if not np.isfinite(own).all():
            return None
        if mode == "sum":
            return Output(own + self.torque, self.torque)
        with np.errstate(all="ignore"):  # a firmware gain next to nothing asks for any offset
            torque = self._applied + self._loads.feed_forward_of(command)
            goal = own + self.map.velocity(self.model.offsets(torque, self.kp, self.supply))
        return Output(goal, self.torque) if np.isfinite(goal).all() else None

    # -- inside

    def _follow(self, arrival: float, now: float, measured: MergedState) -> FloatArray:
        """:meth:`on_state` of an enabled compensator.

        :raises DoubtError: if the state says nothing that can be trusted.
        :raises BridgedError: if it alone says nothing.
        """
        place = self._admission.place(now, measured)
        if place.gap is not None:
            self._fall_to_zero(place.gap)
        at, speed, load, dt = self._admission.measured(measured, place)
        stamp = measured.stamp
        self.servos.advance(stamp)
        if self._needs_gain and not (self.servos.kp > 0.0).all():
            raise DoubtError("the firmware gain is not known: no telemetry yet, and no p_gain is set")
        state = State(stamp, at, speed, at, speed)
        if not self._straight:
            state = State(stamp, at, speed, self.map.servo_position(at), self.map.servo_velocity(speed))
        wanted = self._wanted(state, load, arrival, dt)
        if not finite(wanted):
            raise DoubtError("position, velocity or effort is out of all proportion")
        self._state_arrival, self.doubt = arrival, place.gap
        self._ramp = min(1.0, self._ramp + dt / self.settings.ramp_time) if self.settings.ramp_time else 1.0
        if self._ramp < 1.0:
            wanted = self._ramp * wanted
        self._applied = self._slew_limited(self._applied, wanted, self._slew, dt)
        self.torque = self._applied if self._straight else self.map.torque(self._applied)
        self._loads.sent(stamp, self.torque)
        return self.torque

    def _fall_to_zero(self, reason: str) -> FloatArray:
        self.doubt = reason
        self._restart()
        self.torque = np.zeros(len(self.names))
        return self.torque

    def _restart(self) -> None:
        """Forget everything that a doubt or a gap makes worthless; the ramp begins anew."""
        self._ramp = 0.0
        self._applied = self._zero
        self._admission.forget_slope()
        self._loads.restart()
        self.feed_forward.restart()

    def _wanted(self, state: State, effort: FloatArray, arrival: float, dt: float) -> FloatArray:
        """Feed-forward torque of the law, (n,), before ramp and slew limit.

        :param effort: as measured, in the robot's coordinates.
        :raises DoubtError: for an effort that is needed and cannot be.
        """
        command, rate = self.wishes.before(state.stamp, arrival)
        wish = self.feed_forward.no_wish
        if command is not None:
            goal = self.map.servo_position(command.position)
            known = np.isfinite(goal) | np.isfinite(command.velocity)
            wish = Wish(goal, self.map.servo_velocity(rate), known)
        servo_effort = effort if self._straight else self.map.servo_torque(effort)
        loads = self._loads.loads(state, servo_effort, command, wish.goal, self._applied, dt)
        acting = None
        # Where more time has passed than the law sees, accelerations would be learnt as friction.
        if self._loads.observed and dt < LONGEST_STEP:
            acting = self._loads.acting(state.stamp, effort, self.feed_forward.loop_delay)
        return self.feed_forward.torque(state, wish, loads, acting, self._applied, dt)
