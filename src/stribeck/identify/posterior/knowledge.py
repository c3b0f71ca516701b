r"""The four priors of an arm, after Reiners et al. 2025, §II-C and table I.

``diffuse``
    Uniform within bounds: masses up to the total mass of the datasheet, centres of mass within a radius in any direction,
    inertias by Steiner's theorem, motor inertias from J to 2 J with the rotor inertia J (the paper's :math:`[J, 2J^2]` does
    not have the unit of an inertia).
``informed``
    As ``diffuse``, with three soft constraints: masses add up to the total, and centres of mass and principal axes lie along
    the links (within about 45°, and 0.3 for the normalised products of inertia).
``empirical``
    Distributions over other robots, from a table: truncated normal masses, lengths of the centre of mass and motor inertias
    (above the rotor inertia, which is also the standard deviation; table I prints 63.620 instead of 6.362 for axis 6),
    zero-mean normal products of inertia, log-normal moments of inertia. The paper gives the latter with μ = 0 and σ in kg m²,
    which does not define a log-normal density; here σ is both mean and standard deviation. Centres of mass lie within 90° of
    the link, with 45° as standard deviation.
``cad``
    Normal around the URDF with a standard deviation of 10 % (the paper's "variance of 10 %"). For each component of the centre
    of mass this is 10 % of its length; for products of inertia, 10 % of the root of the product of the two moments.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from stribeck.errors import ConfigError, check_valid
from stribeck.files.folders import shared_directory
from stribeck.files.schema import Positive, Schema, read_yaml
from stribeck.identify.arm.inertia import nearest_consistent
from stribeck.identify.arm.model import ArmModel
from stribeck.identify.posterior.densities import LogNormal, Normal, TruncatedNormal, Uniform
from stribeck.identify.posterior.network import Mechanical, mechanical_of, translations
from stribeck.identify.posterior.prior import ArmPrior, CartesianCom, SphericalCom, TotalMass
from stribeck.model.arrays import Array

PRIORS = ("diffuse", "informed", "empirical", "cad")

POLAR = np.deg2rad(45.0)
ALIGNMENT = 0.3
TOTAL = 0.05
"""Standard deviation of the sum of masses relative to the total mass."""

CAD = 0.1
"""Relative standard deviation of the values of a CAD model."""


@dataclass(frozen=True)
class ArmDatasheet:
    """Datasheet of an arm.

    :param total_mass: including the base [kg].
    :param reach: largest distance of a centre of mass from its joint, and length for the scaling of tables [m].
    :param rotors: inertia of each rotor, reflected to the joint side (n,) [kg m²].
    """

    total_mass: float
    reach: float
    rotors: Array

    def __post_init__(self) -> None:
        if not (self.total_mass > 0.0 and self.reach > 0.0 and np.all(self.rotors > 0.0)):
            raise ConfigError("total mass, reach and rotor inertias must all be positive")


@dataclass(frozen=True)
class LinkTable:
    """Distribution of the link parameters of other robots.

    :param mass, radius: mean and standard deviation of masses and lengths of the centre of mass, (n, 2).
    :param diagonal, off: standard deviations of moments and products of inertia (n,).
    :param total_mass, reach: of the robot to which the numbers apply.
    """

    mass: Array
    radius: Array
    diagonal: Array
    off: Array
    total_mass: float
    reach: float

    def scaled(self, total_mass: float, reach: float) -> LinkTable:
        """Scale the table to a robot of another mass and size."""
        m, r = total_mass / self.total_mass, reach / self.reach
        return LinkTable(
            self.mass * m, self.radius * r, self.diagonal * m * r**2, self.off * m * r**2, total_mass, reach
        )


def reach_of(arm: ArmModel) -> float:
    """Sum of the lengths of all links [m]."""
    return float(np.linalg.norm(translations(arm), axis=1).sum())


def total_mass(arm: ArmModel) -> float:
    """Mass of all links, base included [kg]."""
    return float(sum(inertia.mass for inertia in arm.model.inertias))


class LinkRow(Schema):
    """One link of a table, scaled as stated there: mean and standard deviation, or standard deviation alone.

    :param mass: mean and standard deviation [kg].
    :param radius: mean and standard deviation of the distance of the centre of mass from the joint [m].
    :param diagonal, off: standard deviations of moments and products of inertia [kg m²].
    """

    mass: tuple[Positive, Positive]
    radius: tuple[Positive, Positive]
    diagonal: Positive
    off: Positive


class TableFile(Schema):
    """A table of links.

    :param robots: source of the numbers, for information.
    :param source: where the numbers come from.
    :param total_mass: of the robot, with its base [kg].
    :param reach: of the robot [m].
    """

    source: str
    total_mass: Positive
    reach: Positive
    links: Annotated[list[LinkRow], Meta(min_length=1)]
    robots: list[str] = msgspec.field(default_factory=list)


def read_table(path: Path | None = None) -> LinkTable:
    """Read a table of links, by default the one included in the project.

    :raises ConfigError: for an invalid file.
    """
    path = path or shared_directory("config") / "priors" / "industrial_arms.yaml"
    content = read_yaml(path, TableFile)
    mass, radius, diagonal, off = (
        np.array([getattr(link, key) for link in content.links]) for key in LinkRow.__struct_fields__
    )
    return LinkTable(mass, radius, diagonal, off, content.total_mass, content.reach)


def diffuse(sheet: ArmDatasheet) -> ArmPrior:
    """Bounds only: moments up to M r²/21, products up to M r²/525 (50 and 2 kg m² for the paper's robot, 1050 kg, 1 m)."""
    n, steiner = len(sheet.rotors), sheet.total_mass * sheet.reach**2
    return ArmPrior(
        name="diffuse",
        mass=Uniform(np.zeros(n), np.full(n, sheet.total_mass)),
        com=SphericalCom(Uniform(np.zeros(n), np.full(n, sheet.reach)), -1.0, None),
        diagonal=Uniform(np.zeros((n, 3)), np.full((n, 3), steiner / 21.0), soft=True),
        off=Uniform(np.full((n, 3), -steiner / 525.0), np.full((n, 3), steiner / 525.0), soft=True),
        motor=Uniform(sheet.rotors, 2.0 * sheet.rotors),
        scale=np.full(n, steiner / 80.0),
    )


def informed(sheet: ArmDatasheet) -> ArmPrior:
    """Bounds and soft constraints."""
    plain = diffuse(sheet)
    assert isinstance(plain.com, SphericalCom)  # noqa: S101
    return replace(
        plain,
        name="informed",
        com=replace(plain.com, spread=POLAR),
        total=TotalMass(sheet.total_mass, TOTAL * sheet.total_mass),
        alignment=ALIGNMENT,
    )


def empirical(sheet: ArmDatasheet, table: LinkTable) -> ArmPrior:
    """Distributions over other robots.

    :raises ConfigError: if arm and table differ in the number of links.
    """
    n = len(sheet.rotors)
    if len(table.mass) != n:
        raise ConfigError(
            f"the empirical prior is for arms with {len(table.mass)} links, but this one has {n}: use another prior, or another `table`"
        )
    moments = np.repeat(table.diagonal[:, None], 3, axis=1)
    zeros, rotors = np.zeros(n), sheet.rotors
    return ArmPrior(
        name="empirical",
        mass=TruncatedNormal(table.mass[:, 0], table.mass[:, 1], zeros, np.full(n, sheet.total_mass)),
        com=SphericalCom(
            TruncatedNormal(table.radius[:, 0], table.radius[:, 1], zeros, np.full(n, sheet.reach)),
            0.0,
            POLAR,
        ),
        diagonal=LogNormal(moments, moments),
        off=Normal(np.zeros((n, 3)), np.repeat(table.off[:, None], 3, axis=1)),
        motor=TruncatedNormal(rotors, rotors, rotors, 2.0 * rotors),
        scale=0.5 * table.diagonal,
    )


def cad_around(links: Mechanical, share: float = CAD) -> ArmPrior:
    """Normal around the mechanical parameters of a CAD model."""
    mass, com, inertia, motor = (np.asarray(part, dtype=np.float64) for part in links)
    moments = inertia[:, :3]
    root = np.sqrt(np.stack([moments[:, i] * moments[:, j] for i, j in ((0, 1), (0, 2), (1, 2))], axis=1))
    gyration = np.sqrt(moments.sum(axis=1) / (2.0 * mass))
    length = np.maximum(np.linalg.norm(com, axis=1), share * gyration)
    return ArmPrior(
        name="cad",
        mass=TruncatedNormal(mass, share * mass, np.zeros_like(mass)),
        com=CartesianCom(Normal(com, np.repeat(share * length[:, None], 3, axis=1))),
        diagonal=Normal(moments, share * moments),
        off=Normal(inertia[:, 3:], share * root),
        motor=TruncatedNormal(motor, share * motor, np.zeros_like(motor)),
        scale=0.5 * moments.mean(axis=1),
    )


def cad(arm: ArmModel, motor: Array) -> ArmPrior:
    """Normal around the URDF.

    :param motor: motor inertias (n,) [kg m²].
    """
    return cad_around(mechanical_of(arm, motor, nearest_consistent(arm.inertials).ravel()))


def prior_named(name: str, arm: ArmModel, sheet: ArmDatasheet, table: LinkTable | None = None) -> ArmPrior:
    """Build a prior by name.

    :raises ConfigError: for a name that is not in :data:`PRIORS`.
    """
    if name == "cad":
        return cad(arm, sheet.rotors)
    if name == "empirical":
        return empirical(sheet, (table or read_table()).scaled(sheet.total_mass, sheet.reach))
    check_valid(name, PRIORS, "unknown prior")
    return diffuse(sheet) if name == "diffuse" else informed(sheet)
