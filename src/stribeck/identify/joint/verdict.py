"""Verdict on the friction of a joint: how rows and files left out were predicted, what cannot be, what depends on the angle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stribeck.identify.common.judging import GOOD, Evidence, Misfit, Sizes, judge, misfits_of
from stribeck.identify.joint.fit import JointFit, kept_rows
from stribeck.identify.joint.model import OF_ANGLE, SECOND_FRICTION, developed, friction_along, rest_columns
from stribeck.identify.joint.run import JointRun, joined
from stribeck.model.arrays import Array
from stribeck.model.estimate import Estimate
from stribeck.model.verdict import Reason, Verdict

BEYOND = 0.35
"""The same for speeds and angles that were not fitted, where nothing else is known."""

OF_THE_ANGLE = 0.4
"""Torque over the angle, relative to the friction, that a friction law does not explain."""

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
    """The error of a fit on the rows of a recording that are kept, of a sweep those of its plateaus."""
    kept = kept_rows(runs)
    torque = joined(runs, "torque")[kept]
    residual = torque - np.concatenate([fit.torque(run) for run in runs])[kept]
    of_torque = float(np.sqrt(np.mean((torque - joined(runs, "rigid")[kept]) ** 2)))
    rms = float(np.sqrt(np.mean(residual**2)))
    return FileError(file, rms, rms / max(of_torque, 1e-12), float(np.mean(residual)), len(torque))


def parts_of(
    fit: JointFit, runs: Sequence[JointRun], of_angle: Sequence[str] = OF_ANGLE
) -> tuple[Array, Array]:
    """Friction, and torque that depends on the angle alone, of all runs (N,) each [N m].

    :param of_angle: parts of the remainder that count as the latter.
    """
    friction, angle = [], []
    for run in runs:
        z = developed(run, fit.structure, fit.values, fit.frame)
        friction.append(friction_along(run, fit.structure, fit.values, fit.frame, z)(run.torque))
        columns = rest_columns(run, [n for n in fit.structure.rest if n in of_angle], fit.frame)
        angle.append(sum((fit.values[name] * column for name, column in columns.items()), np.zeros(len(z))))
    return np.concatenate(friction), np.concatenate(angle)


def judge_joint(
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
    values = fit.values
    dry = values.get("friction_base", 0.0) + values.get("friction_stribeck", 0.0)
    largest = float(np.max(np.abs(joined(runs, "torque") - joined(runs, "rigid"))))
    found = {
        name: one for name, one in estimates.items() if name != "inertia" or one.side is None
    }  # may be none
    misfits = _misfits(train, held_out=False) + _misfits(validation, held_out=True)
    more = _left_out(left_out, bool(validation)) + _sizes(fit, dry)
    return judge(
        Evidence(
            "torque",
            misfits,
            {"": found},
            {"": Sizes(dry, largest, values.get("inertia", 0.0))},
            more=(*more, *_angle(fit, runs, left_out, [*train, *validation])),
        )
    )


def _misfits(errors: Sequence[FileError], held_out: bool) -> tuple[Misfit, ...]:
    """Relative errors of all files and of each."""
    if not errors:
        return ()
    squares = sum(one.rows * one.rms**2 for one in errors)
    sizes = sum(one.rows * (one.rms / max(one.relative, 1e-12)) ** 2 for one in errors)
    whole = float(np.sqrt(squares / max(sizes, 1e-300)))
    return misfits_of(whole, by_file={one.file: one.relative for one in errors}, held_out=held_out)


def _left_out(left_out: Mapping[str, float], validated: bool) -> list[Reason]:
    """Reasons by the errors of what was left out; blocks and files only where there are no recordings held out."""
    reasons = []
    for kind, relative in left_out.items():
        limit = GOOD if kind in ("time", "files") else BEYOND
        if relative > limit and not (validated and kind in ("time", "files")):
            text = f"{WORDS[kind]} were predicted with a relative error of torque of {100.0 * relative:.3g} %, more than {100.0 * limit:g} %"
            reasons.append(Reason(f"left_out_{kind}", "doubtful", text))
    return reasons


WORDS = {
    "time": "blocks of time left out",
    "files": "files left out",
    "faster": "the fastest rows, left out of the fit,",
    "slower": "the slowest rows, left out of the fit,",
    "elsewhere": "the ends of the travel, left out of the fit,",
}
"""What was left out, by kind."""


def _sizes(fit: JointFit, dry: float) -> list[Reason]:
    """Friction that cannot be.

    :param dry: dry friction at rest [N m].
    """
    reasons, values = [], fit.values
    if dry <= 0.0 and values.get("friction_viscous", 0.0) <= 0.0:
        text = (
            "no friction was found, because the torque does not oppose the motion: does torque or velocity "
            "have the wrong sign, or is it the torque of the load?"
        )
        reasons.append(Reason("no_friction", "unusable", text))
    if (second := values.get(SECOND_FRICTION, 0.0)) > dry > 0.0:
        text = f"{second:.3g} N m of friction develops slowly after a reversal, more than the whole dry friction of {dry:.3g} N m"
        reasons.append(Reason("implausible", "doubtful", text))
    return reasons


def _angle(
    fit: JointFit, runs: Sequence[JointRun], left_out: Mapping[str, float], errors: Sequence[FileError]
) -> list[Reason]:
    """A torque that depends on the angle or the file, as a wrong rigid model leaves."""
    friction, angle = parts_of(fit, runs, [part for part in OF_ANGLE if part != "gravity"])
    size = float(np.sqrt(np.mean(friction**2)))
    share = float(np.std(angle)) / max(size, 1e-12)
    worst = max([*left_out.values(), *(one.relative for one in errors)], default=0.0)
    reasons = []
    if share > OF_THE_ANGLE and worst > GOOD:
        text = (
            f"a torque that depends on the angle but not on the direction is {100.0 * share:.0f} % of the friction, and rows left out of the fit are "
            f"predicted with an error of {100.0 * worst:.0f} %: the rigid-body torque (gravity, payload) is wrong, and no friction law can correct it: "
            "identify the arm, or give the rigid-body torque as the column rigid"
        )
        reasons.append(Reason("rigid_model", "unusable", text))
    means = [one.mean for one in errors]
    if len(means) > 1 and np.ptp(means) > SHIFT * size:
        text = (
            f"the offset torque differs by {np.ptp(means):.3g} N m between recordings, {100.0 * np.ptp(means) / max(size, 1e-12):.0f} % of the friction: the "
            "rigid-body model or the torque sensor is wrong"
        )
        reasons.append(Reason("offset_changes", "doubtful", text))
    return reasons
