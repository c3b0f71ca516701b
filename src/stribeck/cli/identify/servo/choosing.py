"""The choice of the law by ``--law auto``: its progress, and the printed comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stribeck.api.servo import chosen_task
from stribeck.cli.inputs import warn
from stribeck.cli.progress import StageLine
from stribeck.cli.table import print_table
from stribeck.identify.servo.selection import Selection
from stribeck.identify.servo.task import FitTask


def choose(
    groups: Sequence[Sequence[FitTask]], *, quiet: bool, stop: Callable[[], bool]
) -> tuple[FitTask, Selection | None]:
    """The task of the law that predicts best, and the comparison, which is printed.

    :param groups: tasks of all laws for each set of effects.
    :raises KeyboardInterrupt: if ``stop`` returned true.
    """
    with StageLine(quiet) as line:

        def tell(evaluations: int) -> None:
            line.tell(f"laws are compared by cross-validation, {evaluations} evaluations")
            if stop():
                raise KeyboardInterrupt

        task, selection = chosen_task(groups, tell, warn)
    if selection is not None:
        print_selection(selection)
    return task, selection


def print_selection(selection: Selection) -> None:
    """Print the candidates with their errors, and the error to expect under new conditions."""
    print(
        f"{len(selection.variants)} candidates compared by cross-validation, {selection.evaluations} "
        f"evaluations in {selection.seconds:.0f} s; mean absolute errors in mrad, of the best candidate of each law{_strengths(selection)}\n"
    )
    rows = []
    for law in dict.fromkeys((variant.law, variant.effects) for variant in selection.variants):
        mine = [k for k, variant in enumerate(selection.variants) if (variant.law, variant.effects) == law]
        best = selection.chosen if selection.chosen in mine else min(mine, key=lambda k: selection.scores[k])
        errors = [f"{1e3 * error:.1f}" for part in selection.left_out.values() for error in part[best]]
        note = "chosen" if best == selection.chosen else ""
        rows.append([selection.variants[best].label, f"{1e3 * selection.fitted[best]:.1f}", *errors, note])
    names = [f"without {name}" for kind in selection.kinds for name, _ in kind.levels]
    print_table(["law", "all fitted", *names, ""], rows)
    print(f"\n{selection.sentence}")
    for kind, one in selection.expected.items():
        low, high = (1e3 * bound for bound in one.interval)
        print(
            f"Expected error with a new {kind_words(kind)}: {1e3 * one.value:.0f} mrad ({low:.0f} to {high:.0f})."
        )


def _strengths(selection: Selection) -> str:
    """What the strengths of the prior are, where several were compared."""
    found = sorted({variant.strength for variant in selection.variants})
    if len(found) == 1:
        return ""
    words = ", ".join(f"{strength:.2g}" for strength in found)
    return f" (candidates: laws with their prior, what is known of such servos, counted {words} times)"


def kind_words(kind: str) -> str:
    """A kind of condition after "a new"."""
    return {
        "higher gain": "gain above the recorded ones",
        "heavier load": "load above the recorded ones",
    }.get(kind, kind)
