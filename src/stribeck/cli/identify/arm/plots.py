"""Figures of ``stribeck identify arm``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy import signal

from stribeck.files.robots import RobotConfig
from stribeck.identify.arm.friction.element_torque import friction_curve
from stribeck.identify.arm.friction.full_fit import FullFit
from stribeck.identify.arm.identify import Scored
from stribeck.identify.arm.motion import ProcessedMotion
from stribeck.identify.arm.residuals import explain, scores
from stribeck.model.arrays import Array
from stribeck.report.arm_figures import (
    FrictionDrawing,
    draw_fit_errors,
    draw_friction,
    draw_joints,
    draw_residuals,
)
from stribeck.report.style import save

UNITS = {"rotary": ("N m", "rad/s", "rad"), "linear": ("N", "m/s", "m")}


def draw(folder: Path, robot: RobotConfig, fits: Mapping[str, Scored]) -> list[Path]:
    """Draw errors of all fits, and torques, friction and residuals of the last one; returns the paths."""
    last = list(fits)[-1]
    written = [folder / "errors.png"]
    scored, unit = fits[last], UNITS[robot.units][0]
    save(draw_fit_errors(_errors(fits), scored.fit.machine.joints, "rows with motion"), written[0])
    for part, motions in scored.motions.items():
        for motion, predicted in zip(motions, scored.predictions[part], strict=True):
            written.append(folder / f"torque_{part}_{motion.name}.png")
            errors = scores([motion], [predicted])["moving"]["per_joint"]
            titles = (
                f"{joint}, {'did not move' if error is None else f'relative error {100 * error:.2f} %'}"
                for joint, error in zip(motion.joints, errors, strict=True)
            )
            friction = scored.fit.torques(motion).friction if isinstance(scored.fit, FullFit) else None
            title, joints = f"{robot.title}, {motion.name}, fit {last}", [(one, unit) for one in titles]
            save(draw_joints(title, motion.time, motion.torque, predicted, joints, friction), written[-1])
    if isinstance(scored.fit, FullFit):
        written += _friction(folder, robot, scored, scored.fit)
        written += _residuals(folder, robot, scored)
    return written


def _errors(fits: Mapping[str, Scored]) -> dict[str, dict[str, list[float | None]]]:
    sets: dict[str, dict[str, list[float | None]]] = {}
    for name, scored in fits.items():
        for part, errors in scored.errors.items():
            moving = errors["moving"]
            sets.setdefault(part, {})[name] = [*moving["per_joint"], moving["all"]]
    return sets


def _friction(folder: Path, robot: RobotConfig, scored: Scored, fit: FullFit) -> list[Path]:
    """Draw one figure of all training runs, and one of each validation run."""
    pictures: dict[str, Sequence[ProcessedMotion]] = {"friction": scored.motions["train"]}
    pictures |= {f"friction_{motion.name}": [motion] for motion in scored.motions.get("validation", [])}
    written = []
    for name, motions in pictures.items():
        rigid = [fit.torques(motion).rigid for motion in motions]
        drawings = [
            d
            for j in range(len(motions[0].joints))
            if (d := _friction_of(fit, motions, rigid, j)) is not None
        ]
        if drawings:
            written.append(folder / f"{name}.png")
            save(draw_friction(drawings, *UNITS[robot.units][:2]), written[-1])
    return written


def _friction_of(
    fit: FullFit, motions: Sequence[ProcessedMotion], rigid: Sequence[Array], joint: int
) -> FrictionDrawing | None:
    """Measured friction of a joint: torque minus the prediction without friction."""
    velocity, friction = [], []
    for motion, without in zip(motions, rigid, strict=True):
        moving = motion.moving[:, joint]
        velocity.append(motion.states.velocity[moving, joint])
        friction.append((motion.torque - without)[moving, joint])
    speeds, measured = np.concatenate(velocity), np.concatenate(friction)
    if not len(speeds):
        return None
    name = fit.machine.joints[joint]
    curve = np.linspace(speeds.min(), speeds.max(), 400)
    curve = curve[np.abs(curve) > 1e-3 * np.abs(curve).max()]
    law = friction_curve(fit.laws[joint], fit.values(name), curve)
    return FrictionDrawing(name, speeds, measured, curve, law)


def _residuals(folder: Path, robot: RobotConfig, scored: Scored) -> list[Path]:
    unit, velocity_unit, position_unit = UNITS[robot.units]
    motion, predicted = scored.motions["train"][0], scored.predictions["train"][0]
    rate = 1.0 / float(np.median(np.diff(motion.time)))
    written = []
    for j, (joint, shares) in enumerate(zip(motion.joints, explain(motion, predicted), strict=True)):
        left = motion.torque[:, j] - predicted[:, j]
        frequency, density = signal.welch(left, rate, nperseg=min(512, len(left)))
        told = ", ".join(
            f"{name} {100 * value:.0f} %"
            for name in ("noise", "delay", "ripple", "velocity", "slow")
            if (value := shares[name]) is not None
        )
        signals = {
            f"position [{position_unit}]": (motion.states.position[:, j], left),
            f"velocity [{velocity_unit}]": (motion.states.velocity[:, j], left),
        }
        written.append(folder / f"residual_{joint}.png")
        save(draw_residuals(joint, unit, frequency, density, signals, told), written[-1])
    return written
