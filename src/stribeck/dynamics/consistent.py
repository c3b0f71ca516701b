r"""The physically consistent problem: masses :math:`m = z^2`, inertias :math:`U D U^T`, near the URDF.

.. math::

    \min_{z, c, U, D, x}\; \frac1T\sum_t \|\tau_t - f(q_t, \dot q_t, \ddot q_t; z, c, U, D) - X_t x\|^2_{\Sigma^{-1}}

subject to :math:`(z^2-m^0)^2 \le \alpha`, :math:`\|c-c^0\|^2 \le \beta`, :math:`\|u-u^0\|^2 \le \gamma`,
:math:`\|d-d^0\|^2 \le \delta` for every link, d > 0, and the triangle inequality of its principal moments, which
positive definiteness alone does not give. x are inertias and friction of the joints, none negative. Inverse dynamics
are linear in the inertial parameters, so that the sum over time is one quadratic form, built once. Solved by IPOPT.

Source: the Maestro system (seed 004), "Solving for Dynamic Parameters"; Traversaro et al. 2016 for the triangle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import casadi
import numpy as np
import numpy.typing as npt
from scipy import linalg

from stribeck.dynamics.base_parameters import BaseParameters
from stribeck.dynamics.inertia import (
    about_com,
    entropic_slope,
    nearest_consistent,
)
from stribeck.dynamics.least_squares import fit_rows
from stribeck.dynamics.log_cholesky import LogCholesky
from stribeck.dynamics.model import INERTIALS
from stribeck.dynamics.motion import ProcessedMotion
from stribeck.dynamics.regressor import Machine, design
from stribeck.errors import StribeckError
from stribeck.estimates.autoregressive import covariance, standard_deviations
from stribeck.estimates.levenberg_marquardt import DenseEquations, minimise
from stribeck.io.identification_config import Neighbourhood, Protocol

Array = npt.NDArray[np.float64]

ROUNDS = 3
"""How often the noise of the joints is estimated again."""

ANCHOR = 1e-3
"""Precision, in units of the neighbourhood, of what holds unobservable directions at the URDF."""

MARGIN = 1e-3
"""By how much inertias stay inside of what is possible, as a share of those of the URDF."""

Watch = Callable[[int, Array], None]
"""Is given the iteration, which begins at 0 in each round, and the parameters (10 n + x,)."""

NEVER_NEGATIVE = ("Ia", "M", "Fv", "Fc")


@dataclass(frozen=True)
class ConsistentFit:
    """A physically consistent fit.

    :param inertials: standard inertial parameters (n, 10).
    :param names, values: inertias and friction of the joints, (x,).
    :param covariance: of inertials and values (10 n + x, 10 n + x), the neighbourhood counted as knowledge.
    :param noise: standard deviation of the residuals of each joint (n,).
    :param rest: velocity below which there is no direction [rad/s].
    """

    machine: Machine
    inertials: Array
    names: tuple[str, ...]
    values: Array
    covariance: Array
    noise: Array
    rest: float

    @property
    def parameters(self) -> Array:
        """Inertials of all links, then the joints' own, (10 n + x,)."""
        return np.concatenate([self.inertials.ravel(), self.values])

    @property
    def sigma(self) -> Array:
        """Standard deviations of all parameters (10 n + x,)."""
        return standard_deviations(self.covariance)

    def base(self, base: BaseParameters) -> tuple[Array, Array]:
        """Base parameters and their standard deviations, (b,) each; the data tell more of them than of single ones."""
        spread = base.projection @ self.covariance @ base.projection.T
        return base.values(self.parameters), standard_deviations(spread)

    def predict(self, motion: ProcessedMotion) -> Array:
        """Torques at the rows of a run, (M, n)."""
        columns = design(self.machine, motion.states, self.rest).columns
        return np.asarray(columns @ self.parameters)


@dataclass(frozen=True)
class _Data:
    """The rows of all runs: columns (R, p), torque (R,), joint (R,)."""

    names: tuple[str, ...]
    rows: Array
    torque: Array
    joint: npt.NDArray[np.intp]


def fit_consistent(
    machine: Machine,
    motions: Sequence[ProcessedMotion],
    protocol: Protocol,
    near: Neighbourhood,
    noise: Array,
    watch: Watch | None = None,
) -> ConsistentFit:
    """Solve the physically consistent problem with IPOPT.

    :param noise: standard deviation of the residuals of each joint (n,), to begin with.
    :param watch: is shown every iterate.
    :raises StribeckError: if IPOPT finds no solution.
    """
    return _fit(machine, motions, protocol, near, noise, partial(_solve_ipopt, watch=watch))


def fit_log_cholesky(
    machine: Machine,
    motions: Sequence[ProcessedMotion],
    protocol: Protocol,
    near: Neighbourhood,
    noise: Array,
) -> ConsistentFit:
    r"""The same cost in log-Cholesky coordinates, which are consistent anywhere.

    Instead of a bound the neighbourhood is a standard deviation: a quadratic prior about the URDF. It counts as
    much as one row, and so does the log-determinant divergence :math:`tr(J J_0^{-1}) - \log|J|` of each
    pseudo-inertia, which keeps solutions off the boundary, where the coordinates go to infinity (Lee, Wensing,
    Park 2020). See :func:`~stribeck.dynamics.inertia.log_cholesky`.
    """
    return _fit(machine, motions, protocol, near, noise, _solve_log_cholesky)


def _fit(
    machine: Machine,
    motions: Sequence[ProcessedMotion],
    protocol: Protocol,
    near: Neighbourhood,
    noise: Array,
    solve: Any,
) -> ConsistentFit:
    designs = [design(machine, motion.states, protocol.rest) for motion in motions]
    used = [fit_rows(motion, protocol) for motion in motions]
    data = _Data(
        designs[0].names,
        np.concatenate([d.columns[u] for d, u in zip(designs, used, strict=True)]),
        np.concatenate([m.torque[u] for m, u in zip(motions, used, strict=True)]),
        np.concatenate([np.nonzero(u)[1] for u in used]),
    )
    start = nearest_consistent(machine.inertials)
    for _ in range(ROUNDS):
        weights = 1.0 / noise[data.joint]
        hessian = (data.rows * weights[:, None]).T @ (data.rows * weights[:, None])
        slope = (data.rows * weights[:, None]).T @ (data.torque * weights)
        inertials, values = solve(
            hessian / len(weights), slope / len(weights), len(weights), start, near, data.names
        )
        parameters = np.concatenate([inertials.ravel(), values])
        residual = data.torque - data.rows @ parameters
        noise = np.array([np.sqrt(np.mean(residual[data.joint == j] ** 2)) for j in range(len(noise))])
    jacobians = [np.where(u[:, :, None], d.columns, 0.0) for d, u in zip(designs, used, strict=True)]
    residuals = [
        np.where(u, m.torque - d.columns @ parameters, 0.0)
        for d, u, m in zip(designs, used, motions, strict=True)
    ]
    knowledge = np.zeros(len(parameters))
    knowledge[: inertials.size] = 1.0 / spread(start, near).ravel() ** 2
    spreads = covariance(jacobians, residuals, noise, np.diag(knowledge))
    names = data.names[inertials.size :]
    return ConsistentFit(machine, inertials, names, values, spreads, noise, protocol.rest)


def spread(inertials: Array, near: Neighbourhood) -> Array:
    """How far each inertial parameter may go within a neighbourhood, roughly, (n, 10)."""
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


def _solve_ipopt(
    hessian: Array,
    slope: Array,
    rows: int,
    start: Array,
    near: Neighbourhood,
    names: Sequence[str],
    watch: Watch | None = None,
) -> tuple[Array, Array]:
    links = len(start)
    mass0, com0, inertia0 = about_com(start)
    factors = [_udu(inertia) for inertia in inertia0]
    opti = casadi.Opti()
    z, c = opti.variable(links), opti.variable(links, 3)
    u, d = opti.variable(links, 3), opti.variable(links, 3)
    x = opti.variable(len(names) - start.size)
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
    bound = [i for i, name in enumerate(names[start.size :]) if name.partition("_")[0] in NEVER_NEGATIVE]
    opti.subject_to(x[bound] >= 0.0)
    theta = casadi.vertcat(*bodies, x)
    cost = casadi.bilin(casadi.DM(hessian), theta, theta) - 2.0 * casadi.dot(casadi.DM(slope), theta)
    opti.minimize(cost + ANCHOR * anchor / max(links, 1))
    opti.set_initial(x, _best_linear(hessian, slope, start))
    opti.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes", "max_iter": 500})
    if watch is not None:
        opti.callback(lambda i: watch(int(i), np.array(opti.debug.value(theta)).ravel()))
    try:
        solution = opti.solve()
    except RuntimeError as error:
        raise StribeckError(f"IPOPT found no physically consistent solution: {error}") from None
    inertials = np.array(solution.value(casadi.vertcat(*bodies))).reshape(-1, INERTIALS)
    return inertials, np.atleast_1d(solution.value(x))


def _udu(inertia: Array) -> tuple[Array, Array]:
    """Factors u = (u12, u13, u23) and d of I = U D Uᵀ, U unit upper triangular."""
    lower, diagonal, _ = linalg.ldl(inertia[::-1, ::-1], lower=True)
    upper = lower[::-1, ::-1]
    return upper[[0, 0, 1], [1, 2, 2]], np.maximum(np.diag(diagonal)[::-1], 1e-12)


def _product(u: Any, d: Any) -> Any:
    upper = casadi.vertcat(casadi.horzcat(1, u[0], u[1]), casadi.horzcat(0, 1, u[2]), casadi.horzcat(0, 0, 1))
    return upper @ casadi.diag(d.T) @ upper.T


def _casadi_inertials(z: Any, com: Any, inertia: Any) -> Any:
    """Inertial parameters about the joint's frame: Steiner's theorem."""
    mass = z**2
    about = inertia + mass * (casadi.sumsqr(com) * casadi.DM.eye(3) - com.T @ com)
    return casadi.vertcat(
        mass, mass * com.T, about[0, 0], about[0, 1], about[1, 1], about[0, 2], about[1, 2], about[2, 2]
    )


def _triangle(opti: Any, inertia: Any, start: Array) -> None:
    """½ tr(I) 1 - I = V E Vᵀ with E > 0: the second moments of mass are positive definite.

    :param start: inertia to begin with, in the same units.
    """
    v, e = opti.variable(1, 3), opti.variable(1, 3)
    opti.subject_to(casadi.vec(e) >= MARGIN)
    difference = 0.5 * casadi.trace(inertia) * casadi.DM.eye(3) - inertia - _product(v, e)
    opti.subject_to(casadi.tril2symm(casadi.tril(difference))[[0, 1, 2, 4, 5, 8]] == 0.0)
    upper, diagonal = _udu(0.5 * np.trace(start) * np.eye(3) - start)
    opti.set_initial(v, upper[None])
    opti.set_initial(e, np.maximum(diagonal, 2.0 * MARGIN)[None])


def _best_linear(hessian: Array, slope: Array, start: Array) -> Array:
    """The joints' inertias and friction that go with the inertials of the start."""
    size = start.size
    rest = slope[size:] - hessian[size:, :size] @ start.ravel()
    return np.asarray(linalg.lstsq(hessian[size:, size:], rest)[0])


def _solve_log_cholesky(
    hessian: Array, slope: Array, rows: int, start: Array, near: Neighbourhood, names: Sequence[str]
) -> tuple[Array, Array]:
    size = start.size
    anchor = np.zeros(len(names))
    anchor[:size] = 1.0 / rows / spread(start, near).ravel() ** 2
    goal = slope + anchor * np.concatenate([start.ravel(), np.zeros(len(names) - size)])
    curvature = hessian + np.diag(anchor)
    # What bounds the parts of the cost from below; with it costs are of the size of what can still be gained.
    least = (
        -0.5 * goal @ linalg.lstsq(curvature, goal)[0] + entropic_slope(start).ravel() @ start.ravel() / rows
    )
    goal[:size] -= entropic_slope(start).ravel() / rows
    bodies = LogCholesky(start)

    def equations(point: Array) -> DenseEquations:
        inertials, inner = bodies.at(point[:size])
        found = np.concatenate([inertials.ravel(), point[size:]])
        jacobian = linalg.block_diag(inner, np.eye(len(names) - size))
        gradient = curvature @ found - goal
        curved = jacobian.T @ curvature @ jacobian
        curved[:size, :size] += bodies.bends(point[:size], gradient[:size])
        slopes = jacobian.T @ gradient
        slopes[bodies.logarithms] -= 2.0 / rows
        cost = (
            0.5 + 0.5 * found @ curvature @ found - goal @ found - least
        )  # residuals over noise: half of one
        return DenseEquations(float(cost - 2.0 / rows * point[bodies.logarithms].sum()), slopes, curved)

    linear = _best_linear(hessian, slope, start)
    lower = np.full(len(names), -np.inf)
    lower[size:] = [0.0 if name.partition("_")[0] in NEVER_NEGATIVE else -np.inf for name in names[size:]]
    first = np.concatenate([np.zeros(size), linear])
    units = np.concatenate([np.ones(size), np.abs(linear) + 0.1 * np.abs(linear).max()])
    found = minimise(equations, first, lower, np.full(len(names), np.inf), units, iterations=300).point
    return bodies.at(found[:size])[0], found[size:]
