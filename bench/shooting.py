r"""Single shooting: estimation by simulation error, for comparison with the joint estimation.

Each run is simulated from its first state, which is estimated along with the parameters unless the run starts with a release
from a known state. The stepper and its complementarity problem are differentiated; SciPy's trust-region method minimises.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import least_squares

from stribeck.identify.common.solver_status import SolverStatus
from stribeck.identify.mechanism import assembly
from stribeck.identify.mechanism.estimation import MechanismEstimator, Simulator
from stribeck.identify.mechanism.mechanism import Mechanism
from stribeck.identify.mechanism.model_file import read_model
from stribeck.identify.mechanism.problem import EstimationProblem, GridRun
from stribeck.identify.mechanism.recordings import on_grid, read_mechanism_recordings
from stribeck.model.arrays import Array


@dataclass(frozen=True, eq=False)
class Shot:
    """Result of single shooting.

    :param chi: free parameters (p,).
    :param cost: half the weighted sum of squares of the samples.
    :param evaluations: number of simulations with derivatives.
    :param seconds: duration of the search, without compilation.
    """

    chi: Array
    cost: float
    status: SolverStatus
    evaluations: int
    compile_seconds: float
    seconds: float


class Shooting:
    """Single shooting of one mechanism."""

    def __init__(self, mechanism: Mechanism, runs: Sequence[GridRun], step: float) -> None:
        self.problem, self.runs = EstimationProblem(mechanism, step), runs
        self.size = len(self.problem.free)
        self.sensed = [k for k, s in enumerate(mechanism.sensors) if s.quantity == "position"]
        self.sizes = [0 if run.released else 2 * len(self.sensed) for run in runs]
        self.ends = self.size + np.cumsum(self.sizes)
        self.functions = [self._compiled(run) for run in runs]

    def _compiled(self, run: GridRun) -> tuple[Callable[[Array], Any], Callable[[Array], Any]]:
        problem, samples = self.problem, run.samples
        joints = np.array([sensor.joint for sensor in problem.mechanism.sensors], int)
        sign = np.array([sensor.sign for sensor in problem.mechanism.sensors])
        weight = jnp.asarray(np.sqrt(samples.count) / problem.deviation)
        rated = np.array([sensor.quantity == "velocity" for sensor in problem.mechanism.sensors])

        def residual(z: Any) -> Any:
            values = jnp.asarray(problem.base).at[problem.free].set(z[: self.size])
            physical = problem.mechanism.physical(values)
            path, rate = jnp.asarray(run.path[0]), jnp.asarray(run.start_rate)
            if not run.released:
                at, rates = jnp.split(z[self.size :], 2)
                path, rate = path.at[np.array(self.sensed)].set(at), rate.at[np.array(self.sensed)].set(rates)
            back = 0.0 if run.released else 0.5
            start = assembly.start_of(problem, values, path, rate, jnp.asarray(samples.voltage[0]), back)
            states = problem.dynamics.simulate(physical, start, jnp.asarray(samples.voltage), problem.step)
            layout = problem.dynamics.layout

            def observed(q: Any, v: Any) -> tuple[Any, Any]:
                pose = layout.pose(physical, q)
                return jnp.stack(layout.coordinates(pose))[joints], jnp.stack(layout.rates(pose, v)[1])[
                    joints
                ]

            at, rates = jax.vmap(observed)(states.q, states.v)
            moved = jnp.concatenate([at[1:], at[-1:]]) - at
            moved = moved - 2 * jnp.pi * jnp.round(moved / (2 * jnp.pi)) * problem.angles
            next_rates = jnp.concatenate([rates[1:], rates[-1:]])
            share = samples.place - physical.lag / problem.step
            position = at + share * moved
            rate_there = rates + (share + 0.5) * (next_rates - rates)
            signal = sign * jnp.where(rated, rate_there, position) + physical.offset
            residuals = jnp.where(samples.count > 0, signal - samples.value, 0.0)
            residuals = residuals - 2 * jnp.pi * jnp.round(residuals / (2 * jnp.pi)) * problem.angles
            return (weight * residuals).reshape(-1)

        return jax.jit(residual), jax.jit(jax.jacfwd(residual))

    def _start(self, chi: Array) -> Array:
        free = [run for run in self.runs if not run.released]
        begins = [np.concatenate([run.path[0][self.sensed], run.start_rate[self.sensed]]) for run in free]
        return np.concatenate([chi, *begins])

    def _parts(self, z: Array) -> list[Array]:
        ends = zip(self.ends, self.sizes, strict=True)
        return [np.concatenate([z[: self.size], z[end - size : end]]) for end, size in ends]

    def residual(self, z: Array) -> Array:
        """Weighted residuals for parameters and first states."""
        with jax.enable_x64():
            misfit = [np.asarray(f(x)) for (f, _), x in zip(self.functions, self._parts(z), strict=True)]
        return np.asarray(np.nan_to_num(np.concatenate(misfit), nan=1e6, posinf=1e6, neginf=-1e6))

    def jacobian(self, z: Array) -> Array:
        """Derivatives of the residuals."""
        blocks = []
        with jax.enable_x64():
            for k, ((_, f), x) in enumerate(zip(self.functions, self._parts(z), strict=True)):
                slopes = np.asarray(f(x))
                block = np.zeros((len(slopes), len(z)))
                block[:, : self.size] = slopes[:, : self.size]
                block[:, self.ends[k] - self.sizes[k] : self.ends[k]] = slopes[:, self.size :]
                blocks.append(block)
        return np.asarray(np.nan_to_num(np.concatenate(blocks)))

    def solve(self, chi: Array, most: int = 60, progress: Callable[[float], None] = lambda _: None) -> Shot:
        """Optimise, starting from parameters (p,).

        :param progress: called with the cost at each evaluation of derivatives.
        """
        parameters = self.problem.mechanism.parameters
        start = self._start(np.clip(chi, parameters.lower, parameters.upper))
        began = time.perf_counter()
        self.residual(start), self.jacobian(start)
        compiled = time.perf_counter()
        self.residual(start), self.jacobian(start)
        again = time.perf_counter()
        free = np.full(len(start) - self.size, np.inf)
        low, high = np.concatenate([parameters.lower, -free]), np.concatenate([parameters.upper, free])
        inside = np.clip(start, low + 1e-9 * (np.nan_to_num(high - low, posinf=0.0)), high)

        def jacobian(z: Array) -> Array:
            progress(0.5 * float(np.sum(self.residual(z) ** 2)))
            return self.jacobian(z)

        result = least_squares(
            self.residual, inside, jacobian, bounds=(low, high), x_scale="jac", max_nfev=most
        )
        ended = time.perf_counter()
        first = (compiled - began) - (again - compiled)
        status = SolverStatus.CONVERGED if result.status > 0 else SolverStatus.LIMIT
        if not np.isfinite(result.cost):
            status = SolverStatus.DIVERGED
        return Shot(
            result.x[: self.size], float(result.cost), status, result.njev, max(first, 0.0), ended - again
        )


def main() -> None:
    """Single shooting on recordings, beside ``stribeck identify mechanism`` on the same: ``python bench/shooting.py MODEL FILE …``."""
    model = read_model(sys.argv[1])
    files = [Path(name) for name in sys.argv[2:]]
    runs = [
        on_grid(one, model.mechanism, model.settings.step)
        for one in read_mechanism_recordings(files, model, print)
    ]
    start = model.mechanism.parameters.vector()
    ours = MechanismEstimator(model.mechanism, runs, model.settings.step, model.settings.ratio).solve(start)
    shot = Shooting(model.mechanism, runs, model.settings.step).solve(start)
    simulator = Simulator(model.mechanism, model.settings.step, max(len(one.path) for one in runs))
    for name, chi in (("joint estimation", ours.point.chi), ("single shooting", shot.chi)):
        print(name, dict(zip(model.mechanism.parameters.free_names, chi.tolist(), strict=True)))
        for one in runs:
            print(f"  {one.name}: {simulator.errors(one, chi)}")
    print(f"single shooting: {shot.status.value}, {shot.evaluations} evaluations, {shot.seconds:.1f} s")


if __name__ == "__main__":
    main()
