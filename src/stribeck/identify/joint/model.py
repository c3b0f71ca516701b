r"""The torque of one joint as a function of its motion, linear in most parameters.

.. math::

    \tau = \tau_{rigid} + J\ddot q + T(q) + z\,\tau_f^m(\dot q, \tau, \tau_e) + (z_2 - z)\,F_2 - \tau_0

with the budget :math:`\tau_f^m` of a friction law, the developed share z of the term ``presliding`` (without it, the
direction of the last motion), and a remainder of the rigid torque: inertia J and :math:`T(q)`, gravity, a line, a parabola or
harmonics of the angle. With a second element (generalised Maxwell slip with two elements, Al-Bender, Lampaert and
Swevers 2005), the part :math:`F_2` of the Coulomb friction develops over a longer distance, with the share :math:`z_2`; in even motion
both shares are ±1, and friction is that of the law.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stribeck.identify.joint.run import JointRun, joined
from stribeck.model.arrays import Array
from stribeck.model.law import FrictionLaw, friction_budget, friction_columns, offset_torque, viscous_friction
from stribeck.model.temperature import FRICTION_TORQUES
from stribeck.model.terms import FRICTION_PARAMETERS
from stribeck.model.terms.term import Conditions

LENGTH, PER_KELVIN = "presliding_length", "friction_per_kelvin"

SECOND_LENGTH, SECOND_FRICTION = "presliding_length_2", "presliding_friction_2"
"""Of the second presliding element: its length, and its share of the dry friction."""

ITERATIONS = 12
"""Fixed-point iterations for a budget that depends on the torque."""

REST = 0.002
"""Share of the largest speed below which a joint without presliding keeps its last direction."""

HARMONICS = 2
"""Harmonics of a ripple."""

OF_ANGLE = ("gravity", "line", "curve", "ripple")
"""Parts of the remainder that depend on the angle."""

UNITS_OF_REST = {
    "inertia": "kg m^2",
    "torque_slope": "N m/rad",
    "torque_curve": "N m/rad^2",
    PER_KELVIN: "1/K",
}
"""Units of parameters that are no friction parameters; those of the others are N m."""

Shapes = Mapping[str, float]
"""Parameters on which the torque does not depend linearly."""


@dataclass(frozen=True)
class Structure:
    """What a model of the torque consists of.

    :param presliding: number of elements over whose lengths dry friction develops, 0 to 2.
    :param rest: of ``inertia``, ``gravity``, ``line``, ``curve``, ``ripple``.
    :param thermal: whether friction changes with temperature.
    """

    law: FrictionLaw
    presliding: int = 0
    rest: tuple[str, ...] = ()
    thermal: bool = False

    @property
    def shapes(self) -> tuple[str, ...]:
        """Names of the parameters on which the torque does not depend linearly."""
        law = tuple(name for name in self.law.parameter_names if FRICTION_PARAMETERS[name].shape)
        lengths = (LENGTH, SECOND_LENGTH)[: self.presliding]
        return (*law, *lengths, *(PER_KELVIN,) * self.thermal)

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of what it has beside a law of the paper."""
        return (
            *self.law.optional_terms,
            *("presliding", "presliding_2")[: self.presliding],
            *("temperature",) * self.thermal,
            *self.rest,
        )

    def without(self, rest: Sequence[str]) -> Structure:
        """The structure without some of its remainder."""
        return replace(self, rest=tuple(name for name in self.rest if name not in rest))


@dataclass(frozen=True)
class Frame:
    """Constants of the remainder of the torque and of friction over the position.

    :param centre: of the positions [rad].
    :param lower, upper: of the positions: beyond them, what depends on the position stays as at the end [rad].
    :param speed: the largest one [rad/s].
    :param wave: periods of the ripple per 2π rad, 0 for none.
    :param temperature: at which friction is that of the law [°C].
    """

    centre: float
    lower: float
    upper: float
    speed: float
    wave: float = 0.0
    temperature: float = 25.0

    @property
    def places(self) -> dict[str, float]:
        """Parameters of friction over the position that are not identified."""
        return {"friction_centre": self.centre, "friction_reach": 0.5 * (self.upper - self.lower)}

    @classmethod
    def of(cls, runs: Sequence[JointRun]) -> Frame:
        """The constants of some runs."""
        position = joined(runs, "position")
        lower, upper = float(position.min()), float(position.max())
        speed = float(np.quantile(np.abs(joined(runs, "velocity")), 0.995))
        known = [run.temperature for run in runs if run.temperature is not None]
        mean = float(np.mean(np.concatenate(known))) if known else 25.0
        return cls(0.5 * (lower + upper), lower, upper, speed, temperature=mean)


def developed(run: JointRun, structure: Structure, shapes: Shapes, frame: Frame) -> Array:
    """Developed share of the dry friction z (N,), or the direction of the last motion."""
    if structure.presliding:
        return run.developed(shapes[LENGTH])
    fast = np.abs(run.velocity) > REST * frame.speed
    last = np.maximum.accumulate(np.where(fast, np.arange(len(fast)), 0))
    return np.where(fast[last], np.sign(run.velocity[last]), 0.0)


def columns_of(
    run: JointRun, structure: Structure, shapes: Shapes, frame: Frame, values: Shapes | None = None
) -> dict[str, Array]:
    """Columns of the regressor of one run by parameter (N,) each: derivatives of the torque.

    :param values: of the friction parameters, for terms whose sign depends on them.
    """
    law, z = structure.law, developed(run, structure, shapes, frame)
    position = np.clip(run.position, frame.lower, frame.upper)
    given = {**frame.places, **(values or {}), **shapes}
    conditions = Conditions(run.velocity, np.abs(run.velocity), run.torque, run.load, position)
    found = {
        name: np.broadcast_to(np.asarray(column, dtype=np.float64), z.shape)
        for name, column in friction_columns(law, given, z, conditions).items()
    }
    if structure.presliding > 1:
        found[SECOND_FRICTION] = run.developed(shapes[SECOND_LENGTH]) - z
    if structure.thermal and run.temperature is not None:
        factor = np.exp(-shapes[PER_KELVIN] * (run.temperature - frame.temperature))
        heated = (*FRICTION_TORQUES, SECOND_FRICTION)
        found = {name: column * factor if name in heated else column for name, column in found.items()}
    return found | rest_columns(run, structure.rest, frame)


def rest_columns(run: JointRun, rest: Sequence[str], frame: Frame) -> dict[str, Array]:
    """Columns of the remainder of the rigid torque."""
    away = np.clip(run.position, frame.lower, frame.upper) - frame.centre
    found: dict[str, Array] = {}
    if "inertia" in rest:
        found["inertia"] = run.acceleration
    if "gravity" in rest:
        found |= {"gravity_sine": np.sin(run.position), "gravity_cosine": np.cos(run.position)}
    if "line" in rest:
        found["torque_slope"] = away
    if "curve" in rest:
        found["torque_curve"] = away * away
    if "ripple" in rest:
        for k in range(1, HARMONICS + 1):
            found[f"ripple_sine_{k}"] = np.sin(k * frame.wave * run.position)
            found[f"ripple_cosine_{k}"] = np.cos(k * frame.wave * run.position)
    return found


def unit_of(name: str) -> str:
    """Unit of a parameter of a rotary joint."""
    if name in (LENGTH, SECOND_LENGTH):
        return "rad"
    if name in FRICTION_PARAMETERS:
        return FRICTION_PARAMETERS[name].units.rotary
    return UNITS_OF_REST.get(name, "N m")


def signed(name: str) -> bool:
    """Whether a coefficient may be negative."""
    if name in ("inertia", SECOND_FRICTION, LENGTH, SECOND_LENGTH):
        return False
    return FRICTION_PARAMETERS[name].signed if name in FRICTION_PARAMETERS else True


def torque_of(run: JointRun, structure: Structure, values: Shapes, frame: Frame) -> Array:
    """Predicted torque of a run (N,) [N m]."""
    law, z = structure.law, developed(run, structure, values, frame)
    rest = rest_columns(run, structure.rest, frame)
    driving = run.rigid + sum((values[name] * column for name, column in rest.items()), np.zeros(len(z)))
    friction = friction_along(run, structure, values, frame, z)
    driving = driving - offset_torque(law, {**values}, run.position)
    motor = driving + friction(driving)
    for _ in range(law.rounds(ITERATIONS)):
        motor = driving + friction(motor)
    return np.asarray(motor)


def friction_along(
    run: JointRun, structure: Structure, values: Shapes, frame: Frame, z: Array
) -> Callable[[Array], Array]:
    """Friction of a run as a function of the motor torque (N,)."""
    law, direction = structure.law, np.sign(run.velocity)
    position = np.clip(run.position, frame.lower, frame.upper)
    given = {**frame.places, **values}
    factor: Array | float = 1.0
    if structure.thermal and run.temperature is not None:
        factor = np.exp(-values[PER_KELVIN] * (run.temperature - frame.temperature))
    viscous = viscous_friction(law, given, direction, run.velocity)
    among_dry = viscous_friction(law, given, z, run.velocity)
    late: Array | float = 0.0
    if structure.presliding > 1:
        late = values[SECOND_FRICTION] * (run.developed(values[SECOND_LENGTH]) - z)

    def friction(motor: Array) -> Array:
        budget = friction_budget(law, given, motor, run.load, run.velocity, position)
        dry = np.where(z >= 0.0, budget[0], budget[1]) - among_dry
        return np.asarray(factor * (z * dry + late + direction * viscous))

    return friction
