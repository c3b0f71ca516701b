r"""Likelihoods of measured axis inertias, which a table contains, and of measured joint torques.

Measured inertias are Gaussian with the standard deviation :math:`c\,X(\delta)`, where c is sampled too. (In Reiners et al.
2025, eq. 9, the standard deviation is c times the measured value, which is not a generative model.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from stribeck.errors import RecordingError
from stribeck.identify.arm.motion import ProcessedMotion
from stribeck.identify.arm.regressor import Machine, design
from stribeck.identify.common.autoregressive import effective_samples
from stribeck.identify.posterior.densities import TruncatedNormal
from stribeck.identify.posterior.network import moments, to_standard
from stribeck.identify.posterior.prior import ArmPrior
from stribeck.identify.posterior.sampling import Target, modes
from stribeck.model.arrays import Array, Mask
from stribeck.recordings.tables.readers import read_table

NOISE = TruncatedNormal(0.05, 0.05, 0.005, 0.5)
"""Prior of the relative noise c of measured inertias."""

HALF_NORMAL = TruncatedNormal(0.0, 1.0, 0.0)
"""Prior of friction over its width. Its coordinate is standard normal; a logarithm has a long tail where friction may be zero, and
chains stay in it."""

FIRST_SAMPLES = 20.0
"""Initial effective sample size of a joint."""

FRICTION = ("friction_viscous", "friction_base", "torque_offset")
"""Friction parameters of a joint, in the order of the regressor; a coupling has the first two."""

RECOUNTS = 3
"""Number of updates of the effective sample size."""


@dataclass(frozen=True, eq=False)
class InertiaPosterior:
    """Posterior of an arm given measured axis inertias; the last coordinate belongs to c.

    :param prior: of the links.
    :param frames: link-aligned axes (n, 3, 3).
    :param regressor: Y at the measured poses and axes (N, 11 n), :func:`~stribeck.identify.posterior.network.inertia_regressor`.
    """

    prior: ArmPrior
    frames: Array
    regressor: Array

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.prior.dimension + 1

    def noise(self, x: Any) -> Any:
        """Relative standard deviation c of the measured inertias (…,)."""
        return NOISE.value(x[..., -1])

    def inertias(self, x: Any) -> Any:
        """Axis inertias (…, N) [kg m²]."""
        return moments(self.prior.mechanical(x[..., :-1])) @ self._columns.T

    @cached_property
    def _columns(self) -> Array:
        return self.regressor @ to_standard(self.frames)

    def log_prior(self, x: Any) -> Any:
        """Log prior of coordinates (d,)."""
        noise = NOISE.log_density(self.noise(x)) + NOISE.log_jacobian(x[-1])
        return self.prior.log_density(x[:-1]) + noise

    def log_likelihood(self, x: Any, measured: Any) -> Any:
        """Log likelihood of inertias (N,) [kg m²]."""
        predicted = self.inertias(x)
        width = self.noise(x) * predicted
        return jnp.sum(-jnp.log(width) - 0.5 * ((measured - predicted) / width) ** 2)

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Coordinates of draws from the prior (count, d)."""
        noise = NOISE.coordinate(NOISE.draw(rng, count))
        return np.concatenate([self.prior.draw(rng, count), noise[:, None]], axis=1)

    def target(self, measured: Array) -> Target:
        """Sampling target for measured inertias (N,), or for those of D arms at the same poses (D, N)."""
        return Target(self.dimension, self.log_prior, self.log_likelihood, np.atleast_2d(measured))

    def simulate(self, x: Array, rng: np.random.Generator) -> Array:
        """Simulated measurements (D, N) of arms with coordinates (D, d)."""
        with jax.enable_x64():
            clean, noise = np.asarray(self.inertias(x)), np.asarray(self.noise(x))
        return np.asarray(clean * (1.0 + noise[:, None] * rng.standard_normal(clean.shape)))


class _Sums:
    """Sums of products over one joint's rows, from which squared residuals follow for any linear parameters."""

    def __init__(self, columns: Array, torque: Array) -> None:
        self.matrix, self.vector = columns.T @ columns, columns.T @ torque
        self.square, self.rows = float(torque @ torque), len(torque)
        self._columns, self._torque = columns, torque

    def residual(self, p: Array) -> Array:
        """Residual torque (N,) at linear parameters (p,)."""
        return np.asarray(self._torque - self._columns @ p)


@dataclass(frozen=True, eq=False)
class TorquePosterior:
    r"""Posterior of an arm given measured joint torques, including friction.

    The coordinates are those of the prior of the links, then friction (:attr:`friction_names`), then the noise of each joint.

    .. math:: \log L = -\sum_j N_j \big(\ln\sigma_j + \tfrac{1}{2 \sigma_j^2}\,\overline{(\tau_j - W_j\,p)^2}\big)

    with :math:`N_j` effective samples.

    :param sums: sums of products of each joint.
    :param samples: effective sample size of each joint (n,).
    :param scale: mean absolute torque of each joint and coupling (E,) [N m], scale of the friction priors.
    :param speed: highest velocity of each joint and coupling (E,) [rad/s].
    """

    prior: ArmPrior
    frames: Array
    machine: Machine
    sums: tuple[_Sums, ...]
    samples: Array
    scale: Array
    speed: Array

    @property
    def friction_names(self) -> tuple[str, ...]:
        """Viscous and Coulomb friction and offset of each joint; inertia, viscous and Coulomb friction of each coupling."""
        joints = [f"{name}_{j}" for j in self.machine.joints for name in FRICTION]
        return (*joints, *(f"{name}_{c}" for c in self.machine.couplings for name in ("Ia", *FRICTION[:2])))

    @property
    def _widths(self) -> Array:
        """Prior standard deviations of friction (F,): a third of the typical torque, at the highest velocity."""
        widths = []
        for k, (torque, speed) in enumerate(zip(self.scale, self.speed, strict=True)):
            joint = k < len(self.machine.joints)
            coulomb, viscous = torque / 3.0, torque / (3.0 * speed)
            widths += [viscous, coulomb, coulomb] if joint else [0.01 * torque, viscous, coulomb]
        return np.array(widths)

    @property
    def _signed(self) -> Mask:
        return np.array([name.startswith(FRICTION[2]) for name in self.friction_names])

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.prior.dimension + len(self.friction_names) + len(self.sums)

    def friction(self, x: Any) -> Any:
        """Friction (…, F) in the order of :attr:`friction_names`."""
        scaled = x[..., self.prior.dimension : -len(self.sums)]
        return self._widths * jnp.where(self._signed, scaled, HALF_NORMAL.value(scaled))

    @cached_property
    def _standard(self) -> Array:
        return to_standard(self.frames)

    def linear(self, x: Any) -> Any:
        """Parameters (…, p) in which torques are linear, in the order of :func:`~stribeck.identify.arm.regressor.design`."""
        both = moments(self.prior.mechanical(x[..., : self.prior.dimension])) @ self._standard.T
        n, friction = len(self.machine.joints), self.friction(x)
        inertials, motor = both[..., :-n], both[..., -n:]
        joints = friction[..., : 3 * n].reshape(*friction.shape[:-1], n, 3)
        drives = jnp.concatenate([motor[..., None], joints], axis=-1).reshape(*friction.shape[:-1], -1)
        return jnp.concatenate([inertials, drives, friction[..., 3 * n :]], axis=-1)

    def log_prior(self, x: Any) -> Any:
        """Log prior of coordinates (d,): friction half-normal, offsets normal, noise log-normal with a factor of 10."""
        friction = -0.5 * jnp.sum(x[self.prior.dimension : -len(self.sums)] ** 2)
        noise = -0.5 * (x[-len(self.sums) :] / np.log(10.0)) ** 2
        return self.prior.log_density(x[: self.prior.dimension]) + friction + jnp.sum(noise)

    def log_likelihood(self, x: Any, data: Any) -> Any:
        """Log likelihood of the torques."""
        matrices, vectors, squares, samples = data
        p = self.linear(x)
        noise = x[-len(self.sums) :] + jnp.log(0.05 * self.scale[: len(self.sums)])
        # Sums, because products of many small matrices are slow in XLA.
        left = squares + jnp.sum((jnp.sum(matrices * p, axis=-1) - 2.0 * vectors) * p, axis=-1)
        return -jnp.sum(samples * (noise + 0.5 * left * jnp.exp(-2.0 * noise)))

    def target(self) -> Target:
        """Sampling target."""
        rows = [(s.matrix / s.rows, s.vector / s.rows, s.square / s.rows) for s in self.sums]
        matrices, vectors, squares = (np.stack(part)[None] for part in zip(*rows, strict=True))
        data = (matrices, vectors, squares, self.samples[None])
        return Target(self.dimension, self.log_prior, self.log_likelihood, data)

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Coordinates of draws from the prior (count, d)."""
        friction = rng.standard_normal((count, len(self.friction_names)))
        noise = np.log(10.0) * rng.standard_normal((count, len(self.sums)))
        return np.concatenate([self.prior.draw(rng, count), friction, noise], axis=1)


def torque_posterior(
    prior: ArmPrior,
    frames: Array,
    machine: Machine,
    motions: Sequence[ProcessedMotion],
    rest: float,
    rows: Callable[[ProcessedMotion], Mask],
    *,
    discrepancy: bool = True,
    rotors_known: bool = True,
) -> TorquePosterior:
    """Build the posterior for recorded motion.

    :param rows: which rows of each joint are used (M, n).
    :param discrepancy: use the effective sample size of the residuals at the mode; otherwise count all rows.
    :param rotors_known: whether the prior contains the motor inertias; otherwise they are half-normal, with a third of
        the mean absolute torque over the mean absolute acceleration as standard deviation.
    """
    columns = [design(machine, motion.states, rest).columns for motion in motions]
    used = [rows(motion) for motion in motions]
    sums = []
    for j in range(len(machine.joints)):
        of_joint = np.concatenate([c[u[:, j], j] for c, u in zip(columns, used, strict=True)])
        torque = np.concatenate([m.torque[u[:, j], j] for m, u in zip(motions, used, strict=True)])
        sums.append(_Sums(of_joint, torque))
    samples = np.array([float(s.rows) for s in sums])
    torque = np.concatenate([np.abs(m.torque) for m in motions])
    speed = np.concatenate([np.abs(m.states.velocity @ machine.weights.T) for m in motions])
    if not rotors_known:
        moved = np.concatenate([np.abs(m.states.acceleration) for m in motions]).mean(axis=0)
        width = torque.mean(axis=0) / (3.0 * np.maximum(moved, 1e-3))
        prior = replace(prior, motor=TruncatedNormal(np.zeros_like(width), width, np.zeros_like(width)))
    counted = TorquePosterior(
        prior,
        frames,
        machine,
        tuple(sums),
        samples,
        np.maximum(np.abs(machine.weights) @ torque.mean(axis=0), 1e-6),
        np.maximum(speed.max(axis=0), 1e-3),
    )
    return _counted(counted) if discrepancy else counted


def _counted(posterior: TorquePosterior) -> TorquePosterior:
    """Set the effective sample sizes of the residuals at the mode, iterating because the mode depends on them.

    Least-squares residuals are unsuitable: with few rows the fit absorbs the smooth model error.
    """
    posterior = replace(posterior, samples=np.minimum(posterior.samples, FIRST_SAMPLES))
    with jax.enable_x64():
        x = posterior.draw(np.random.default_rng(0), 1)
        for _ in range(RECOUNTS):
            x, _ = modes(posterior.target(), x)
            p = np.asarray(posterior.linear(x[0]))
            samples = np.array([effective_samples(s.residual(p)) for s in posterior.sums])
            posterior = replace(posterior, samples=samples)
    return posterior


def read_inertias(path: Path, joints: int) -> tuple[Array, npt.NDArray[np.int64], Array]:
    """Read poses (N, n) [rad], axes (N,) counted from 0, and inertias (N,) [kg m²].

    :raises RecordingError: for a file that is not such a table.
    """
    table = read_table(path)
    rows = table.columns(0, len(table.names))
    if rows.shape[1] != joints + 2 or not np.all(np.isfinite(rows)):
        raise RecordingError(
            f"{path}: expected rows of {joints} joint positions, axis and inertia, all finite; found {len(rows)} rows of {rows.shape[1]}"
        )
    axes, measured = rows[:, joints].astype(int) - 1, rows[:, joints + 1]
    if (
        np.any(axes != rows[:, joints] - 1)
        or np.any((axes < 0) | (axes >= joints))
        or np.any(measured <= 0.0)
    ):
        raise RecordingError(f"{path}: axes must be 1 to {joints} and inertias positive")
    return rows[:, :joints], axes, measured
