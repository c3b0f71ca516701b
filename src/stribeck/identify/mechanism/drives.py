r"""Stall torque per volt :math:`K_t/R` and total damping :math:`K_t^2/R + b` of a joint with a motor.

Voltage and motion determine only these two combinations of :math:`K_t`, R and the joint's viscous friction b, which may
individually be undetermined. Variances are :math:`\sigma^2 = g^TCg` with the derivatives g and the covariance C of the
parameters.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stribeck.identify.common.quantiles import estimate_about
from stribeck.identify.mechanism.dynamics import MultibodyDynamics
from stribeck.identify.mechanism.estimation import MechanismEstimate
from stribeck.identify.mechanism.mechanism import Mechanism
from stribeck.model.estimate import Estimate

QUANTITIES = {"stall_torque_per_volt": "N m/V", "damping": "N m s/rad"}


def drives(estimate: MechanismEstimate) -> dict[str, dict[str, Estimate]]:
    """:data:`QUANTITIES` of each motor, without an interval where the samples do not determine them."""
    mechanism = estimate.mechanism
    free = [k for k, parameter in enumerate(mechanism.parameters) if parameter.free]
    with jax.enable_x64():
        values = jnp.asarray(mechanism.values())
        quantities = np.asarray(_quantities(mechanism, values))
        slopes = np.asarray(jax.jacfwd(lambda x: _quantities(mechanism, x))(values))[..., free]

    def one(value: float, unit: str, slope: Any) -> Estimate:
        return estimate_about(value, unit, estimate.sensitivity.half_width(slope))

    return {
        motor.name: {
            name: one(value, unit, slope)
            for (name, unit), value, slope in zip(QUANTITIES.items(), row, gradients, strict=True)
        }
        for motor, row, gradients in zip(mechanism.motors, quantities.tolist(), slopes, strict=True)
    }


def _quantities(mechanism: Mechanism, values: Any) -> Any:
    """Both quantities of all motors (nm, 2), from the motor torque in the dynamics."""
    motors = mechanism.motors
    physical = mechanism.physical(values)._replace(
        ripple=jnp.zeros((len(mechanism.ripples), 2)), voltage_offset=jnp.zeros(len(motors))
    )
    dynamics = MultibodyDynamics(mechanism)
    pose = dynamics.layout.pose(physical, dynamics.layout.zero_pose(physical))
    still, damping = dynamics.drive(physical, pose, jnp.ones(len(motors)))
    rows = [[still[motor.joint], damping[motor.joint]] for motor in motors]
    return jnp.asarray(rows).reshape(len(rows), 2)
