r"""Linear model of torques: inertials of the links, rotor inertias and friction of the joints, couplings.

.. math::

    \tau = Y\pi + I_a\ddot q + K_v\dot q + K_c\,sign(\dot q) - \tau_0 + \sum_c w_c\,(I_c\ddot s + K_{vc}\dot s + K_{cc}\,sign(\dot s)),
    \qquad s = w_c^T q

A coupling moves with a weighted sum s of joint positions, like a motor that drives two joints of a wrist, and acts on
each of these joints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stribeck.identify.arm.base_parameters import BaseParameters, base_parameters
from stribeck.identify.arm.model import ArmModel
from stribeck.identify.arm.motion import States
from stribeck.identify.arm.signals import direction
from stribeck.model.actuator import JointUnits
from stribeck.model.arrays import Array, Mask
from stribeck.model.law import LAWS, FrictionLaw, friction_columns
from stribeck.model.terms import FRICTION_PARAMETERS
from stribeck.model.terms.term import Conditions

Friction = Literal["symmetric", "asymmetric"]


@dataclass(frozen=True)
class Machine:
    """The structure of a machine.

    :param arm: rigid-body model; ``None`` for joints with one constant inertia each.
    :param couplings: joint weights w (n,) of each coupling, by name.
    """

    joints: tuple[str, ...]
    arm: ArmModel | None
    couplings: Mapping[str, Array]

    @property
    def elements(self) -> tuple[str, ...]:
        """Names of all elements with friction: the joints, then the couplings."""
        return (*self.joints, *self.couplings)

    @property
    def weights(self) -> Array:
        """Weights of the joints in the motion of each element, (elements, n)."""
        return np.vstack([np.eye(len(self.joints)), *self.couplings.values()])

    @property
    def inertia_name(self) -> str:
        """Symbol of a joint's inertia: of the rotor, or of the whole joint for a machine without URDF."""
        return "M" if self.arm is None else "Ia"

    def units(self, usual: JointUnits) -> dict[str, JointUnits]:
        """Units of each element by name.

        :param usual: those of couplings, and of a machine without URDF.
        """
        units = dict.fromkeys(self.elements, usual)
        if self.arm is not None:
            kinds: list[JointUnits] = ["linear" if linear else "rotary" for linear in self.arm.linear]
            units |= dict(zip(self.arm.joints, kinds, strict=True))
        return units

    @property
    def inertials(self) -> Array:
        """Standard inertial parameters of the URDF, (10 n,); empty without URDF."""
        return np.zeros(0) if self.arm is None else self.arm.inertials

    def regressor(self, states: States) -> Array:
        """Regressor of the inertials (N, n, 10 n); no columns for a machine without URDF."""
        if self.arm is None:
            return np.zeros((len(states), len(self.joints), 0))
        return self.arm.regressor(states.position, states.velocity, states.acceleration)


@dataclass(frozen=True)
class DesignMatrix:
    """Regressor of all parameters of a machine, with their names.

    :param names: (p,).
    :param columns: (N, n, p).
    """

    names: tuple[str, ...]
    columns: Array


def regressor_unit(name: str, units: Mapping[str, JointUnits]) -> str:
    """Unit of a parameter of :func:`design` by its name.

    :param units: of the elements, :meth:`Machine.units`.
    """
    symbol, element = _parts(name, units)
    if symbol in FRICTION_PARAMETERS:
        return FRICTION_PARAMETERS[symbol].unit(units[element])
    linear = units[element] == "linear"
    if symbol == "m":
        return "kg"
    if symbol in ("mx", "my", "mz"):
        return "kg m"
    if symbol in ("Ia", "M"):
        return "kg" if linear else "kg m^2"
    return "kg m^2"


def _parts(name: str, units: Mapping[str, JointUnits]) -> tuple[str, str]:
    """Symbol and element of a parameter."""
    for symbol in FRICTION_PARAMETERS:
        if name.startswith(f"{symbol}_") and name[len(symbol) + 1 :] in units:
            return symbol, name[len(symbol) + 1 :]
    symbol, _, element = name.partition("_")
    return symbol, element


def friction_law(friction: Friction) -> FrictionLaw:
    """The law whose coefficients are in the regressor: M1 with two directions, or with an offset."""
    asymmetric = friction == "asymmetric"
    return LAWS["m1"].with_terms(asymmetric=asymmetric, offset=not asymmetric)


def machine_of(
    joints: Sequence[str], arm: ArmModel | None, couplings: Mapping[str, Mapping[str, float]]
) -> Machine:
    """Create a machine from its configuration.

    :param couplings: joint weights by joint name, for each coupling.
    """
    vectors = {
        name: np.array([weights.get(joint, 0.0) for joint in joints]) for name, weights in couplings.items()
    }
    return Machine(tuple(joints), arm, vectors)


def design(machine: Machine, states: States, rest: float, friction: Friction = "symmetric") -> DesignMatrix:
    """Regressor of a machine at given states.

    :param rest: velocity below which a joint has no direction of motion [rad/s].
    :param friction: with ``asymmetric`` each direction has its own viscous and Coulomb columns, and the offset, which
        would be linearly dependent on them, is omitted.
    """
    names: list[str] = [] if machine.arm is None else list(machine.arm.parameter_names)
    blocks = [machine.regressor(states)]
    rates = states.velocity @ machine.weights.T, states.acceleration @ machine.weights.T
    for k, (element, weights) in enumerate(zip(machine.elements, machine.weights, strict=True)):
        velocity, acceleration = rates[0][:, k], rates[1][:, k]
        columns = {machine.inertia_name: acceleration}
        columns |= _friction_columns(velocity, rest, friction)
        if k >= len(machine.joints):
            columns.pop("torque_offset", None)
        names += [f"{name}_{element}" for name in columns]
        blocks.append(np.stack(list(columns.values()), axis=-1)[:, None, :] * weights[:, None])
    return DesignMatrix(tuple(names), np.concatenate(blocks, axis=-1))


def structural_base(machine: Machine, rest: float, friction: Friction, seed: int = 0) -> BaseParameters:
    """Base parameters of a machine for any motion, friction included, from random states."""
    rng = np.random.default_rng(seed)
    shape = (60 * len(machine.joints), len(machine.joints))
    states = States(1.0, *(rng.uniform(-size, size, shape) for size in (np.pi, 3.0, 9.0)))
    regressor = design(machine, states, rest, friction)
    return base_parameters(regressor.columns.reshape(-1, len(regressor.names)), regressor.names)


def base_of_motion(
    machine: Machine, states: Sequence[States], used: Sequence[Mask], rest: float, friction: Friction
) -> BaseParameters:
    """Base parameters of the fitted rows of a recorded motion: fewer than those of any motion, where joints move one at a time.

    :param used: the rows of each joint that are fitted (M, n), for each recording.
    """
    found = [design(machine, part, rest, friction) for part in states]
    rows = np.concatenate([one.columns[mask] for one, mask in zip(found, used, strict=True)])
    return base_parameters(rows, found[0].names)


def _friction_columns(velocity: Array, rest: float, friction: Friction) -> dict[str, Array]:
    sign = direction(velocity, rest)
    x = Conditions(velocity, np.abs(velocity), 0.0, 0.0)
    return friction_columns(friction_law(friction), {}, sign, x, sign if friction == "asymmetric" else None)
