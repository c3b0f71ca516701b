"""Live friction compensation: states and commands in, feed-forward torque out; zero torque for untrusted states.

Staleness is decided by arrival times on a steady clock. The time of the law itself (ramp, slew limit, filters) is the
difference of header stamps, clipped to [0, :data:`LONGEST_STEP`]. Stamps also define the order: a state uses the
commands that are stamped before it, whenever they arrive. A recording therefore gives the same torque at any playback
rate. Arrays are (n,), one number per joint; inputs and outputs are in the robot's coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stribeck.errors import ConfigError
from stribeck.live.feedforward import FeedForward
from stribeck.live.floating_point import without_warnings
from stribeck.live.formulas import Compiler, as_written, compiled_by
from stribeck.live.friction import FrictionModel, JointModel
from stribeck.live.learning.external import ExternalTorque
from stribeck.live.learning.observer import Learned
from stribeck.live.loads import LoadEstimate
from stribeck.live.outputs import Account, Output, slew_limited
from stribeck.live.samples import State, Wish
from stribeck.live.settings import Settings
from stribeck.live.stability import check_delay, check_gain, inertias, viscous_lag
from stribeck.live.states.admission import JUMPED_BACK, LONGEST_STEP, StateAdmission
from stribeck.live.states.doubt import BridgedError, DoubtError, finite
from stribeck.live.states.incoming import Command, ControllerWishes, Numbers, picked
from stribeck.live.states.merging import MergedState, StateMerger
from stribeck.live.states.plausibility import Plausibility
from stribeck.live.states.servo_state import ServoStates
from stribeck.model.arrays import Array, Mask
from stribeck.model.joint_map import JointMap
from stribeck.rigid.dynamics import Dynamics

TIMES_TO_FULL_TORQUE = 50.0
"""Default slew limit: this multiple of the torque limit per second [1/s]."""

STANDSTILL = 1.0
"""Without a state for this long on the steady clock, the torque is zero even if simulated time stands still [s]."""


class Compensator:
    """Friction compensation of a set of joints, without any middleware.

    It is off until :meth:`enable`. Methods may be called in any order. Bad input from the robot does not raise: the
    torque goes to zero and :attr:`doubt` says why.

    :param maps: sign, gear ratio and offset of each joint.
    :param compiler: compiles the formulas of the law.
    :param dynamics: dynamics of the joints, in the robot's coordinates and joint order; without it nothing is learnt.
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
            raise ConfigError("no joints to compensate: name joints and their parameter files")
        if len(names := [joint.name for joint in joints]) != len(set(names)):
            raise ConfigError(f"joint names must differ, found {', '.join(names)}")
        check_gain(joints, settings.gain, settings.effort_meaning)
        delay, inertia = settings.timing.loop_delay, inertias(joints, maps, dynamics)
        if settings.mode != "goal_offset":  # which takes the friction at the velocity of the goal then
            check_delay(joints, inertia, delay)
        for joint in joints:
            if settings.mode == "current" and "kt" not in joint.values:
                raise ConfigError(
                    f"joint {joint.name!r}: {joint.actuator.title} has no torque constant, which output_mode current needs: choose another output_mode"
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
        self.torque: Array = np.zeros(len(names))
        slew = np.full(len(names), settings.slew)
        self._slew = np.where(slew > 0.0, slew, TIMES_TO_FULL_TORQUE * self.model.limit)
        step = np.array([joint.actuator.resolution for joint in joints]) / self.map.ratio
        moving = self.feed_forward.tuning.moving_velocity / self.map.ratio
        self._admission = StateAdmission(names, settings, Plausibility(names, step, moving))
        self.servos = ServoStates(joints)
        self.feed_forward.warmth = self.servos.warmth
        self.wishes = ControllerWishes(len(names), settings.timing.command_timeout)
        self.loads = LoadEstimate(self.model, self.map, settings, self.servos, dynamics)
        self.feed_forward.delay.begin(viscous_lag(joints, inertia, 1.0), self.loads.latency)
        self.merger = StateMerger(self.names, settings.timing.state_timeout, settings.other_joints)
        self._state_arrival = -math.inf
        self._zero: Array = np.zeros(len(names))
        self._ramp, self._rises, self._rejected = self._zero, True, -math.inf
        self._applied = self._zero
        self._slewed: Array | None = None  # own torque of the last state, where another one was sent
        self._needs_gain = settings.mode == "goal_offset"
        self.state: State | None = None
        """The last state, while it is trusted."""

    @property
    def gain(self) -> float:
        """Fraction of the friction that is cancelled."""
        return self.feed_forward.gain

    @property
    def learned(self) -> tuple[Learned, ...] | None:
        """Learnt scales of each joint; ``None`` before the first state."""
        return None if self.feed_forward.observer is None else self.feed_forward.observer.learned

    @property
    def external_torque(self) -> ExternalTorque | None:
        """External torque and its band; ``None`` without a model of the dynamics, or while states are not trusted."""
        observer = self.feed_forward.observer
        return None if observer is None or self.doubt else observer.external.behind(self.map)

    def account(self) -> Account:
        """Estimate of the present friction, for diagnostics."""
        feed_forward, scale = self.feed_forward, self.feed_forward.tracking.scale
        observer, contact, energy = feed_forward.observer, feed_forward.contact.share, feed_forward.tank.share
        if observer is None:
            return Account(scale, scale, self._zero, self._zero, contact, energy)
        offset = np.asarray(self.map.torque(observer.offset))
        return Account(*observer.scales, offset, observer.certainty, contact, energy)

    def recall(self, learned: Sequence[Learned] | None) -> None:
        """Start with scales learnt in an earlier run, or with the parameter files alone."""
        if learned is not None and len(learned) != len(self.names):
            raise ConfigError(f"learned: expected values of {len(self.names)} joints, found {len(learned)}")
        self.feed_forward.recall(learned)

    # -- switching

    def enable(self, closed_loop: bool = True) -> None:
        """Start, with a ramp of the torque.

        :param closed_loop: whether the motion answers to the torque, as a recording does not.
        """
        self.enabled, self.feed_forward.closed_loop = True, closed_loop
        self.feed_forward.begin()
        self.servos.advance(math.inf)
        self._admission.restart()
        self._fall_to_zero("no valid states yet")

    def disable(self, reason: str = "not enabled") -> None:
        """Set the torque to zero until :meth:`enable`."""
        self.enabled = False
        self._fall_to_zero(reason)

    def set_gain(self, gain: float) -> None:
        """Set the gain from the next state on.

        :raises ConfigError: for a gain that would not be stable; the old one stays.
        """
        check_gain(self.model.joints, gain, self.settings.effort_meaning)
        self.feed_forward.gain = self.loads.gain = gain
        self.settings = replace(self.settings, gain=gain)

    # -- inputs

    def on_telemetry(
        self,
        joint: str,
        *,
        kp: float = math.nan,
        supply_voltage: float = math.nan,
        temperature: float = math.nan,
        stamp: float | None = None,
    ) -> None:
        """Firmware gain, supply voltage [V] and temperature [°C] of a joint; NaN and impossible values are ignored.

        With a ``stamp`` they apply to states stamped at least :data:`~stribeck.live.states.servo_state.TELEMETRY_DELAY` later.
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
        """Command of a controller; fields may be empty. Without ``names``, values are in the order of the joints.

        A command applies to states that are stamped after it or, without a stamp, arrive after it. A command that does not
        name every joint is ignored.

        :param now: current time on the clock of the stamps, as in :meth:`on_state`.
        """
        command = self._command(names, position, velocity, effort)
        if command is not None and self.wishes.command(
            arrival, stamp, command, self._admission.clock.offset, now
        ):
            self.loads.commanded(stamp if stamp is not None else self._admission.stamp, command.effort)

    def on_goal(
        self,
        arrival: float,
        stamp: float | None,
        names: Sequence[str] | None,
        position: Numbers,
        velocity: Numbers,
        now: float | None = None,
    ) -> None:
        """Goal that a controller publishes beside its commands; fields may be empty.

        After the first one, goals inside commands are ignored.

        :param now: current time on the clock of the stamps, as in :meth:`on_state`.
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
    def trusted_state(self) -> State | None:
        """The last state, ``None`` while it, or the position of a joint in it, is not trusted."""
        return self.state if self._admission.frozen is None else None

    def carried(self, effort: Array) -> None:
        """Torque that somebody else than a controller sends beside that against friction after the last state, (n,) [N m]."""
        self.loads.commanded(self._admission.stamp, effort)

    def commanded(self, now: float) -> Command | None:
        """The controller's last command, if it is fresh at ``now`` [s] and holds for every joint what the output needs."""
        command, mode = self.wishes.latest(now), self.settings.mode
        if command is None or (mode == "sum" and not np.isfinite(command.effort).all()):
            return None
        return None if mode == "goal_offset" and not np.isfinite(command.position).all() else command

    @property
    def joints_off(self) -> Mask:
        """Joints without torque while the others are compensated, (n,), those whose model is not enabled included.

        A joint whose position stands still while its velocity says that it moves concerns the others through the rigid-body
        model only, so nothing is learnt meanwhile.
        """
        ended = self.feed_forward.speed_limit.ended | self.model.off
        return ended if self._admission.frozen is None else ended | self._admission.frozen_joints

    @property
    def off_reasons(self) -> tuple[str, ...]:
        """Why the joints of :attr:`joints_off` have no torque, one line each."""
        limit, frozen = self.feed_forward.speed_limit, self._admission.frozen
        ended = [
            limit.reason(self.names[k], bound)
            for k, bound in enumerate((limit.bound / self.map.ratio).tolist())
            if limit.ended[k]
        ]
        return tuple(ended if frozen is None else [frozen, *ended])

    @property
    def notice(self) -> str | None:
        """A warning that does not affect the torque: differing clocks."""
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
    ) -> Array:
        """Friction torque for a measured state, (n,) [N m]; also in :attr:`torque`. Zero if the state is not trusted.

        A single state that is duplicated, late or jumps is treated as lost: the torque stays until states time out.

        :param arrival: arrival time on a steady clock [s].
        :param stamp: header stamp [s].
        :param velocity: if empty, the slope of the positions is used.
        :param effort: may be empty if it has no meaning or is not needed.
        :param now: current time on the clock of the stamps [s], if that differs from the steady clock (simulated time).
        """
        with without_warnings():  # absurd values end at the limits or are rejected
            state = self.merger.take(stamp, names, position, velocity, effort)
            if state is None or not self.enabled:
                return self.torque
            if isinstance(state, str):
                return self._fall_to_zero(state)
            return self._judged(arrival, arrival if now is None else now, state)

    def _judged(self, arrival: float, now: float, state: MergedState) -> Array:
        """:meth:`on_state` of an enabled compensator, including the handling of rejected states."""
        try:
            return self._follow(arrival, now, state)
        except BridgedError as lost:
            self._admission.bridged(str(lost))
            if self.doubt is None and arrival - self._state_arrival <= self.settings.timing.state_timeout:
                return self.torque
            self._fall_to_zero(str(lost))
            self._rejected = state.stamp
            return self.torque
        except DoubtError as doubt:
            self._admission.doubted(state.stamp)
            return self._fall_to_zero(str(doubt))

    def sent(self, friction: Array) -> None:
        """Say which friction torque was sent instead of that of the last state, (n,) [N m]: the other one is not learnt."""
        if self.doubt is None:
            self._slewed = self._applied if self._slewed is None else self._slewed
            self._applied, self.torque = self.map.servo_torque(friction), friction
            self.loads.sent(self._admission.stamp or 0.0, friction)

    def expire(self, now: float, time: float | None = None) -> bool:
        """Set the torque to zero if the states are stale at ``now`` [s]; returns whether that happened in this call.

        :param time: current time on the clock of the stamps [s], if that is simulated. States are then stale if the timeout
            has passed on both clocks, or :data:`STANDSTILL` on the steady one.
        """
        silence = now - self._state_arrival
        if self.doubt is not None or silence <= self.settings.timing.state_timeout:
            return False
        stamp = self._admission.stamp
        if time is not None and stamp is not None and silence <= STANDSTILL:
            behind = self._admission.clock.offset or 0.0
            if time - stamp - behind <= self.settings.timing.state_timeout:
                return False
        self._fall_to_zero(f"no states for {1e3 * silence:.0f} ms")
        return True

    def fade(self, torque: Array, dt: float) -> Array:
        """Reduce another source's friction torque (n,) [N m] towards zero at the slew limit during ``dt`` [s].

        Used to take over from another compensator; the result becomes :attr:`torque`.
        """
        start, reach = self.map.servo_torque(torque), self._slew * dt
        self._applied = np.sign(start) * np.maximum(np.abs(start) - reach, 0.0)
        self.torque = np.asarray(self.map.torque(self._applied))
        return self.torque

    # -- outputs

    def output(self, now: float) -> Output | None:
        """Values to publish at ``now`` [s]; ``None`` without a fresh command to pass on."""
        mode = self.settings.mode
        if mode == "friction_only":
            return Output(self.torque, self.torque)
        if mode == "current":
            return Output(self.map.sign * self.model.currents(self._applied), self.torque)
        if (command := self.commanded(now)) is None:
            return None
        if mode == "sum":
            return Output(command.effort + self.torque, self.torque)
        with np.errstate(all="ignore"):  # a firmware gain near zero gives arbitrarily large offsets
            goal = command.position + self.map.velocity(self.loads.goal_offset(command, self._applied))
        return Output(goal, self.torque) if np.isfinite(goal).all() else None

    # -- internals

    def _follow(self, arrival: float, now: float, measured: MergedState) -> Array:
        """Process a state while compensation is enabled.

        :raises DoubtError: if the state cannot be trusted.
        :raises BridgedError: if only this state is unusable.
        """
        place = self._admission.place(now, measured)
        if place.gap is not None:
            self._fall_to_zero(place.gap)
            if place.gap == JUMPED_BACK:
                self.feed_forward.tracking.begin()
        at, speed, load, dt = self._admission.measured(measured, place)
        stamp = measured.stamp
        self.servos.advance(stamp)
        if self._needs_gain and not (self.servos.kp > 0.0).all():
            raise DoubtError("the firmware gain is not known: there is no telemetry, and p_gain is not set")
        self.state = state = State(stamp, at, speed, at, speed)
        if not self._straight:
            at, speed = self.map.servo_position(at), self.map.servo_velocity(speed)
            self.state = state = state._replace(position=at, velocity=speed)
        wanted = self._wanted(state, load, arrival, dt)
        if not finite(wanted):
            raise DoubtError("position, velocity or effort is impossibly large")
        # The torque rises from zero from the last rejected state on, which may be later than the last accepted one.
        rise = dt if self.doubt is None else min(dt, max(stamp - self._rejected, 0.0))
        self._state_arrival, self.doubt = arrival, place.gap
        off = self.joints_off
        if self._rises or True in off.tolist():
            self._ramp = np.where(off, 0.0, self._risen(rise))
            self._rises = bool((self._ramp < 1.0).any())
            wanted, self._applied = self._ramp * wanted, np.where(off, 0.0, self._applied)
            self._slewed = self._applied if self._slewed is None else np.where(off, 0.0, self._slewed)
        before, self._slewed = self._applied if self._slewed is None else self._slewed, None
        self._applied = self._slew_limited(before, wanted, self._slew, rise)
        self.torque = self._applied if self._straight else self.map.torque(self._applied)
        self.loads.sent(stamp, self.torque)
        return self.torque

    def _risen(self, time: float) -> Array:
        ramp_time = self.settings.timing.ramp_time
        return np.minimum(1.0, self._ramp + time / ramp_time) if ramp_time else np.ones_like(self._zero)

    def _fall_to_zero(self, reason: str) -> Array:
        self.doubt = reason
        self._restart()
        self.torque = np.zeros(len(self.names))
        return self.torque

    def _restart(self) -> None:
        """Forget everything that a gap or an untrusted state invalidates; restart the ramp."""
        self._ramp, self._rises, self._rejected = self._zero, True, -math.inf
        self._applied, self._slewed, self.state = self._zero, None, None
        self._admission.forget_slope()
        self.loads.restart()
        self.feed_forward.restart()

    def _wanted(self, state: State, effort: Array, arrival: float, dt: float) -> Array:
        """Feed-forward torque of the law, (n,), before ramp and slew limit.

        :param effort: as measured, in the robot's coordinates.
        :raises DoubtError: for an impossible effort where one is needed.
        """
        command, rate, age = self.wishes.before(state.stamp, arrival, self._admission.late)
        wish = self.feed_forward.no_wish
        if command is not None:
            goal, rate = self.map.servo_position(command.position), self.map.servo_velocity(rate)
            has_goal = np.isfinite(goal) | np.isfinite(command.velocity)
            wish = Wish(goal, rate, has_goal, age)
        servo_effort = effort if self._straight else self.map.servo_torque(effort)
        trusted = self._admission.frozen is None
        loads = self.loads.loads(state, servo_effort, command, wish, self._applied, dt, trusted)
        acting = None
        if not trusted:
            self.feed_forward.suspend()
        # After a clipped time step, accelerations would be mistaken for friction.
        elif self.loads.observed and dt < LONGEST_STEP:
            acting = self.loads.acting(state.stamp, effort, self.feed_forward.loop_delay)
        return self.feed_forward.torque(state, wish, loads, acting, self._applied, dt)
