r"""The least-squares problem over all states and the parameters (Marklund et al. 2025, §3.1–3.3).

The unknowns are the parameters :math:`\chi`, the first state of each run, and the impulses :math:`\epsilon_k` along the joints
that the model does not explain in each step. The stepper computes the states from these,

.. math:: x_{k+1} = \phi(x_k, u_k, \epsilon_k; \chi), \qquad
    \Delta y = \sigma\,(c_k + s\,(c_{k+1} - c_k) - \delta\,\dot c) + o - y,

with the joint coordinate c and the position s of the samples within the step. Samples of one step are averaged and weighted by
their number. The cost is :math:`\frac12\sum \|\epsilon_k / \Omega^{1/2}\|^2 + \frac12\sum\|\Delta y\|^2/\sigma_s^2`.

**Difference from (3.6), (3.7).** In the paper, all states are unknowns and all 6 nb impulses of both residuals may be nonzero.
Only the part of :math:`\Delta p_u` along admissible motions moves the mechanism. The constraints carry the rest, with
deviations of the order of :math:`\Sigma`, so it is set to zero. :math:`\Delta p_q \ne \Delta p_u` would be motion without
velocity, which no force causes, and is excluded too, so that (2.16) holds. This leaves (2.29) along the joints,

.. math:: \epsilon_k = B^{+T}\bigl(M(v_{k+1} - v_k) - G^T\lambda - h(f + f_g)\bigr),

and every trial state satisfies the constraints to the accuracy of the stepper. With free deviations the cost would have the
curvature of springs with stiffness :math:`\Sigma^{-1}` normal to a curved constraint surface. A tangential step of 0.1 rad
deviates from the surface by 0.5 mm; at a compliance of 1e-6 m/N this is an impulse 1e5 times larger than the weights expect,
and the search would converge very slowly.

**Joints with slack**, whose constraints are soft, keep both: impulses along their constraints in both residuals, and first states
with deviations. Their standard deviations follow from the slack: random walks of the velocity and of the deviation that reach the
slack in a second, and first deviations of the slack.

**First states** of runs otherwise satisfy g = 0 and Gv = 0 exactly, by (3.14), (3.15) with corrected signs,

.. math:: \Delta q_0 = -G^T(GG^T)^{-1}g, \qquad \Delta v_0 = G^T(GG^T)^{-1}G\,v_0.

**Weights** follow from the time step and one ratio :math:`\rho`. Observations have standard deviations :math:`\sigma_s`; the
smallest of them, as an angle (lengths divided by :math:`\ell`), is :math:`\sigma_0`. Unexplained impulses have standard
deviations

.. math:: \Omega^{1/2}_j = I_j\,\omega, \qquad \omega = \frac{\sigma_0}{\rho}\sqrt{h / 1\,\mathrm{s}}\;\frac{1}{1\,\mathrm{s}}

(times :math:`\ell` along prismatic joints), with the inertia :math:`I_j = 1 / (B_jM^{-1}_GB_j^T)` of joint j in the zero pose,
:math:`M^{-1}_G = M^{-1} - M^{-1}G^T(GM^{-1}G^T)^+GM^{-1}`. This is a random walk of the velocity that does not depend on h and
moves a free joint by about :math:`\sigma_0/\rho` in a second. For :math:`\rho \to \infty` states obey the dynamics exactly
(simulation error); for small :math:`\rho` they follow the samples, and the parameters minimise the remaining impulses (equation
error).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

from stribeck.errors import ConfigError
from stribeck.identify.mechanism import rotation
from stribeck.identify.mechanism.chain import Flags, StateChain
from stribeck.identify.mechanism.dynamics import MultibodyDynamics
from stribeck.identify.mechanism.mechanism import UNMOVED, Mechanism, Physical
from stribeck.identify.mechanism.step_motion import TURN
from stribeck.identify.mechanism.symbolic import StepFunctions
from stribeck.model.arrays import Array, Indices

FOLLOWED = 4.0
"""Number of samples over which the first stage smooths states; with fewer they would follow the noise."""


class GridSamples(NamedTuple):
    """Recorded samples on a grid of N time steps, all runs concatenated.

    :param voltage: motor voltages [V], followed by brake torques (N, nm + brakes).
    :param value: mean of the samples within a step (N, ns); arbitrary where there are none.
    :param place: mean position of these samples within the step, 0 to 1 (N, ns).
    :param count: number of samples (N, ns).
    :param linked: whether state k + 1 belongs to the same run as state k (N,).
    """

    voltage: Array
    value: Array
    place: Array
    count: Array  # type: ignore[assignment]  # hides a method of tuples
    linked: Flags


@dataclass(frozen=True, eq=False)
class GridRun:
    """One recording on the grid of the estimation.

    :param name: name in messages and tables.
    :param samples: see :class:`GridSamples`.
    :param path: smoothed values of the position sensors at the steps, interpolated across gaps (N, ns).
    :param start_rate: rate of each sensor's coordinate at the first step (ns,).
    :param released: whether the run starts at rest in the first row of ``path``.
    """

    name: str
    samples: GridSamples
    path: Array
    start_rate: Array
    released: bool = False


@dataclass(frozen=True, eq=False)
class Point:
    r"""Parameters and states.

    :param chi: free parameters (p,).
    :param q: configurations of all states (N, nb, 7).
    :param v: their velocities (N, nb, 6).
    :param impulse: unexplained impulses along the joints, then :math:`\Delta p_u` and :math:`\Delta p_q - \Delta p_u` along the
        constraints of joints with slack (N, nj + 2 l).
    """

    chi: Array
    q: Array
    v: Array
    impulse: Array


@dataclass(frozen=True, eq=False)
class Residuals:
    """Weighted residuals at a point.

    :param samples: (N, ns), 0 without a measurement.
    :param impulses: (N, e).
    :param first: deviations of joints with slack in the first states, and their rates (runs, 2 l).
    """

    samples: Array
    impulses: Array
    first: Array

    @property
    def cost(self) -> float:
        """Half the weighted sum of squares; infinite for diverged trials."""
        with np.errstate(over="ignore"):
            return 0.5 * float(np.sum(self.samples**2) + np.sum(self.impulses**2) + np.sum(self.first**2))


def refuse_contacts(mechanism: Mechanism) -> None:
    """Refuse a mechanism with contacts, whose motion is not differentiable at impacts.

    :raises ConfigError: naming the mechanism.
    """
    if mechanism.contacts:
        raise ConfigError(
            f"{mechanism.name}: parameters of contacts cannot be estimated, only simulated (`stribeck simulate`): remove the contacts"
        )


class EstimationProblem:
    """Residuals for one mechanism and time step, and their derivatives.

    :param mechanism: mechanism whose free parameters are estimated.
    :param step: h [s].
    """

    def __init__(self, mechanism: Mechanism, step: float) -> None:
        refuse_contacts(mechanism)
        self.mechanism, self.step = mechanism, step
        self.dynamics = MultibodyDynamics(mechanism)
        self.base = mechanism.values()
        self.free = np.array([k for k, parameter in enumerate(mechanism.parameters) if parameter.free], int)
        self.bodies = len(mechanism.bodies)
        self.half = 6 * self.bodies
        self.constraints = len(self.dynamics.layout.translation)
        self.movable = np.array(
            [k for k, joint in enumerate(mechanism.joints) if joint.kind not in UNMOVED], int
        )
        self.angles = np.array([mechanism.is_angle(sensor) for sensor in mechanism.sensors], bool)
        self.deviation = np.array([sensor.deviation for sensor in mechanism.sensors])
        self.noise = self._noise()
        self.loose = self.dynamics.layout.loose
        self.pushes = len(mechanism.joints) + 2 * len(self.loose)
        self.functions = StepFunctions(mechanism, self.dynamics, step)
        self.across = self._across()

    def _noise(self) -> float:
        r""":math:`\sigma_0`, the smallest standard deviation of a position sensor, as an angle.

        Without one, that of sensors of a length or an angle by expressions.
        """
        deviations = [
            s.deviation / (1.0 if self.mechanism.joints[s.joint].kind == "revolute" else self.length)
            for s in self.mechanism.sensors
            if s.quantity == "position"
        ]
        size = {"m": self.length, "rad": 1.0}
        others = [s.deviation / size[s.unit] for s in self.mechanism.sensors if s.unit in size]
        return min(deviations or others, default=1.0)

    @property
    def length(self) -> float:
        r""":math:`\ell` [m]."""
        return self.mechanism.regularization.length

    def inertia(self, chi: Array) -> Array:
        """Inertia of each joint in the zero pose while the other joints move freely (nj,) [kg m², kg]; 0 for fixed joints."""
        physical = self.mechanism.symbolic(self.all_values(chi).tolist())
        q = np.concatenate([[*com, 1.0, 0.0, 0.0, 0.0] for com in physical.com])[None]
        held, moving = (
            part[0] for part in (self.functions.holding(q, chi[None]), self.functions.motion(q, chi[None]))
        )
        rows = np.concatenate([held, moving])
        mobility = rows @ np.linalg.solve(_mass_matrix(physical), rows.T)
        m = self.constraints
        # Regularised, because constraints may be redundant.
        across = mobility[:m, :m] + 1e-10 * np.diag(np.diag(mobility)[:m])
        free = np.diag(mobility[m:, m:] - mobility[m:, :m] @ np.linalg.solve(across, mobility[:m, m:]))
        inertia = np.zeros(len(self.mechanism.joints))
        inertia[self.movable] = 1.0 / np.maximum(free, 1e-9 * np.diag(mobility)[m:])
        return inertia

    def _inertia_slope(self, chi: Array) -> Array:
        """Derivatives of the inertias of the movable joints (e, p), by central differences."""
        steps = np.diag(1e-6 * np.maximum(np.abs(chi), 1e-6))
        pairs = [(self.inertia(chi + by) - self.inertia(chi - by)) / (2.0 * by.sum()) for by in steps]
        return np.asarray(np.array(pairs).reshape(len(chi), -1).T[self.movable])

    def all_values(self, chi: Array) -> Array:
        """Values of all parameters from the free ones (p,)."""
        values = self.base.copy()
        values[self.free] = chi
        return values

    def _across(self) -> tuple[Array, Array]:
        r"""Standard deviations of the impulses along the constraints of joints with slack, and of their first deviations (2 l,)."""
        layout, chi = self.dynamics.layout, self.mechanism.parameters.vector()
        slack = np.array([self.mechanism.joints[layout.owner[k]].slack for k in self.loose])
        size = slack / np.where(layout.translation[self.loose], 1.0, self.length)
        physical = self.mechanism.symbolic(self.all_values(chi).tolist())
        q = np.concatenate([[*com, 1.0, 0.0, 0.0, 0.0] for com in physical.com])[None]
        rows = self.functions.holding(q, chi[None])[0][self.loose]
        mobility = np.einsum("la,al->l", rows, np.linalg.solve(_mass_matrix(physical), rows.T))
        kick = size * np.sqrt(self.step) / mobility
        return np.concatenate([kick, kick / self.step]), np.concatenate([size, size / self.step])

    def kick_deviation(self, ratio: float) -> Array:
        r"""Standard deviation :math:`\omega` of the unexplained velocity change per step of the movable joints [rad/s, m/s],
        then those of the impulses along the constraints of joints with slack [N s, N m s].
        """
        unit = np.where(self.dynamics.layout.rotates[self.movable], 1.0, self.length)
        return np.concatenate([unit * (self.noise / ratio) * np.sqrt(self.step), self.across[0]])

    def kicks(self, point: Point) -> Array:
        r"""Unexplained velocity changes :math:`\eta` (impulse over inertia) of the movable joints, then impulses along the
        constraints of joints with slack (N, e).
        """
        along = point.impulse[:, self.movable] / self.inertia(point.chi)[self.movable]
        return np.concatenate([along, point.impulse[:, len(self.mechanism.joints) :]], axis=1)

    def first_ratio(self, samples: GridSamples) -> float:
        r"""The ratio at which states are smoothed over :data:`FOLLOWED` samples.

        For a velocity that is a random walk, measured with white noise, the optimal smoother has the time constant
        :math:`T = \sqrt{\rho}\,d^{1/4}` with the time d between samples.
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
        """Predicted minus measured signals (N, ns), angles modulo one turn; 0 without a measurement."""
        signals = self.functions.signals(*self._flat(point), samples.place)[..., 0]
        misfit = np.where(samples.count > 0, signals - samples.value, 0.0)
        with np.errstate(invalid="ignore"):  # diverged trials
            return np.asarray(misfit - TURN * np.where(self.angles, np.round(misfit / TURN), 0.0))

    def residuals(self, point: Point, samples: GridSamples, starts: Array, ratio: float) -> Residuals:
        """Residuals at a point.

        :param starts: index of the first state of each run.
        """
        with np.errstate(over="ignore"):  # diverged trials
            weighted = self.signals(point, samples) * np.sqrt(samples.count) / self.deviation
            kicks = self.kicks(point) / self.kick_deviation(ratio)
            return Residuals(weighted, kicks, self._off(point, starts))

    def _off(self, point: Point, starts: Array) -> Array:
        """Deviations of joints with slack in the first states and their rates, over their standard deviations (runs, 2 l)."""
        if not len(self.loose):
            return np.zeros((len(starts), 0))
        missing = self.functions.violation(*self._first(point, starts))[..., 0][:, self._open]
        return np.asarray(missing / self.across[1])

    @property
    def _open(self) -> Indices:
        """Rows of g and Gv that belong to joints with slack (2 l,)."""
        return np.concatenate([self.loose, self.constraints + self.loose])

    @property
    def _kicks(self) -> int:
        """Number e of unexplained impulses in a step."""
        return len(self.movable) + 2 * len(self.loose)

    def _following(self, point: Point, samples: GridSamples) -> tuple[Array, Array]:
        """Increments of the next configurations and velocities (N, 6 nb, 12 nb + e + p), each, by those of states, impulses and
        parameters.
        """
        d, half, p, m = 2 * self.half, self.half, len(self.free), self.constraints
        q, v, reached, chi = self._flat(point)
        count = len(q)
        motion = self.functions.motion(q, chi)
        gap = self.functions.gaps(q, v, reached, chi, np.zeros((count, m)), samples.voltage)[..., 0]
        physical = self.mechanism.symbolic(self.all_values(point.chi).tolist())
        reaction = -gap / np.array(self.dynamics.softness(physical, self.step).sigma)
        balance = self.functions.balance_jacobian(q, v, reached, chi, reaction, samples.voltage)
        free = len(self.loose)
        loose = self.functions.holding(q, chi)[:, self.loose].transpose(0, 2, 1)
        jumps = np.linalg.solve(_mass_matrix(physical), loose)
        pushed = np.concatenate([motion.transpose(0, 2, 1), np.zeros((count, m, len(self.movable)))], axis=1)
        across = np.concatenate([loose, np.zeros((count, m, free))], axis=1)
        kicks = self.kicks(point)
        heavier = pushed @ (kicks[:, : len(self.movable), None] * self._inertia_slope(point.chi))
        right_side = [
            -balance[..., :d],
            pushed * self.inertia(point.chi)[self.movable],
            across,
            np.zeros_like(across),
            heavier - balance[..., d + half : d + half + p],
        ]
        unknown = np.concatenate([balance[..., d : d + half], balance[..., d + half + p :]], axis=2)
        w = np.linalg.solve(unknown, np.concatenate(right_side, axis=2))[:, :half]
        jumped = (jumps @ kicks[:, kicks.shape[1] - free :, None])[..., 0]
        carry = self.functions.carry_jacobian(q, v, reached + jumped)
        place = carry[..., d:] @ w
        place[..., :d] += carry[..., :d]
        e = self._kicks
        place[..., d + e - free : d + e] += carry[..., d:] @ jumps
        return place, w

    def linearize(
        self, point: Point, samples: GridSamples, starts: Array, ratio: float, released: Flags
    ) -> StateChain:
        r"""Linearise the problem at a point, in increments of states (12 nb), impulses and parameters.

        A step is differentiated implicitly: increments of :math:`v^+` and :math:`\lambda` that maintain the balance (2.18)
        follow from those of the state, the impulses and the parameters.

        :param starts: index of the first state of each run.
        :param released: whether the first state is known (runs,).
        """
        d, half, e = 2 * self.half, self.half, self._kicks
        place, w = self._following(point, samples)
        following = np.concatenate([place, w], axis=1) * samples.linked[:, None, None]
        turn, push, drift = following[..., :d], following[..., d : d + e], following[..., d + e :]
        seen = self.functions.signal_jacobian(*self._flat(point), samples.place)
        answer = seen[..., d : d + half] @ w
        answer[..., :d] += seen[..., :d]
        answer[..., d + e :] += seen[..., d + half :]
        weight = np.sqrt(samples.count) / self.deviation
        residuals = self.residuals(point, samples, starts, ratio)
        sample = np.concatenate(
            [answer[..., d : d + e], answer[..., :d], answer[..., d + e :], np.zeros((*weight.shape, 1))],
            axis=2,
        )
        sample *= weight[..., None]
        sample[..., -1] = residuals.samples
        deviation = self.kick_deviation(ratio)
        first, first_drift, known = self._tangents(point, starts, residuals.first)
        first = first * ~released[:, None, None]
        return StateChain(
            turn,
            push,
            drift,
            samples.linked,
            sample,
            np.broadcast_to(1.0 / deviation, (len(w), e)),
            residuals.impulses,
            first,
            first_drift,
            known,
        )

    def _first(self, point: Point, starts: Array) -> tuple[Array, Array, Array]:
        q, v = point.q[starts].reshape(len(starts), -1), point.v[starts].reshape(len(starts), -1)
        return q, v, np.broadcast_to(point.chi, (len(starts), len(point.chi)))

    @property
    def _lengths(self) -> Array:
        r"""Scales of translations and rotations of a state: :math:`\ell` and 1 (12 nb,)."""
        return np.tile([self.length] * 3 + [1.0] * 3, 2 * self.bodies)

    def _tangents(self, point: Point, starts: Array, first: Array) -> tuple[Array, Array, Array]:
        """Basis (runs, 12 nb, f) of first-state increments that keep g = 0 and Gv = 0, their drift with the parameters, and rows
        [C, D, y] of the deviations that slack leaves free (runs, 2 l, 12 nb + p + 1).

        :param first: y (runs, 2 l), of :class:`Residuals`.
        """
        d = 2 * self.half
        change = self.functions.violation_jacobian(*self._first(point, starts))
        slopes = change[:, self._open] / self.across[1][:, None]
        bases, drifts = [], []
        for jacobian in np.delete(change, self._open, axis=1):
            left, size, right = np.linalg.svd(jacobian[:, :d] * self._lengths)
            rank = int(np.sum(size > 1e-9 * size.max(initial=0.0)))
            bases.append(self._lengths[:, None] * right[rank:].T)
            shortest = right[:rank].T @ ((left[:, :rank].T @ jacobian[:, d:]) / size[:rank, None])
            drifts.append(-self._lengths[:, None] * shortest)
        fewest = min(base.shape[1] for base in bases)
        basis = np.stack([base[:, :fewest] for base in bases])
        return basis, np.stack(drifts), np.concatenate([slopes, first[..., None]], axis=2)

    def closed(self, q: Array, v: Array, chi: Array) -> tuple[Array, Array]:
        """First states (runs, nb, 7), (runs, nb, 6) projected onto g = 0 and Gv = 0, but for joints with slack."""
        d = 2 * self.half
        many = np.broadcast_to(chi, (len(q), len(chi)))
        for _ in range(6):
            flat = q.reshape(len(q), -1), v.reshape(len(q), -1), many
            missing = np.delete(self.functions.violation(*flat), self._open, axis=1)
            jacobian = self.functions.violation_jacobian(*flat)[..., :d] * self._lengths
            jacobian = np.delete(jacobian, self._open, axis=1)
            by = -(self._lengths[:, None] * (np.linalg.pinv(jacobian, rcond=1e-9) @ missing))[..., 0]
            q, v = turned(q, v, by)
        return q, v


def _mass_matrix(physical: Physical) -> Array:
    blocks = []
    for mass, (xx, yy, zz, xy, xz, yz) in zip(physical.mass, physical.inertia, strict=True):
        blocks += [mass * np.eye(3), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])]
    return np.asarray(block_diag(*blocks))


def turned(q: Array, v: Array, by: Array) -> tuple[Array, Array]:
    r"""States :math:`x \boxplus \delta` for arrays (…, nb, 7), (…, nb, 6) and increments (…, 12 nb)."""
    places, speeds = np.split(by, 2, axis=-1)
    moved = rotation.moved(np.moveaxis(q, -1, 0), np.moveaxis(places.reshape(v.shape), -1, 0))
    return np.stack([np.asarray(part) for part in moved], axis=-1), v + speeds.reshape(v.shape)
