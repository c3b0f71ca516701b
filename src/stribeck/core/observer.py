r"""What motion tells of the friction that there is now: scales, offset, and what is surely there.

Momentum residual (:mod:`stribeck.core.residual`) and Kalman filter (:mod:`stribeck.core.adaptation`) of
joints whose inertia is known, in the coordinates of the parameter files. With goals, every motion tells of friction.
Without, a hand may push or brake, and only a joint that coasts does: it slows down as friction alone
would slow it, while its speed changes by a good part.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stribeck.core.adaptation import AdaptationSettings, ScaleFilter
from stribeck.core.compensation import FrictionModel, Scales
from stribeck.core.joint_map import JointMap
from stribeck.core.residual import Dynamics, LowPass, MomentumResidual

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

ONE_WAY = 0.7
"""A smoothed direction of motion beyond this: the reversal before it is over."""

COASTING_TIME = 3.0
"""A joint coasts when it has slowed down as friction does for so many time constants of the residual."""

COASTING_LOSS = 0.2
"""... and has lost this share of its speed."""

COASTING_SPREAD = 0.15
"""... and its deceleration, as a share of the identified friction, has kept within ± this."""

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
        self.learning: BoolArray = np.zeros(n, dtype=np.bool_)
        self._ratio: FloatArray = np.zeros(n)
        self._coasting_for: FloatArray = np.zeros(n)
        self._entry: FloatArray = np.zeros(n)

    def restart(self) -> None:
        """Forget the motion; what was learnt stays."""
        self.residual.restart()
        self._friction.value = np.zeros_like(self._friction.value)
        self._coasting_for = np.zeros_like(self._coasting_for)

    def update(
        self, q: FloatArray, v: FloatArray, acting: FloatArray, motion: Motion, dt: float
    ) -> None:
        """Take in a state.

        :param q: positions, in the robot's coordinates [rad].
        :param v: velocities, likewise [rad/s].
        :param acting: torque of the motors that acts at this state, likewise [N m].
        :param dt: time since the last state [s].
        """
        found = self.residual.update(q, v, acting, dt)
        self.torque = self._map.servo_torque(found)
        whole = self._model.budget(motion.direction, motion.velocity, motion.motor, motion.external)
        viscous = self._model.viscous(motion.direction, motion.velocity)
        smooth = self._friction.update(
            np.stack([whole - viscous, viscous, motion.direction]), self.residual.share
        )
        dry, viscous, direction = smooth
        one_way = np.abs(direction) > ONE_WAY
        coasting = self._coasts(
            motion, dry + viscous, one_way & (np.abs(motion.direction) >= 1.0) & ~motion.led, dt
        )
        upper = CONTACT_MARGIN * self.largest()
        self.contact = one_way & (self.torque * direction < 0.0) & (np.abs(self.torque) > upper)
        moving = one_way & ((motion.led & motion.follows & ~self.contact) | coasting)
        self.learning = self.filter.update(
            self.torque, dry, viscous, moving, self.residual.time_constant, dt
        )

    def _coasts(self, motion: Motion, friction: FloatArray, one_way: BoolArray, dt: float) -> BoolArray:
        """Where a joint that nobody leads slows down as friction does."""
        speed = np.abs(motion.velocity)
        ratio = -self.torque / np.where(np.abs(friction) > 0.0, friction, np.inf)
        lasts = (
            one_way
            & (np.abs(ratio - self._ratio) <= COASTING_SPREAD * np.maximum(np.abs(self._ratio), 0.3))
            & (ratio > 0.0)
        )
        begins = ~lasts
        self._ratio = np.where(begins, ratio, self._ratio + 0.1 * (ratio - self._ratio))
        self._entry = np.where(begins, speed, self._entry)
        self._coasting_for = np.where(begins, 0.0, self._coasting_for + dt)
        return np.asarray(
            lasts
            & (self._coasting_for >= COASTING_TIME * self.residual.time_constant)
            & (speed <= (1.0 - COASTING_LOSS) * self._entry)
        )

    @property
    def scales(self) -> Scales:
        """Of the identified friction, as estimated."""
        return Scales(self.filter.state[:, 0], self.filter.state[:, 1])

    @property
    def offset(self) -> FloatArray:
        """What the scaled friction does not explain, against positive motion [N m], (n,)."""
        return np.asarray(self.filter.state[:, 2] * self.level)

    @property
    def certainty(self) -> FloatArray:
        """How well the scales are known, 0 before any motion to 1, (n,)."""
        return np.clip(1.0 - (self.filter.deviation / (0.5 * self.filter.settings.prior)) ** 2, 0.0, 1.0)

    def largest(self) -> FloatArray:
        """The most friction that there may be at the measured motion [N m], (n,)."""
        upper = self.filter.state + SURE_DEVIATIONS * self._deviations
        dry, viscous, _ = np.abs(self._friction.value)
        settings = self.filter.settings
        scale = np.minimum(upper, settings.scale_upper)
        base = scale[:, 0] * np.maximum(dry, self.level)
        return np.asarray(base + scale[:, 1] * viscous + settings.offset_limit * self.level)

    @property
    def _deviations(self) -> FloatArray:
        return np.sqrt(np.diagonal(self.filter.covariance, axis1=1, axis2=2))

    @property
    def doubtful(self) -> FloatArray:
        """How much more friction than estimated there may be at rest, as a share of that identified, (n,)."""
        return np.asarray(SURE_DEVIATIONS * np.sqrt(self.filter.covariance[:, 0, 0]) + 0.1)

    def surely(self, least: float) -> Scales:
        """The lower end of what friction there is, at least ``least`` of what was identified."""
        lower = np.maximum(self.filter.state - SURE_DEVIATIONS * self._deviations, least)
        return Scales(lower[:, 0], lower[:, 1])
