r"""Physically consistent fit near the URDF: masses :math:`m = z^2`, inertias :math:`U D U^T`.

.. math::

    \min_{z, c, U, D, x}\; \frac1T\sum_t \|\tau_t - f(q_t, \dot q_t, \ddot q_t; z, c, U, D) - X_t x\|^2_{\Sigma^{-1}}

subject to :math:`(z^2-m^0)^2 \le \alpha`, :math:`\|c-c^0\|^2 \le \beta`, :math:`\|u-u^0\|^2 \le \gamma`,
:math:`\|d-d^0\|^2 \le \delta` and d > 0 for every link, and the triangle inequality of its principal moments, which
does not follow from positive definiteness. x are the nonnegative rotor inertias and friction of the joints. The
torques are linear in the inertial parameters, so the sum over time is one quadratic form. IPOPT solves the problem.

Sources: Maestro 2025, "Solving for Dynamic Parameters"; Traversaro et al. 2016 (triangle inequality).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import casadi
import numpy as np
from scipy import linalg

from stribeck.errors import StribeckError
from stribeck.identify.arm.base_parameters import BaseParameters
from stribeck.identify.arm.config import Neighbourhood, Protocol
from stribeck.identify.arm.inertia import LogCholesky, about_com, entropic_slope, nearest_consistent
from stribeck.identify.arm.least_squares import FittedRows
from stribeck.identify.arm.motion import ProcessedMotion
from stribeck.identify.arm.regressor import Machine, design
from stribeck.identify.common.autoregressive import standard_deviations
from stribeck.identify.common.minimise import DenseEquations, minimise
from stribeck.identify.common.solver_status import SolverStatus
from stribeck.model.arrays import Array
from stribeck.model.terms import with_sign
from stribeck.processes import interrupts_deferred

ROUNDS = 3
"""Number of updates of the joints' noise estimates."""

ANCHOR = 1e-3
"""Weight of the quadratic prior, relative to the neighbourhood; keeps unobservable directions at the URDF."""

MARGIN = 1e-3
"""Margin of inertias from the boundary of physical consistency, relative to the inertias in the URDF."""

Watch = Callable[[int, Array], None]
"""Callback with the iteration, which starts at 0 in each round, and the parameters (10 n + x,)."""

NEVER_NEGATIVE = ("Ia_", "M_", *(f"{name}_" for name in with_sign("nonnegative")))
"""Beginnings of the names of parameters that are not negative."""


@dataclass(frozen=True)
class ConsistentFit:
    """A physically consistent fit.

    :param inertials: standard inertial parameters (n, 10).
    :param names, values: rotor inertias and friction of the joints, (x,).
    :param covariance: of inertials and values (10 n + x, 10 n + x), with the neighbourhood as a prior.
    :param noise: standard deviation of the residuals of each joint (n,).
    :param rest: velocity below which a joint has no direction of motion [rad/s].
    """

    machine: Machine
    inertials: Array
    names: tuple[str, ...]
    values: Array
    covariance: Array
    noise: Array
    rest: float
    status: SolverStatus

    @property
    def parameters(self) -> Array:
        """Inertials of all links, then rotor inertias and friction, (10 n + x,)."""
        return np.concatenate([self.inertials.ravel(), self.values])

    @property
    def sigma(self) -> Array:
        """Standard deviations of all parameters (10 n + x,)."""
        return standard_deviations(self.covariance)

    def base(self, base: BaseParameters) -> tuple[Array, Array]:
        """Base parameters and their standard deviations, (b,) each; better determined than standard parameters."""
        spread = base.projection @ self.covariance @ base.projection.T
        return base.values(self.parameters), standard_deviations(spread)

    def predict(self, motion: ProcessedMotion) -> Array:
        """Predicted torques at the rows of a run, (M, n)."""
        columns = design(self.machine, motion.states, self.rest).columns
        return np.asarray(columns @ self.parameters)


@dataclass(frozen=True)
class _Quadratic:
    r"""The cost :math:`\theta^T H \theta - 2 g^T \theta`, and the bounds of its parameters.

    :param hessian, slope: H (p, p) and g (p,), means over the rows.
    :param start: consistent inertials of the URDF (n, 10).
    :param names: names of all parameters (p,).
    """

    hessian: Array
    slope: Array
    rows: int
    start: Array
    near: Neighbourhood
    names: tuple[str, ...]

    @property
    def never_negative(self) -> list[int]:
        """Indices of the nonnegative parameters among those that are not inertials."""
        names = self.names[self.start.size :]
        return [i for i, name in enumerate(names) if name.startswith(NEVER_NEGATIVE)]

    def best_linear(self) -> Array:
        """Best-fitting rotor inertias and friction (x,) for the inertials of the start."""
        size = self.start.size
        rest = self.slope[size:] - self.hessian[size:, :size] @ self.start.ravel()
        return np.asarray(linalg.lstsq(self.hessian[size:, size:], rest)[0])


MOST = 500
"""Largest number of iterations of IPOPT."""

SLOW = (
    "Maximum_Iterations_Exceeded",
    "Maximum_CpuTime_Exceeded",
    "Search_Direction_Becomes_Too_Small",
    "Feasible_Point_Found",
)
"""Ends of IPOPT with a point that is of use."""

_Solution = tuple[Array, Array, SolverStatus]
"""Inertials (n, 10), rotor inertias and friction (x,), and the solver status."""


def fit_consistent(
    machine: Machine,
    motions: Sequence[ProcessedMotion],
    protocol: Protocol,
    near: Neighbourhood,
    noise: Array,
    watch: Watch | None = None,
    solve: Callable[[_Quadratic], _Solution] | None = None,
) -> ConsistentFit:
    """Solve the physically consistent problem.

    :param noise: first guess of the standard deviation of each joint's residuals (n,).
    :param watch: called with every iterate of IPOPT.
    :param solve: another solver than IPOPT.
    :raises StribeckError: if IPOPT finds no solution.
    :raises KeyboardInterrupt: after Ctrl-C.
    """
    solve = solve or partial(_solve_ipopt, watch=watch)
    designs = [design(machine, motion.states, protocol.rest) for motion in motions]
    fitted, names = FittedRows.of(motions, [d.columns for d in designs], protocol), designs[0].names
    start = nearest_consistent(machine.inertials)
    for _ in range(ROUNDS):
        weights = 1.0 / noise[fitted.joint]
        rows, count = fitted.rows * weights[:, None], len(weights)
        quadratic = _Quadratic(
            rows.T @ rows / count, rows.T @ (fitted.torque * weights) / count, count, start, near, names
        )
        inertials, values, status = solve(quadratic)
        parameters = np.concatenate([inertials.ravel(), values])
        residual = fitted.torque - fitted.rows @ parameters
        noise = np.array([np.sqrt(np.mean(residual[fitted.joint == j] ** 2)) for j in range(len(noise))])
    precision = np.zeros(len(parameters))
    precision[: inertials.size] = 1.0 / spread(start, near).ravel() ** 2
    covariance = fitted.covariance(parameters, noise, np.diag(precision))
    friction = names[inertials.size :]
    return ConsistentFit(machine, inertials, friction, values, covariance, noise, protocol.rest, status)


def spread(inertials: Array, near: Neighbourhood) -> Array:
    """Approximate half-width of the neighbourhood of each inertial parameter (n, 10)."""
    mass, _, inertia = about_com(inertials)
    size = np.trace(inertia, axis1=-2, axis2=-1)
    return np.concatenate(
        [
            near.mass * mass[:, None],
            np.repeat(near.com * mass[:, None], 3, axis=1),
            np.repeat((min(near.inertia, 1.0) * size + near.com**2 * mass)[:, None], 6, axis=1),
        ],
        axis=1,
    )


def _solve_ipopt(problem: _Quadratic, watch: Watch | None = None) -> _Solution:
    with interrupts_deferred() as interrupted:

        def after(iteration: int, parameters: Callable[[], Array]) -> None:
            if interrupted():
                raise KeyboardInterrupt  # stops IPOPT; CasADi does not pass it on
            if watch is not None:
                watch(iteration, parameters())

        return _ipopt(problem, after)


def _ipopt(problem: _Quadratic, after: Callable[[int, Callable[[], Array]], None]) -> _Solution:
    start, near, links = problem.start, problem.near, len(problem.start)
    mass0, com0, inertia0 = about_com(start)
    factors = [_udu(inertia) for inertia in inertia0]
    opti = casadi.Opti()
    z, c = opti.variable(links), opti.variable(links, 3)
    u, d = opti.variable(links, 3), opti.variable(links, 3)
    x = opti.variable(len(problem.names) - start.size)
    bodies, anchor = [], 0
    for k, (upper, diagonal) in enumerate(factors):
        size = float(np.linalg.norm(diagonal))
        scaled = d[k, :] * size
        inertia = _product(u[k, :], scaled)
        bodies.append(_casadi_inertials(z[k], c[k, :], inertia))
        opti.subject_to(((z[k] ** 2 - mass0[k]) / mass0[k]) ** 2 <= near.mass**2)
        opti.subject_to(casadi.sumsqr((c[k, :] - com0[k][None]) / near.com) <= 1.0)
        opti.subject_to(casadi.sumsqr((u[k, :] - upper[None]) / near.inertia) <= 1.0)
        opti.subject_to(casadi.sumsqr((scaled - diagonal[None]) / (near.inertia * size)) <= 1.0)
        opti.subject_to(casadi.vec(d[k, :]) >= MARGIN)
        _triangle(opti, inertia / size, inertia0[k] / size)
        opti.set_initial(z[k], np.sqrt(mass0[k]))
        opti.set_initial(c[k, :], com0[k][None])
        opti.set_initial(u[k, :], upper[None])
        opti.set_initial(d[k, :], diagonal[None] / size)
        anchor += ((z[k] ** 2 - mass0[k]) / (near.mass * mass0[k])) ** 2
        anchor += casadi.sumsqr((c[k, :] - com0[k][None]) / near.com)
        anchor += casadi.sumsqr((scaled - diagonal[None]) / size) + casadi.sumsqr(u[k, :] - upper[None])
    opti.subject_to(x[problem.never_negative] >= 0.0)
    theta = casadi.vertcat(*bodies, x)
    cost = casadi.bilin(casadi.DM(problem.hessian), theta, theta)
    cost -= 2.0 * casadi.dot(casadi.DM(problem.slope), theta)
    opti.minimize(cost + ANCHOR * anchor / max(links, 1))
    opti.set_initial(x, problem.best_linear())
    opti.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes", "max_iter": MOST})
    opti.callback(lambda i: after(int(i), lambda: np.array(opti.debug.value(theta)).ravel()))
    status = SolverStatus.CONVERGED
    try:
        opti.solve()
    except RuntimeError:
        status = SolverStatus.LIMIT
        if (ended := opti.return_status()) not in SLOW:
            text = f"IPOPT found no physically consistent solution ({ended}): widen `neighbourhood`, or remove this fit from `fits`"
            raise StribeckError(text) from None
    found = nearest_consistent(np.array(opti.debug.value(casadi.vertcat(*bodies))))
    return found, np.atleast_1d(opti.debug.value(x)), status


def _udu(inertia: Array) -> tuple[Array, Array]:
    """Factors u = (u12, u13, u23) and d of I = U D Uᵀ, U unit upper triangular."""
    lower, diagonal, _ = linalg.ldl(inertia[::-1, ::-1], lower=True)
    upper = lower[::-1, ::-1]
    return upper[[0, 0, 1], [1, 2, 2]], np.maximum(np.diag(diagonal)[::-1], 1e-12)


def _product(u: Any, d: Any) -> Any:
    upper = casadi.vertcat(casadi.horzcat(1, u[0], u[1]), casadi.horzcat(0, 1, u[2]), casadi.horzcat(0, 0, 1))
    return upper @ casadi.diag(d.T) @ upper.T


def _casadi_inertials(z: Any, com: Any, inertia: Any) -> Any:
    """Inertial parameters (10,) about the origin of the joint frame, by the parallel axis theorem."""
    mass = z**2
    about = inertia + mass * (casadi.sumsqr(com) * casadi.DM.eye(3) - com.T @ com)
    return casadi.vertcat(
        mass, mass * com.T, about[0, 0], about[0, 1], about[1, 1], about[0, 2], about[1, 2], about[2, 2]
    )


def _triangle(opti: Any, inertia: Any, start: Array) -> None:
    """Constrain the second moments of mass, ½ tr(I) 1 - I = V E Vᵀ, to be positive definite, E > 0.

    :param start: inertia of the first guess, in the same units.
    """
    v, e = opti.variable(1, 3), opti.variable(1, 3)
    opti.subject_to(casadi.vec(e) >= MARGIN)
    difference = 0.5 * casadi.trace(inertia) * casadi.DM.eye(3) - inertia - _product(v, e)
    opti.subject_to(casadi.tril2symm(casadi.tril(difference))[[0, 1, 2, 4, 5, 8]] == 0.0)
    upper, diagonal = _udu(0.5 * np.trace(start) * np.eye(3) - start)
    opti.set_initial(v, upper[None])
    opti.set_initial(e, np.maximum(diagonal, 2.0 * MARGIN)[None])


def _solve_log_cholesky(problem: _Quadratic) -> _Solution:
    r"""Minimise the same cost in log-Cholesky coordinates, in which every point is physically consistent.

    The neighbourhood is not a bound but the standard deviation of a quadratic prior about the URDF, with the weight of
    one row. The log-determinant divergence :math:`tr(J J_0^{-1}) - \log|J|` of each pseudo-inertia has the same weight
    and keeps solutions off the boundary, where the coordinates are infinite (Lee, Wensing, Park 2020). See
    :func:`~stribeck.identify.arm.inertia.log_cholesky`.
    """
    start, rows, size = problem.start, problem.rows, problem.start.size
    entropy, free = entropic_slope(start).ravel() / rows, len(problem.names) - size
    anchor = np.zeros(size + free)
    anchor[:size] = 1.0 / rows / spread(start, problem.near).ravel() ** 2
    goal = problem.slope + anchor * np.concatenate([start.ravel(), np.zeros(free)])
    curvature = problem.hessian + np.diag(anchor)
    # A lower bound of the cost is subtracted, so that relative gains refer to the remaining possible gain.
    least = -0.5 * goal @ linalg.lstsq(curvature, goal)[0] + entropy @ start.ravel()
    goal[:size] -= entropy
    bodies = LogCholesky(start)

    def equations(point: Array) -> DenseEquations:
        inertials, inner = bodies.at(point[:size])
        theta = np.concatenate([inertials.ravel(), point[size:]])
        jacobian = linalg.block_diag(inner, np.eye(free))
        gradient = curvature @ theta - goal
        hessian = jacobian.T @ curvature @ jacobian
        hessian[:size, :size] += bodies.bends(point[:size], gradient[:size])
        slopes = jacobian.T @ gradient
        slopes[bodies.logarithms] -= 2.0 / rows
        # 0.5: half the mean square of the residuals divided by their noise
        cost = 0.5 + 0.5 * theta @ curvature @ theta - goal @ theta - least
        return DenseEquations(float(cost - 2.0 / rows * point[bodies.logarithms].sum()), slopes, hessian)

    linear = problem.best_linear()
    lower, upper = np.full(size + free, -np.inf), np.full(size + free, np.inf)
    lower[[size + i for i in problem.never_negative]] = 0.0
    first = np.concatenate([np.zeros(size), linear])
    units = np.concatenate([np.ones(size), np.abs(linear) + 0.1 * np.abs(linear).max()])
    end = minimise(equations, first, lower, upper, units, iterations=300)
    return bodies.at(end.point[:size])[0], end.point[size:], end.status


fit_log_cholesky = partial(fit_consistent, solve=_solve_log_cholesky)
"""The fit in log-Cholesky coordinates."""
