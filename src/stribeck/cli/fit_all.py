"""``stribeck fit-all``: the recordings of many servos to parameter files, law by law."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from stribeck.cli.fleet_options import HONOURED, fit_arguments
from stribeck.cli.fleet_report import FleetProgress, print_summary
from stribeck.cli.main import DONE, FAILED, INTERRUPTED
from stribeck.cli.stop import StopRequest
from stribeck.core.actuator import Actuator
from stribeck.errors import ConfigError, MissingDependencyError, OutputError
from stribeck.fit.fleet import Fit, fit_of, inputs_digest, summary_csv, summary_json, up_to_date
from stribeck.fit.jobs import Ended, Job, Running, run_in_processes
from stribeck.io.actuators import load_actuator
from stribeck.io.files import check_writable, write_atomically
from stribeck.io.fleet_file import SUMMARIES, FleetServo, read_fleet
from stribeck.io.parameter_file import write_parameter_file
from stribeck.io.recordings import files_digest

JOBS = "stribeck.cli.fleet_jobs"
NEEDED = ("jax", "scipy", "optuna", "cmaes", "tqdm")

Runner = Callable[[Sequence[Job], Running], Generator[Ended, None, None]]


@dataclass(frozen=True, eq=False)
class Servo:
    """A servo of the fleet with the options of its fits."""

    entry: FleetServo
    arguments: argparse.Namespace
    actuator: Actuator | None

    @property
    def options(self) -> dict[str, Any]:
        """Options that have a part in the result."""
        return {name: getattr(self.arguments, name) for name in HONOURED}

    def path(self, law: str) -> str:
        """Of a law's parameter file, in the output folder."""
        return f"{self.entry.name}/{law}.json"


def run(arguments: argparse.Namespace) -> int:
    """Fit what is missing, and sum up."""
    _check_installed()
    fleet = read_fleet(arguments.fleet, HONOURED)
    output: Path = arguments.output or fleet.output
    servos = [_servo(entry, arguments.fleet) for entry in fleet.servos]
    _check_output(output, servos)
    fits = {} if arguments.force else _known(output, servos)
    with StopRequest.on_signals() as stop:
        todo = [
            (servo, law)
            for servo in servos
            for law in servo.entry.laws
            if (servo.entry.name, law) not in fits
        ]
        if fits:
            print(f"{len(fits)} of {len(fits) + len(todo)} fits are there and up to date")
        try:
            if todo:
                _fit(arguments, output, todo, fits, stop)
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


def _check_installed() -> None:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise MissingDependencyError(
            f"stribeck fit-all needs {', '.join(missing)}: pip install 'stribeck[fit]'"
        )


def _servo(entry: FleetServo, path: Path) -> Servo:
    what = f"{path}: servo {entry.name!r}"
    try:
        arguments = fit_arguments(entry.options)
        actuator = None if arguments.actuator is None else load_actuator(arguments.actuator)
    except ConfigError as error:
        raise ConfigError(f"{what}: {error}") from None
    return Servo(entry, arguments, actuator)


def _check_output(output: Path, servos: Sequence[Servo]) -> None:
    if output.is_file():
        raise OutputError(f"{output} is a file; name a folder")
    for name in SUMMARIES:
        check_writable(output / name)
    for servo in servos:
        for law in servo.entry.laws:
            check_writable(output / servo.path(law))


def _known(output: Path, servos: Sequence[Servo]) -> dict[tuple[str, str], Fit]:
    """The fits that are there, of these recordings and options."""
    found = {}
    for servo in servos:
        if not (output / servo.entry.name).is_dir():
            continue
        recordings = files_digest(servo.entry.logdirs)
        for law in servo.entry.laws:
            digest = inputs_digest(servo.options, law, recordings)
            file = up_to_date(output / servo.path(law), digest, servo.actuator)
            if file is not None:
                found[servo.entry.name, law] = fit_of(servo.entry.name, law, servo.path(law), file)
    return found


def _fit(
    arguments: argparse.Namespace,
    output: Path,
    todo: Sequence[tuple[Servo, str]],
    fits: dict[tuple[str, str], Fit],
    stop: StopRequest,
) -> None:
    """Fit, and write each parameter file as soon as there is one."""
    with _runner(arguments, len(todo), stop) as (runner, compiled):
        jobs = _jobs(todo, compiled)
        with (
            FleetProgress(len(todo), arguments.quiet) as progress,
            closing(runner(list(jobs), progress.running)) as endings,  # whatever happens, no process goes on
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
                    write_parameter_file(output / path, ended.value)
                    fit = fit_of(name, law, path, ended.value)
                fits[name, law] = fit
                progress.fitted(fit, ended)


def _jobs(todo: Sequence[tuple[Servo, str]], compiled: Path | None) -> dict[Job, tuple[Servo, str | None]]:
    """A job that reads for each servo, and after it one for each law. Servo by servo: what the first of a kind
    compiles, the others load.
    """
    jobs: dict[Job, tuple[Servo, str | None]] = {}
    for servo in dict.fromkeys(servo for servo, _ in todo):
        name, laws = servo.entry.name, [law for other, law in todo if other is servo]
        given = (servo.arguments, HONOURED, servo.entry.logdirs, laws)
        reading = Job(f"{name} bags", f"{JOBS}:prepare", given)
        jobs[reading] = servo, None
        for law in laws:
            jobs[Job(f"{name} {law}", f"{JOBS}:fit_law", (law, compiled), after=reading)] = servo, law
    return jobs


@contextmanager
def _runner(
    arguments: argparse.Namespace, jobs: int, stop: StopRequest
) -> Iterator[tuple[Runner, Path | None]]:
    """What runs jobs, and the folder through which they share what they have compiled."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = min(arguments.workers or cores, jobs)
    threads = str(max(1, cores // workers))
    # The first is XLA's; the others are of what numpy and SciPy may compute with.
    environment = dict.fromkeys(
        ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads
    )
    if arguments.scheduler is None:
        with tempfile.TemporaryDirectory(prefix="stribeck-") as compiled:
            yield (
                lambda given, running: run_in_processes(
                    given,
                    workers,
                    arguments.retries,
                    running=running,
                    stop=stop,
                    preload=(JOBS,),
                    environment=environment,
                ),
                Path(compiled),
            )
        return
    try:
        from stribeck.fit.cluster import cluster_at, local_cluster, run_on_cluster
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"--scheduler needs {error.name}: pip install 'stribeck[cluster]'"
        ) from None
    local = arguments.scheduler == "local"
    cluster = (
        local_cluster(workers, arguments.retries, environment) if local else cluster_at(arguments.scheduler)
    )
    with tempfile.TemporaryDirectory(prefix="stribeck-") as compiled, cluster as client:
        yield (
            lambda given, running: run_on_cluster(
                client, given, arguments.retries, running=running, stop=stop
            ),
            Path(compiled) if local else None,
        )
