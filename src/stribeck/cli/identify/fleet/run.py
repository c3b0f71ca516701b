"""Implements ``stribeck identify fleet``: finds missing fits, runs jobs for them, and prints the summary."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from stribeck.api.recordings import benches_of
from stribeck.cli.exit_codes import DONE, FAILED, INTERRUPTED
from stribeck.cli.identify.fleet.options import IdentifyFleetOptions
from stribeck.cli.identify.fleet.print import FleetProgress, print_summary
from stribeck.cli.identify.servo.options import FLEET_OPTIONS, IdentifyServoOptions
from stribeck.cli.inputs import as_number, assignments, described
from stribeck.cli.options import options_from
from stribeck.cli.stop import StopRequest
from stribeck.errors import ConfigError, MissingDependencyError, OutputError
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import write_drive
from stribeck.files.folders import check_writable, write_atomically
from stribeck.fleet.file import SUMMARIES, FleetServo, read_fleet
from stribeck.fleet.fits import Fit, fit_of, inputs_digest, summary_csv, summary_json, up_to_date
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
        print_summary(ordered, output)
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


def _renamed(content: Mapping[str, Any]) -> dict[str, Any]:
    return {EARLIER.get(name, name): value for name, value in content.items()}


def fit_options(content: Mapping[str, Any]) -> IdentifyServoOptions:
    """Options of ``stribeck identify servo`` from the content of a fleet file.

    :raises ConfigError: for invalid values.
    """
    options = options_from(IdentifyServoOptions, _renamed(content), recordings=())
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
