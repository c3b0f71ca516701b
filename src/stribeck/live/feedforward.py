r"""Feed-forward torque for friction: direction, magnitude and limits for each joint, from its motion and its goal.

With a goal, the goal's path gives the direction, corrected by the measured motion and the error, and the deviation
from the identified law is learnt. Without a goal, the torque stays below a fraction of the guaranteed friction.
All arrays are (n,), in the coordinates of the parameter files unless stated otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from stribeck.live.direction import formulas
from stribeck.live.direction.goals import GoalPath
from stribeck.live.direction.motion import Tuning
from stribeck.live.direction.travel import Travel, Turning
from stribeck.live.formulas import Compiler, compiled_by
from stribeck.live.friction import AS_IDENTIFIED, FrictionModel, Scales, initial_tuning
from stribeck.live.learning import tracking
from stribeck.live.learning.contact import Contact
from stribeck.live.learning.energy import EnergyTank, SpeedLimit
from stribeck.live.learning.latency import ServoDelay
from stribeck.live.learning.observer import FrictionObserver, Learned, Motion
from stribeck.live.samples import Loads, State, Wish
from stribeck.live.settings import Settings
from stribeck.live.stability import largest_scales
from stribeck.model.arrays import Array, Mask
from stribeck.model.joint_map import JointMap
from stribeck.rigid.dynamics import Dynamics

SAFETY = 0.85
"""Without a goal: largest fraction of the guaranteed friction that is cancelled [1]."""

STICK_TIME = 0.4
"""Time in which the extra torque of a stuck joint with a moving goal grows by the friction at rest [s]."""

RELEASE_TIME = 0.03
"""Time constant with which that extra torque decays once the joint moves [s]."""

HELD = 0.9
"""Fraction of the friction up to which friction alone is considered to hold a joint [1]."""

BEYOND_PRESLIDING = 3.0
"""Distance after a reversal, in presliding lengths, beyond which friction is fully developed [1]."""

RESIDUAL_TIME = 0.02
"""Shortest time constant of the momentum residual [s]."""

RESIDUAL_LOOPS = 4.0
"""Shortest time constant of the momentum residual, in loop times [1]."""

LOOP_SHARE = 0.3
r"""Largest bandwidth of the loop through the error of a joint at rest, times the loop delay: :math:`\omega_c T` [rad]."""

RETUNED = 0.5
"""Period with which the tuning is adapted to inertia and friction [s]."""

UNLED_TIME = 0.1
"""A goal without a position is dropped once its velocity has been zero for this long [s]."""

LARGEST_LEARNED = 1.25
"""Largest factor by which learning raises the gain [1]."""

WHOLE = 0.99
"""Gain above which all friction is to be cancelled [1]."""


class FeedForward:
    """Computes the wanted feed-forward torque of several joints, before ramp and slew limit.

    :param joint_map: from the robot's coordinates to those of the parameter files.
    :param dynamics: of the joints in the robot's coordinates; without it nothing is learnt.
    """

    def __init__(
        self,
        model: FrictionModel,
        joint_map: JointMap,
        settings: Settings,
        compiler: Compiler,
        dynamics: Dynamics | None,
    ) -> None:
        n = len(model.joints)
        self.model, self.settings, self.gain = model, settings, settings.gain
        self._map, self._dynamics = joint_map, dynamics
        self._zero: Array = np.zeros(n)
        self._base = initial_tuning(model.joints, settings.tuning, joint_map.ratio)
        rotors = [joint.values.get("armature", 0.0) or math.inf for joint in model.joints]
        self._rotors: Array = np.array(rotors, dtype=np.float64)
        self._steepest = largest_scales(model.joints, settings.effort_meaning)
        self._joints, self._compiler = n, compiler
        nothing: Array = np.full(n, math.nan)
        self.no_wish = Wish(nothing, self._zero, np.zeros(n, dtype=np.bool_), 0.0)
        """Used when no controller has sent a goal."""
        self._compile(compiler)
        self.path, self.travel = GoalPath(n, compiler), Travel(n, compiler)
        self.turning, self.tracking = Turning(n, compiler), tracking.TrackingScale(n, compiler)
        self.contact, self.tank = Contact(n), EnergyTank(model.at_rest, compiler)
        ratio = np.ones(n) * joint_map.ratio
        self.speed_limit = SpeedLimit(self.tank.capacity, self._rotors, ratio, compiler)
        self.delay = ServoDelay(n, settings.timing.loop_delay)
        """Delay by which positions follow the goals that the torque goes with."""
        self.closed_loop = True
        """Whether the motion answers to the torque, as that of a recording does not."""
        self._guaranteed = self._zero
        """Part of the last torque that the guaranteed friction takes [N m]."""
        self.observer: FrictionObserver | None = None
        self._recalled: Sequence[Learned] | None = None
        self.warmth: Array = np.ones(n)
        """Ratio of the friction at the joints' temperature to the identified friction."""
        self.restart()

    def _compile(self, compiler: Compiler) -> None:
        compiled = partial(compiled_by, compiler)
        self._moving, self._measured = compiled(formulas.moving), compiled(formulas.measured)
        self._error_share = compiled(formulas.error_share)
        self._free, self._free_at = compiled(formulas.free), compiled(formulas.free_at)
        self._present, self._surely = compiled(formulas.present), compiled(formulas.surely_present)
        self._unled_of, self._threshold = compiled(formulas.unled), compiled(formulas.threshold)
        self._behind = compiled(formulas.behind)
        self._intended, self._direction = compiled(formulas.intended), compiled(formulas.direction)
        self._law_velocity = compiled(formulas.law_velocity)
        self._following, self._stuck = compiled(formulas.following), compiled(formulas.stuck)
        self._learned_gain, self._offset = compiled(formulas.learned_gain), compiled(formulas.offset)
        self._goes, self._slip = compiled(formulas.goes), compiled(formulas.slip)
        self._refilled, self._moving_at = compiled(formulas.refilled), compiled(formulas.moving_at)
        self._guaranteed_of, self._most_beyond = compiled(formulas.guaranteed), compiled(tracking.most_beyond)

    def restart(self) -> None:
        """Forget the motion but keep what was learnt."""
        self._solution = self._boost = self._steep = self._guaranteed = self._zero
        self._period, self._since_tuned, self.tuning = 0.0, math.inf, self._base
        self._unled = np.full_like(self._zero, math.inf)
        self.path.restart()
        self.travel.restart()
        self.turning.restart()
        self.contact.restart()
        self.tracking.restart()
        self.speed_limit.restart()
        if self.observer is not None:
            self.observer.restart()

    def suspend(self) -> None:
        """Nothing can be learnt from a state: forget the motion that led to it."""
        if self.observer is not None:
            self.observer.restart()

    def begin(self) -> None:
        """Start anew, also the joints whose compensation has ended; keep what was learnt."""
        self.tank.restart()
        self.tracking.begin()
        self.speed_limit.ended = np.zeros_like(self.speed_limit.ended)

    def recall(self, learned: Sequence[Learned] | None) -> None:
        """Start with scales learnt earlier, or with none. Without a goal, they count once motion has confirmed them."""
        self.observer, self._recalled = None, learned
        self.tank.forget()

    @property
    def loop_delay(self) -> float:
        """Time from a measurement to the torque computed from it [s]."""
        return self.settings.timing.loop_delay or 2.0 * self._period

    @property
    def _loop(self) -> Array:
        """The same of each joint with what was measured, and one period (n,) [s]."""
        return np.maximum(self.loop_delay, self.delay.lag) + self._period

    def torque(
        self, state: State, wish: Wish, loads: Loads, acting: Array | None, applied: Array, dt: float
    ) -> Array:
        """Feed-forward torque of the law, (n,) [N m].

        :param acting: motor torque that acts at this state, in the robot's coordinates [N m], if known.
        :param applied: feed-forward torque contained in it [N m].
        :param dt: time since the last state [s].
        """
        self._period = self._period + 0.05 * (dt - self._period) if self._period else dt
        # The observer's time constant depends on the period of the states, which a single state does not give.
        adapts = self._dynamics is not None and self.settings.adapt and self._period > 0.0
        observing = adapts and acting is not None
        known = self._known(wish, dt)
        led_count = known.tolist().count(True)
        if not observing and not led_count:
            return self._without_goal(state, loads, applied, dt)
        speed, tuning, travel, path = state.velocity, self._tune(dt), self.travel, self.path
        moving = self._threshold(tuning.moving_velocity, known, self._steep, travel.bends)
        travel.update(state.position, speed, tuning.deadband, dt)
        motion = self._measured(speed, travel.velocity, travel.step, moving)
        present = self._present(wish.goal, wish.rate, wish.age - self.delay.lag)
        behind = self._behind(present, state.position, tuning.deadband)
        error = self._error_share(present, state.position, tuning.deadband)
        path.update(
            wish.goal, wish.rate, behind, motion, dt, tuning.presliding, tuning.command_velocity, error
        )
        self.turning.update(state.position, motion, tuning.presliding)
        if self.closed_loop:
            self._track(wish.rate, behind, known, dt)
        leads = known & path.leads
        self._draw(applied, speed, moving, known, wish, dt)
        if observing and self._dynamics is not None and acting is not None:
            self._observe(
                self._present_observer(self._dynamics), state, acting, motion, loads, leads, wish.rate,
                applied, known, dt,
            )  # fmt: skip
        led = path.share * known
        pushed = self.observer.pushed if observing and self.observer is not None else self._zero
        direction = self._free(motion, self.turning.share, pushed)
        if led_count:
            widths = tuning.deadband, tuning.error_width, tuning.command_velocity, tuning.overshoot_fraction
            intended = self._intended(speed, state.position, present, wish.rate, moving, *widths)
            direction = self._direction(
                motion, behind, path.direction, path.leads, led, known, intended, direction,
                tuning.error_width, tuning.overshoot_fraction,
            )  # fmt: skip
        gain, scales, at = *self._strength(known, led, led_count), speed
        if self.observer is not None:
            at = self._law_velocity(wish.rate, speed, travel.velocity, motion, path.direction, leads, led)
        if True in self.delay.by_goal.tolist():
            at = np.where(self.delay.by_goal & known, np.where(np.isnan(wish.rate), 0.0, wish.rate), at)
        torque = self._of_law(gain, direction, at, state, loads, scales)
        self._guaranteed = self._guaranteed_of(
            torque, gain, *(scales or AS_IDENTIFIED), self.settings.certain_fraction
        )
        return self._bounded(torque, direction, led, leads, behind, wish.rate, dt)

    def _track(self, rate: Array, behind: Array, known: Mask, dt: float) -> None:
        """Adapt scales of joints to the errors with which they follow their goals; above 1 they count beside learnt friction, too.

        They rise above 1 only where a controller follows the goals itself, and all friction is to be cancelled: a position servo lags without any friction, and
        impedance must yield. Beside learnt friction they are at most 1 at standstill before a goal at rest: an obstacle may hold the joint.
        """
        path, travel, settings = self.path, self.travel, self.settings
        full = min(settings.learned_gain, LARGEST_LEARNED * self.gain) >= WHOLE
        rises = full and settings.adapt and settings.control == "tracking" and settings.mode != "goal_offset"
        observer, gain = self.observer, max(self.gain if self.observer is None else self._reached, 1e-9)
        upper = settings.adaptation.scale_upper / gain if rises else 1.0
        most = np.maximum(np.minimum(upper, self._steepest / gain), 1.0)
        going = self._goes(travel.velocity, self.tuning.moving_velocity)
        # The firmware of a position servo stops the joint by itself, long before its answer is seen.
        servo = settings.mode == "goal_offset"
        loop, slip = 0.0 if servo else self.loop_delay + self._period, tracking.SLIP * np.abs(self._map.ratio)
        allowed = tracking.slack(self.model.at_rest, loop, self._rotors, slip)
        start, least = tracking.first(self.gain, allowed), self._zero
        if observer is not None:
            learned = self._learned_gain(self.gain, 1.0, observer.certainty, self._reached)
            seen = observer.certainty, *observer.scales, observer.wrong, self.contact.share, observer.sudden
            beyond = self._most_beyond(most, learned, *seen, allowed)
            free = known & ((path.moves > 0.0) | (going > 0.0))
            most, least = np.where(free, beyond, 1.0), tracking.least_beside(start, observer.certainty)
        slip = self._slip(rate, travel.velocity)
        self.tracking.update(
            behind, slip, path.direction, path.moves, going, self._base.error_width, most, dt,
            start if servo or self._period > 0.0 else None, loop, least,
        )  # fmt: skip

    def _draw(self, applied: Array, speed: Array, moving: Array, known: Mask, wish: Wish, dt: float) -> None:
        """Account for the energy that the torque so far has added."""
        travel, deadband = self.travel, self.tuning.deadband
        goal = self._surely(wish.goal, wish.rate, wish.age - self.delay.lag, speed, travel.direction)
        refilled = self._refilled(
            known, goal, travel.extreme, travel.direction, travel.since, deadband, travel.velocity, moving
        )
        drawing = self._moving_at(speed, travel.velocity, moving)
        self.tank.update(applied, self._guaranteed, drawing, refilled, dt, self._loop)
        self.speed_limit.update(applied, speed, known & refilled, dt, travel.velocity)

    def _known(self, wish: Wish, dt: float) -> Mask:
        """Joints that have a goal. Without a position, a velocity that stays zero is no goal."""
        if wish is self.no_wish:
            self._unled = self._unled + dt
            return self.no_wish.known
        self._unled = self._unled_of(self._unled, wish.goal, wish.rate, self.tuning.command_velocity, dt)
        return np.asarray(wish.known & (self._unled < UNLED_TIME))

    def _without_goal(self, state: State, loads: Loads, applied: Array, dt: float) -> Array:
        """Torque of joints without goal and observer: a fraction of the identified friction."""
        self.speed_limit.update(applied, state.velocity, None, dt)
        moving = self.tuning.moving_velocity
        motion = None if self.turning.begun else self._moving(state.velocity, moving)
        self.turning.update(state.position, motion, self.tuning.presliding)
        direction = self._free_at(state.velocity, moving, self.turning.share)
        gain = min(self.gain, 1.0) * self.settings.certain_fraction
        return self._of_law(gain, direction, state.velocity, state, loads, None)

    def _of_law(self, gain: float | Array, sign: Array, at: Array, state: State, loads: Loads, scales: Scales | None) -> Array:  # fmt: skip
        """Torque at a velocity, which is the next guess of the one where friction depends on it."""
        guess, acting = self._solution if loads.matter else None, (loads.motor, loads.external)
        self._solution = self.model.feed_forward(gain, sign, at, *acting, guess, scales, state.position)
        return self._solution

    @property
    def _reached(self) -> float:
        """Largest gain with learnt friction."""
        return max(self.gain, min(self.settings.learned_gain, self.gain * LARGEST_LEARNED))

    def _strength(self, known: Mask, led: Array, led_count: int) -> tuple[Array, Scales | None]:
        """Gain of each joint, and the scales of its identified friction.

        Without a goal, intended motion is indistinguishable from motion that the compensation itself causes. The torque
        then stays below a fraction of the guaranteed friction.
        """
        gain, certain = self.gain, self.settings.certain_fraction
        observer, fades, least = self.observer, self.tank.fades, min(gain, 1.0) * certain
        if observer is None:
            warm = gain * self.warmth * self.tracking.scale
            warm = formulas.faded(warm, least, self.tank.share) if fades else warm
            return warm if led_count == self._joints else np.where(known, warm, least), None
        reached = self._reached
        learned = self._learned_gain(gain, led, observer.certainty, reached)
        more = self.tracking.scale
        dry_now = np.minimum(observer.scales.dry * more, self._steepest / max(reached, 1e-9))
        viscous_now = observer.scales.viscous * more
        if fades:
            floor, share = least / np.maximum(learned, 1e-9), self.tank.share
            dry_now = formulas.faded(dry_now, floor, share)
            viscous_now = formulas.faded(viscous_now, floor, share)
        if led_count == self._joints:
            return learned, Scales(dry_now, viscous_now)
        # What motion has shown not to be there is not guaranteed either.
        low = tuple(np.minimum(certain / SAFETY, scale) for scale in observer.scales)
        free = self.tank.free_share
        known_shares = Scales(free, free * observer.met)
        dry, viscous = (
            floor + share * (np.maximum(part, floor) - floor)
            for part, share, floor in zip(observer.surely, known_shares, low, strict=True)
        )
        return np.where(known, learned, SAFETY * min(reached, 1.0)), Scales(
            np.where(known, dry_now, dry), np.where(known, viscous_now, viscous)
        )

    def _bounded(
        self,
        torque: Array,
        direction: Array,
        led: Array,
        leads: Mask,
        behind: Array,
        rate: Array,
        dt: float,
    ) -> Array:
        """The torque with the learnt offset, zero where opposite to the direction, faded out at a contact.

        An extra torque grows while a joint sticks although its goal moves on.
        """
        observer, path, contact = self.observer, self.path.direction, self.contact.share
        if observer is None:
            return torque
        follows = self._follows(rate)
        release = math.exp(-dt / RELEASE_TIME)
        self._boost = self._stuck(
            self._boost, dt / STICK_TIME, observer.doubtful, release, leads, follows, path, behind, contact
        )
        if self.gain == 0.0:
            return torque
        if self.settings.control != "tracking":
            return np.asarray(torque * (1.0 - contact))
        at_rest, limit, boost = self.model.at_rest, self.model.limit, self._boost
        if self.tank.fades:
            led, boost = led * self.tank.share, boost * self.tank.share
        return np.asarray(
            self._offset(torque, led, direction, observer.offset, boost, path, at_rest, limit, contact)
        )

    def _follows(self, rate: Array) -> Mask:
        travel = self.travel
        return np.asarray(
            self._following(
                travel.direction, travel.velocity, self.path.direction, rate, self.tuning.command_velocity
            )
        )

    def _observe(
        self,
        seen: FrictionObserver,
        state: State,
        acting: Array,
        motion: Array,
        loads: Loads,
        leads: Mask,
        rate: Array,
        applied: Array,
        known: Mask,
        dt: float,
    ) -> None:
        path, tuning = self.path.direction, self.tuning
        if not seen.update(state.joint_position, state.joint_velocity, acting, applied, dt):
            return
        beyond = self.travel.distance > BEYOND_PRESLIDING * tuning.presliding + tuning.deadband
        follows = leads & self._follows(rate) & beyond
        direction = np.where(leads, path, motion)
        loaded = loads.motor, loads.external
        now = Motion(
            state.position, state.velocity, direction, *loaded, leads, follows, beyond & ~known, motion
        )
        elapsed = seen.conclude(now)
        self.tank.fill(np.where(seen.learning, np.abs(seen.torque * state.velocity) * elapsed, 0.0))
        held = np.abs(seen.torque) < HELD * seen.scales.dry * seen.level
        rests, met = known & (self.path.moves < 0.5), seen.touched * path < 0.0
        self.contact.update(seen.contact, held, leads, follows, path, elapsed, rests, met)

    def _present_observer(self, dynamics: Dynamics) -> FrictionObserver:
        """The observer, created at the first state because its time constant depends on the period of the states."""
        if self.observer is None:
            slowest = max(RESIDUAL_TIME, RESIDUAL_LOOPS * (self.loop_delay + self._period))
            constants = np.full(self._joints, slowest)
            self.observer = FrictionObserver(
                self.model, dynamics, self._map, constants, self.settings.adaptation, self._compiler
            )
            self.observer.begin(self._recalled, self.warmth)
        return self.observer

    def _tune(self, dt: float) -> Tuning:
        r"""The tuning with widths large enough for the loop through motion or error to be stable despite its delay.

        All simulated loops were stable with :math:`1.5\,g F_s/e_w \le J\omega_c^2`, :math:`\omega_c = 0.3/T`.
        Without known dynamics, J is the rotor's inertia alone.
        """
        self._since_tuned += dt
        if self._since_tuned < RETUNED or not self._period:
            return self.tuning
        observer, inertia = self.observer, self._rotors
        if observer is not None and observer.residual.inertia is not None:
            whole = observer.residual.inertia
            inertia = (whole if whole.ndim == 1 else np.diagonal(whole)) / self._map.ratio**2
            self._since_tuned = 0.0
        elif self._dynamics is None:
            self._since_tuned = 0.0
        self.delay.update()
        loop = self._loop
        scale = np.maximum(self.gain * self.tracking.scale, 1.0)
        if observer is not None:
            scale = observer.scales.dry * np.maximum(self.tracking.scale, 1.0)
        friction = scale * self.model.at_rest
        width = 1.5 * friction * (loop / LOOP_SHARE) ** 2 / inertia
        self._steep = friction * loop / inertia
        self.speed_limit.set_inertia(inertia)
        self.tuning = replace(self._base, error_width=np.maximum(self._base.error_width, width))
        return self.tuning
