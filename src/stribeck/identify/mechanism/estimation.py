"""Estimation of a mechanism's parameters from recordings, and simulation with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from threadpoolctl import threadpool_limits

from stribeck.identify.mechanism import assembly
from stribeck.identify.mechanism.chain import StateChain
from stribeck.identify.mechanism.dynamics import BodyState
from stribeck.identify.mechanism.mechanism import Mechanism
from stribeck.identify.mechanism.problem import EstimationProblem, GridRun, Point
from stribeck.identify.mechanism.recordings import joined
from stribeck.identify.mechanism.rollout import TrajectoryRollout
from stribeck.identify.mechanism.sensitivity import Sensitivity, answers, sensitivity
from stribeck.identify.mechanism.solver import ManifoldSolution, ManifoldSolver
from stribeck.model.arrays import Array
from stribeck.model.estimate import Estimate, fixed


@dataclass(frozen=True, eq=False)
class MechanismEstimate:
    """Result of an estimation.

    :param mechanism: the mechanism with the estimated parameters.
    :param solution: parameters and states.
    :param sensitivity: uncertainty of the parameters.
    """

    mechanism: Mechanism
    solution: ManifoldSolution
    sensitivity: Sensitivity

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Estimates of all parameters, including fixed ones."""
        return {
            p.name: self.sensitivity.estimates.get(p.name, fixed(p.value, p.unit))
            for p in self.mechanism.parameters
        }


class MechanismEstimator:
    """Estimates the parameters of a mechanism from runs on a common time grid.

    :param step: h [s].
    :param ratio: weight of the inverse dynamics relative to the observations.
    """

    def __init__(self, mechanism: Mechanism, runs: Sequence[GridRun], step: float, ratio: float) -> None:
        self.problem = EstimationProblem(mechanism, step)
        self.rollout = TrajectoryRollout(self.problem)
        self.ratio = ratio
        self.use(runs)

    def use(self, runs: Sequence[GridRun]) -> None:
        """Replace the runs; the same number of steps needs no new compilation."""
        self.samples, self.path, self.starts = joined(runs)
        self.released = np.array([run.released for run in runs], bool)
        self.solver = ManifoldSolver(self.rollout, self.samples, self.path, self.starts, self.released)

    def solve(self, chi: Array, progress: Callable[[float, float], None] | None = None) -> ManifoldSolution:
        """Optimise, starting from parameters (p,)."""
        # A second thread would make the many small products 50 times slower.
        with threadpool_limits(limits=1, user_api="blas"):
            return self.solver.solve(chi, self.ratio, progress=progress)

    def estimate(self, progress: Callable[[float, float], None] | None = None) -> MechanismEstimate:
        """Optimise, starting from the mechanism's values, and compute the sensitivity."""
        return self.finished(self.solve(self.problem.mechanism.parameters.vector(), progress))

    def finished(self, solution: ManifoldSolution) -> MechanismEstimate:
        """Add the sensitivity to a solution."""
        with threadpool_limits(limits=1, user_api="blas"):
            uncertainty = sensitivity(
                self.problem, solution.point, self.samples, self._linear(solution.point)
            )
        mechanism = self.problem.mechanism
        parameters = mechanism.parameters.with_vector(solution.point.chi)
        return MechanismEstimate(replace(mechanism, parameters=parameters), solution, uncertainty)

    def _linear(self, point: Point) -> StateChain:
        return self.problem.linearize(point, self.samples, self.starts, self.ratio, self.released)

    def signal_deviation(self, estimate: MechanismEstimate) -> Array:
        """Standard deviations (N, ns) of the estimated signals due to the uncertainty of the parameters."""
        derivatives = answers(self._linear(estimate.solution.point))[0]
        covariance = np.nan_to_num(estimate.sensitivity.covariance)
        weight = np.sqrt(np.maximum(self.samples.count, 1.0)) / self.problem.deviation
        variance = np.einsum("ksi,ij,ksj->ks", derivatives, covariance, derivatives)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)) / weight)


class Simulator:
    """Simulates runs from their first samples, with one compilation for all.

    :param longest: number of steps of the longest run.
    """

    def __init__(self, mechanism: Mechanism, step: float, longest: int) -> None:
        self.problem = EstimationProblem(mechanism, step)
        self.longest = longest
        dynamics = self.problem.dynamics
        self._run = jax.jit(
            lambda physical, start, voltage: dynamics.simulate(physical, start, voltage, step)
        )
        self._start = jax.jit(
            lambda values, path, rate, u, back: assembly.start_of(self.problem, values, path, rate, u, back)
        )

    def simulate(self, run: GridRun, chi: Array, start: BodyState | None = None) -> Point:
        """States of a run (N, …), starting from its first sample and rate or from a given state."""
        count, voltage = len(run.path), run.samples.voltage
        padding = np.repeat(voltage[-1:], max(self.longest - count, 0), axis=0)
        voltage = np.concatenate([voltage, padding])
        with jax.enable_x64():
            values = jnp.asarray(self.problem.all_values(chi))
            if start is None:
                back = 0.0 if run.released else 0.5
                start = self._start(values, run.path[0], run.start_rate, voltage[0], back)
            first = BodyState(jnp.asarray(start.q), jnp.asarray(start.v))
            states = self._run(self.problem.mechanism.physical(values), first, jnp.asarray(voltage))
        impulse = np.zeros((count, self.problem.pushes))
        return Point(np.asarray(chi), np.asarray(states.q)[:count], np.asarray(states.v)[:count], impulse)

    def errors(
        self, run: GridRun, chi: Array, start: BodyState | None = None
    ) -> Mapping[str, Mapping[str, float]]:
        """Root mean square error ``rmse`` and relative error ``rel`` of each signal of a run."""
        weight = run.samples.count
        misfit = self.problem.signals(self.simulate(run, chi, start), run.samples)
        rmse, size = (
            np.sqrt(np.sum(weight * values**2, axis=0) / np.sum(weight, axis=0))
            for values in (misfit, run.samples.value)
        )
        return {
            sensor.name: {"rmse": float(error), "rel": float(error / total) if total > 0.0 else float("nan")}
            for sensor, error, total in zip(self.problem.mechanism.sensors, rmse, size, strict=True)
        }
