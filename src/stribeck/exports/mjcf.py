"""Export as MJCF: joint attributes, an actuator and the required options, for law M1.

Coulomb friction becomes MuJoCo's ``frictionloss``, viscous friction its ``damping``; the actuator is that of
:mod:`stribeck.exports.mjcf_joint`.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Container, Sequence
from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np

from stribeck.errors import ConfigError, OutputError
from stribeck.evaluate.assessment import Stepping
from stribeck.exports.mjcf_joint import DC_MOTOR, ROUNDING, DcMotor, PlainJoint, exported
from stribeck.exports.mjcf_runs import parts_of, runs_of, servo_of_run
from stribeck.exports.task import ExportTask, JointServo, Written
from stribeck.model.arrays import Array
from stribeck.model.bench import inertia
from stribeck.model.joint import Servo
from stribeck.model.log import Batch
from stribeck.mujoco.bench import JOINT
from stribeck.mujoco.joints import actuators_of, check_options, friction_solver, joint_named

TIMESTEP = 0.002
"""MuJoCo's default time step [s]."""

CORNERS = ((0.0, 0.0, 0.0), (0.01, 0.0, 0.0), (0.0, 0.01, 0.0), (0.0, 0.0, 0.01))
FACES = ((1, 3, 2), (1, 2, 4), (2, 3, 4), (1, 4, 3))
OBJ = "\n".join(
    [*(f"v {x} {y} {z}" for x, y, z in CORNERS), *(f"f {i} {j} {k}" for i, j, k in FACES)]
).encode()
STL = struct.pack("<80xI", len(FACES)) + b"".join(
    struct.pack("<12fH", *(0.0,) * 3, *(c for i in face for c in CORNERS[i - 1]), 0) for face in FACES
)
"""A tetrahedron, as the two kinds of files of meshes that models have."""


def write(task: ExportTask) -> Written:
    """A file to include, or the model with the servos at their joints.

    :raises ConfigError: for servos that MJCF cannot express, unsuitable joints, or a time step together with a model.
    """
    if task.model is None:
        text = snippet(task.joints, task.timestep or TIMESTEP, task.by_torque)
        notes = [
            note for joint, servo in task.joints for note in exported(servo, joint in task.by_torque).notes
        ]
    else:
        if task.timestep is not None:
            raise ConfigError(
                f"a time step is written only to a file to be included, but {task.model} is a complete model with its own: remove `step`"
            )
        if task.output.resolve() in {part.resolve() for part in parts_of(task.model)}:
            raise OutputError(f"{task.output} is also an input of this command: name another file")
        text, (*notes,) = export_onto(task.model, task.joints, task.by_torque)
        if task.output.resolve().parent != task.model.resolve().parent:
            notes.append(
                "relative paths of files in the model are resolved from the new model's folder: write the output beside the model"
            )
    return Written({task.output: text}, tuple(dict.fromkeys(notes)))


def engine() -> str:
    """The engine in which exports are judged."""
    return f"MuJoCo {mujoco.__version__}"


def simulated(servo: Servo, runs: Batch, stepping: Stepping) -> Array:
    """Positions (T, R) [rad] of the exported file on the bench, in MuJoCo with steps of at most 2 ms, shorter where damping asks for it."""
    own = [JointServo(JOINT, servo_of_run(servo, runs, r)) for r in range(len(runs.logs))]
    held = zip(own, inertia(runs.pendulum, 0.0), strict=True)  # loads: shafts of mechanisms have no inertia
    shafts = ((exported(one.servo), float(load)) for one, load in held)
    longest = (shaft.longest_step(shaft.armature or load) for shaft, load in shafts)
    substeps = math.ceil(runs.dt / min(TIMESTEP, *longest) - ROUNDING)
    texts = [(snippet([one], runs.dt / substeps), class_of(one)) for one in own]
    return runs_of(servo, runs, texts, substeps, np.stack([runs.position[0], runs.velocity[0]]))


def snippet(servos: Sequence[JointServo], timestep: float = TIMESTEP, by_torque: Container[str] = ()) -> str:
    """An MJCF file to include: options, and a default class and an actuator for each joint.

    :param servos: joints of the model that will include it, and their servos.
    :param timestep: the model's time step [s].
    :param by_torque: joints whose commands are torques.
    :raises ConfigError: as for :func:`exported`.
    """
    root = ElementTree.Element("mujoco")
    option = ElementTree.SubElement(root, "option", timestep=_text(timestep))
    ElementTree.SubElement(option, "flag", eulerdamp="disable")
    defaults, actuators = ElementTree.SubElement(root, "default"), ElementTree.Element("actuator")
    for place, (joint, servo) in enumerate(servos):
        plain, parameters = exported(servo, joint in by_torque), servo.parameters
        plain.check_timestep(timestep, joint)
        name = class_of(JointServo(joint, servo))
        title = f"{parameters.actuator.title}, law {parameters.law.name.upper()}"
        if not plain.by_torque:
            title += f", K_p {servo.kp:g}, {servo.voltage:g} V"
        for k, text in enumerate((f'{title}: give joint {joint} class="{name}"', *plain.notes)):
            root.insert(2 * place + k, ElementTree.Comment(f" {text.replace('--', '- -')} "))
        outer = ElementTree.SubElement(defaults, "default", {"class": name})
        ElementTree.SubElement(outer, "joint", _joint_attributes(plain, timestep))
        ElementTree.SubElement(outer, "general", _actuator_attributes(plain, timestep))
        given = {"name": f"{joint}_servo", "class": name, "joint": joint}
        if plain.motor is None:
            ElementTree.SubElement(actuators, "general", given)
        else:
            ElementTree.SubElement(actuators, "dcmotor", given | _motor_attributes(plain.motor))
    root.append(actuators)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def class_of(joint: JointServo) -> str:
    """Default class of a joint; its name makes it unique, as a model may include several such files."""
    file = joint.servo.parameters
    return f"{file.actuator.name}_{file.law.name}_{joint.joint}"


def export_onto(
    model: Path, servos: Sequence[JointServo], by_torque: Container[str] = ()
) -> tuple[str, tuple[str, ...]]:
    """Insert servos at joints of an MJCF model; returns the model as text, and notes.

    An existing actuator of a joint keeps its name and position and is turned into the servo; otherwise one is added.
    Includes are resolved; paths of meshes and other files are unchanged.

    :raises ConfigError: as for :func:`exported`; for a model that cannot be read, or a joint that is missing or has several
        actuators.
    """
    spec, compiled, absent = _read_model(model)
    check_options(compiled)
    timestep, notes, applied = float(compiled.opt.timestep), list[str](), dict[str, PlainJoint]()
    if absent:
        notes.append(
            f"{len(absent)} meshes of the model do not exist here, for example {absent[0]}: the new model refers to them as before, and "
            "MuJoCo loads it only where they exist: add the files, or remove the mesh geoms of the model and export again"
        )
    for name, servo in servos:
        plain = applied[name] = exported(servo, name in by_torque)
        notes += plain.notes
        joint = joint_named(compiled, name, servo)
        joint_actuators = actuators_of(compiled, joint)
        if len(joint_actuators) > 1:
            raise ConfigError(
                f"{model}: joint {name!r} has {len(joint_actuators)} actuators: keep only the one that is to become the servo"
            )
        _apply_joint(spec.joint(name), plain, timestep)
        actuator = (
            spec.actuators[joint_actuators[0]] if joint_actuators else spec.add_actuator(name=f"{name}_servo")
        )
        _apply_actuator(actuator, plain, name, timestep, is_new=not joint_actuators)
    spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP)
    try:
        finished = spec.compile()
        text: str = spec.to_xml()
    except (ValueError, mujoco.FatalError) as error:
        raise ConfigError(f"{model} with the servo: {error}") from None
    for name, plain in applied.items():
        inertia = 1.0 / float(finished.dof_invweight0[finished.joint(name).dofadr[0]])
        plain.check_timestep(timestep, name, inertia)
    return text, (*notes, *_integrator_notes(compiled))


def _read_model(path: Path) -> tuple[mujoco.MjSpec, mujoco.MjModel, tuple[str, ...]]:
    """A model as text that can be changed, and compiled; and the names of its missing meshes, for which a tetrahedron stands.

    :raises ConfigError: for a model that MuJoCo cannot read.
    """
    stand_ins: dict[str, bytes] = {}
    while True:
        try:
            spec = mujoco.MjSpec.from_file(str(path), assets=stand_ins)
            return spec, spec.compile(), tuple(stand_ins)
        except (ValueError, mujoco.FatalError) as error:
            missing = re.search(r"[Ee]rror opening file '([^']+\.(?:obj|stl))'", str(error), re.IGNORECASE)
            if missing is None or missing[1] in stand_ins:
                raise ConfigError(f"{path}: {error}") from None
            stand_ins[missing[1]] = OBJ if missing[1].lower().endswith(".obj") else STL


def _integrator_notes(model: mujoco.MjModel) -> tuple[str, ...]:
    if model.opt.integrator == mujoco.mjtIntegrator.mjINT_EULER:
        return ()
    return (
        "the model's integrator is not Euler: damping and friction act differently within a step than in the "
        'simulation used for the fit; compare with integrator="Euler"',
    )


def _apply_joint(joint: mujoco.MjsJoint, plain: PlainJoint, timestep: float) -> None:
    joint.solref_friction, joint.solimp_friction = friction_solver(timestep)
    joint.armature, joint.frictionloss = plain.armature, plain.frictionloss
    joint.damping = _like(joint.damping, plain.damping)
    joint.actfrclimited = mujoco.mjtLimited.mjLIMITED_FALSE  # the servo has its own range


def _apply_actuator(
    actuator: mujoco.MjsActuator, plain: PlainJoint, joint: str, timestep: float, *, is_new: bool
) -> None:
    actuator.trntype, actuator.target = mujoco.mjtTrn.mjTRN_JOINT, joint
    positioned = actuator.biastype == mujoco.mjtBias.mjBIAS_AFFINE and (
        actuator.gainprm[0] == -actuator.biasprm[1]
    )
    if (
        is_new or positioned == plain.by_torque
    ):  # the range comes from the model's defaults, or is of another quantity
        actuator.ctrllimited, actuator.inheritrange = mujoco.mjtLimited.mjLIMITED_FALSE, 0.0
    actuator.gear = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    actuator.dyntype = mujoco.mjtDyn.mjDYN_NONE
    actuator.actlimited, actuator.actrange = mujoco.mjtLimited.mjLIMITED_FALSE, [0.0, 0.0]
    actuator.gaintype = mujoco.mjtGain.mjGAIN_FIXED
    actuator.biastype = mujoco.mjtBias.mjBIAS_NONE if plain.by_torque else mujoco.mjtBias.mjBIAS_AFFINE
    gain, bias = [0.0] * len(actuator.gainprm), [0.0] * len(actuator.biasprm)
    gain[0], bias[:3] = plain.gain, plain.bias
    actuator.gainprm, actuator.biasprm = gain, bias
    actuator.forcelimited, actuator.forcerange = mujoco.mjtLimited.mjLIMITED_TRUE, [-plain.force, plain.force]
    for name in ("damping", "armature", "delay", "nsample", "ctrlspec"):  # in newer versions
        if hasattr(actuator, name):
            setattr(actuator, name, _like(getattr(actuator, name), 0))
    if plain.delay:
        actuator.delay, actuator.nsample = plain.delay, _samples(plain, timestep)
    if (motor := plain.motor) is not None:
        actuator.set_to_dcmotor(
            [motor.motorconst, motor.motorconst],
            motor.resistance,
            saturation=[0.0, motor.current, 0.0],
            controller=list(motor.controller),
            ctrlspec=1,  # the goal position
        )
        if not motor.current:
            actuator.forcelimited, actuator.forcerange = mujoco.mjtLimited.mjLIMITED_FALSE, [0.0, 0.0]


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


def _actuator_attributes(plain: PlainJoint, timestep: float) -> dict[str, str]:
    common = {"gear": "1", "ctrllimited": "false", "actlimited": "false"}
    if DC_MOTOR:  # delays are as new
        common |= {"delay": _text(plain.delay), "nsample": f"{_samples(plain, timestep)}"}
    if plain.motor is not None:
        return common | {"forcelimited": "true" if plain.motor.current else "false"}
    return common | {  # all attributes, as the class inherits the model's defaults for other actuators
        "dyntype": "none",
        "gaintype": "fixed",
        "gainprm": _text(plain.gain),
        "biastype": "none" if plain.by_torque else "affine",
        "biasprm": _text(*plain.bias),
        "forcelimited": "true",
        "forcerange": _text(-plain.force, plain.force),
    }


def _motor_attributes(motor: DcMotor) -> dict[str, str]:
    return {
        "motorconst": _text(motor.motorconst, motor.motorconst),
        "resistance": _text(motor.resistance),
        "controller": _text(*motor.controller),
        "saturation": _text(0.0, motor.current, 0.0),
        "input": "pos",
    }


def _samples(plain: PlainJoint, timestep: float) -> int:
    return math.ceil(plain.delay / timestep) + 1 if plain.delay else 0


def _like(current: object, value: float) -> object:
    """A number in the form that the MuJoCo version expects; newer versions use polynomials."""
    size = getattr(current, "size", 1)
    return value if size == 1 else [value] + [0.0] * (size - 1)


def _text(*values: float) -> str:
    """Format numbers for MJCF; adding zero removes the sign of negative zero."""
    return " ".join(f"{value + 0.0:.15g}" for value in values)
