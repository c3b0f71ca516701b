"""Implements ``stribeck identify servo``: checks, searches, files and printed results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from stribeck.api.servo import fitted, tasks_of, variants_of
from stribeck.api.servo_notes import control_notes, supply_notes
from stribeck.cli.evaluate.run import evaluate_files
from stribeck.cli.exit_codes import DONE, INTERRUPTED, NOT_USABLE, STARTED
from stribeck.cli.identify.servo.choosing import choose
from stribeck.cli.identify.servo.options import IdentifyServoOptions
from stribeck.cli.identify.servo.question import question_of
from stribeck.cli.identify.servo.tracking import Tracker, check_tracking, tracked
from stribeck.cli.inputs import (
    check_distinct,
    recordings_of,
    warn,
    warn_of_seen,
    write_json,
)
from stribeck.cli.progress import Progress, progress_of
from stribeck.cli.stop import StopRequest
from stribeck.cli.table import print_table
from stribeck.errors import ConfigError, OutputError
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive, write_drive
from stribeck.files.folders import check_writable
from stribeck.identify.servo.drive import fitted_drive
from stribeck.identify.servo.identify import snapshot
from stribeck.identify.servo.incumbent import Incumbent
from stribeck.identify.servo.objective import equivalent_error
from stribeck.identify.servo.result import FitResult
from stribeck.identify.servo.selection import LeftOutGain, Selection, check_freed
from stribeck.identify.servo.task import FitTask
from stribeck.identify.servo.verdict import judge_result
from stribeck.model.law import LAWS

SCHEMA = 1

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
        task, selection = choose(groups, quiet=options.progress != "bar", stop=stop)
        tasks = [task]
    results: list[FitResult] = []
    for task in tasks:
        started = time.perf_counter() if results else STARTED
        if options.free:
            check_freed(task, options.free, _print_left_out, stop)
        progress = progress_of(options.progress, task.law.name, task.settings.trials)
        with tracked(options, task.law.name) as tracker:
            output = _output_of(options, task)
            result = _fit(task, selection, output, progress, tracker, started, stop)
            if tracker is not None:
                tracker.finish(result)
        results.append(result)
        _write_json(options, results)
        print_result(result)
        if output is not None:
            print(output)
        if stop():
            break
    if len(results) > 1:
        print_comparison(results)
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


def _output_of(options: IdentifyServoOptions, task: FitTask) -> Path | None:
    if options.output is None or options.law != "all":
        return options.output
    return options.output / f"{task.law.name}.json"


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


def _write_json(options: IdentifyServoOptions, results: Sequence[FitResult]) -> None:
    fits = [result.summary() | judge_result(result).to_json() for result in results]
    content = {"schema": SCHEMA, "fits": fits} if options.law == "all" else fits[0]
    write_json(options.json, content, allow_nan=False)


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


def print_result(result: FitResult) -> None:
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
        interval = "" if one.interval is None else interval_words(one.value, one.interval)
        note = {"determined": "", "at bound": f"at its {one.side} bound"}.get(one.status, one.status)
        if one.status != "fixed" and uncertainty is None:
            note = ""
        step = f"{errors[name]:+.1g}" if name in errors else ""
        rows.append([name, one.unit, f"{one.value:.5g}", interval, step, note])
    print_table(["parameter", "unit", "value", "95 %", "step error", ""], rows, left=2)
    settings = result.settings
    print(f"\ntime step {1e3 * settings.dt:g} ms, integrator {settings.integrator}", end="")
    print(
        ""
        if uncertainty is None
        else (
            f"; its effect on a parameter is at most {uncertainty.step_share:.2g} of the half-width of the interval"
        )
    )
    if uncertainty is not None:
        print("\nNot identifiable from these data:" if uncertainty.statements else "")
        for statement in uncertainty.statements:
            print(f"- {statement}")
    print(*judge_result(result).lines(), sep="\n")


def interval_words(value: float, interval: tuple[float, float]) -> str:
    """The interval as ± its half-width, or by its ends where it is cut off at 0."""
    lower, upper = interval
    cut_off = lower == 0.0 and upper > 2.0 * value
    return f"0 to {upper:.2g}" if cut_off else f"± {0.5 * (upper - lower):.2g}"


def _errors(result: FitResult) -> str:
    text = f"mean absolute error {1e3 * result.train.mean:.2f} mrad on {len(result.train.by_run)} runs"
    if result.validation is not None:
        text += f", {1e3 * result.validation.mean:.2f} mrad on {len(result.validation.by_run)} runs held out"
    return text


def print_comparison(results: Sequence[FitResult]) -> None:
    """Print all laws side by side."""
    print()
    held_out = results[0].validation is not None
    rows = []
    for result in results:
        row = [
            result.law.name.upper(),
            result.law.title,
            str(len(result.parameters.free)),
            f"{1e3 * result.train.mean:.2f}",
            f"{result.search.search_seconds:.1f}",
        ]
        if result.validation is not None:
            row.insert(4, f"{1e3 * result.validation.mean:.2f}")
        rows.append(row)
    header = ["law", "", "free", "error [mrad]", "search [s]"]
    if held_out:
        header.insert(4, "held out [mrad]")
    print_table(header, rows, left=2)
