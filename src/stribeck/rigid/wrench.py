r"""Force and moment at a tool from torques of joints, :math:`\tau = J^T w`.

With six joints or more w has six components; with three to five a force alone is determined, at a point where nothing twists.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stribeck.errors import ConfigError
from stribeck.model.arrays import Array

SINGULAR = 1e-2
"""Smallest singular value of the Jacobian, per its largest, with which a wrench is determined [1]."""


class Wrench(NamedTuple):
    """What acts on a tool, in the frame of the base; the moment is about the point at which the force acts.

    :param force: (3,) [N].
    :param moment: (3,) [N m]; NaN with fewer than six joints.
    :param band: half-width of force and moment (6,); infinite near singular poses.
    """

    force: Array
    moment: Array
    band: Array


def wrench_of(torque: Array, band: Array, jacobian: Array) -> Wrench:
    r"""The wrench that explains torques of joints best, by the pseudo-inverse of :math:`J^T`.

    :param torque: of the joints (n,) [N m].
    :param band: half-widths of theirs (n,) [N m]; those of the wrench follow with the magnitudes of the pseudo-inverse.
    :param jacobian: J (6, n), linear velocity first, of :meth:`RigidBodyModel.jacobian`.
    :raises ConfigError: with fewer than three joints.
    """
    count = jacobian.shape[1]
    if count < 3:
        raise ConfigError(
            f"a wrench needs at least three joints, found {count}: use the torques of the joints instead"
        )
    rows = 6 if count >= 6 else 3
    used = jacobian[:rows].T
    sizes = np.linalg.svd(used, compute_uv=False)
    inverse = np.linalg.pinv(used, rcond=SINGULAR)
    values, widths = np.full(6, np.nan), np.full(6, np.nan)
    values[:rows], widths[:rows] = inverse @ torque, np.abs(inverse) @ band
    if sizes[-1] < SINGULAR * sizes[0]:
        widths[:rows] = np.inf
    return Wrench(values[:3], values[3:], widths)
