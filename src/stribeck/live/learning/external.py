r"""External torque on joints: the momentum residual less friction, with a band.

The residual r of :mod:`stribeck.live.learning.residual` holds friction and all other unmodelled torques. With the learnt scales
:math:`s_c, s_v` and the identified friction :math:`\varphi_c, \varphi_v` through the same filter,

.. math:: \tau_e = \mathrm{d}_u(r + s_c\,\varphi_c + s_v\,\varphi_v), \qquad u = (1 - |d|)\,(s_c + 2\sigma_c)\,b

A joint at rest, or within its presliding range after a reversal (filtered direction \|d\| < 1), holds any torque up to its friction at rest b: what is
smaller cannot be told from friction, and the dead-zone :math:`\mathrm{d}_u` takes it away.

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

ALARM_PERIOD = 600.0
"""Mean time from one false alarm of the robot to the next [s]."""


class ExternalTorque(NamedTuple):
    """Torque that something outside exerts on joints, (n,) each, in the robot's coordinates.

    :param torque: in the direction of positive positions, behind the filter of the residual [N m].
    :param band: half-width of the pointwise band of 97 %: uncertainty of the friction, noise of the residual, the learnt offset that stands
        for errors of the model, and the dead-zone of a joint at rest [N m].
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
    r"""Half-width u of the dead-zone [N m].

    :param direction: d, filtered, in [-1, 1].
    :param dry: :math:`s_c`.
    :param deviation: :math:`\sigma_c`, standard deviation of the scale.
    :param level: b [N m].
    """
    xp = array_namespace(direction)
    return xp.maximum(1.0 - xp.abs(direction), 0.0) * (dry + 2.0 * deviation) * level


def external(residual: Any, dry: Any, viscous: Any, scale_dry: Any, scale_viscous: Any, held: Any) -> Any:
    r"""External torque :math:`\tau_e` [N m].

    :param residual: r, without the law's offset torque.
    :param dry, viscous: :math:`\varphi_c, \varphi_v`, with the sign of the motion [N m].
    :param held: u [N m].
    """
    xp = array_namespace(residual)
    whole = residual + scale_dry * dry + scale_viscous * viscous
    return whole - xp.minimum(xp.maximum(whole, -held), held)


def alarm_quantile(time_constant: float, period: float, joints: int) -> float:
    """Standard deviations u of the threshold of an alarm [1].

    :param time_constant: T [s].
    :param period: Δ [s].
    :param joints: of the robot, each of which may raise it.
    """
    crossings = math.acos(math.exp(-period / time_constant)) / (math.pi * period)
    return math.sqrt(2.0 * math.log(max(ALARM_PERIOD * joints * crossings, 1.0)))


def band(quantile: Any, variance: Any, noise: Any, offset: Any, level: Any, held: Any) -> Any:
    """Half-width of a band, and threshold of an alarm [N m].

    :param quantile: standard deviations of it [1].
    :param variance: of the friction by its scales, per b² [1].
    :param noise: standard deviation of the residual per b [1].
    :param offset: learnt offset per b [1].
    """
    xp = array_namespace(variance)
    return (quantile * xp.sqrt(variance + noise * noise) + xp.abs(offset)) * level + held
