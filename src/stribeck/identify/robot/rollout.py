r"""Joints simulated one by one, under the loads that the motion of the others gives, in one compiled call.

Of the equation of motion of a robot, :math:`M(q)\ddot q + h(q, \dot q) = \tau_m + \tau_f`, the row of joint j is

.. math:: (M_{jj} + I_a)\,\ddot q_j = \tau_m + \tau_e + \tau_0 + \tau_f, \quad
   \tau_e = M_{jj}\ddot q_j - (M\ddot q + C\dot q)_j - G_j g,

with :math:`M_{jj}` and :math:`\tau_e` along a given motion of the whole robot (:class:`~stribeck.identify.robot.tree.Load`): a
joint alone, with known functions of time. The step is :func:`stribeck.model.step.velocity_step`. A lane is one joint in
one run; lanes and directions of the derivatives are contiguous in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from stribeck.model.bench import STANDARD_GRAVITY
from stribeck.model.law import FrictionLaw
from stribeck.model.namespace import array_namespace
from stribeck.model.step import velocity_step

Array = npt.NDArray[np.float64]

DRIVE = (
    *("armature", "stiffness", "derivative", "limit", "bias", "torque_offset", "delay", "tilt_x", "tilt_y"),
    "backlash",
)
"""Parameters of a lane besides those of its friction law."""

SEATED = 0.02
"""Load beyond which a link rests at an end of its backlash [N m]."""


@dataclass(frozen=True)
class Kind:
    """What is compiled: the friction law and the steps per row.

    :param substeps: simulated steps per recorded row.
    :param backlash: whether a link may leave its gears, see :func:`with_backlash`.
    """

    law: FrictionLaw
    substeps: int
    backlash: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Parameters of a lane, in the order of its vector."""
        return (*DRIVE, *(name for name in self.law.parameter_names if name != "torque_offset"))


class Lanes(NamedTuple):
    """Series of L lanes with T rows at one distance; shorter runs are padded, with weight 0.

    :param dt: distance of rows [s].
    :param goal: goals held from their row on (T, L) [rad].
    :param position: measured (T, L) [rad].
    :param weight: 1 where a row counts, else 0 (T, L).
    :param velocity: at the first row (L,) [rad/s].
    :param inertia, torque: see :class:`~stribeck.identify.robot.tree.Load` (T, L).
    :param gravity: (T, L, 3).
    """

    dt: float
    goal: Any
    position: Any
    weight: Any
    velocity: Any
    inertia: Any
    torque: Any
    gravity: Any


class LaneEquations(NamedTuple):
    """Sums of squares of L lanes and their derivatives in the F free directions.

    :param squares: (L,) [rad²].
    :param gradient: (L, F), of half the sum.
    :param hessian: (L, F, F).
    """

    squares: Array
    gradient: Array
    hessian: Array


def mean_goals(goal: Any, delay: Any, substeps: int, dt: float) -> Any:
    r"""Mean of a held goal over each step, late by :math:`\delta` (K, L), differentiable in the delay.

    :math:`\bar g_k = (G(t_k + h - \delta) - G(t_k - \delta))/h` with :math:`G(t) = \int g\,dt`, linear between rows.

    :param goal: (T, L); before the first row the first one holds.
    :param delay: :math:`\delta` (L,) [s].
    """
    xp = array_namespace(goal, delay)
    rows = goal.shape[0]
    total = xp.concatenate([xp.zeros_like(goal[:1]), xp.cumsum(goal - goal[:1], axis=0)])
    edges = xp.arange(rows * substeps + 1)[:, None] / substeps - delay / dt
    whole = xp.clip(xp.floor(edges).astype(int), 0, rows - 1)
    lanes = xp.arange(goal.shape[1])
    slope = xp.where(edges < 0.0, 0.0, goal[whole, lanes] - goal[0])
    integral = total[whole, lanes] + slope * (edges - whole)
    return goal[0] + xp.diff(integral, axis=0) * substeps


def resting_gap(backlash: Any, load: Any) -> Any:
    r"""How much further than its gears a link under a load [N m] rests, :math:`\pm p/2`, near 0 without load [rad]."""
    return 0.5 * backlash * array_namespace(load).tanh(load / SEATED)


def with_backlash(
    p: Mapping[str, Any],
    moved: Callable[[Any, Any, Any], tuple[Any, Any]],
    state: tuple[Any, Any, Any, Any],
    load: Any,
    inertia: Any,
    dt: float,
) -> tuple[Any, Any, Any, Any]:
    r"""A step of a link behind gears with backlash p: apart while the gap :math:`w = q - q_g` stays within :math:`\pm p/2`, else as one.

    Impacts are plastic: momentum stays, and what a step leaves of the way to the end of the gap is shared by the inertias.

    :param moved: velocity and distance of the drive that carries an inertia, from a velocity, under a load.
    :param state: position and velocity of the link, gap, velocity of the gears.
    :param load: of the link [N m].
    :param inertia: of the link [kg m²].
    """
    position, velocity, gap, gears = state
    free_gears, gears_distance = moved(0.0, gears, 0.0)
    free_velocity = velocity + dt * load / inertia
    distance = 0.5 * dt * (velocity + free_velocity)
    wanted = gap + distance - gears_distance
    end = jnp.clip(wanted, -0.5 * p["backlash"], 0.5 * p["backlash"])
    apart = jnp.abs(wanted) < 0.5 * p["backlash"]
    share = p["armature"] / (p["armature"] + inertia)
    both, common = moved(inertia, share * gears + (1.0 - share) * velocity, load)
    return (
        position + jnp.where(apart, distance, common + share * (end - gap)),
        jnp.where(apart, free_velocity, both),
        end,
        jnp.where(apart, free_gears, both),
    )


def _between_rows(series: Any, substeps: int) -> Any:
    """Values in the middle of each step, linear between rows (T, …) -> (K, …)."""
    following = jnp.concatenate([series[1:], series[-1:]])
    shares = (jnp.arange(substeps) + 0.5) / substeps
    values = [series + share * (following - series) for share in shares]
    return jnp.stack(values, axis=1).reshape(-1, *series.shape[1:])


def positions(kind: Kind, lanes: Lanes, values: Any) -> Any:
    """Simulated positions (T, L) of lanes with the parameters ``values`` (N, L) in the order of ``kind.names``."""
    p = dict(zip(kind.names, values, strict=True))
    substeps, dt = kind.substeps, lanes.dt / kind.substeps
    upright = -jnp.sqrt(STANDARD_GRAVITY**2 - p["tilt_x"] ** 2 - p["tilt_y"] ** 2)
    weights = lanes.gravity[..., 0] * p["tilt_x"] + lanes.gravity[..., 1] * p["tilt_y"]
    external = lanes.torque + weights + lanes.gravity[..., 2] * upright + p["torque_offset"]
    goals = mean_goals(lanes.goal, p["delay"], substeps, lanes.dt) - p["bias"]
    inputs = (goals, _between_rows(external, substeps), _between_rows(lanes.inertia, substeps))

    def one_step(state: Any, now: Any) -> Any:
        position, velocity, *gears = state
        goal, outer, inertia = now
        middle = position + 0.5 * dt * velocity
        pull = p["stiffness"] * (goal - middle)

        def motor(v: Any) -> Any:
            return jnp.clip(pull - p["derivative"] * v, -p["limit"], p["limit"])

        def moved(carried: Any, v: Any, load: Any) -> Any:
            return velocity_step(kind.law, 1.0 / (carried + p["armature"]), p, v, motor, load, dt, middle)

        if kind.backlash:
            return with_backlash(p, moved, (position, velocity, *gears), outer, inertia, dt), None
        velocity, distance = moved(inertia, velocity, outer)
        return (position + distance, velocity), None

    def one_row(state: Any, now: Any) -> Any:
        return jax.lax.scan(one_step, state, now, unroll=True)[0], state[0]

    rows = tuple(series.reshape(-1, substeps, *series.shape[1:]) for series in inputs)
    start: tuple[Any, ...] = (lanes.position[0] + 0.0 * goals[0], lanes.velocity + 0.0 * goals[0])
    if kind.backlash:
        start += (resting_gap(p["backlash"], external[0]), start[1])
    return jax.lax.scan(one_row, start, rows)[1]


def _slopes(kind: Kind, lanes: Lanes, values: Any, free: tuple[int, ...]) -> tuple[Any, Any]:
    """Weighted errors (T, L) and their derivatives (F, T, L)."""
    directions = jnp.eye(len(kind.names))[jnp.array(free)][:, :, None] * jnp.ones_like(values)
    simulated, slopes = jax.vmap(
        lambda direction: jax.jvp(partial(positions, kind, lanes), (values,), (direction,)),
        out_axes=(None, 0),
    )(directions)
    return lanes.weight * (simulated - lanes.position), slopes * lanes.weight


@partial(jax.jit, static_argnums=(0, 3, 4))
def _equations(kind: Kind, lanes: Lanes, values: Any, free: tuple[int, ...], dt: float) -> Any:
    error, slopes = _slopes(kind, lanes._replace(dt=dt), values, free)
    return (
        jnp.sum(error**2, axis=0),
        jnp.einsum("ftl,tl->lf", slopes, error),
        jnp.einsum("ftl,gtl->lfg", slopes, slopes),
    )


@partial(jax.jit, static_argnums=(0, 3, 4, 6))
def _in_cells(
    kind: Kind, lanes: Lanes, values: Any, free: tuple[int, ...], dt: float, cells: Any, count: int
) -> Any:
    error, slopes = _slopes(kind, lanes._replace(dt=dt), values, free)

    def of(cell: Any) -> Any:
        inside = slopes * (cells == cell)
        return jnp.einsum("ftl,tl->lf", inside, error), jnp.einsum("ftl,gtl->lfg", inside, slopes)

    return jax.lax.map(of, jnp.arange(count))


@partial(jax.jit, static_argnums=(0, 3))
def _simulated(kind: Kind, lanes: Lanes, values: Any, dt: float) -> Any:
    return positions(kind, lanes._replace(dt=dt), values)


def _single(lanes: Lanes) -> Lanes:
    return Lanes(lanes.dt, *(jnp.asarray(series, dtype=jnp.float32) for series in lanes[1:]))


def equations(kind: Kind, lanes: Lanes, values: Array, free: Sequence[int]) -> LaneEquations:
    """Squares and derivatives of lanes with the parameters ``values`` (N, L)."""
    found = _equations(kind, lanes, jnp.asarray(values, jnp.float32), tuple(free), lanes.dt)
    return LaneEquations(*(np.asarray(part, dtype=float) for part in found))


def equations_in_cells(
    kind: Kind, lanes: Lanes, values: Array, free: Sequence[int], cells: Any, count: int
) -> tuple[Array, Array]:
    """Gradients (C, L, F) and Hessians (C, L, F, F) of the rows in each of ``count`` cells.

    :param cells: number of the cell of each row (T, L).
    """
    single = jnp.asarray(values, jnp.float32)
    found = _in_cells(kind, lanes, single, tuple(free), lanes.dt, jnp.asarray(cells), count)
    return np.asarray(found[0], dtype=float), np.asarray(found[1], dtype=float)


def simulate_lanes(kind: Kind, lanes: Lanes, values: Array) -> Array:
    """Simulated positions (T, L) [rad]."""
    return np.asarray(_simulated(kind, lanes, jnp.asarray(values, jnp.float32), lanes.dt), dtype=float)
