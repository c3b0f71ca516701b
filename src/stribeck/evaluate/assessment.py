"""Assessment of parameter files on recordings, without JAX: motion, errors, residuals, friction, uncertainty."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from stribeck.errors import ParameterFileError
from stribeck.evaluate.diagram import (
    CURVE_POINTS,
    MARGIN,
    SPEEDS,
    DiagramCurve,
    Friction,
    diagram_curve,
    friction_of,
)
from stribeck.evaluate.trends import Trend, trends
from stribeck.identify.servo.objective import EQUALLY_GOOD
from stribeck.identify.servo.prediction import averaged, half_widths
from stribeck.model.arrays import Array, Mask
from stribeck.model.bench import Pendulum, gravity_amplitude, gravity_torque
from stribeck.model.estimate import DETERMINED, LOOSE, Status, disagreements
from stribeck.model.joint import Drive
from stribeck.model.log import Batch, Log
from stribeck.model.step import INTEGRATORS, Integrator, Simulation, batch_for, simulate
from stribeck.recordings.sources import digest_of, fingerprint

Role = Literal["fitted", "held out", "not in the fit", "not stated"]
"""How a fit used a run."""

Standing = Literal["determined", "loosely determined", "not determined", "at a bound", "fixed", "not stated"]
"""How certain a parameter is."""

STANDINGS: dict[Status, Standing] = {
    "determined": "determined",
    "loosely determined": "loosely determined",
    "not determined": "not determined",
    "at bound": "at a bound",
    "fixed": "fixed",
}

DEFAULT_STEP = 0.005
"""Default time step [s], if neither the command nor the parameter file gives one."""

FARTHEST = 1e4
"""A simulation whose mean error exceeds this [rad] has diverged."""


BEYOND = 2.0
"""Friction is plotted up to this multiple of the 95 % quantile of speed, if any samples are faster."""


@dataclass(frozen=True, eq=False)
class Simulated:
    """One run simulated with one parameter file, on the time grid of its fit.

    :param time: since the start of the run (n,) [s].
    :param position: simulated (n,) [rad].
    :param residual: simulated minus measured position (n,) [rad], NaN for samples without a measurement.
    :param error: mean absolute residual [rad].
    :param band: half-width of the 90 % band (n,) [rad], NaN if the file has none.
    """

    time: Array
    position: Array
    residual: Array
    error: float
    band: Array


class Stepping(NamedTuple):
    """Settings of a simulation.

    :param dt: time step [s].
    :param reset_period: interval at which the state is reset to the measurement [s]; ``None`` for no resets.
    :param integrator: see :mod:`stribeck.model.step`.
    """

    dt: float = DEFAULT_STEP
    reset_period: float | None = None
    integrator: Integrator = "exponential"

    def motion(self, file: Drive, runs: Batch, *, with_torques: bool = False) -> Simulation:
        """Motion of a servo with the law and values of a file, in runs on a grid of ``dt``."""
        return simulate(
            runs,
            file.actuator,
            file.law,
            file.values,
            integrator=self.integrator,
            reset_period=self.reset_period,
            with_torques=with_torques,
        )


@dataclass(frozen=True)
class AssessedParameter:
    """One parameter of a file.

    :param value: identified or fixed.
    :param why: reason for its standing.
    """

    name: str
    unit: str
    value: float
    interval: tuple[float, float] | None
    bounds: tuple[float, float] | None
    standing: Standing
    why: str


@dataclass(frozen=True, eq=False)
class Assessed:
    """One parameter file, assessed on all recordings.

    :param label: short name, unique among the files.
    :param roles: how the fit used each run.
    :param matched: how runs were matched with those of the fit: by ``content``, by ``name``, or ``nothing`` matched.
    :param same_data: whether these are the recordings that were fitted; ``None`` if that cannot be determined.
    :param stepping: how the runs were simulated here.
    :param known: all parameters.
    :param trends: residuals against ``velocity``, ``position``, ``temperature``.
    """

    label: str
    path: Path
    file: Drive
    runs: Mapping[str, Simulated]
    roles: Mapping[str, Role]
    matched: Literal["content", "name", "nothing"]
    same_data: bool | None
    stepping: Stepping
    known: tuple[AssessedParameter, ...]
    trends: Mapping[str, Trend]
    friction: Friction
    diagram: DiagramCurve

    def errors(self, *roles: Role) -> dict[str, float]:
        """Mean absolute errors [rad] by run name, of the runs with one of these roles."""
        return {name: run.error for name, run in self.runs.items() if self.roles[name] in roles}

    def standing(self, *standings: Standing) -> tuple[AssessedParameter, ...]:
        """The parameters with one of these standings."""
        return tuple(parameter for parameter in self.known if parameter.standing in standings)


@dataclass(frozen=True, eq=False)
class AssessedRun:
    """One recording on a time grid, with its digest. Samples without a measurement are not ``valid``."""

    log: Log
    digest: str
    time: Array
    measured: Array
    velocity: Array
    goal: Array
    torque_enable: Array
    valid: Mask


class Coverage(NamedTuple):
    """Ranges covered by the recordings, each as the 95 % quantile and the maximum.

    :param speed: absolute velocity [rad/s].
    :param load: absolute gravity torque [N m].
    """

    speed: tuple[float, float]
    load: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Assessment:
    """Parameter files assessed on recordings."""

    runs: tuple[AssessedRun, ...]
    files: tuple[Assessed, ...]
    coverage: Coverage


Simulator = Callable[[Batch, Drive, float | None], Simulation]
"""Simulates all runs of a batch with a drive, reset to the measurement with a period [s] if one is given."""


class Recordings:
    """Recorded runs, resampled once per time step."""

    def __init__(self, logs: Sequence[Log]) -> None:
        self.logs = tuple(logs)
        self._batches: dict[tuple[float, Integrator], Batch] = {}

    def batch(self, dt: float, integrator: Integrator) -> Batch:
        """The runs resampled with time step ``dt`` [s] for an integrator."""
        if (dt, integrator) not in self._batches:
            self._batches[dt, integrator] = batch_for(self.logs, dt, integrator)
        return self._batches[dt, integrator]

    @cached_property
    def digests(self) -> dict[str, str]:
        """Digest of each run by name."""
        return {log.name: digest_of(log) for log in self.logs}


def stated_stepping(file: Drive) -> Stepping | None:
    """Simulation settings that a parameter file states for its fit."""
    stated = file.provenance.simulation if file.provenance is not None else None
    if stated is None or stated.dt is None:
        return None
    integrator = stated.integrator or "semi-implicit"
    if integrator not in INTEGRATORS:
        raise ParameterFileError(
            f"the parameter file was fitted with an unknown integrator, {integrator!r}; valid: {', '.join(INTEGRATORS)}"
        )
    return Stepping(stated.dt, stated.reset_period, integrator)


def stepping_of(
    file: Drive,
    dt: float | None = None,
    reset_period: float | None = None,
    integrator: Integrator | None = None,
) -> Stepping:
    """Simulation settings for assessment: the arguments where given, else those of the fit.

    :raises ParameterFileError: if the file states an unknown integrator.
    """
    stated = stated_stepping(file) or Stepping()
    return Stepping(dt or stated.dt, reset_period or stated.reset_period, integrator or stated.integrator)


def simulated(
    path: Path,
    file: Drive,
    recordings: Recordings,
    stepping: Stepping,
    simulator: Simulator | None = None,
    *,
    with_torques: bool = False,
) -> tuple[Batch, Simulation]:
    """The runs on a time grid, and their simulated motion.

    :param simulator: another one than ours.
    :raises ParameterFileError: if a simulation diverges.
    """
    batch = recordings.batch(stepping.dt, stepping.integrator)
    with np.errstate(all="ignore"):
        if simulator is None:
            motion = stepping.motion(file, batch, with_torques=with_torques)
        else:
            motion = simulator(batch, file, stepping.reset_period)
        errors = batch.mean_absolute_errors(motion.position)
    if not np.all(errors < FARTHEST):
        raise ParameterFileError(f"{path}: the simulation with these values diverges: are they in SI units?")
    return batch, motion


def assess(
    files: Sequence[tuple[str, Path, Drive]],
    logs: Sequence[Log],
    dt: float | None = None,
    reset_period: float | None = None,
    integrator: Integrator | None = None,
) -> Assessment:
    """Assess parameter files, each with its label, on recordings.

    :param dt, reset_period, integrator: see :func:`stepping_of`.
    :raises ParameterFileError: if a simulation diverges.
    """
    recordings = Recordings(logs)
    runs = tuple(_runs(recordings, dt or DEFAULT_STEP))
    coverage = _coverage(runs)
    assessed = [
        _assessed(label, path, file, recordings, coverage, stepping_of(file, dt, reset_period, integrator))
        for label, path, file in files
    ]
    return Assessment(runs, tuple(_with_rivals(one, assessed) for one in assessed), coverage)


def _runs(recordings: Recordings, dt: float) -> Iterator[AssessedRun]:
    for log in recordings.logs:
        samples = log.resample(dt)
        yield AssessedRun(
            log=log,
            digest=recordings.digests[log.name],
            time=samples.time - samples.time[0],
            measured=samples.position,
            velocity=samples.velocity,
            goal=samples.goal,
            torque_enable=samples.torque_enable,
            valid=samples.valid,
        )


def _coverage(runs: Sequence[AssessedRun]) -> Coverage:
    speed = np.concatenate([np.abs(run.velocity[run.valid]) for run in runs])
    setups = [run.log.setup for run in runs]
    benches = [Pendulum(one.mass, one.length, one.arm_mass) for one in setups]
    loads = [gravity_torque(b, run.measured[run.valid], 0.0) for b, run in zip(benches, runs, strict=True)]
    load = np.abs(np.concatenate(loads))
    spans = [(float(np.quantile(values, 0.95)), float(np.max(values))) for values in (speed, load)]
    return Coverage(*spans)


def _assessed(
    label: str, path: Path, file: Drive, recordings: Recordings, coverage: Coverage, stepping: Stepping
) -> Assessed:
    batch, motion = simulated(path, file, recordings, stepping)
    position = motion.position
    errors = batch.mean_absolute_errors(position)
    residual = np.where(batch.weight > 0.0, position - batch.position, np.nan)
    between = averaged(file, batch, stepping.integrator, stepping.reset_period, position).about(position)
    widths = half_widths(file, batch, stepping.integrator, stepping.reset_period, between)
    roles, matched, same_data = _roles(file, recordings)
    largest_load = MARGIN * max(float(np.max(gravity_amplitude(batch.pendulum))), 1e-3)
    return Assessed(
        label=label,
        path=path,
        file=file,
        runs={
            log.name: Simulated(
                batch.time[:n], position[:n, r], residual[:n, r], float(errors[r]), widths[:n, r]
            )
            for r, (log, n) in enumerate(zip(batch.logs, batch.lengths, strict=True))
        },
        roles=roles,
        matched=matched,
        same_data=same_data,
        stepping=stepping,
        known=tuple(_parameters(file)),
        trends=trends(batch, residual),
        friction=friction_of(file, min(coverage.speed[1], BEYOND * coverage.speed[0]), largest_load),
        diagram=diagram_curve(
            label, file.law, file.values, np.linspace(0.0, largest_load, CURVE_POINTS), SPEEDS
        ),
    )


def _roles(
    file: Drive, recordings: Recordings
) -> tuple[dict[str, Role], Literal["content", "name", "nothing"], bool | None]:
    """How the fit used each run, how runs were matched, and whether these are the fitted recordings."""
    names = tuple(recordings.digests)
    provenance = file.provenance
    if provenance is None or not provenance.runs.train:
        return dict.fromkeys(names, "not stated"), "nothing", None
    stated: dict[str, Role] = {
        **dict.fromkeys(provenance.runs.train, "fitted"),
        **dict.fromkeys(provenance.runs.validation, "held out"),
    }
    digests = provenance.runs.digests
    if digests:
        by_digest: dict[str, Role] = {digests[name]: stated[name] for name in stated if name in digests}
        roles = {name: by_digest.get(digest, "not in the fit") for name, digest in recordings.digests.items()}
        return roles, "content", set(by_digest) <= set(recordings.digests.values())
    of_fit = [log for log in recordings.logs if log.name in stated]
    same = len(of_fit) == len(stated) and fingerprint(of_fit) == provenance.runs.fingerprint
    if not same and len(of_fit) == len(stated):
        # Other recordings with the same names: whether they were fitted is unknown.
        return dict.fromkeys(names, "not stated"), "nothing", False
    return {name: stated.get(name, "not in the fit") for name in names}, "name", same or None


def _parameters(file: Drive) -> Iterator[AssessedParameter]:
    parameters = file.actuator.parameters(file.law)
    estimates = file.estimates
    for name in sorted(
        file.values, key=lambda name: parameters.names.index(name) if name in parameters else -1
    ):
        estimate = estimates[name]
        unit = estimate.unit or (parameters[name].unit if name in parameters else "")
        bounds = file.bounds.get(name)
        standing = STANDINGS[estimate.status] if name in file.stated else "not stated"
        reason = "was not identified" if estimate.status == "fixed" else estimate.reason
        yield AssessedParameter(name, unit, estimate.value, estimate.interval, bounds, standing, reason)


def _with_rivals(one: Assessed, files: Sequence[Assessed]) -> Assessed:
    """The file with every parameter "not determined" for which an equally good fit of the same law has another value."""
    error = _mean(one)
    rivals = [
        other
        for other in files
        if other is not one
        and other.file.law == one.file.law
        and other.file.values.keys() == one.file.values.keys()
        and abs(_mean(other) - error) <= EQUALLY_GOOD * error
    ]
    contested: dict[str, tuple[float, float]] = {}
    limits: dict[Standing, float] = {"determined": DETERMINED, "loosely determined": LOOSE}
    for standing, share in limits.items():
        bounds = {parameter.name: parameter.bounds for parameter in one.standing(standing)}
        values = [one.file.values, *(rival.file.values for rival in rivals)]
        contested |= disagreements(bounds, values, share)
    known = tuple(
        replace(
            parameter,
            standing="not determined",
            why="other fits of this law with the same error have values from {:.3g} to {:.3g}".format(
                *contested[parameter.name]
            )
            + f" {parameter.unit}",
        )
        if parameter.name in contested
        else parameter
        for parameter in one.known
    )
    return replace(one, known=known)


def _mean(one: Assessed) -> float:
    return float(np.mean([run.error for run in one.runs.values()]))
