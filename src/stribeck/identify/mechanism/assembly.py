r"""Assembly: computes configurations of a mechanism, including closed loops and unmeasured joints, from measured coordinates.

Minimum-norm Gauss–Newton steps, :math:`\delta = A^+ r`, solve :math:`g(q) = 0` and :math:`c(q) = c^*` for the measured joints
and the expressions of places.
Each time step starts from the previous configuration, so that unmeasured joints move only as closed loops require.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stribeck.identify.mechanism import rotation
from stribeck.identify.mechanism.dynamics import BodyState
from stribeck.identify.mechanism.problem import EstimationProblem
from stribeck.identify.mechanism.step_motion import StepMotion

FIRST_ITERATIONS, ITERATIONS = 60, 4
LONGEST = 0.5
"""Longest step of one iteration [rad, m]."""


def _measured(problem: EstimationProblem) -> tuple[Any, Any, Any]:
    """Indices, joints and signs of the position sensors."""
    sensors = problem.mechanism.sensors
    chosen = [k for k, sensor in enumerate(sensors) if sensor.quantity == "position"]
    joints = np.array([sensors[k].joint for k in chosen], int)
    return np.array(chosen, int), joints, np.array([sensors[k].sign for k in chosen])


def _placed(problem: EstimationProblem) -> list[int]:
    """Indices of the sensors by expressions of places."""
    sensors = problem.mechanism.sensors
    return [k for k, one in enumerate(sensors) if one.formula is not None and one.formula.of_pose]


def _places(problem: EstimationProblem, values: Any, q: Any) -> Any:
    """Values of the expressions of places in a configuration (nb, 7)."""
    sensors, physical = problem.mechanism.sensors, problem.mechanism.physical(values)
    still = BodyState(q, jnp.zeros((problem.bodies, 6)))
    motion = StepMotion(problem.dynamics, physical, still, still, problem.step)
    formulas = (sensors[k].formula for k in _placed(problem))
    found = [jnp.asarray(one.value(values, motion.ask)) for one in formulas if one is not None]
    return jnp.stack(found) if found else jnp.zeros(0)


def _nearest(difference: Any, angles: Any) -> Any:
    """Differences of signals, those of angles within half a turn."""
    return jnp.where(angles, jnp.arctan2(jnp.sin(difference), jnp.cos(difference)), difference)


def _shortest(matrix: Any, right: Any) -> Any:
    """Minimum-norm solution of a possibly redundant system."""
    square = matrix @ matrix.T
    square = square + 1e-10 * jnp.trace(square) * jnp.eye(len(square))
    return matrix.T @ jnp.linalg.solve(square, right)


def configurations(problem: EstimationProblem, values: Any, path: Any, begins: Any) -> Any:
    """Configurations (N, nb, 7) that close all loops and agree with the position sensors.

    :param path: signals at the steps (N, ns), without gaps.
    :param begins: whether each step is the first of a run (N,).
    """
    physical, layout = problem.mechanism.physical(values), problem.dynamics.layout
    chosen, joints, sign = _measured(problem)
    wanted = sign * (path[:, chosen] - physical.offset[chosen])
    placed = np.array(_placed(problem), int)
    signs = np.array([problem.mechanism.sensors[k].sign for k in placed])
    places = signs * (path[:, placed] - physical.offset[placed])
    still = jnp.zeros(6 * problem.bodies)

    def iterate(_: int, carry: Any) -> Any:
        q, target, place = carry
        constraints = layout.constraints(physical, q)
        missing = target - jnp.stack(layout.coordinates(layout.pose(physical, q)))[joints]
        missing = _nearest(missing, problem.angles[chosen])
        rows = [constraints.jacobian, constraints.motion[joints]]
        right = [-constraints.deviation, missing]
        if len(placed):

            def near(by: Any) -> Any:
                return _places(problem, values, rotation.plus(q, by.reshape(-1, 6)))

            rows.append(jax.jacfwd(near)(still))
            right.append(_nearest(place - near(still), problem.angles[placed]))
        step = _shortest(jnp.concatenate(rows), jnp.concatenate(right))
        step = step * jnp.minimum(1.0, LONGEST / (jnp.max(jnp.abs(step)) + 1e-300))
        return rotation.plus(q, step.reshape(-1, 6)), target, place

    def advance(q: Any, row: Any) -> tuple[Any, Any]:
        target, place, many = row
        q = jax.lax.fori_loop(0, many, iterate, (q, target, place))[0]
        return q, q

    # The first step of a run may be far from the zero pose or from the end of the previous run.
    many = jnp.where(begins, FIRST_ITERATIONS, ITERATIONS)
    return jax.lax.scan(advance, layout.zero_pose(physical), (wanted, places, many))[1]


def states(problem: EstimationProblem, values: Any, path: Any, linked: Any) -> BodyState:
    """States (N, …) along smooth signals; velocities are differences of configurations.

    :param linked: whether state k + 1 belongs to the same run as state k (N,).
    """
    q = configurations(problem, values, path, jnp.concatenate([jnp.array([True]), ~linked[:-1]]))
    forward = jax.vmap(rotation.minus)(q[1:], q[:-1]) / problem.step
    forward = jnp.concatenate([forward, forward[-1:]])
    followed = jnp.concatenate([jnp.array([False]), linked[:-1]])
    backward = jnp.concatenate([forward[:1], forward[:-1]])
    only_forward = jnp.where(linked[:, None, None], forward, 0.0)
    return BodyState(q, jnp.where(followed[:, None, None], backward, only_forward))


def start_of(
    problem: EstimationProblem, values: Any, first: Any, rate: Any, voltage: Any, back: Any = 0.5
) -> BodyState:
    """A state that agrees with signals (ns,) and with rates of the measured coordinates (ns,).

    The velocity of a state applies half a step before its configuration, so half of the first step's velocity increment is
    subtracted. Otherwise a 1.5 Hz pendulum released at 1 rad would swing 0.02 rad too far with a step of 5 ms.

    :param voltage: inputs of the first step.
    :param back: subtracted fraction of the first step's increment; 0 for a release from rest.
    """
    physical = problem.mechanism.physical(values)
    q = configurations(problem, values, first[None], jnp.array([True]))[0]
    chosen, joints, sign = _measured(problem)
    constraints = problem.dynamics.layout.constraints(physical, q)
    matrix = jnp.concatenate([constraints.jacobian, constraints.motion[joints]])
    right = jnp.concatenate([jnp.zeros(len(constraints.deviation)), sign * rate[chosen]])
    v = _shortest(matrix, right).reshape(-1, 6)
    after = problem.dynamics.step(physical, BodyState(q, v), voltage, problem.step).v
    return BodyState(q, v - back * (after - v))
