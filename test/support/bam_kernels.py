"""The servo drive of Isaac Lab and Newton, written down from its kernels, to try exported files with.

Kernels for the motor torque and the friction budget: isaac-sim/IsaacLab,
``source/isaaclab_newton/isaaclab_newton/actuators/bam_kernels.py`` (commit 0f2b84a). The budget becomes a constraint that stops the
joint within the step, viscous friction an implicit damping, as MuJoCo Warp has them; torque-off, which the drive lacks, takes the
motor's torque away. Nothing here uses Stribeck's laws.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any

import numpy as np

from stribeck.model.bench import gravity_torque, inertia
from stribeck.model.log import Batch
from stribeck.model.step import batch_for

ISAACLAB = os.environ.get("STRIBECK_ISAACLAB")
"""A checkout of isaac-sim/IsaacLab, whose class definitions exported files are compared with."""

BAM = os.environ.get("STRIBECK_BAM")
"""A checkout of Rhoban/bam, the same."""


def duty_torque(fields: dict[str, Any], goal: Any, position: Any, velocity: Any, kp: Any, vin: Any) -> Any:
    """Motor torque [N m] before the drive's own limit."""
    duty = (goal - position) * kp * fields["error_gain"]
    if fields["max_current"] > 0.0:
        centre = fields["kt"] * velocity / vin
        span = fields["resistance"] * fields["max_current"] / vin
        duty = np.minimum(np.maximum(duty, centre - span), centre + span)
    duty = np.clip(duty, -fields["max_pwm"], fields["max_pwm"])
    return (
        fields["kt"] * vin * duty / fields["resistance"] - fields["kt"] ** 2 * velocity / fields["resistance"]
    )


def budget(fields: dict[str, Any], velocity: Any, motor: Any, external: Any) -> Any:
    """Dry friction [N m] for torques of the step before."""
    model = fields["model"]
    total = np.full_like(velocity, fields["friction_base"])
    if model == "m1":
        return total
    weight = np.exp(-((np.abs(velocity) / fields["dtheta_stribeck"]) ** fields["alpha"]))
    total = total + weight * fields["friction_stribeck"]
    if model == "m2":
        return total
    total = total + np.abs(
        external * fields["load_friction_external"] - motor * fields["load_friction_motor"]
    )
    fading = np.abs(
        external * fields["load_friction_external_stribeck"] - motor * fields["load_friction_motor_stribeck"]
    )
    if model == "m6":
        by_load = fields["load_friction_external_quad"] * np.abs(external) ** 2
        by_motor = fields["load_friction_motor_quad"] * np.abs(motor) ** 2
        fading = fading + np.where(np.abs(motor) > np.abs(external), by_load, by_motor)
    return total + weight * fading


def motion(
    drive: dict[str, Any], runs: Batch, timestep: float, q_offset: float, ramp: float | None
) -> np.ndarray:
    """Positions (T, R) [rad] of runs on a grid of ``timestep``, with the firmware gain and the supply of each run.

    :param drive: one drive of the exported YAML file.
    :param ramp: speed with which the sender of goals changes them at most [rad/s].
    """
    fields = drive["motor"]
    grid = batch_for(runs.logs, timestep, "semi-implicit")
    moment = inertia(grid.pendulum, drive["armature"])
    kp, vin = np.asarray(grid.gains.kp), np.asarray(grid.nominal_supply)
    limit = drive["actuator_effort_limit"] * vin / drive["vin"]
    position, velocity = runs.position[0], runs.velocity[0]
    external, applied = gravity_torque(grid.pendulum, position, q_offset), np.zeros_like(position)
    goal, found = grid.goal[0], []
    for k in range(len(grid.time)):
        found.append(position)
        reach = np.inf if ramp is None else ramp * timestep
        goal = np.clip(grid.goal[max(k - drive["min_delay"], 0)], goal - reach, goal + reach)
        friction = budget(fields, velocity, applied, external)
        torque = duty_torque(fields, goal, position, velocity, kp, vin) * grid.torque_enable[k]
        applied = np.clip(torque, -limit, limit)
        external = gravity_torque(grid.pendulum, position, q_offset)
        needed = -(moment * velocity / timestep + applied + external)
        held = np.abs(needed) <= friction
        slowed = timestep * (np.clip(needed, -friction, friction) - needed)
        velocity = np.where(held, 0.0, slowed / (moment + timestep * fields["friction_viscous"]))
        position = position + timestep * velocity
    return np.array(found)


def class_fields(source: Path, name: str) -> dict[str, str]:
    """Fields of a class in a Python file with their annotations as text, read without running it."""
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return {
                entry.target.id: ast.unparse(entry.annotation)
                for entry in node.body
                if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name)
            }
    raise AssertionError(f"{source} has no class {name}")
