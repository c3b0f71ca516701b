r"""Single joints: what they are made of, and how they move between two steps.

A joint is rigid, or two masses: the motor (with friction and encoder) and the link (with gravity, hand and
wall) joined by the gear,

.. math:: J_m\ddot q_m = \tau - F - \tau_g,\quad J_l\ddot q_l = \tau_g + \tau_e,\quad
          \tau_g = k\,z_b(q_m - q_l) + d(\dot q_m - \dot q_l)

with the dead zone :math:`z_b` of the backlash b. Lengths in rad, torques in N m, inertias in kg m².
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from plants.friction import FloatArray, FrictionValues, Side

BACKLASH = np.radians(1.0)
"""Play between motor and link where there is one [rad]."""

GEAR_DAMPING = 0.03
"""Damping ratio of the link on the gear with the motor locked."""

BACKLASH_DAMPING = 0.3
"""The same inside a gear with backlash: teeth that hit lose most of the impact."""


@dataclass(frozen=True)
class Joint:
    """One joint of the catalogue.

    :param inertia: motor and link at the joint [kg m²].
    :param motor_share: share of the motor in it [1].
    :param coulomb: Coulomb friction [N m].
    :param rise: stiction beyond it, as a share.
    :param viscous: [N m s/rad].
    :param stribeck_velocity: [rad/s].
    :param presliding: deflection at which the presliding stiffness reaches Coulomb friction [rad].
    :param locked: frequency of the link with the motor locked [Hz].
    :param gravity: largest gravity torque [N m].
    :param torque_limit: [N m].
    """

    inertia: float
    motor_share: float
    coulomb: float
    rise: float
    viscous: float
    stribeck_velocity: float
    presliding: float
    locked: float
    gravity: float
    torque_limit: float


JOINTS: dict[str, Joint] = {
    "shoulder": Joint(2.0, 0.5, 12.0, 0.3, 10.0, 0.1, 1e-3, 12.0, 30.0, 150.0),
    "wrist": Joint(0.05, 0.6, 1.2, 0.2, 0.4, 0.15, 1e-3, 30.0, 1.0, 12.0),
    "panda": Joint(0.6, 0.4, 2.0, 0.25, 2.0, 0.08, 1e-3, 20.0, 15.0, 87.0),
}
"""A shoulder and a wrist of industrial size, and a joint like a Panda's."""

QUASI_DIRECT = Joint(0.04, 0.5, 0.3, 0.2, 0.05, 0.1, 1e-3, 30.0, 10.0, 30.0)
"""A joint with a low gear ratio: friction is 3 % of gravity."""

EVERY = JOINTS | {"qdd": QUASI_DIRECT}
"""All joints by name."""

Drive = Literal["rigid", "elastic", "backlash"]
Law = Literal["lugre", "gms"]


@dataclass(frozen=True)
class Condition:
    """One run: a plant, what it is run with, and what the controller knows wrongly.

    :param coulomb_scale: true dry friction per identified one.
    :param viscous_scale: true viscous friction per identified one.
    :param gravity_error: share by which the controller's gravity is wrong; ``None`` without gravity.
    :param load_step: external torque as a share of the torque limit, on from 3.5 s to 5 s.
    :param bits: of the encoder, per turn.
    :param measured_velocity: whether a velocity is measured; else it is the difference of two positions.
    :param delay: from command to actuation [samples].
    :param control: ``pd``, ``impedance`` or ``zero`` (gravity alone).
    :param bandwidth: of the controller [rad/s].
    :param reference: name in :mod:`plants.control`; ``hand`` and ``coast`` are no references but schedules of a hand.
    :param hand_speed: peak speed of the hand's strokes [rad/s].
    :param prelude: the joint follows goals for so long before it is left without any [s].
    :param contact: what the joint meets.
    """

    joint: str
    drive: Drive = "rigid"
    law: Law = "lugre"
    coulomb_scale: float = 1.0
    viscous_scale: float = 1.0
    asymmetry: float = 0.0
    ripple: float = 0.0
    load_share: float = 0.0
    gravity_error: float | None = None
    load_step: float = 0.0
    bits: int = 17
    measured_velocity: bool = False
    rate: int = 500
    delay: int = 1
    control: Literal["pd", "impedance", "zero"] = "pd"
    bandwidth: float = 15.0
    reference: str = "moves"
    hand_speed: float = 0.0
    prelude: float = 0.0
    contact: Literal["none", "wall", "hold"] = "none"

    @property
    def data(self) -> Joint:
        """What the joint is made of."""
        return EVERY[self.joint]


def _column(conditions: list[Condition], name: str) -> FloatArray:
    return np.array([getattr(c.data, name) for c in conditions], dtype=np.float64)


def motor_inertia(condition: Condition) -> float:
    """Inertia on which motor and friction act [kg m²]."""
    joint = condition.data
    return joint.inertia if condition.drive == "rigid" else joint.inertia * joint.motor_share


def friction_values(conditions: list[Condition]) -> FrictionValues:
    """True friction of the lanes."""
    scale = np.array([c.coulomb_scale for c in conditions])
    coulomb = _column(conditions, "coulomb") * scale
    return FrictionValues(
        coulomb=coulomb,
        stiction=coulomb * (1.0 + _column(conditions, "rise")),
        viscous=_column(conditions, "viscous") * np.array([c.viscous_scale for c in conditions]),
        stribeck_velocity=_column(conditions, "stribeck_velocity"),
        presliding=_column(conditions, "presliding"),
        inertia=np.array([motor_inertia(c) for c in conditions]),
        asymmetry=np.array([c.asymmetry for c in conditions]),
        ripple=np.array([c.ripple for c in conditions]),
        ripple_wave=np.full(len(conditions), 9.0),
        load_share=np.array([c.load_share for c in conditions]),
    )


class Mechanics:
    """Positions and velocities of motors and links, semi-implicit in time."""

    def __init__(self, conditions: list[Condition]) -> None:
        kinds = [c.law for c in conditions]
        slips = kinds.count("gms")
        if "gms" in kinds[: len(kinds) - slips]:
            raise ValueError("lanes with Maxwell slip must come last")
        self.friction = Side(friction_values(conditions), slips)
        self.two = np.array([c.drive != "rigid" for c in conditions])
        inertia, share = _column(conditions, "inertia"), _column(conditions, "motor_share")
        self.inertia = inertia
        self.motor = np.where(self.two, share * inertia, inertia)
        self.link = (1.0 - share) * inertia
        self.stiffness = self.link * (2.0 * np.pi * _column(conditions, "locked")) ** 2
        loose = np.array([c.drive == "backlash" for c in conditions])
        self.half_play = 0.5 * BACKLASH * loose
        ratio = np.where(loose, BACKLASH_DAMPING, GEAR_DAMPING)
        self._damping = 2.0 * ratio * np.sqrt(self.stiffness * self.link)
        count = len(conditions)
        self.q, self.v = np.zeros(count), np.zeros(count)
        self.link_q, self.link_v = np.zeros(count), np.zeros(count)
        self.gear: FloatArray = np.zeros(count)
        self._elastic = bool(self.two.any())

    @property
    def mean_velocity(self) -> FloatArray:
        """Velocity of the whole, by momentum [rad/s]."""
        two = (self.motor * self.v + self.link * self.link_v) / self.inertia
        return np.where(self.two, two, self.v)

    def step(self, torque: FloatArray, external: FloatArray, dt: float) -> FloatArray:
        """Move by a step; the friction that opposed it [N m].

        :param torque: of the motor.
        :param external: on the link.
        """
        friction = self.friction.torque(self.v, dt)
        if not self._elastic:
            self.v = self.v + (torque - friction + external) * (dt / self.motor)
            self.q = self.q + self.v * dt
            self.link_q, self.link_v, self.gear = self.q, self.v, external
            return friction
        twist = self.q - self.link_q
        beyond = twist - np.clip(twist, -self.half_play, self.half_play)
        touching = (beyond != 0.0) | (self.half_play == 0.0)
        gear = self.stiffness * beyond + self._damping * touching * (self.v - self.link_v)
        on_motor = np.where(self.two, -gear, external)
        self.v = self.v + (torque - friction + on_motor) * (dt / self.motor)
        self.q = self.q + self.v * dt
        self.link_v = np.where(self.two, self.link_v + (gear + external) * (dt / self.link), self.v)
        self.link_q = np.where(self.two, self.link_q + self.link_v * dt, self.q)
        self.gear = -on_motor
        return friction
