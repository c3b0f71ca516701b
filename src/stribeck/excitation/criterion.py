r"""Information and limits of a trajectory, compiled, with derivatives.

The information is the log determinant of the Fisher matrix of the base parameters, :math:`\log\det(Y^T \Sigma^{-1} Y)`
with the covariance :math:`\Sigma` of the joints' torques for each of the N samples. The *slack* of a limit is its unused share;
trajectories within all limits have positive slacks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from stribeck.excitation.clearance import clearances
from stribeck.excitation.contacts import contacts
from stribeck.excitation.task import ExcitationTask
from stribeck.identify.arm.jax_chain import FrameMotion, frames, motion, regressor, torques
from stribeck.model.arrays import Array
from stribeck.session.fourier import Basis

TORQUE_SHARE = 0.98
"""Fraction of the effort limits that samples may reach, since torques may be larger between samples."""

NEAR = 0.01
"""Additional clearance at samples [m], since bodies may come closer between samples."""

SCALE = 0.1
"""Distance that corresponds to a slack of one [m]."""

FAR = 0.02
"""Pairs of bodies that, in random configurations, always stay further apart than the required distance plus this are ignored [m]."""

EXACT = 300
"""Random configurations at which the exact bodies of overlapping capsules are checked."""

DEEPER = 0.005
"""Distance that capsules are kept apart beyond the closest one at which their bodies collide [m]."""

ROOM = 0.05
"""Smallest share of random configurations that a pair of overlapping capsules has to leave."""

POSITIONS = 12_800
"""Number of positions whose clearances are computed at once."""

COARSE = 2
"""The search computes the information from every n-th sample, since regressors take most of its time."""

SPARSE = 4
"""An estimate uses every n-th sample."""

BLOCK = 400
"""Positions per block, such that a block fits in the processor's cache."""


class Score(NamedTuple):
    """Information and torque of a trajectory.

    :param log_det: its information.
    :param torque: largest torque relative to its limit.
    """

    log_det: float
    torque: float


class Criterion:
    """Log determinant, slacks and the barrier function of a task. Trajectories are vectors z, (n (2 L - 1),).

    :param quick: compile the barrier without optimisation: in half the time, but it then takes 1.5 times as long.
    """

    def __init__(self, task: ExcitationTask, *, quick: bool = False) -> None:
        self.task = task
        self._options: dict[str, str | bool] | None = (
            {"xla_backend_optimization_level": "0"} if quick else None
        )
        self.dimension = int(np.prod(task.shape))
        self._rows = task.basis(task.samples)
        self._chosen = np.array(task.base.chosen)
        self._inertials = task.arm.inertials
        self._compiled: dict[Any, Any] = {}
        self._locks: defaultdict[Any, Lock] = defaultdict(Lock)
        self._bounds = _joint_bounds(task)
        self._bodies = task.bodies
        self._wanted = self._low = self._in_the_way = np.zeros(0)
        if len(self._bodies.joints):
            self._look_around()

    def _look_around(self) -> None:
        """Select the pairs of bodies that come close in random configurations, and set the required distance of each pair.

        For bodies that are always close to each other, or to the floor, it is half the median distance; for capsules that
        mostly overlap it follows from the exact bodies inside (:meth:`_overlapping`).
        """
        anywhere = self.task.limits.anywhere(POSITIONS)
        apart, height = (np.asarray(part) for part in self._call(self._clearances, anywhere))
        self._compiled.clear()
        most = self.task.clearance + NEAR
        middle = np.median(apart, axis=1)
        wanted = np.clip(0.5 * middle, 0.0, most)
        if (middle < most).any():
            wanted = np.where(middle < most, self._overlapping(anywhere, apart, most), wanted)
        near = apart.min(axis=1) < wanted + FAR
        self._bodies = replace(self._bodies, pairs=self._bodies.pairs[near])
        self._wanted, self._in_the_way = wanted[near], np.mean(apart[near] < wanted[near, None], axis=1)
        if self.task.floor is not None:
            usual = np.median(height, axis=1) - self.task.floor
            self._low = self.task.floor + np.clip(0.5 * usual, 0.0, most)

    def _overlapping(self, position: Array, apart: Array, most: float) -> Array:
        """Required distances (P,) of capsules that mostly overlap, which are much larger than the bodies inside.

        It is the largest distance at which the bodies collide in the first :data:`EXACT` of random positions (n, N) plus
        :data:`DEEPER`, or the smallest one that occurs if they never collide. A pair for which that leaves less than
        :data:`ROOM` of the positions is not kept apart (minus infinity): the final check of the trajectory decides.

        :param apart: distances of the capsules at the positions, (P, N).
        """
        task, links = self.task, self._bodies.links
        found = contacts(task.arm, task.shapes, task.ignored, position[:, :EXACT].T)
        wanted = np.empty(len(apart))
        for k, (one, other) in enumerate(self._bodies.pairs):
            collides = found[frozenset((links[one], links[other]))]
            deepest = apart[k].min() if not collides.any() else apart[k, :EXACT][collides].max() + DEEPER
            wanted[k] = min(deepest, most) if np.mean(apart[k] > deepest) > ROOM else -np.inf
        return wanted

    def obstacle(self) -> str:
        """What is most often in the way of random configurations, in words."""
        if not len(self._wanted):
            return "the floor is"
        worst = int(np.argmax(self._in_the_way))
        one, other = (self._bodies.links[k] for k in self._bodies.pairs[worst])
        return f"{one} with {other} ({100 * self._in_the_way[worst]:.0f} % of the configurations)"

    def prepare(self) -> None:
        """Compile the barrier and the clearances, which takes longer than many evaluations."""
        self.barrier(np.zeros(self.dimension), 1.0)
        self.room(np.zeros((self.task.joints, 1)))

    def score(self, z: Array) -> Score:
        """Information and torque of a trajectory."""
        return self._score(z, 1)

    def worth(self, z: Array) -> Score:
        """Quick estimate, from every :data:`SPARSE`-th sample."""
        return self._score(z, SPARSE)

    def _score(self, z: Array, step: int) -> Score:
        """From every ``step``-th sample, by Pinocchio: nothing has to be compiled."""
        task, arm = self.task, self.task.arm
        states = [np.ascontiguousarray((np.reshape(z, task.shape) @ part[::step].T).T) for part in self._rows]
        torque = np.abs(arm.inverse_dynamics(*states) / task.limits.effort).max()
        stacked = task.whitened(task.base.reduce(arm.regressor(*states))).reshape(-1, len(self._chosen))
        length = np.linalg.norm(stacked, axis=0)
        if not length.all():
            return Score(-np.inf, float(torque))
        diagonal = np.abs(np.diag(np.linalg.qr(stacked / length, mode="r")))
        log_det = 2.0 * np.sum(np.log(np.maximum(diagonal, 1e-300))) + 2.0 * np.sum(np.log(length))
        return Score(float(log_det + len(length) * np.log(step)), float(torque))

    def barrier(self, z: Array, weight: float) -> tuple[float, Array]:
        r"""The barrier function :math:`-\log\det - \mu\sum_k \log s_k` and its gradient; infinite outside the limits.

        :param weight: :math:`\mu`.
        """
        value, gradient = self._call(self._barrier_and_gradient, z, np.array(weight))
        return float(value), np.asarray(gradient)

    def room(self, position: Array) -> Array:
        """Clearance margin (N,) [m] at positions (n, N): smallest difference between actual and required distance; infinite without bodies.

        Positions are padded to :data:`POSITIONS`, so that the function is compiled once; only their blocks are computed.
        """
        if not (self._wanted.size or self._low.size):
            return np.full(position.shape[1], np.inf)
        count = position.shape[1]
        whole = position[:, np.resize(np.arange(count), POSITIONS)]
        return np.asarray(self._call(self._nearest, whole, np.array(-(-count // BLOCK))))[:count]

    def curvature(self, z: Array, weight: float) -> Array:
        r"""Gauss-Newton Hessian of the joint-limit barrier, :math:`\mu\sum_k \nabla s_k \nabla s_k^T / s_k^2`, (d, d)."""
        hessian = np.zeros((self.dimension, self.dimension))
        width = self.task.shape[1]
        values = np.einsum("nrk,nk->nr", self._bounds.rows, np.reshape(z, self.task.shape))
        for joint, (rows, off) in enumerate(
            zip(self._bounds.rows, values - self._bounds.middle, strict=True)
        ):
            weights = (self._bounds.half - off) ** -2.0 + (self._bounds.half + off) ** -2.0
            block = slice(joint * width, (joint + 1) * width)
            hessian[block, block] = weight * (rows.T * weights) @ rows
        return hessian

    def _call(self, function: Callable[..., Any], *arguments: Array) -> Any:
        """Call a function, compiled for these shapes; only one thread compiles it."""
        key = (function.__name__, *(np.shape(argument) for argument in arguments))
        options = self._options if function.__name__ == "_barrier_and_gradient" else None
        with jax.enable_x64(True):
            with self._locks[key]:
                if key not in self._compiled:
                    self._compiled[key] = jax.jit(function).lower(*arguments).compile(options)
            return jax.block_until_ready(self._compiled[key](*arguments))  # type: ignore[no-untyped-call]

    # -- traced by JAX

    def _motion(self, z: jax.Array, rows: Basis) -> FrameMotion:
        return motion(self.task.chain, *(z.reshape(self.task.shape) @ part.T for part in rows))

    def _stacked(self, moves: FrameMotion) -> jax.Array:
        """Regressor of the base parameters, stacked over joints and samples, of torques with independent noise of variance 1."""
        rows, white = regressor(self.task.chain, moves)[:, self._chosen], self.task.whitening
        weighted = rows * white[:, None, None] if white.ndim == 1 else jnp.einsum("ij,jbn->ibn", white, rows)
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
        """Distances minus the required ones [m]."""
        pairs = [apart - self._wanted[:, None]] if self._wanted.size else []
        return pairs + ([height - self._low[:, None]] if self._low.size else [])

    def _nearest(self, position: jax.Array, blocks: jax.Array) -> jax.Array:
        """Smallest room at the positions of the first blocks; zero at the others."""
        chain, bodies = self.task.chain, self._bodies

        def block(k: jax.Array, found: jax.Array) -> jax.Array:
            part = jax.lax.dynamic_slice_in_dim(position, k * BLOCK, BLOCK, axis=1)
            room = self._room(*clearances(bodies, *frames(chain, part)))
            return jax.lax.dynamic_update_slice(found, jnp.min(jnp.concatenate(room), axis=0), (k * BLOCK,))

        found: jax.Array = jax.lax.fori_loop(0, blocks, block, jnp.zeros(position.shape[1]))
        return found

    def _clearances(self, position: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Clearances at many positions, in blocks that fit in the processor's cache."""
        blocks = jnp.moveaxis(position.reshape(len(position), -1, BLOCK), 1, 0)
        chain, bodies = self.task.chain, self._bodies
        parts = jax.lax.map(lambda block: clearances(bodies, *frames(chain, block)), blocks)
        count = position.shape[1]
        apart, height = (jnp.moveaxis(part, 0, 1).reshape(part.shape[1], count) for part in parts)
        return apart, height

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
    """Log determinant of W^T W, computed from columns of unit length to limit rounding errors."""
    return _log_det_forward(stacked)[0]


def _log_det_forward(stacked: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Log determinant of W^T W and its derivative by W, 2 W (W^T W)^-1."""
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
    """Limits (n, R) of the joints that are linear in z: ``|rows z - middle| < half``, each as a share of the limit."""

    rows: Array
    middle: Array
    half: Array


def _joint_bounds(task: ExcitationTask) -> _JointBounds:
    """Limits of position, velocity and acceleration at all samples, and of the coefficients."""
    limits, n = task.limits, task.joints
    span = 0.5 * (limits.upper - limits.lower)
    parts = (*task.basis(task.samples), task.rest[:-1])
    scales = (span, limits.velocity, limits.acceleration, limits.coefficient)
    rows = [part[None] / scale[:, None, None] for part, scale in zip(parts, scales, strict=True)]
    middle = np.zeros((n, sum(map(len, parts))))
    middle[:, : task.samples] = (0.5 * (limits.upper + limits.lower) / span)[:, None]
    half = np.concatenate([np.full(3 * task.samples, task.margin), np.ones(len(parts[3]))])
    return _JointBounds(np.concatenate(rows, axis=1), middle, half)
