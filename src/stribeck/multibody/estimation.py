"""From recordings to parameters: the whole of an estimation, and how well it predicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from threadpoolctl import threadpool_limits

from stribeck.multibody import assembly
from stribeck.multibody.chain import StateChain
from stribeck.multibody.dynamics import BodyState
from stribeck.multibody.mechanism import Array, Mechanism
from stribeck.multibody.problem import Point, EstimationProblem, GridRun
from stribeck.multibody.recordings import joined
from stribeck.multibody.rollout import TrajectoryRollout
from stribeck.multibody.sensitivity import Sensitivity, answers, sensitivity
from stribeck.multibody.solver import Solution, Solver


@dataclass(frozen=True, eq=False)
class MechanismEstimate:
    """What an estimation found.

    :param mechanism: with the estimated parameters.
    :param solution: parameters and states.
    :param sensitivity: how sure the parameters are.
    """

    mechanism: Mechanism
    solution: Solution
    sensitivity: Sensitivity


class MechanismEstimator:
    """Estimates the parameters of a mechanism from runs on one grid, from as many starts as wanted."""

    def __init__(self, mechanism: Mechanism, runs: Sequence[GridRun], step: float, ratio: float) -> None:
        self.problem = EstimationProblem(mechanism, step)
        self.rollout = TrajectoryRollout(self.problem)
        self.ratio = ratio
        self.use(runs)

    def use(self, runs: Sequence[GridRun]) -> None:
        """Take other runs; as many steps as before need no new compilation."""
        self.samples, self.path, self.starts = joined(runs)
        self.released = np.array([run.released for run in runs], bool)
        self.solver = Solver(self.rollout, self.samples, self.path, self.starts, self.released)

    def solve(self, chi: Array, progress: Callable[[float, float], None] | None = None) -> Solution:
        """The optimum from parameters (p,)."""
        with threadpool_limits(
            limits=1, user_api="blas"
        ):  # many small products: a second thread costs 50 times as much
            return self.solver.solve(chi, self.ratio, progress=progress)

    def estimate(self, progress: Callable[[float, float], None] | None = None) -> MechanismEstimate:
        """The optimum from the values of the mechanism, and its sensitivity."""
        return self.finished(self.solve(self.problem.mechanism.parameters.vector(), progress))

    def finished(self, solution: Solution) -> MechanismEstimate:
        """A solution with its sensitivity."""
        with threadpool_limits(limits=1, user_api="blas"):
            chain = self._linear(solution.point)
            found = sensitivity(self.problem, solution.point, self.samples, chain)
        mechanism = self.problem.mechanism
        parameters = mechanism.parameters.with_vector(solution.point.chi)
        return MechanismEstimate(replace(mechanism, parameters=parameters), solution, found)

    def _linear(self, point: Point) -> StateChain:
        return self.problem.linearize(point, self.samples, self.starts, self.ratio, self.released)

    def signal_deviation(self, estimate: MechanismEstimate) -> Array:
        """Standard deviations (N, ns) of the estimated signals that the parameters' uncertainty brings."""
        total = answers(self._linear(estimate.solution.point))[0]
        covariance = np.nan_to_num(estimate.sensitivity.covariance)
        weight = np.sqrt(np.maximum(self.samples.count, 1.0)) / self.problem.deviation
        variance = np.einsum("ksi,ij,ksj->ks", total, covariance, total)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)) / weight)


class Simulator:
    """Simulates runs from their first samples, all with one compilation."""

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
        """States of a run (N, …); from the first sample and its rate, or from a given state."""
        count = len(run.path)
        voltage = np.concatenate(
            [run.samples.voltage, np.repeat(run.samples.voltage[-1:], max(self.longest - count, 0), axis=0)]
        )
        with jax.enable_x64():
            values = jnp.asarray(self.problem.all_values(chi))
            if start is None:
                back = 0.0 if run.released else 0.5
                start = self._start(values, run.path[0], run.start_rate, voltage[0], back)
            first = BodyState(jnp.asarray(start.q), jnp.asarray(start.v))
            states = self._run(self.problem.mechanism.physical(values), first, jnp.asarray(voltage))
        impulse = np.zeros((count, len(self.problem.mechanism.joints)))
        return Point(np.asarray(chi), np.asarray(states.q)[:count], np.asarray(states.v)[:count], impulse)

    def errors(self, run: GridRun, chi: Array, start: BodyState | None = None) -> Mapping[str, Mapping[str, float]]:
        """RMSE and relative error of each signal of a run."""
        misfit = self.problem.signals(self.simulate(run, chi, start), run.samples)
        found = {}
        for k, sensor in enumerate(self.problem.mechanism.sensors):
            weight = run.samples.count[:, k]
            rmse = float(np.sqrt(np.sum(weight * misfit[:, k] ** 2) / np.sum(weight)))
            size = float(np.sqrt(np.sum(weight * run.samples.value[:, k] ** 2) / np.sum(weight)))
            found[sensor.name] = {"rmse": rmse, "rel": rmse / size if size > 0.0 else float("nan")}
        return found
