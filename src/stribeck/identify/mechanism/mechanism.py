r"""Mechanisms: bodies, joints, motors and sensors, whose physical constants may depend on parameters.

In the *zero pose* every body frame coincides with the world frame. Points and axes of joints, centres of mass and inertias are
given in this pose. Body 0 is the world.

Every constant is an affine function of the parameters, :math:`s = s_0 + S\chi`; for example a model file may contain
``com: [0, 0.0935, -l2]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np

from stribeck.identify.mechanism.formulas import Formula
from stribeck.model.arrays import Array
from stribeck.model.bench import STANDARD_GRAVITY
from stribeck.model.parameters import ParameterSet

JointKind = Literal["revolute", "prismatic", "fixed", "free"]

UNMOVED = ("fixed", "free")
"""Kinds without a joint coordinate: all or none of the six deviations are constrained."""

Quantity = Literal["position", "velocity", "expression"]


@dataclass(frozen=True)
class MechanismJoint:
    """A joint between two bodies.

    :param parent: index of the parent body, 0 is the world.
    :param child: index of the body whose motion relative to the parent is the joint's coordinate.
    :param axis: unit vector in the zero pose.
    :param slack: standard deviation of free deviations of its constraints [m]; 0: they deviate as the dynamics says.
    """

    name: str
    kind: JointKind
    parent: int
    child: int
    axis: tuple[float, float, float]
    slack: float = 0.0


@dataclass(frozen=True)
class Motor:
    """A DC motor on a joint, driven by a voltage."""

    name: str
    joint: int


@dataclass(frozen=True)
class Ripple:
    r"""Cogging torque :math:`a\cos nc + b\sin nc` of a revolute joint with the coordinate c.

    :param joint: index of the joint.
    :param order: n, periods per turn.
    """

    joint: int
    order: int


@dataclass(frozen=True)
class Sensor:
    r"""A sensor of a joint coordinate c: :math:`y = \sigma(c(t) - \delta\,\dot c(t)) + o`, with lag δ and offset o.

    :param joint: index of the joint; -1 for an expression.
    :param quantity: ``position`` measures c, ``velocity`` its derivative, ``expression`` a formula in the place of c.
    :param sign: :math:`\sigma`, 1 or -1.
    :param deviation: standard deviation of its noise.
    :param unit: of an expression's value.
    """

    name: str
    joint: int
    quantity: Quantity = "position"
    sign: float = 1.0
    deviation: float = 1.0
    formula: Formula | None = None
    unit: str = ""


@dataclass(frozen=True)
class PlaneContact:
    """A point of a body, or a ball around it, that can touch a plane of the world.

    :param body: index of the body, from 1.
    :param radius: of the ball [m].
    :param place, normal: a point of the plane [m], and its unit normal towards the body.
    """

    name: str
    body: int
    radius: float
    place: tuple[float, float, float]
    normal: tuple[float, float, float]


@dataclass(frozen=True)
class Regularization:
    r"""Regularization of constraints and dry friction (Marklund et al. 2025, eqs. 2.9, 2.10).

    :param compliance: :math:`\epsilon` of translations [m/N]; rotations have :math:`\epsilon/\ell^2`.
    :param damping: :math:`\tau/h`, relaxation time in time steps; at 0, deviations would alternate without decay.
    :param slip: velocity at which dry friction reaches its bound [rad/s, m/s].
    :param length: :math:`\ell` [m], a typical size of the mechanism.
    :raises ValueError: for values that are not positive.
    """

    compliance: float = 1e-8
    damping: float = 0.25
    slip: float = 1e-3
    length: float = 0.1

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0.0 < value < np.inf:
                raise ValueError(f"{name} must be positive, found {value}")


class Physical(NamedTuple):
    """Physical constants of a mechanism with nb bodies, nj joints, nm motors, ns sensors and nw ripples.

    :param mass: (nb,) [kg].
    :param com: centres of mass in the zero pose (nb, 3) [m].
    :param inertia: about the centre of mass: xx, yy, zz, xy, xz, yz (nb, 6) [kg m²].
    :param point: a point of each joint in the zero pose (nj, 3) [m].
    :param coulomb: bound of dry friction (nj,) [N m or N].
    :param viscous: viscous friction (nj,) [N m s/rad or N s/m].
    :param compliance: of the constraints of each joint beyond the regularization (nj,) [m/N].
    :param damping: relaxation time of these constraints beyond the regularization (nj,) [time steps].
    :param ripple: a, b of the cogging torques (nw, 2) [N m].
    :param kt: motor constants (nm,) [N m/A].
    :param resistance: of the windings (nm,) [ohm].
    :param voltage_offset: added to the command (nm,) [V].
    :param tilt: of the base about the x and y axes (2,) [rad].
    :param offset: of sensors (ns,) [unit of the signal].
    :param lag: of sensors (ns,) [s].
    :param spot: points of the nc contacts in the zero pose (nc, 3) [m].
    :param grip: their coefficients of friction (nc,).
    """

    mass: Any
    com: Any
    inertia: Any
    point: Any
    coulomb: Any
    viscous: Any
    compliance: Any
    damping: Any
    ripple: Any
    kt: Any
    resistance: Any
    voltage_offset: Any
    tilt: Any
    offset: Any
    lag: Any
    spot: Any
    grip: Any


def shapes(
    bodies: int, joints: int, motors: int, sensors: int, ripples: int = 0, contacts: int = 0
) -> Mapping[str, tuple[int, ...]]:
    """Shapes of the fields of :class:`Physical`."""
    return {
        "mass": (bodies,),
        "com": (bodies, 3),
        "inertia": (bodies, 6),
        "point": (joints, 3),
        "coulomb": (joints,),
        "viscous": (joints,),
        "compliance": (joints,),
        "damping": (joints,),
        "ripple": (ripples, 2),
        "kt": (motors,),
        "resistance": (motors,),
        "voltage_offset": (motors,),
        "tilt": (2,),
        "offset": (sensors,),
        "lag": (sensors,),
        "spot": (contacts, 3),
        "grip": (contacts,),
    }


@dataclass(frozen=True, eq=False)
class Mechanism:
    r"""A mechanism with the physical constants :math:`s_0 + S\chi`.

    :param bodies: names of the bodies, without the world.
    :param parameters: :math:`\chi` with bounds; the free ones are estimated.
    :param constant: :math:`s_0` of all fields of :class:`Physical`, flattened in order.
    :param matrix: S, one row per constant, one column per parameter.
    :param gravity: gravitational acceleration, along -z of the world [m/s²].
    :param brakes: indices of joints that are clamped in some recordings, by additional dry friction as an input [N m, N].
    """

    name: str
    bodies: tuple[str, ...]
    joints: tuple[MechanismJoint, ...]
    motors: tuple[Motor, ...]
    sensors: tuple[Sensor, ...]
    parameters: ParameterSet
    constant: Array
    matrix: Array
    regularization: Regularization = Regularization()
    gravity: float = STANDARD_GRAVITY
    brakes: tuple[int, ...] = ()
    ripples: tuple[Ripple, ...] = ()
    contacts: tuple[PlaneContact, ...] = ()

    @property
    def inputs(self) -> int:
        """Number of inputs of a step: motor voltages, then brake torques."""
        return len(self.motors) + len(self.brakes)

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shapes of the physical constants."""
        parts = (self.bodies, self.joints, self.motors, self.sensors, self.ripples, self.contacts)
        return shapes(*map(len, parts))

    @property
    def friction_names(self) -> frozenset[str]:
        """Names of the parameters on which the friction of joints depends."""
        parts = self._parts(self.matrix)
        used = np.any(np.concatenate([parts["coulomb"], parts["viscous"]]) != 0.0, axis=0)
        return frozenset(name for name, one in zip(self.parameters.names, used.tolist(), strict=True) if one)

    def unit(self, sensor: Sensor) -> str:
        """SI unit of a sensor's signal."""
        if sensor.formula is not None:
            return sensor.unit
        length = "rad" if self.joints[sensor.joint].kind == "revolute" else "m"
        return length if sensor.quantity == "position" else f"{length}/s"

    def is_angle(self, sensor: Sensor) -> bool:
        """Whether a signal is an angle that a turn more leaves the same: of a revolute joint, or a sum of such, unscaled."""
        names = {joint.name for joint in self.joints if joint.kind == "revolute"}
        if sensor.formula is not None:
            summed = set(sensor.formula.summed)
            return sensor.unit == "rad" and bool(summed) and summed <= names
        return sensor.quantity == "position" and self.joints[sensor.joint].name in names

    def values(self) -> Array:
        """Values of all parameters (p,), in order."""
        return np.array([parameter.value for parameter in self.parameters])

    def symbolic(self, chi: Any) -> Physical:
        """Physical constants as nested lists, for a sequence of p symbols."""
        flat: list[Any] = []
        for constant, row in zip(self.constant, self.matrix, strict=True):
            number: Any = float(constant)
            for k in np.flatnonzero(row):
                number = number + float(row[k]) * chi[int(k)]
            flat.append(number)
        parts = self._parts(flat)
        for name, (_, *width) in self.shapes.items():
            if width:
                parts[name] = [parts[name][k : k + width[0]] for k in range(0, len(parts[name]), width[0])]
        return Physical(**parts)

    def physical(self, chi: Any) -> Physical:
        """Physical constants for parameter values (p,)."""
        parts = self._parts(jnp.asarray(self.constant) + jnp.asarray(self.matrix) @ chi)
        return Physical(**{name: parts[name].reshape(shape) for name, shape in self.shapes.items()})

    def _parts(self, flat: Any) -> dict[str, Any]:
        """Split a flat sequence into the fields of :class:`Physical`."""
        ends = np.cumsum([0, *(int(np.prod(shape)) for shape in self.shapes.values())]).tolist()
        return {name: flat[a:b] for name, (a, b) in zip(self.shapes, pairwise(ends), strict=True)}


def inertia_matrices(inertia: Any) -> Any:
    """Symmetric matrices (…, 3, 3) from xx, yy, zz, xy, xz, yz (…, 6)."""
    xx, yy, zz, xy, xz, yz = jnp.moveaxis(inertia, -1, 0)
    rows = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
    return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)
