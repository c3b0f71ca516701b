r"""Priors of the mechanical parameters of an arm on unconstrained coordinates (Reiners et al. 2025, §II-C).

The density is a product of densities of single parameters, restricted to physically consistent bodies. The coordinates ensure
consistency: masses and motor inertias are positive, and the inertia of a link follows from second moments of mass
:math:`\Sigma = s\,T T^T`, T lower triangular with a positive diagonal. This covers exactly the positive definite inertias that
satisfy the triangle inequality. With the determinant of this change of coordinates,

.. math:: \log p(x) = \log p(\delta(x)) + \log|\partial\delta/\partial x|,

every step of a sampler is a consistent body. :mod:`stribeck.identify.posterior.knowledge` lists differences from the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stribeck.identify.posterior.densities import Density, Normal, Uniform
from stribeck.identify.posterior.network import Mechanical, exchanged, inertia_of, square
from stribeck.model.arrays import Array

MOST_TRIES = 4000
"""Maximum number of batches of draws, for priors with contradictory parts."""

_LOWER = np.tril_indices(3)
_DIAGONAL = (0, 2, 5)
_POWERS = np.array([4.0, 3.0, 2.0])
"""Powers of the diagonal of T in the determinant, including its exponential."""


@dataclass(frozen=True, eq=False)
class SphericalCom:
    r"""Centre of mass in spherical coordinates about the link's translation.

    :param radius: density of the radius (n,) [m].
    :param lowest: smallest cosine of the polar angle: -1 for all directions, 0 for those within 90°.
    :param spread: s of the density :math:`e^{-\theta^2/2 s^2}` of the polar angle θ per solid angle [rad]; ``None`` for
        uniform.

    Two normally distributed coordinates give the azimuth, which avoids the discontinuity of an angle.
    """

    radius: Density
    lowest: float
    spread: float | None

    width = 4

    @property
    def _cosine(self) -> Uniform:
        return Uniform(self.lowest, 1.0)

    def value(self, x: Any) -> Any:
        """Centres of mass (…, n, 3) [m] at coordinates (…, n, 4)."""
        radius, cosine = self.radius.value(x[..., 0]), self._cosine.value(x[..., 1])
        plane = x[..., 2:]
        sine = jnp.sqrt(jnp.maximum(1.0 - cosine**2, 1e-24))
        plane = plane / jnp.sqrt(jnp.sum(plane**2, axis=-1, keepdims=True) + 1e-300)
        flat = (radius * sine)[..., None] * plane
        return jnp.concatenate([flat, (radius * cosine)[..., None]], axis=-1)

    def log_density(self, x: Any) -> Any:
        """Log density of the coordinates of all links (…,)."""
        radius, cosine = self.radius.value(x[..., 0]), self._cosine.value(x[..., 1])
        total = jnp.sum(self.radius.log_density(radius) + self.radius.log_jacobian(x[..., 0]), axis=-1)
        total = total + jnp.sum(self._cosine.log_jacobian(x[..., 1]), axis=-1)
        if self.spread is not None:
            angle = jnp.arccos(jnp.clip(cosine, -1.0 + 1e-12, 1.0 - 1e-12))
            total = total - 0.5 * jnp.sum((angle / self.spread) ** 2, axis=-1)
        return total - 0.5 * jnp.sum(x[..., 2:] ** 2, axis=(-2, -1))

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Draw coordinates (count, n, 4)."""
        radius = self.radius.coordinate(self.radius.draw(rng, count))
        cosine = self._cosine.draw(rng, 60 * radius.size)
        if self.spread is not None:
            keep = rng.uniform(size=cosine.shape) < np.exp(-0.5 * (np.arccos(cosine) / self.spread) ** 2)
            cosine = cosine[keep]
        angle = self._cosine.coordinate(cosine[: radius.size].reshape(radius.shape))
        plane = rng.standard_normal((*radius.shape, 2))
        return np.concatenate([radius[..., None], angle[..., None], plane], axis=-1)


@dataclass(frozen=True, eq=False)
class CartesianCom:
    """Normal centre of mass in Cartesian coordinates, (n, 3) [m]."""

    centre: Normal

    width = 3

    def value(self, x: Any) -> Any:
        """Centres of mass (…, n, 3) [m] at coordinates of the same shape."""
        return self.centre.value(x)

    def log_density(self, x: Any) -> Any:
        """Log density of the coordinates of all links (…,)."""
        return jnp.sum(self.centre.log_density(self.value(x)), axis=(-2, -1))

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Draw coordinates (count, n, 3)."""
        return self.centre.coordinate(self.centre.draw(rng, count))


@dataclass(frozen=True, eq=False)
class TotalMass:
    r"""Soft constraint on the mass of links and base, :math:`\sum m + m_0 \sim N(M, \sigma)`, :math:`m_0` uniform on [0, M].

    Integration over :math:`m_0` gives :math:`\Phi((M - S)/\sigma)` with :math:`S = \sum m`; the bound :math:`m_0 \le M` is
    negligible.
    """

    total: float
    deviation: float

    def log_density(self, mass: Any) -> Any:
        """Logarithm of the constraint, at most zero."""
        return jax.scipy.stats.norm.logcdf((self.total - jnp.sum(mass, axis=-1)) / self.deviation)


@dataclass(frozen=True, eq=False)
class ArmPrior:
    r"""Prior of the mechanical parameters of n links.

    :param name: ``diffuse``, ``informed``, ``empirical`` or ``cad``.
    :param mass, motor: densities (n,).
    :param com: density of the centres of mass.
    :param diagonal, off: densities of the moments and the products of inertia (n, 3).
    :param scale: typical second moments of mass (n,) [kg m²], scale of the coordinates.
    :param total: soft constraint on the sum of masses.
    :param alignment: standard deviation of :math:`I_{ij}/\sqrt{I_{ii} I_{jj}}`, a soft constraint on the principal axes.
    """

    name: str
    mass: Density
    com: SphericalCom | CartesianCom
    diagonal: Density
    off: Density
    motor: Density
    scale: Array
    total: TotalMass | None = None
    alignment: float | None = None

    def __len__(self) -> int:
        return len(self.scale)

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(self) * (8 + self.com.width)

    @cached_property
    def _parts(self) -> list[slice]:
        n, w = len(self), self.com.width
        ends = np.cumsum([0, n, w * n, 6 * n, n])
        return [slice(a, b) for a, b in pairwise(ends)]

    def _split(self, x: Any) -> tuple[Any, Any, Any, Any]:
        mass, com, body, motor = (x[..., part] for part in self._parts)
        shape = (*x.shape[:-1], len(self))
        return mass, com.reshape(*shape, self.com.width), body.reshape(*shape, 6), motor

    def mechanical(self, x: Any) -> Mechanical:
        """Mechanical parameters at coordinates (…, d)."""
        mass, com, body, motor = self._split(x)
        inertia = inertia_of(_second(body) * self.scale[:, None])
        return Mechanical(self.mass.value(mass), self.com.value(com), inertia, self.motor.value(motor))

    def log_density(self, x: Any) -> Any:
        """Log density of coordinates (d,) up to a constant."""
        mass, com, body, motor = self._split(x)
        links = self.mechanical(x)
        total = jnp.sum(self.mass.log_density(links.mass) + self.mass.log_jacobian(mass), axis=-1)
        total = total + jnp.sum(self.motor.log_density(links.motor) + self.motor.log_jacobian(motor), axis=-1)
        total = total + self.com.log_density(com) + self._inertia_density(links.inertia)
        total = total + jnp.sum(body[..., _DIAGONAL] * _POWERS, axis=(-2, -1))
        return total if self.total is None else total + self.total.log_density(links.mass)

    def _inertia_density(self, inertia: Any) -> Any:
        diagonal, off = inertia[..., :3], inertia[..., 3:]
        total = self.diagonal.log_density(diagonal) + self.off.log_density(off)
        if self.alignment is not None:
            total = total - 0.5 * (_correlations(diagonal, off) / self.alignment) ** 2
        return jnp.sum(total, axis=(-2, -1))

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Coordinates of draws (count, d).

        :raises RuntimeError: if the densities of the single parameters exclude all consistent bodies.
        """
        mass, motor = self._masses(rng, count), self.motor.draw(rng, count)
        parts = (
            self.mass.coordinate(mass),
            self.com.draw(rng, count).reshape(count, -1),
            self._bodies(rng, count).reshape(count, -1),
            self.motor.coordinate(motor),
        )
        return np.concatenate(parts, axis=-1)

    def _masses(self, rng: np.random.Generator, count: int) -> Array:
        if self.total is None:
            return self.mass.draw(rng, count)
        kept = np.empty((0, len(self)))
        while len(kept) < count:
            tried = self.mass.draw(rng, 4096)
            keep = np.log(rng.uniform(size=len(tried))) < np.asarray(self.total.log_density(tried))
            kept = np.concatenate([kept, tried[keep]])
        return kept[:count]

    def _bodies(self, rng: np.random.Generator, count: int) -> Array:
        """Coordinates of consistent inertias (count, n, 6), by rejection sampling."""
        bodies: list[list[Array]] = [[] for _ in range(len(self))]
        for _ in range(MOST_TRIES):
            missing = [count - sum(map(len, kept)) for kept in bodies]
            if max(missing) <= 0:
                return np.stack([np.concatenate(kept)[:count] for kept in bodies], axis=1)
            inertia = np.concatenate([self.diagonal.draw(rng, 8192), self.off.draw(rng, 8192)], axis=-1)
            second = square(np.asarray(exchanged(inertia)) / self.scale[:, None])
            possible = np.linalg.eigvalsh(second)[..., 0] > 0.0
            if self.alignment is not None:
                with np.errstate(invalid="ignore"):
                    off = _correlations(inertia[..., :3], inertia[..., 3:]) / self.alignment
                chance = np.exp(-0.5 * np.sum(np.nan_to_num(off, nan=np.inf) ** 2, axis=-1))
                possible &= rng.uniform(size=chance.shape) < chance
            for k, kept in enumerate(bodies):
                if missing[k] > 0:
                    kept.append(body_coordinates(second[possible[:, k], k]))
        raise RuntimeError(
            f"the prior {self.name} excludes every physically consistent inertia of at least one link: choose another prior"
        )


def body_coordinates(second: Array) -> Array:
    """Coordinates (…, 6) of scaled second moments of mass (…, 3, 3)."""
    triangle = np.linalg.cholesky(second)[(..., *_LOWER)]
    triangle[..., _DIAGONAL] = np.log(triangle[..., _DIAGONAL])
    return np.asarray(triangle)


def _second(body: Any) -> Any:
    """T Tᵀ (…, 6) from coordinates (…, 6): the rows of T, with the logarithm of its diagonal."""
    a, c, f = (jnp.exp(body[..., k]) for k in _DIAGONAL)
    b, d, e = body[..., 1], body[..., 3], body[..., 4]
    six = (a * a, b * b + c * c, d * d + e * e + f * f, a * b, a * d, b * d + c * e)
    return jnp.stack(six, axis=-1)


def _correlations(diagonal: Any, off: Any) -> Any:
    """Normalised products of inertia I_ij / √(I_ii I_jj), (…, 3)."""
    xx, yy, zz = (diagonal[..., k] for k in range(3))
    return off / (jnp.stack([xx * yy, xx * zz, yy * zz], axis=-1)) ** 0.5
