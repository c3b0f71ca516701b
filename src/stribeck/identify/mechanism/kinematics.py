r"""Joint constraints, their Jacobians, and joint coordinates.

Each joint has frames :math:`F_A = R_A F`, :math:`F_B = R_B F` on its two bodies, z along its axis, F constant. With the
distance :math:`d = r_B + R_B b - r_A - R_A a` between the joint's points on both bodies and :math:`C = F_A^T F_B`, it has six
deviations: :math:`F_A^T d` and :math:`(C_{32}, -C_{31}, C_{21})`, which are small rotations about x, y, z. All but the one
along the joint coordinate are constrained to zero. With angular velocities :math:`\Omega = R\omega` in the world frame

.. math:: \tfrac{d}{dt} F_A^T d &= F_A^T\,(\dot r_B + \Omega_B \times R_B b - \dot r_A - \Omega_A \times R_A a
              - \Omega_A \times d), \\
          \dot C_{ij} &= (f_{B,j} \times f_{A,i}) \cdot (\Omega_B - \Omega_A).

G is formed only where the products :math:`Gv` or :math:`G^T\lambda` are not sufficient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from stribeck.identify.mechanism import rotation
from stribeck.identify.mechanism.mechanism import Mechanism, Physical
from stribeck.identify.mechanism.vectors import (
    IDENTITY,
    ZERO,
    Matrix,
    Vector,
    add,
    arctan2,
    cross,
    dot,
    mul,
    mul_transposed,
    scale,
    split,
    sub,
    total,
)
from stribeck.model.arrays import Array

HELD = {
    "revolute": (0, 1, 2, 3, 4),
    "prismatic": (0, 1, 3, 4, 5),
    "fixed": tuple(range(6)),
    "free": (),
}
"""Indices of the constrained deviations, by joint kind."""

PAIRS = ((1, 2, 1.0), (0, 2, -1.0), (0, 1, 1.0))
"""Small rotations about x, y, z: column j of F_B, column i of F_A, sign."""


class JointPose(NamedTuple):
    r"""Pose of a joint in the world frame.

    :param axes: columns of F_A.
    :param normals: signed :math:`f_{B,j} \times f_{A,i}` of the three rotations.
    :param deviation: all six deviations.
    :param to_parent: :math:`R_A a + d`, from the parent's centre of mass.
    :param to_child: :math:`R_B b`, from the child's centre of mass.
    :param turn: angle of the child about the axis [rad].
    """

    axes: tuple[Vector, ...]
    normals: tuple[Vector, ...]
    deviation: tuple[Any, ...]
    to_parent: Vector
    to_child: Vector
    turn: Any


class Pose(NamedTuple):
    """Rotation matrices of the bodies, starting with the world, and poses of the joints."""

    turns: tuple[Matrix, ...]
    joints: tuple[JointPose, ...]


class Constraints(NamedTuple):
    """Constraints in one configuration.

    :param deviation: g (m,) [m, rad].
    :param jacobian: G (m, 6 nb).
    :param motion: B, the Jacobian of the joint coordinates (nj, 6 nb); zero for fixed and free joints.
    """

    deviation: Any
    jacobian: Any
    motion: Any
    pose: Pose


class Layout:
    """Kinematics of a mechanism: constants of its joints, and functions of state and parameters.

    :param frames: F of the joints, as columns.
    :param held: deviations, of the six, that each joint constrains.
    :param owner: joint of each constrained deviation (m,).
    :param translation: whether each constrained deviation is a translation (m,).
    :param loose: indices of the constrained deviations of joints with slack (l,).
    :param rotates: whether the coordinate of a joint is an angle (nj,).
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.joints = mechanism.joints
        self.bodies = len(mechanism.bodies)
        self.frames = [frame_along(np.array(joint.axis)).T.tolist() for joint in self.joints]
        self.held = [HELD[joint.kind] for joint in self.joints]
        self.owner = [j for j, held in enumerate(self.held) for _ in held]
        self.translation = np.array([k < 3 for held in self.held for k in held], dtype=bool)
        self.loose = np.array([k for k, j in enumerate(self.owner) if self.joints[j].slack > 0.0], dtype=int)
        self.rotates = np.array([joint.kind == "revolute" for joint in self.joints])

    def zero_pose(self, physical: Physical) -> Any:
        """Configuration (nb, 7) of the zero pose."""
        return jnp.concatenate([physical.com, jnp.tile(jnp.array([1.0, 0, 0, 0]), (self.bodies, 1))], axis=1)

    def pose(self, physical: Physical, q: Any) -> Pose:
        """Rotations of the bodies and poses of the joints in a configuration (nb, 7)."""
        bodies = range(self.bodies)
        places = [ZERO, *(split(q[b]) for b in bodies)]
        turns = (IDENTITY, *(rotation.matrix(rotation.quaternion(q[b][3:])) for b in bodies))
        com = [ZERO, *(split(physical.com[b]) for b in bodies)]
        joints = [
            self._joint(split(physical.point[j]), places, turns, com, j) for j in range(len(self.joints))
        ]
        return Pose(turns, tuple(joints))

    def _joint(self, point: Vector, places: Any, turns: Any, com: Any, j: int) -> JointPose:
        A, B = self.joints[j].parent, self.joints[j].child
        ours = tuple(mul(turns[A], split(axis)) for axis in self.frames[j])
        theirs = tuple(mul(turns[B], split(axis)) for axis in self.frames[j])
        arm_a, arm_b = (mul(turns[k], sub(point, com[k])) for k in (A, B))
        d = sub(add(places[B], arm_b), add(places[A], arm_a))
        deviation = [dot(axis, d) for axis in ours]
        deviation += [sign * dot(ours[i], theirs[j]) for j, i, sign in PAIRS]
        normals = tuple(scale(sign, cross(theirs[j], ours[i])) for j, i, sign in PAIRS)
        turn = arctan2(dot(ours[1], theirs[0]), dot(ours[0], theirs[0]))
        return JointPose(ours, normals, tuple(deviation), add(arm_a, d), arm_b, turn)

    def deviation(self, pose: Pose) -> list[Any]:
        """The m constrained deviations."""
        return [at.deviation[k] for held, at in zip(self.held, pose.joints, strict=True) for k in held]

    def coordinates(self, pose: Pose) -> list[Any]:
        """Joint coordinates, nj [rad in (-π, π], m]; 0 for fixed and free joints."""
        pairs = zip(self.joints, pose.joints, strict=True)
        return [
            {"revolute": at.turn, "prismatic": at.deviation[2]}.get(joint.kind, 0.0 * at.turn)
            for joint, at in pairs
        ]

    def rates(self, pose: Pose, v: Any) -> tuple[list[Any], list[Any]]:
        """:math:`Gv` (m numbers) and joint velocities :math:`Bv` (nj numbers) for velocities (nb, 6)."""
        bodies = range(self.bodies)
        linear = [ZERO, *(split(v[b]) for b in bodies)]
        spin = [ZERO, *(mul(pose.turns[b + 1], split(v[b][3:])) for b in bodies)]
        deviation, motion = [], []
        for joint, held, at in zip(self.joints, self.held, pose.joints, strict=True):
            A, B = joint.parent, joint.child
            slide = sub(
                add(linear[B], cross(spin[B], at.to_child)), add(linear[A], cross(spin[A], at.to_parent))
            )
            turn = sub(spin[B], spin[A])
            six = [dot(axis, slide) for axis in at.axes] + [dot(normal, turn) for normal in at.normals]
            deviation += [six[k] for k in held]
            rates = {"revolute": dot(at.axes[2], turn), "prismatic": six[2]}
            motion.append(rates.get(joint.kind, 0.0 * six[0]))
        return deviation, motion

    def spread(self, pose: Pose, reaction: list[Any], drive: list[Any]) -> list[tuple[Vector, Vector]]:
        r""":math:`G^T\lambda + B^T\tau`: impulses on the nb bodies (linear in the world frame, angular in the body frame).

        :param reaction: :math:`\lambda`, m numbers.
        :param drive: :math:`\tau`, nj numbers.
        """
        force: list[list[Vector]] = [[] for _ in range(self.bodies + 1)]
        torque: list[list[Vector]] = [[] for _ in range(self.bodies + 1)]
        left = iter(reaction)
        for joint, held, at, along in zip(self.joints, self.held, pose.joints, drive, strict=True):
            by = {k: next(left) for k in held}
            F = total(scale(by[k], at.axes[k]) for k in range(3) if k in by)
            N = total(scale(by[k], at.normals[k - 3]) for k in range(3, 6) if k in by)
            if joint.kind == "revolute":
                N = add(N, scale(along, at.axes[2]))
            elif joint.kind == "prismatic":
                F = add(F, scale(along, at.axes[2]))
            force[joint.child].append(F)
            torque[joint.child] += [N, cross(at.to_child, F)]
            force[joint.parent].append(scale(-1.0, F))
            torque[joint.parent] += [scale(-1.0, N), cross(F, at.to_parent)]
        return [
            (total(force[b]), mul_transposed(pose.turns[b], total(torque[b])))
            for b in range(1, self.bodies + 1)
        ]

    def constraints(self, physical: Physical, q: Any) -> Constraints:
        """Deviations and Jacobians of a configuration (nb, 7)."""
        pose = self.pose(physical, q)
        unit = jnp.eye(6 * self.bodies).reshape(-1, self.bodies, 6)

        def rows(v: Any) -> tuple[Any, Any]:
            held, motion = self.rates(pose, v)
            return stacked(held), jnp.stack(motion)

        jacobian, motion = jax.vmap(rows)(unit)
        return Constraints(stacked(self.deviation(pose)), jacobian.T, motion.T, pose)


def stacked(numbers: Sequence[Any]) -> Any:
    """An array of numbers (k,), also of none."""
    return jnp.stack([jnp.asarray(number) for number in numbers]) if numbers else jnp.zeros(0)


def frame_along(axis: Array) -> Array:
    """Rotation matrix (3, 3) whose third column is the unit vector ``axis``; the identity for z."""
    helper = np.eye(3)[0] if abs(axis[0]) < 0.9 else np.eye(3)[1]
    x = helper - axis * (axis @ helper)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(axis, x), axis], axis=1)
