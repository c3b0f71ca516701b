"""Verdict of a report as sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

from stribeck.evaluate.assessment import (
    Assessed,
    AssessedParameter,
    Assessment,
    Standing,
    Stepping,
    stated_stepping,
)
from stribeck.evaluate.judgement import Basis, Comparison, Judgement, carries_over
from stribeck.model.verdict import CARRIES_OVER, FAILS, Use

Tone = Literal["good", "note", "doubt"]

MARKS: dict[Tone, str] = {"good": "\N{CHECK MARK}", "note": "i", "doubt": "!"}
"""Symbols of statements, so that they are not distinguished by colour alone."""

TONES: dict[Use, Tone] = {"usable": "good", "doubtful": "doubt", "unusable": "doubt"}
"""Tones of verdicts on fits."""

NOTICEABLE = 0.02
"""Smallest relative difference between the error stated in a file and the computed error that is reported."""


Statement = tuple[Tone, str]
"""A sentence and its tone: good news, note, or doubt."""


def verdict(assessment: Assessment, judgement: Judgement) -> list[Statement]:
    """The statements of the report, the most important first."""
    by_label = {one.label: one for one in assessment.files}
    best = by_label[judgement.best]
    return [
        *_use([best, *(one for one in assessment.files if one is not best)]),
        _best(best, judgement),
        *_stepping(assessment),
        *_other_motion(best),
        *_expected(best),
        *_simpler(by_label, judgement),
        *_undetermined(best),
        *_shared_statements(best),
        *_data(assessment),
        *_reproduced(assessment),
    ]


def mrad(error: float) -> str:
    """Format a position error."""
    return f"{1e3 * error:.1f} mrad"


def title(one: Assessed) -> str:
    """Title of a file: its law, with the file name if that differs."""
    law = one.file.law.name.upper()
    return law if one.label.upper() == law else f"{one.label} ({law})"


def listed(names: Sequence[str]) -> str:
    """Join names to a list in a sentence."""
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)


def runs(count: int) -> str:
    """Format a number of runs."""
    return "1 run" if count == 1 else f"{count} runs"


def _best(best: Assessed, judgement: Judgement) -> Statement:
    error = judgement.means[best.label]
    steps = error / best.file.actuator.resolution
    size = f"{mrad(error)} ({math.degrees(error):.2g}°, {steps:.0f} encoder steps)"
    ranked = "Best law" if len(judgement.means) > 1 else "Law"
    if any(other.outcome == "undecided" for other in judgement.comparisons):
        ranked += ", although the difference from another law is within chance"
    count = len(judgement.runs)
    where: dict[Basis, str] = {
        "held out": f"on {runs(count)} not used in any fit",
        "fitted": f"on the {runs(count)} to which it was fitted",
        "all": f"on all {runs(count)}; some files do not state to which runs they were fitted",
    }
    text = f"{ranked}: {title(best)}, {best.file.law.title}; mean absolute error {size} {where[judgement.basis]}."
    return "good" if judgement.basis == "held out" and ranked == "Best law" else "note", text


def steps(found: Stepping) -> str:
    """Format step and reset period of a simulation."""
    reset = f"reset every {found.reset_period:g} s" if found.reset_period else "whole runs"
    return f"steps of {1e3 * found.dt:g} ms, {reset}"


def _stepping(assessment: Assessment) -> Iterator[Statement]:
    """Warn if runs are simulated differently from the fit, or in short intervals."""
    for one in assessment.files:
        fitted = stated_stepping(one.file)
        if fitted is not None and fitted != one.stepping:
            yield (
                "doubt",
                f"{title(one)} is simulated differently here than in its fit: here {steps(one.stepping)}, in the fit {steps(fitted)}.",
            )
    periods = sorted({one.stepping.reset_period for one in assessment.files if one.stepping.reset_period})
    if periods:
        every = listed([f"{period:g} s" for period in periods])
        yield (
            "note",
            f"Simulations are reset to the measured state every {every}: the errors are those of intervals of this length, not of whole runs.",
        )


def _other_motion(best: Assessed) -> Iterator[Statement]:
    ratio = carries_over(best)
    unseen, fitted = best.errors("held out", "not in the fit"), best.errors("fitted")
    if ratio is None:
        if not unseen and fitted:
            yield (
                "doubt",
                f"No run was held out of the fit of {title(best)}: its error in other motions, or at other "
                "gains or loads, is unknown. Hold out runs in the fit, or report on other recordings.",
            )
        return
    means = [sum(errors.values()) / len(errors) for errors in (unseen, fitted)]
    figures = f"{mrad(means[0])} on {runs(len(unseen))} not fitted, {mrad(means[1])} on {len(fitted)} fitted"
    rule = best.file.provenance.runs.rule if best.file.provenance else ""
    rule = f" ({rule})" if rule and best.errors("held out") else ""
    if ratio <= CARRIES_OVER:
        yield (
            "good",
            f"{title(best)} predicts runs to which it was not fitted about as well: {figures}{rule}.",
        )
    elif ratio < FAILS:
        yield (
            "doubt",
            f"{title(best)} is less accurate for runs to which it was not fitted: {figures}{rule}.",
        )
    else:
        yield (
            "doubt",
            f"{title(best)} does not predict runs to which it was not fitted: {figures}{rule}, {ratio:.1f} "
            "times as much. Do not use it for motions that differ from the fitted one.",
        )


def _simpler(by_label: dict[str, Assessed], judgement: Judgement) -> Iterator[Statement]:
    if len(by_label) == 1:
        yield "note", "There is only one file: whether a simpler law would be as accurate is unknown."
        return
    best = by_label[judgement.best]
    sizes = {label: len(one.file.law.parameter_names) for label, one in by_label.items()}
    simpler = [other for other in judgement.comparisons if sizes[other.label] < sizes[judgement.best]]
    if len(set(sizes.values())) == 1:
        yield (
            "note",
            "No law here is simpler than another: whether a simpler one would be as accurate is unknown.",
        )
        return
    if not simpler:
        yield "good", f"{title(best)} is also the simplest law in this report."
        return
    if judgement.simplest != judgement.best and sizes[judgement.simplest] < sizes[judgement.best]:
        chosen = by_label[judgement.simplest]
        yield (
            "note",
            f"A simpler law is as accurate: the error of {title(chosen)} is {mrad(judgement.means[judgement.simplest])}, with {sizes[judgement.simplest]} "
            f"friction parameters instead of {sizes[judgement.best]}.",
        )
    else:
        undecided = [other for other in simpler if other.outcome == "undecided"]
        if undecided:
            text = "; ".join(_comparison(other, by_label) for other in undecided)
            yield "doubt", f"These runs do not show whether a simpler law is as accurate: {text}."
        else:
            text = "; ".join(_comparison(other, by_label) for other in reversed(simpler))
            yield "good", f"No simpler law in this report is as accurate: {text}."
    if judgement.basis != "held out":
        yield (
            "note",
            "Laws are compared on the runs to which they were fitted; on these, additional parameters always reduce the error."
            if judgement.basis == "fitted"
            else (
                "Laws are compared on runs to which some of them may have been fitted, which reduces the errors of those laws."
            ),
        )


def _comparison(other: Comparison, by_label: dict[str, Assessed]) -> str:
    text = f"the error of {title(by_label[other.label])} is {1e3 * other.more:.1f} mrad larger"
    if other.interval is None:
        return f"{text} (too few runs for an interval)"
    low, high = (f"{1e3 * end:.1f}".replace("-", "\N{MINUS SIGN}") for end in other.interval)
    return f"{text} (95 % interval: {low} to {high})"


def _undetermined(best: Assessed) -> Iterator[Statement]:
    """How many parameters have which status, and which of them are not to be used on their own."""
    sure, loose = best.standing("determined"), best.standing("loosely determined")
    unknown = best.standing("not determined", "at a bound", "not stated")
    count = len(sure) + len(loose) + len(unknown)
    if best.file.provenance is None and unknown:
        yield (
            "doubt",
            f"The file of {title(best)} states no intervals for its {count} parameters: regard none of them as determined.",
        )
        return
    if not unknown and not loose:
        yield "good", f"All {count} identified parameters of {title(best)} are determined."
        return
    classes: tuple[tuple[str, Standing], ...] = (
        ("loosely determined", "loosely determined"),
        ("not determined", "not determined"),
        ("at a search bound", "at a bound"),
        ("without a stated status", "not stated"),
    )
    found = [f"{len(sure)} {'is' if len(sure) == 1 else 'are'} determined"]
    for words, status in classes:
        if names := [parameter.name for parameter in best.standing(status)]:
            found.append(f"{len(names)} {words} ({listed(names)})")
    text = f"Of {count} identified parameters of {title(best)}, {listed(found)}."
    if loose:
        text += " A loosely determined value is known to within half of it."
    if unknown:
        text += " The law as a whole may still predict motion, but do not use single values that are not determined or at a search bound."
    yield "doubt" if unknown else "note", text


def _use(files: Sequence[Assessed]) -> Iterator[Statement]:
    """The verdict of each fit and its reasons, as its file states them and the console printed them."""
    for one in files:
        verdict = one.file.verdict
        if verdict is None:
            continue
        yield TONES[verdict.use], f"Verdict on the fit of {title(one)}: {verdict.use}."
        for reason in verdict.reasons:
            yield TONES[reason.use], f"{title(one)}, {reason.use}: {reason.text}"


def _expected(best: Assessed) -> Iterator[Statement]:
    """The choice of the law, and the error to expect under new conditions."""
    choice = best.file.provenance.choice if best.file.provenance else None
    if choice is None:
        return
    yield "note", choice.sentence
    for kind, one in choice.expected_error.items():
        low, high = one.interval
        yield (
            "note",
            f"Expected error with a {kind} that was not recorded: {mrad(one.value)} ({mrad(low)} to {mrad(high)}).",
        )


def _shared_statements(best: Assessed) -> Iterator[Statement]:
    """Statements on the best file and all its data."""
    for text in best.file.statements:
        if text.startswith("All runs"):  # of the fit, which may differ from those of the report
            yield "doubt", f"About the recordings to which {title(best)} was fitted: {text}"
        elif text.startswith("The fit was not finished"):
            yield "doubt", text


def _data(assessment: Assessment) -> Iterator[Statement]:
    for other, text in (
        (True, "reports on exactly the recordings that were fitted (equal digests)"),
        (False, "was fitted to other recordings, or to more than these"),
        (None, "does not state whether it was fitted to these recordings"),
    ):
        names = [title(one) for one in assessment.files if one.same_data is other]
        if names:
            yield "good" if other else "note", f"{listed(names)}: this {text}."


def _reproduced(assessment: Assessment) -> Iterator[Statement]:
    for one in assessment.files:
        stated = one.file.loss.train
        errors = one.errors("fitted")
        if stated is None or not errors or one.same_data is not True:
            continue
        computed = sum(errors.values()) / len(errors)
        if abs(computed - stated) > NOTICEABLE * stated:
            yield (
                "doubt",
                f"{title(one)}: its file states an error of {mrad(stated)} on the fitted runs, but these runs give {mrad(computed)}: was the file changed by "
                "hand, or is the time step or version another one?",
            )


def standing(parameter: AssessedParameter) -> str:
    """Status of a parameter, as text of a table."""
    match parameter.standing:
        case "determined":
            return "determined"
        case "fixed":
            return parameter.why
        case "loosely determined":
            return f"loosely determined: {parameter.why.removeprefix('loosely, ')}"
        case "at a bound":
            return parameter.why or "at a search bound"
        case _:
            return f"not determined: {parameter.why}"
