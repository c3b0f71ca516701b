r"""The full fit: physically consistent inertias together with the friction laws of :mod:`stribeck.model.law`.

.. math::

    \min_{\xi, \theta} \sum_{j,t} \Big(\frac{\tau_j(t) - F[\,Y\pi(\xi) + \sum_e w_{ej} f_e(\theta_e)\,](t)}{\sigma_j}\Big)^2
      + \frac{c}{s^2}\|\pi - \pi_0\|_S^2 + c\sum_i \big(tr(J_i J_{i0}^{-1}) - \log|J_i|\big) + c\,p(\theta)

F is the filter of the measured torques. Predictions are filtered too; otherwise every friction reversal would cause an
error. c correlated rows carry the information of one independent row, and priors (the URDF, weak priors p on the shape
of the laws) are weighted accordingly. Rows at rest are inequalities: only the excess over the friction budget counts,
:math:`\max(0, |\tau - Y\pi| - \tau_f^m)`. Inertials are in log-Cholesky coordinates, so every link is physically
consistent. Levenberg-Marquardt with exact first derivatives solves the problem.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from stribeck.identify.arm.friction.element_torque import (
    ElementTorque,
    element_torque,
    elements_of,
    friction_part,
    parameter_names,
)
from stribeck.identify.arm.friction.selection import ModelChoice, PreparedRun, first_shapes, prepare, sizes
from stribeck.identify.arm.friction.shape_prior import shape_prior
from stribeck.identify.arm.inertia import LogCholesky, entropic_slope, nearest_consistent
from stribeck.identify.arm.motion import ProcessedMotion
from stribeck.identify.arm.regressor import Machine
from stribeck.identify.common.autoregressive import covariance, standard_deviations
from stribeck.identify.common.clusters import between_conditions, beyond_noise
from stribeck.identify.common.minimise import DenseEquations, minimise
from stribeck.identify.common.solver_status import SolverStatus
from stribeck.model.arrays import Array, Indices, Mask
from stribeck.model.law import LAWS, FrictionLaw, friction_columns
from stribeck.model.terms import COULOMB_PARAMETERS, FRICTION_PARAMETERS, LOAD_PARAMETERS, with_sign
from stribeck.model.terms.term import Conditions

ROUNDS = 3
"""Number of updates of the joints' noise estimates."""

MOST, MOST_AT_LAST = 60, 300
"""Largest number of iterations of a round, and of the last one, whose noise estimates stay."""

LARGEST_LOAD = 0.5
"""Upper bound of load-dependent terms [1]."""


class TorqueParts(NamedTuple):
    """Components of the torques at the rows of a run, each (M, n) [N m or N].

    :param rigid: torque without friction.
    :param friction: friction only.
    :param budget: largest possible friction.
    """

    rigid: Array
    friction: Array
    budget: Array


@dataclass(frozen=True)
class FullFit:
    """A fit of the full model; its elements are the joints and then the couplings.

    :param choice: the terms that were fitted.
    :param inertials: standard inertial parameters (n, 10).
    :param laws: friction law of each element.
    :param parameters: rotor inertia and the law's parameters of each element.
    :param bounds: search ranges of the parameters of each element (k, 2).
    :param inertial_sigma: standard deviations of the inertials (n, 10).
    :param covariances: of the parameters of each element (k, k).
    :param noise: standard deviation of the residuals of each joint (n,).
    :param rest: velocity below which a joint has no direction of motion [rad/s].
    :param status: solver status of the last round.
    """

    machine: Machine
    choice: ModelChoice
    inertials: Array
    laws: tuple[FrictionLaw, ...]
    parameters: tuple[Array, ...]
    bounds: tuple[Array, ...]
    inertial_sigma: Array
    covariances: tuple[Array, ...]
    noise: Array
    rest: float
    status: SolverStatus

    @property
    def sigma(self) -> tuple[Array, ...]:
        """Standard deviations of each element's parameters (k,)."""
        return tuple(standard_deviations(matrix) for matrix in self.covariances)

    def values(self, element: str) -> Mapping[str, float]:
        """Parameters of a joint or a coupling by name."""
        k = self.machine.elements.index(element)
        names = parameter_names(self.laws[k])
        return dict(zip(names, self.parameters[k].tolist(), strict=True))

    def predict(self, motion: ProcessedMotion) -> Array:
        """Predicted torques at the rows of a run (M, n) that was processed with the delay of the choice."""
        parts = self.torques(motion)
        return parts.rigid + parts.friction

    def torques(self, motion: ProcessedMotion) -> TorqueParts:
        """Torque components at the rows of a run that was processed with the selected delay."""
        run = prepare(self.machine, motion)
        load = run.regressor @ self.inertials.ravel()
        rigid, friction, budget = load.copy(), np.zeros_like(load), np.zeros_like(load)
        developed = run.developed(self.machine, self.choice.presliding, self.rest)
        fine = motion.fine
        elements = elements_of(self.machine.weights, fine, developed, load)
        for law, parameters, element, weights in zip(
            self.laws, self.parameters, elements, self.machine.weights, strict=True
        ):
            whole = element_torque(law, parameters, element)
            of_friction = friction_part(law, parameters, element)
            rigid += (whole.torque - of_friction)[:, None] * weights
            friction += of_friction[:, None] * weights
            budget += whole.budget[:, None] * np.abs(weights)
        return TorqueParts(run.at_rows(rigid), run.at_rows(friction), budget[motion.pick])


@dataclass(frozen=True)
class JointRows:
    """Residuals of one joint.

    :param residual: measured minus predicted torque (M,) [N m].
    :param jacobian: its derivatives with respect to inertials and friction parameters (M, c).
    :param columns: indices of these parameters (c,).
    """

    residual: Array
    jacobian: Array
    columns: Indices


def coupled_law(law: FrictionLaw) -> FrictionLaw:
    """The friction law of couplings beside that of the joints: without load and offset."""
    return LAWS["m1" if law.weight is None else "m2"].with_terms(
        asymmetric="asymmetric" in law.optional_terms
    )


class FullProblem:
    """Normal equations of the full model.

    :param motions: the runs, processed with the delay of the choice.
    :param noise: standard deviation of the residuals of each joint (n,).
    """

    def __init__(
        self,
        machine: Machine,
        motions: Sequence[ProcessedMotion],
        choice: ModelChoice,
        rest: float,
        noise: Array,
    ) -> None:
        self.machine, self.choice, self.rest, self.noise = machine, choice, rest, noise
        self.runs = [prepare(machine, motion) for motion in motions]
        self.developed = [run.developed(machine, choice.presliding, rest) for run in self.runs]
        joints = len(machine.joints)
        self.laws = (choice.law,) * joints + (coupled_law(choice.law),) * (len(machine.elements) - joints)
        self.start = nearest_consistent(machine.inertials) if machine.arm is not None else np.zeros((0, 10))
        self.bodies = LogCholesky(self.start)
        self.speed = np.max([run.speed for run in self.runs], axis=0)
        travelled = [np.abs(run.motion.fine.position @ machine.weights.T).max(axis=0) for run in self.runs]
        self.reach = np.max(travelled, axis=0)
        self._entropy = entropic_slope(self.start).ravel() if len(self.start) else np.zeros(0)
        self._spread = sizes(self.start).ravel() * choice.prior if len(self.start) else np.zeros(0)
        self.sections = self._sections()
        self._links = [np.flatnonzero(self.runs[0].regressor[:, j].any(axis=0)) for j in range(joints)]
        self._columns = [self._acting_on(j) for j in range(joints)]

    def _sections(self) -> list[slice]:
        """Slice of each element's parameters in a point."""
        ends = self.start.size + np.cumsum([len(parameter_names(law)) for law in self.laws])
        return [slice(int(first), int(end)) for first, end in pairwise([self.start.size, *ends])]

    def _acting_on(self, joint: int) -> Indices:
        """Indices of the inertials and friction parameters on which the torque of a joint depends."""
        acting = np.flatnonzero(self.machine.weights[:, joint])
        of_friction = [np.arange(self.sections[e].start, self.sections[e].stop) for e in acting]
        return np.concatenate([self._links[joint], *of_friction])

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return int(self.sections[-1].stop)

    def fitted_rows(self, run: PreparedRun) -> Mask:
        """Rows fitted as equations (M, n): moving ones; with presliding, all but those at rest, unless joints stick and slip."""
        motion = run.motion
        return motion.moving if self.choice.presliding is None or motion.sticking else ~motion.resting

    def rows(self, point: Array) -> list[list[JointRows]]:
        """Residuals with derivatives for each run and joint; unused rows are zero."""
        inertials = self.bodies.at(point[: self.start.size])[0].ravel()
        by_run = []
        for run, developed in zip(self.runs, self.developed, strict=True):
            load, fine = run.regressor @ inertials, run.motion.fine
            elements = elements_of(self.machine.weights, fine, developed, load)
            parts = [
                element_torque(law, point[section], element)
                for law, section, element in zip(self.laws, self.sections, elements, strict=True)
            ]
            slopes = [run.at_rows(part.by_parameters) for part in parts]
            friction = np.stack([part.torque for part in parts], axis=1) @ self.machine.weights
            predicted = run.filtered @ inertials + run.at_rows(friction)
            by_run.append(
                [self._joint_rows(run, j, predicted[:, j], parts[j], slopes) for j in range(load.shape[1])]
            )
        return by_run

    def _joint_rows(
        self, run: PreparedRun, joint: int, predicted: Array, part: ElementTorque, slopes: Sequence[Array]
    ) -> JointRows:
        links, acting = self._links[joint], np.flatnonzero(self.machine.weights[:, joint]).tolist()
        rigid = run.filtered[:, joint, links]
        if len(links) and np.any(part.by_load):
            rigid = rigid + run.at_rows(part.by_load[:, None] * run.regressor[:, joint, links])
        friction = [slopes[e] * self.machine.weights[e, joint] for e in acting]
        residual = run.motion.torque[:, joint] - predicted
        fitted = self.fitted_rows(run)[:, joint]
        resting = run.motion.resting[:, joint] & ~fitted & (not run.motion.sticking)
        excess = np.sign(residual) * np.maximum(np.abs(residual) - part.budget[run.motion.pick], 0.0)
        counted = np.where(fitted, residual, np.where(resting, excess, 0.0))
        jacobian = -np.column_stack([rigid, *friction]) * (fitted | (resting & (excess != 0.0)))[:, None]
        return JointRows(counted, jacobian, self._columns[joint])

    def equations(self, point: Array) -> DenseEquations:
        """Cost, gradient and Gauss-Newton Hessian at a point."""
        cost, gradient = 0.0, np.zeros(self.dimension)
        hessian = np.zeros((self.dimension, self.dimension))
        for run in self.rows(point):
            for one, noise in zip(run, self.noise, strict=True):
                jacobian, residual = one.jacobian / noise, one.residual / noise
                cost += 0.5 * float(residual @ residual)
                gradient[one.columns] += jacobian.T @ residual
                hessian[np.ix_(one.columns, one.columns)] += jacobian.T @ jacobian
        inner = self._inner(point)
        prior_cost, slope, curvature = self.prior(point)
        return DenseEquations(
            cost + prior_cost, inner.T @ gradient + slope, inner.T @ hessian @ inner + curvature
        )

    def _inner(self, point: Array) -> Array:
        """Derivative of inertials and friction parameters with respect to the coordinates, (p, p)."""
        inner, size = np.eye(self.dimension), self.start.size
        inner[:size, :size] = self.bodies.at(point[:size])[1]
        return inner

    def covariance(self, point: Array) -> Array:
        """Covariance of inertials and friction parameters, (p, p).

        That of noise, and of what the friction law lacks, which errs alike at the same velocity or position of a joint. It is computed
        in the coordinates, where a body without mass has finite derivatives. The curvature of the prior there may be negative
        along some directions, of which the prior then tells nothing.
        """
        inner, jacobians, residuals = self._inner(point), [], []
        for run in self.rows(point):
            jacobian = np.zeros((len(run[0].residual), len(run), self.dimension))
            for j, one in enumerate(run):
                jacobian[:, j, one.columns] = one.jacobian
            jacobians.append(jacobian @ inner)
            residuals.append(np.stack([one.residual for one in run], axis=1))
        curvature, axes = np.linalg.eigh(self.prior(point)[2] / self.choice.correlated)
        prior = (axes * np.maximum(curvature, 0.0)) @ axes.T
        found = covariance(jacobians, residuals, self.noise, prior, self.choice.correlated)
        parts = [self._by_condition(point, j, jacobians, residuals) for j in range(len(self.noise))]
        moved = [part for part in parts if len(part[1])]
        if moved:
            found = beyond_noise(found, between_conditions(moved, self.choice.correlated * prior))
        return np.asarray(inner @ found @ inner.T)

    def _by_condition(
        self, point: Array, joint: int, jacobians: Sequence[Array], residuals: Sequence[Array]
    ) -> tuple[Array, Array, Array]:
        """Jacobian (N, p) and residuals (N,) of a joint's fitted rows, by its noise, with velocity, position and load (N, 3)."""
        found, inertials = [], self.bodies.at(point[: self.start.size])[0].ravel()
        for run, jacobian, residual in zip(self.runs, jacobians, residuals, strict=True):
            rows, fine = np.any(jacobian[:, joint] != 0.0, axis=1), run.motion.fine
            load = run.regressor[:, joint] @ inertials
            signals = (fine.velocity[:, joint], fine.position[:, joint], load)
            conditions = np.stack([signal[run.motion.pick][rows] for signal in signals], axis=1)
            noise = self.noise[joint]
            found.append((jacobian[rows, joint] / noise, residual[rows, joint] / noise, conditions))
        first, second, third = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return first, second, third

    def prior(self, point: Array) -> tuple[float, Array, Array]:
        """Cost, gradient and curvature of the priors."""
        size, c = self.start.size, self.choice.correlated
        gradient, curvature = np.zeros(self.dimension), np.zeros((self.dimension, self.dimension))
        cost = 0.0
        if size:
            inertials, inner = self.bodies.at(point[:size])
            away = (inertials - self.start).ravel()
            precision = c / self._spread**2
            slope = precision * away + c * self._entropy
            cost = float(0.5 * precision @ away**2 + c * self._entropy @ inertials.ravel())
            cost -= 2.0 * c * float(point[self.bodies.logarithms].sum())
            gradient[:size] = inner.T @ slope
            gradient[self.bodies.logarithms] -= 2.0 * c
            curvature[:size, :size] = inner.T @ (precision[:, None] * inner)
            curvature[:size, :size] += self.bodies.bends(point[:size], slope)
        for section, law, speed in zip(self.sections, self.laws, self.speed, strict=True):
            rows, residual = shape_prior(law, point[section], first_shapes(self.choice, speed))
            cost += 0.5 * c * float(residual @ residual)
            gradient[section] += c * rows.T @ residual
            curvature[section, section] += c * rows.T @ rows
        return cost, gradient, curvature

    def bounds(self) -> tuple[Array, Array]:
        """Lower and upper bounds of all coordinates."""
        lower, upper = np.full(self.dimension, -np.inf), np.full(self.dimension, np.inf)
        for section, law, speed in zip(self.sections, self.laws, self.speed, strict=True):
            for k, name in enumerate(parameter_names(law), section.start):
                lower[k], upper[k] = _range(name, float(speed))
        return lower, upper


def fit_full(
    machine: Machine,
    motions: Sequence[ProcessedMotion],
    choice: ModelChoice,
    rest: float,
    noise: Array,
    terms: Mapping[str, Array],
    tell: Callable[[str], None] = lambda stage: None,
) -> FullFit:
    """Fit the full model.

    :param motions: the runs, processed with the delay of the choice.
    :param noise: first guess of the standard deviation of each joint's residuals (n,).
    :param terms: first guess of friction, from :meth:`~stribeck.identify.arm.friction.selection.FrictionSelection.solution`.
    :param tell: called with the present stage.
    """
    problem = FullProblem(machine, motions, choice, rest, noise)
    lower, upper = problem.bounds()
    point = np.clip(_first(problem, terms), lower, upper)
    units = np.concatenate(
        [np.ones(problem.start.size), np.maximum(np.abs(point[problem.start.size :]), _typical(problem))]
    )
    for number in range(1, ROUNDS + 1):
        tell(f"full: round {number} of {ROUNDS}")
        most = MOST if number < ROUNDS else MOST_AT_LAST
        end = minimise(problem.equations, point, lower, upper, units, iterations=most)
        point = end.point
        problem.noise = _noise(problem, point)
    tell("full: uncertainty")
    point, size = _with_budgets(problem, point), problem.start.size
    spread = problem.covariance(point)
    return FullFit(
        machine=machine,
        choice=choice,
        inertials=problem.bodies.at(point[:size])[0],
        laws=problem.laws,
        parameters=tuple(point[section] for section in problem.sections),
        bounds=tuple(np.stack([lower[section], upper[section]], axis=1) for section in problem.sections),
        inertial_sigma=standard_deviations(spread)[:size].reshape(-1, 10),
        covariances=tuple(spread[section, section] for section in problem.sections),
        noise=problem.noise,
        rest=rest,
        status=end.status,
    )


def _with_budgets(problem: FullProblem, point: Array) -> Array:
    """The point with slightly negative friction budgets at rest, which the prior permits, raised to zero."""
    point = point.copy()
    for section, law in zip(problem.sections, problem.laws, strict=True):
        names = parameter_names(law)
        least = min(point[section.start + names.index(name)] for name in names if name in COULOMB_PARAMETERS)
        for name in with_sign("static").intersection(names):
            k = section.start + names.index(name)
            point[k] = max(point[k], -least)
    return point


def _first(problem: FullProblem, terms: Mapping[str, Array]) -> Array:
    """First guess, from the linear terms of the selection."""
    point = np.zeros(problem.dimension)
    for e, (section, law) in enumerate(zip(problem.sections, problem.laws, strict=True)):
        values = {name: one.value for name, one in FRICTION_PARAMETERS.items() if not one.free}
        values |= first_shapes(problem.choice, problem.speed[e])
        values |= {
            name: max(column[e], 0.01) if name in LOAD_PARAMETERS else column[e]
            for name, column in terms.items()
        }
        point[section] = [values.get(name, 0.0) for name in parameter_names(law)]
    return point


def _typical(problem: FullProblem) -> Array:
    """Largest change of each friction parameter in one step, from a share of the torques."""
    torque = np.max([np.sqrt(np.mean(run.motion.torque**2, axis=0)) for run in problem.runs], axis=0)
    sizes = []
    for law, weights, speed, reach in zip(
        problem.laws, problem.machine.weights, problem.speed, problem.reach, strict=True
    ):
        size = 0.1 * float(np.max(np.abs(weights) * torque))
        speeds = np.array([0.0, speed])
        x = Conditions(speeds, speeds, 0.0, 0.0, reach)
        columns = friction_columns(law, dict.fromkeys(law.parameter_names, 1.0), np.ones(2), x)
        sizes.append(0.1 * size)
        for name in law.parameter_names:
            one = FRICTION_PARAMETERS[name]
            if one.shape is not None:
                sizes.append(one.shape.step * (speed if one.shape.of_speed else 1.0))
            elif name in LOAD_PARAMETERS:
                sizes.append(0.1)
            else:
                largest = float(np.abs(columns[one.opposite or name]).max()) if one.free else 1.0
                sizes.append(size / max(largest, 1e-9))
    return np.array(sizes)


def _noise(problem: FullProblem, point: Array) -> Array:
    squares = np.sum([[np.sum(one.residual**2) for one in run] for run in problem.rows(point)], axis=0)
    rows = np.sum([problem.fitted_rows(run).sum(axis=0) for run in problem.runs], axis=0)
    return np.asarray(np.sqrt(np.maximum(squares / np.maximum(rows, 1), 1e-24)))


def _range(name: str, speed: float) -> tuple[float, float]:
    """Bounds of a parameter of an element whose largest velocity is ``speed``."""
    one = FRICTION_PARAMETERS.get(name)
    if one is None:
        return 0.0, np.inf
    if not one.free:
        return one.value, one.value
    if one.shape is not None:
        scale = speed if one.shape.of_speed else 1.0
        return one.shape.lower * scale, one.shape.upper * scale
    if one.sign in ("any", "static"):
        return -np.inf, np.inf
    return (0.0, LARGEST_LOAD) if name in LOAD_PARAMETERS else (0.0, np.inf)
