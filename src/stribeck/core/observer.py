r"""What motion tells of the friction that there is now: scales, offset, and what is surely there.

Momentum residual (:mod:`stribeck.core.residual`) and Kalman filter (:mod:`stribeck.core.adaptation`) of
joints whose inertia is known, in the coordinates of the parameter files. With goals, every motion tells of friction.
Without, none does: a hand that pushes looks like less friction, one that brakes like more, and no measurement of
the joint tells a hand from friction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stribeck.core.adaptation import AdaptationSettings, ScaleFilter
from stribeck.core.compensation import FrictionModel, Scales
from stribeck.core.joint_map import JointMap
from stribeck.core.residual import Dynamics, LowPass, MomentumResidual

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

PERIOD = 0.004
"""Conclusions are drawn so often at most [s]: friction does not change faster, and a cycle has little time."""

ONE_WAY = 0.7
"""A smoothed direction of motion beyond this: the reversal before it is over."""

SURPRISE = 0.4
"""A residual that differs from what is expected by this share of the friction at rest may be a contact."""

SURPRISE_TIME = 0.3
"""It is held for one for so long [s]: a joint that meets something stops until then."""

CONTACT_MARGIN = 1.15
"""A torque beyond this many times the friction that there may be is a contact."""

SURE_DEVIATIONS = 2.0
"""What is surely there lies so many standard deviations below what is estimated."""


class Motion(NamedTuple):
    """A measured state in the coordinates of the parameter files, (n,) each.

    :param velocity: [rad/s].
    :param direction: of the motion that is, in [-1, 1]; where a goal leads, of the goal's.
    :param motor: motor torque [N m].
    :param external: external torque [N m].
    :param led: where a goal leads the joint.
    :param follows: where the joint has moved with its goal beyond its presliding.
    """

    velocity: FloatArray
    direction: FloatArray
    motor: FloatArray
    external: FloatArray
    led: BoolArray
    follows: BoolArray


class Learned(NamedTuple):
    """What was learnt of one joint.

    :param dry: scale of all identified friction but the viscous [1].
    :param viscous: scale of the viscous friction [1].
    :param deviation_dry: standard deviation [1].
    :param deviation_viscous: standard deviation [1].
    """

    dry: float
    viscous: float
    deviation_dry: float
    deviation_viscous: float


RECALLED = 0.15
"""What was learnt in an earlier run may have changed since, with this standard deviation [1]."""


class FrictionObserver:
    """Scales and offset of the friction of n joints, from the torque that their dynamics lack.

    :param model: the identified friction.
    :param dynamics: inertia and gravity in the robot's coordinates.
    :param joint_map: from there to the parameter files'.
    :param time_constant: of the residual, (n,) [s].
    :param settings: of the filter.
    """

    def __init__(
        self,
        model: FrictionModel,
        dynamics: Dynamics,
        joint_map: JointMap,
        time_constant: FloatArray,
        settings: AdaptationSettings,
    ) -> None:
        n = len(model.joints)
        self._model, self._map = model, joint_map
        self.level = model.at_rest
        self.residual = MomentumResidual(dynamics, time_constant)
        self.filter = ScaleFilter(self.level, settings)
        self._friction = LowPass((3, n), time_constant)
        self.torque: FloatArray = np.zeros(n)
        """The residual [N m]: friction, and whatever else acts."""
        self.contact: BoolArray = np.zeros(n, dtype=np.bool_)
        """Where more acts against the motion than friction can."""
        self._surprised: FloatArray = np.zeros(n)
        self.learning: BoolArray = np.zeros(n, dtype=np.bool_)
        self._elapsed = 0.0
        self._fastest: FloatArray = np.zeros(n)
        """Largest identified viscous friction at a motion that was learnt from [N m]."""
        self._conclude()

    def begin(self, learned: Sequence[Learned] | None, warmth: FloatArray) -> None:
        """Start from what was learnt before, else from what the temperature leaves of the identified friction.

        :param warmth: that share (n,) [1].
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
        """What to begin with another time."""
        deviations = self._deviations
        return tuple(
            Learned(*map(float, (state[0], state[1], deviation[0], deviation[1])))
            for state, deviation in zip(self.filter.state, deviations, strict=True)
        )

    def restart(self) -> None:
        """Forget the motion; what was learnt stays."""
        self.residual.restart()
        self._friction.value = np.zeros_like(self._friction.value)
        self.torque, self.contact = np.zeros_like(self.torque), np.zeros_like(self.contact)
        self._surprised, self._elapsed = np.zeros_like(self._surprised), 0.0

    def update(self, q: FloatArray, v: FloatArray, acting: FloatArray, motion: Motion, dt: float) -> bool:
        """Take in a state; whether something was concluded from it, which happens every :data:`PERIOD`.

        :param q: positions, in the robot's coordinates [rad].
        :param v: velocities, likewise [rad/s].
        :param acting: torque of the motors that acts at this state, likewise [N m].
        :param dt: time since the last state [s].
        """
        found = self.residual.update(q, v, acting, dt)
        self._elapsed += dt
        if self._elapsed < PERIOD:
            return False
        elapsed, self._elapsed = self._elapsed, 0.0
        self.torque = self._map.servo_torque(found)
        whole = self._model.budget(motion.direction, motion.velocity, motion.motor, motion.external)
        viscous = self._model.viscous(motion.direction, motion.velocity)
        whole = whole + np.abs(motion.direction) * self._model.offset
        share = -np.expm1(-elapsed / self.residual.time_constant)
        dry, viscous, direction = self._friction.update(
            np.stack([whole - viscous, viscous, motion.direction]), share
        )
        friction = self.torque - np.abs(direction) * self._model.offset  # the law's own offset is no friction
        size, one_way = np.abs(friction), np.abs(direction) > ONE_WAY
        against = one_way & (friction * direction < 0.0)
        largest = self.largest(np.stack([np.full_like(size, self._offset_limit), np.abs(self._offset_share)]))
        foreign = against & (size > largest[0])
        self.contact = against & (size > largest[1])
        surprise = np.abs(self.filter.innovation(friction, dry, viscous))
        surprising = surprise > SURPRISE + 3.0 * self.filter.deviation
        self._surprised = np.where(surprising, self._surprised + elapsed, 0.0)
        foreign |= surprising & (self._surprised < SURPRISE_TIME)
        moving = one_way & motion.led & motion.follows & ~foreign
        self.learning = self.filter.update(
            friction, dry, viscous, moving, self.residual.time_constant, elapsed
        )
        self._fastest = np.where(self.learning, np.maximum(self._fastest, np.abs(viscous)), self._fastest)
        self._conclude()
        return True

    def _conclude(self) -> None:
        """What the filter says now, for every state until the next conclusion."""
        state, prior = self.filter.state, self.filter.settings.prior
        self._deviations = np.sqrt(np.diagonal(self.filter.covariance, axis1=1, axis2=2))
        self._offset_limit, self._offset_share = self.filter.settings.offset_limit, state[:, 2]
        self.scales = Scales(state[:, 0], state[:, 1])
        """Of the identified friction, as estimated."""
        self.offset: FloatArray = state[:, 2] * self.level
        """What the scaled friction does not explain, against positive motion [N m], (n,)."""
        certainty = 1.0 - (self.filter.deviation / (0.5 * prior)) ** 2
        self.certainty: FloatArray = np.maximum(certainty, 0.0)
        """How well the friction is known, 0 before any motion to 1, (n,)."""
        self.doubtful: FloatArray = SURE_DEVIATIONS * self._deviations[:, 0] + 0.1
        """How much more friction than estimated there may be at rest, as a share of that identified, (n,)."""
        lower = state[:, :2] - SURE_DEVIATIONS * self._deviations[:, :2]
        dry = lower[:, 0] - np.abs(state[:, 2])
        self.surely = Scales(dry, np.minimum(lower[:, 1], dry))
        """The lower end of what friction there is, as a share of that identified.

        One motion hardly tells the two apart: more viscous than dry friction is no certainty.
        """
        met = self._fastest / np.maximum(np.abs(self._friction.value[1]), 1e-9)
        self.met: FloatArray = np.minimum(met, 1.0)
        """Share of the viscous friction now that was met while learning: none is known of faster motion, (n,)."""

    def largest(self, offset: FloatArray) -> FloatArray:
        """More than the most friction that there may be at the measured motion [N m], shaped as ``offset``.

        :param offset: how large the offset may be, as a share of the friction at rest [1].
        """
        upper = self.filter.state[:, :2] + SURE_DEVIATIONS * self._deviations[:, :2]
        upper = np.minimum(upper, self.filter.settings.scale_upper)
        dry, viscous, _ = np.abs(self._friction.value)
        base = upper[:, 0] * np.maximum(dry, self.level) + upper[:, 1] * viscous
        return np.asarray(CONTACT_MARGIN * (base + offset * self.level))
