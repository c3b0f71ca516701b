r"""The four priors of an arm, from nearly nothing to a CAD model.

``diffuse``
    Uniform within bounds: masses up to the total mass by the datasheet, centres of mass within a radius, all directions
    alike, inertias by Steiner's theorem. Motor inertias between that of the rotor J and 2 J (the seed's :math:`[J, 2J^2]`
    is no inertia; read as a slip of 2 J).
``informed``
    The same and three soft constraints: masses come close to the total, centres of mass lie along the links (45°), and so
    do principal axes (0.3).
``empirical``
    What other robots are like, in the numbers of a table: truncated normal masses, lengths of the centre of mass and motor
    inertias (above the rotor's, whose value is also the standard deviation; σ = 63.620 of the seed's axis 6 is a slip of
    6.362), zero-mean normal products of inertia, log-normal moments of inertia. The seed gives these with μ = 0 and a σ in
    kg m^2; a log-normal with both is not defined. Read here: mean and standard deviation are both σ, which does not
    depend on the unit of mass or length. Centres of mass lie within 90° of the link, nearer ones (45°) more likely.
``cad``
    Normal around the URDF, 10 % wide (the seed's "variance of 10 %", read as the standard deviation): centres of mass
    10 % of their length in all directions, products of inertia 10 % of the root of the moments' product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stribeck.bayes.densities import LogNormal, Normal, TruncatedNormal, Uniform
from stribeck.bayes.network import Mechanical, mechanical_of, translations
from stribeck.bayes.prior import ArmPrior, CartesianCom, SphericalCom, TotalMass
from stribeck.dynamics.inertia import nearest_consistent
from stribeck.dynamics.model import ArmModel
from stribeck.errors import ConfigError
from stribeck.io import strict
from stribeck.io.files import shared_directory

Array = npt.NDArray[np.float64]

PRIORS = ("diffuse", "informed", "empirical", "cad")

POLAR = np.deg2rad(45.0)
ALIGNMENT = 0.3
TOTAL = 0.05
"""Standard deviation of the sum of masses, as a share of the total."""

CAD = 0.1
"""Standard deviation of what a CAD model says."""


@dataclass(frozen=True)
class Datasheet:
    """What is known of any arm.

    :param total_mass: base included [kg].
    :param reach: how far a centre of mass may be from its joint, and the length of the arm for tables that scale [m].
    :param rotors: inertia of each rotor on its joint's side (n,) [kg m^2].
    """

    total_mass: float
    reach: float
    rotors: Array

    def __post_init__(self) -> None:
        if not (self.total_mass > 0.0 and self.reach > 0.0 and np.all(self.rotors > 0.0)):
            raise ConfigError("total mass, reach and inertias of the rotors must all be positive")


@dataclass(frozen=True)
class LinkTable:
    """How links of other robots are distributed.

    :param mass, radius: mean and standard deviation of masses and lengths of the centre of mass, (n, 2).
    :param diagonal, off: standard deviations of moments and products of inertia (n,).
    :param total_mass, reach: of the robot that the numbers are for: they scale with these.
    :param source: where they come from.
    """

    mass: Array
    radius: Array
    diagonal: Array
    off: Array
    total_mass: float
    reach: float
    source: str

    def scaled(self, total_mass: float, reach: float) -> LinkTable:
        """For a robot of another mass and size."""
        m, r = total_mass / self.total_mass, reach / self.reach
        return LinkTable(
            self.mass * m,
            self.radius * r,
            self.diagonal * m * r**2,
            self.off * m * r**2,
            total_mass,
            reach,
            self.source,
        )


def reach_of(arm: ArmModel) -> float:
    """Length of all links in a row [m]."""
    return float(np.linalg.norm(translations(arm), axis=1).sum())


def total_mass(arm: ArmModel) -> float:
    """Mass of all links, base included [kg]."""
    return float(sum(inertia.mass for inertia in arm.model.inertias))


def read_table(path: Path | None = None) -> LinkTable:
    """A table of links, ours if no other is named.

    :raises ConfigError: for a file that is not valid.
    """
    path = path or shared_directory("config") / "priors" / "industrial_arms.yaml"
    data = strict.mapping(
        strict.parse_yaml(strict.read_text(path, ConfigError), path, ConfigError), str(path), ConfigError
    )
    strict.check_keys(data, ("source", "total_mass", "reach", "links"), ("robots",), str(path), ConfigError)
    links = data["links"]
    if not isinstance(links, list) or not links:
        raise ConfigError(f"{path}: links: expected a list of links")
    rows = [_row(link, f"{path}: links") for link in links]
    mass, radius, diagonal, off = (np.array([row[key] for row in rows]) for key in _KEYS)
    total, reach = (
        strict.number(data[key], f"{path}: {key}", ConfigError) for key in ("total_mass", "reach")
    )
    return LinkTable(mass, radius, diagonal, off, total, reach, str(data["source"]))


_KEYS = ("mass", "radius", "diagonal", "off")


def _row(link: Any, what: str) -> Mapping[str, Any]:
    data = strict.mapping(link, what, ConfigError)
    strict.check_keys(data, _KEYS, (), what, ConfigError)
    for key in ("mass", "radius"):
        if not isinstance(data[key], list) or len(data[key]) != 2:
            raise ConfigError(f"{what}: {key}: expected mean and standard deviation, found {data[key]!r}")
    numbers = [*data["mass"], *data["radius"], data["diagonal"], data["off"]]
    if not all(strict.number(value, what, ConfigError) > 0.0 for value in numbers):
        raise ConfigError(f"{what}: all numbers must be positive")
    return data


def diffuse(sheet: Datasheet) -> ArmPrior:
    """Bounds alone. Moments up to a twentieth of M r², products up to a 500th (the seed's 50 and 2 kg m² for M = 1050, r = 1)."""
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


def informed(sheet: Datasheet) -> ArmPrior:
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


def empirical(sheet: Datasheet, table: LinkTable) -> ArmPrior:
    """Other robots.

    :raises ConfigError: for an arm that has not as many links as the table.
    """
    n = len(sheet.rotors)
    if len(table.mass) != n:
        raise ConfigError(
            f"the empirical prior is of arms with {len(table.mass)} links, this one has {n}: use another prior, or a table of your own"
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
    """A CAD model, given as the mechanical parameters of its links."""
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
    """The URDF.

    :param motor: inertias that the motors add (n,) [kg m^2].
    """
    return cad_around(mechanical_of(arm, motor, nearest_consistent(arm.inertials).ravel()))


def prior_named(name: str, arm: ArmModel, sheet: Datasheet, table: LinkTable | None = None) -> ArmPrior:
    """A prior by its name.

    :raises ConfigError: for a name that is not in :data:`PRIORS`.
    """
    if name == "cad":
        return cad(arm, sheet.rotors)
    if name == "empirical":
        return empirical(sheet, (table or read_table()).scaled(sheet.total_mass, sheet.reach))
    if name not in PRIORS:
        raise ConfigError(f"unknown prior {name!r}; valid: {', '.join(PRIORS)}")
    return diffuse(sheet) if name == "diffuse" else informed(sheet)
