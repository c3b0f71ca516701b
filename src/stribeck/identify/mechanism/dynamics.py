r"""The SPOOK stepper: forward dynamics, inverse dynamics and energy (Marklund et al. 2025, eqs. 2.3–2.31).

With velocities :math:`v = (\dot r, \omega)`, :math:`\omega` in body frames, so that M is constant, one step solves

.. math::
    \tilde M v^+ - G^T\lambda - \sum_j B_j^T h\tau_j\mu_j &= M v + h f(q, v), \\
    G v^+ + \Sigma\lambda &= -\tfrac4h \Upsilon g + \Upsilon G v, \\
    B_j v^+ + v_s \mu_j &= w_j, \qquad \mu_j \in [-1, 1] \perp w_j,

and sets :math:`q^+ = q \boxplus h v^+` (2.16), with :math:`\Upsilon, \Sigma` of (2.9)–(2.11):

- :math:`f` is gravity in the frame of the tilted base, plus the motors' torque at standstill, including cogging.
- Signs follow (2.5) and (2.28); :math:`h(f + f_g)` has the wrong sign in (2.8), (2.18) and (2.21).
- **Velocity-dependent forces are centred.** In the leapfrog scheme :math:`v` applies half a step before :math:`q`,
  :math:`v^+` half a step after it. Viscous friction and back-EMF act on :math:`(v + v^+)/2`, and the
  gyroscopic torque is :math:`-\frac12(\omega\times J\omega^+ + \omega^+\times J\omega)`. Both are linear in
  :math:`v^+`: :math:`\tilde M = M + hC(v) + \frac h2\sum_j d_j B_j^T B_j`. The paper evaluates them at v, with an error
  O(h): at :math:`h d/J = 0.2` an estimated viscous coefficient would have an error of 10 %.
- **Dry friction** (third line) is (2.17) with constant bounds, regularised by the velocity :math:`v_s` at which it reaches
  :math:`\tau_j`; in the paper's terms :math:`\Sigma_t = v_s/(h\tau_j)`. With :math:`\mu` as unknown the problem is regular
  even for :math:`\tau_j = 0`. Contacts, whose friction is bounded by their normal force (E, U of 2.24), are in
  :mod:`stribeck.identify.mechanism.contacts`; parameters are not estimated through them.

**Solver.** Eliminating velocities and bilateral multipliers leaves a box-constrained complementarity problem, which is
solved by pivoting (:mod:`stribeck.identify.mechanism.complementarity`).

**Inverse dynamics.** Given :math:`v^+`, the multipliers follow from the lower lines (2.30, 2.31; b of 2.30 must be -a). The
residual of the first line is the external impulse of the step (2.29).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from stribeck.identify.mechanism import complementarity, contacts, rotation
from stribeck.identify.mechanism.contacts import BoundedImpulses, ContactRows, contact_rows
from stribeck.identify.mechanism.kinematics import Layout, Pose, stacked
from stribeck.identify.mechanism.mechanism import Mechanism, Physical, inertia_matrices
from stribeck.identify.mechanism.vectors import Vector, add, cos, cross, mul, scale, sin, split, sub
from stribeck.model.control_laws import ServoCommand, VoltageControl

BRIDGE = VoltageControl(gain=1.0, duty_max=1.0)
"""A voltage source at the winding."""


class BodyState(NamedTuple):
    """State of a mechanism.

    :param q: position of the centre of mass and quaternion of each body (nb, 7).
    :param v: velocity in the world frame and angular velocity in the body frame (nb, 6).
    """

    q: Any
    v: Any


class Softness(NamedTuple):
    r"""Diagonals of :math:`\Sigma` and :math:`\Upsilon`, m numbers each (2.9–2.11)."""

    sigma: Any
    upsilon: Any


class MultibodyDynamics:
    """Forward and inverse dynamics of a mechanism; all methods are pure functions."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.layout = Layout(mechanism)

    def softness(self, physical: Physical, h: Any) -> Softness:
        r""":math:`\gamma = 1/(1 + 4\tau/h)`, :math:`\Sigma = 4\epsilon\gamma/h^2`, :math:`\Upsilon = \gamma`, lists of m numbers.

        :math:`\epsilon` and :math:`\tau/h` are those of the regularization plus those of the joint; rotations have
        :math:`\epsilon/\ell^2`.
        """
        soft = self.mechanism.regularization
        sigma, upsilon = [], []
        for joint, translates in zip(self.layout.owner, self.layout.translation, strict=True):
            gamma = 1.0 / (1.0 + 4.0 * (soft.damping + physical.damping[joint]))
            compliance = soft.compliance + physical.compliance[joint]
            size = 1.0 if translates else soft.length**2
            sigma.append(4.0 * compliance * gamma / (size * h**2))
            upsilon.append(gamma)
        return Softness(sigma, upsilon)

    def mass_matrix(self, physical: Physical) -> Any:
        """M (6 nb, 6 nb), constant in body frames (2.3, 2.4)."""
        blocks = jnp.zeros((self.layout.bodies, 6, 6))
        blocks = blocks.at[:, :3, :3].set(physical.mass[:, None, None] * jnp.eye(3))
        blocks = blocks.at[:, 3:, 3:].set(inertia_matrices(physical.inertia))
        return jax.scipy.linalg.block_diag(*blocks)

    def gravity(self, physical: Physical) -> Vector:
        """Gravitational acceleration in the frame of a base that is tilted about x, then about its new y axis."""
        x, y = physical.tilt[0], physical.tilt[1]
        return scale(self.mechanism.gravity, (cos(x) * sin(y), -sin(x), -cos(x) * cos(y)))

    def _weight(self, physical: Physical) -> Any:
        fall = jnp.concatenate([jnp.stack(self.gravity(physical)), jnp.zeros(3)])
        return (physical.mass[:, None] * fall).reshape(-1)

    def _gyroscopic(self, physical: Physical, v: Any) -> Any:
        """C(v) (6 nb, 6 nb) with the centred gyroscopic torque C(v) v."""
        inertia = inertia_matrices(physical.inertia)
        omega = v[:, 3:]
        momentum = jnp.einsum("bij,bj->bi", inertia, omega)
        half = 0.5 * (_skew(omega) @ inertia - _skew(momentum))
        return jax.scipy.linalg.block_diag(*jnp.zeros((self.layout.bodies, 6, 6)).at[:, 3:, 3:].set(half))

    def drive(self, physical: Physical, pose: Pose, voltage: Any) -> tuple[list[Any], list[Any]]:
        """Torque at standstill and viscous coefficient of each joint, sums of motor and bearing."""
        stall, damping = self._cogging(physical, pose), [*physical.viscous]
        for k, motor in enumerate(self.mechanism.motors):
            constants = {"kt": physical.kt[k], "R": physical.resistance[k]}

            def torque(u: Any, speed: float, constants: Any = constants) -> Any:
                return BRIDGE.torque(constants, 1.0, ServoCommand(0.0, 1.0, u), speed)

            stall[motor.joint] = stall[motor.joint] + torque(voltage[k] + physical.voltage_offset[k], 0.0)
            damping[motor.joint] = damping[motor.joint] - torque(0.0, 1.0)
        return stall, damping

    def _cogging(self, physical: Physical, pose: Pose) -> list[Any]:
        cogging: list[Any] = [0.0] * len(self.mechanism.joints)
        if self.mechanism.ripples:
            coordinates = self.layout.coordinates(pose)
            for k, ripple in enumerate(self.mechanism.ripples):
                angle, (a, b) = ripple.order * coordinates[ripple.joint], physical.ripple[k]
                cogging[ripple.joint] = cogging[ripple.joint] + a * cos(angle) + b * sin(angle)
        return cogging

    def _dry(self, physical: Physical, inputs: Any) -> list[Any]:
        """Bound of dry friction of each joint, including brakes."""
        bounds = [physical.coulomb[j] for j in range(len(self.mechanism.joints))]
        for k, joint in enumerate(self.mechanism.brakes, start=len(self.mechanism.motors)):
            bounds[joint] = bounds[joint] + inputs[k]
        return bounds

    def step(
        self,
        physical: Physical,
        state: BodyState,
        voltage: Any,
        h: Any,
        push: Any = 0.0,
        brake: Any = 0.0,
        across: Any = (),
    ) -> BodyState:
        r"""The state one time step later.

        :param voltage: motor voltages during the step (nm,) [V], followed by brake torques [N m, N].
        :param h: time step [s].
        :param push: additional impulse p along the joints (nj,) [N m s, N s].
        :param brake: :math:`\kappa` of a damping impulse :math:`-\kappa Bv^+` (nj,).
        :param across: impulses along the constraints of joints with slack, :math:`\Delta p_u` of (3.6), then
            :math:`\Delta p_q - \Delta p_u` of (3.7), which moves without velocity (2 l,) [N s, N m s].
        """
        constraints = self.layout.constraints(physical, state.q)
        G, B = constraints.jacobian, constraints.motion
        drive = self.drive(physical, constraints.pose, voltage)
        stall, damping = (jnp.stack([jnp.asarray(x) for x in part]) for part in drive)
        sigma, upsilon = (stacked(part) for part in self.softness(physical, h))
        v = state.v.reshape(-1)
        coulomb = h * jnp.stack([jnp.asarray(x) for x in self._dry(physical, voltage)])
        drag = 0.5 * h * B.T @ (damping[:, None] * B)
        inertia = mass = self.mass_matrix(physical)
        loose = G[self.layout.loose]
        pushed, displaced = jnp.split(jnp.asarray(across), 2) if len(across) else [jnp.zeros(len(loose))] * 2
        right = mass @ v - drag @ v + h * self._weight(physical) + B.T @ (h * stall + push) + loose.T @ pushed
        mass = (
            mass
            + drag
            + h * self._gyroscopic(physical, state.v)
            + B.T @ ((brake + jnp.zeros(len(B)))[:, None] * B)
        )
        target = -(4.0 / h) * upsilon * constraints.deviation + upsilon * (G @ v)
        m = len(target)
        touching = self._touching(physical, state.q)
        rows = jnp.concatenate([G, B, *touching[1:]])
        solved = jnp.linalg.solve(mass, jnp.concatenate([rows.T, right[:, None]], axis=1))
        response, free = rows @ solved[:, :-1], solved[:, -1]
        held = response[:m, :m] + jnp.diag(sigma)
        right = jnp.concatenate([response[:m, m:], (target - G @ free)[:, None]], axis=1)
        lead = jnp.linalg.solve(held, right) if m else right
        reduced = response[m:, m:] - response[m:, :m] @ lead[:, :-1]
        constant = rows[m:] @ free + response[m:, :m] @ lead[:, -1]
        dry = self._bounded(physical, BoundedImpulses(reduced, constant, coulomb, self._slip), touching[0], h)
        multipliers = jnp.concatenate([lead[:, -1] - lead[:, :-1] @ dry, dry])
        v_new = (free + solved[:, :-1] @ multipliers).reshape(-1, 6)
        moved = v_new
        if len(loose) and len(across):
            moved = v_new + jnp.linalg.solve(inertia, loose.T @ displaced).reshape(-1, 6)
        return BodyState(rotation.plus(state.q, h * moved), v_new)

    @property
    def _slip(self) -> float:
        return self.mechanism.regularization.slip

    def _touching(self, physical: Physical, q: Any) -> ContactRows:
        """Gaps and rows of the contacts."""
        if not self.mechanism.contacts:
            none = jnp.zeros((0, 6 * self.layout.bodies))
            return ContactRows(jnp.zeros(0), none, none)
        return contact_rows(self.mechanism, physical, q)

    def _bounded(self, physical: Physical, problem: BoundedImpulses, gap: Any, h: Any) -> Any:
        """Impulses of dry friction, and of contacts if there are any."""
        W, c, coulomb, slip = problem
        if not self.mechanism.contacts:
            ones = jnp.ones(len(coulomb))
            return coulomb * complementarity.solve(W * coulomb + slip * jnp.eye(len(coulomb)), c, -ones, ones)
        soft = self.mechanism.regularization
        gamma = 1.0 / (1.0 + 4.0 * soft.damping)
        wanted = -4.0 / h * gamma * jnp.minimum(gap, 0.0) - jnp.maximum(gap, 0.0) / h
        return contacts.solve(problem, physical.grip, wanted, 4.0 * soft.compliance * gamma / h**2)

    def impulses(
        self,
        physical: Physical,
        state: BodyState,
        reached: Sequence[Any],
        reactions: Sequence[Any],
        voltage: Any,
        h: Any,
    ) -> tuple[list[list[Any]], list[list[Any]]]:
        r"""External impulses of steps with given final velocities and reactions (2.29–2.31).

        :param reached: velocities :math:`v^+` (nb, 6).
        :param reactions: :math:`\lambda`, m numbers for each of them.
        :returns: for each velocity 6 nb impulses [N s, N m s], and the m residuals :math:`\Sigma\lambda + Gv^+ +
            \frac4h\Upsilon g - \Upsilon Gv` of the second line [m/s, rad/s], which are 0 for the multipliers of (2.30).
        """
        layout = self.layout
        pose = layout.pose(physical, state.q)
        stall, damping = self.drive(physical, pose, voltage)
        dry = self._dry(physical, voltage)
        soft, slip = self.softness(physical, h), self.mechanism.regularization.slip
        held, moving = layout.rates(pose, state.v)
        pairs = zip(soft.upsilon, held, layout.deviation(pose), strict=True)
        target = [u * (rate - 4.0 / h * g) for u, rate, g in pairs]

        def impulse(v: Any, reaction: Any) -> tuple[list[Any], list[Any]]:
            rates, motions = layout.rates(pose, v)
            columns = zip(soft.sigma, reaction, rates, target, strict=True)
            gaps = [sigma * force + rate - wanted for sigma, force, rate, wanted in columns]
            drive = [
                h * (stall[j] - 0.5 * damping[j] * (moving[j] + motion))
                + h * dry[j] * complementarity.dry_friction(motion, slip)
                for j, motion in enumerate(motions)
            ]
            spread = layout.spread(pose, reaction, drive)
            external: list[Any] = []
            for b in range(layout.bodies):
                external += self._external(physical, b, state.v[b], v[b], spread[b], h)
            return external, gaps

        both = [impulse(v, reaction) for v, reaction in zip(reached, reactions, strict=True)]
        return [one[0] for one in both], [one[1] for one in both]

    def _external(self, physical: Physical, b: int, before: Any, after: Any, known: Any, h: Any) -> list[Any]:
        """Impulse (6) on body b in addition to gravity, gyroscopic torque and ``known``."""
        xx, yy, zz, xy, xz, yz = (physical.inertia[b][k] for k in range(6))
        inertia = ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
        weight = scale(h, self.gravity(physical))
        moved = scale(physical.mass[b], sub(sub(split(after), split(before)), weight))
        old, new = split(before[3:]), split(after[3:])
        spin_old, spin_new = mul(inertia, old), mul(inertia, new)
        gyroscopic = scale(0.5 * h, add(cross(old, spin_new), cross(new, spin_old)))
        turned = add(sub(spin_new, spin_old), gyroscopic)
        return [*sub(moved, known[0]), *sub(turned, known[1])]

    def simulate(self, physical: Physical, start: BodyState, voltage: Any, h: Any) -> BodyState:
        """States at the beginning of each step (T, …) for inputs (T, nm)."""

        def advance(state: BodyState, u: Any) -> tuple[BodyState, BodyState]:
            return self.step(physical, state, u, h), state

        return jax.lax.scan(advance, start, voltage)[1]


def _skew(v: Any) -> Any:
    r"""Matrices :math:`[v]_\times` (nb, 3, 3) of vectors (nb, 3)."""
    x, y, z = v.T
    zero = jnp.zeros_like(x)
    return jnp.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1).reshape(-1, 3, 3)
