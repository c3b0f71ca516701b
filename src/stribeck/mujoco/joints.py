"""Joints of a MuJoCo model that servos take over: where they are, and what changes in the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco

from stribeck.errors import ConfigError
from stribeck.mujoco.servo import Servo

IMPEDANCE = 0.9999
"""Impedance of the friction constraint, the largest that MuJoCo takes: its share of the stopping torque."""

SMALLEST_LOSS = 1e-9
"""MuJoCo drops the constraint of a joint without frictionloss; a budget of zero becomes this [N m]."""

KINDS = {"rotary": mujoco.mjtJoint.mjJNT_HINGE, "linear": mujoco.mjtJoint.mjJNT_SLIDE}
"""The kind of joint that an actuator's units ask for."""

INTEGRATORS = (
    mujoco.mjtIntegrator.mjINT_EULER,
    mujoco.mjtIntegrator.mjINT_IMPLICIT,
    mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
)
"""Semi-implicit Euler, but for damping and the like, which joints under a controller have none of."""

_ON_JOINTS = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))


@dataclass(frozen=True)
class Joint:
    """Where a joint is in a model's arrays.

    :param name: its name.
    :param index: its number among the joints.
    :param position: its place in ``qpos``.
    :param dof: its place in ``qvel``.
    :param diagonal: place of its own inertia in ``mjData.M``.
    """

    name: str
    index: int
    position: int
    dof: int
    diagonal: int


def friction_solver(timestep: float) -> tuple[tuple[float, float], tuple[float, ...]]:
    r"""``solreffriction`` and ``solimpfriction`` for friction that holds.

    MuJoCo's friction constraint asks for :math:`\dot v = (1-d)a_0 - d\,b\,v` within its bounds, :math:`a_0` the
    acceleration without friction, d the impedance, :math:`b = 2/(d\,t_c)`. A joint that is held creeps with
    :math:`v = (1-d)\,a_0\,t_c/2`, and one that stops does so in one step if :math:`t_c = 2\Delta t`, the smallest
    time constant that MuJoCo takes. (MuJoCo documentation, "Solver parameters".)

    :param timestep: :math:`\Delta t` [s].
    """
    return (2.0 * timestep, 1.0), (IMPEDANCE, IMPEDANCE, 0.001, 0.5, 2.0)


def take_over(
    model: mujoco.MjModel, servos: Mapping[str, Servo], replace_actuators: bool = False
) -> list[Joint]:
    """Put servos at joints of a model, which is changed: armature, friction and its solver, damping 0.

    The model's own friction, damping and armature at those joints make way for the servo's.

    :param servos: a servo for each joint, by the joint's name.
    :param replace_actuators: switch off the model's own actuators of these joints; their ``ctrl`` stays, without
        effect.
    :raises ConfigError: for joints that are not there or not of the servo's kind, for other actuators that drive
        them, or for a model whose options leave no friction.
    """
    if not servos:
        raise ConfigError("no servos: name a joint and its servo")
    check_options(model)
    check_integrator(model)
    found = []
    for name, servo in servos.items():
        joint = joint_named(model, name, servo)
        _free_of_actuators(model, joint, replace_actuators)
        _set_joint(model, joint, servo)
        found.append(joint)
    # dof_invweight0, to which the friction constraint is scaled, has to know the new armature.
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return found


def check_options(model: mujoco.MjModel) -> None:
    """Refuse options under which joints have no friction, or another.

    :raises ConfigError: for them.
    """
    off = mujoco.mjtDisableBit
    for bit, name in ((off.mjDSBL_FRICTIONLOSS, "frictionloss"), (off.mjDSBL_CONSTRAINT, "constraint")):
        if model.opt.disableflags & bit:
            raise ConfigError(
                f"the model's option flag {name} is disabled: joints would have no friction; enable it"
            )


def check_integrator(model: mujoco.MjModel) -> None:
    """Refuse integrators whose steps are not semi-implicit Euler.

    :raises ConfigError: for RK4 and others, with those that are valid.
    """
    found = mujoco.mjtIntegrator(int(model.opt.integrator))
    if found not in INTEGRATORS:
        raise ConfigError(
            f"the model's integrator is {_short(found)}, which takes another step than the simulation that the servo's "
            f"parameters were identified with; use one of {', '.join(map(_short, INTEGRATORS))}"
        )


def joint_named(model: mujoco.MjModel, name: str, servo: Servo) -> Joint:
    """A joint of the servo's kind.

    :raises ConfigError: if there is none.
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
            f"joint {name!r} is of type {_short(kind)}; {servo.parameters.actuator.name} is "
            f"{units} and needs a {_short(KINDS[units])} joint"
        )
    dof = int(model.jnt_dofadr[index])
    diagonal = int(model.M_rowadr[dof] + model.M_rownnz[dof] - 1)
    return Joint(name, index, int(model.jnt_qposadr[index]), dof, diagonal)


def actuators_of(model: mujoco.MjModel, joint: Joint) -> list[int]:
    """The model's own actuators that drive a joint directly."""
    return [
        k
        for k in range(len(model.actuator_trntype))  # which newer versions have fewer of than inputs, nu
        if int(model.actuator_trntype[k]) in _ON_JOINTS and model.actuator_trnid[k, 0] == joint.index
    ]


def _free_of_actuators(model: mujoco.MjModel, joint: Joint, replace: bool) -> None:
    for k in actuators_of(model, joint):
        if not replace:
            raise ConfigError(
                f"joint {joint.name!r} is driven by the model's actuator {model.actuator(k).name!r} already; remove it, "
                "or switch it off with replace_actuators=True"
            )
        model.actuator_gainprm[k] = 0.0
        model.actuator_biasprm[k] = 0.0
        for name in ("actuator_damping", "actuator_dampingpoly", "actuator_armature"):  # of newer versions
            if hasattr(model, name):
                getattr(model, name)[k] = 0.0


def _set_joint(model: mujoco.MjModel, joint: Joint, servo: Servo) -> None:
    dof = joint.dof
    model.dof_armature[dof] = servo.parameters.values["armature"]
    model.dof_damping[dof] = 0.0
    if hasattr(model, "dof_dampingpoly"):  # of newer versions
        model.dof_dampingpoly[dof] = 0.0
    model.dof_frictionloss[dof] = SMALLEST_LOSS
    model.dof_solref[dof], model.dof_solimp[dof] = friction_solver(float(model.opt.timestep))


def _short(value: mujoco.mjtJoint | mujoco.mjtIntegrator) -> str:
    """A constant of MuJoCo as it is called in MJCF."""
    name = str(value.name).partition("_")[2]
    return {"EULER": "Euler", "RK4": "RK4"}.get(name, name.lower())
