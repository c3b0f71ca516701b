"""What an export costs: the motion of what was written beside the source law and beside the measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from stribeck.errors import ConfigError
from stribeck.evaluate.assessment import FARTHEST, Stepping
from stribeck.exports.affine import as_torque_control
from stribeck.exports.bam_drive import TIMESTEP
from stribeck.exports.registry import Format
from stribeck.model.arrays import Array
from stribeck.model.joint import Servo
from stribeck.model.log import Batch

SCHEMA = 1


@dataclass(frozen=True)
class Difference:
    """Mean absolute differences of position [rad]: mean over the runs, and the worst run."""

    mean: float
    worst: float


@dataclass(frozen=True)
class Loss:
    """The error of one exported joint, as in the file beside the export.

    :param engine: what simulated the exported file.
    :param runs: names of the runs.
    :param from_source: exported against source law; ``None`` if nothing was simulated.
    :param from_measurement: exported against measurement; ``None`` for bench trajectories.
    :param source_from_measurement: source law against measurement.
    :param with_the_engines_step: exported law with the explicit step of the format's engine, against the source law with an accurate one.
    :param lost: effects that the format has no place for.
    """

    joint: str
    engine: str
    runs: tuple[str, ...]
    from_source: Difference | None
    from_measurement: Difference | None
    source_from_measurement: Difference | None
    with_the_engines_step: Difference | None
    lost: tuple[str, ...]

    def line(self) -> str:
        """The error in one line."""
        source, measured = self.from_source, self.from_measurement
        own, stepped = self.source_from_measurement, self.with_the_engines_step
        if source is None:
            return _unchanged([self.joint], self.lost)
        if source.worst == 0.0 and measured is None and stepped is None:
            return f"{self.joint}: the identified law, unchanged; lost: {', '.join(self.lost) or 'nothing'} [{len(self.runs)} simulated runs agree exactly]"
        text = f"{self.joint}: {1e3 * source.mean:.2f} mrad from the source law (worst run {1e3 * source.worst:.2f})"
        if measured is not None and own is not None:
            text += (
                f", {1e3 * measured.mean:.2f} mrad from the measurement (worst run {1e3 * measured.worst:.2f}; "
                f"the source law itself {1e3 * own.mean:.2f})"
            )
        if stepped is not None:
            text += f", {1e3 * stepped.mean:.2f} mrad with the engine's own explicit step"
        return f"{text}; lost: {', '.join(self.lost) or 'nothing'} [{self.engine}, {len(self.runs)} runs]"

    def to_json(self) -> dict[str, Any]:
        """The content of the file beside the export, in rad."""
        return asdict(self)


def lines_of(losses: Sequence[Loss]) -> list[str]:
    """A line for each joint; one for all joints that were not simulated and have lost the same."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for loss in losses:
        if loss.from_source is None:
            alike.setdefault(loss.lost, []).append(loss.joint)
    simulated = [loss.line() for loss in losses if loss.from_source is not None]
    return [*simulated, *(_unchanged(joints, lost) for lost, joints in alike.items())]


def _unchanged(joints: Sequence[str], lost: Sequence[str]) -> str:
    return (
        f"{', '.join(joints)}: the identified values, unchanged; lost: {', '.join(lost) or 'nothing'} "
        "[not simulated: simulate the recordings with the whole model, docs/robots.md]"
    )


def difference(position: Array, reference: Array, weight: Array) -> Difference:
    """Mean absolute difference of each run (T, R), as mean and worst."""
    errors = np.sum(weight * np.abs(position - reference), axis=0) * weight.shape[1]
    if not np.all(errors < FARTHEST):
        raise ConfigError("the simulation of the exported servo diverges: try a shorter time step")
    return Difference(float(np.mean(errors)), float(np.max(errors)))


def loss_of(
    joint: str,
    held: Servo,
    form: Format,
    runs: tuple[Batch, Batch],
    stepping: Stepping,
    lost: Sequence[str],
    *,
    recorded: bool,
    timestep: float | None = None,
) -> Loss:
    """The error of one joint.

    :param held: the servo with the law and values that were exported.
    :param runs: see :func:`stribeck.exports.runs.batch_of_source`.
    :param recorded: whether the runs were measured.
    :param timestep: physics step of engines with an explicit step of their own [s].
    """
    measured, source = runs
    module, engine = form.module_of(), "the law that the file contains, in Stribeck's simulation"
    if hasattr(module, "engine"):
        engine = module.engine()
    position = getattr(module, "simulated", documented)(held, measured, stepping)
    against = difference(position, measured.position, measured.weight) if recorded else None
    own = difference(source.position, measured.position, measured.weight) if recorded else None
    names = tuple(log.name for log in measured.logs)
    stepped = None
    if hasattr(module, "stepped"):
        explicit = module.stepped(held, measured, timestep or TIMESTEP)
        stepped = difference(explicit, source.position, measured.weight)
    return Loss(
        joint,
        engine,
        names,
        difference(position, source.position, measured.weight),
        against,
        own,
        stepped,
        tuple(lost),
    )


def unsimulated(joint: str, lost: Sequence[str]) -> Loss:
    """What an export of a joint of a robot lacks; its error depends on the motion of the whole robot."""
    return Loss(joint, "", (), None, None, None, None, tuple(lost))


def as_controller(held: Servo, runs: Batch, stepping: Stepping) -> Array:
    """Positions (T, R) [rad] in engines whose only servo is :func:`stribeck.exports.affine.as_torque_control`.

    A goal ramp of the firmware is taken as done by whoever sends the goals.
    """
    speed = held.parameters.actuator.control.goal_speed
    if speed is not None:
        goal = runs.goal.copy()
        for k in range(1, len(goal)):
            goal[k] = np.clip(goal[k], goal[k - 1] - speed * runs.dt, goal[k - 1] + speed * runs.dt)
        runs = replace(runs, goal=goal)
    return documented(replace(held, parameters=as_torque_control(held)), runs, stepping)


def documented(held: Servo, runs: Batch, stepping: Stepping) -> Array:
    """Positions (T, R) [rad] of the law that the file holds, simulated here."""
    return stepping.motion(held.parameters, runs).position
