r"""The least-squares problem over all states and the parameters, step by step (seed 002, §3.1–3.3).

The unknowns are the parameters :math:`\chi`, the first state of each run, and for each step the impulses :math:`\epsilon_k` along
the joints that the model does not explain. States follow from them by the stepper,

.. math:: x_{k+1} = \phi(x_k, u_k, \epsilon_k; \chi), \qquad
    \Delta y = \sigma\,(c_k + s\,(c_{k+1} - c_k) - \delta\,\dot c) + o - y,

c the joint's coordinate, s the place of the samples in the step. Samples of one step are averaged and weigh as many. The cost is
:math:`\frac12\sum \|\epsilon_k / \Omega^{1/2}\|^2 + \frac12\sum\|\Delta y\|^2/\sigma_s^2`.

**What this has to do with (3.6), (3.7).** The seed lets all 6 nb impulses of both residuals err, and has all states as unknowns.
Of :math:`\Delta p_u` only the part along admissible motions moves the mechanism; the rest is carried by constraints, and shows as a
deviation :math:`\Sigma`-times smaller, so it is taken as nothing. :math:`\Delta p_q \ne \Delta p_u` would be motion without velocity,
which no force makes: it is taken as nothing as well, (2.16) holds. What is left is (2.29) along the joints,

.. math:: \epsilon_k = B^{+T}\bigl(M(v_{k+1} - v_k) - G^T\lambda - h(f + f_g)\bigr),

and every trial state obeys the constraints *as the stepper does*. With free deviations the cost has the curvature of springs of
stiffness :math:`\Sigma^{-1}` across a curved surface: a step of 0.1 rad along its tangent leaves it by 0.5 mm, which at a compliance of
1e-6 m/N is an impulse 1e5 times what the weights expect, and the search creeps.

**At the first state of a run** g = 0 and Gv = 0: the terms (3.14), (3.15), with their slips corrected

.. math:: \Delta q_0 = -G^T(GG^T)^{-1}g, \qquad \Delta v_0 = G^T(GG^T)^{-1}G\,v_0,

hold exactly; weighted with :math:`M_\Sigma / \Omega^{1/2}` they would hold to :math:`\Omega^{1/2}\Sigma`.

**Weights** are reduced to the time step and one ratio :math:`\rho`. Observations have their standard deviations
:math:`\sigma_s`; :math:`\sigma_0` is the smallest as an angle (lengths divided by :math:`\ell`). Unexplained impulses have standard
deviations

.. math:: \Omega^{1/2}_j = I_j\,\omega, \qquad \omega = \frac{\sigma_0}{\rho}\sqrt{h / 1\,\mathrm{s}}\;\frac{1}{1\,\mathrm{s}}

(times :math:`\ell` along prismatic joints), with :math:`I_j = 1 / (B_jM^{-1}_GB_j^T)` the inertia that joint j feels in the zero
pose before the fit, :math:`M^{-1}_G = M^{-1} - M^{-1}G^T(GM^{-1}G^T)^+GM^{-1}`. It is a random walk of the velocity that does not
depend on h, and that moves a free joint by about :math:`\sigma_0/\rho` in a second. With :math:`\rho \to \infty` states obey the
dynamics exactly, and the problem becomes that of the simulation error; with small :math:`\rho` they follow the samples, and the
parameters make the remaining impulses small, as in the equation-error method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi
import jax
import numpy as np
from scipy.linalg import block_diag

from stribeck.multibody import rotation
from stribeck.multibody.chain import Flags, StateChain
from stribeck.multibody.dynamics import BodyState, MultibodyDynamics
from stribeck.multibody.mechanism import Array, Mechanism, Physical
from stribeck.multibody.vectors import floor

TURN = 2.0 * np.pi
FOLLOWED = 4.0
"""Samples over which states are smoothed at first: with fewer they follow the noise, and the parameters with them."""


class GridSamples(NamedTuple):
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
    count: Array  # type: ignore[assignment]  # hides a method of tuples that nobody wants here
    linked: Flags


@dataclass(frozen=True, eq=False)
class GridRun:
    """One recording on the grid of the estimation.

    :param name: for messages and tables.
    :param samples: see :class:`GridSamples`.
    :param path: smooth values of the position sensors at the steps, gaps bridged (N, ns).
    :param start_rate: rate of each sensor's coordinate at the first step (ns,).
    :param released: whether the first row of ``path`` and ``start_rate`` are known, not measured.
    """

    name: str
    samples: GridSamples
    path: Array
    start_rate: Array
    released: bool = False


@dataclass(frozen=True, eq=False)
class Point:
    """A point of the search.

    :param chi: free parameters (p,).
    :param q: configurations of all states (N, nb, 7).
    :param v: their velocities (N, nb, 6).
    :param impulse: along the joints, not explained by the model, during the steps (N, nj).
    """

    chi: Array
    q: Array
    v: Array
    impulse: Array


@dataclass(frozen=True, eq=False)
class Residuals:
    """Weighted residuals at a point.

    :param samples: (N, ns), 0 where nothing was measured.
    :param impulses: (N, nj).
    """

    samples: Array
    impulses: Array

    @property
    def cost(self) -> float:
        """Half the weighted sum of squares; infinite where a trial ran away."""
        with np.errstate(over="ignore"):
            return 0.5 * float(np.sum(self.samples**2) + np.sum(self.impulses**2))


class _Sparse:
    """A CasADi function whose output is a sparse matrix, evaluated at many points at once."""

    def __init__(self, name: str, inputs: list[Any], output: Any) -> None:
        sparsity = output.sparsity()
        self.shape = output.shape
        self.rows = np.array(sparsity.row(), int)
        self.columns = np.array(sparsity.get_col(), int)
        self.function = casadi.Function(name, inputs, [casadi.densify(casadi.vertcat(*output.nonzeros()))])
        self.many: dict[int, Any] = {}

    def __call__(self, *arguments: Array) -> Array:
        """Dense matrices (N, rows, columns) for arguments (N, size)."""
        count = len(arguments[0])
        result = np.zeros((count, *self.shape))
        if len(self.rows):
            if count not in self.many:
                self.many[count] = self.function.map(count).buffer()
            buffer, evaluate = self.many[count]
            # Rows of ours are columns of CasADi's: the memory is the same.
            given = [np.ascontiguousarray(a, np.float64) for a in arguments]
            found = np.empty((count, len(self.rows)))
            for k, argument in enumerate(given):
                if argument.size:
                    buffer.set_arg(k, argument.reshape(-1).data)
            buffer.set_res(0, found.reshape(-1).data)
            evaluate()
            result[:, self.rows, self.columns] = found
        return result


class EstimationProblem:
    """Residuals of one mechanism and time step, and their derivatives.

    :param mechanism: its free parameters are the unknowns.
    :param step: h [s].
    """

    def __init__(self, mechanism: Mechanism, step: float) -> None:
        self.mechanism, self.step = mechanism, step
        self.dynamics = MultibodyDynamics(mechanism)
        self.base = mechanism.values()
        self.free = np.array([k for k, parameter in enumerate(mechanism.parameters) if parameter.free], int)
        self.bodies = len(mechanism.bodies)
        self.half = 6 * self.bodies
        self.constraints = len(self.dynamics.layout.translation)
        self.movable = np.array([k for k, joint in enumerate(mechanism.joints) if joint.kind != "fixed"], int)
        self.joints = [sensor.joint for sensor in mechanism.sensors]
        self.angles = np.array(
            [
                s.quantity == "position" and mechanism.joints[s.joint].kind == "revolute"
                for s in mechanism.sensors
            ],
            bool,
        )
        self.deviation = np.array([sensor.deviation for sensor in mechanism.sensors])
        self.noise = self._noise()
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
        r""":math:`\ell` [m]."""
        return self.mechanism.regularization.length

    def inertia(self, chi: Array) -> Array:
        """Inertia that each joint feels in the zero pose, the others moving along (nj,) [kg m², kg]; 0 for fixed ones."""
        physical = self.mechanism.symbolic(self.all_values(chi).tolist())
        q = np.concatenate([[*com, 1.0, 0.0, 0.0, 0.0] for com in physical.com])[None]
        held, moving = (part[0] for part in (self.holding(q, chi[None]), self.motion(q, chi[None])))
        rows = np.concatenate([held, moving])
        mobility = rows @ np.linalg.solve(_mass_matrix(physical), rows.T)
        m = self.constraints
        # Redundant constraints do no harm.
        across = mobility[:m, :m] + 1e-10 * np.diag(np.diag(mobility)[:m])
        own = np.diag(mobility[m:, m:] - mobility[m:, :m] @ np.linalg.solve(across, mobility[:m, m:]))
        found = np.zeros(len(self.mechanism.joints))
        found[self.movable] = 1.0 / np.maximum(own, 1e-9 * np.diag(mobility)[m:])
        return found

    def _inertia_slope(self, chi: Array) -> Array:
        """Derivatives of the inertias of the movable joints (e, p), by central differences."""
        steps = np.diag(1e-6 * np.maximum(np.abs(chi), 1e-6))
        pairs = [(self.inertia(chi + by) - self.inertia(chi - by)) / (2.0 * by.sum()) for by in steps]
        return np.asarray(np.array(pairs).reshape(len(chi), -1).T[self.movable])

    def all_values(self, chi: Array) -> Array:
        """Values of all parameters for the free ones (p,)."""
        values = self.base.copy()
        values[self.free] = chi
        return values

    def physical(self, chi: Array) -> Physical:
        """Numbers of the mechanism for free parameters (p,)."""
        with jax.enable_x64():
            found: Physical = jax.tree.map(np.asarray, self.mechanism.physical(self.all_values(chi)))
            return found

    def _build(self) -> None:
        """Symbolic functions of one step, and their derivatives."""
        nb, d = self.bodies, 2 * self.half
        q, v, reached = (casadi.SX.sym(n, k * nb) for n, k in (("q", 7), ("v", 6), ("V", 6)))
        a, w = casadi.SX.sym("a", d), casadi.SX.sym("w", self.half)
        chi = casadi.SX.sym("chi", len(self.free))
        voltage = casadi.SX.sym("u", self.mechanism.inputs)
        place = casadi.SX.sym("s", len(self.joints))
        reaction = casadi.SX.sym("l", self.constraints)
        values: list[Any] = self.base.tolist()
        for k, index in enumerate(self.free):
            values[index] = chi[k]
        physical = self.mechanism.symbolic(values)
        zero = [casadi.DM.zeros(d), casadi.DM.zeros(self.half)]

        def still(expression: Any) -> Any:
            return casadi.substitute([expression], [a, w], zero)[0]

        here = self._moved(q, v, a)
        arrived = [[self.step * rate for rate in row] for row in _rows(reached + w, 6)]
        there = BodyState(
            [rotation.moved(p, i) for p, i in zip(here.q, arrived, strict=True)], _rows(reached + w, 6)
        )
        signals = casadi.vertcat(*self._signals(physical, here, there, place))
        observed = [q, v, reached, chi, place]
        self.signal_function = _Sparse("signals", observed, still(signals))
        by = casadi.vertcat(a, w, chi)
        self.signal_jacobian = _Sparse("signal_jacobian", observed, still(casadi.jacobian(signals, by)))
        reactions = _rows(reaction, self.constraints)
        impulses, gaps = self.dynamics.impulses(physical, here, [there.v], reactions, voltage, self.step)
        stepped = [q, v, reached, chi, reaction, voltage]
        self.gap_function = _Sparse("gaps", stepped, still(casadi.vertcat(*gaps[0])))
        balance = casadi.vertcat(*impulses[0], *gaps[0])
        full = casadi.vertcat(by, reaction)
        self.balance_jacobian = _Sparse("balance", stepped, still(casadi.jacobian(balance, full)))
        was = [_rows(casadi.substitute([casadi.vertcat(*p)], [a, w], zero)[0], 7)[0] for p in there.q]
        carried = [rotation.difference(new, old) for new, old in zip(there.q, was, strict=True)]
        moved = casadi.vertcat(*(number for row in carried for number in row))
        self.carry_jacobian = _Sparse(
            "carry", [q, v, reached], still(casadi.jacobian(moved, casadi.vertcat(a, w)))
        )
        pose = self.dynamics.layout.pose(physical, here.q)
        held, moving = self._motion(pose)
        self.holding = _Sparse("holding", [q, chi], still(held))
        self.motion = _Sparse("motion", [q, chi], still(moving))
        rates = casadi.vertcat(*self.dynamics.layout.rates(pose, here.v)[0])
        violation = casadi.vertcat(*self.dynamics.layout.deviation(pose), rates)
        self.violation = _Sparse("violation", [q, v, chi], still(violation))
        self.violation_jacobian = _Sparse(
            "violation_jacobian", [q, v, chi], still(casadi.jacobian(violation, casadi.vertcat(a, chi)))
        )

    def _motion(self, pose: Any) -> tuple[Any, Any]:
        """G, and B of the movable joints: their velocities by the velocities of the bodies."""
        speeds = casadi.SX.sym("speeds", self.half)
        held, moving = self.dynamics.layout.rates(pose, _rows(speeds, 6))
        own = casadi.vertcat(*(moving[j] for j in self.movable))
        return casadi.jacobian(casadi.vertcat(*held), speeds), casadi.jacobian(own, speeds)

    def _moved(self, q: Any, v: Any, by: Any) -> BodyState:
        """A state and an increment, as nested lists of symbols."""
        places = [rotation.moved(p, i) for p, i in zip(_rows(q, 7), _rows(by[: self.half], 6), strict=True)]
        return BodyState(places, _rows(v + by[self.half :], 6))

    def _signals(self, physical: Physical, here: BodyState, there: BodyState, place: Any) -> list[Any]:
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

    def kick_deviation(self, ratio: float) -> Array:
        r""":math:`\omega` of the movable joints [rad/s, m/s]."""
        unit = np.where(self.dynamics.layout.rotates[self.movable], 1.0, self.length)
        return np.asarray(unit * (self.noise / ratio) * np.sqrt(self.step))

    def kicks(self, point: Point) -> Array:
        r""":math:`\eta` of the movable joints (N, e)."""
        return np.asarray(point.impulse[:, self.movable] / self.inertia(point.chi)[self.movable])

    def first_ratio(self, samples: GridSamples) -> float:
        r"""The ratio at which states follow what :data:`FOLLOWED` samples in a row say.

        For a velocity that is a random walk, seen through white noise, the optimal smoother has the time constant
        :math:`T = \sqrt{\rho}\,d^{1/4}`, d the time between samples.
        """
        seen = max(float(np.sum(samples.count > 0) / samples.count.shape[1]), 1.0)
        apart = self.step * max(len(samples.count) / seen, 1.0)
        return float((FOLLOWED * apart) ** 2 / np.sqrt(apart))

    def _flat(self, point: Point) -> list[Array]:
        """q, v, v⁺ and the parameters of each step."""
        count = len(point.q)
        v = point.v.reshape(count, -1)
        chi = np.broadcast_to(point.chi, (count, len(point.chi)))
        return [point.q.reshape(count, -1), v, np.concatenate([v[1:], v[-1:]]), chi]

    def signals(self, point: Point, samples: GridSamples) -> Array:
        """Predicted minus measured signals at a point (N, ns), not weighted: angles to the nearest turn, 0 where
        nothing was measured.
        """
        signals = self.signal_function(*self._flat(point), samples.place)[..., 0]
        found = np.where(samples.count > 0, signals - samples.value, 0.0)
        return np.asarray(found - TURN * np.round(found / TURN) * self.angles)

    def residuals(self, point: Point, samples: GridSamples, ratio: float) -> Residuals:
        """Residuals at a point."""
        weighted = self.signals(point, samples) * np.sqrt(samples.count) / self.deviation
        return Residuals(weighted, self.kicks(point) / self.kick_deviation(ratio))

    def linearize(
        self, point: Point, samples: GridSamples, starts: Array, ratio: float, released: Flags
    ) -> StateChain:
        r"""The problem around a point, in increments of states (12 nb), impulses and parameters.

        The step's derivative is that of its inverse: with the velocity and the reactions that balance (2.18), the increments
        :math:`w` of :math:`v^+` and :math:`l` of :math:`\lambda` that keep the balance follow from those of the state, the
        impulses and the parameters.

        :param starts: index of the first state of each run.
        :param released: whether these are known (runs,).
        """
        d, half, p, m = 2 * self.half, self.half, len(self.free), self.constraints
        q, v, reached, chi = self._flat(point)
        count = len(q)
        motion = self.motion(q, chi)
        gap = self.gap_function(q, v, reached, chi, np.zeros((count, m)), samples.voltage)[..., 0]
        reaction = -gap / self.dynamics.softness(self.step).sigma
        balance = self.balance_jacobian(q, v, reached, chi, reaction, samples.voltage)
        pushed = np.concatenate([motion.transpose(0, 2, 1), np.zeros((count, m, len(self.movable)))], axis=1)
        heavier = pushed @ (self.kicks(point)[..., None] * self._inertia_slope(point.chi))
        known = [
            -balance[..., :d],
            pushed * self.inertia(point.chi)[self.movable],
            heavier - balance[..., d + half : d + half + p],
        ]
        unknown = np.concatenate([balance[..., d : d + half], balance[..., d + half + p :]], axis=2)
        w = np.linalg.solve(unknown, np.concatenate(known, axis=2))[:, :half]
        carry = self.carry_jacobian(q, v, reached)
        place = carry[..., d:] @ w
        place[..., :d] += carry[..., :d]
        following = np.concatenate([place, w], axis=1) * samples.linked[:, None, None]
        e = len(self.movable)
        turn, push, drift = following[..., :d], following[..., d : d + e], following[..., d + e :]
        seen = self.signal_jacobian(q, v, reached, chi, samples.place)
        answer = seen[..., d : d + half] @ w
        answer[..., :d] += seen[..., :d]
        answer[..., d + e :] += seen[..., d + half :]
        weight = np.sqrt(samples.count) / self.deviation
        residuals = self.residuals(point, samples, ratio)
        sample = np.concatenate(
            [answer[..., d : d + e], answer[..., :d], answer[..., d + e :], np.zeros((*weight.shape, 1))],
            axis=2,
        )
        sample *= weight[..., None]
        sample[..., -1] = residuals.samples
        deviation = self.kick_deviation(ratio)
        first, first_drift = self._tangents(point, starts)
        first = first * ~released[:, None, None]
        return StateChain(
            turn,
            push,
            drift,
            samples.linked,
            sample,
            np.broadcast_to(1.0 / deviation, (count, e)),
            residuals.impulses,
            first,
            first_drift,
        )

    def _first(self, point: Point, starts: Array) -> tuple[Array, Array, Array]:
        q, v = point.q[starts].reshape(len(starts), -1), point.v[starts].reshape(len(starts), -1)
        return q, v, np.broadcast_to(point.chi, (len(starts), len(point.chi)))

    @property
    def _lengths(self) -> Array:
        r"""What makes translations of a state as large as rotations: :math:`\ell` and 1 (12 nb,)."""
        return np.tile([self.length] * 3 + [1.0] * 3, 2 * self.bodies)

    def _tangents(self, point: Point, starts: Array) -> tuple[Array, Array]:
        """Increments of first states that keep g = 0 and Gv = 0: a basis (runs, 12 nb, f), and with the parameters."""
        d = 2 * self.half
        change = self.violation_jacobian(*self._first(point, starts))
        bases, drifts = [], []
        for jacobian in change:
            left, size, right = np.linalg.svd(jacobian[:, :d] * self._lengths)
            rank = int(np.sum(size > 1e-9 * size[0]))
            bases.append(self._lengths[:, None] * right[rank:].T)
            shortest = right[:rank].T @ ((left[:, :rank].T @ jacobian[:, d:]) / size[:rank, None])
            drifts.append(-self._lengths[:, None] * shortest)
        fewest = min(base.shape[1] for base in bases)
        return np.stack([base[:, :fewest] for base in bases]), np.stack(drifts)

    def closed(self, q: Array, v: Array, chi: Array) -> tuple[Array, Array]:
        """First states (runs, nb, 7), (runs, nb, 6) brought to g = 0 and Gv = 0 on the shortest way."""
        d = 2 * self.half
        many = np.broadcast_to(chi, (len(q), len(chi)))
        for _ in range(6):
            flat = q.reshape(len(q), -1), v.reshape(len(q), -1), many
            missing = self.violation(*flat)
            jacobian = self.violation_jacobian(*flat)[..., :d] * self._lengths
            by = -(self._lengths[:, None] * (np.linalg.pinv(jacobian, rcond=1e-9) @ missing))[..., 0]
            q, v = turned(q, v, by)
        return q, v


def _mass_matrix(physical: Physical) -> Array:
    """M (6 nb, 6 nb) of numbers."""
    blocks = []
    for mass, (xx, yy, zz, xy, xz, yz) in zip(physical.mass, physical.inertia, strict=True):
        blocks += [mass * np.eye(3), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])]
    return np.asarray(block_diag(*blocks))


def _rows(values: Any, width: int) -> list[list[Any]]:
    """A column of symbols as rows of some width."""
    return [[values[i + k] for k in range(width)] for i in range(0, values.shape[0], width)]


def turned(q: Array, v: Array, by: Array) -> tuple[Array, Array]:
    r"""States :math:`x \boxplus \delta` of many (…, nb, 7), (…, nb, 6), (…, 12 nb), in numpy."""
    places, speeds = np.split(by, 2, axis=-1)
    moved = rotation.moved(np.moveaxis(q, -1, 0), np.moveaxis(places.reshape(v.shape), -1, 0))
    return np.stack([np.asarray(part) for part in moved], axis=-1), v + speeds.reshape(v.shape)
