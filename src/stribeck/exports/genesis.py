"""Export to Genesis: a Python function that sets gains, force range, armature, damping and friction of joints of an entity.

Genesis reads MJCF and URDF, too; it holds a position controller with a force range and joints with Coulomb friction.
"""

from __future__ import annotations

from dataclasses import replace

from stribeck.core.log import Batch
from stribeck.exports.affine import affine, as_torque_control
from stribeck.exports.loss import FloatArray, documented
from stribeck.exports.task import ExportTask, JointServo, Written, title_of
from stribeck.fit.assessment import Stepping
from stribeck.io.servo import Servo

_APPLY = '''\

def apply(entity):
    """Set the joints of a RigidEntity; call it after scene.build()."""
    for name, (stiffness, feedback, force, armature, damping, frictionloss) in JOINTS.items():
        dofs = entity.get_joint(name).dofs_idx_local
        entity.set_dofs_kp([stiffness], dofs)
        entity.set_dofs_kv([feedback], dofs)
        entity.set_dofs_force_range([-force], [force], dofs)
        entity.set_dofs_armature([armature], dofs)
        entity.set_dofs_damping([damping], dofs)
        entity.set_dofs_frictionloss([frictionloss], dofs)
'''


def write(task: ExportTask) -> Written:
    """The module."""
    lines = ['"""Identified joints for Genesis; SI units."""', "", "JOINTS = {"]
    lines += ["    # name: (stiffness, velocity feedback, largest torque, armature, damping, frictionloss)"]
    for servo in task.joints:
        lines += [f"    # {title_of(servo)}", f"    {servo.joint!r}: {_numbers(servo)!r},"]
    note = "damping includes the back-EMF, so joints are braked even where a real servo's torque is off"
    return Written(
        {task.output: "\n".join([*lines, "}", ""]) + _APPLY},
        (note, "never run in Genesis; its documented names"),
    )


def simulated(servo: Servo, runs: Batch, stepping: Stepping) -> FloatArray:
    """Positions (T, R) [rad] of the joint that the engine documents: position controller, damping, Coulomb friction."""
    return documented(replace(servo, parameters=as_torque_control(servo)), runs, stepping)


def _numbers(servo: JointServo) -> tuple[float, ...]:
    p, motor = servo.servo.parameters.values, affine(servo.servo)
    damping = p["friction_viscous"] + motor.back_emf
    return (motor.stiffness, motor.feedback, motor.force, p["armature"], damping, p["friction_base"])
