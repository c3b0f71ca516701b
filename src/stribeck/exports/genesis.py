"""Export to Genesis: a Python function that sets gains, force range, armature, damping and friction of joints of an entity.

Genesis reads MJCF and URDF, too; it holds a position controller with a force range and joints with Coulomb friction.
"""

from __future__ import annotations

from stribeck.exports.affine import affine
from stribeck.exports.loss import as_controller as simulated
from stribeck.exports.task import ExportTask, JointServo, Written, ramp_notes, title_of

__all__ = ["simulated", "write"]

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
    note = "the velocity feedback contains the back-EMF, and is limited by the force range"
    return Written({task.output: "\n".join([*lines, "}", ""]) + _APPLY}, (note, *ramp_notes(task)))


def _numbers(servo: JointServo) -> tuple[float, ...]:
    p, motor = servo.servo.parameters.values, affine(servo.servo)
    feedback = motor.feedback + motor.back_emf
    return (motor.stiffness, feedback, motor.force, p["armature"], p["friction_viscous"], p["friction_base"])
