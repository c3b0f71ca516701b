"""Implements ``stribeck fit --model auto``: which candidates are compared, and the printed comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from stribeck.cli.fit.options import FitOptions
from stribeck.cli.inputs import actuator_for, warn
from stribeck.cli.progress import StageLine
from stribeck.cli.table import print_table
from stribeck.identify.servo.selection import Selection, select
from stribeck.identify.servo.task import FitTask
from stribeck.model.log import Log

COMPARED = ("current-limit", "supply", "saturation")
"""Effects that are compared with none, where the servo's file and the recordings allow them."""

ONE_RUN = "m4"
"""Law for a single run, where nothing can be left out."""


def with_effects(options: FitOptions, logs: Sequence[Log]) -> list[FitOptions]:
    """The options with each set of effects to compare; as given unless the law is chosen and none are named."""
    if options.model != "auto" or options.effects or options.free:
        return [options]
    known = actuator_for(options.actuator, logs).known_effects
    measured = all(log.supply_voltage is not None for log in logs)
    possible = tuple(e for e in COMPARED if e in known and (e != "supply" or measured))
    return [options, replace(options, effects=possible)] if possible else [options]


def choose(
    groups: Sequence[Sequence[FitTask]], *, quiet: bool, stop: Callable[[], bool]
) -> tuple[FitTask, Selection | None]:
    """The task of the law that predicts best, and the comparison, which is printed.

    :param groups: tasks of all laws for each set of effects.
    :raises KeyboardInterrupt: if ``stop`` returned true.
    """
    tasks = groups[0]
    if len(tasks[0].split.train) < 2:
        task = next((task for task in tasks if task.law.name == ONE_RUN), tasks[-1])
        warn(f"one run alone leaves nothing to choose a law by: {task.law.name.upper()} is fitted")
        return task, None
    with StageLine(quiet) as line:

        def tell(evaluations: int) -> None:
            line.tell(f"laws are compared by conditions left out, {evaluations} evaluations")
            if stop():
                raise KeyboardInterrupt

        selection = select(groups, tell)
    print_selection(selection)
    return selection.task, selection


def print_selection(selection: Selection) -> None:
    """Print the candidates with their errors, and the error to expect under new conditions."""
    print(
        f"{len(selection.variants)} candidates compared by conditions left out, {selection.evaluations} evaluations in "
        f"{selection.seconds:.0f} s; errors in mrad\n"
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
            f"Expected error under a new {kind_words(kind)}: {1e3 * one.value:.0f} mrad ({low:.0f} to {high:.0f})."
        )


def kind_words(kind: str) -> str:
    """A kind of condition after "a new"."""
    return {
        "higher gain": "gain above the recorded ones",
        "heavier load": "load above the recorded ones",
    }.get(kind, kind)
