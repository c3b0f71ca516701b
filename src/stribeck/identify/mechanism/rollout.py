r"""Simulates trajectories of all runs, along recorded signals or near a given trajectory.

Both use the stepper with impulses along the joints, so that every state satisfies the constraints to the stepper's accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.ndimage import binary_dilation

from stribeck.identify.mechanism import assembly, rotation
from stribeck.identify.mechanism.chain import Flags
from stribeck.identify.mechanism.dynamics import BodyState
from stribeck.identify.mechanism.problem import EstimationProblem, GridSamples, Point
from stribeck.model.arrays import Array

STIFF = 1e3
"""Damping that couples joints to recorded signals, in units of their inertia per step."""

FAR = 5.0
"""Minimum spacing of samples, relative to the median, that counts as a gap, in which joints move freely."""

EDGE = 4.0
"""Number of samples next to a gap whose smoothed values are affected by the interpolation across it."""


class TrajectoryRollout:
    """Simulates all runs of a problem; recordings of the same total length share one compilation."""

    def __init__(self, problem: EstimationProblem) -> None:
        self.problem = problem
        self._assemble = jax.jit(self._assembled)
        self._simulate = jax.jit(self._simulated)

    def along(
        self, samples: GridSamples, chi: Array, path: Array, released: Array | Sequence[int] = ()
    ) -> Point:
        """States that follow smoothed signals (N, ns), and the required impulses.

        A strong damper pulls each measured joint to the next value; unmeasured joints, and all joints within gaps, move freely.

        :param released: first steps of runs that start at rest.
        """
        stiff = STIFF * self.problem.inertia(chi) * self._measured(samples)
        none = np.zeros((len(stiff), stiff.shape[1] + 2 * len(self.problem.dynamics.layout.loose)))
        states, goals = self.shown(samples, chi, path)
        states.v[list(released)] = 0.0
        gain = np.zeros((*none.shape, 2 * self.problem.half))
        return self._run(samples, chi, states, states, none, gain, goals, stiff)

    def shown(self, samples: GridSamples, chi: Array, path: Array) -> tuple[BodyState, Array]:
        """States that agree with smoothed signals, disregarding the dynamics, and joint coordinates one step later."""
        with jax.enable_x64():
            states, goals = self._assemble(
                jnp.asarray(self.problem.all_values(chi)), jnp.asarray(path), samples.linked
            )
        return BodyState(np.array(states.q), np.array(states.v)), np.asarray(goals)

    def near(
        self, samples: GridSamples, old: Point, chi: Array, first: BodyState, impulse: Array, gain: Array
    ) -> Point:
        r"""Simulate from first states with impulses :math:`p_k + K_k(x_k \boxminus x_k^{old})`.

        :param first: states (N, …), used only at the starts of runs.
        :param impulse: p (N, nj + 2 l), as in :class:`~stribeck.identify.mechanism.problem.Point`.
        :param gain: K (N, nj + 2 l, 12 nb).
        """
        none = np.zeros((len(impulse), len(self.problem.mechanism.joints)))
        return self._run(samples, chi, BodyState(old.q, old.v), first, impulse, gain, none, none)

    def _measured(self, samples: GridSamples) -> Array:
        """Whether each joint's position is measured at each step (N, nj)."""
        near = np.zeros((len(samples.count), len(self.problem.mechanism.joints)))
        for k, sensor in enumerate(self.problem.mechanism.sensors):
            if sensor.quantity == "position":
                near[:, sensor.joint] = np.maximum(
                    near[:, sensor.joint], _near_samples(samples.count[:, k] > 0)
                )
        return near

    def _run(
        self,
        samples: GridSamples,
        chi: Array,
        old: BodyState,
        first: BodyState,
        impulse: Array,
        gain: Array,
        goals: Array,
        stiff: Array,
    ) -> Point:
        begins = np.concatenate([[True], ~samples.linked[:-1]])
        with jax.enable_x64():
            values = jnp.asarray(self.problem.all_values(chi))
            rows = (*old, begins, *first, impulse, gain, goals, stiff, samples.voltage)
            states, impulses_taken = self._simulate(values, tuple(jnp.asarray(row) for row in rows))
        impulses = np.asarray(impulses_taken) * samples.linked[:, None]
        return Point(np.asarray(chi), np.asarray(states.q), np.asarray(states.v), impulses)

    def _assembled(self, values: Any, path: Any, linked: Any) -> tuple[BodyState, Any]:
        layout = self.problem.dynamics.layout
        physical = self.problem.mechanism.physical(values)
        states = assembly.states(self.problem, values, path, linked)
        coordinates = jax.vmap(lambda q: jnp.stack(layout.coordinates(layout.pose(physical, q))))(states.q)
        return states, jnp.concatenate([coordinates[1:], coordinates[-1:]])

    def _simulated(self, values: Any, rows: Any) -> tuple[BodyState, Any]:
        problem, layout = self.problem, self.problem.dynamics.layout
        physical = problem.mechanism.physical(values)

        def advance(state: BodyState, row: Any) -> Any:
            q, v, begins, first_q, first_v, push, gain, goal, stiff, u = row
            state = BodyState(jnp.where(begins, first_q, state.q), jnp.where(begins, first_v, state.v))
            away = jnp.concatenate([rotation.minus(state.q, q).reshape(-1), (state.v - v).reshape(-1)])
            pose = layout.pose(physical, state.q)
            missing = goal - jnp.stack(layout.coordinates(pose))
            missing = jnp.where(layout.rotates, jnp.arctan2(jnp.sin(missing), jnp.cos(missing)), missing)
            along, across = jnp.split(push + gain @ away, [len(goal)])
            along = along + stiff * missing / problem.step
            new = problem.dynamics.step(physical, state, u, problem.step, along, stiff, across)
            taken = along - stiff * jnp.stack(layout.rates(pose, new.v)[1])
            return new, (state, jnp.concatenate([taken, across]))

        path: tuple[BodyState, Any] = jax.lax.scan(advance, BodyState(rows[3][0], rows[4][0]), rows)[1]
        return path


def _near_samples(seen: Flags) -> Flags:
    """Whether each step (N,) is neither in a gap between samples nor next to one."""
    index = np.flatnonzero(seen)
    if len(index) < 2:
        return np.zeros(len(seen), bool)
    steps = np.arange(len(seen))
    before = index[np.clip(np.searchsorted(index, steps, "right") - 1, 0, len(index) - 1)]
    after = index[np.clip(np.searchsorted(index, steps, "left"), 0, len(index) - 1)]
    usual = float(np.median(np.diff(index)))
    gap = after - before > FAR * usual
    return np.asarray(~binary_dilation(gap, iterations=max(round(EDGE * usual), 1)) if gap.any() else ~gap)
