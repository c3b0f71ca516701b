r"""Dynamics interface of the momentum observer, and a model of uncoupled joints: :math:`M \dot v + h = \tau`.

:class:`stribeck.rigid.rigid_body.RigidBodyModel` implements the same interface.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from stribeck.errors import ConfigError
from stribeck.model.arrays import Array
from stribeck.model.bench import Pendulum, gravity_torque, inertia


class Dynamics(Protocol):
    """Dynamics of n joints in SI units, as a momentum observer needs them."""

    def mass_matrix_and_bias(self, q: Array, v: Array) -> tuple[Array, Array]:
        r"""M (n, n) or its diagonal (n,), and :math:`h = C v + g` (n,), with :math:`M \dot v + h = \tau`.

        M may be shared: do not write to it.
        """


@dataclass(frozen=True, eq=False)
class IndependentJoints:
    """Uncoupled joints, each with a constant inertia and optionally the gravity torque of a pendulum.

    :param inertia: inertia of each joint, rotor included (n,) [kg m²].
    :param pendulums: loads and rods, with fields that are numbers or (n,); None: no gravity.
    :param q_offset: mounting offset of the pendulums, with the sign of :mod:`stribeck.model.bench` [rad].
    """

    inertia: npt.ArrayLike
    pendulums: Pendulum | None = None
    q_offset: npt.ArrayLike = 0.0

    def __post_init__(self) -> None:
        inertia = np.asarray(self.inertia, dtype=np.float64)
        if inertia.ndim != 1 or not inertia.size or not np.all(np.isfinite(inertia) & (inertia > 0.0)):
            raise ConfigError(
                f"inertia: expected one positive number per joint [kg m^2], found {self.inertia!r}"
            )
        for name, value in (*(self.pendulums or _NONE)._asdict().items(), ("q_offset", self.q_offset)):
            given = np.asarray(value, dtype=np.float64)
            if given.shape not in ((), inertia.shape) or not np.all(np.isfinite(given)):
                raise ConfigError(
                    f"{name}: expected one number or {inertia.size}, one per joint, found {value}"
                )

    def __len__(self) -> int:
        return len(self._diagonal)

    @cached_property
    def _diagonal(self) -> Array:
        return np.array(self.inertia, dtype=np.float64)

    @cached_property
    def _matrix(self) -> Array:
        matrix = np.diag(self._diagonal)
        matrix.setflags(write=False)
        return matrix

    @cached_property
    def _loads(self) -> tuple[Pendulum, Array] | None:
        if self.pendulums is None:
            return None
        arrays = [np.array(value, dtype=np.float64) for value in self.pendulums]
        return Pendulum(*arrays), np.array(self.q_offset, dtype=np.float64)

    def _pull(self, q: npt.ArrayLike) -> Array:
        """External torque of gravity (n,) [N m]."""
        if self._loads is None:
            return np.zeros(len(self))
        pendulums, offset = self._loads
        return np.asarray(gravity_torque(pendulums, np.asarray(q, dtype=np.float64), offset))

    def mass_matrix_and_bias(self, q: npt.ArrayLike, v: npt.ArrayLike) -> tuple[Array, Array]:
        """M (n, n), diagonal, and h (n,). M is the same read-only array in every call.

        M is the whole matrix, so that ``M @ v`` has the same meaning for all models.
        """
        return self._matrix, -self._pull(q)


_NONE = Pendulum(0.0, 0.0, 0.0)


class PendulumModel(IndependentJoints):
    r"""The pendulum bench: :math:`J = m l^2 + m_a l^2 / 3 + J_m`, :math:`h = (m + m_a/2) g l \sin(\theta + \theta_0)`.

    :param pendulum: load and rod; fields are numbers, or (n,) for n benches.
    :param armature: apparent rotor inertia at the output shaft [kg m²], a number or (n,).
    :param q_offset: mounting offset of the bench [rad], a number or (n,).
    """

    def __init__(self, pendulum: Pendulum, armature: Any, q_offset: npt.ArrayLike = 0.0) -> None:
        fields = Pendulum(*(np.asarray(value, dtype=np.float64) for value in pendulum))
        total = np.atleast_1d(inertia(fields, np.asarray(armature, dtype=np.float64)))
        super().__init__(total, pendulum, q_offset)
