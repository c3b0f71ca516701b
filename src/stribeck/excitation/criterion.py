r"""Information and limits of a trajectory, compiled, with their derivatives.

The information is the log determinant of Fisher's matrix of the base parameters,
:math:`\log\det(Y^T \Sigma^{-1} Y)` with :math:`\Sigma = \mathrm{diag}(\sigma_j^2)` for each of the N samples.
A limit is a *slack*: what is left of it, as a share of it; trajectories within all limits have positive slacks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from stribeck.core.arrays import Array
from stribeck.core.fourier import Basis
from stribeck.excitation.clearance import clearances
from stribeck.excitation.jax_chain import FrameMotion, frames, motion, regressor, torques
from stribeck.excitation.task import ExcitationTask

TORQUE_SHARE = 0.98
"""Share of the effort limits that samples may reach: torques are no trigonometric polynomials."""

NEAR = 0.01
"""What samples keep beyond the clearance [m], for what lies between them."""

SCALE = 0.1
"""A distance that counts as one when it is left [m]."""

FAR = 0.02
"""Pairs that stay further apart than what is wanted and this in random configurations are left out [m]."""

POSITIONS = 12_800
"""Whose clearances are taken at once."""

COARSE = 2
"""Of the samples, a search takes one in so many for the information: their regressors cost most of its time."""

SPARSE = 4
"""One in so many is enough for an estimate."""

BLOCK = 400
"""Of these, as many fit a processor's cache."""


class Score(NamedTuple):
    """Figures of a trajectory.

    :param log_det: its information.
    :param torque: largest torque as a share of its limit.
    :param slack: the smallest slack, positive within all limits; NaN where nobody asked.
    """

    log_det: float
    torque: float
    slack: float = np.nan


class Criterion:
    """Log determinant, slacks and the barrier function of a task. Trajectories are vectors z, (n (2 L - 1),).

    :param task: what is designed.
    """

    def __init__(self, task: ExcitationTask) -> None:
        self.task = task
        self.dimension = int(np.prod(task.shape))
        self._rows = task.basis(task.samples)
        self._chosen = np.array(task.base.chosen)
        self._inertials = task.arm.inertials
        self._compiled: dict[Any, Any] = {}
        self._lock = Lock()
        self._bounds = _joint_bounds(task)
        self._bodies = task.bodies
        self._wanted = self._low = np.zeros(0)
        if len(self._bodies.joints):
            self._look_around()

    def _look_around(self) -> None:
        """Keep the pairs of bodies that come near each other in random configurations, and what to want of each.

        Bodies that are always near each other, or near the floor, cannot keep the wanted distance: half the usual
        one does.
        """
        limits, shape = self.task.limits, (self.task.joints, POSITIONS)
        anywhere = np.random.default_rng(0).uniform(limits.lower[:, None], limits.upper[:, None], shape)
        apart, height = (np.asarray(part) for part in self._call(self._clearances, anywhere))
        self._compiled.clear()
        most = self.task.clearance + NEAR
        wanted = np.clip(0.5 * np.median(apart, axis=1), 0.0, most)
        near = apart.min(axis=1) < wanted + FAR
        self._bodies = replace(self._bodies, pairs=self._bodies.pairs[near])
        self._wanted = wanted[near]
        if self.task.floor is not None:
            usual = np.median(height, axis=1) - self.task.floor
            self._low = self.task.floor + np.clip(0.5 * usual, 0.0, most)

    def score(self, z: Array) -> Score:
        """How good a trajectory is, and whether it is within its limits."""
        return Score(*(float(part) for part in self._call(self._score, z)))

    def worth(self, z: Array) -> Score:
        """The same without the slack, from every :data:`SPARSE`-th sample: an estimate, quickly."""
        return Score(*(float(part) for part in self._call(self._worth, z)))

    def barrier(self, z: Array, weight: float) -> tuple[float, Array]:
        r"""The barrier function :math:`-\log\det - \mu\sum_k \log s_k` and its gradient; infinite outside.

        :param weight: :math:`\mu`.
        """
        value, gradient = self._call(self._barrier_and_gradient, z, np.array(weight))
        return float(value), np.asarray(gradient)

    def room(self, position: Array) -> Array:
        """How much further apart than wanted the nearest bodies are at positions (n, N), (N,) [m].

        Infinite where nothing could touch. One compiled function serves all: N is brought to :data:`POSITIONS`.
        """
        if not (self._wanted.size or self._low.size):
            return np.full(position.shape[1], np.inf)
        whole = position[:, np.resize(np.arange(position.shape[1]), POSITIONS)]
        return np.asarray(self._call(self._nearest, whole))[: position.shape[1]]

    def curvature(self, z: Array, weight: float) -> Array:
        r"""Second derivative of the joints' barrier, :math:`\mu\sum_k \nabla s_k \nabla s_k^T / s_k^2`, (d, d)."""
        found = np.zeros((self.dimension, self.dimension))
        width = self.task.shape[1]
        for joint, (rows, off) in enumerate(zip(self._bounds.rows, self._off(z), strict=True)):
            weights = (self._bounds.half - off) ** -2.0 + (self._bounds.half + off) ** -2.0
            block = slice(joint * width, (joint + 1) * width)
            found[block, block] = weight * (rows.T * weights) @ rows
        return found

    def reach(self, z: Array, step: Array) -> float:
        """How many steps lead to the first limit of a joint."""
        off, change = self._off(z), self._off(z + step) - self._off(z)
        room = np.where(change > 0.0, self._bounds.half - off, self._bounds.half + off)
        return float(np.min(room / np.maximum(np.abs(change), 1e-300)))

    def _off(self, z: Array) -> Array:
        """Distances from the middle of the joints' limits, as shares, (n, R)."""
        values = np.einsum("nrk,nk->nr", self._bounds.rows, np.reshape(z, self.task.shape))
        return np.asarray(values - self._bounds.middle)

    def _call(self, function: Callable[..., Any], *arguments: Array) -> Any:
        """Call a function in its compiled form for these shapes; while one is compiled, all wait."""
        key = (function.__name__, *(np.shape(argument) for argument in arguments))
        with jax.enable_x64(True):
            with self._lock:
                if key not in self._compiled:
                    self._compiled[key] = jax.jit(function).lower(*arguments).compile()
            return jax.block_until_ready(self._compiled[key](*arguments))  # type: ignore[no-untyped-call]

    # What follows is traced.

    def _observe(self, z: jax.Array) -> tuple[jax.Array, ...]:
        moves = self._motion(z, self._rows)
        torque = torques(self.task.chain, moves, self._inertials)
        return self._stacked(moves), torque, *clearances(self._bodies, moves.rotation, moves.origin)

    def _motion(self, z: jax.Array, rows: Basis) -> FrameMotion:
        return motion(self.task.chain, *(z.reshape(self.task.shape) @ part.T for part in rows))

    def _stacked(self, moves: FrameMotion) -> jax.Array:
        """The stacked regressor of the base parameters, its rows divided by the noise."""
        weighted = regressor(self.task.chain, moves)[:, self._chosen] / self.task.noise[:, None, None]
        return jnp.moveaxis(weighted, 1, 2).reshape(-1, len(self._chosen))

    def _slacks(
        self, z: jax.Array, torque: jax.Array, apart: jax.Array, height: jax.Array
    ) -> list[jax.Array]:
        bounds, task = self._bounds, self.task
        off: jax.Array = jnp.einsum("nrk,nk->nr", bounds.rows, z.reshape(task.shape)) - bounds.middle
        used = jnp.abs(torque) / task.limits.effort[:, None]
        room = [part / SCALE for part in self._room(apart, height)]
        return [-off + bounds.half, off + bounds.half, TORQUE_SHARE - used, *room]

    def _room(self, apart: jax.Array, height: jax.Array) -> list[jax.Array]:
        """Distances less what is wanted [m]."""
        found = [apart - self._wanted[:, None]] if self._wanted.size else []
        return found + ([height - self._low[:, None]] if self._low.size else [])

    def _nearest(self, position: jax.Array) -> jax.Array:
        return jnp.min(jnp.concatenate(self._room(*self._clearances(position))), axis=0)

    def _clearances(self, position: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Of many positions, in blocks that fit a processor's cache."""
        blocks = jnp.moveaxis(position.reshape(len(position), -1, BLOCK), 1, 0)
        chain, bodies = self.task.chain, self._bodies
        found = jax.lax.map(lambda block: clearances(bodies, *frames(chain, block)), blocks)
        count = position.shape[1]
        apart, height = (jnp.moveaxis(part, 0, 1).reshape(part.shape[1], count) for part in found)
        return apart, height

    def _score(self, z: jax.Array) -> tuple[jax.Array, ...]:
        stacked, *seen = self._observe(z)
        slack = jnp.min(jnp.stack([jnp.min(part) for part in self._slacks(z, *seen)]))
        return _log_det(stacked), self._torque_share(seen[0]), slack

    def _worth(self, z: jax.Array) -> tuple[jax.Array, jax.Array]:
        moves = self._motion(z, Basis(*(part[::SPARSE] for part in self._rows)))
        missing = len(self._chosen) * np.log(SPARSE)
        torque = torques(self.task.chain, moves, self._inertials)
        return _log_det(self._stacked(moves)) + missing, self._torque_share(torque)

    def _torque_share(self, torque: jax.Array) -> jax.Array:
        return jnp.max(jnp.abs(torque) / self.task.limits.effort[:, None])

    def _barrier_and_gradient(self, z: jax.Array, weight: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.value_and_grad(self._barrier)(z, weight)

    def _barrier(self, z: jax.Array, weight: jax.Array) -> jax.Array:
        moves = self._motion(z, self._rows)
        value = -_log_det(self._stacked(moves.every(COARSE))) - len(self._chosen) * np.log(COARSE)
        torque = torques(self.task.chain, moves, self._inertials)
        seen = torque, *clearances(self._bodies, moves.rotation, moves.origin)
        inside = jnp.asarray(True)
        for slack in self._slacks(z, *seen):
            inside &= jnp.min(slack) > 0.0
            value -= weight * jnp.sum(jnp.log(jnp.maximum(slack, 1e-12)))
        return jnp.where(inside & jnp.isfinite(value), value, jnp.inf)


@jax.custom_vjp
def _log_det(stacked: jax.Array) -> jax.Array:
    """Log determinant of W^T W, of columns of unit length for the sake of rounding."""
    return _log_det_forward(stacked)[0]


def _log_det_forward(stacked: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The log determinant and its derivative, 2 W (W^T W)^-1."""
    length = jnp.sqrt(jnp.sum(stacked**2, axis=0))
    unit = stacked / length
    triangle = jnp.linalg.cholesky(unit.T @ unit)
    value = 2.0 * (jnp.sum(jnp.log(jnp.diag(triangle))) + jnp.sum(jnp.log(length)))
    inverse = jax.scipy.linalg.solve_triangular(triangle, jnp.diag(1.0 / length), lower=True)
    return value, 2.0 * (stacked @ (inverse.T @ inverse))


def _log_det_backward(gradient: jax.Array, slope: jax.Array) -> tuple[jax.Array]:
    return (slope * gradient,)


_log_det.defvjp(_log_det_forward, _log_det_backward)


class _JointBounds(NamedTuple):
    """Limits of the joints that are linear in z: ``|rows z - middle| < half``, each as a share of the limit.

    :param rows: (n, R, 2 L - 1).
    :param middle: (n, R).
    :param half: (R,).
    """

    rows: Array
    middle: Array
    half: Array


def _joint_bounds(task: ExcitationTask) -> _JointBounds:
    """Of position, velocity, acceleration on all samples, and of the coefficients."""
    limits, n = task.limits, task.joints
    span = 0.5 * (limits.upper - limits.lower)
    parts = (*task.basis(task.samples), task.rest[:-1])
    scales = (span, limits.velocity, limits.acceleration, limits.coefficient)
    rows = [part[None] / scale[:, None, None] for part, scale in zip(parts, scales, strict=True)]
    middle = np.zeros((n, sum(map(len, parts))))
    middle[:, : task.samples] = (0.5 * (limits.upper + limits.lower) / span)[:, None]
    half = np.concatenate([np.full(3 * task.samples, task.margin), np.ones(len(parts[3]))])
    return _JointBounds(np.concatenate(rows, axis=1), middle, half)
