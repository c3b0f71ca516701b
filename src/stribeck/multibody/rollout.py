r"""Trajectories of all runs at once: along recorded signals, and near a trajectory that is known.

Both are simulations by the stepper with impulses along the joints, so every state obeys the constraints as the stepper does.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stribeck.multibody import assembly, rotation
from stribeck.multibody.dynamics import State
from stribeck.multibody.mechanism import Array
from stribeck.multibody.problem import Point, Problem, Samples

STIFF = 1e3
"""Damping with which joints are drawn along recorded signals, in units of their inertia per step."""


class Rollout:
    """Simulates all runs of a problem, one after another. Recordings of equal length share one compilation."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._follow = jax.jit(self._followed)
        self._track = jax.jit(self._tracked)

    def along(self, samples: Samples, chi: Array, path: Array) -> Point:
        """States that show smooth signals (N, ns), and the impulses that this takes.

        Each joint moves as if a strong damper drew it to the next value.
        """
        stiff = STIFF * self.problem.inertia(chi)[0]
        with jax.enable_x64():
            states, impulse = self._track(
                jnp.asarray(self.problem.all_values(chi)), jnp.asarray(path), _begins(samples), samples.voltage, stiff
            )
        return _point(samples, chi, states, impulse)

    def near(self, samples: Samples, old: Point, chi: Array, first: State, impulse: Array, gain: Array) -> Point:
        r"""Simulated from first states with impulses :math:`p_k + K_k(x_k \boxminus x_k^{old})`.

        :param first: states of all runs at their starts (N, …); other rows are not used.
        :param impulse: p (N, nj).
        :param gain: K (N, nj, 12 nb).
        """
        with jax.enable_x64():
            states, found = self._follow(
                jnp.asarray(self.problem.all_values(chi)), State(old.q, old.v), _begins(samples), first, impulse, gain,
                samples.voltage,
            )  # fmt: skip
        return _point(samples, chi, states, found)

    def _followed(
        self, values: Any, old: State, begins: Any, first: State, impulse: Any, gain: Any, voltage: Any
    ) -> tuple[State, Any]:
        problem = self.problem
        physical = problem.mechanism.physical(values)

        def advance(state: State, row: Any) -> Any:
            q, v, begin, own, push, answer, u = row
            state = State(jnp.where(begin, own.q, state.q), jnp.where(begin, own.v, state.v))
            away = jnp.concatenate([rotation.minus(state.q, q).reshape(-1), (state.v - v).reshape(-1)])
            push = push + answer @ away
            return problem.dynamics.step(physical, state, u, problem.step, push), (state, push)

        rows = (old.q, old.v, begins, first, impulse, gain, voltage)
        return jax.lax.scan(advance, State(first.q[0], first.v[0]), rows)[1]

    def _tracked(self, values: Any, path: Any, begins: Any, voltage: Any, stiff: Any) -> tuple[State, Any]:
        problem = self.problem
        physical, layout = problem.mechanism.physical(values), problem.dynamics.layout
        wanted = assembly.states(problem, values, path, jnp.concatenate([~begins[1:], jnp.array([False])]))
        coordinates = jax.vmap(lambda q: jnp.stack(layout.coordinates(layout.pose(physical, q))))(wanted.q)

        def advance(state: State, row: Any) -> Any:
            begin, own, goal, u = row
            state = State(jnp.where(begin, own.q, state.q), jnp.where(begin, own.v, state.v))
            pose = layout.pose(physical, state.q)
            missing = goal - jnp.stack(layout.coordinates(pose))
            missing = jnp.where(layout.rotates, jnp.arctan2(jnp.sin(missing), jnp.cos(missing)), missing)
            pull = stiff * missing / problem.step
            new = problem.dynamics.step(physical, state, u, problem.step, pull, stiff)
            return new, (state, pull - stiff * jnp.stack(layout.rates(pose, new.v)[1]))

        goals = jnp.concatenate([coordinates[1:], coordinates[-1:]])
        return jax.lax.scan(advance, State(wanted.q[0], wanted.v[0]), (begins, wanted, goals, voltage))[1]


def _begins(samples: Samples) -> Array:
    """Whether a step is the first of a run (N,)."""
    return np.concatenate([[True], ~samples.linked[:-1]])


def _point(samples: Samples, chi: Array, states: State, impulse: Any) -> Point:
    impulses = np.asarray(impulse) * samples.linked[:, None]
    return Point(np.asarray(chi), np.asarray(states.q), np.asarray(states.v), impulses)
