r"""What samples tell of a motor on a joint: stall torque per volt :math:`K_t/R` and total damping :math:`K_t^2/R + b`.

Voltage and motion show these two alone; :math:`K_t`, R and the joint's viscous friction b share them, so that they may be
told where none of the three is. :math:`\sigma^2 = g^TCg` with g the derivatives and C the covariance of what is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stribeck.multibody.dynamics import MultibodyDynamics
from stribeck.multibody.estimation import MechanismEstimate
from stribeck.multibody.mechanism import Mechanism

QUANTITIES = ("stall_torque_per_volt", "damping")


def drives(estimate: MechanismEstimate) -> dict[str, dict[str, Mapping[str, Any]]]:
    """By motors: ``stall_torque_per_volt`` [N m/V] and ``damping`` [N m s/rad], value and interval.

    The interval is ``None`` where the samples do not tell it.
    """
    mechanism, known = estimate.mechanism, estimate.sensitivity
    free = [k for k, parameter in enumerate(mechanism.parameters) if parameter.free]
    with jax.enable_x64():
        values = jnp.asarray(mechanism.values())
        found = np.asarray(_quantities(mechanism, values))
        slopes = np.asarray(jax.jacfwd(lambda x: _quantities(mechanism, x))(values))[..., free]
    told: dict[str, dict[str, Mapping[str, Any]]] = {}
    for motor, row, slope in zip(mechanism.motors, found, slopes, strict=True):
        told[motor.name] = {}
        for name, value, g in zip(QUANTITIES, row, slope, strict=True):
            half = known.half_width(g)
            interval = [float(value) - half, float(value) + half] if np.isfinite(half) else None
            told[motor.name][name] = {"value": float(value), "interval": interval}
    return told


def _quantities(mechanism: Mechanism, values: Any) -> Any:
    """Both quantities of all motors (nm, 2), from the torque law of the dynamics."""
    physical = mechanism.physical(values)._replace(ripple=jnp.zeros((len(mechanism.ripples), 2)))
    physical = physical._replace(voltage_offset=jnp.zeros(len(mechanism.motors)))
    dynamics = MultibodyDynamics(mechanism)
    pose = dynamics.layout.pose(physical, dynamics.layout.zero_pose(physical))
    still, damping = dynamics.drive(physical, pose, jnp.ones(len(mechanism.motors)))
    rows = [[still[motor.joint], damping[motor.joint]] for motor in mechanism.motors]
    return jnp.asarray(rows).reshape(len(rows), 2)
