r"""Posterior of a servo's friction law and motor constants, from runs on the pendulum bench.

With the mean squared error :math:`\overline{r^2_k}` of the simulated position of run k and its number of samples :math:`N_k`,

.. math:: \log L = -\sum_k N_k\Big(\ln\sigma + \frac{\overline{r^2_k}}{2\sigma^2}\Big)

where σ is sampled too. With discrepancy, :math:`N_k` is the effective sample size from the autocorrelation of the residuals, a
few per run. Counting all samples as independent is only correct for a law without model error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stribeck.identify.common.correlation import effective_samples_of_runs
from stribeck.identify.posterior import metropolis
from stribeck.identify.posterior.densities import LogNormal
from stribeck.identify.posterior.metropolis import Batched
from stribeck.identify.posterior.sampling import Draws, Enough, Progress, silent
from stribeck.identify.posterior.servo_priors import ServoPrior
from stribeck.identify.servo.prior import SAMPLES_PER_RUN
from stribeck.identify.servo.rollout import Rollout
from stribeck.model.arrays import Array
from stribeck.model.step import simulate

NOISE = LogNormal.of_factor(0.01, 3.0)
"""Prior of σ [rad]: within a factor of 3 of 10 mrad."""

CHAINS = metropolis.POPULATION
REPEATS = 2
"""Number of updates of the effective sample size."""

MEMBERS = 16
"""Number of population members over which the effective sample size is averaged."""


@dataclass(frozen=True, eq=False)
class ServoPosterior:
    """Posteriors of D recordings with the same commands; D = 1 for real data.

    :param rollout: runs, servo, law and free parameters.
    :param prior: of the free parameters.
    :param samples: N_k of each run (R,).
    :param noise: prior of σ [rad].
    :param measured: positions of each recording (D, T, R) [rad]; by default those of the rollout.
    """

    rollout: Rollout
    prior: ServoPrior
    samples: Array
    noise: LogNormal = NOISE
    measured: Array | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the free parameters, then ``sigma``."""
        return (*self.rollout.parameters.free_names, "sigma")

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(self.names)

    def values(self, x: Any) -> Any:
        """Parameters and σ at coordinates (…, d)."""
        return jnp.concatenate([self.prior.values(x[..., :-1]), self.noise.value(x[..., -1:])], axis=-1)

    def natural(self, x: Array) -> Array:
        """Parameters and σ at coordinates (…, d), in double precision."""
        with jax.enable_x64():
            return np.asarray(self.values(x))

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Coordinates of draws from the prior (count, d)."""
        noise = self.noise.coordinate(self.noise.draw(rng, count))
        return np.concatenate([self.prior.draw(rng, count), noise[:, None]], axis=-1)

    def log_prior(self, x: Any) -> Any:
        """Log prior of coordinates (…, d) up to a constant."""
        noise = self.noise.log_density(self.noise.value(x[..., -1])) + self.noise.log_jacobian(x[..., -1])
        return self.prior.log_density(x[..., :-1]) + noise

    def batched(self, chains: int) -> Batched:
        """Batched target for a number of chains per recording."""
        parameters, rollout = self.rollout.parameters, self.rollout
        lower, width = parameters.lower, parameters.upper - parameters.lower
        measured = None
        if self.measured is not None:
            lanes = np.repeat(self.measured, chains, axis=0)
            measured = jnp.asarray(np.moveaxis(lanes, 0, 2), dtype=rollout.dtype)

        def likelihood(x: Any) -> Any:
            values = self.values(x)
            unit = ((values[:, :-1] - lower) / width).T.astype(rollout.dtype)
            squares = rollout.mean_squares(unit, measured).astype(jnp.float64)
            sigma = values[:, -1]
            each = self.samples[:, None] * (jnp.log(sigma) + 0.5 * squares / sigma**2)
            return -jnp.sum(each, axis=0)

        return Batched(self.dimension, self.log_prior, likelihood)

    def positions(self, values: Mapping[str, Any]) -> Array:
        """Simulated positions (T, R) [rad]; values of fixed parameters and σ are ignored."""
        p = {p.name: values[p.name] if p.free else p.value for p in self.rollout.parameters}
        rollout = self.rollout
        return simulate(
            rollout.batch, rollout.actuator, rollout.law, p, integrator=rollout.integrator
        ).position


def independent_samples(rollout: Rollout) -> Array:
    """Number of measured samples of each run (R,)."""
    return np.asarray(np.count_nonzero(rollout.batch.weight, axis=0), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ServoDraws:
    """Draws of a servo's parameters.

    :param values: parameters and σ, (C, S, P) in the order of the posterior's names.
    """

    posterior: ServoPosterior
    values: Array
    draws: Draws

    @cached_property
    def flat(self) -> Array:
        """All draws (C S, P)."""
        return self.values.reshape(-1, self.values.shape[-1])

    def named(self, row: Array) -> dict[str, float]:
        """Values by name, including fixed parameters, without σ."""
        free = dict(zip(self.posterior.names[:-1], row.tolist(), strict=False))
        return {p.name: free.get(p.name, p.value) for p in self.posterior.rollout.parameters}

    @property
    def mean(self) -> dict[str, float]:
        """Posterior means."""
        return self.named(self.flat.mean(axis=0))

    def some(self, count: int, seed: int = 0) -> list[dict[str, float]]:
        """Random subset of the draws."""
        picked = np.random.default_rng(seed).choice(len(self.flat), count, replace=False)
        return [self.named(self.flat[k]) for k in picked]


def sample_servo(
    rollout: Rollout,
    prior: ServoPrior,
    seed: int,
    *,
    discrepancy: bool = True,
    draws: int = 40,
    thin: int = 40,
    chains: int = CHAINS,
    noise: LogNormal = NOISE,
    progress: Progress = silent,
    enough: Enough | None = None,
) -> ServoDraws:
    """Sample the posterior of recorded runs.

    With discrepancy, a population is first tempered with :data:`~stribeck.identify.servo.prior.SAMPLES_PER_RUN` samples per run; its
    residuals then determine the effective sample size.
    """
    runs = len(rollout.batch.logs)
    posterior = ServoPosterior(rollout, prior, independent_samples(rollout), noise)
    rng = np.random.default_rng(seed)
    start = posterior.draw(rng, chains)[None]
    if discrepancy:
        posterior = replace(posterior, samples=np.full(runs, SAMPLES_PER_RUN))
        for number in range(REPEATS):
            posterior = replace(posterior, samples=_counted(posterior, start, seed + number, progress))
    drawn = metropolis.sample(
        posterior.batched(chains), start, draws, seed, thin=thin, progress=progress, enough=enough
    )
    return ServoDraws(posterior, posterior.natural(drawn.x[0]), drawn)


def _counted(posterior: ServoPosterior, start: Array, seed: int, progress: Progress) -> Array:
    """Effective sample size of each run (R,), averaged over the members of a population."""
    target = posterior.batched(start.shape[1])
    with jax.enable_x64():
        x, _ = metropolis.temper(target, start, seed, progress)
    members = posterior.natural(x[0, :: max(1, len(x[0]) // MEMBERS)])
    batch = posterior.rollout.batch
    totals = []
    for row in members:
        simulated = posterior.positions(dict(zip(posterior.names, row.tolist(), strict=True)))
        residual = np.where(batch.weight > 0.0, simulated - batch.position, 0.0)
        totals.append(effective_samples_of_runs(residual, batch.dt))
    return np.full(len(batch.logs), np.mean(totals) / len(batch.logs))


def mean_position(found: ServoDraws, rollout: Rollout, count: int = 60, seed: int = 0) -> Array:
    """Posterior predictive mean of the positions (T, R) [rad] for arbitrary runs of the servo."""
    posterior = replace(found.posterior, rollout=rollout)
    return np.asarray(np.mean([posterior.positions(values) for values in found.some(count, seed)], axis=0))
