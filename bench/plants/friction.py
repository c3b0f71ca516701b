r"""Friction with memory: LuGre and the generalised Maxwell-slip model, over lanes.

Independent of :mod:`stribeck.model.law`. All arrays are (L,), one number per lane; torques are those
that oppose the motion [N m], velocities [rad/s].

Sources: Canudas de Wit, Olsson, Åström, Lischinsky, "A new model for control of systems with friction",
1995, doi 10.1109/9.376053; Al-Bender, Lampaert, Swevers, "The generalized Maxwell-slip model", 2005,
doi 10.1109/TAC.2005.858676.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

ELEMENT_SHARES = np.array([0.4, 0.3, 0.2, 0.1])[:, None]
"""Share of the friction that each Maxwell-slip element carries."""

ELEMENT_REACHES = np.array([0.3, 0.7, 1.2, 2.0])[:, None]
"""Deflection at which each element slips, in presliding lengths."""

ATTRACTION = 40.0
"""C of the slipping elements, in Coulomb torques per second: 40 reaches a new level within about 25 ms."""


@dataclass(frozen=True)
class FrictionValues:
    r"""What friction is, per lane.

    :param coulomb: :math:`F_c` [N m].
    :param stiction: :math:`F_s` [N m].
    :param viscous: :math:`\sigma_2` [N m s/rad].
    :param stribeck_velocity: :math:`v_s` [rad/s].
    :param presliding: deflection at which the linear presliding stiffness reaches :math:`F_c` [rad]:
        :math:`\sigma_0 = F_c/\delta`.
    :param inertia: inertia on which the bristles act [kg m²]; the bristle damping
        :math:`\sigma_1 = 1.4\sqrt{\sigma_0 J}` is 0.7 of critical.
    :param asymmetry: a: all but the load term is :math:`1 + a` of itself in positive direction, and :math:`1 - a` in negative.
    :param ripple: share by which the dry friction varies with position.
    :param ripple_wave: periods of that per 2π rad.
    :param load_share: growth of the dry friction per transmitted torque [1].
    """

    coulomb: FloatArray
    stiction: FloatArray
    viscous: FloatArray
    stribeck_velocity: FloatArray
    presliding: FloatArray
    inertia: FloatArray
    asymmetry: FloatArray
    ripple: FloatArray
    ripple_wave: FloatArray
    load_share: FloatArray

    def of(self, lanes: slice) -> FrictionValues:
        """Those of some lanes."""
        return FrictionValues(*(getattr(self, field.name)[lanes] for field in fields(self)))


class Friction(Protocol):
    """Friction torque with a memory of its own."""

    def modulate(self, position: FloatArray, load: FloatArray) -> None:
        """Take over where the joint is [rad] and what the gear transmits [N m]; both change slowly."""

    def torque(self, velocity: FloatArray, dt: float) -> FloatArray:
        """Friction that opposes the motion during a step [N m]."""


class _Level:
    r"""Dry friction in steady sliding, :math:`g(v) = F_c + (F_s - F_c)\,e^{-(v/v_s)^2}` [N m], and what modulates it."""

    def __init__(self, values: FrictionValues) -> None:
        self.values = values
        self.rise = values.stiction - values.coulomb
        self.stiffness = values.coulomb / values.presliding
        self.damping = 1.4 * np.sqrt(self.stiffness * values.inertia)
        self.factor: FloatArray = np.ones_like(values.coulomb)
        self.extra: FloatArray = np.zeros_like(values.coulomb)
        self._inverse = 1.0 / values.stribeck_velocity

    def modulate(self, position: FloatArray, load: FloatArray) -> None:
        values = self.values
        self.factor = 1.0 + values.ripple * np.sin(values.ripple_wave * position)
        self.extra = values.load_share * np.abs(load)

    def drift(self, share: FloatArray) -> None:
        """All friction but the stiffness and damping of the bristles is so many times what it was."""
        values = self.values
        self.values = replace(values, coulomb=values.coulomb * share, viscous=values.viscous * share)
        self.rise = self.rise * share

    def of(self, velocity: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """g(v), the viscous torque and the weight of Stribeck."""
        values = self.values
        ratio = velocity * self._inverse
        weight = np.exp(-ratio * ratio)
        lean = 1.0 + values.asymmetry * np.sign(velocity)
        level = (values.coulomb + self.rise * weight) * (lean * self.factor) + self.extra
        return level, values.viscous * lean * velocity, weight


class LuGre:
    r"""Bristles: :math:`\dot z = v - \sigma_0|v|z/g(v)`, :math:`F = \sigma_0 z + \sigma_1 e^{-(v/v_s)^2}\dot z + \sigma_2 v`.

    Over a step with constant velocity z is exact,
    :math:`z \to z_{ss} + (z - z_{ss})\,e^{-|v|\sigma_0\Delta t/g}`, :math:`z_{ss} = g\,sign(v)/\sigma_0`, thus
    stable for any step; :math:`\dot z` is the mean over the step. The bristle damping fades with
    velocity, which keeps the model dissipative (Canudas de Wit et al. 1995, §III).
    """

    def __init__(self, values: FrictionValues) -> None:
        self._level = _Level(values)
        self.z: FloatArray = np.zeros_like(values.coulomb)
        self.modulate = self._level.modulate
        self.drift = self._level.drift

    def torque(self, velocity: FloatArray, dt: float) -> FloatArray:
        """Friction that opposes the motion during a step [N m]."""
        level, viscous, weight = self._level.of(velocity)
        stiffness = self._level.stiffness
        steady = np.copysign(level, velocity) / stiffness
        change = (steady - self.z) * -np.expm1(-np.abs(velocity) * stiffness * dt / level)
        self.z = self.z + change
        return stiffness * self.z + self._level.damping * weight * change / dt + viscous


class MaxwellSlip:
    r"""Elements in parallel: an element that sticks is a spring, one that slips moves towards its share of g(v).

    Sticks: :math:`\dot F_i = k_i v` until :math:`|F_i| = \alpha_i g`; slips until the velocity changes sign:
    :math:`\dot F_i = C(\alpha_i\,sign(v) - F_i/g)`, exact over a step. Elements that stick are damped with
    their share of :math:`\sigma_1`.
    """

    def __init__(self, values: FrictionValues) -> None:
        self._level = _Level(values)
        self._spring = ELEMENT_SHARES * values.coulomb / (ELEMENT_REACHES * values.presliding)
        self.force: FloatArray = np.zeros_like(self._spring)
        self._slips = np.zeros(self.force.shape, dtype=np.bool_)
        self._before: FloatArray = np.zeros_like(values.coulomb)
        self.modulate = self._level.modulate
        self.drift = self._level.drift

    def torque(self, velocity: FloatArray, dt: float) -> FloatArray:
        """Friction that opposes the motion during a step [N m]."""
        level, viscous, _ = self._level.of(velocity)
        most = ELEMENT_SHARES * level
        slips = self._slips & (velocity * self._before > 0.0)
        stuck = self.force + self._spring * velocity * dt
        share = -np.expm1(-ATTRACTION * self._level.values.coulomb * dt / level)
        slipping = self.force + (most * np.sign(velocity) - self.force) * share
        forward = stuck * velocity > 0.0  # an element that is unloaded cannot begin to slip
        begins = ~slips & (np.abs(stuck) >= most) & forward
        self.force = np.where(slips, slipping, np.where(begins, np.clip(stuck, -most, most), stuck))
        self._slips = slips | begins
        self._before = velocity
        sticking = (ELEMENT_SHARES * ~self._slips).sum(axis=0)
        return np.asarray(self.force.sum(axis=0) + self._level.damping * sticking * velocity + viscous)


class Side:
    """LuGre in the first lanes, Maxwell slip in the others.

    :param slips: lanes that follow Maxwell slip; they must come last.
    """

    def __init__(self, values: FrictionValues, slips: int = 0) -> None:
        count = len(values.coulomb)
        self._split = count - slips
        self._bristles = LuGre(values.of(slice(0, self._split)))
        self._elements = MaxwellSlip(values.of(slice(self._split, count))) if slips else None

    def modulate(self, position: FloatArray, load: FloatArray) -> None:
        """Take over where the joints are [rad] and what their gears transmit [N m]."""
        self._bristles.modulate(position[: self._split], load[: self._split])
        if self._elements:
            self._elements.modulate(position[self._split :], load[self._split :])

    def drift(self, share: FloatArray) -> None:
        """From now on friction is so many times what it was."""
        self._bristles.drift(share[: self._split])
        if self._elements:
            self._elements.drift(share[self._split :])

    def torque(self, velocity: FloatArray, dt: float) -> FloatArray:
        """Friction that opposes the motion during a step [N m]."""
        first = self._bristles.torque(velocity[: self._split], dt)
        if not self._elements:
            return first
        return np.concatenate([first, self._elements.torque(velocity[self._split :], dt)])
