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

import jax
import jax.numpy as jnp
import numpy as np

from stribeck.multibody import rotation
from stribeck.multibody.dynamics import Dynamics, State
from stribeck.multibody.mechanism import Array, Mechanism, Physical

CHUNK = 128
"""Steps that are differentiated together: their intermediate results stay in the cache."""


class Samples(NamedTuple):
    """What was recorded, on a grid of time steps, all runs one after another (N steps).

    :param voltage: of the motors (N, nm) [V].
    :param value: mean of the samples within a step (N, ns); anything where there are none.
    :param place: mean place of these samples in the step, 0 to 1 (N, ns).
    :param count: how many they are (N, ns); 0 for none.
    :param linked: whether state k + 1 follows on state k in the same run (N,).
    """

    voltage: Any
    value: Any
    place: Any
    count: Any
    linked: Any


@dataclass(frozen=True, eq=False)
class Run:
    """One recording on the grid of the estimation.

    :param name: for messages and tables.
    :param samples: see :class:`Samples`.
    :param path: smooth values of the position sensors at the steps, gaps bridged (N, ns).
    :param start_rate: rate of each sensor's coordinate at the first step (ns,), where it is known, else NaN.
    """

    name: str
    samples: Samples
    path: Array
    start_rate: Array


class Linear(NamedTuple):
    r"""Normal equations around a point, in scaled increments of the states (d = 12 nb each) and the parameters.

    State increments are :math:`T_k\,\delta_k`, :math:`T = diag(h M_\Sigma^{-1}\Omega^{1/2},
    M_\Sigma^{-1}\Omega^{1/2})`: impulses instead of motions (3.12, 3.13). So stiff directions and soft ones weigh alike, and
    what squaring the Jacobian costs does not grow with the stiffness.

    :param diagonal: (N, d, d).
    :param lower: coupling of state k + 1 (rows) to state k (N, d, d); the last is zero.
    :param border: coupling of states (rows) to parameters (N, d, p).
    :param corner: (p, p).
    :param gradient: of the states (N, d).
    :param slope: gradient of the parameters (p,).
    :param scale: T (N, 2, d/2, d/2).
    :param cost: half the sum of squares.
    """

    diagonal: Any
    lower: Any
    border: Any
    corner: Any
    gradient: Any
    slope: Any
    scale: Any
    cost: Any


class Problem:
    """Residuals and their normal equations for one mechanism and time step.

    :param mechanism: its free parameters are the unknowns.
    :param step: h [s].
    """

    def __init__(self, mechanism: Mechanism, step: float) -> None:
        self.mechanism, self.step = mechanism, step
        self.dynamics = Dynamics(mechanism)
        self.free = np.array([k for k, parameter in enumerate(mechanism.parameters) if parameter.free])
        self.base = mechanism.values()
        self.half = 6 * len(mechanism.bodies)
        self.unit_impulse = self._unit_impulse()
        length = mechanism.regularization.length
        angles = [s.deviation / (1.0 if self._rotates(s.joint) else length) for s in mechanism.sensors]
        self.noise = min(angles) if angles else 1.0

    def _rotates(self, joint: int) -> bool:
        return self.mechanism.joints[joint].kind == "revolute"

    def _unit_impulse(self) -> Array:
        """Impulse that gives a body an angular velocity of 1 rad/s, and the velocity that goes with it (6 nb,)."""
        with jax.enable_x64():
            mass = np.asarray(self.mechanism.physical(self.base).mass)
        length = self.mechanism.regularization.length
        return np.asarray(np.outer(mass, [length] * 3 + [length**2] * 3).reshape(-1))

    def physical(self, chi: Any) -> Physical:
        """Numbers of the mechanism for free parameters (p,)."""
        return self.mechanism.physical(jnp.asarray(self.base).at[self.free].set(chi))

    def impulse_deviation(self, ratio: Any) -> Any:
        r""":math:`\Omega^{1/2}` (6 nb,)."""
        return self.unit_impulse * (self.noise / ratio) * jnp.sqrt(self.step)

    def _softened_mass(self, physical: Physical, q: Any) -> Any:
        r""":math:`M_\Sigma` (6 nb, 6 nb)."""
        jacobian = self.dynamics.layout.constraints(physical, q).jacobian
        sigma = self.dynamics.softness(self.step).sigma
        return self.dynamics.mass_matrix(physical) + jacobian.T @ (jacobian / sigma[:, None])

    def _observed(self, physical: Physical, a: State, b: State, place: Any) -> Any:
        """Signals (ns,) at places between two states."""
        sensors = self.mechanism.sensors
        joints = np.array([s.joint for s in sensors], int)
        sign = np.array([s.sign for s in sensors])
        layout = self.dynamics.layout
        poses = [layout.pose(physical, state.q) for state in (a, b)]
        here, there = (jnp.stack([found[j] for j in joints]) for found in map(layout.coordinates, poses))
        moved = self._wrapped(there - here, joints)
        speeds = [layout.rates(pose, state.v)[1] for pose, state in zip(poses, (a, b), strict=True)]
        before, after = (jnp.stack([found[j] for j in joints]) for found in speeds)
        rate = before + (place + 0.5) * (after - before)
        position = here + place * moved - physical.lag * moved / self.step
        lagged = rate - physical.lag * (after - before) / self.step
        measures_rate = np.array([s.quantity == "velocity" for s in sensors], bool)
        return sign * jnp.where(measures_rate, lagged, position) + physical.offset

    def _wrapped(self, difference: Any, joints: Array) -> Any:
        """Differences of angles to the nearest turn; lengths as they are."""
        turns = jnp.round(difference / (2.0 * jnp.pi))
        return difference - 2.0 * jnp.pi * jax.lax.stop_gradient(turns) * self.dynamics.layout.rotates[joints]

    def _misfit(self, physical: Physical, a: State, b: State, sample: Samples) -> Any:
        """Observation residuals (ns,), not weighted."""
        found = self._observed(physical, a, b, sample.place) - sample.value
        joints = np.array([s.joint for s in self.mechanism.sensors], int)
        angle = np.array([s.quantity == "position" for s in self.mechanism.sensors], bool)
        return jnp.where(angle, self._wrapped(found, joints), found)

    def _weights(self, count: Any) -> Any:
        return jnp.sqrt(count) / np.array([s.deviation for s in self.mechanism.sensors])

    def residual(self, chi: Any, a: State, b: State, sample: Samples, ratio: Any) -> Any:
        """Weighted residuals (12 nb + ns,) of one step: impulses q, u, then observations."""
        physical = self.physical(chi)
        h = self.step
        moved = rotation.minus(b.q, a.q) / h
        impulses = self.dynamics.impulses(physical, a, [moved, b.v], sample.voltage, h)
        impulses = (impulses.reshape(2, -1) / self.impulse_deviation(ratio)).reshape(-1)
        observed = self._weights(sample.count) * self._misfit(physical, a, b, sample)
        return jnp.concatenate([jnp.where(sample.linked, impulses, 0.0), observed])

    def initial_violation(self, chi: Any, state: State) -> Any:
        r"""Violation of the constraints by a state (2, m): :math:`-g/h` and :math:`Gv`."""
        layout = self.dynamics.layout
        pose = layout.pose(self.physical(chi), state.q)
        deviation, rates = jnp.stack(layout.deviation(pose)), jnp.stack(layout.rates(pose, state.v)[0])
        return jnp.stack([-deviation / self.step, rates])

    def initial_weight(self, chi: Any, state: State, ratio: Any) -> Any:
        r""":math:`\Omega^{-1/2} M_\Sigma G^T(GG^T)^{-1}` (6 nb, m): from violations to residuals (3.12–3.15)."""
        physical = self.physical(chi)
        G = self.dynamics.layout.constraints(physical, state.q).jacobian
        square = G @ G.T
        square = square + 1e-9 * jnp.trace(square) * jnp.eye(len(square))
        weight = self._softened_mass(physical, state.q) @ jnp.linalg.solve(square, G).T
        return weight / self.impulse_deviation(ratio)[:, None]

    def initial_residual(self, chi: Any, state: State, ratio: Any) -> Any:
        """Weighted residuals (12 nb,) of the first state of a run (3.14, 3.15)."""
        violation = self.initial_violation(chi, state)
        return (violation @ self.initial_weight(chi, state, ratio).T).reshape(-1)

    @staticmethod
    def moved(state: State, increment: Any) -> State:
        """A state and an increment (12 nb,) of configuration and velocity."""
        by = increment.reshape(2, -1, 6)
        return State(rotation.plus(state.q, by[0]), state.v + by[1])

    def _pairs(self, states: State) -> tuple[State, State]:
        return states, jax.tree.map(lambda x: jnp.concatenate([x[1:], x[-1:]]), states)

    def cost(self, chi: Any, states: State, samples: Samples, starts: Any, ratio: Any) -> Any:
        """Half the sum of squares.

        :param states: of all runs (N, …).
        :param starts: index of the first state of each run.
        """
        a, b = self._pairs(states)
        rows = jax.vmap(self.residual, (None, 0, 0, 0, None))(chi, a, b, samples, ratio)
        first = jax.vmap(self.initial_residual, (None, 0, None))(
            chi, jax.tree.map(lambda x: x[starts], states), ratio
        )
        return 0.5 * (jnp.sum(rows * rows) + jnp.sum(first * first))

    def _scale(self, chi: Any, state: State, ratio: Any) -> Any:
        mass = self._softened_mass(self.physical(chi), state.q)
        half = jnp.linalg.solve(mass, jnp.diag(self.impulse_deviation(ratio)))
        return jnp.stack([self.step * half, half])

    def linearize(self, chi: Any, states: State, samples: Samples, starts: Any, ratio: Any) -> Linear:
        """Normal equations around a point (see :class:`Linear`)."""
        a, b = self._pairs(states)
        d = 2 * self.half

        def one(arguments: Any) -> Any:
            here, there, sample = arguments

            def moved(z: Any) -> Any:
                first, second = self.moved(here, z[:d]), self.moved(there, z[d : 2 * d])
                found = self.residual(z[2 * d :], first, second, sample, ratio)
                return found, found

            jacobian, value = jax.jacfwd(moved, has_aux=True)(jnp.concatenate([jnp.zeros(2 * d), chi]))
            left, right = self._scale(chi, here, ratio), self._scale(chi, there, ratio)
            A, N, P = jacobian[:, :d], jacobian[:, d : 2 * d], jacobian[:, 2 * d :]
            A, N = _scaled(A, left), _scaled(N, right)
            blocks = (A.T @ A, N.T @ N, N.T @ A, A.T @ P, N.T @ P, P.T @ P)
            return blocks, (A.T @ value, N.T @ value, P.T @ value), left, 0.5 * value @ value

        blocks, slopes, scale, costs = _in_chunks(one, (a, b, samples))
        here, there, lower, border, border_next, corner = blocks
        diagonal = here.at[1:].add(there[:-1])
        border = border.at[1:].add(border_next[:-1])
        gradient = slopes[0].at[1:].add(slopes[1][:-1])
        result = Linear(
            diagonal,
            lower.at[-1].set(0.0),
            border,
            corner.sum(0),
            gradient,
            slopes[2].sum(0),
            scale,
            costs.sum(),
        )
        return self._with_starts(result, chi, states, starts, ratio)

    def _with_starts(self, linear: Linear, chi: Any, states: State, starts: Any, ratio: Any) -> Linear:
        d = 2 * self.half

        def one(state: State, scale: Any) -> Any:
            def moved(z: Any) -> Any:
                found = self.initial_violation(z[d:], self.moved(state, z[:d]))
                return found, found

            # The weight is held: its derivative meets violations, which are next to nothing.
            jacobian, value = jax.jacfwd(moved, has_aux=True)(jnp.concatenate([jnp.zeros(d), chi]))
            weight = self.initial_weight(chi, state, ratio)
            jacobian = jnp.einsum("im,amz->aiz", weight, jacobian).reshape(d, -1)
            value = (value @ weight.T).reshape(-1)
            A, P = _scaled(jacobian[:, :d], scale), jacobian[:, d:]
            return A.T @ A, A.T @ P, P.T @ P, A.T @ value, P.T @ value, 0.5 * value @ value

        first = jax.tree.map(lambda x: x[starts], states)
        diagonal, border, corner, gradient, slope, cost = jax.vmap(one)(first, linear.scale[starts])
        return linear._replace(
            diagonal=linear.diagonal.at[starts].add(diagonal),
            border=linear.border.at[starts].add(border),
            corner=linear.corner + corner.sum(0),
            gradient=linear.gradient.at[starts].add(gradient),
            slope=linear.slope + slope.sum(0),
            cost=linear.cost + cost.sum(),
        )

    def observation_residuals(self, chi: Any, states: State, samples: Samples) -> Any:
        """Predicted minus measured signals (N, ns), not weighted; 0 where nothing was measured."""
        a, b = self._pairs(states)
        physical = self.physical(chi)
        found = jax.vmap(self._misfit, (None, 0, 0, 0))(physical, a, b, samples)
        return jnp.where(samples.count > 0, found, 0.0)


def _scaled(jacobian: Any, scale: Any) -> Any:
    """Columns of a Jacobian (m, d) in scaled increments."""
    half = jacobian.shape[1] // 2
    return jnp.concatenate([jacobian[:, :half] @ scale[0], jacobian[:, half:] @ scale[1]], axis=1)


def _in_chunks(function: Any, arguments: Any) -> Any:
    """A function of single steps on all N of them, in chunks; the last chunk is filled up."""
    count = len(jax.tree.leaves(arguments)[0])
    chunks = -(-count // CHUNK)

    def folded(x: Any) -> Any:
        filled = jnp.concatenate([x, jnp.repeat(x[-1:], chunks * CHUNK - count, axis=0)])
        return filled.reshape(chunks, CHUNK, *x.shape[1:])

    found = jax.lax.map(jax.vmap(function), jax.tree.map(folded, arguments))
    return jax.tree.map(lambda x: x.reshape(chunks * CHUNK, *x.shape[2:])[:count], found)
