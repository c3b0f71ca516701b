r"""Information and limits of a trajectory, compiled, with their derivatives.

The information is the log determinant of Fisher's matrix of the base parameters,
:math:`\log\det(Y^T \Sigma^{-1} Y)` with :math:`\Sigma = \mathrm{diag}(\sigma_j^2)` for each of the N samples.
A limit is a *slack*: what is left of it, as a share of it; trajectories within all limits have positive slacks.
"""

from __future__ import annotations

from collections.abc import Callable
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
    def log_det(self) -> float:
        """Log determinant of the information."""
        return float(2.0 * np.sum(np.log(np.abs(np.diag(np.linalg.qr(self.stacked, mode="r"))))))

    @property
    def sigmas(self) -> Array:
        r"""Predicted standard deviations :math:`\sqrt{\mathrm{diag}\,(Y^T\Sigma^{-1}Y)^{-1}}`, (b,)."""
        inverse = np.linalg.inv(np.linalg.qr(self.stacked, mode="r"))
        return np.asarray(np.sqrt(np.sum(inverse**2, axis=1)))


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
        self._scale = np.ones(len(self._chosen))

    def observe(self, z: Array) -> Seen:
        """What the samples show."""
        return Seen(*(np.asarray(part) for part in self._call(self._observe, z)))

    def slack(self, z: Array) -> float:
        """The smallest slack: positive within all limits."""
        return float(self._call(self._worst, z))

    def barrier(self, z: Array, weight: float) -> tuple[float, Array]:
        r"""The barrier function :math:`-\log\det - \mu\sum_k \log s_k` and its gradient; infinite outside.

        :param weight: :math:`\mu`.
        """
        value, gradient = self._call(self._barrier_and_gradient, z, np.float64(weight))
        return float(value), np.asarray(gradient)

    def apart(self, position: Array) -> Array:
        """Least clearance beyond what is wanted at positions (n, N), (N,) [m]; infinite without bodies."""
        return np.asarray(self._call(self._nearest, position))

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
        return found + [part / SCALE for part in self._room(*seen[2:])]

    def _room(self, apart: jax.Array, height: jax.Array) -> list[jax.Array]:
        """Distances less what is wanted [m]."""
        wanted = self.task.clearance + NEAR
        floor = [] if self.task.floor is None else [height - self.task.floor - wanted]
        return [part for part in (apart - wanted, *floor) if part.size]

    def _worst(self, z: jax.Array) -> jax.Array:
        return jnp.min(jnp.stack([jnp.min(part) for part in self._slacks(z, self._observe(z))]))

    def _nearest(self, position: jax.Array) -> jax.Array:
        rooms = self._room(*clearances(self.task.chain, self.task.bodies, position))
        return jnp.min(jnp.stack([jnp.min(room, axis=0) for room in rooms]), axis=0)

    def _barrier_and_gradient(self, z: jax.Array, weight: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.value_and_grad(self._barrier)(z, weight)

    def _barrier(self, z: jax.Array, weight: jax.Array) -> jax.Array:
        seen = self._observe(z)
        scaled = seen[0] / self._scale
        triangle = jnp.linalg.cholesky(scaled.T @ scaled)
        value = -2.0 * jnp.sum(jnp.log(jnp.diag(triangle))) - 2.0 * np.sum(np.log(self._scale))
        inside = jnp.asarray(True)
        for slack in self._slacks(z, seen):
            inside &= jnp.min(slack) > 0.0
            value -= weight * jnp.sum(jnp.log(jnp.maximum(slack, 1e-12)))
        return jnp.where(inside & jnp.isfinite(value), value, jnp.inf)


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
