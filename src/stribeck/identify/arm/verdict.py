"""Verdict on the fits of an arm: faults of recordings, of the URDF and of the fit itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from stribeck.errors import TooShortError
from stribeck.identify.arm.config import Neighbourhood, Protocol
from stribeck.identify.arm.friction.drives import element_estimates
from stribeck.identify.arm.friction.full_fit import FullFit
from stribeck.identify.arm.friction.width import friction_widths
from stribeck.identify.arm.identify import Scored, arm_of
from stribeck.identify.arm.inertia import about_com
from stribeck.identify.arm.least_squares import LinearFit
from stribeck.identify.arm.model import INERTIALS, ArmModel
from stribeck.identify.arm.motion import ProcessedMotion
from stribeck.identify.arm.recordings import ArmRecording
from stribeck.identify.arm.residuals import scores
from stribeck.identify.arm.survey.effort import survey_effort
from stribeck.identify.arm.survey.spectra import NOISE_SHARE, bandwidth_of
from stribeck.identify.common.judging import Evidence, Misfit, Sizes, judge, misfits_of
from stribeck.model.actuator import JointUnits
from stribeck.model.arrays import Array
from stribeck.model.estimate import Estimate
from stribeck.model.verdict import LARGEST_ERROR, Reason, Verdict

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
    fits: Mapping[str, Scored], motions: Sequence[ProcessedMotion], near: Neighbourhood, usual: JointUnits
) -> Verdict:
    """The verdict on the last of the fits, which is the most detailed one.

    :param fits: by name, in the order of computation; at least one.
    :param motions: the fitted recordings.
    :param near: neighbourhood of the URDF.
    :param usual: units of couplings, and of a machine without URDF.
    """
    last = list(fits)[-1]
    scored = fits[last]
    fit, arm = scored.fit, scored.fit.machine.arm
    more = [] if arm is None else _effort(arm, motions)
    if last != "ols" and "ols" in fits:
        more += _worse(last, scored, fits["ols"])
    if (found := arm_of(fit)) is not None and arm is not None:
        more += _far(arm, found, near)
    full = fit if isinstance(fit, FullFit) else None
    return judge(
        Evidence(
            f"torque (fit {last})",
            tuple(one for part in scored.errors for one in _misfits(scored, part)),
            {} if full is None else _estimates(full, usual),
            {} if full is None or arm is None else _sizes(full, arm, motions),
            None if isinstance(fit, LinearFit) else fit.status,
            widths={} if full is None else friction_widths(full, scored.motions["train"]),
            more=(*more, *_resting(scored), *([] if full is None else _no_rotor(full))),
        )
    )


def _misfits(scored: Scored, part: str) -> tuple[Misfit, ...]:
    """Relative errors of moving rows: of all, of each joint and of each recording."""
    moving = scored.errors[part]["moving"]
    runs = zip(scored.motions[part], scored.predictions[part], strict=True)
    by_file = {motion.name: scores([motion], [predicted])["moving"]["all"] for motion, predicted in runs}
    by_joint = dict(zip(scored.fit.machine.joints, moving["per_joint"], strict=True))
    nan = float("nan")
    return misfits_of(
        nan if moving["all"] is None else moving["all"],
        {name: nan if error is None else error for name, error in by_joint.items()},
        {name: error for name, error in by_file.items() if error is not None},
        held_out=part == "validation",
    )


def _resting(scored: Scored) -> list[Reason]:
    """Joints of which most of the torque is not explained once rows at rest count, unless they stick, where any torque is right."""
    reasons: list[Reason] = []
    if any(motion.sticking for motions in scored.motions.values() for motion in motions):
        return reasons
    for part, errors in scored.errors.items():
        for joint, error in zip(scored.fit.machine.joints, errors["every_row"]["per_joint"], strict=True):
            if error is not None and error > LARGEST_ERROR:
                text = f"{joint}, {part} recordings including rows at rest: relative error of torque {100.0 * error:.3g} %"
                reasons.append(Reason("large_error", "doubtful", text, joint))
    return reasons


def _estimates(fit: FullFit, usual: JointUnits) -> dict[str, dict[str, Estimate]]:
    """Estimates by joint and coupling; rotor inertias of zero are a reason of their own."""
    units = fit.machine.units(usual)
    found = {element: element_estimates(fit, element, units[element]) for element in fit.machine.elements}
    return {
        element: {name: one for name, one in estimates.items() if name != "armature" or one.side != "lower"}
        for element, estimates in found.items()
    }


def _sizes(fit: FullFit, arm: ArmModel, motions: Sequence[ProcessedMotion]) -> dict[str, Sizes]:
    """Friction beside the largest torque of each joint that turns, rotor inertia beside that of the links."""
    torque = np.max([np.abs(motion.torque).max(axis=0) for motion in motions], axis=0)
    states = motions[0].states
    found = {}
    for k, joint in enumerate(fit.machine.joints):
        values = fit.values(joint)
        dry = values.get("friction_base", 0.0) + values.get("friction_stribeck", 0.0)
        rotary = not arm.linear[k]
        link = link_inertia(fit, states.position, k) if rotary else 0.0
        found[joint] = Sizes(dry, float(torque[k]), values.get("armature", 0.0) if rotary else 0.0, link)
    return found


def link_inertia(fit: FullFit, position: Array, joint: int) -> float:
    """Largest inertia of the links about a joint [kg m²] over some of the positions (N, n)."""
    arm = arm_of(fit)
    if arm is None:
        return 0.0
    some = position[:: max(len(position) // 20, 1)]
    still, unit = np.zeros_like(some), np.zeros_like(some)
    unit[:, joint] = 1.0
    moved = arm.inverse_dynamics(some, still, unit) - arm.inverse_dynamics(some, still, still)
    return float(np.max(moved[:, joint]))


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
        f"positions are differentiated without a filter, so that {100.0 * min(share, 1.0):.0f} % of the accelerations is noise: set protocol: position_filter "
        f"and effort_filter, for example {{order: 4, cutoff: {width.cutoff:.2g}}}; `stribeck data describe` proposes values"
    )
    return [Reason("unfiltered", "doubtful", text)]


def _effort(arm: ArmModel, motions: Sequence[ProcessedMotion]) -> list[Reason]:
    """Efforts against the torques of the URDF; see :mod:`stribeck.identify.arm.survey.effort`."""
    survey = survey_effort(arm, motions)
    reasons = []
    against = [joint for joint, sign in zip(arm.joints, survey.effort_signs, strict=True) if sign < 0.0]
    if against:
        text = (
            f"the effort of {', '.join(against)} has the opposite sign to gravity and friction: set the sign "
            "of effort, or the sign of position if the axis points the other way"
        )
        reasons.append(Reason("effort_sign", "unusable", text))
    scales = {j: s for j, s in zip(arm.joints, survey.scale.tolist(), strict=True) if np.isfinite(s)}
    other = {j: s for j, s in scales.items() if not 1.0 / OTHER_UNIT < s < OTHER_UNIT}
    most = 2 * len(other) > len(scales)
    if not most:
        other = {j: s for j, s in other.items() if not 1.0 / FAR < s < FAR}
    if other and most:
        listed = ", ".join(f"{joint} {scale:.3g}" for joint, scale in other.items())
        text = (
            f"the effort is far from the torque that the links of the URDF need (ratio {listed}): is it a current, or a torque of the motor (set scale or "
            "gears), or are masses of the URDF or the payload in grams?"
        )
        reasons.append(Reason("effort_unit", "unusable", text))
    elif other:
        reasons += [Reason("effort_unit", "doubtful", _far_off(*one), one[0]) for one in other.items()]
    notes = [] if against else [one for one in survey.notes if one.about == "sign" or one.joint not in other]
    reasons += [Reason("effort_check", "doubtful", one.text, one.joint) for one in notes]
    return reasons


def _far_off(joint: str, scale: float) -> str:
    return (
        f"{joint}: the effort is {scale:.3g} times the torque that the links of the URDF need: does the URDF lack a tool or load (`stribeck identify arm … --payload identify`), "
        "is the effort of this joint a current or a torque of the motor (set scale or gears), or are its masses in grams?"
    )


def _worse(name: str, scored: Scored, plain: Scored) -> list[Reason]:
    """Compared on validation runs if there are any, otherwise on the fitted ones."""
    runs = "validation" if "validation" in scored.errors else "train"
    mine, other = (one.errors[runs]["moving"]["all"] for one in (scored, plain))
    if mine is None or other is None or mine <= WORSE * other:
        return []
    much = mine > MUCH_WORSE * other
    text = (
        f"{name} fits worse than ols ({100.0 * mine:.3g} against {100.0 * other:.3g} %, {runs} runs): "
        + ("only physically inconsistent links explain the torques; " if much else "")
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
        text = f"masses in the URDF are about 1000 times those that the torques indicate, for the links moved by {', '.join(grams)}: are they in grams?"
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
            Reason(
                "far_from_urdf",
                "unusable",
                f"the link moved by {joint} differs too much from the URDF: {found_}",
            )
        )
    return reasons


def _no_rotor(fit: FullFit) -> list[Reason]:
    reasons = []
    for element in fit.machine.elements:
        if fit.values(element)["armature"] < NO_ROTOR:
            text = f"{element}: the rotor inertia is zero, its lower bound: accelerations or delays are wrong, unless the joint has no gear"
            joint = element if element in fit.machine.joints else ""
            reasons.append(Reason("no_rotor_inertia", "doubtful", text, joint))
    return reasons
