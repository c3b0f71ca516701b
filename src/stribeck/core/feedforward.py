r"""The torque that cancels friction: direction, strength and limits of each joint, from its motion and its goal.

With a goal its own path gives the direction, measured motion and error correct it, and whatever the identified
law leaves is learnt. Without one the torque is never more than a share of the friction that is surely there.
All arrays are (n,), in the coordinates of the parameter files unless they say otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stribeck.core.compensation import (
    LARGEST_FEEDBACK,
    Compiler,
    FrictionModel,
    JointModel,
    Scales,
    Tuning,
    intended_direction,
    load_feedback,
    motion_direction,
)
from stribeck.core.contact import Contact
from stribeck.core.energy import EnergyTank
from stribeck.core.goals import LEADING, GoalPath
from stribeck.core.joint_map import JointMap
from stribeck.core.observer import FrictionObserver, Learned, Motion
from stribeck.core.residual import Dynamics
from stribeck.core.settings import Settings
from stribeck.core.travel import Travel, Turning

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

SAFETY = 0.85
"""Without a goal: this share of the friction that is surely there, at most."""

STICK_TIME = 0.4
"""Time in which the torque of a joint that sticks although its goal moves on grows by its friction at rest [s]."""

RELEASE_TIME = 0.03
"""Time constant with which that goes again as the joint moves [s]."""

HELD = 0.9
"""Friction holds a joint against this share of itself."""

STEPS = 2.0
"""A velocity that comes in steps tells motion by itself only from so many of them."""

NOISE = 4.0
"""A velocity of so many standard deviations of its noise is motion."""

FOLLOWING = 0.2
"""A joint slower than this share of its goal's velocity sticks."""

BEYOND_PRESLIDING = 3.0
"""Friction is what it is in motion so many presliding lengths after a turn."""

RESIDUAL_TIME = 0.02
"""Shortest time constant of the momentum residual [s]."""

RESIDUAL_LOOPS = 4.0
"""... and in loop times."""

GOAL_LOOP = 6.0
"""With a goal, the motion decides from a velocity that friction makes in so many loop times [1]."""

FREE_LOOP = 2.0
"""The same without a goal, where it is a part of the friction that is added."""

LOOP_SHARE = 0.3
r"""Largest frequency that the intention of a joint at rest may have, :math:`\omega_c T` [rad]."""

RETUNED = 0.5
"""Widths follow inertia and friction so often [s]."""

UNLED_TIME = 0.1
"""A joint whose goal has a velocity alone has none once that has been zero for so long [s]."""

LARGEST_LEARNED = 1.25
"""What is learnt raises the gain by this factor at most."""


class State(NamedTuple):
    """A measured state, (n,) each but the stamp.

    :param stamp: [s].
    :param joint_position: in the robot's coordinates [rad].
    :param joint_velocity: likewise [rad/s].
    :param position: [rad].
    :param velocity: [rad/s].
    """

    stamp: float
    joint_position: FloatArray
    joint_velocity: FloatArray
    position: FloatArray
    velocity: FloatArray


class Wish(NamedTuple):
    """Where a controller wants the joints, (n,) each.

    :param goal: NaN where no position is known [rad].
    :param rate: velocity of the goal [rad/s].
    :param known: where there is a goal, a position or a velocity.
    """

    goal: FloatArray
    rate: FloatArray
    known: BoolArray


class Loads(NamedTuple):
    """What the transmission carries, (n,) each.

    :param motor: motor torque, without the own feed-forward [N m].
    :param external: external torque [N m].
    :param matter: whether the friction depends on them.
    """

    motor: FloatArray
    external: FloatArray
    matter: bool


class FeedForward:
    """The wanted torque of some joints, before ramp and slew.

    :param model: the identified friction.
    :param joint_map: from the robot's coordinates to the parameter files'.
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
        self._zero: FloatArray = np.zeros(n)
        self._base = self._initial_tuning(model.joints)
        rotors = [joint.values.get("armature", 0.0) or math.inf for joint in model.joints]
        self._rotors: FloatArray = np.array(rotors, dtype=np.float64)
        self._steepest = self._largest_scales(model, settings)
        self._intended = compiler(
            lambda velocity, error, rate, *own: intended_direction(velocity, error, rate, Tuning(*own)),
            ("velocity", "error", "rate", *vars(Tuning())),
        )
        self._moving = compiler(
            lambda velocity, moving_velocity: motion_direction(
                velocity, Tuning(moving_velocity=moving_velocity)
            ),
            ("velocity", "moving_velocity"),
        )
        self.path, self.travel, self.turning = GoalPath(n), Travel(n), Turning(n)
        self.contact, self.tank = Contact(n), EnergyTank(model.at_rest)
        self.observer: FrictionObserver | None = None
        self._recalled: Sequence[Learned] | None = None
        self.warmth: FloatArray = np.ones(n)
        """Share of the identified friction that the joints' temperature leaves."""
        self.restart()

    def restart(self) -> None:
        """Forget the motion; what was learnt stays."""
        self._solution = self._boost = self._steep = self._zero
        self._period, self._since_tuned, self.tuning = 0.0, math.inf, self._base
        self._since_seen = 0.0
        self._unled = np.full_like(self._zero, math.inf)
        self.path.restart()
        self.travel.restart()
        self.turning.restart()
        self.contact.restart()
        self.tank.restart()
        if self.observer is not None:
            self.observer.restart()

    def recall(self, learned: Sequence[Learned] | None) -> None:
        """Begin with what was learnt before, or with nothing."""
        self.observer, self._recalled = None, learned

    @property
    def loop_delay(self) -> float:
        """From a measurement to the torque that it makes [s]."""
        return self.settings.loop_delay or 2.0 * self._period

    def torque(
        self,
        state: State,
        wish: Wish,
        loads: Loads,
        acting: FloatArray | None,
        applied: FloatArray,
        dt: float,
    ) -> FloatArray:
        """Feed-forward torque of the law, (n,) [N m].

        :param acting: torque of the motors that acts at this state, in the robot's coordinates [N m], if known.
        :param applied: the own part of it [N m].
        :param dt: time since the last state [s].
        """
        self._period = self._period + 0.05 * (dt - self._period) if self._period else dt
        # The observer's time constant is that of the loop, which one state does not tell.
        observing = (
            self._dynamics is not None and self.settings.adapt and acting is not None and self._period > 0.0
        )
        wish = wish._replace(known=self._known(wish, dt))
        if not observing and not wish.known.any():
            return self._without_goal(state, loads)
        known, speed = wish.known, state.velocity
        self._tune(dt)
        tuning = self._tuning_now(known)
        self.travel.update(state.position, speed, tuning.deadband, dt)
        coarse = STEPS * self.travel.step > tuning.moving_velocity
        motion = self._moving(np.where(coarse, self.travel.velocity, speed), tuning.moving_velocity)
        behind = _beyond(np.where(np.isfinite(wish.goal), wish.goal - state.position, 0.0), tuning.deadband)
        self.path.update(wish.goal, wish.rate, behind, motion, dt, tuning.presliding, tuning.command_velocity)
        self.turning.update(state.position, motion, tuning.presliding)
        leads = known & self.path.leads
        follows = self._follows(wish.rate, tuning)
        if observing:
            how = Motion(
                speed,
                np.where(leads, self.path.direction, motion),
                loads.motor,
                loads.external,
                leads,
                leads & follows & self._beyond_presliding(tuning),
            )
            self._observe(state, acting, how, dt)
        if observing and not known.all():
            rests = known | (np.abs(self.travel.velocity) < 0.1 * tuning.moving_velocity)
            self.tank.update(applied, self.settings.sure * self.model.at_rest, speed, rests, dt)
        led = np.where(known, self.path.share, 0.0)
        direction = self._direction(state, wish, motion, behind, led, tuning)
        gain, scales = self._strength(known, led)
        at = self._law_velocity(wish.rate, speed, motion, leads, led)
        guess = self._solution if loads.matter else None
        found = self.model.feed_forward(gain, direction, at, loads.motor, loads.external, guess, scales)
        self._solution = found
        self._stick(leads & ~follows & (self.path.direction * behind > 0.0), dt)
        return self._bounded(found, direction, led)

    def _known(self, wish: Wish, dt: float) -> BoolArray:
        """Where there is a goal. A velocity of zero without a position says nothing of where a joint is to be: nobody leads it."""
        slowest = LEADING * self.tuning.command_velocity
        says = np.isfinite(wish.goal) | (np.abs(wish.rate) >= slowest)
        self._unled = np.where(says, 0.0, self._unled + dt)
        return np.asarray(wish.known & (self._unled < UNLED_TIME))

    def _without_goal(self, state: State, loads: Loads) -> FloatArray:
        """The torque of joints of which nothing else is known: a share of the identified friction."""
        motion = self._moving(state.velocity, self.tuning.moving_velocity)
        self.turning.update(state.position, motion, self.tuning.presliding)
        direction = np.abs(motion) * self.turning.share
        gain = min(self.gain, 1.0) * min(self.settings.sure, 1.0)
        guess = self._solution if loads.matter else None
        self._solution = self.model.feed_forward(
            gain, direction, state.velocity, loads.motor, loads.external, guess
        )
        return self._solution

    def _direction(
        self,
        state: State,
        wish: Wish,
        motion: FloatArray,
        behind: FloatArray,
        led: FloatArray,
        tuning: Tuning,
    ) -> FloatArray:
        """Direction of the motion that is or is intended, in [-1, 1]."""
        free = np.abs(motion) * self.turning.share
        if not wish.known.any():
            return free
        error = np.where(np.isfinite(wish.goal), wish.goal - state.position, 0.0)
        intended = self._intended(state.velocity, error, wish.rate, *vars(tuning).values())
        path = self.path.direction
        ahead = np.minimum(np.maximum(-behind * path / tuning.error_width, 0.0), 1.0)
        moves = np.where(self.path.leads, motion, 0.0)
        ledway = moves + (1.0 - np.abs(moves)) * path
        ledway = (1.0 - (1.0 - tuning.away) * ahead) * ledway
        return np.where(wish.known, led * ledway + (1.0 - led) * intended, free)

    def _law_velocity(
        self, rate: FloatArray, speed: FloatArray, motion: FloatArray, leads: BoolArray, led: FloatArray
    ) -> FloatArray:
        """Velocity at which the law is asked [rad/s]: the measured one, or where more is known the slower of goal and joint."""
        path = self.path.direction
        if self.observer is None:
            return speed
        slower = np.maximum(self.travel.velocity * path, 0.0)
        slower = np.where(rate != 0.0, np.minimum(np.abs(rate), slower), slower)
        moving = np.where(np.abs(motion) > 0.1, speed, 0.0)
        return np.where(leads, led * slower * path + (1.0 - led) * speed, moving)

    def _follows(self, rate: FloatArray, tuning: Tuning) -> BoolArray:
        """Where a joint moves with its goal."""
        travel, path = self.travel, self.path.direction
        along = np.where(travel.direction * path > 0.0, travel.velocity * path, 0.0)
        return np.asarray(along > np.maximum(FOLLOWING * np.abs(rate), 0.3 * tuning.command_velocity))

    def _beyond_presliding(self, tuning: Tuning) -> BoolArray:
        return np.asarray(self.travel.distance > BEYOND_PRESLIDING * tuning.presliding + tuning.deadband)

    def _stick(self, sticks: BoolArray, dt: float) -> None:
        """What a joint is given beside its friction grows while it sticks although its goal moves on."""
        if self.observer is None:
            return
        grown = np.minimum(self._boost + dt / STICK_TIME, self.observer.doubtful)
        free = self.contact.share < 0.5
        self._boost = np.where(sticks & free, grown, self._boost * math.exp(-dt / RELEASE_TIME))

    def _strength(self, known: BoolArray, led: FloatArray) -> tuple[FloatArray, Scales | None]:
        """Gain of each joint, and the scales of its identified friction.

        Without a goal nothing tells motion that is wanted from motion that the compensation causes itself:
        never more than a share of the friction that is surely there.
        """
        gain, sure = self.gain, self.settings.sure
        observer = self.observer
        if observer is None:
            return np.where(known, gain * self.warmth, min(gain, 1.0) * sure), None
        reached = max(gain, min(self.settings.learned_gain, gain * LARGEST_LEARNED))
        learned = gain + led * observer.certainty * (reached - gain)
        dry_now = np.minimum(observer.scales.dry, self._steepest / max(reached, 1e-9))
        least = sure / SAFETY
        if known.all():
            return learned, Scales(dry_now, observer.scales.viscous)
        known_shares = Scales(self.tank.share, self.tank.share * observer.met)
        dry, viscous = (
            least + share * (np.maximum(part, least) - least)
            for part, share in zip(observer.surely, known_shares, strict=True)
        )
        scales = observer.scales
        return np.where(known, learned, SAFETY * min(reached, 1.0)), Scales(
            np.where(known, dry_now, dry), np.where(known, scales.viscous, viscous)
        )

    def _bounded(self, torque: FloatArray, direction: FloatArray, led: FloatArray) -> FloatArray:
        """The torque with the offset that the law leaves, on the dissipative side, without that at a contact."""
        observer = self.observer
        if observer is None or self.gain == 0.0:
            return torque
        if self.settings.control == "tracking":
            offset = led * np.abs(direction) * observer.offset
            added = torque + offset + self._boost * self.path.direction * self.model.at_rest
            torque = np.where(direction * added > 0.0, added, 0.0)
            torque = np.minimum(np.maximum(torque, -self.model.limit), self.model.limit)
        return np.asarray(torque * (1.0 - self.contact.share))

    def _observe(self, state: State, acting: FloatArray | None, how: Motion, dt: float) -> None:
        """What the momentum of the joints tells of their friction, and of contacts."""
        if self._dynamics is None or acting is None:
            return
        if self.observer is None:
            slowest = max(RESIDUAL_TIME, RESIDUAL_LOOPS * (self.loop_delay + self._period))
            constants = np.full(len(acting), slowest)
            self.observer = FrictionObserver(
                self.model, self._dynamics, self._map, constants, self.settings.adaptation
            )
            self.observer.begin(self._recalled, self.warmth)
        seen = self.observer
        self._since_seen += dt
        if not seen.update(state.joint_position, state.joint_velocity, acting, how, dt):
            return
        elapsed, self._since_seen = self._since_seen, 0.0
        held = np.abs(seen.torque) < HELD * seen.scales.dry * seen.level
        self.contact.update(seen.contact, held, how.led, how.follows, self.path.direction, elapsed)

    def _tuning_now(self, known: BoolArray) -> Tuning:
        """Tuning with the velocity from which a joint moves: it must stand out of its noise, and be slow for the loop."""
        steep = np.where(known, GOAL_LOOP, FREE_LOOP) * self._steep
        least = np.maximum(steep, NOISE * self.travel.noise)
        return replace(self.tuning, moving_velocity=np.maximum(self.tuning.moving_velocity, least))

    def _tune(self, dt: float) -> None:
        r"""Widths below which the loop through motion or error would be too steep for its delay.

        Held by all loops that were simulated: :math:`1.5\,g F_s/e_w \le J\omega_c^2`, :math:`\omega_c = 0.3/T`.
        Where no dynamics are known the rotor's inertia is taken for all there is.
        """
        self._since_tuned += dt
        if self._since_tuned < RETUNED or not self._period:
            return
        observer, inertia = self.observer, self._rotors
        if observer is not None and observer.residual.inertia is not None:
            whole = observer.residual.inertia
            inertia = (whole if whole.ndim == 1 else np.diagonal(whole)) / self._map.ratio**2
            self._since_tuned = 0.0
        elif self._dynamics is None:
            self._since_tuned = 0.0
        loop = self.loop_delay + self._period
        friction = self.model.at_rest if observer is None else observer.scales.dry * self.model.at_rest
        width = 1.5 * friction * (loop / LOOP_SHARE) ** 2 / inertia
        self._steep = friction * loop / inertia
        self.tuning = replace(self._base, error_width=np.maximum(self._base.error_width, width))

    @staticmethod
    def _largest_scales(model: FrictionModel, settings: Settings) -> FloatArray:
        """Scales at gain 1 beyond which feed-forward would feed on the friction that it causes itself (n,) [1]."""
        if settings.effort_meaning == "none":
            return np.full(len(model.joints), math.inf)
        slopes = [load_feedback(j.law, j.values, j.max_torque) for j in model.joints]
        return np.array([LARGEST_FEEDBACK / slope if slope > 0.0 else math.inf for slope in slopes])

    def _initial_tuning(self, joints: Sequence[JointModel]) -> Tuning:
        """Rest and reversals of each joint."""
        said = self.settings.tuning
        if said is None:
            own = [j.tuning or Tuning.of_resolution(j.actuator.resolution) for j in joints]
            return Tuning.stacked(own)
        ratios = {name: 1.0 if name == "away" else self._map.ratio for name in vars(said)}
        n = len(joints)
        return Tuning(**{name: np.zeros(n) + ratios[name] * getattr(said, name) for name in ratios})


def _beyond(error: FloatArray, deadband: FloatArray) -> FloatArray:
    """An error without what the dead-band takes of it."""
    return np.asarray(error - np.minimum(np.maximum(error, -deadband), deadband))
