"""Identification of the friction of one joint: recordings in, the law that predicts best what is left out, intervals, verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stribeck.errors import RecordingError
from stribeck.identify.joint.fit import JointFit, kept_rows, measured
from stribeck.identify.joint.plausibility import Notice
from stribeck.identify.joint.recording import Recording
from stribeck.identify.joint.run import JointRun, joined
from stribeck.identify.joint.selection import StructureSelection, final_fit
from stribeck.identify.joint.sweeps import Plateau, is_sweep, plateaus_of, rows_in
from stribeck.identify.joint.uncertainty import JointUncertainty, uncertainty_of
from stribeck.identify.joint.verdict import FileError, error_of, judge_joint
from stribeck.model.estimate import CONFIDENCE, estimates_to_json
from stribeck.model.verdict import Reason, Verdict

SCHEMA = 1

AGAINST = 0.3
"""Correlation of torque and direction below minus this: the torque has the other sign."""


@dataclass(frozen=True, eq=False)
class JointResult:
    """The friction of a joint.

    :param runs: the fitted runs.
    :param left_out: errors of the chosen structure on what was left out, relative to the torque.
    :param plateaus: of a constant-velocity sweep, else empty.
    """

    fit: JointFit
    runs: tuple[JointRun, ...]
    uncertainty: JointUncertainty
    left_out: Mapping[str, float]
    train: tuple[FileError, ...]
    validation: tuple[FileError, ...]
    plateaus: tuple[Plateau, ...]
    notices: tuple[Notice, ...]
    verdict: Verdict

    def to_json(self) -> dict[str, object]:
        """The content of ``--json``."""
        rows = sum(one.rows for one in self.train)
        estimates = self.uncertainty.estimates
        return {
            "schema": SCHEMA,
            "law": self.fit.structure.law.name,
            "terms": list(self.fit.structure.terms),
            "parameters": dict(self.fit.values),
            "intervals": {
                name: list(one.interval) for name, one in estimates.items() if one.interval is not None
            },
            "confidence": CONFIDENCE,
            "estimates": estimates_to_json(estimates),
            "train": {
                "rms": float(np.sqrt(sum(one.rows * one.rms**2 for one in self.train) / rows)),
                "files": [_entry(one) for one in self.train],
            },
            "validation": [_entry(one) for one in self.validation],
            "left_out": dict(self.left_out),
            "sweep": bool(self.plateaus),
            "notices": [vars(one) for one in self.notices],
            **self.verdict.to_json(),
        }


def _entry(one: FileError) -> dict[str, object]:
    return {"file": one.file, "rms": one.rms, "relative": one.relative, "rows": one.rows}


def identify_joint(
    recordings: Sequence[Recording],
    validation: Sequence[Recording] = (),
    law: str = "auto",
    terms: Sequence[str] = (),
    excluded: Sequence[str] = (),
    tell: Callable[[str], None] = lambda text: None,
) -> JointResult:
    """Identify the friction of a joint.

    :param validation: recordings that are predicted only.
    :param law: ``auto``, or the name of the only law.
    :param terms: terms that the law has in any case.
    :param excluded: of ``inertia``, ``angle``, ``ripple``: what the rest of the torque cannot depend on.
    :raises RecordingError: for a torque of the other sign.
    """
    runs = [run for recording in recordings for run in recording.runs]
    notices = [notice for one in (*recordings, *validation) for notice in one.notices]
    _check_sign(runs)
    if any(notice.key == "relative_position" for notice in notices):
        excluded = (*excluded, "angle", "ripple")
    plateaus = plateaus_of(runs)
    if not is_sweep(runs, plateaus):
        plateaus = []
    fitted = _kept(runs, plateaus)
    best = StructureSelection(fitted, law, terms, excluded, tell).choose()
    fit = final_fit(fitted, best)
    known = uncertainty_of(fit, fitted)
    scale = float(np.sqrt(np.mean(measured(fitted) ** 2)))
    left_out = {kind: error / scale for kind, error in best.errors.items()}
    train = _errors(fit, recordings, fitted)
    unseen = [_kept(one.runs, plateaus_of(one.runs) if plateaus else []) for one in validation]
    others = _errors(fit, validation, [run for some in unseen for run in some])
    verdict = judge_joint(fit, fitted, left_out, train, others, known.estimates)
    said = [Reason(one.key, one.use, one.text) for one in notices if one.use != "note"]
    verdict = Verdict((*said, *verdict.reasons))
    return JointResult(
        fit, tuple(fitted), known, left_out, train, others, tuple(plateaus), tuple(notices), verdict
    )


def _kept(runs: Sequence[JointRun], plateaus: Sequence[Plateau]) -> list[JointRun]:
    """Runs of which the plateaus alone are kept; without any they are as they are."""
    if not plateaus:
        return list(runs)
    rows = rows_in(runs, plateaus)
    return [replace(run, kept=kept.astype(float)) for run, kept in zip(runs, rows, strict=True)]


def _errors(
    fit: JointFit, recordings: Sequence[Recording], runs: Sequence[JointRun]
) -> tuple[FileError, ...]:
    """Errors of recordings on the rows kept in these runs, all of theirs in order; of one without such rows, on all its rows."""
    following = iter(runs)
    own = [[next(following) for _ in one.runs] for one in recordings]
    return tuple(
        error_of(fit, one.name, some if kept_rows(some).any() else one.runs)
        for one, some in zip(recordings, own, strict=True)
    )


def _check_sign(runs: Sequence[JointRun]) -> None:
    """Refuse torques that drive the motion where friction should brake it.

    :raises RecordingError: for these.
    """
    velocity, torque = joined(runs, "velocity"), measured(runs)
    fast = np.abs(velocity) > 0.1 * float(np.quantile(np.abs(velocity), 0.99))
    direction = np.sign(velocity[fast])
    columns = np.stack([direction, np.ones_like(direction), joined(runs, "position")[fast]], axis=1)
    size = np.maximum(np.linalg.norm(columns, axis=0), 1e-12)
    values, *_ = np.linalg.lstsq(columns / size, torque[fast], rcond=None)
    left = torque[fast] - columns / size @ values
    braking = float(values[0] / size[0])
    if braking < -AGAINST * float(np.std(left) + abs(braking)):
        raise RecordingError(
            f"{runs[0].file}: the torque, taken as that of the motor, brakes where it should drive ({braking:.3g} N m in the direction of motion): its sign "
            "is wrong, or it is the friction torque: reverse the sign of the torque or of the positions"
        )
