r"""Conversion between the coordinates of a joint and those of its servo (as in its parameter file).

:math:`q = s\,q_{servo}/n + q_0`, and by conservation of power :math:`\tau = s\,n\,\tau_{servo}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stribeck.errors import ConfigError


@dataclass(frozen=True)
class JointMap:
    """Sign, gear ratio and offset of one joint, or arrays of several joints.

    :param sign: s, 1 or -1.
    :param ratio: n, turns of the servo per turn of the joint.
    :param offset: :math:`q_0`, position of the joint at servo position 0 [rad].
    :raises ConfigError: for a sign other than 1 and -1, a ratio that is not positive, or an offset that
        is not finite.
    """

    sign: Any = 1.0
    ratio: Any = 1.0
    offset: Any = 0.0

    def __post_init__(self) -> None:
        if not np.all(np.abs(self.sign) == 1.0):
            raise ConfigError(f"joint_map: sign must be 1 or -1, found {self.sign:g}")
        if not np.all(np.isfinite(self.ratio) & (np.asarray(self.ratio) > 0.0)):
            raise ConfigError(
                f"joint_map: ratio must be positive, found {self.ratio:g}: set the direction with sign"
            )
        if not np.all(np.isfinite(self.offset)):
            raise ConfigError(f"joint_map: offset must be finite, found {self.offset}")

    @classmethod
    def stacked(cls, maps: Sequence[JointMap]) -> JointMap:
        """The maps of several joints as one, with arrays (n,)."""
        return cls(*(np.array([getattr(m, name) for m in maps]) for name in ("sign", "ratio", "offset")))

    @cached_property
    def gear(self) -> Any:
        """The ratio with its sign, s n."""
        return self.sign * self.ratio

    def position(self, servo: Any) -> Any:
        """Position of the joint [rad] from that of the servo."""
        return servo / self.gear + self.offset

    def velocity(self, servo: Any) -> Any:
        """Velocity of the joint, or a difference of positions, from that of the servo."""
        return servo / self.gear

    def torque(self, servo: Any) -> Any:
        """Torque on the joint [N m] from that at the servo's shaft."""
        return self.gear * servo

    def effort(self, current: Any, torque_constant: Any) -> Any:
        r"""Torque on the joint [N m] of a motor current, :math:`s\,n\,k_t I`."""
        return self.torque(torque_constant * current)

    def inertia(self, servo: Any) -> Any:
        """Inertia at the joint [kg m²] of an inertia at the servo's shaft."""
        return self.gear**2 * servo

    def servo_position(self, joint: Any) -> Any:
        """Position of the servo [rad] from that of the joint."""
        return self.gear * (joint - self.offset)

    def servo_velocity(self, joint: Any) -> Any:
        """Velocity of the servo, or a difference of positions, from that of the joint."""
        return self.gear * joint

    def servo_torque(self, joint: Any) -> Any:
        """Torque at the servo's shaft [N m] from that on the joint."""
        return joint / self.gear
