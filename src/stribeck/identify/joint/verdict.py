"""Verdict on the friction of a joint: how rows and files left out were predicted, what cannot be, what depends on the angle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stribeck.identify.joint.fit import JointFit
from stribeck.identify.joint.model import OF_ANGLE, SECOND_FRICTION, developed, friction_along, rest_columns
from stribeck.identify.joint.run import JointRun, joined
from stribeck.model.arrays import Array
from stribeck.model.estimate import Estimate
from stribeck.model.verdict import FAILS, LARGEST_ERROR, Reason, Verdict, interval_reason

GOOD = 0.2
"""Largest relative error of a joint's torque with which a law is usable."""

BEYOND = 0.35
"""The same for speeds and angles that were not fitted, where nothing else is known."""

OF_THE_ANGLE = 0.4
"""Torque over the angle, relative to the friction, that a friction law does not explain."""

LARGEST_INERTIA = 30.0
"""Inertias above this [kg m²] are none of a robot's joint."""

SHIFT = 0.5
"""Largest change of the offset between recordings, relative to dry friction."""


@dataclass(frozen=True)
class FileError:
    """Error of a recording.

    :param rms: of all rows [N m]; relative: to that of the torque.
    :param mean: of measured minus predicted torque [N m].
    """

    file: str
    rms: float
    relative: float
    mean: float
    rows: int


def error_of(fit: JointFit, file: str, runs: Sequence[JointRun]) -> FileError:
    """The error of a fit on the runs of a recording."""
    torque = joined(runs, "torque")
    residual = torque - np.concatenate([fit.torque(run) for run in runs])
    of_torque = float(np.sqrt(np.mean((torque - joined(runs, "rigid")) ** 2)))
    rms = float(np.sqrt(np.mean(residual**2)))
    return FileError(file, rms, rms / max(of_torque, 1e-12), float(np.mean(residual)), len(torque))


def parts_of(fit: JointFit, runs: Sequence[JointRun]) -> tuple[Array, Array]:
    """Friction, and torque that depends on the angle alone, of all runs (N,) each [N m]."""
    friction, angle = [], []
    for run in runs:
        z = developed(run, fit.structure, fit.values, fit.frame)
        friction.append(friction_along(run, fit.structure, fit.values, fit.frame, z)(run.torque))
        columns = rest_columns(run, [n for n in fit.structure.rest if n in OF_ANGLE], fit.frame)
        angle.append(sum((fit.values[name] * column for name, column in columns.items()), np.zeros(len(z))))
    return np.concatenate(friction), np.concatenate(angle)


def judge(
    fit: JointFit,
    runs: Sequence[JointRun],
    left_out: Mapping[str, float],
    train: Sequence[FileError],
    validation: Sequence[FileError],
    estimates: Mapping[str, Estimate],
) -> Verdict:
    """The verdict on a fit.

    :param left_out: errors on what was left out, by kind, relative to the torque.
    """
    reasons = _errors(left_out, train, validation)
    reasons += _sizes(fit, runs, estimates)
    reasons += _angle(fit, runs, left_out, [*train, *validation])
    known = [one.interval for one in estimates.values() if one.interval is not None]
    widths = [0.5 * (upper - lower) for lower, upper in known]
    values = [one.value for one in estimates.values() if one.interval is not None]
    error = max((one.relative for one in train), default=1.0)
    return Verdict(tuple(reasons + interval_reason(values, widths, error)))


def _errors(
    left_out: Mapping[str, float], train: Sequence[FileError], validation: Sequence[FileError]
) -> list[Reason]:
    """Reasons by the size of errors."""
    reasons = []
    for one in validation or train:
        what = "validation" if validation else "fitted"
        if one.relative > GOOD:
            use = "unusable" if one.relative > LARGEST_ERROR else "doubtful"
            text = f"{one.file} ({what}): error of {100.0 * one.relative:.3g} % of its torque, more than {100.0 * GOOD:g} %"
            reasons.append(Reason("large_error", use, text))  # type: ignore[arg-type]
    if validation and train:
        worst, fitted = max(one.rms for one in validation), max(one.rms for one in train)
        if worst > FAILS * fitted:
            text = f"the error in validation is {worst / fitted:.2g} times that of fitted runs: the law does not carry over"
            reasons.append(Reason("does_not_carry_over", "doubtful", text))
    for kind, relative in left_out.items():
        limit = GOOD if kind in ("time", "files") else BEYOND
        if relative > limit and not (validation and kind in ("time", "files")):
            text = f"{WORDS[kind]} were predicted to {100.0 * relative:.3g} % of the torque, worse than {100.0 * limit:g} %"
            reasons.append(Reason(f"left_out_{kind}", "doubtful", text))
    return reasons


WORDS = {
    "time": "blocks of time left out",
    "files": "files left out",
    "faster": "the fastest rows, left out,",
    "slower": "the slowest rows, left out,",
    "elsewhere": "the ends of the travel, left out,",
}
"""What was left out, by kind."""


def _sizes(fit: JointFit, runs: Sequence[JointRun], estimates: Mapping[str, Estimate]) -> list[Reason]:
    """Reasons by values that cannot be."""
    reasons = []
    base, values = fit.values.get("friction_base", 0.0), fit.values
    largest = float(np.max(np.abs(joined(runs, "torque") - joined(runs, "rigid"))))
    dry = base + values.get("friction_stribeck", 0.0)
    if dry <= 0.0 and values.get("friction_viscous", 0.0) <= 0.0:
        text = (
            "no friction was found: the torque does not oppose the motion: has torque or velocity the other sign, or is the "
            "torque that of the load?"
        )
        reasons.append(Reason("no_friction", "unusable", text))
    if dry > largest:
        text = f"dry friction of {dry:.3g} N m exceeds the largest torque, {largest:.3g} N m"
        reasons.append(Reason("implausible", "unusable", text))
    if (second := values.get(SECOND_FRICTION, 0.0)) > dry > 0.0:
        text = f"{second:.3g} N m of friction develop slowly after a reversal, more than all dry friction, {dry:.3g} N m"
        reasons.append(Reason("implausible", "doubtful", text))
    if (inertia := values.get("inertia", 0.0)) > LARGEST_INERTIA:
        text = f"an inertia of {inertia:.3g} kg m² is that of no robot's joint: are positions in another unit, or the torque of another joint?"
        reasons.append(Reason("implausible", "doubtful", text))
    one = estimates.get("friction_base")
    if one is not None and one.status == "not determined":
        reasons.append(
            Reason("friction_unknown", "doubtful", f"Coulomb friction is not determined: {one.reason}")
        )
    return reasons


def _angle(
    fit: JointFit,
    runs: Sequence[JointRun],
    left_out: Mapping[str, float],
    errors: Sequence[FileError],
) -> list[Reason]:
    """A torque that depends on the angle or the file, as a wrong rigid model leaves."""
    friction, angle = parts_of(fit, runs)
    size = float(np.sqrt(np.mean(friction**2)))
    share = float(np.std(angle)) / max(size, 1e-12)
    worst = max([*left_out.values(), *(one.relative for one in errors)], default=0.0)
    reasons = []
    if share > OF_THE_ANGLE and worst > GOOD:
        text = (
            f"a torque that depends on the angle, not on the direction, is {100.0 * share:.0f} % of the friction, and what is left out is "
            f"predicted to {100.0 * worst:.0f} %: the rigid model under this torque is wrong (gravity, payload), and no law of speed carries over: "
            "identify the arm, or give its torque as the column rigid"
        )
        reasons.append(Reason("rigid_model", "unusable", text))
    means = [one.mean for one in errors]
    if len(means) > 1 and np.ptp(means) > SHIFT * size:
        text = (
            f"the offset differs by {np.ptp(means):.3g} N m between recordings, {100.0 * np.ptp(means) / max(size, 1e-12):.0f} % of the "
            "friction: a rigid model or a torque sensor that is wrong"
        )
        reasons.append(Reason("offset_changes", "doubtful", text))
    return reasons
