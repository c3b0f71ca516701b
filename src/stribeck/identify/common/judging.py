r"""The verdict on a result of any engine: what every engine's result is judged by, in one place.

==================== =========================================================================================
key                  reason
==================== =========================================================================================
large_error          relative error above :data:`GOOD` (doubtful) or :data:`~stribeck.model.verdict.LARGEST_ERROR` (unusable)
does_not_carry_over  error of recordings held out above :data:`~stribeck.model.verdict.FAILS` times that of fitted ones
friction_unknown     no friction term of a joint is determined, or no dry one (doubtful); none has even an interval (unusable,
                     except of a mechanism, which has other parameters). Where the interval of the friction itself over the
                     recorded motion is known, it decides instead: wider than :data:`~stribeck.model.estimate.LOOSE` times the friction (doubtful)
at_bound             a parameter at a search bound, except friction terms at the lower one, which may be absent
implausible          dry friction above the largest torque (unusable), a rotor inertia that no joint has (doubtful)
zero_intervals       all intervals have the width zero although residuals remain
solver               the search did not converge (doubtful), or diverged (unusable)
==================== =========================================================================================

What only one engine can see (signs against gravity, links that left their URDF) are reasons that it adds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stribeck.identify.common.solver_status import SolverStatus
from stribeck.model.estimate import LOOSE, Estimate
from stribeck.model.terms import FRICTION_PARAMETERS, TERMS
from stribeck.model.verdict import FAILS, LARGEST_ERROR, Reason, Use, Verdict

GOOD = 0.2
"""Largest relative error of a result that is usable."""

SMALL = 0.05
"""Relative errors of a joint or recording below this are never too large, however much smaller those of others are."""

LARGEST_INERTIA = 30.0
"""Rotor inertias above this [kg m²], and above that of the links, are none of a robot's joint."""

ZERO_WIDTH = 1e-9
"""Intervals narrower than this share of the value count as zero ..."""

EXACT = 1e-6
"""... unless the relative error is below this, as in simulations without noise."""

DRY = frozenset(name for term in TERMS.values() if term.kind in ("dry", "fading") for name in term.names)
"""Friction parameters that act at any speed."""


@dataclass(frozen=True)
class Misfit:
    """Relative error, of all recordings and joints, of one joint in all recordings, or of one recording.

    :param error: relative; NaN where there is nothing to relate it to.
    :param held_out: of recordings that were not fitted.
    """

    error: float
    held_out: bool = False
    joint: str = ""
    file: str = ""


@dataclass(frozen=True)
class Sizes:
    """What the friction and inertia of a joint are compared with.

    :param dry: dry friction at rest [N m or N].
    :param torque: largest torque of the recordings or of the drive.
    :param armature: rotor inertia, or inertia altogether where links are not known [kg m² or kg].
    :param link: inertia of the links about the joint; zero where it is not known.
    """

    dry: float
    torque: float
    armature: float = 0.0
    link: float = 0.0


@dataclass(frozen=True)
class Evidence:
    """What a verdict looks at.

    :param quantity: what was fitted, in words.
    :param misfits: errors; the whole is the one without joint and file.
    :param estimates: by joint and parameter; of parameters that belong to no joint under the empty name. The only joint of a
        result has the empty name, too.
    :param sizes: by joint.
    :param status: how the search ended, where there was one; ``kinks``: whether it may end at one.
    :param friction: names of friction parameters besides those of the laws.
    :param widths: relative half-width of the 95 % interval of the friction over the recorded motion [1], by joint; such a joint is judged by it
        instead of by single friction parameters, which are correlated.
    :param together: friction parameters that the recordings determine only together, which is no reason by itself.
    :param more: reasons that only the engine can see.
    """

    quantity: str
    misfits: tuple[Misfit, ...]
    estimates: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    sizes: Mapping[str, Sizes] = field(default_factory=dict)
    status: SolverStatus | None = None
    kinks: bool = True
    friction: frozenset[str] = frozenset()
    widths: Mapping[str, float] = field(default_factory=dict)
    together: frozenset[str] = frozenset()
    more: tuple[Reason, ...] = ()


def misfits_of(
    whole: float,
    by_joint: Mapping[str, float] | None = None,
    by_file: Mapping[str, float] | None = None,
    *,
    held_out: bool = False,
) -> tuple[Misfit, ...]:
    """Errors of all together, and of each joint and recording where there are several."""
    joints = [Misfit(error, held_out, joint=joint) for joint, error in (by_joint or {}).items()]
    files = [Misfit(error, held_out, file=file) for file, error in (by_file or {}).items()]
    several = [one for some in (joints, files) if len(some) > 1 for one in some]
    return (Misfit(whole, held_out), *several)


def judge(evidence: Evidence) -> Verdict:
    """The verdict on a result, with the joints that it names."""
    reasons = [*evidence.more, *_errors(evidence)]
    for joint, estimates in evidence.estimates.items():
        if joint in evidence.widths:
            reasons += _wide(joint, evidence.widths[joint])
        else:
            reasons += _unknown(joint, estimates, evidence.friction, evidence.together)
        reasons += _bounds(joint, estimates, evidence.friction)
    for joint, sizes in evidence.sizes.items():
        reasons += _sizes(joint, sizes)
    reasons += _widths(evidence)
    reasons += _status(evidence.status, evidence.kinks)
    return Verdict(tuple(reasons), tuple(joint for joint in evidence.estimates if joint))


def _errors(evidence: Evidence) -> list[Reason]:
    """Errors by their size, and of recordings held out beside fitted ones."""
    reasons = []
    fitted = {one.joint: one.error for one in evidence.misfits if not one.held_out and not one.file}
    several = any(one.joint for one in evidence.misfits)
    for one in evidence.misfits:
        place = _place(one)
        part = bool(one.file) or (several and not one.joint)  # what a joint explains badly concerns it alone
        reasons += _large(one, f"{place}: relative error of {evidence.quantity}", part)
        known = fitted.get(one.joint)
        if not one.held_out or one.file or known is None or not one.error > FAILS * known:
            continue
        if not one.joint or one.error > SMALL:
            text = f"{place}: {one.error / max(known, 1e-12):.2g} times the error of fitted recordings: the law does not generalise"
            text += ", or the friction of this joint is different there" if one.joint else ""
            reasons.append(Reason("does_not_carry_over", "doubtful", text, one.joint))
    return reasons


def _large(one: Misfit, words: str, part: bool) -> list[Reason]:
    """A reason if an error is large or not a number; a joint at rest has no relative error, and none.

    :param part: whether it may be that of one joint or recording, so that others may be used.
    """
    if one.error <= GOOD or (one.joint and math.isnan(one.error)):
        return []
    if part or one.error <= LARGEST_ERROR:
        text = f"{words} {100.0 * one.error:.3g} %, more than {100.0 * GOOD:g} %"
        return [Reason("large_error", "doubtful", text, one.joint, one.file)]
    text = f"{words} {100.0 * one.error:.3g} %, more than {100.0 * LARGEST_ERROR:g} %: the model is not valid"
    return [Reason("large_error", "unusable", text, one.joint)]


def _place(one: Misfit) -> str:
    recordings = one.file or ("recordings held out" if one.held_out else "fitted recordings")
    return f"{one.joint}, {recordings}" if one.joint else recordings


def _wide(joint: str, width: float) -> list[Reason]:
    """Friction that the recordings determine too little."""
    if width <= LOOSE:
        return []
    known = f"known to ± {100.0 * width:.0f} % only (95 % interval)" if math.isfinite(width) else "not known"
    text = f"{joint}: its friction in the recorded motion is {known}: record longer, at more speeds"
    return [Reason("friction_unknown", "doubtful", text, joint)]


def _unknown(
    joint: str, estimates: Mapping[str, Estimate], others: frozenset[str], together: frozenset[str]
) -> list[Reason]:
    """Friction that the recordings do not determine."""
    friction = {
        name: one
        for name, one in estimates.items()
        if (name in FRICTION_PARAMETERS or name in others) and one.status != "fixed"
    }
    if not any(one.status == "not determined" for one in friction.values()):
        return []
    prefix = f"{joint}: " if joint else ""
    if not any(one.known or one.side == "upper" for one in friction.values()):
        text = f"{prefix}these recordings determine none of {', '.join(friction)}"
        if others or any(one.interval is not None for one in friction.values()):
            text += ": more recordings would narrow the intervals"
            return [Reason("friction_unknown", "doubtful", text, joint)]
        return [Reason("friction_unknown", "unusable", f"{text}: check that the joint moves in them", joint)]
    base = friction.get("friction_base")
    if base is None or base.status != "not determined" or "friction_base" in together:
        return []
    if any(one.known for name, one in friction.items() if name in DRY):
        return []
    text = f"{prefix}Coulomb friction is not determined: {base.reason}"
    return [Reason("friction_unknown", "doubtful", text, joint)]


def _bounds(joint: str, estimates: Mapping[str, Estimate], others: frozenset[str]) -> list[Reason]:
    """Parameters at search bounds."""
    listed = [
        f"{name} at its {one.side} bound {one.value:.3g} {one.unit}".rstrip()
        for name, one in estimates.items()
        if one.side == "upper"
        or (one.side is not None and name not in FRICTION_PARAMETERS and name not in others)
    ]
    if not listed:
        return []
    prefix = f"{joint}: " if joint else ""
    text = f"{prefix}{', '.join(listed)}: the best value may lie beyond the bound"
    return [Reason("at_bound", "doubtful", text, joint)]


def _sizes(joint: str, sizes: Sizes) -> list[Reason]:
    """Values that cannot be."""
    reasons, prefix = [], f"{joint}: " if joint else ""
    if sizes.dry > sizes.torque > 0.0:
        text = f"{prefix}dry friction of {sizes.dry:.3g} exceeds the largest torque in the recordings, {sizes.torque:.3g}"
        reasons.append(Reason("implausible", "unusable", text, joint))
    if sizes.armature > max(LARGEST_INERTIA, sizes.link):
        text = (
            f"{prefix}an inertia of {sizes.armature:.3g} kg m² is too large for a robot joint: are positions "
            "in another unit, or does the torque belong to another joint?"
        )
        reasons.append(Reason("implausible", "doubtful", text, joint))
    return reasons


def _widths(evidence: Evidence) -> list[Reason]:
    """Intervals without a width, those of parameters at a bound included."""
    found = [one for joint in evidence.estimates.values() for one in joint.values() if one.status != "fixed"]
    known = [one for one in found if one.interval is not None or one.side is not None]
    widths = [0.0 if one.interval is None else 0.5 * (one.interval[1] - one.interval[0]) for one in known]
    whole = [one.error for one in evidence.misfits if not one.joint and not one.file and not one.held_out]
    return interval_reason([one.value for one in known], widths, max(whole, default=1.0))


def interval_reason(values: Sequence[float], sigma: Sequence[float], error: float) -> list[Reason]:
    """A reason if all standard deviations are zero although residuals are not.

    :param values, sigma: estimates and their standard deviations.
    :param error: relative error of the fit.
    """
    sizes = np.abs(np.asarray(values, dtype=np.float64))
    narrow = np.asarray(sigma, dtype=np.float64) <= ZERO_WIDTH * np.maximum(sizes, 1e-12)
    if len(sizes) == 0 or not narrow.all() or error < EXACT:
        return []
    text = "all intervals have zero width although residuals remain: they do not describe the uncertainty"
    return [Reason("zero_intervals", "unusable", text)]


def _status(status: SolverStatus | None, kinks: bool) -> list[Reason]:
    """A search that did not converge; kinks are normal for friction at reversals."""
    if status is None or status is SolverStatus.CONVERGED or (kinks and status is SolverStatus.KINK):
        return []
    use: Use = "unusable" if status is SolverStatus.DIVERGED else "doubtful"
    return [Reason("solver", use, f"the search {status.words}")]
