"""Joints of a MuJoCo model driven by servos: their indices, and the required changes to the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco

from stribeck.errors import ConfigError
from stribeck.model.joint import Servo

IMPEDANCE = 0.9999
"""Impedance of the friction constraint, i.e. the fraction of the stopping torque; the maximum that MuJoCo accepts."""

SMALLEST_LOSS = 1e-9
"""Replaces a frictionloss of zero [N m], for which MuJoCo would drop the constraint."""

KINDS = {"rotary": mujoco.mjtJoint.mjJNT_HINGE, "linear": mujoco.mjtJoint.mjJNT_SLIDE}
"""Joint type for each kind of actuator."""

INTEGRATORS = (
    mujoco.mjtIntegrator.mjINT_EULER,
    mujoco.mjtIntegrator.mjINT_IMPLICIT,
    mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
)
"""Integrators that equal semi-implicit Euler for joints without damping."""

_ON_JOINTS = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))


@dataclass(frozen=True)
class ModelJoint:
    """Indices of a joint in a model's arrays.

    :param index: index of the joint in the model.
    :param position: index in ``qpos``.
    :param dof: index in ``qvel``.
    :param diagonal: index of its own inertia in ``mjData.M``.
    """

    name: str
    index: int
    position: int
    dof: int
    diagonal: int


def friction_solver(timestep: float) -> tuple[tuple[float, float], tuple[float, ...]]:
    r"""``solreffriction`` and ``solimpfriction`` for friction that holds a joint at rest.

    MuJoCo's friction constraint aims at :math:`\dot v = (1-d)a_0 - d\,b\,v` within its bounds, with :math:`a_0` the
    acceleration without friction, d the impedance, :math:`b = 2/(d\,t_c)`. A joint at rest creeps with
    :math:`v = (1-d)\,a_0\,t_c/2`, and a moving one stops in one step if :math:`t_c = 2\Delta t`, the smallest time
    constant that MuJoCo accepts. (MuJoCo documentation, "Solver parameters".)

    :param timestep: :math:`\Delta t` [s].
    """
    return (2.0 * timestep, 1.0), (IMPEDANCE, IMPEDANCE, 0.001, 0.5, 2.0)


def take_over(
    model: mujoco.MjModel, servos: Mapping[str, Servo], replace_actuators: bool = False
) -> list[ModelJoint]:
    """Set armature, friction and its solver parameters of joints to those of servos and damping to 0, in place.

    :param servos: a servo for each joint, by joint name.
    :param replace_actuators: disable the model's actuators of these joints; their ``ctrl`` then has no effect.
    :raises ConfigError: for joints that are missing, of the wrong type for the servo or driven by other actuators, or for
        a model whose options disable friction.
    """
    if not servos:
        raise ConfigError("no servos: give at least one joint and its servo")
    check_options(model)
    check_integrator(model)
    joints = []
    for name, servo in servos.items():
        joint = joint_named(model, name, servo)
        _free_of_actuators(model, joint, replace_actuators)
        _set_joint(model, joint, servo)
        joints.append(joint)
    # dof_invweight0, which scales the friction constraint, depends on the armature.
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return joints


def check_options(model: mujoco.MjModel) -> None:
    """Check that no option disables friction.

    :raises ConfigError: if one does.
    """
    off = mujoco.mjtDisableBit
    for bit, name in ((off.mjDSBL_FRICTIONLOSS, "frictionloss"), (off.mjDSBL_CONSTRAINT, "constraint")):
        if model.opt.disableflags & bit:
            raise ConfigError(
                f"the model's option flag {name} is disabled, so joints would have no friction: enable it"
            )


def check_integrator(model: mujoco.MjModel) -> None:
    """Check that the model uses semi-implicit Euler integration.

    :raises ConfigError: for RK4 and others.
    """
    integrator = mujoco.mjtIntegrator(int(model.opt.integrator))
    if integrator not in INTEGRATORS:
        raise ConfigError(
            f"the model's integrator is {_short(integrator)}, but the parameters of the servo need one of "
            f"{', '.join(map(_short, INTEGRATORS))}: change the integrator"
        )


def joint_named(model: mujoco.MjModel, name: str, servo: Servo) -> ModelJoint:
    """The joint with this name.

    :raises ConfigError: if it is missing, or not of the servo's type.
    """
    index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name)
    if index < 0:
        names = [model.joint(k).name for k in range(model.njnt)]
        raise ConfigError(
            f"the model has no joint {name!r}; it has: {', '.join(filter(None, names)) or 'none with a name'}"
        )
    units = servo.parameters.actuator.units
    kind = mujoco.mjtJoint(int(model.jnt_type[index]))
    if kind != KINDS[units]:
        raise ConfigError(
            f"joint {name!r} has type {_short(kind)}, but {servo.parameters.actuator.name} is {units} and needs a {_short(KINDS[units])} joint"
        )
    dof = int(model.jnt_dofadr[index])
    diagonal = int(model.M_rowadr[dof] + model.M_rownnz[dof] - 1)
    return ModelJoint(name, index, int(model.jnt_qposadr[index]), dof, diagonal)


def actuators_of(model: mujoco.MjModel, joint: ModelJoint) -> list[int]:
    """Indices of the model's actuators that drive a joint directly."""
    return [
        k
        for k in range(len(model.actuator_trntype))  # newer versions: fewer than nu
        if int(model.actuator_trntype[k]) in _ON_JOINTS and model.actuator_trnid[k, 0] == joint.index
    ]


def _free_of_actuators(model: mujoco.MjModel, joint: ModelJoint, replace: bool) -> None:
    for k in actuators_of(model, joint):
        if not replace:
            raise ConfigError(
                f"joint {joint.name!r} already has an actuator in the model, {model.actuator(k).name!r}: "
                "remove it, or switch it off with replace_actuators=True"
            )
        model.actuator_gainprm[k] = 0.0
        model.actuator_biasprm[k] = 0.0
        for name in ("actuator_damping", "actuator_dampingpoly", "actuator_armature"):  # in newer versions
            if hasattr(model, name):
                getattr(model, name)[k] = 0.0


def _set_joint(model: mujoco.MjModel, joint: ModelJoint, servo: Servo) -> None:
    dof = joint.dof
    model.dof_armature[dof] = servo.parameters.values["armature"]
    model.dof_damping[dof] = 0.0
    if hasattr(model, "dof_dampingpoly"):  # in newer versions
        model.dof_dampingpoly[dof] = 0.0
    model.dof_frictionloss[dof] = SMALLEST_LOSS
    model.dof_solref[dof], model.dof_solimp[dof] = friction_solver(float(model.opt.timestep))


def _short(value: mujoco.mjtJoint | mujoco.mjtIntegrator) -> str:
    name = str(value.name).partition("_")[2]
    return {"EULER": "Euler", "RK4": "RK4"}.get(name, name.lower())
