r"""Estimates the present friction from motion: scales and offset of the identified law, and a lower bound.

It combines the momentum residual (:mod:`stribeck.live.learning.residual`) and a Kalman filter (:mod:`stribeck.live.learning.adaptation`)
for joints of known inertia, in the coordinates of the parameter files. It learns only while a joint follows a goal.
Without a goal, a pushing hand looks like less friction and a braking hand like more, and no measurement of the joint
distinguishes the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from stribeck.live.formulas import Compiler, as_written, compiled_by
from stribeck.live.friction import FrictionModel, Scales
from stribeck.live.learning.adaptation import MODEL_ERROR, AdaptationSettings, ScaleFilter
from stribeck.live.learning.external import (
    ASSUMED_TIME,
    QUANTILE,
    ExternalTorque,
    agreement,
    alarm_quantile,
    band,
    conformal,
    deviation,
    external,
    held,
    loose,
    normalised,
    unexplained,
)
from stribeck.live.learning.residual import LowPass, MomentumResidual
from stribeck.model.arrays import Array, Mask
from stribeck.model.joint_map import JointMap
from stribeck.model.namespace import array_namespace
from stribeck.rigid.dynamics import Dynamics

PERIOD = 0.004
"""Shortest period of learning [s]: friction changes slowly, and computing time per cycle is limited."""

ONE_WAY = 0.7
"""Magnitude of the smoothed direction of motion above which a reversal is over."""

SURPRISE = 0.4
"""Deviation of a residual from its expected value that may be a contact, as a fraction of the friction at rest."""

SURPRISE_TIME = 0.3
"""Time for which such a deviation is treated as a contact [s], long enough for a blocked joint to stop."""

CONTACT_MARGIN = 1.15
"""Ratio to the largest possible friction above which a torque is a contact."""

ABSURD = 1e100
"""Torques beyond this multiple of the friction at rest restart the observer; with them, products overflow to NaN."""

DRIVEN = 0.3
"""Torque of a controller in the direction of motion, beside gravity, above which it drives a joint, as a fraction of the friction at rest [1]."""

PUSHED = 2.0 * DRIVEN
"""Such a torque that shows the intention of a controller fully, while a joint rests [1]."""

NORMALISED_TIME = 10.0
"""Time constant of the normalised innovation squared, in motions that teach friction [s]."""

NO_FRICTION = 1e-6
"""Friction at rest that is none [N m]: noise and errors are known as fractions of it, so that no band is known without it."""

LEAST_ERROR = 0.02
"""Least standard deviation of the external torque, as a fraction of the friction at rest [1]."""

SURE_DEVIATIONS = 2.0
"""Number of standard deviations between the estimated and the guaranteed friction."""


class Motion(NamedTuple):
    """A measured state in the coordinates of the parameter files, (n,) each, [rad], [rad/s] and [N m].

    :param direction: of the measured motion, in [-1, 1]; where a goal leads, of the goal's motion.
    :param led: joints that a goal leads.
    :param follows: joints that have moved with their goal beyond their presliding.
    :param free: joints without a goal that have moved beyond their presliding.
    """

    position: Array
    velocity: Array
    direction: Array
    motor: Array
    external: Array
    led: Mask
    follows: Mask
    free: Mask
    measured: Array


class Learned(NamedTuple):
    """Learnt friction of one joint.

    :param dry: scale of all identified friction except viscous friction [1].
    :param viscous: scale of the viscous friction [1].
    :param deviation_dry, deviation_viscous: standard deviations [1].
    """

    dry: float
    viscous: float
    deviation_dry: float
    deviation_viscous: float


RECALLED = 0.15
"""Standard deviation of the change of the learnt scales since an earlier run [1]."""


class FrictionObserver:
    """Scales and offset of the friction of n joints, from the momentum residual of their dynamics.

    :param dynamics: inertia and gravity in the robot's coordinates.
    :param joint_map: from the robot's coordinates to those of the parameter files.
    :param time_constant: of the residual, (n,) [s].
    """

    def __init__(
        self,
        model: FrictionModel,
        dynamics: Dynamics,
        joint_map: JointMap,
        time_constant: Array,
        settings: AdaptationSettings,
        compiler: Compiler = as_written,
    ) -> None:
        n = len(model.joints)
        compiled = partial(compiled_by, compiler)
        self._dry_part = compiled(_dry_part)
        self._error_of = compiled(_error)
        self._without_offset, self._exceeds = compiled(_without_offset), compiled(_exceeds)
        self._most, self._surprises = compiled(_most), compiled(_surprises)
        self._sudden, self._touched = compiled(_sudden), compiled(_touched)
        self._held, self._external, self._band = compiled(held), compiled(external), compiled(band)
        self._loose = compiled(loose)
        self._whole, self._deviation = compiled(unexplained), compiled(deviation)
        self._agreement, self._driven = compiled(agreement), compiled(_driven)
        self._pushed = compiled(_pushed)
        self._normalised, self._conformal = compiled(normalised), compiled(conformal)
        self._model, self._map = model, joint_map
        self.level = model.at_rest
        self._rated: Mask = self.level > NO_FRICTION
        self.residual = MomentumResidual(dynamics, time_constant, compiler=compiler)
        self.filter = ScaleFilter(self.level, settings)
        self._excess: Array = np.ones(n)
        """Mean normalised innovation squared (n,) [1]."""
        self._taught: Array = np.full(n, ASSUMED_TIME)
        """Motion in that mean (n,) [s]."""
        self._factor: Array = np.ones(n)
        """Factor of the band (n,) [1]."""
        self._alarm = alarm_quantile(float(np.max(time_constant)), PERIOD, n)
        self._alarm_of_one = alarm_quantile(float(np.max(time_constant)), PERIOD, 1)
        self._friction = LowPass((3, n), time_constant)
        self._moved = LowPass((3, n), time_constant)
        self._drive = LowPass((n,), time_constant)
        self.torque: Array = np.zeros(n)
        """Residual torque [N m]: friction and all other unmodelled torques."""
        unknown = np.full(n, np.inf)
        self.external = ExternalTorque(self.torque, unknown, unknown)
        """External torque, in the coordinates of the parameter files."""
        self.contact: Mask = np.zeros(n, dtype=np.bool_)
        """Joints on which more than friction acts against the motion."""
        self.sudden: Mask = np.zeros(n, dtype=np.bool_)
        """Joints whose residual has just changed by more than friction and an error of the model explain."""
        self.touched: Array = np.zeros(n)
        """Sign of an external torque beyond the threshold of an alarm of one joint and an error of the model's gravity, else 0 (n,)."""
        self.wrong: Array = np.zeros(n)
        """Error of the modelled weight, as a fraction of the friction at rest [1]."""
        self._surprised: Array = np.zeros(n)
        self.learning: Mask = np.zeros(n, dtype=np.bool_)
        self._elapsed, self._impulse, self._driving = 0.0, self.torque, self.torque
        self.pushed: Array = np.zeros(n)
        """Direction in which the controller pushes each joint by more than its weight, in [-1, 1]."""
        self._fastest: Array = np.zeros(n)
        """Largest identified viscous friction in a motion used for learning [N m]."""
        self._conclude()

    def begin(self, learned: Sequence[Learned] | None, warmth: Array) -> None:
        """Start from scales learnt earlier, else from the identified friction at the present temperature.

        :param warmth: ratio of the friction at that temperature to the identified friction (n,) [1].
        """
        state, covariance = self.filter.state, self.filter.covariance
        if learned is None:
            state[:, :2] = warmth[:, None]
        else:
            for k, found in enumerate(learned):
                state[k, :2] = found.dry, found.viscous
                for i, deviation in enumerate((found.deviation_dry, found.deviation_viscous)):
                    prior = self.filter.settings.prior
                    covariance[k, i, i] = min(deviation**2 + RECALLED**2, prior**2)
                covariance[k, 0, 1] = covariance[k, 1, 0] = 0.0
        self.filter.restrict()
        self._conclude()

    @property
    def learned(self) -> tuple[Learned, ...]:
        """Scales to start from in a later run."""
        deviations = self._deviations
        return tuple(
            Learned(*map(float, (state[0], state[1], deviation[0], deviation[1])))
            for state, deviation in zip(self.filter.state, deviations, strict=True)
        )

    def restart(self) -> None:
        """Forget the motion but keep what was learnt."""
        self.residual.restart()
        self._friction.value = self._moved.value = np.zeros_like(self._friction.value)
        self.torque, self.contact = np.zeros_like(self.torque), np.zeros_like(self.contact)
        unknown = np.full_like(self.torque, np.inf)
        self.external = ExternalTorque(self.torque, unknown, unknown)
        self.sudden, self.touched = np.zeros_like(self.sudden), np.zeros_like(self.touched)
        self._surprised, self._elapsed, self._impulse = np.zeros_like(self._surprised), 0.0, self.torque
        self._drive.value = self.pushed = np.zeros_like(self._drive.value)
        self._driving = self.torque

    def update(self, q: Array, v: Array, acting: Array, applied: Array, dt: float) -> bool:
        """Update with a state; returns whether :meth:`conclude` is due, every :data:`PERIOD`.

        :param q: positions, in the robot's coordinates [rad].
        :param v: velocities, in the robot's coordinates [rad/s].
        :param acting: motor torque that acts at this state, in the robot's coordinates [N m].
        :param applied: friction torque contained in it, in the coordinates of the parameter files [N m].
        :param dt: time since the last state [s].
        """
        self._impulse = self._impulse + self.residual.update(q, v, acting, dt) * dt
        own = self._map.servo_torque(acting - self.residual.bias) - applied
        self._driving = self._driving + own * dt
        self._elapsed += dt
        return self._elapsed >= PERIOD

    def conclude(self, motion: Motion) -> float:
        """Learn from the residual and detect contacts; returns the time since the last call [s].

        The residual is averaged since the last call, because quantised velocities cause pulses in it.
        """
        elapsed, self._elapsed = self._elapsed, 0.0
        self.torque = self._map.servo_torque(self._impulse / max(elapsed, 1e-9))
        drive, self._driving = self._driving / max(elapsed, 1e-9), np.zeros_like(self.torque)
        self._impulse = np.zeros_like(self.torque)
        model, level, learned = self._model, self.level, self.filter
        whole = model.opposing(
            motion.direction, motion.velocity, motion.motor, motion.external, motion.position
        )
        if not ((np.abs(self.torque) + np.abs(whole)) / level < ABSURD).all():
            self.restart()
            self.learning = np.zeros_like(self.learning)
            return elapsed
        viscous = model.viscous(motion.direction, motion.velocity)
        offset = model.offset(motion.position)
        dry = self._dry_part(whole, motion.direction, viscous, offset)
        share = -np.expm1(-elapsed / self.residual.time_constant)
        self.pushed = np.asarray(self._pushed(self._drive.update(drive, share), level))
        now = np.array((dry, viscous, motion.direction))
        dry, viscous, direction = self._friction.update(now, share)
        friction = self._without_offset(self.torque, direction, offset)
        moved = self._moved.update(self._agreement(motion.measured, motion.direction) * now, share)
        self.external = self._external_of(friction, *moved)
        base = self._most(*self._upper, dry, viscous, level)
        self.wrong = self._error_of(self._map.servo_torque(self.residual.bias), level)
        self.touched = self._touched(self.external.torque, self._beyond_noise, self.wrong, level)
        most = learned.settings.offset_limit + self.wrong
        foreign = self._exceeds(friction, direction, base, most, level)
        self.contact = self._exceeds(friction, direction, base, self._offset_size, level)
        innovation = learned.innovation(friction, dry, viscous)
        surprising = self._surprises(innovation, learned.deviation)
        self._surprised = np.where(surprising, self._surprised + elapsed, 0.0)
        foreign |= surprising & (self._surprised < SURPRISE_TIME)
        self.sudden = self._sudden(innovation, learned.deviation, self._surprised, self.wrong)
        driven = self._driven(self._drive.value, direction, level) & motion.free
        moving = (np.abs(direction) > ONE_WAY) & ((motion.led & motion.follows) | driven) & ~foreign
        self._calibrate(moving * elapsed)
        constant = self.residual.time_constant
        self.learning = learned.update(friction, dry, viscous, moving, constant, elapsed, most)
        if True in self.learning.tolist():
            self._fastest = np.where(moving, np.maximum(self._fastest, np.abs(viscous)), self._fastest)
            self._conclude()
        else:
            self._meet()
        return elapsed

    def _external_of(self, residual: Array, dry: Array, viscous: Array, direction: Array) -> ExternalTorque:
        learned, scales = self.filter, self.scales
        still = self._still = self._held(direction, scales.dry, self._deviations[:, 0], self.level)
        whole = self._whole(residual, dry, viscous, *scales)
        self._spread = learned.variance(dry, viscous) + learned.settings.noise**2
        spread = self._deviation(self._excess, self._spread, direction, self.level)
        self._width = QUANTILE * self._factor * spread
        band = self._band(self._width, whole, still)
        threshold = self._alarm * spread + still
        self._beyond_noise = np.where(self._rated, self._alarm_of_one * spread + still, np.inf)
        parts = (
            self._external(whole, still),
            *(np.where(self._rated, part, np.inf) for part in (band, threshold)),
        )
        return ExternalTorque(*map(np.asarray, parts))

    def _calibrate(self, taught: Array) -> None:
        """Correct the band by torques of motions that teach friction.

        :param taught: time of them since the last call, (n,) [s].
        """
        self._taught = np.minimum(self._taught + taught, NORMALISED_TIME)
        least = (LEAST_ERROR / self.filter.settings.noise) ** 2
        torque, share = self._loose(self.external.torque, self._still), taught / self._taught
        self._excess = self._normalised(self._excess, torque / self.level, self._spread, share, least)
        self._factor = self._conformal(self._factor, torque, self._width, taught)

    def _conclude(self) -> None:
        """Update the estimates that hold until the next call of :meth:`conclude`."""
        settings, prior = self.filter.settings, self.filter.settings.prior
        dry, viscous, offset = np.ascontiguousarray(self.filter.state.T)
        self._deviations = np.sqrt(np.diagonal(self.filter.covariance, axis1=1, axis2=2))
        spread_dry, spread_viscous = SURE_DEVIATIONS * self._deviations.T[:2]
        upper = settings.scale_upper
        self._upper = np.minimum(dry + spread_dry, upper), np.minimum(viscous + spread_viscous, upper)
        self._offset_size = np.abs(offset)
        lacking = np.minimum(self._offset_size, settings.offset_limit)
        self.scales = Scales(dry, viscous)
        """Estimated scales of the identified friction."""
        self.offset: Array = offset * self.level
        """Residual that the scaled friction does not explain, against positive motion [N m], (n,)."""
        certainty = 1.0 - (self.filter.deviation / (0.5 * prior)) ** 2
        self.certainty: Array = np.maximum(certainty, 0.0)
        """Certainty of the estimate, from 0 before any motion to 1, (n,)."""
        self.doubtful: Array = spread_dry + lacking + 0.1
        """Largest excess of the friction at rest over the estimate, as a fraction of the identified friction, (n,)."""
        lowest = dry - spread_dry - self._offset_size
        self.surely = Scales(lowest, np.minimum(viscous - spread_viscous, lowest))
        """Lower bounds of the present scales.

        A single motion hardly separates the two scales, so the bound of the viscous scale is never above the dry one.
        """
        self._meet()

    def _meet(self) -> None:
        met = self._fastest / np.maximum(np.abs(self._friction.value[1]), 1e-9)
        self.met: Array = np.minimum(met, 1.0)
        """Fraction of the present viscous friction covered by learning; faster motion is unexplored, (n,)."""


def _dry_part(whole: Any, direction: Any, viscous: Any, offset: Any) -> Any:
    """All friction except viscous friction, without the law's offset torque [N m]."""
    return whole + array_namespace(direction).abs(direction) * offset - viscous


def _without_offset(torque: Any, direction: Any, offset: Any) -> Any:
    """A residual without the law's offset torque, which is not friction."""
    return torque - array_namespace(direction).abs(direction) * offset


def _error(weight: Any, level: Any) -> Any:
    """Error of the modelled weight, as a fraction of the friction at rest [1]; ``weight`` is the modelled torque without that of accelerations [N m]."""
    return MODEL_ERROR * array_namespace(weight, level).abs(weight) / level


def _most(upper_dry: Any, upper_viscous: Any, dry: Any, viscous: Any, level: Any) -> Any:
    """Upper bound of the friction during a motion, without the offset [N m]."""
    xp = array_namespace(dry, viscous)
    return upper_dry * xp.maximum(xp.abs(dry), level) + upper_viscous * xp.abs(viscous)


def _exceeds(friction: Any, direction: Any, base: Any, offset: Any, level: Any) -> Any:
    """Joints on which more than friction acts against the motion; ``offset`` relative to the friction at rest."""
    xp = array_namespace(friction, direction)
    against = (xp.abs(direction) > ONE_WAY) & (friction * direction < 0.0)
    return against & (xp.abs(friction) > CONTACT_MARGIN * (base + offset * level))


def _pushed(drive: Any, level: Any) -> Any:
    """Direction in which a controller pushes a joint, in [-1, 1]; 0 for torques that do not drive it."""
    xp = array_namespace(drive, level)
    share = (xp.abs(drive) / level - DRIVEN) / (PUSHED - DRIVEN)
    return xp.sign(drive) * xp.minimum(xp.maximum(share, 0.0), 1.0)


def _driven(drive: Any, direction: Any, level: Any) -> Any:
    """Joints that a controller drives in the direction of their motion."""
    return drive * direction > DRIVEN * level


def _sudden(innovation: Any, deviation: Any, lasting: Any, wrong: Any) -> Any:
    """Joints whose residual has just changed by more than friction and an error of the model's gravity explain."""
    xp = array_namespace(innovation)
    return (xp.abs(innovation) > SURPRISE + 3.0 * deviation + wrong) & (lasting < SURPRISE_TIME)


def _touched(torque: Any, threshold: Any, wrong: Any, level: Any) -> Any:
    """Sign of an external torque that neither noise nor friction nor an error of the model's gravity explains, else 0."""
    xp = array_namespace(torque, threshold)
    return xp.where(xp.abs(torque) > threshold + wrong * level, xp.sign(torque), 0.0)


def _surprises(innovation: Any, deviation: Any) -> Any:
    return array_namespace(innovation).abs(innovation) > SURPRISE + 3.0 * deviation
