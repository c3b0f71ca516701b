r"""Drives of a mechanism: friction of the joints that have a motor, and what voltage and motion determine of the motor.

Voltage and motion determine only two combinations of :math:`K_t`, R and the joint's viscous friction b, which may
individually be undetermined: the stall torque per volt :math:`K_t/R` and the total damping :math:`K_t^2/R + b`. Variances are
:math:`\sigma^2 = g^TCg` with the derivatives g and the covariance C of the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stribeck.errors import ParameterFileError
from stribeck.files.drives import Drives, MachineParameters, read_drives
from stribeck.files.schema import check_keys
from stribeck.files.torque_drives import parameter_unit, torque_actuator, torque_drive
from stribeck.files.versions import versions
from stribeck.identify.common.quantiles import estimate_about
from stribeck.identify.mechanism.dynamics import MultibodyDynamics
from stribeck.identify.mechanism.estimation import MechanismEstimate
from stribeck.identify.mechanism.mechanism import Mechanism
from stribeck.identify.mechanism.model_file import MechanismModel
from stribeck.model.actuator import JointUnits
from stribeck.model.estimate import Estimate, fixed
from stribeck.model.joint import Drive
from stribeck.model.law import LAWS
from stribeck.model.parameters import ParameterSet
from stribeck.model.provenance import Provenance, Runs, SearchRecord
from stribeck.model.terms.ripple import RIPPLE, SECOND_RIPPLE
from stribeck.model.verdict import Verdict

QUANTITIES = {"stall_torque_per_volt": "N m/V", "damping": "N m s/rad"}
FRICTION = ("friction_base", "friction_viscous")
"""The bound of dry friction and the viscous friction of a joint, by their names in friction laws."""

WAVES = (RIPPLE, SECOND_RIPPLE)
"""Terms for the ripples of a joint."""


def motors_of(estimate: MechanismEstimate) -> dict[str, dict[str, Estimate]]:
    """:data:`QUANTITIES` of each motor, without an interval where the samples do not determine them."""
    rows = _estimated(estimate, _motor_quantities, QUANTITIES.values())
    return {
        motor.name: dict(zip(QUANTITIES, row, strict=True))
        for motor, row in zip(estimate.mechanism.motors, rows, strict=True)
    }


def mechanism_drives(
    model: MechanismModel, estimate: MechanismEstimate, verdict: Verdict, runs: Sequence[str]
) -> Drives:
    """The drives of the joints that have a motor, and all parameters as those of the machine.

    :param runs: names of the fitted recordings.
    """
    mechanism, motors = estimate.mechanism, motors_of(estimate)
    joints: dict[str, Drive] = {}
    for motor in mechanism.motors:
        joint = mechanism.joints[motor.joint]
        units: JointUnits = "rotary" if joint.kind == "revolute" else "linear"
        (row,) = _estimated(
            estimate,
            lambda m, x, k=motor.joint: jnp.stack([m.physical(x).coulomb[k], m.physical(x).viscous[k]])[None],
            [parameter_unit(name, units) for name in FRICTION],
        )
        inertia = fixed(0.0, parameter_unit("armature", units))
        waves = _waves(estimate, motor.joint)
        found = {"armature": inertia, **dict(zip(FRICTION, row, strict=True)), **motors[motor.name]}
        for term, wave in zip(WAVES, waves, strict=False):
            found |= dict(zip(term.names, wave, strict=True))
        law = LAWS["m1"].with_parameters(found)
        joints[joint.name] = torque_drive(
            torque_actuator(units), law, found, statements=_statements(len(waves)), verdict=verdict
        )
    provenance = Provenance(
        runs=Runs("as given", tuple(runs)),
        search=SearchRecord(  # the step is that of the mechanism: a simulation of the drive alone has one of its own
            method="estimate",
            status=estimate.solution.status.value,
            settings={"ratio": model.settings.ratio, "step": model.settings.step},
        ),
        versions=versions("numpy", "scipy", "jax", "casadi"),
    )
    return Drives(joints, MachineParameters(mechanism.name, estimate.estimates), verdict, provenance)


def values_to_start(path: Path, model: str, parameters: ParameterSet) -> Mapping[str, float]:
    """The values in a file of the mechanism ``model``.

    :raises ParameterFileError: for other files, missing or unknown parameters, and wrong units.
    """
    machine = read_drives(path).machine
    if machine.name != model:
        raise ParameterFileError(
            f"{path} belongs to {f'the mechanism {machine.name!r}' if machine.name else 'no mechanism'}, not to the mechanism {model!r}"
        )
    check_keys(machine.estimates, parameters.names, (), f"{path}: parameters", ParameterFileError)
    for name, one in machine.estimates.items():
        if one.unit != parameters[name].unit:
            raise ParameterFileError(
                f"{path}: {name}: unit {one.unit!r}, but the model has {parameters[name].unit!r}: identify again"
            )
    return {name: one.value for name, one in machine.estimates.items()}


def _waves(estimate: MechanismEstimate, joint: int) -> list[tuple[Estimate, ...]]:
    """Order, cosine and sine of the ripples of a joint, the largest first."""
    at = [k for k, ripple in enumerate(estimate.mechanism.ripples) if ripple.joint == joint]
    if not at:
        return []
    rows = _estimated(estimate, lambda m, x: m.physical(x).ripple[jnp.array(at)], ["N m", "N m"])
    orders = [fixed(float(estimate.mechanism.ripples[k].order), "1") for k in at]
    waves = [(order, *row) for order, row in zip(orders, rows, strict=True)]
    return sorted(waves, key=lambda wave: -math.hypot(wave[1].value, wave[2].value))


def _statements(waves: int) -> tuple[str, ...]:
    inertia = "the rotor inertia is included in the bodies of the mechanism"
    further = f"of {waves} torque ripples the {len(WAVES)} largest are in this file"
    return (inertia, further) if waves > len(WAVES) else (inertia,)


def _estimated(estimate: MechanismEstimate, function: Any, units: Any) -> list[list[Estimate]]:
    """Functions of the parameters (rows, quantities) as estimates; those of no free parameter are fixed.

    A quantity that is a parameter has the estimate of that parameter.
    """
    mechanism, names = estimate.mechanism, estimate.mechanism.parameters.free_names
    free = [k for k, parameter in enumerate(mechanism.parameters) if parameter.free]
    with jax.enable_x64():
        values = jnp.asarray(mechanism.values())
        quantities = np.asarray(function(mechanism, values))
        slopes = np.asarray(jax.jacfwd(lambda x: function(mechanism, x))(values))[..., free]

    def one(value: float, unit: str, slope: Any) -> Estimate:
        if not slope.any():
            return fixed(value, unit)
        if np.count_nonzero(slope) == 1 and slope.max() == 1.0:
            own = estimate.estimates.get(names[int(np.argmax(slope))])
            if own is not None and own.unit == unit and math.isclose(own.value, value, rel_tol=1e-12):
                return own
        return estimate_about(value, unit, estimate.sensitivity.half_width(slope))

    return [
        [one(*each) for each in zip(row, units, gradients, strict=True)]
        for row, gradients in zip(quantities.tolist(), slopes, strict=True)
    ]


def _motor_quantities(mechanism: Mechanism, values: Any) -> Any:
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
