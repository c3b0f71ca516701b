r"""Rigid-body dynamics of a kinematic tree for real-time use: numpy only, without a loop over joints.

.. math:: M(q)\,\dot v + h(q, v) = \tau, \qquad h = C(q, v)\,v + g(q)

Symbols, all in the frame of the base: :math:`T_i` pose of body i (4, 4), :math:`P_i` its pseudo-inertia
(:mod:`stribeck.rigid.tree`), :math:`S_k` the upper three rows (3, 4) of the twist matrix of joint k at unit
speed: a point x moves with :math:`\dot x = S_k v_k (x, 1)`. With the sums over the joints k that
carry body i and over the bodies i that joint j carries,

.. math::
    V_i &= \sum_k S_k v_k, \qquad
    W_i = \ddot T_i T_i^{-1} = \sum_k S_k \dot v_k + (2 V_k - S_k v_k)\,S_k v_k, \\
    \tau_j &= \Big\langle S_j, \sum_i (W_i - G) P_i \Big\rangle, \qquad
    M_{jk} = \Big\langle S_j, S_k \sum_{i \text{ behind } j, k} P_i \Big\rangle

where :math:`\langle A, B \rangle` sums the products of entries, and G holds the acceleration of gravity in its last
column. The sums are products with the 0/1 matrix of ancestors, so a step takes about forty numpy calls for any number of
joints; a recursive Newton-Euler algorithm takes as many per joint.

Sources: Featherstone, Rigid Body Dynamics Algorithms, 2008, doi 10.1007/978-1-4899-7560-7, ch. 5 (inverse dynamics of
trees) and 6 (composite-rigid-body mass matrix); with (4, 4) matrices: Hollerbach, A Recursive Lagrangian Formulation of
Manipulator Dynamics, IEEE Trans. Systems, Man, and Cybernetics 10 (1980).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stribeck.errors import ConfigError
from stribeck.model.arrays import Array
from stribeck.model.bench import STANDARD_GRAVITY
from stribeck.rigid.tree import BASE, KinematicTree, TreeJoint, cross_matrix

GRAVITY = (0.0, 0.0, -STANDARD_GRAVITY)
"""Acceleration of free fall in the frame of an upright base [m/s²]."""

MOVING = ("revolute", "prismatic")


class RigidBodyModel:
    """Dynamics of a robot with n joints on a fixed base.

    Positions q, velocities v and torques are (n,) in the order of the joints: [rad], [rad/s], [N m] for revolute
    joints, [m], [m/s], [N] for prismatic ones. Calls check nothing; NaN in gives NaN out.

    :param tree: joints and bodies; fixed joints are merged.
    :param gravity: acceleration of free fall (3,) in the frame of the base [m/s²]; differs for a wall-mounted robot.
    :param armature: inertia of the rotors at their joints (n,) [kg m² or kg], added to the diagonal of M; none if
        left out. The gyroscopic effect of rotors is neglected.
    """

    def __init__(
        self, tree: KinematicTree, gravity: npt.ArrayLike = GRAVITY, armature: npt.ArrayLike | None = None
    ) -> None:
        if any(joint.kind not in MOVING for joint in tree.joints):
            tree = tree.reduced([joint.name for joint in tree.joints if joint.kind in MOVING])
        if not tree.joints:
            raise ConfigError("no joint moves: at least one must be revolute or prismatic")
        self.tree = tree
        self.gravity_vector: Array = _vector(gravity, "gravity", 3)
        n = len(tree.joints)
        self.armature: Array = np.zeros(n) if armature is None else _vector(armature, "armature", n)
        if np.any(self.armature < 0.0):
            raise ConfigError(
                f"armature: inertia of rotors must not be negative, found {self.armature.min():g} kg m^2"
            )
        self._ready(tree)

    def _ready(self, tree: KinematicTree) -> None:
        n = len(tree.joints)
        below = tree.ancestors()
        self._below = below.astype(np.float64)
        self._above = np.ascontiguousarray(self._below.T)
        self._half = self._below - 0.5 * np.eye(n)
        self._armature = np.diag(self.armature) if self.armature.any() else None
        self._slides = np.flatnonzero([joint.kind == "prismatic" for joint in tree.joints])
        # Poses in the parent are linear in (sin q, cos q), or in q; the last entry is the base.
        self._still = np.zeros((n + 1, 1, 16))
        self._moved = np.zeros((n + 1, 2, 16))
        self._twists = np.zeros((n, 3, 4))
        self._inertias = np.array([joint.pseudo_inertia for joint in tree.joints])
        self._still[n] = np.eye(4).reshape(1, 16)
        for i, joint in enumerate(tree.joints):
            sine, cosine = np.zeros((4, 4)), np.zeros((4, 4))
            still = np.eye(4)
            if joint.kind == "prismatic":
                sine[:3, 3] = self._twists[i, :, 3] = joint.axis
            else:
                turn = cross_matrix(joint.axis)
                sine[:3, :3] = self._twists[i, :, :3] = turn
                cosine[:3, :3] = -turn @ turn
                still[:3, :3] += turn @ turn
            self._still[i] = (joint.placement @ still).reshape(1, 16)
            self._moved[i] = [(joint.placement @ part).reshape(16) for part in (sine, cosine)]
        # Poses in the base by doubling: after round r the product over 2^r joints, and the index of their ancestor.
        step = np.array([n if joint.parent == BASE else joint.parent for joint in tree.joints] + [n])
        self._steps = []
        while np.any(step != n):
            self._steps.append(step)
            step = step[step]

    def __len__(self) -> int:
        return len(self.tree.joints)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the joints, in the order of all arrays."""
        return self.tree.names

    def poses(self, q: Array) -> Array:
        """Poses of the joints' frames in the frame of the base (n, 4, 4) at positions (n,)."""
        n = len(self)
        factors = np.zeros((n + 1, 1, 2))
        sines = factors[:n, 0, 0]
        np.sin(q, out=sines)
        np.cos(q, out=factors[:n, 0, 1])
        if self._slides.size:
            sines[self._slides] = q[self._slides]
        poses: Array = factors @ self._moved
        poses += self._still
        poses = poses.reshape(n + 1, 4, 4)
        for step in self._steps:
            poses = poses.take(step, axis=0) @ poses
        return poses[:n]

    def _state(self, q: Array) -> tuple[Array, Array]:
        """Twists of the joints (n, 3, 4) and pseudo-inertias of the bodies (n, 4, 4), in the frame of the base."""
        poses = self.poses(q)
        turns = poses[:, :3, :3]
        twists: Array = turns @ self._twists
        spins = twists[:, :, :3] @ turns.transpose(0, 2, 1)
        twists[:, :, 3:] -= spins @ poses[:, :3, 3:]
        twists[:, :, :3] = spins
        return twists, poses @ self._inertias @ poses.transpose(0, 2, 1)

    def _velocities(self, twists: Array, v: Array) -> tuple[Array, Array]:
        """Velocities that each joint adds, and velocities of the bodies (n, 3, 4)."""
        joint_velocities = twists * v[:, None, None]
        return joint_velocities, (self._below @ joint_velocities.reshape(-1, 12)).reshape(-1, 3, 4)

    def _torque(self, twists: Array, forces: Array) -> Array:
        """Joint torques (n,) from forces on bodies (n, 3, 4)."""
        n = len(twists)
        felt: Array = (twists.reshape(n, 12) * (self._above @ forces.reshape(n, 12))).sum(axis=1)
        return felt

    def _bias(self, state: tuple[Array, Array], v: Array) -> Array:
        twists, inertias = state
        own, velocities = self._velocities(twists, v)
        velocities += velocities
        velocities -= own
        rates = velocities[:, :, :3] @ own
        accelerations = (self._below @ rates.reshape(-1, 12)).reshape(-1, 3, 4)
        accelerations[:, :, 3] -= self.gravity_vector
        return self._torque(twists, accelerations @ inertias)

    def _mass_matrix(self, state: tuple[Array, Array]) -> Array:
        twists, inertias = state
        n = len(twists)
        composite = (self._above @ inertias.reshape(n, 16)).reshape(n, 4, 4)
        half: Array = (twists @ composite).reshape(n, 12) @ twists.reshape(n, 12).T
        half *= self._half
        matrix: Array = half + half.T
        if self._armature is not None:
            matrix += self._armature
        return matrix

    def mass_matrix_and_bias(self, q: npt.ArrayLike, v: npt.ArrayLike) -> tuple[Array, Array]:
        r"""M (n, n) and :math:`h = C v + g` (n,), with :math:`M \dot v + h = \tau`."""
        state = self._state(np.asarray(q, dtype=np.float64))
        return self._mass_matrix(state), self._bias(state, np.asarray(v, dtype=np.float64))

    def jacobian(self, q: npt.ArrayLike, point: npt.ArrayLike = (0.0, 0.0, 0.0)) -> Array:
        """Jacobian (6, n) of a point that the last joint moves: linear [m or 1] and angular velocity [1] per velocity of a joint.

        :param point: in the frame of the last joint (3,) [m]; the velocities are in the frame of the base.
        """
        at = np.asarray(q, dtype=np.float64)
        twists, _ = self._state(at)
        pose = self.poses(at)[-1]
        place = pose[:3, :3] @ np.asarray(point, dtype=np.float64) + pose[:3, 3]
        moves = self.tree.ancestors()[-1]
        spins = twists[:, :, :3] * moves[:, None, None]
        linear = (spins @ place + twists[:, :, 3] * moves[:, None]).T
        return np.vstack([linear, spins[:, 2, 1], spins[:, 0, 2], spins[:, 1, 0]])


def _vector(values: npt.ArrayLike, what: str, size: int) -> Array:
    vector = np.array(values, dtype=np.float64)
    if vector.shape != (size,) or not np.all(np.isfinite(vector)):
        raise ConfigError(f"{what}: expected {size} finite numbers, found {values!r}")
    return vector


__all__ = ["GRAVITY", "KinematicTree", "RigidBodyModel", "TreeJoint"]
