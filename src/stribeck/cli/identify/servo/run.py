"""Implements ``stribeck identify servo``: checks, searches, files and printed results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from stribeck.api.servo import ServoQuestion, chosen_task, fitted, settings_with, tasks_of, variants_of
from stribeck.api.servo_notes import control_notes, supply_notes
from stribeck.api.stages import StageLine
from stribeck.cli.evaluate.run import evaluate_files
from stribeck.cli.exit_codes import DONE, INTERRUPTED, NOT_USABLE, STARTED
from stribeck.cli.identify.servo.options import IdentifyServoOptions
from stribeck.cli.identify.servo.tracking import Tracker, check_tracking, tracked
from stribeck.cli.inputs import (
    as_number,
    assignments,
    check_distinct,
    recordings_of,
    warn,
    warn_of_seen,
    write_json,
)
from stribeck.cli.progress import Progress, progress_of
from stribeck.cli.stop import StopRequest
from stribeck.cli.table import print_table
from stribeck.errors import ConfigError, OutputError, StudyError
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive, write_drive
from stribeck.files.folders import check_writable
from stribeck.identify.servo.drive import fitted_drive
from stribeck.identify.servo.identify import snapshot
from stribeck.identify.servo.incumbent import Incumbent
from stribeck.identify.servo.objective import equivalent_error
from stribeck.identify.servo.result import FitResult, FitSettings, StudySettings
from stribeck.identify.servo.selection import LeftOutGain, Selection, check_freed
from stribeck.identify.servo.task import FitTask
from stribeck.identify.servo.verdict import judge_result
from stribeck.model.law import LAWS

REFRESH_EVERY = 3.0
"""Minimum time between two updates of the parameter file with the best point so far [s] ..."""

REFRESH_SHARE = 0.02
"""... and the maximum fraction of the time that updates may take."""


def run(options: IdentifyServoOptions) -> int:
    """Fit one law or all laws, and write the results."""
    _check_outputs(options)
    check_tracking(options)
    if options.eval:
        return _evaluate(options)
    with StopRequest.on_signals() as stop:
        return _fit_laws(options, stop)


def _fit_laws(options: IdentifyServoOptions, stop: StopRequest) -> int:
    logs, question = recordings_of(options, options.servo), question_of(options)
    others = (
        recordings_of(replace(options, recordings=options.validate), options.servo)
        if options.validate
        else []
    )
    warn_of_seen(options.recordings, options.validate)
    groups = [tasks_of(one, logs, options.laws, others) for one in variants_of(question, logs)]
    for text in (*supply_notes(logs, groups[0][0].actuator), *control_notes(logs, groups[0][0].actuator)):
        warn(text)
    if options.output is None:
        warn("without --output the parameters are printed but not saved")
    tasks, selection = groups[0], None
    if options.law == "auto":
        task, selection = _choose(groups, quiet=options.progress != "bar", stop=stop)
        tasks = [task]
    results: list[FitResult] = []
    for task in tasks:
        started = time.perf_counter() if results else STARTED
        if options.free:
            check_freed(task, options.free, _print_left_out, stop)
        progress = progress_of(options.progress, task.law.name, task.settings.trials)
        with tracked(options, task.law.name) as tracker:
            output = options.output
            if output is not None and options.law == "all":
                output /= f"{task.law.name}.json"
            result = _fit(task, selection, output, progress, tracker, started, stop)
            if tracker is not None:
                tracker.finish(result)
        results.append(result)
        fits = [one.summary() | judge_result(one).to_json() for one in results]
        write_json(options.json, {"fits": fits} if options.law == "all" else fits[0], allow_nan=False)
        _print_result(result)
        if output is not None:
            print(output)
        if stop():
            break
    if len(results) > 1:
        _print_comparison(results)
    if stop():
        return INTERRUPTED
    poor = [result for result in results if judge_result(result).use != "usable"]
    return NOT_USABLE if options.strict and poor else DONE


def _check_outputs(options: IdentifyServoOptions) -> None:
    """Check before the fit that its results can be written and overwrite nothing else."""
    folder = options.output if options.law == "all" and not options.eval else None
    check_distinct([options.output, options.json], [options.signals], options.recordings)
    for path in (options.json, options.output if folder is None else None):
        if path is not None:
            check_writable(path)
    if folder is None:
        return
    if folder.is_file():
        raise OutputError(f"{folder} is a file, but --law all writes several: name a folder")
    for name in LAWS:
        check_writable(folder / f"{name}.json")


def _fit(
    task: FitTask,
    selection: Selection | None,
    output: Path | None,
    progress: Progress,
    tracker: Tracker | None,
    started: float,
    stop: Callable[[], bool],
) -> FitResult:
    """Fit and show progress, while updating the parameter file with the best point so far."""
    watched = output is not None or tracker is not None
    next_refresh = time.perf_counter() + REFRESH_EVERY
    with progress:

        def tell(incumbent: Incumbent) -> None:
            nonlocal next_refresh
            error = None if incumbent.unit is None else equivalent_error(incumbent.loss)
            progress.update(incumbent.evaluations(), error)
            if watched and time.perf_counter() > next_refresh:
                begin = time.perf_counter()
                so_far = snapshot(task, incumbent, started)
                if so_far is not None and tracker is not None:
                    tracker.log(so_far)
                if so_far is not None and output is not None:
                    write_drive(output, fitted_drive(so_far))
                cost = time.perf_counter() - begin
                next_refresh = time.perf_counter() + max(REFRESH_EVERY, cost / REFRESH_SHARE)

        result = fitted(task, selection, tell, started, stop)
    if output is not None:
        write_drive(output, fitted_drive(result))
    return result


def _evaluate(options: IdentifyServoOptions) -> int:
    """``--eval``: print errors of the parameter file named by ``--output``."""
    if options.output is None:
        raise ConfigError("--eval evaluates an existing parameter file: name it with --output")
    servo = None if options.servo is None else load_actuator(options.servo)
    evaluate_files([(options.output, read_drive(options.output, servo))], options)
    return DONE


def _print_left_out(figure: LeftOutGain) -> None:
    print(
        f"fitted without gain {figure.kp:g}, the error at this gain is {1e3 * figure.fixed:.1f} mrad with the "
        f"datasheet value, {1e3 * figure.free:.1f} mrad with the parameter free"
    )


def _print_result(result: FitResult) -> None:
    """Print parameters, intervals, and which parameters the data do not determine."""
    law = result.law
    print(f"\n{law.name.upper()} ({law.title}), {result.actuator.title}: {_errors(result)}")
    print(
        f"{result.search.evaluations} evaluations in {result.search.search_seconds:.1f} s of search and {result.search.compile_seconds:.1f} s of compilation; "
        f"search: {result.search.outcome}; solver: {result.search.status.words}\n"
    )
    uncertainty = result.uncertainty
    errors = {} if uncertainty is None else uncertainty.step_errors
    rows = []
    for name, one in result.estimates.items():
        interval = "" if one.interval is None else _interval_words(one.value, one.interval)
        note = {"determined": "", "at bound": f"at its {one.side} bound"}.get(one.status, one.status)
        if one.status != "fixed" and uncertainty is None:
            note = ""
        step = f"{errors[name]:+.1g}" if name in errors else ""
        rows.append([name, one.unit, f"{one.value:.5g}", interval, step, note])
    print_table(["parameter", "unit", "value", "95 %", "step error", ""], rows, left=2)
    settings = result.settings
    print(f"\ntime step {1e3 * settings.dt:g} ms, integrator {settings.integrator}", end="")
    if uncertainty is None:
        print()
    else:
        print(
            f"; its effect on a parameter is at most {uncertainty.step_share:.2g} of the half-width of the interval"
        )
        print("\nNot identifiable from these data:" if uncertainty.statements else "")
        for statement in uncertainty.statements:
            print(f"- {statement}")
    print(*judge_result(result).lines(), sep="\n")


def _interval_words(value: float, interval: tuple[float, float]) -> str:
    """The interval as ± its half-width, or by its ends where it is cut off at 0."""
    lower, upper = interval
    cut_off = lower == 0.0 and upper > 2.0 * value
    return f"0 to {upper:.2g}" if cut_off else f"± {0.5 * (upper - lower):.2g}"


def _errors(result: FitResult) -> str:
    text = f"mean absolute error {1e3 * result.train.mean:.2f} mrad on {len(result.train.by_run)} runs"
    if result.validation is not None:
        text += f", {1e3 * result.validation.mean:.2f} mrad on {len(result.validation.by_run)} runs held out"
    return text


def _print_comparison(results: Sequence[FitResult]) -> None:
    """Print all laws side by side."""
    print()
    rows = []
    for one in results:
        errors = [f"{1e3 * part.mean:.2f}" for part in (one.train, one.validation) if part is not None]
        free, seconds = str(len(one.parameters.free)), f"{one.search.search_seconds:.1f}"
        rows.append([one.law.name.upper(), one.law.title, free, *errors, seconds])
    held_out = [] if results[0].validation is None else ["held out [mrad]"]
    print_table(["law", "", "free", "error [mrad]", *held_out, "search [s]"], rows, left=2)


def _choose(
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
        _print_selection(selection)
    return task, selection


def _print_selection(selection: Selection) -> None:
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
            f"Expected error with a new {KINDS.get(kind, kind)}: {1e3 * one.value:.0f} mrad ({low:.0f} to {high:.0f})."
        )


def _strengths(selection: Selection) -> str:
    """What the strengths of the prior are, where several were compared."""
    found = sorted({variant.strength for variant in selection.variants})
    if len(found) == 1:
        return ""
    words = ", ".join(f"{strength:.2g}" for strength in found)
    return f" (candidates: laws with their prior, what is known of such servos, counted {words} times)"


KINDS = {"higher gain": "gain above the recorded ones", "heavier load": "load above the recorded ones"}
"""Kinds of conditions after "a new"."""


def question_of(options: IdentifyServoOptions) -> ServoQuestion:
    """The question of some options.

    :raises ConfigError: for values that cannot be read.
    :raises StudyError: for contradictory options of a study.
    """
    assigned = assignments([pair for text in options.set for pair in text.split(",")], "--set")
    return ServoQuestion(
        law=options.law,
        terms=options.terms,
        effects=options.effects,
        actuator=options.servo,
        fixed={name: as_number(text, f"--set {name}") for name, text in assigned.items()},
        free=options.free,
        hold_out_gain=options.hold_out_gain,
        hold_out=options.hold_out,
        settings=_settings(options),
    )


def _settings(options: IdentifyServoOptions) -> FitSettings:
    study, resume = options.study, options.resume
    if options.load_study is not None:
        if study is not None and study != options.load_study:
            raise StudyError("--study and --load-study name different studies: give one of them")
        study, resume = options.load_study, True
    if resume and study is None:
        raise StudyError("--resume continues a study: add --study URL")
    if options.join and study is None:
        raise StudyError("--join needs a study: add --study URL")
    if options.join and resume:
        raise StudyError("--join creates or continues a study, --resume only continues one: give one of them")
    settings = FitSettings(
        method=options.method,
        trials=options.trials,
        seed=options.seed,
        workers=options.workers,
        study=StudySettings(study, resume, options.join),
        batch=options.batch,
        dtype="float64" if options.float64 else "float32",
    )
    return settings_with(settings, options.step, options.reset_period, options.integrator)
