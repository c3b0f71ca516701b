"""First guess of the base pose and of the marker positions in the flange frame, using the nominal arm.

Alternates between two problems with closed-form solutions: the base pose for given markers (orthogonal Procrustes
problem, Kabsch 1976), and the markers for a given base pose (medians over the poses).
"""

from __future__ import annotations

import numpy as np

from stribeck.identify.geometry.chain import SerialChain, move
from stribeck.identify.geometry.robust_fit import PointData
from stribeck.model.arrays import Array

ROUNDS = 60


def align(chain: SerialChain, data: PointData) -> tuple[Array, Array]:
    """Base pose (4, 4) and marker positions in the flange frame (k, 3) [m]."""
    motion = move(chain, np.eye(4), chain.magnitudes(data.positions))
    markers = np.zeros(data.points.shape[1:])
    for _ in range(ROUNDS):
        base = rigid_motion(motion.points(markers).reshape(-1, 3), data.points.reshape(-1, 3))
        seen = (data.points - base[:3, 3]) @ base[:3, :3] - motion.position[:, None]
        markers = np.median(seen @ motion.rotation, axis=0)
    return base, markers


def rigid_motion(source: Array, target: Array) -> Array:
    """Pose (4, 4) that maps points (n, 3) onto target points with the least sum of squared distances."""
    centre, aim = source.mean(axis=0), target.mean(axis=0)
    u, _, vt = np.linalg.svd((source - centre).T @ (target - aim))
    handed = np.diag([1.0, 1.0, np.sign(np.linalg.det(vt.T @ u.T))])
    pose = np.eye(4)
    pose[:3, :3] = vt.T @ handed @ u.T
    pose[:3, 3] = aim - pose[:3, :3] @ centre
    return pose
