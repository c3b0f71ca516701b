r"""The least-squares problem over all states and the parameters, step by step (seed 002, §3.1–3.3).

Residuals of a transition from state k to k + 1, and of the samples between them:

.. math::
    \Delta p_u &= \text{impulse}(x_k, v_{k+1}), \qquad
    \Delta p_q = \text{impulse}(x_k, (q_{k+1} \boxminus q_k)/h) \qquad (3.6, 3.7), \\
    \Delta y &= \sigma\,(c_k + s\,(c_{k+1} - c_k) - \delta\,\dot c) + o - y,

c the joint's coordinate, s the place of the samples in the step. In (3.7) the multipliers are those of the velocity
:math:`(q_{k+1}\boxminus q_k)/h`: only then does (3.13) follow. Samples of one step are averaged and weigh as many.

**At the first state of a run**, with the slips of (3.14), (3.15) corrected (their :math:`G^TG` has no inverse),

.. math:: \Delta q_0 = -G^T(GG^T)^{-1}g, \qquad \Delta v_0 = G^T(GG^T)^{-1}G\,v_0,

multiplied by :math:`h^{-1}M_\Sigma` and :math:`M_\Sigma = M + G^T\Sigma^{-1}G` (3.12, 3.13). Redundant constraints make
:math:`GG^T` singular; a share of 1e-9 of its trace on the diagonal then gives the shortest solution.

**Weights** are reduced to the time step and one ratio :math:`\rho`. Observations have their standard deviations
:math:`\sigma_s`; :math:`\sigma_0` is the smallest as an angle (lengths divided by :math:`\ell`). The impulses of a body of
mass m that are not explained have standard deviations

.. math:: \Omega^{1/2} = m\,\ell\,\omega \;\text{(translation)}, \quad m\,\ell^2\omega \;\text{(rotation)}, \qquad
          \omega = \frac{\sigma_0}{\rho}\sqrt{h / 1\,\mathrm{s}}\;\frac{1}{1\,\mathrm{s}},

with masses as they are before the fit: a random walk of the velocity that does not depend on h, and that moves a free
body by about :math:`\sigma_0/\rho` in a second. With :math:`\rho \to \infty` states obey the dynamics exactly, and the
problem becomes multiple shooting with a node at each step; with small :math:`\rho` they follow the samples, and the
parameters make the remaining impulses small, as in the equation-error method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi
import jax
import numpy as np

from stribeck.multibody import rotation
from stribeck.multibody.chain import Rows
from stribeck.multibody.dynamics import Dynamics, State
from stribeck.multibody.mechanism import Array, Mechanism, Physical, inertia_matrices
from stribeck.multibody.vectors import floor

TURN = 2.0 * np.pi


class Samples(NamedTuple):
    """What was recorded, on a grid of time steps, all runs one after another (N steps).

    :param voltage: of the motors (N, nm) [V].
    :param value: mean of the samples within a step (N, ns); anything where there are none.
    :param place: mean place of these samples in the step, 0 to 1 (N, ns).
    :param count: how many they are (N, ns); 0 for none.
    :param linked: whether state k + 1 follows on state k in the same run (N,).
    """

    voltage: Array
    value: Array
    place: Array
    count: Array
    linked: Array


@dataclass(frozen=True, eq=False)
class Run:
    """One recording on the grid of the estimation.

    :param name: for messages and tables.
    :param samples: see :class:`Samples`.
    :param path: smooth values of the position sensors at the steps, gaps bridged (N, ns).
    :param start_rate: rate of each sensor's coordinate at the first step (ns,).
    """

    name: str
    samples: Samples
    path: Array
    start_rate: Array


@dataclass(frozen=True, eq=False)
class Point:
    """A point of the search.

    :param chi: free parameters (p,).
    :param q: configurations of all states (N, nb, 7).
    :param v: their velocities (N, nb, 6).
    :param reaction: multipliers of all steps, for q and for v (N, 2, m).
    """

    chi: Array
    q: Array
    v: Array
    reaction: Array


@dataclass(frozen=True, eq=False)
class Residuals:
    """Residuals at a point.

    :param rows: weighted impulses and samples of each step (N, 12 nb + ns).
    :param gap: what reactions miss (N, 2, m), see :meth:`stribeck.multibody.dynamics.Dynamics.impulses`.
    :param first: violation of the constraints by first states (runs, 2, m).
    """

    rows: Array
    gap: Array
    first: Array

    @property
    def cost(self) -> float:
        """Half the weighted sum of squares."""
        return 0.5 * float(np.sum(self.rows * self.rows))

    @property
    def infeasible(self) -> float:
        """Root of the mean square of gaps and violations."""
        return float(np.sqrt((np.sum(self.gap**2) + np.sum(self.first**2)) / self.gap.size))


@dataclass(frozen=True, eq=False)
class Linear:
    """The problem around a point.

    :param residuals: at the point.
    :param rows: with reactions eliminated; by increments of the states (d = 12 nb each) and parameters.
    :param gap_change: Jacobian of the gaps by increments here and there and parameters (N, 2, m, 2 d + p).
    """

    residuals: Residuals
    rows: Rows
    gap_change: Array


class _Sparse:
    """A CasADi function whose output is a sparse matrix, evaluated at many points at once."""

    def __init__(self, name: str, inputs: list[Any], output: Any) -> None:
        sparsity = output.sparsity()
        self.shape = output.shape
        self.rows = np.array(sparsity.row(), int)
        self.columns = np.array(sparsity.get_col(), int)
        self.function = casadi.Function(name, inputs, [casadi.densify(casadi.vertcat(*output.nonzeros()))])

    def __call__(self, *arguments: Array) -> Array:
        """Dense matrices (N, rows, columns) for arguments (N, size)."""
        count = len(arguments[0])
        result = np.zeros((count, *self.shape))
        if len(self.rows):
            found = self.function.map(count)(*(casadi.DM(a.T) for a in arguments)).full()
            result[:, self.rows, self.columns] = found.T
        return result


class Problem:
    """Residuals of one mechanism and time step, and their derivatives.

    :param mechanism: its free parameters are the unknowns.
    :param step: h [s].
    """

    def __init__(self, mechanism: Mechanism, step: float) -> None:
        self.mechanism, self.step = mechanism, step
        self.dynamics = Dynamics(mechanism)
        self.base = mechanism.values()
        self.free = np.array([k for k, parameter in enumerate(mechanism.parameters) if parameter.free], int)
        self.bodies = len(mechanism.bodies)
        self.half = 6 * self.bodies
        self.constraints = len(self.dynamics.layout.translation)
        self.joints = [sensor.joint for sensor in mechanism.sensors]
        self.angles = np.array(
            [s.quantity == "position" and mechanism.joints[s.joint].kind == "revolute" for s in mechanism.sensors],
            bool,
        )
        self.deviation = np.array([sensor.deviation for sensor in mechanism.sensors])
        self.noise = self._noise()
        self.unit_impulse = self._unit_impulse()
        self._build()

    def _noise(self) -> float:
        r""":math:`\sigma_0`: the smallest deviation of a position sensor, as an angle."""
        found = [
            s.deviation / (1.0 if self.mechanism.joints[s.joint].kind == "revolute" else self.length)
            for s in self.mechanism.sensors
            if s.quantity == "position"
        ]
        return min(found, default=1.0)

    @property
    def length(self) -> float:
        """:math:`\\ell` [m]."""
        return self.mechanism.regularization.length

    def _unit_impulse(self) -> Array:
        """Impulse that gives a body an angular velocity of 1 rad/s, and the velocity that goes with it (6 nb,)."""
        mass = np.asarray(self.physical(self.base[self.free]).mass)
        return np.asarray(np.outer(mass, [self.length] * 3 + [self.length**2] * 3).reshape(-1))

    def all_values(self, chi: Array) -> Array:
        """Values of all parameters for the free ones (p,)."""
        values = self.base.copy()
        values[self.free] = chi
        return values

    def physical(self, chi: Array) -> Physical:
        """Numbers of the mechanism for free parameters (p,)."""
        with jax.enable_x64():
            return jax.tree.map(np.asarray, self.mechanism.physical(self.all_values(chi)))

    def _build(self) -> None:
        """Symbolic functions of one step, and their derivatives."""
        nb, d = self.bodies, 2 * self.half
        q, v, after_q, after_v = (casadi.SX.sym(n, k * nb) for n, k in (("q", 7), ("v", 6), ("Q", 7), ("V", 6)))
        a, b = casadi.SX.sym("a", d), casadi.SX.sym("b", d)
        chi = casadi.SX.sym("chi", len(self.free))
        voltage = casadi.SX.sym("u", len(self.mechanism.motors))
        place = casadi.SX.sym("s", len(self.joints))
        values: list[Any] = self.base.tolist()
        for k, index in enumerate(self.free):
            values[index] = chi[k]
        physical = self.mechanism.symbolic(values)
        here, there = self._moved(q, v, a), self._moved(after_q, after_v, b)
        reaction = casadi.SX.sym("l", 2 * self.constraints)
        impulses, gaps = self._impulses(physical, here, there, reaction, voltage)
        signals = self._signals(physical, here, there, place)
        zero = [casadi.DM.zeros(d), casadi.DM.zeros(d)]

        def still(expression: Any) -> Any:
            return casadi.substitute([expression], [a, b], zero)[0]

        inputs = [q, v, after_q, after_v, chi, reaction, voltage, place]
        rows = casadi.vertcat(*impulses, *signals, *gaps)
        self.row_function = _Sparse("rows", inputs, still(rows))
        self.row_jacobian = _Sparse("jacobian", inputs, still(casadi.jacobian(rows, casadi.vertcat(a, b, chi))))
        pose = self.dynamics.layout.pose(physical, here.q)
        rates = casadi.vertcat(*self.dynamics.layout.rates(pose, here.v)[0])
        violation = casadi.vertcat(*(-g / self.step for g in self.dynamics.layout.deviation(pose)), rates)
        self.violation = _Sparse("violation", [q, v, chi], still(violation))
        self.violation_jacobian = _Sparse(
            "violation_jacobian", [q, v, chi], still(casadi.jacobian(violation, casadi.vertcat(a, chi)))
        )
        speeds = casadi.SX.sym("w", 6 * nb)
        found = self.dynamics.layout.rates(pose, _rows(speeds, 6))[0]
        jacobian = still(casadi.jacobian(casadi.vertcat(*found), speeds))
        self.constraint_jacobian = _Sparse("G", [q, chi], jacobian)

    def _moved(self, q: Any, v: Any, by: Any) -> State:
        """A state and an increment, as nested lists of symbols."""
        places = [rotation.moved(p, i) for p, i in zip(_rows(q, 7), _rows(by[: self.half], 6), strict=True)]
        return State(places, _rows(v + by[self.half :], 6))

    def _impulses(
        self, physical: Physical, here: State, there: State, reaction: Any, voltage: Any
    ) -> tuple[list[Any], list[Any]]:
        """Impulses q, then u (3.6, 3.7), and the gaps of their reactions."""
        moved = [
            [number / self.step for number in rotation.difference(new, old)]
            for new, old in zip(there.q, here.q, strict=True)
        ]
        impulses, gaps = self.dynamics.impulses(
            physical, here, [moved, there.v], _rows(reaction, self.constraints), voltage, self.step
        )
        return impulses[0] + impulses[1], gaps[0] + gaps[1]

    def _signals(self, physical: Physical, here: State, there: State, place: Any) -> list[Any]:
        """What sensors say at places between two states."""
        layout = self.dynamics.layout
        poses = [layout.pose(physical, state.q) for state in (here, there)]
        coordinates = [layout.coordinates(pose) for pose in poses]
        rates = [layout.rates(pose, state.v)[1] for pose, state in zip(poses, (here, there), strict=True)]
        found = []
        for k, sensor in enumerate(self.mechanism.sensors):
            j, lag = sensor.joint, physical.lag[k]
            if sensor.quantity == "position":
                moved = coordinates[1][j] - coordinates[0][j]
                if self.angles[k]:
                    moved = moved - TURN * floor(moved / TURN + 0.5)
                value = coordinates[0][j] + (place[k] - lag / self.step) * moved
            else:
                value = rates[0][j] + (place[k] + 0.5 - lag / self.step) * (rates[1][j] - rates[0][j])
            found.append(sensor.sign * value + physical.offset[k])
        return found

    def impulse_deviation(self, ratio: float) -> Array:
        r""":math:`\Omega^{1/2}` (6 nb,)."""
        return np.asarray(self.unit_impulse * (self.noise / ratio) * np.sqrt(self.step))

    def _inputs(self, point: Point, samples: Samples) -> list[Array]:
        count = len(point.q)
        q, v = point.q.reshape(count, -1), point.v.reshape(count, -1)
        following = np.minimum(np.arange(count) + 1, count - 1)
        chi = np.broadcast_to(point.chi, (count, len(point.chi)))
        reaction = point.reaction.reshape(count, -1)
        return [q, v, q[following], v[following], chi, reaction, samples.voltage, samples.place]

    def _weights(self, samples: Samples, ratio: float) -> Array:
        """Of the rows of each step (N, 12 nb + ns)."""
        impulse = np.tile(1.0 / self.impulse_deviation(ratio), 2) * samples.linked[:, None]
        return np.concatenate([impulse, np.sqrt(samples.count) / self.deviation], axis=1)

    def misfit(self, rows: Array, samples: Samples) -> Array:
        """Predicted minus measured signals (N, ns), angles to the nearest turn; 0 where nothing was measured."""
        signals = rows[:, 2 * self.half : 2 * self.half + len(self.joints)]
        found = np.where(samples.count > 0, signals - samples.value, 0.0)
        turns = np.round(found / TURN) * self.angles
        return np.asarray(found - TURN * turns)

    def signals(self, point: Point, samples: Samples) -> Array:
        """Predicted minus measured signals at a point (N, ns), not weighted."""
        return self.misfit(self.row_function(*self._inputs(point, samples))[..., 0], samples)

    def residuals(self, point: Point, samples: Samples, starts: Array, ratio: float) -> Residuals:
        """Residuals at a point.

        :param starts: index of the first state of each run.
        """
        rows = self.row_function(*self._inputs(point, samples))[..., 0]
        size = 2 * self.half + len(self.joints)
        gap = (rows[:, size:] * samples.linked[:, None]).reshape(len(rows), 2, -1)
        weighted = np.concatenate([rows[:, : 2 * self.half], self.misfit(rows, samples)], axis=1)
        first = self.violation(*self._first(point, starts)).reshape(len(starts), 2, -1)
        return Residuals(weighted * self._weights(samples, ratio), gap, first)

    def _first(self, point: Point, starts: Array) -> tuple[Array, Array, Array]:
        q, v = point.q[starts].reshape(len(starts), -1), point.v[starts].reshape(len(starts), -1)
        return q, v, np.broadcast_to(point.chi, (len(starts), len(point.chi)))

    def mass_matrix(self, chi: Array) -> Array:
        """M (6 nb, 6 nb)."""
        with jax.enable_x64():
            physical = self.physical(chi)
            inertia = np.asarray(inertia_matrices(physical.inertia))
        result = np.zeros((self.half, self.half))
        for b in range(self.bodies):
            result[6 * b : 6 * b + 3, 6 * b : 6 * b + 3] = physical.mass[b] * np.eye(3)
            result[6 * b + 3 : 6 * b + 6, 6 * b + 3 : 6 * b + 6] = inertia[b]
        return result

    def _softened_mass(self, q: Array, chi: Array) -> tuple[Array, Array]:
        r""":math:`M_\Sigma` (k, 6 nb, 6 nb) and G (k, m, 6 nb) of configurations (k, 7 nb)."""
        jacobian = self.constraint_jacobian(q, chi)
        sigma = self.dynamics.softness(self.step).sigma
        return self.mass_matrix(chi[0]) + jacobian.transpose(0, 2, 1) @ (jacobian / sigma[:, None]), jacobian

    def _first_weight(self, q: Array, chi: Array, ratio: float) -> Array:
        r""":math:`\Omega^{-1/2} M_\Sigma G^T(GG^T)^{-1}` (k, 6 nb, m): from violations to residuals (3.12–3.15)."""
        mass, jacobian = self._softened_mass(q, chi)
        weight = mass @ _shortest(jacobian, np.broadcast_to(np.eye(jacobian.shape[1]), (len(q), *[jacobian.shape[1]] * 2)))
        return np.asarray(weight / self.impulse_deviation(ratio)[:, None])

    def linearize(self, point: Point, samples: Samples, starts: Array, ratio: float) -> Linear:
        r"""The problem around a point.

        Reactions are unknowns of their own while the search goes on. With the gaps :math:`c` linearised,
        :math:`\delta\lambda = -\Sigma^{-1}(c + C\,\delta)`, they leave the same equations as (2.30) does, but forces turn with
        the bodies as *reactions found so far* say, which are those of a real mechanism. Computed from (2.30) at states that
        are a hair's breadth off, they are those of springs as stiff as :math:`\Sigma^{-1}`, and the search creeps or diverges.
        """
        d, p, size = 2 * self.half, len(self.free), 2 * self.half + len(self.joints)
        inputs = self._inputs(point, samples)
        count = len(inputs[0])
        jacobian = self.row_jacobian(*inputs)
        residuals = self.residuals(point, samples, starts, ratio)
        gap_change = (jacobian[:, size:] * samples.linked[:, None, None]).reshape(count, 2, -1, 2 * d + p)
        weights = self._weights(samples, ratio)
        rows = jacobian[:, :size] * weights[..., None]
        spring = self._spring(inputs[0], inputs[4])[:, None]
        stiff = weights[:, :d].reshape(count, 2, self.half, 1)
        rows[:, :d] += (stiff * (spring @ gap_change)).reshape(count, d, -1)
        value = residuals.rows.copy()
        value[:, :d] += (stiff * (spring @ residuals.gap[..., None])).reshape(count, d)
        q, v, chi = self._first(point, starts)
        change = self.violation_jacobian(q, v, chi).reshape(len(starts), 2, -1, d + p)
        weight = self._first_weight(q, chi, ratio)[:, None]
        first = (weight @ change).reshape(len(starts), d, d + p)
        return Linear(
            residuals,
            Rows(
                rows[..., :d],
                rows[..., d : 2 * d] * samples.linked[:, None, None],
                rows[..., 2 * d :],
                value,
                starts,
                first[..., :d],
                first[..., d:],
                (weight @ residuals.first[..., None]).reshape(len(starts), d),
            ),
            gap_change,
        )

    def _spring(self, q: Array, chi: Array) -> Array:
        r""":math:`G^T\Sigma^{-1}` (k, 6 nb, m) of configurations (k, 7 nb)."""
        jacobian = self.constraint_jacobian(q, chi)
        return jacobian.transpose(0, 2, 1) / self.dynamics.softness(self.step).sigma

    def moved(self, point: Point, linear: Linear, change: Array, increments: Array, length: float) -> Point:
        """A point after a share of a change of the parameters (p,) and increments of the states (N, 12 nb)."""
        count = len(point.q)
        by = length * increments.reshape(count, 2, self.bodies, 6)
        after = np.concatenate([increments[1:], increments[-1:]])
        both = np.concatenate([increments, after, np.broadcast_to(change, (count, len(change)))], axis=1)
        gap = linear.residuals.gap + (linear.gap_change @ both[:, None, :, None])[..., 0]
        reaction = point.reaction - length * gap / self.dynamics.softness(self.step).sigma
        return Point(point.chi + length * change, _turned(point.q, by[:, 0]), point.v + by[:, 1], reaction)


def _shortest(jacobian: Array, right: Array) -> Array:
    """Shortest x (k, n, c) with Jx = right (k, m, c), for Jacobians (k, m, n) whose rows may be redundant."""
    square = jacobian @ jacobian.transpose(0, 2, 1)
    trace = np.trace(square, axis1=1, axis2=2)
    square = square + 1e-9 * trace[:, None, None] * np.eye(square.shape[1])
    return np.asarray(jacobian.transpose(0, 2, 1) @ np.linalg.solve(square, right))


def _rows(values: Any, width: int) -> list[list[Any]]:
    """A column of symbols as rows of some width."""
    return [[values[i + k] for k in range(width)] for i in range(0, values.shape[0], width)]


def _turned(q: Array, by: Array) -> Array:
    r""":math:`q \boxplus \delta` of many (…, 7), (…, 6): :func:`stribeck.multibody.rotation.plus` in numpy."""
    moved = rotation.moved(np.moveaxis(q, -1, 0), np.moveaxis(by, -1, 0))
    return np.stack([np.asarray(part) for part in moved], axis=-1)
