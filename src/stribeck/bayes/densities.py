r"""Densities of one quantity, each with the coordinate in which a sampler moves it freely.

A sampler's coordinate x is any real number; :meth:`Density.value` makes a quantity inside the density's support of it.
Densities hold arrays and act elementwise; those of a prior differ from one by a constant, which no sampler sees.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    r"""Normal on [a, b]; :math:`v = a + (b - a)/(1 + e^{-x})`, or :math:`v = a + \sigma e^x` without an upper bound."""

    mean: Any
    deviation: Any
    lower: Any
    upper: Any = np.inf

    @property
    def _box(self) -> Uniform | None:
        return Uniform(self.lower, self.upper) if np.all(np.isfinite(self.upper)) else None

    def value(self, x: Any) -> Any:
        """See :meth:`Density.value`."""
        return self.lower + self.deviation * jnp.exp(x) if self._box is None else self._box.value(x)

    def coordinate(self, value: Array) -> Array:
        """See :meth:`Density.coordinate`."""
        if self._box is None:
            return np.asarray(np.log((value - self.lower) / self.deviation))
        return self._box.coordinate(value)

    def log_jacobian(self, x: Any) -> Any:
        """See :meth:`Density.log_jacobian`."""
        return jnp.log(self.deviation) + x if self._box is None else self._box.log_jacobian(x)

    def log_density(self, value: Any) -> Any:
        """See :meth:`Density.log_density`."""
        return -0.5 * ((value - self.mean) / self.deviation) ** 2

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """See :meth:`Density.draw`."""
        low, high = ((bound - self.mean) / self.deviation for bound in (self.lower, self.upper))
        shape = np.broadcast_shapes(np.shape(low), np.shape(high))
        found = stats.truncnorm.rvs(low, high, size=(count, *shape), random_state=rng)
        return np.asarray(self.mean + self.deviation * found)


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
