"""Drives of joints that are known by torque and motion alone, not by motor and firmware: of arms, robots, tables, mechanisms."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from stribeck.files.actuators import load_actuator
from stribeck.model.actuator import MOTOR_UNITS, Actuator, Datasheet, JointUnits
from stribeck.model.control_laws import TorqueControl
from stribeck.model.estimate import Estimate, fixed
from stribeck.model.joint import Drive
from stribeck.model.law import FrictionLaw
from stribeck.model.terms import FRICTION_PARAMETERS

ACTUATORS: Mapping[JointUnits, str] = {"rotary": "torque_joint", "linear": "force_axis"}
"""Actuator of such a joint by its units."""

CONSTANTS = {"ratio": 1.0, "q_offset": 0.0}
"""Parameters of these actuators that are not identified."""


def torque_actuator(
    units: JointUnits,
    *,
    largest: float = math.inf,
    resolution: float | None = None,
    derivative_gain: float | None = None,
) -> Actuator:
    """The actuator of a joint that a controller drives by torque.

    :param largest: limit of its torque [N m or N], infinite if unknown.
    :param resolution: of its position [rad or m], by default the least.
    :param derivative_gain: torque per K_d and velocity, 1 if its gains are in N m s/rad (N s/m).
    """
    actuator = load_actuator(ACTUATORS[units])
    control = cast(TorqueControl, actuator.control)
    if math.isfinite(largest):
        actuator = replace(actuator, datasheet=Datasheet({"peak_torque": largest}))
        control = replace(control, torque_max=largest)
    return replace(
        actuator,
        control=replace(control, derivative_gain=derivative_gain),
        resolution=resolution or actuator.resolution,
    )


def torque_drive(
    actuator: Actuator, law: FrictionLaw, estimates: Mapping[str, Estimate], **known: Any
) -> Drive:
    """The drive of a joint that is known by torque and motion alone.

    :param actuator: of :func:`torque_actuator`.
    :param estimates: of armature and friction, and of other parameters of the joint such as its delay; parameters of the law without
        one take their usual values.
    :param known: further fields of :class:`Drive`.
    """
    constants = {
        name: fixed(value, parameter_unit(name, actuator.units)) for name, value in CONSTANTS.items()
    }
    stated = constants | dict(estimates)
    values = {}
    for name in (*CONSTANTS, "armature", *law.parameter_names):
        usual = FRICTION_PARAMETERS[name].value if name in FRICTION_PARAMETERS else 0.0
        values[name] = stated[name].value if name in stated else usual
    return Drive(actuator, law, values, stated=stated, **known)


def parameter_unit(name: str, units: JointUnits) -> str:
    """Unit of a parameter of a rotary or linear joint."""
    if name in FRICTION_PARAMETERS:
        return FRICTION_PARAMETERS[name].unit(units)
    return MOTOR_UNITS[name][units]
