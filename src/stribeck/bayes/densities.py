r"""Densities of one quantity, each with the coordinate in which a sampler moves it freely.

A sampler's coordinate x is any real number; :meth:`Density.value` makes a quantity inside the density's support of it.
Densities hold arrays and act elementwise; those of a prior differ from one by a constant, which no sampler sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from scipy import special, stats

Array = npt.NDArray[np.float64]

EDGE = 0.02
"""Width of the edges of a uniform density that is no coordinate of its own, as a share of its range: a sampler with
derivatives runs against a wall, but down a slope."""

WALL = 0.05
"""Width of the wall at zero of a half-normal density, as a share of its standard deviation."""

FARTHEST = 37.0
"""Largest coordinate of a truncated normal whose tail double precision still has."""

NEAREST = 1e-14
"""Of a truncated normal to its ends, as a share of its standard deviation: what must be positive is not rounded to zero."""


class Density(Protocol):
    """What all densities can."""

    def value(self, x: Any) -> Any:
        """The quantity at coordinates, same shape."""

    def coordinate(self, value: Array) -> Array:
        """:meth:`value` undone."""

    def log_jacobian(self, x: Any) -> Any:
        """Logarithm of the slope of :meth:`value`."""

    def log_density(self, value: Any) -> Any:
        """Logarithm of the density but for a constant, finite for all real values."""

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Quantities (count, …)."""


@dataclass(frozen=True, eq=False)
class Uniform:
    r"""Uniform on [a, b]; :math:`v = a + (b - a)/(1 + e^{-x})`.

    :meth:`log_density` and :meth:`draw` have soft edges, :math:`p(v) \propto \sigma((v-a)/w) - \sigma((v-b)/w)`: that of a
    uniform plus a logistic quantity of width w = :data:`EDGE` (b - a), if ``soft``.
    """

    lower: Any
    upper: Any
    soft: bool = False

    def value(self, x: Any) -> Any:
        """See :meth:`Density.value`."""
        return self.lower + (self.upper - self.lower) * jax.nn.sigmoid(x)

    def coordinate(self, value: Array) -> Array:
        """See :meth:`Density.coordinate`."""
        return np.asarray(special.logit((value - self.lower) / (self.upper - self.lower)))

    def log_jacobian(self, x: Any) -> Any:
        """See :meth:`Density.log_jacobian`."""
        return jnp.log(self.upper - self.lower) + jax.nn.log_sigmoid(x) + jax.nn.log_sigmoid(-x)

    def log_density(self, value: Any) -> Any:
        """See :meth:`Density.log_density`."""
        if not self.soft:
            return jnp.zeros_like(value)
        width = EDGE * (self.upper - self.lower)
        return jax.nn.log_sigmoid((value - self.lower) / width) + jax.nn.log_sigmoid(
            (self.upper - value) / width
        )

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """See :meth:`Density.draw`."""
        lower, upper = np.broadcast_arrays(self.lower, self.upper)
        found = rng.uniform(lower, upper, (count, *lower.shape))
        return found + EDGE * (upper - lower) * rng.logistic(size=found.shape) if self.soft else found


@dataclass(frozen=True, eq=False)
class Normal:
    r"""Normal; :math:`v = \mu + \sigma x`."""

    mean: Any
    deviation: Any

    def value(self, x: Any) -> Any:
        """See :meth:`Density.value`."""
        return self.mean + self.deviation * x

    def coordinate(self, value: Array) -> Array:
        """See :meth:`Density.coordinate`."""
        return np.asarray((value - self.mean) / self.deviation)

    def log_jacobian(self, x: Any) -> Any:
        """See :meth:`Density.log_jacobian`."""
        return jnp.log(self.deviation) + jnp.zeros_like(x)

    def log_density(self, value: Any) -> Any:
        """See :meth:`Density.log_density`."""
        return -0.5 * ((value - self.mean) / self.deviation) ** 2

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """See :meth:`Density.draw`."""
        shape = np.broadcast_shapes(np.shape(self.mean), np.shape(self.deviation))
        return np.asarray(self.mean + self.deviation * rng.standard_normal((count, *shape)))


@dataclass(frozen=True, eq=False)
class TruncatedNormal:
    r"""Normal on [a, b]; :math:`v = \mu + \sigma z`, where the truncated normal has the probability below v that the
    standard normal has below x.

    Far from both ends x is z, and near them the density of x falls off like a normal one: no long tail for a sampler to
    walk down, as a logarithm has, and narrow ridges between several quantities stay nearly straight.
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
        """Z at coordinates x, each half by its own tail: the other one's would round it off.

        Its slope is written down: a compiler that derives those of the inverse error function twice takes minutes.
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
        """See :meth:`Density.value`."""
        found = self.mean + self.deviation * self._standard(x)
        return jnp.clip(found, self.lower + NEAREST * self.deviation, self.upper - NEAREST * self.deviation)

    def coordinate(self, value: Array) -> Array:
        """See :meth:`Density.coordinate`."""
        below, above, inside = self._tails
        z = (value - self.mean) / self.deviation
        left, right = (special.ndtr(z) - below) / inside, (special.ndtr(-z) - above) / inside
        return np.asarray(
            np.where(left < 0.5, special.ndtri(np.minimum(left, 0.5)), -special.ndtri(np.minimum(right, 0.5)))
        )

    def log_jacobian(self, x: Any) -> Any:
        """See :meth:`Density.log_jacobian`."""
        return jnp.log(self.deviation * self._tails[2]) + 0.5 * (self._standard(x) ** 2 - x**2)

    def log_density(self, value: Any) -> Any:
        """See :meth:`Density.log_density`."""
        return -0.5 * ((value - self.mean) / self.deviation) ** 2

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """See :meth:`Density.draw`."""
        low, high = self._ends
        shape = np.broadcast_shapes(np.shape(low), np.shape(high))
        found = stats.truncnorm.rvs(low, high, size=(count, *shape), random_state=rng)
        return np.asarray(self.mean + self.deviation * found)


@dataclass(frozen=True, eq=False)
class HalfNormal:
    r"""Normal on [0, ∞); :math:`v = \sigma w \ln(1 + e^{x/w})`, w = :data:`WALL`.

    Nearly x σ, but for a short wall at zero: a straight ridge between friction and motor constants, which ends there, stays
    straight, where a logarithm would bend it out of any random walk's reach.
    """

    deviation: Any

    def value(self, x: Any) -> Any:
        """See :meth:`Density.value`."""
        return self.deviation * WALL * jax.nn.softplus(x / WALL)

    def coordinate(self, value: Array) -> Array:
        """See :meth:`Density.coordinate`."""
        scaled = np.asarray(value) / (self.deviation * WALL)
        return np.asarray(WALL * (scaled + np.log(-np.expm1(-scaled))))

    def log_jacobian(self, x: Any) -> Any:
        """See :meth:`Density.log_jacobian`."""
        return jnp.log(self.deviation) + jax.nn.log_sigmoid(x / WALL)

    def log_density(self, value: Any) -> Any:
        """See :meth:`Density.log_density`."""
        return -0.5 * (value / self.deviation) ** 2

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """See :meth:`Density.draw`."""
        return np.asarray(np.abs(self.deviation * rng.standard_normal((count, *np.shape(self.deviation)))))


@dataclass(frozen=True, eq=False)
class LogNormal:
    r"""Log-normal with the mean and the standard deviation of the quantity itself; :math:`v = e^{\mu + s x}`,
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
        """With a median and the factor that is one standard deviation of the logarithm."""
        variance = np.log(factor) ** 2
        mean = np.asarray(median) * np.exp(0.5 * variance)
        return cls(mean, mean * np.sqrt(np.expm1(variance)))

    def value(self, x: Any) -> Any:
        """See :meth:`Density.value`."""
        centre, width = self._log
        return jnp.exp(centre + width * x)

    def coordinate(self, value: Array) -> Array:
        """See :meth:`Density.coordinate`."""
        centre, width = self._log
        return np.asarray((np.log(value) - centre) / width)

    def log_jacobian(self, x: Any) -> Any:
        """See :meth:`Density.log_jacobian`."""
        centre, width = self._log
        return jnp.log(width) + centre + width * x

    def log_density(self, value: Any) -> Any:
        """See :meth:`Density.log_density`."""
        centre, width = self._log
        log = jnp.log(jnp.maximum(value, 1e-300))
        return -log - 0.5 * ((log - centre) / width) ** 2

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """See :meth:`Density.draw`."""
        centre, width = self._log
        return np.asarray(np.exp(centre + width * rng.standard_normal((count, *np.shape(centre)))))
