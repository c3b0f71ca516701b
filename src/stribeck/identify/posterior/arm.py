"""Samples an arm's parameters from the prior (zero-shot) or the posterior (Reiners et al. 2025, §II-D)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import jax
import numpy as np

from stribeck.errors import ConfigError, check_valid
from stribeck.identify.posterior import metropolis, nuts
from stribeck.identify.posterior.likelihood import InertiaPosterior, TorquePosterior
from stribeck.identify.posterior.network import LINK_NAMES, Mechanical, moments, to_standard
from stribeck.identify.posterior.sampling import Enough, Progress, silent
from stribeck.model.arrays import Array

Posterior = InertiaPosterior | TorquePosterior

SAMPLERS = ("nuts", "metropolis")

GROUPS = 4
"""Number of groups of draws from a prior, in place of chains."""

CHAINS = 8
"""Number of chains of the no-U-turn sampler."""


@dataclass(frozen=True, eq=False)
class ArmDraws:
    """Draws of an arm's parameters from its prior or its posterior.

    :param x: coordinates (C, S, d).
    """

    posterior: Posterior
    x: Array
    divergences: int = 0

    @cached_property
    def links(self) -> Mechanical:
        """Mechanical parameters, (C, S, n, …) each."""
        prior = self.posterior.prior
        with jax.enable_x64():
            parts = prior.mechanical(self.x[..., : prior.dimension])
        return Mechanical(*(np.asarray(part) for part in parts))

    @property
    def mean(self) -> Mechanical:
        """Means of the mechanical parameters."""
        return Mechanical(*(part.mean(axis=(0, 1)) for part in self.links))

    @cached_property
    def standard(self) -> Array:
        """Standard inertial parameters and motor inertias (C, S, 11 n)."""
        with jax.enable_x64():
            return np.asarray(moments(self.links)) @ to_standard(self.posterior.frames).T

    def named(self, joints: Sequence[str]) -> tuple[tuple[str, ...], Array]:
        """Names and values (C, S, P) of all mechanical parameters, then friction or the noise c."""
        names = [f"{name}_{joint}" for joint in joints for name in LINK_NAMES]
        with jax.enable_x64():
            table = np.asarray(self.links.table)
            if isinstance(self.posterior, TorquePosterior):
                names += list(self.posterior.friction_names)
                rest = np.asarray(self.posterior.friction(self.x))
            else:
                names += ["c"]
                rest = np.asarray(self.posterior.noise(self.x))[..., None]
        return tuple(names), np.concatenate([table.reshape(*table.shape[:-2], -1), rest], axis=-1)

    def inertias(self, regressor: Array) -> Array:
        """Axis inertias (C, S, R) [kg m²] for the rows of a regressor (R, 11 n)."""
        return self.standard @ regressor.T

    @cached_property
    def linear(self) -> Array:
        """Parameters (K, p) of all draws, in the order of :func:`~stribeck.identify.arm.regressor.design`.

        :raises ConfigError: for draws without friction.
        """
        if not isinstance(self.posterior, TorquePosterior):
            raise ConfigError(
                "these draws contain no friction, which torques need: sample the posterior of recorded torques"
            )
        flat = self.x.reshape(-1, self.x.shape[-1])
        with jax.enable_x64():
            return np.asarray(self.posterior.linear(flat))


def zero_shot(posterior: Posterior, count: int, seed: int) -> ArmDraws:
    """Independent draws from the prior, in :data:`GROUPS` groups."""
    with jax.enable_x64():
        x = posterior.draw(np.random.default_rng(seed), count)
    return ArmDraws(posterior, x.reshape(GROUPS, -1, x.shape[-1]))


def infer(
    posterior: Posterior,
    measured: Array | None,
    draws: int,
    seed: int,
    *,
    sampler: str = "nuts",
    chains: int = CHAINS,
    progress: Progress = silent,
    enough: Enough | None = None,
) -> ArmDraws:
    """Sample the posterior.

    :param measured: inertias (N,) [kg m²]; ``None`` for torques, which are part of the posterior.
    :param draws: number of draws per chain.
    :raises ConfigError: for a sampler that is not in :data:`SAMPLERS`.
    """
    check_valid(sampler, SAMPLERS, "unknown sampler")
    if isinstance(posterior, InertiaPosterior):
        if measured is None:
            raise ConfigError("a posterior of inertias needs measured inertias: give them")
        target = posterior.target(measured)
    else:
        target = posterior.target()
    rng = np.random.default_rng(seed)
    with jax.enable_x64():
        if sampler == "nuts":
            start = posterior.draw(rng, chains)[None]
            drawn = nuts.sample(target, start, draws, seed, progress=progress, enough=enough)
        else:
            chains = max(chains, metropolis.POPULATION)
            start = posterior.draw(rng, chains)[None]
            batched = metropolis.batched(target, chains)
            drawn = metropolis.sample(batched, start, draws, seed, progress=progress, enough=enough)
    return ArmDraws(posterior, drawn.x[0], int(drawn.divergences[0]))


def unit_of(name: str) -> str:
    """Unit of a parameter of :meth:`ArmDraws.named`."""
    units = {"m": "kg", "r": "m", "I": "kg m²", "J": "kg m²", "c": "1"}
    return "N m s/rad" if name.startswith("friction_viscous") else units.get(name[0], "N m")
