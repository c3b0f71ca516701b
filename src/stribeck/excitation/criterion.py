r"""Information and limits of a trajectory, compiled, with their derivatives.

The information is the log determinant of Fisher's matrix of the base parameters,
:math:`\log\det(Y^T \Sigma^{-1} Y)` with :math:`\Sigma = \mathrm{diag}(\sigma_j^2)` for each of the N samples.
A limit is a *slack*: what is left of it, as a share of it; trajectories within all limits have positive slacks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from stribeck.excitation.chain import regressor
from stribeck.excitation.clearance import clearances
from stribeck.excitation.task import Task

Array = npt.NDArray[np.float64]

TORQUE_SHARE = 0.98
"""Share of the effort limits that samples may reach: torques are no trigonometric polynomials."""

NEAR = 0.01
"""What samples keep beyond the clearance [m], for what lies between them."""

SCALE = 0.1
"""A distance that counts as one when it is left [m]."""

POSITIONS = 12_800
"""Whose clearances are taken at once."""

BLOCK = 400
"""Of these, as many fit a processor's cache."""


class Seen(NamedTuple):
    """What the samples of a trajectory show.

    :param stacked: regressor of the base parameters, its rows divided by the noise, (n N, b).
    :param torque: by the URDF's inertials, (n, N) [N m].
    :param apart: distances of bodies (P, N) [m].
    :param height: of moving bodies above the base's origin (M, N) [m].
    """

    stacked: Any
    torque: Any
    apart: Any
    height: Any

    @property
    def sigmas(self) -> Array:
        r"""Predicted standard deviations :math:`\sqrt{\mathrm{diag}\,(Y^T\Sigma^{-1}Y)^{-1}}`, (b,)."""
        inverse = np.linalg.inv(np.linalg.qr(self.stacked, mode="r"))
        return np.asarray(np.sqrt(np.sum(inverse**2, axis=1)))


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

    def __init__(self, task: Task) -> None:
        self.task = task
        self.dimension = int(np.prod(task.shape))
        self._rows = task.basis(task.samples)
        self._chosen = np.array(task.base.chosen)
        self._inertials = task.arm.inertials
        self._compiled: dict[Any, Any] = {}
        self._lock = Lock()
        self._bounds = _joint_bounds(task)
        self._wanted = self._reasonable_distances()

    def _reasonable_distances(self) -> Array:
        """Distance that samples keep of each pair, (P,) [m]: less of bodies that are always near each other."""
        limits, shape = self.task.limits, (self.task.joints, POSITIONS)
        if not len(self.task.bodies.pairs):
            return np.zeros(0)
        anywhere = np.random.default_rng(0).uniform(limits.lower[:, None], limits.upper[:, None], shape)
        apart = np.asarray(self._call(self._clearances, anywhere)[0])
        return np.clip(0.5 * np.median(apart, axis=1), 0.0, self.task.clearance + NEAR)

    def observe(self, z: Array) -> Seen:
        """What the samples show."""
        return Seen(*(np.asarray(part) for part in self._call(self._observe, z)))

    def score(self, z: Array) -> Score:
        """How good a trajectory is, and whether it is within its limits."""
        return Score(*(float(part) for part in self._call(self._score, z)))

    def worth(self, z: Array) -> Score:
        """The same without the slack, which takes most of the time."""
        return Score(*(float(part) for part in self._call(self._worth, z)))

    def barrier(self, z: Array, weight: float) -> tuple[float, Array]:
        r"""The barrier function :math:`-\log\det - \mu\sum_k \log s_k` and its gradient; infinite outside.

        :param weight: :math:`\mu`.
        """
        value, gradient = self._call(self._barrier_and_gradient, z, np.float64(weight))
        return float(value), np.asarray(gradient)

    def room(self, position: Array) -> Array:
        """How much further apart than wanted the nearest bodies are at positions (n, N), (N,) [m].

        Infinite where nothing could touch. One compiled function serves all: N is brought to :data:`POSITIONS`.
        """
        if not len(self.task.bodies.joints):
            return np.full(position.shape[1], np.inf)
        whole = position[:, np.resize(np.arange(position.shape[1]), POSITIONS)]
        return np.asarray(self._call(self._nearest, whole, self._wanted))[: position.shape[1]]

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
        """Call a function in its compiled form for these shapes."""
        key = (function.__name__, *(np.shape(argument) for argument in arguments))
        with jax.enable_x64(True):
            with self._lock:
                if key not in self._compiled:
                    self._compiled[key] = jax.jit(function).lower(*arguments).compile()
            return jax.block_until_ready(self._compiled[key](*arguments))  # type: ignore[no-untyped-call]

    # What follows is traced.

    def _observe(self, z: jax.Array) -> tuple[jax.Array, ...]:
        task = self.task
        position, velocity, acceleration = (part @ z.reshape(task.shape).T for part in self._rows)
        full = regressor(task.chain, position.T, velocity.T, acceleration.T)
        torque = jnp.einsum("jpt,p->jt", full, self._inertials)
        weighted = full[:, self._chosen] / task.noise[:, None, None]
        stacked = jnp.moveaxis(weighted, 1, 2).reshape(-1, len(self._chosen))
        return stacked, torque, *clearances(task.chain, task.bodies, position.T)

    def _slacks(self, z: jax.Array, seen: tuple[jax.Array, ...]) -> list[jax.Array]:
        bounds, task = self._bounds, self.task
        off = jnp.einsum("nrk,nk->nr", bounds.rows, z.reshape(task.shape)) - bounds.middle
        torque = jnp.abs(seen[1]) / task.limits.effort[:, None]
        found = [bounds.half - off, bounds.half + off, TORQUE_SHARE - torque]
        return found + [part / SCALE for part in self._room(*seen[2:], self._wanted)]

    def _room(self, apart: jax.Array, height: jax.Array, wanted: Any) -> list[jax.Array]:
        """Distances less what is wanted [m]."""
        floor = self.task.floor
        low = [] if floor is None else [height - (floor + self.task.clearance + NEAR)]
        return [part for part in (apart - wanted[:, None], *low) if part.size]

    def _nearest(self, position: jax.Array, wanted: jax.Array) -> jax.Array:
        return jnp.min(jnp.concatenate(self._room(*self._clearances(position), wanted)), axis=0)

    def _clearances(self, position: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Of many positions, in blocks that fit a processor's cache."""
        blocks = jnp.moveaxis(position.reshape(len(position), -1, BLOCK), 1, 0)
        found = jax.lax.map(partial(clearances, self.task.chain, self.task.bodies), blocks)
        apart, height = (jnp.moveaxis(part, 0, 1).reshape(part.shape[1], -1) for part in found)
        return apart, height

    def _score(self, z: jax.Array) -> tuple[jax.Array, ...]:
        seen = self._observe(z)
        slack = jnp.min(jnp.stack([jnp.min(part) for part in self._slacks(z, seen)]))
        return *self._worth(z), slack

    def _worth(self, z: jax.Array) -> tuple[jax.Array, jax.Array]:
        seen = self._observe(z)
        return _log_det(seen[0]), jnp.max(jnp.abs(seen[1]) / self.task.limits.effort[:, None])

    def _barrier_and_gradient(self, z: jax.Array, weight: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.value_and_grad(self._barrier)(z, weight)

    def _barrier(self, z: jax.Array, weight: jax.Array) -> jax.Array:
        seen = self._observe(z)
        value = -_log_det(seen[0])
        inside = jnp.asarray(True)
        for slack in self._slacks(z, seen):
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


def _joint_bounds(task: Task) -> _JointBounds:
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
