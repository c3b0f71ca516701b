"""Implements ``stribeck identify fleet``: finds missing fits, runs jobs for them, and prints the summary."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tqdm import tqdm

from stribeck.api.recordings import benches_of
from stribeck.cli.exit_codes import DONE, FAILED, INTERRUPTED
from stribeck.cli.identify.fleet.options import IdentifyFleetOptions
from stribeck.cli.identify.servo.options import FLEET_OPTIONS, IdentifyServoOptions
from stribeck.cli.inputs import as_number, assignments, described
from stribeck.cli.options import options_from
from stribeck.cli.progress import TqdmDisplay
from stribeck.cli.stop import StopRequest
from stribeck.cli.table import print_table
from stribeck.errors import ConfigError, MissingDependencyError, OutputError
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import write_drive
from stribeck.files.folders import check_writable, write_atomically
from stribeck.fleet.file import SUMMARIES, FleetServo, read_fleet
from stribeck.fleet.fits import (
    Fit,
    best_of,
    by_servo,
    fit_of,
    inputs_digest,
    left_out_of,
    summary_csv,
    summary_json,
    up_to_date,
)
from stribeck.identify.common.jobs import Ended, Job, Running, run_in_processes
from stribeck.model.actuator import Actuator
from stribeck.processes import cores
from stribeck.recordings.signals.sources import load_signals
from stribeck.recordings.sources import files_digest

JOBS = "stribeck.cli.identify.fleet.jobs"

NEEDED = ("jax", "scipy", "optuna", "cmaes", "tqdm")
"""Libraries of the jobs, which run in other processes."""

Runner = Callable[[Sequence[Job], Running], Generator[Ended, None, None]]


@dataclass(frozen=True, eq=False)
class ServoFits:
    """A servo of the fleet with the options of its fits."""

    entry: FleetServo
    options: IdentifyServoOptions
    actuator: Actuator | None

    def path(self, law: str) -> str:
        """Path of a law's parameter file, relative to the output folder."""
        return f"{self.entry.name}/{law}.json"


def run(options: IdentifyFleetOptions) -> int:
    """Run the missing fits, and print a summary."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise MissingDependencyError(
            f"stribeck identify fleet needs {', '.join(missing)}: pip install 'stribeck[fit]'"
        )
    fleet = read_fleet(options.fleet, (*FLEET_OPTIONS, *EARLIER))
    output = options.output or fleet.output
    servos = [_servo(entry, options.fleet) for entry in fleet.servos]
    _check_output(output, servos)
    fits = {} if options.force else _existing_fits(output, servos)
    with StopRequest.on_signals() as stop:
        todo = [
            (servo, law)
            for servo in servos
            for law in servo.entry.laws
            if (servo.entry.name, law) not in fits
        ]
        if fits:
            print(f"{len(fits)} of {len(fits) + len(todo)} fits exist already and are up to date")
        try:
            if todo:
                _fit(options, output, todo, fits, stop)
        finally:
            ordered = [
                fits.get((servo.entry.name, law))
                or Fit(servo.entry.name, law, servo.path(law), failure="not done")
                for servo in servos
                for law in servo.entry.laws
            ]
            complete = len(fits) == len(ordered)
            write_atomically(output / SUMMARIES[0], summary_json(ordered, complete))
            write_atomically(output / SUMMARIES[1], summary_csv(ordered))
        _print_summary(ordered, output)
        if stop():
            return INTERRUPTED
    return FAILED if any(fit.failure or fit.left_out for fit in ordered) else DONE


EARLIER = {
    "actuator": "servo",
    "dt": "step",
    "validation_kp": "hold_out_gain",
    "validation_fraction": "hold_out",
}
"""Earlier names of options in the files of fleets."""


def fit_options(content: Mapping[str, Any]) -> IdentifyServoOptions:
    """Options of ``stribeck identify servo`` from the content of a fleet file.

    :raises ConfigError: for invalid values.
    """
    renamed = {EARLIER.get(name, name): value for name, value in content.items()}
    options = options_from(IdentifyServoOptions, renamed, recordings=())
    if options.signals is not None:
        load_signals(options.signals)
    if options.bench is not None:
        benches_of(described(options.bench), options.servo)
    for name, text in assignments(options.set, "set").items():
        as_number(text, f"set: {name}")
    return options


def _servo(entry: FleetServo, path: Path) -> ServoFits:
    what = f"{path}: servo {entry.name!r}"
    try:
        options = fit_options(entry.options)
        actuator = None if options.servo is None else load_actuator(options.servo)
    except ConfigError as error:
        raise ConfigError(f"{what}: {error}") from None
    return ServoFits(entry, options, actuator)


def _check_output(output: Path, servos: Sequence[ServoFits]) -> None:
    if output.is_file():
        raise OutputError(f"{output} is a file; name a folder")
    for name in SUMMARIES:
        check_writable(output / name)
    for servo in servos:
        for law in servo.entry.laws:
            check_writable(output / servo.path(law))


def _existing_fits(output: Path, servos: Sequence[ServoFits]) -> dict[tuple[str, str], Fit]:
    fits = {}
    for servo in servos:
        if not (output / servo.entry.name).is_dir():
            continue
        recordings = files_digest(servo.entry.logdirs)
        for law in servo.entry.laws:
            digest = inputs_digest(servo.options.decisive, law, recordings)
            file = up_to_date(output / servo.path(law), digest, servo.actuator)
            if file is not None:
                fits[servo.entry.name, law] = fit_of(servo.entry.name, law, servo.path(law), file)
    return fits


def _fit(
    options: IdentifyFleetOptions,
    output: Path,
    todo: Sequence[tuple[ServoFits, str]],
    fits: dict[tuple[str, str], Fit],
    stop: StopRequest,
) -> None:
    """Run the fits, and write each parameter file as soon as its fit is done."""
    with _runner(options, len(todo), stop) as (runner, compiled):
        jobs = _jobs(todo, compiled)
        with (
            FleetProgress(len(todo), options.quiet) as progress,
            closing(runner(list(jobs), progress.running)) as endings,  # no process survives an error
        ):
            for ended in endings:
                servo, law = jobs[ended.job]
                name = servo.entry.name
                if law is None:
                    progress.read(name, ended)
                    continue
                path = servo.path(law)
                if ended.failure:
                    fit = Fit(name, law, path, failure=ended.failure)
                else:
                    write_drive(output / path, ended.value)
                    fit = fit_of(name, law, path, ended.value)
                fits[name, law] = fit
                progress.fitted(fit, ended)


def _jobs(
    todo: Sequence[tuple[ServoFits, str]], compiled: Path | None
) -> dict[Job, tuple[ServoFits, str | None]]:
    """For each servo, a job that reads its recordings, followed by one job per law.

    They are ordered by servo, so that servos of one type load the programs compiled for the first of them.
    """
    jobs: dict[Job, tuple[ServoFits, str | None]] = {}
    for servo in dict.fromkeys(servo for servo, _ in todo):
        name, laws = servo.entry.name, [law for other, law in todo if other is servo]
        reading = Job(f"{name} bags", f"{JOBS}:prepare", (servo.options, servo.entry.logdirs, laws))
        jobs[reading] = servo, None
        for law in laws:
            jobs[Job(f"{name} {law}", f"{JOBS}:fit_law", (law, compiled), after=reading)] = servo, law
    return jobs


@contextmanager
def _runner(
    options: IdentifyFleetOptions, jobs: int, stop: StopRequest
) -> Iterator[tuple[Runner, Path | None]]:
    """A function that runs jobs, and the folder in which they share compiled programs."""
    workers = min(options.workers or cores(), jobs)
    threads = str(max(1, cores() // workers))
    # The first is read by XLA, the others by the BLAS libraries of numpy and SciPy.
    environment = dict.fromkeys(
        ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads
    )
    if options.scheduler is None:
        with tempfile.TemporaryDirectory(prefix="stribeck-") as compiled:
            yield (
                lambda given, running: run_in_processes(
                    given,
                    workers,
                    options.retries,
                    running=running,
                    stop=stop,
                    preload=(JOBS,),
                    environment=environment,
                ),
                Path(compiled),
            )
        return
    try:
        from stribeck.fleet.cluster import cluster_at, local_cluster, run_on_cluster
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"--scheduler needs {error.name}: pip install 'stribeck[cluster]'"
        ) from None
    local = options.scheduler == "local"
    cluster = local_cluster(workers, options.retries, environment) if local else cluster_at(options.scheduler)
    with tempfile.TemporaryDirectory(prefix="stribeck-") as compiled, cluster as client:
        yield (
            lambda given, running: run_on_cluster(client, given, options.retries, running=running, stop=stop),
            Path(compiled) if local else None,
        )


class FleetProgress(TqdmDisplay):
    """Prints a line for each finished fit on stderr, and below them a bar with the running jobs.

    :param fits: number of fits to do.
    :param quiet: show only warnings.
    """

    def __init__(self, fits: int, quiet: bool) -> None:
        shape = "{n}/{total} fits |{bar:20}| {elapsed}, about {remaining} left{postfix}"
        super().__init__(fits, quiet, 30.0, unit=" fits", bar_format=shape)
        self._quiet = quiet
        self._failed = 0
        self._running: tuple[str, ...] = ()

    def running(self, names: Collection[str]) -> None:
        """Show the names of the running jobs."""
        self._running = tuple(names)
        self._show()

    def read(self, servo: str, ended: Ended) -> None:
        """Print warnings about a servo's recordings."""
        if ended.failure:
            self._say(f"stribeck: warning: {servo}: {ended.failure}")
            return
        for reason in ended.value.left_out:
            self._say(f"stribeck: warning: {servo}: not used: {reason}")
        for note in ended.value.notes:
            self._say(f"stribeck: warning: {servo}: {note}")

    def fitted(self, fit: Fit, ended: Ended) -> None:
        """Count a fit."""
        self._failed += bool(fit.failure)
        if ended.failure and ended.attempts:  # otherwise it was printed when the recordings were read
            self._say(f"stribeck: warning: {fit.servo} {fit.law}: {ended.failure}")
        elif not (fit.failure or self._quiet):
            self._say(f"{fit.servo} {fit.law}: {_errors(fit)} mrad, {ended.seconds:.1f} s")
        self._bar.update()
        self._show()

    def _say(self, line: str) -> None:
        with tqdm.external_write_mode(file=sys.stderr):
            print(line, file=sys.stderr, flush=True)

    def _show(self) -> None:
        failed = f"{self._failed} failed; " if self._failed else ""
        self._bar.set_postfix_str(f"{failed}running: {', '.join(self._running) or 'none'}", refresh=False)
        self._bar.update(0)


def _print_summary(fits: Sequence[Fit], output: Path) -> None:
    """Print errors of all servos and laws, the best law of each servo, and failures."""
    laws = list(dict.fromkeys(fit.law for fit in sorted(fits, key=lambda fit: fit.law)))
    held_out = any(fit.validation is not None for fit in fits)
    rows = []
    for servo, own in by_servo(fits).items():
        best, cells = best_of(own), {fit.law: _errors(fit) for fit in own}
        runs = {fit.runs for fit in own if fit.runs is not None}
        actuator = next((fit.actuator for fit in own if fit.actuator), "")
        errors = (cells.get(law, "") for law in laws)
        last = [",".join(map(str, sorted(runs))), str(len(left_out_of(own)) or "")]
        rows.append([servo, actuator, *errors, best.law.upper() if best else "", *last])
    print(f"\nMean absolute error [mrad]{', fitted / held out' if held_out else ''}:\n")
    header = ["servo", "actuator", *(law.upper() for law in laws), "best", "runs", "not used"]
    print_table(header, rows, left=2)
    _print_troubles(fits)
    done = sum(not fit.failure for fit in fits)
    print(f"\n{done} of {len(fits)} fits are finished, in {output} with fleet.json and fleet.csv")


def _print_troubles(fits: Sequence[Fit]) -> None:
    lines = []
    for servo, own in by_servo(fits).items():
        lines += [f"{servo}: not used: {reason}" for reason in left_out_of(own)]
        for reason in dict.fromkeys(fit.failure for fit in own if fit.failure):
            laws = ", ".join(fit.law for fit in own if fit.failure == reason)
            lines.append(f"{servo}: {laws}: {reason}")
    if lines:
        print("\nWhat went wrong:")
        for line in lines:
            print(f"- {line}")


def _errors(fit: Fit) -> str:
    if fit.train is None:
        return "–"
    held_out = "" if fit.validation is None else f" / {1e3 * fit.validation:.2f}"
    return f"{1e3 * fit.train:.2f}{held_out}"
