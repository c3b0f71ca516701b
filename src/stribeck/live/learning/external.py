r"""External torque on joints: the momentum residual less friction, with a band.

The residual r of :mod:`stribeck.live.learning.residual` holds friction and all other unmodelled torques. With the learnt scales
:math:`s_c, s_v` and the identified friction :math:`\varphi_c, \varphi_v` through the same filter,

.. math:: w = r + s_c\,\varphi_c + s_v\,\varphi_v, \qquad u = (1 - |d|)\,(s_c + 2\sigma_c)\,b

A joint at rest, or within its presliding range after a reversal (filtered direction \|d\| < 1), holds any torque up to its friction at rest b, so that the
torque from outside is between w - u and w + u: :math:`\tau_e = w`, or 0 where \|w\| ≤ u, which cannot be told from friction.

Its standard deviation is :math:`\sigma = \sqrt{\kappa(\sigma_s^2 + \sigma_n^2)}\,b` with the variance of the scales' friction and the noise that the filter of the scales assumes.
The factor :math:`\kappa` is the mean of :math:`(\mathrm{d}_u(w)/b)^2/(\sigma_s^2 + \sigma_n^2)`, of what friction cannot hold (:func:`loose`), in motions that teach friction: the normalised innovation squared (Y. Bar-Shalom,
X. R. Li, T. Kirubarajan, "Estimation with Applications to Tracking and Navigation", 2001, section 5.4): what noise, law and model really are wrong by in this run. Before any motion it is 1,
which counts as :data:`ASSUMED_TIME` of motion. A joint at rest or after a reversal has no such motion: the factor is :math:`1 + |d|(\kappa - 1)`.

Errors of a model are bounded waves rather than noise, and 2.17 deviations of a wave hold all of it. The band is therefore :math:`q \cdot 2.17\,\sigma + u`, with a factor q that falls while
motions that teach friction stay within :math:`q \cdot 2.17\,\sigma` and rises while they do not, so that in the long run 3 % of them do not, however errors are distributed
(I. Gibbs, E. Candès, "Adaptive conformal inference under distribution shift", NeurIPS 2021).

A band that holds 97 % of the time is left some times a second by noise alone. The threshold of an alarm is that of first passage: the noise of a
first-order filter with time constant T, taken every :math:`\Delta`, crosses u standard deviations :math:`\nu = \arccos(e^{-\Delta/T})\,e^{-u^2/2}/(\pi\Delta)`
times a second (S. O. Rice, "Mathematical Analysis of Random Noise", 1945, for both signs), which is solved for one crossing in ten minutes of the whole robot.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from stribeck.model.arrays import Array, Mask
from stribeck.model.joint_map import JointMap
from stribeck.model.namespace import array_namespace

QUANTILE = 2.17
"""Standard deviations of a band of 97 % [1]."""

OUTSIDE = 0.03
"""Share of the time that torques of free motion are outside the band [1]."""

CONFORMAL_RATE, NARROWEST, WIDEST = 1.0, 0.1, 10.0
"""Relative change of the band's factor while they are outside, :data:`OUTSIDE` of it while they are not [1/s], and bounds of the factor [1]."""

ASSUMED_TIME = 1.0
"""Motion for which the assumed noise counts in the mean of the normalised innovation squared [s]."""

ALARM_PERIOD = 600.0
"""Mean time from one false alarm of the robot to the next [s]."""


class ExternalTorque(NamedTuple):
    """Torque that something outside exerts on joints, (n,) each, in the robot's coordinates.

    :param torque: in the direction of positive positions, behind the filter of the residual; 0 where friction may be all of it [N m].
    :param band: half-width of the pointwise band of 97 %: uncertainty of the scales of friction, noise, errors of the law and of the model as they were
        in this run, and what a joint at rest may hold [N m].
    :param threshold: torque beyond which it is a contact: noise passes it once in ten minutes of free motion of the robot [N m].
    """

    torque: Array
    band: Array
    threshold: Array

    def behind(self, joint_map: JointMap) -> ExternalTorque:
        """The same in the robot's coordinates, given in those of the parameter files."""
        torque, band, threshold = (np.asarray(joint_map.torque(part)) for part in self)
        return ExternalTorque(torque, np.abs(band), np.abs(threshold))

    @property
    def contact(self) -> Mask:
        """Joints that something outside touches."""
        return np.asarray(np.abs(self.torque) > self.threshold)

    @property
    def beyond(self) -> Array:
        """How far the torque is outside the band, 0 inside [N m]."""
        return np.asarray(np.sign(self.torque) * np.maximum(np.abs(self.torque) - self.band, 0.0))


def agreement(measured: Any, direction: Any) -> Any:
    """Factor that turns friction in the direction of a goal's path into that of the measured motion, in [-1, 1].

    A push may drive a joint back against the path of its goal.
    """
    xp = array_namespace(measured, direction)
    size = xp.where(direction == 0.0, 1.0, direction)
    return xp.where(direction == 0.0, 0.0, xp.minimum(xp.maximum(measured / size, -1.0), 1.0))


def held(direction: Any, dry: Any, deviation: Any, level: Any) -> Any:
    r"""Torque u that friction may hold in either direction [N m].

    :param direction: d, filtered, in [-1, 1].
    :param dry: :math:`s_c`.
    :param deviation: :math:`\sigma_c`, standard deviation of the scale.
    :param level: b [N m].
    """
    xp = array_namespace(direction)
    return xp.maximum(1.0 - xp.abs(direction), 0.0) * (dry + 2.0 * deviation) * level


def loose(torque: Any, held: Any) -> Any:
    r"""Size of a torque that friction cannot hold, :math:`\mathrm{d}_u(w) = \max(|\tau_e| - u, 0)` [N m]."""
    xp = array_namespace(torque)
    return xp.maximum(xp.abs(torque) - held, 0.0)


def unexplained(residual: Any, dry: Any, viscous: Any, scale_dry: Any, scale_viscous: Any) -> Any:
    r"""Residual less the scaled friction, :math:`w = r + s_c\varphi_c + s_v\varphi_v` [N m].

    :param residual: r, without the law's offset torque.
    :param dry, viscous: :math:`\varphi_c, \varphi_v`, with the sign of the motion [N m].
    """
    return residual + scale_dry * dry + scale_viscous * viscous


def external(whole: Any, held: Any) -> Any:
    r"""External torque :math:`\tau_e` [N m]: w, or 0 where friction may be all of it."""
    xp = array_namespace(whole)
    return xp.where(xp.abs(whole) > held, whole, 0.0)


def alarm_quantile(time_constant: float, period: float, joints: int) -> float:
    """Standard deviations u of the threshold of an alarm [1].

    :param time_constant: T [s].
    :param period: Δ [s].
    :param joints: of the robot, each of which may raise it.
    """
    crossings = math.acos(math.exp(-period / time_constant)) / (math.pi * period)
    return math.sqrt(2.0 * math.log(max(ALARM_PERIOD * joints * crossings, 1.0)))


def deviation(excess: Any, spread: Any, direction: Any, level: Any) -> Any:
    r"""Standard deviation :math:`\sigma` of the external torque [N m].

    :param excess: :math:`\kappa`.
    :param spread: :math:`\sigma_s^2 + \sigma_n^2`, per b² [1].
    :param direction: d of the measured motion, in [-1, 1].
    """
    xp = array_namespace(spread)
    factor = 1.0 + xp.minimum(xp.abs(direction), 1.0) * (excess - 1.0)
    return xp.sqrt(factor * spread) * level


def band(width: Any, whole: Any, held: Any) -> Any:
    r"""Half-width of the band of 97 % [N m]: friction may hold u in either direction, and w that is reported as 0 is not lost.

    :param width: :math:`q \cdot 2.17\,\sigma` [N m].
    """
    xp = array_namespace(whole)
    return width + held + xp.where(xp.abs(whole) > held, 0.0, xp.abs(whole))


def normalised(excess: Any, found: Any, spread: Any, share: Any, least: Any) -> Any:
    r""":math:`\kappa` after a torque ``found`` (:func:`loose`) of a motion that nothing touches, per b; ``share`` of it in the mean, at least ``least``."""
    return array_namespace(excess, found).maximum(excess + share * (found * found / spread - excess), least)


def conformal(factor: Any, found: Any, width: Any, taught: Any) -> Any:
    r"""Factor q after a torque ``found`` (:func:`loose`) of a motion that nothing touches.

    :param width: :math:`q \cdot 2.17\,\sigma`.
    :param taught: time of this motion [s].
    """
    xp = array_namespace(factor, found)
    change = CONFORMAL_RATE * taught * (xp.where(found > width, 1.0, 0.0) - OUTSIDE)
    return xp.minimum(xp.maximum(factor * (1.0 + change), NARROWEST), WIDEST)
