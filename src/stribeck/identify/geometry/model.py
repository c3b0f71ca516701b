r"""Kinematic model with calibration parameters that change the chain's transforms depending on the pose.

The magnitude of elementary transform e is linear in the parameters :math:`\theta`,

.. math:: m_e(q) = m_e^\mathrm{nominal}(q) + \sum_{i \in e} \theta_i \phi_i(q)

with features :math:`\phi`: 1 for constants (base, joint offsets, geometry), :math:`q_j` for the scale of a joint sensor
(``gain``), :math:`\sin kq_j` and :math:`\cos kq_j` for the eccentricity of a gear or encoder, and moments of gravity
for deflection under load (:mod:`stribeck.identify.geometry.deflection`): of joints about their axis (``compliance``), of
bearings and links across it (``bending``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from stribeck.identify.geometry.chain import AXES, ChainMotion, SerialChain, move, point_derivatives
from stribeck.identify.geometry.deflection import MomentColumn, moment_columns, moments
from stribeck.model.arrays import Array

GEOMETRY = ("base", "offset", "geometry")
"""Groups of constant parameters."""

ExtraGroup = Literal["gain", "compliance", "eccentricity", "bending"]
EXTRA: tuple[ExtraGroup, ...] = get_args(ExtraGroup)
"""Groups of parameters beyond the geometry, selected by cross-validation."""

HARMONICS = (1, 2)
DOWN = (0.0, 0.0, -1.0)


@dataclass(frozen=True)
class Feature:
    """The factor of a parameter as a function of the pose.

    :param kind: ``constant``: 1; ``position`` of a joint; ``sin`` or ``cos`` of a multiple of it; ``moment`` of
        gravity.
    :param order: multiple of the joint's angle.
    :param column: index of the moment in :func:`stribeck.identify.geometry.deflection.moments`.
    """

    kind: Literal["constant", "position", "sin", "cos", "moment"] = "constant"
    joint: int = 0
    order: int = 1
    column: tuple[int, int, int] = (0, 0, 0)


@dataclass(frozen=True)
class GeometryTerm:
    """One parameter.

    :param name: for example ``joint_2.x``; the part before the dot is a joint, ``base`` or a marker.
    :param unit: m, rad or 1.
    :param group: a group in :data:`GEOMETRY` or :data:`EXTRA`.
    :param element: elementary transform that it changes.
    """

    name: str
    unit: str
    group: str
    element: int
    feature: Feature


@dataclass(frozen=True, eq=False)
class KinematicModel:
    """A chain with parameters and measured markers.

    The parameter vector holds the terms, then x, y, z of each marker in the flange frame [m].

    :param base: pose of the nominal base in the frame of the measuring system (4, 4), up to small corrections.
    :param terms: possible deviations from nominal.
    :param markers: names of the measured points.
    :param gravity: direction of gravity in the base frame; its length is irrelevant.
    """

    chain: SerialChain
    base: Array
    terms: tuple[GeometryTerm, ...]
    markers: tuple[str, ...]
    gravity: tuple[float, float, float] = DOWN

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters."""
        points = (f"{marker}.{axis}" for marker in self.markers for axis in AXES[:3])
        return (*(term.name for term in self.terms), *points)

    @property
    def units(self) -> tuple[str, ...]:
        """Units of all parameters."""
        return (*(term.unit for term in self.terms), *("m",) * (3 * len(self.markers)))

    @property
    def groups(self) -> tuple[str, ...]:
        """Groups of all parameters; markers form the group ``marker``."""
        return (*(term.group for term in self.terms), *("marker",) * (3 * len(self.markers)))

    def keep(self, groups: Sequence[str]) -> KinematicModel:
        """The model with only the terms of these groups."""
        return replace(self, terms=tuple(term for term in self.terms if term.group in groups))

    def features(self, positions: Array) -> Array:
        """Factors of all terms (poses, terms) at joint positions (poses, n) [rad, m]."""
        pulls = (
            moments(self.chain, self.gravity, positions)
            if any(term.feature.kind == "moment" for term in self.terms)
            else []
        )
        columns = [_values(term.feature, positions, pulls) for term in self.terms]
        return np.stack(columns, axis=1) if columns else np.empty((len(positions), 0))

    def motion(self, positions: Array, values: Array, features: Array | None = None) -> ChainMotion:
        """Frames of the chain in these poses, with these parameter values."""
        features = self.features(positions) if features is None else features
        magnitudes = self.chain.magnitudes(positions)
        elements = [term.element for term in self.terms]
        np.add.at(magnitudes.T, elements, (features * values[: len(self.terms)]).T)
        return move(self.chain, self.base, magnitudes)

    def behind_flange(self, values: Array) -> Array:
        """Marker positions in the flange frame (k, 3) [m]."""
        return values[len(self.terms) :].reshape(-1, 3)

    def predict(self, positions: Array, values: Array) -> Array:
        """Positions of the markers in the measuring system (poses, k, 3) [m]."""
        return self.motion(positions, values).points(self.behind_flange(values))

    def linearise(
        self, positions: Array, values: Array, features: Array | None = None
    ) -> tuple[Array, Array]:
        """Marker positions (poses, k, 3) [m] and their exact derivative (poses, 3k, parameters).

        :param features: features of the terms at these positions, if already computed.
        """
        features = self.features(positions) if features is None else features
        motion = self.motion(positions, values, features)
        points = motion.points(self.behind_flange(values))
        poses, k = points.shape[:2]
        jacobian = np.zeros((poses, k, 3, len(values)))
        slopes = point_derivatives(self.chain, motion, points)
        elements = [term.element for term in self.terms]
        jacobian[..., : len(elements)] = slopes[..., elements] * features[:, None, None, :]
        for marker in range(k):
            first = len(elements) + 3 * marker
            jacobian[:, marker, :, first : first + 3] = motion.rotation
        return points, jacobian.reshape(poses, 3 * k, len(values))


def candidate_terms(chain: SerialChain, gravity: Sequence[float] = DOWN) -> tuple[GeometryTerm, ...]:
    """All possible calibration parameters of the chain, many of them linearly dependent."""
    base = [_constant(f"base.{axis}", "base", chain.element(0, axis), axis) for axis in AXES]
    deflections = [_deflection(chain, column) for column in moment_columns(chain, gravity)]
    return (*base, *_geometry(chain), *_gains(chain), *_eccentricities(chain), *deflections)


def _geometry(chain: SerialChain) -> list[GeometryTerm]:
    """Joint offsets, and the other five transforms after each joint but the last."""
    offsets, rest = [], []
    for j, name in enumerate(chain.names):
        moving = "z" if chain.prismatic[j] else "rz"
        offsets.append(_constant(f"{name}.offset", "offset", chain.joint_element(j), moving))
        others = [axis for axis in AXES if axis != moving] if j < len(chain.names) - 1 else []
        rest += [_constant(f"{name}.{axis}", "geometry", chain.element(j + 1, axis), axis) for axis in others]
    return [*offsets, *rest]


def _constant(name: str, group: str, element: int, axis: str) -> GeometryTerm:
    return GeometryTerm(name, "rad" if axis.startswith("r") else "m", group, element, Feature())


def _gains(chain: SerialChain) -> list[GeometryTerm]:
    return [
        GeometryTerm(f"{name}.gain", "1", "gain", chain.joint_element(j), Feature("position", j))
        for j, name in enumerate(chain.names)
    ]


def _eccentricities(chain: SerialChain) -> list[GeometryTerm]:
    waves: tuple[Literal["sin", "cos"], ...] = ("sin", "cos")
    return [
        GeometryTerm(
            f"{name}.{wave}{k}", "rad", "eccentricity", chain.joint_element(j), Feature(wave, j, order=k)
        )
        for j, name in enumerate(chain.names)
        if not chain.prismatic[j]
        for k in HARMONICS
        for wave in waves
    ]


def _deflection(chain: SerialChain, column: MomentColumn) -> GeometryTerm:
    """Rotation of a joint frame in proportion to a moment of gravity."""
    along = column.axis == "rz" and not chain.prismatic[column.joint]
    kind = "compliance" if along else f"bending_{column.axis}"
    cause = f"{chain.names[column.link]}.{column.moment}"
    return GeometryTerm(
        f"{chain.names[column.joint]}.{kind}({cause})",
        "rad",
        "compliance" if along else "bending",
        chain.element(column.joint + 1, column.axis),
        Feature("moment", column.joint, column=column.index),
    )


def _values(feature: Feature, positions: Array, pulls: Sequence[Sequence[Array]]) -> Array:
    position = positions[:, feature.joint]
    if feature.kind == "constant":
        return np.ones(len(positions))
    if feature.kind == "position":
        return position
    if feature.kind == "moment":
        joint, axis, cause = feature.column
        return pulls[joint][axis][:, cause]
    return np.asarray((np.sin if feature.kind == "sin" else np.cos)(feature.order * position))
