r"""Univariate densities on unconstrained coordinates.

Samplers work on real coordinates x; :meth:`Density.value` maps them to the support of the density. Parameters of densities
may be arrays. All functions act elementwise; densities are not normalised.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special, stats

from stribeck.model.arrays import Array

EDGE = 0.02
"""Width of a uniform density's soft edges relative to its range; gradient-based samplers need a slope."""

WALL = 0.05
"""Width of the soft edge at zero of a half-normal density relative to its standard deviation."""

FARTHEST = 37.0
"""Largest coordinate of a truncated normal whose tail probability is a positive double."""

NEAREST = 1e-14
"""Minimum distance to the ends of a truncated normal, in standard deviations, so that values do not round to zero."""


class Density(Protocol):
    """Interface of all densities."""

    def value(self, x: Any) -> Any:
        """Value v at coordinates x of the same shape."""

    def coordinate(self, value: Array) -> Array:
        """Inverse of :meth:`value`."""

    def log_jacobian(self, x: Any) -> Any:
        """Logarithm of the derivative of :meth:`value`."""

    def log_density(self, value: Any) -> Any:
        """Log density of a value up to a constant, finite for all real values."""

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Random values (count, …)."""


@dataclass(frozen=True, eq=False)
class Uniform:
    r"""Uniform on [a, b]; :math:`v = a + (b - a)/(1 + e^{-x})`.

    If ``soft``, the density is that of the sum of a uniform and a logistic variable of width w = :data:`EDGE` (b - a),
    :math:`p(v) \propto \sigma((v-a)/w) - \sigma((v-b)/w)`.
    """

    lower: Any
    upper: Any
    soft: bool = False

    def value(self, x: Any) -> Any:
        return self.lower + (self.upper - self.lower) * jax.nn.sigmoid(x)

    def coordinate(self, value: Array) -> Array:
        return np.asarray(special.logit((value - self.lower) / (self.upper - self.lower)))

    def log_jacobian(self, x: Any) -> Any:
        return jnp.log(self.upper - self.lower) + jax.nn.log_sigmoid(x) + jax.nn.log_sigmoid(-x)

    def log_density(self, value: Any) -> Any:
        if not self.soft:
            return jnp.zeros_like(value)
        width = EDGE * (self.upper - self.lower)
        return jax.nn.log_sigmoid((value - self.lower) / width) + jax.nn.log_sigmoid(
            (self.upper - value) / width
        )

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        lower, upper = np.broadcast_arrays(self.lower, self.upper)
        drawn = rng.uniform(lower, upper, (count, *lower.shape))
        return drawn + EDGE * (upper - lower) * rng.logistic(size=drawn.shape) if self.soft else drawn


@dataclass(frozen=True, eq=False)
class Normal:
    r"""Normal; :math:`v = \mu + \sigma x`."""

    mean: Any
    deviation: Any

    def value(self, x: Any) -> Any:
        return self.mean + self.deviation * x

    def coordinate(self, value: Array) -> Array:
        return np.asarray((value - self.mean) / self.deviation)

    def log_jacobian(self, x: Any) -> Any:
        return jnp.log(self.deviation) + jnp.zeros_like(x)

    def log_density(self, value: Any) -> Any:
        return -0.5 * ((value - self.mean) / self.deviation) ** 2

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        shape = np.broadcast_shapes(np.shape(self.mean), np.shape(self.deviation))
        return np.asarray(self.mean + self.deviation * rng.standard_normal((count, *shape)))


@dataclass(frozen=True, eq=False)
class TruncatedNormal:
    r"""Normal on [a, b]; v is the quantile of the truncated normal at the standard normal probability of x.

    Far from both ends :math:`v = \mu + \sigma x`. Unlike a logarithmic coordinate, x has no long tails, and narrow ridges
    between several parameters stay nearly straight.
    """

    mean: Any
    deviation: Any
    lower: Any
    upper: Any = np.inf

    @cached_property
    def _ends(self) -> tuple[Any, Any]:
        return (self.lower - self.mean) / self.deviation, (self.upper - self.mean) / self.deviation

    @cached_property
    def _tails(self) -> tuple[Any, Any, Any]:
        """Probabilities of the normal below a, above b and between them."""
        low, high = self._ends
        below, above = special.ndtr(low), special.ndtr(-np.asarray(high))
        return below, above, special.ndtr(high) - below

    def _standard(self, x: Any) -> Any:
        """(v - μ)/σ at coordinates x, computed from the tail with the smaller rounding error.

        The derivative is explicit because the second derivative of the inverse error function takes minutes to compile.
        """
        below, above, inside = self._tails
        ndtr, ndtri = jax.scipy.special.ndtr, jax.scipy.special.ndtri

        @jax.custom_jvp
        def standard(x: Any) -> Any:
            left = ndtri(below + inside * ndtr(jnp.clip(x, -FARTHEST, 0.0)))
            right = -ndtri(above + inside * ndtr(-jnp.clip(x, 0.0, FARTHEST)))
            return jnp.where(x < 0.0, left, right)

        @standard.defjvp
        def _along(primals: Any, tangents: Any) -> Any:
            z = standard(primals[0])
            return z, inside * jnp.exp(0.5 * (z**2 - primals[0] ** 2)) * tangents[0]

        return standard(x)

    def value(self, x: Any) -> Any:
        values = self.mean + self.deviation * self._standard(x)
        return jnp.clip(values, self.lower + NEAREST * self.deviation, self.upper - NEAREST * self.deviation)

    def coordinate(self, value: Array) -> Array:
        below, above, inside = self._tails
        z = (value - self.mean) / self.deviation
        left, right = (special.ndtr(z) - below) / inside, (special.ndtr(-z) - above) / inside
        return np.asarray(
            np.where(left < 0.5, special.ndtri(np.minimum(left, 0.5)), -special.ndtri(np.minimum(right, 0.5)))
        )

    def log_jacobian(self, x: Any) -> Any:
        return jnp.log(self.deviation * self._tails[2]) + 0.5 * (self._standard(x) ** 2 - x**2)

    def log_density(self, value: Any) -> Any:
        return -0.5 * ((value - self.mean) / self.deviation) ** 2

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        low, high = self._ends
        shape = np.broadcast_shapes(np.shape(low), np.shape(high))
        drawn = stats.truncnorm.rvs(low, high, size=(count, *shape), random_state=rng)
        return np.asarray(self.mean + self.deviation * drawn)


@dataclass(frozen=True, eq=False)
class HalfNormal:
    r"""Normal on [0, ∞); :math:`v = \sigma w \ln(1 + e^{x/w})`, w = :data:`WALL`.

    Nearly :math:`\sigma x` except for a soft edge at zero, so that straight ridges between friction and motor constants stay
    straight. A logarithmic coordinate would bend them too much for a random walk.
    """

    deviation: Any

    def value(self, x: Any) -> Any:
        return self.deviation * WALL * jax.nn.softplus(x / WALL)

    def coordinate(self, value: Array) -> Array:
        scaled = np.asarray(value) / (self.deviation * WALL)
        return np.asarray(WALL * (scaled + np.log(-np.expm1(-scaled))))

    def log_jacobian(self, x: Any) -> Any:
        return jnp.log(self.deviation) + jax.nn.log_sigmoid(x / WALL)

    def log_density(self, value: Any) -> Any:
        return -0.5 * (value / self.deviation) ** 2

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        return np.asarray(np.abs(self.deviation * rng.standard_normal((count, *np.shape(self.deviation)))))


@dataclass(frozen=True, eq=False)
class LogNormal:
    r"""Log-normal with mean m and standard deviation σ of v; :math:`v = e^{\mu + s x}`,
    :math:`s^2 = \ln(1 + (\sigma/m)^2)`, :math:`\mu = \ln m - s^2/2`.
    """

    mean: Any
    deviation: Any

    @property
    def _log(self) -> tuple[Any, Any]:
        variance = np.log1p((np.asarray(self.deviation) / self.mean) ** 2)
        return np.log(self.mean) - 0.5 * variance, np.sqrt(variance)

    @classmethod
    def of_factor(cls, median: Any, factor: Any) -> LogNormal:
        """Log-normal with a median and a geometric standard deviation (``factor``)."""
        variance = np.log(factor) ** 2
        mean = np.asarray(median) * np.exp(0.5 * variance)
        return cls(mean, mean * np.sqrt(np.expm1(variance)))

    def value(self, x: Any) -> Any:
        centre, width = self._log
        return jnp.exp(centre + width * x)

    def coordinate(self, value: Array) -> Array:
        centre, width = self._log
        return np.asarray((np.log(value) - centre) / width)

    def log_jacobian(self, x: Any) -> Any:
        centre, width = self._log
        return jnp.log(width) + centre + width * x

    def log_density(self, value: Any) -> Any:
        centre, width = self._log
        log = jnp.log(jnp.maximum(value, 1e-300))
        return -log - 0.5 * ((log - centre) / width) ** 2

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        centre, width = self._log
        return np.asarray(np.exp(centre + width * rng.standard_normal((count, *np.shape(centre)))))
