"""Verdict on the fits of an arm: faults of recordings, of the URDF and of the fit itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from stribeck.errors import TooShortError
from stribeck.identify.arm.config import Neighbourhood, Protocol
from stribeck.identify.arm.friction.full_fit import FullFit
from stribeck.identify.arm.identify import Fit, Scored, arm_of
from stribeck.identify.arm.inertia import about_com
from stribeck.identify.arm.least_squares import LinearFit
from stribeck.identify.arm.model import INERTIALS, ArmModel
from stribeck.identify.arm.motion import ProcessedMotion
from stribeck.identify.arm.recordings import ArmRecording
from stribeck.identify.arm.survey.effort import survey_effort
from stribeck.identify.arm.survey.spectra import NOISE_SHARE, bandwidth_of
from stribeck.identify.common.solver_status import SolverStatus
from stribeck.model.verdict import Reason, Use, Verdict, error_reason, interval_reason

WORSE, MUCH_WORSE = 1.1, 1.5
"""Ratios of the errors of ``full`` and ``ols`` from which the full model is doubtful, and of no use."""

FAR = 10.0
"""Ratio of masses, or multiple of the neighbourhood of the centre of mass, from which a link has left its URDF."""

LIGHT = 0.02
"""Links lighter than this share of the arm are compared as if they had this share."""

OTHER_UNIT = 5.0
"""Ratio between measured torques and those of the URDF, of most joints, from which efforts cannot be torques."""

GRAMS = (300.0, 3000.0)
"""Ratios of masses at which the URDF gives grams."""

NOISY = 0.1
"""Share of noise in accelerations from which missing filters are an error."""

NO_ROTOR = 1e-6
"""Smallest rotor inertia that counts as positive [kg m² or kg]."""


def judge_fits(
    fits: Mapping[str, Scored], motions: Sequence[ProcessedMotion], near: Neighbourhood
) -> Verdict:
    """The verdict on the last of the fits, which is the most detailed one.

    :param fits: by name, in the order of computation; at least one.
    :param motions: the fitted recordings.
    :param near: neighbourhood of the URDF.
    """
    last = list(fits)[-1]
    scored = fits[last]
    arm = scored.fit.machine.arm
    reasons = [] if arm is None else _effort(arm, motions)
    for runs, errors in scored.errors.items():
        error = errors["moving"]["all"]
        reasons += error_reason(np.nan if error is None else error, f"torque, {runs} runs, fit {last}")
    if last != "ols" and "ols" in fits:
        reasons += _worse(last, scored, fits["ols"])
    if (found := arm_of(scored.fit)) is not None and arm is not None:
        reasons += _far(arm, found, near)
    if isinstance(scored.fit, FullFit):
        reasons += _full(scored.fit, scored)
    reasons += _status(last, scored.fit)
    return Verdict(tuple(reasons))


def judge_filters(runs: Sequence[ArmRecording], protocol: Protocol) -> list[Reason]:
    """Whether positions are differentiated twice without a filter although their noise is large."""
    measured = protocol.velocity == "measured" and all(run.velocity is not None for run in runs)
    if protocol.position_filter is not None or measured:
        return []
    rate = protocol.resample or 1.0 / min(float(np.median(np.diff(run.time))) for run in runs)
    try:
        width = bandwidth_of([replace(run, velocity=None) for run in runs], rate)
    except TooShortError:
        return []
    share = NOISE_SHARE * float(np.median((0.5 * rate / width.clear) ** 2.5))
    if share < NOISY:
        return []
    text = (
        f"positions are differentiated without a filter, and {100.0 * min(share, 1.0):.0f} % of the accelerations is noise: set "
        f"protocol: position_filter and effort_filter, for instance {{order: 4, cutoff: {width.cutoff:.2g}}}; "
        "`stribeck data describe` does"
    )
    return [Reason("unfiltered", "doubtful", text)]


def _effort(arm: ArmModel, motions: Sequence[ProcessedMotion]) -> list[Reason]:
    """Efforts against the torques of the URDF; see :mod:`stribeck.identify.arm.survey.effort`."""
    survey = survey_effort(arm, motions)
    reasons = []
    against = [joint for joint, sign in zip(arm.joints, survey.effort_signs, strict=True) if sign < 0.0]
    if against:
        text = (
            f"the effort of {', '.join(against)} has the sign against gravity and friction: set the sign of effort, or of "
            "position if the axis turns the other way"
        )
        reasons.append(Reason("effort_sign", "unusable", text))
    scales = {j: s for j, s in zip(arm.joints, survey.scale.tolist(), strict=True) if np.isfinite(s)}
    other = {j: s for j, s in scales.items() if not 1.0 / OTHER_UNIT < s < OTHER_UNIT}
    most = 2 * len(other) > len(scales)
    if not most:
        other = {j: s for j, s in other.items() if not 1.0 / FAR < s < FAR}
    if other:
        listed = ", ".join(f"{joint} {scale:.3g}" for joint, scale in other.items())
        text = (
            f"the effort is a multiple of the torque of the URDF ({listed}): a current or a torque of the motor taken for "
            "the torque of the joint (set scale or gears), or masses of the URDF or the payload in grams"
        )
        reasons.append(Reason("effort_unit", "unusable" if most else "doubtful", text))
    reasons += [Reason("effort_check", "doubtful", note) for note in survey.notes if not against]
    return reasons


def _worse(name: str, scored: Scored, plain: Scored) -> list[Reason]:
    """Compared on validation runs if there are any, otherwise on the fitted ones."""
    runs = "validation" if "validation" in scored.errors else "train"
    mine, other = (one.errors[runs]["moving"]["all"] for one in (scored, plain))
    if mine is None or other is None or mine <= WORSE * other:
        return []
    much = mine > MUCH_WORSE * other
    text = (
        f"{name} fits worse than ols ({100.0 * mine:.3g} against {100.0 * other:.3g} %, {runs} runs): "
        + ("only links that cannot exist explain the torques; " if much else "")
        + "check signs, units and the URDF"
    )
    return [Reason("worse_than_ols", "unusable" if much else "doubtful", text)]


def _far(given: ArmModel, found: ArmModel, near: Neighbourhood) -> list[Reason]:
    """Links whose mass or centre of mass has left the neighbourhood of the URDF."""
    (old, com, _), (new, moved, _) = (
        about_com(arm.inertials.reshape(-1, INERTIALS)) for arm in (given, found)
    )
    least = LIGHT * min(float(old.sum()), float(new.sum()))
    ratio = np.maximum(old, least) / np.maximum(new, least)
    away = np.linalg.norm(moved - com, axis=1)
    reasons = []
    grams = [joint for joint, r in zip(given.joints, ratio, strict=True) if GRAMS[0] < r < GRAMS[1]]
    if grams:
        text = (
            f"the URDF has 1000 times the mass that torques show behind {', '.join(grams)}: masses in grams?"
        )
        reasons.append(Reason("grams", "unusable", text))
    for k, joint in enumerate(given.joints):
        if joint in grams:
            continue
        if not 1.0 / FAR < ratio[k] < FAR:
            found_ = f"{old[k]:.3g} kg in the URDF, {new[k]:.3g} kg identified"
        elif away[k] > FAR * near.com and new[k] > least:
            found_ = f"its centre of mass moved by {away[k]:.2g} m"
        else:
            continue
        reasons.append(
            Reason("far_from_urdf", "unusable", f"the link behind {joint} left the URDF: {found_}")
        )
    return reasons


def _full(fit: FullFit, scored: Scored) -> list[Reason]:
    reasons = []
    values = [fit.values(element) for element in fit.machine.elements]
    still = [e for e, v in zip(fit.machine.elements, values, strict=True) if v["armature"] < NO_ROTOR]
    if still:
        text = (
            f"the rotor inertia of {', '.join(still)} is zero, its lower bound: accelerations or delays are wrong, unless the "
            "joint has no gears"
        )
        reasons.append(Reason("no_rotor_inertia", "doubtful", text))
    numbers = np.concatenate([list(v.values()) for v in values])
    error = scored.errors["train"]["moving"]["all"]
    reasons += interval_reason(
        numbers.tolist(), np.concatenate(fit.sigma).tolist(), 1.0 if error is None else error
    )
    return reasons


def _status(name: str, fit: Fit) -> list[Reason]:
    """A search that did not converge; kinks are normal for friction at reversals."""
    if isinstance(fit, LinearFit) or fit.status in (SolverStatus.CONVERGED, SolverStatus.KINK):
        return []
    use: Use = "unusable" if fit.status is SolverStatus.DIVERGED else "doubtful"
    return [Reason("solver", use, f"the search for {name} {fit.status.words}")]
