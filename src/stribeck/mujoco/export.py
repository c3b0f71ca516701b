r"""Export of a fit of law M1 as plain MJCF: joint attributes, an actuator and the required options.

Coulomb friction becomes MuJoCo's ``frictionloss``; viscous friction and the back-EMF of a voltage-driven motor become its
``damping``; the firmware becomes an affine actuator with a force range:

.. math::

    \tau_m = clip(k(\theta_d - \theta) - c\,\dot\theta, \pm\tau_{max}) - c_e\,\dot\theta

The coefficients are differences of the piecewise linear control law of :mod:`stribeck.core.actuator`. :func:`to_mjcf` is
the entry point; exports to other simulators can be added as functions with the same signature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import mujoco

from stribeck.core.actuator import (
    CurrentControl,
    ServoCommand,
    VoltageControl,
    initial_control_state,
    motor_torque,
)
from stribeck.errors import ConfigError
from stribeck.mujoco.joints import actuators_of, check_options, friction_solver, joint_named
from stribeck.mujoco.servo import Servo

SMALL = 1e-6
"""Position error [rad] and speed [rad/s] within which a control law is linear."""

LARGE = 1e6
"""Position error [rad] that saturates every servo."""

TIMESTEP = 0.002
"""MuJoCo's default time step [s]."""


@dataclass(frozen=True)
class PlainJoint:
    r"""A servo as attributes of plain MJCF.

    :param armature: apparent inertia of the rotor [kg m²].
    :param frictionloss: Coulomb friction [N m].
    :param damping: viscous friction and back-EMF, :math:`K_v + c_e` [N m s/rad].
    :param stiffness: torque per position error k [N m/rad].
    :param feedback: velocity feedback c within the force range [N m s/rad].
    :param force: maximum torque at rest :math:`\tau_{max}` [N m].
    :param notes: description of differences between the servo and plain MJCF.
    """

    armature: float
    frictionloss: float
    damping: float
    stiffness: float
    feedback: float
    force: float
    notes: tuple[str, ...]

    def check_timestep(self, timestep: float) -> None:
        """Check that explicit damping is stable with this time step, even without load.

        :raises ConfigError: if it is not.
        """
        longest = self.armature / (self.damping + self.feedback) if self.damping + self.feedback else timestep
        if timestep > longest:
            raise ConfigError(
                f"a time step of {timestep:g} s is too long for this servo: its damping stops the bare shaft in "
                f"{longest:.3g} s; use a shorter one"
            )


def to_mjcf(
    servo: Servo, joints: Sequence[str], model: Path | None = None, timestep: float | None = None
) -> tuple[str, tuple[str, ...]]:
    """Export a servo as a file to include or as a model with the servo at some joints; returns text and notes.

    :param joints: names of joints of the model.
    :param model: MJCF model to insert the servo into; ``None``: write a file to include.
    :param timestep: time step of the file to include [s]; default: 0.002.
    :raises ConfigError: for servos that MJCF cannot express, unsuitable joints, or a time step together with a model.
    """
    if model is None:
        return snippet(servo, joints, timestep or TIMESTEP), exported(servo).notes
    if timestep is not None:
        raise ConfigError(f"--timestep is of a file to include; {model} has its own")
    return export_onto(model, servo, joints)


def exported(servo: Servo) -> PlainJoint:
    """A servo as attributes of plain MJCF.

    :raises ConfigError: for laws, terms and effects that plain MJCF cannot express.
    """
    _check_expressible(servo)
    p = servo.parameters.values
    stiffness = _torque(servo, SMALL, 0.0) / SMALL
    force = _torque(servo, LARGE, 0.0)
    outside = (force - _torque(servo, LARGE, SMALL)) / SMALL
    inside = -_torque(servo, 0.0, SMALL) / SMALL - outside
    return PlainJoint(
        armature=p["armature"],
        frictionloss=p["friction_base"],
        damping=p["friction_viscous"] + _clean(outside, force),
        stiffness=stiffness,
        feedback=_clean(inside, force),
        force=force,
        notes=_notes(servo),
    )


def snippet(servo: Servo, joints: Sequence[str], timestep: float = TIMESTEP) -> str:
    """An MJCF file to include: options, a default class for the joints, and an actuator for each joint.

    :param joints: names of the joints of the model that will include it.
    :param timestep: the model's time step [s].
    :raises ConfigError: as for :func:`exported`; for a joint without a name, or named twice.
    """
    _check_names(joints)
    plain = exported(servo)
    plain.check_timestep(timestep)
    parameters = servo.parameters
    # The joint's name makes the class unique, as a model may include several such files.
    name = f"{parameters.actuator.name}_{parameters.law.name}_{joints[0]}"
    root = ElementTree.Element("mujoco")
    for text in (
        f"{parameters.actuator.title}, law {parameters.law.name.upper()}, K_p {servo.kp:g}, "
        f'{servo.voltage:g} V: give the joints class="{name}"',
        *plain.notes,
    ):
        root.append(ElementTree.Comment(f" {text.replace('--', '- -')} "))
    option = ElementTree.SubElement(root, "option", timestep=_text(timestep))
    ElementTree.SubElement(option, "flag", eulerdamp="disable")
    outer = ElementTree.SubElement(ElementTree.SubElement(root, "default"), "default", {"class": name})
    ElementTree.SubElement(outer, "joint", _joint_attributes(plain, timestep))
    ElementTree.SubElement(outer, "general", _actuator_attributes(plain))
    actuators = ElementTree.SubElement(root, "actuator")
    for joint in joints:
        ElementTree.SubElement(
            actuators, "general", {"name": f"{joint}_servo", "class": name, "joint": joint}
        )
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def export_onto(model: Path, servo: Servo, joints: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Insert the servo at some joints of an MJCF model; returns the model as text, and notes.

    An existing actuator of a joint keeps its name and position and is turned into the servo; otherwise one is added.
    Includes are resolved; paths of meshes and other files are unchanged.

    :raises ConfigError: as for :func:`exported`; for a model that cannot be read, or a joint that is missing or has several
        actuators.
    """
    _check_names(joints)
    plain = exported(servo)
    try:
        spec = mujoco.MjSpec.from_file(str(model))
        compiled = spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        raise ConfigError(f"{model}: {error}") from None
    check_options(compiled)
    timestep = float(compiled.opt.timestep)
    plain.check_timestep(timestep)
    for name in joints:
        joint = joint_named(compiled, name, servo)
        joint_actuators = actuators_of(compiled, joint)
        if len(joint_actuators) > 1:
            raise ConfigError(
                f"{model}: joint {name!r} has {len(joint_actuators)} actuators; leave one, which becomes the servo"
            )
        _apply_joint(spec.joint(name), plain, timestep)
        actuator = (
            spec.actuators[joint_actuators[0]] if joint_actuators else spec.add_actuator(name=f"{name}_servo")
        )
        _apply_actuator(actuator, plain, name, is_new=not joint_actuators)
    spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP)
    try:
        spec.compile()
        text: str = spec.to_xml()
    except (ValueError, mujoco.FatalError) as error:
        raise ConfigError(f"{model} with the servo: {error}") from None
    return text, (*plain.notes, *_integrator_notes(compiled))


def parts_of(model: Path) -> list[Path]:
    """An MJCF model and all files that it includes; their paths are relative to the model's folder.

    A file that cannot be read is listed, but its includes are not.
    """
    parts = [model]
    for path in parts:  # the list grows during the loop
        try:
            elements = ElementTree.parse(path).iter("include")  # noqa: S314  # a file that MuJoCo also reads
        except (OSError, ElementTree.ParseError):
            continue
        included = (model.parent / element.get("file", "") for element in elements)
        parts += [part for part in included if part not in parts]
    return parts


def _check_names(joints: Sequence[str]) -> None:
    if not all(joints) or len(set(joints)) < len(joints):
        raise ConfigError(f"expected distinct names of joints, found {', '.join(map(repr, joints))}")


def _integrator_notes(model: mujoco.MjModel) -> tuple[str, ...]:
    if model.opt.integrator == mujoco.mjtIntegrator.mjINT_EULER:
        return ()
    return (
        "the model's integrator is not Euler: damping and friction differ within a step from the simulation used for "
        'the fit; compare with integrator="Euler"',
    )


def _apply_joint(joint: mujoco.MjsJoint, plain: PlainJoint, timestep: float) -> None:
    solref, solimp = friction_solver(timestep)
    joint.armature, joint.frictionloss = plain.armature, plain.frictionloss
    joint.damping = _like(joint.damping, plain.damping)
    joint.solref_friction, joint.solimp_friction = solref, solimp
    joint.actfrclimited = mujoco.mjtLimited.mjLIMITED_FALSE  # the servo has its own range


def _apply_actuator(actuator: mujoco.MjsActuator, plain: PlainJoint, joint: str, *, is_new: bool) -> None:
    actuator.trntype, actuator.target = mujoco.mjtTrn.mjTRN_JOINT, joint
    positioned = actuator.biastype == mujoco.mjtBias.mjBIAS_AFFINE and (
        actuator.gainprm[0] == -actuator.biasprm[1]
    )
    if is_new or not positioned:  # the range comes from the model's defaults, or is not a position
        actuator.ctrllimited, actuator.inheritrange = mujoco.mjtLimited.mjLIMITED_FALSE, 0.0
    actuator.gear = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    actuator.dyntype = mujoco.mjtDyn.mjDYN_NONE
    actuator.actlimited, actuator.actrange = mujoco.mjtLimited.mjLIMITED_FALSE, [0.0, 0.0]
    actuator.gaintype, actuator.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
    gain, bias = [0.0] * len(actuator.gainprm), [0.0] * len(actuator.biasprm)
    gain[0], bias[1], bias[2] = plain.stiffness, -plain.stiffness, -plain.feedback
    actuator.gainprm, actuator.biasprm = gain, bias
    actuator.forcelimited, actuator.forcerange = mujoco.mjtLimited.mjLIMITED_TRUE, [-plain.force, plain.force]
    for name in ("damping", "armature", "delay", "nsample", "ctrlspec"):  # in newer versions
        if hasattr(actuator, name):
            setattr(actuator, name, _like(getattr(actuator, name), 0))


def _joint_attributes(plain: PlainJoint, timestep: float) -> dict[str, str]:
    solref, solimp = friction_solver(timestep)
    return {
        "armature": _text(plain.armature),
        "frictionloss": _text(plain.frictionloss),
        "damping": _text(plain.damping),
        "solreffriction": _text(*solref),
        "solimpfriction": _text(*solimp),
        "actuatorfrclimited": "false",
    }


def _actuator_attributes(plain: PlainJoint) -> dict[str, str]:
    return {  # all attributes, as the class inherits the model's defaults for other actuators
        "gear": "1",
        "ctrllimited": "false",
        "actlimited": "false",
        "dyntype": "none",
        "gaintype": "fixed",
        "gainprm": _text(plain.stiffness),
        "biastype": "affine",
        "biasprm": _text(0.0, -plain.stiffness, -plain.feedback),
        "forcelimited": "true",
        "forcerange": _text(-plain.force, plain.force),
    }


def _check_expressible(servo: Servo) -> None:
    law, actuator, control = (
        servo.parameters.law,
        servo.parameters.actuator,
        servo.parameters.actuator.control,
    )
    instead = "use stribeck.mujoco.Controller, which computes it in every step, or fit law m1 to the same recordings"
    beyond = [
        (law.name != "m1", f"law {law.name.upper()} ({law.title})"),
        (law.asymmetric, "friction that differs by direction"),
        (law.offset, "an offset torque"),
        (
            bool(actuator.active_effects - {"supply"}),
            f"the effect {', '.join(sorted(actuator.active_effects - {'supply'}))}",
        ),
        (isinstance(control, VoltageControl) and control.bridge == "coast", "a drive/coast bridge"),
        (bool(servo.ki), "an integral gain"),
        (bool(servo.supply_resistance), "the sag of a supply"),
        (servo.period is not None, "a firmware period"),
    ]
    for present, feature in beyond:
        if present:
            raise ConfigError(f"plain MJCF cannot express {feature}: {instead}")
    if not servo.kp:
        raise ConfigError(
            "kp is 0: a servo without a proportional gain does not follow its goal; give the firmware's gain"
        )


def _notes(servo: Servo) -> tuple[str, ...]:
    control, p = servo.parameters.actuator.control, servo.parameters.values
    notes = []
    if isinstance(control, VoltageControl):
        notes.append(
            "damping includes the back-EMF, so the joint is braked even where a real servo's torque is off"
        )
        if control.goal_speed is not None:
            notes.append(
                f"the firmware ramps its goal: change ctrl by no more than {control.goal_speed:.4g} rad/s"
            )
    if isinstance(control, CurrentControl) and "R" in p:
        fastest = (servo.voltage - p["R"] * control.current_max) / p["kt"]
        if fastest <= 0.0:
            raise ConfigError(
                f"plain MJCF cannot express a current that {servo.voltage:g} V cannot drive at rest: use "
                "stribeck.mujoco.Controller, or a higher supply"
            )
        notes.append(f"above {fastest:.3g} rad/s the supply bounds the torque of the real motor further")
    return tuple(notes)


def _torque(servo: Servo, error: float, velocity: float) -> float:
    """Motor torque at a position error and a velocity [N m]."""
    actuator = servo.parameters.actuator.with_used_terms(servo.gains)
    values = dict(servo.parameters.values)
    command = ServoCommand(error, 1.0, servo.voltage)
    state = initial_control_state(actuator, error)
    torque, _ = motor_torque(actuator, values, servo.gains, state, command, 0.0, velocity, 0.0)
    return float(torque)


def _clean(slope: float, force: float) -> float:
    """Round a slope to zero if it is only the rounding error of a difference of torques."""
    return slope if abs(slope) > 1e-8 * force else 0.0


def _like(current: object, value: float) -> object:
    """A number in the form that the MuJoCo version expects; newer versions use polynomials."""
    size = getattr(current, "size", 1)
    return value if size == 1 else [value] + [0.0] * (size - 1)


def _text(*values: float) -> str:
    """Format numbers for MJCF; adding zero removes the sign of negative zero."""
    return " ".join(f"{value + 0.0:.10g}" for value in values)
