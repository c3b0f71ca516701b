"""Parameter files held against recordings: motion, errors, residuals, friction, and what the files know.

Everything here comes from parameter files and recordings alone; no JAX is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from stribeck.core.bench import Pendulum, gravity_amplitude, gravity_torque
from stribeck.core.diagram import SPEEDS, DiagramCurve, diagram_curve
from stribeck.core.friction import friction_budget
from stribeck.core.log import Batch, Log, batch_of
from stribeck.core.step import simulate
from stribeck.errors import ParameterFileError
from stribeck.estimates.estimate import disagreements
from stribeck.fit.objective import EQUALLY_GOOD
from stribeck.io.parameter_file import ParameterFile
from stribeck.io.recordings import digest_of, fingerprint

FloatArray = npt.NDArray[np.float64]

Role = Literal["fitted", "held out", "not in the fit", "not stated"]
"""What a run was to a fit."""

Standing = Literal["determined", "not determined", "at a bound", "fixed", "not stated"]
"""What is known of a parameter."""

DEFAULT_STEP = 0.005
"""Time step [s] where neither the command nor the parameter file says one."""

FARTHEST = 1e4
"""A simulation that is this far from the measurement in the mean [rad] has left all bounds."""

TREND_BINS, FEWEST_SAMPLES = 24, 20
"""Bins of a residual's trend, and the samples that a bin needs."""

CURVE_POINTS = 121
"""Points of friction curves and diagrams."""

BEYOND = 2.0
"""Friction is shown up to so many times the speed that 95 % of the samples keep below, if any are faster."""

MARGIN = 1.25
"""Friction is shown up to so many times the recorded load."""


@dataclass(frozen=True, eq=False)
class Simulated:
    """One run as one parameter file has it, on the file's own grid.

    :param time: since the start of the run (n,) [s].
    :param position: simulated (n,) [rad].
    :param residual: simulated minus measured position (n,) [rad], NaN where nothing was measured.
    :param error: mean absolute residual [rad].
    """

    time: FloatArray
    position: FloatArray
    residual: FloatArray
    error: float


class Stepping(NamedTuple):
    """How runs are simulated.

    :param dt: time step [s].
    :param reset_period: after which the simulation is put back on the measurement [s]; whole runs without it.
    """

    dt: float
    reset_period: float | None


class Trend(NamedTuple):
    """How residuals depend on something: bins with the median and the 10 % and 90 % quantiles (B,) [rad]."""

    centre: FloatArray
    median: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class Known:
    """What a parameter file knows of one parameter.

    :param value: identified or fixed.
    :param interval: confidence interval.
    :param bounds: search bounds.
    :param why: what its standing rests on, in words.
    """

    name: str
    unit: str
    value: float
    interval: tuple[float, float] | None
    bounds: tuple[float, float] | None
    standing: Standing
    why: str


@dataclass(frozen=True, eq=False)
class Friction:
    """Friction budget of a law [N m], motor and external torque opposing each other in balance.

    :param velocity: (V,) [rad/s].
    :param loads: external torques of the curves over velocity (L,) [N m].
    :param over_velocity: (L, V).
    :param load: external torque (X,) [N m].
    :param speeds: of the curves over load (S,) [rad/s].
    :param over_load: (S, X).
    """

    velocity: FloatArray
    loads: FloatArray
    over_velocity: FloatArray
    load: FloatArray
    speeds: FloatArray
    over_load: FloatArray


@dataclass(frozen=True, eq=False)
class Assessed:
    """One parameter file on all recordings.

    :param label: short name, unique among the files.
    :param runs: simulated runs by name.
    :param roles: what each run was to the fit.
    :param matched: how that is known: ``content``, ``name`` or ``nothing``.
    :param same_data: whether the recordings that were fitted are these; ``None`` where it cannot be told.
    :param stepping: how the runs were simulated here.
    :param known: every parameter.
    :param trends: residuals against ``velocity``, ``position``, ``temperature``.
    """

    label: str
    path: Path
    file: ParameterFile
    runs: Mapping[str, Simulated]
    roles: Mapping[str, Role]
    matched: Literal["content", "name", "nothing"]
    same_data: bool | None
    stepping: Stepping
    known: tuple[Known, ...]
    trends: Mapping[str, Trend]
    friction: Friction
    diagram: DiagramCurve

    @property
    def fitted_stepping(self) -> Stepping | None:
        """How the runs were simulated in the fit, if the file says it."""
        return stated_stepping(self.file)

    def errors(self, *roles: Role) -> dict[str, float]:
        """Mean absolute errors [rad] of the runs with one of these roles, by name."""
        return {name: run.error for name, run in self.runs.items() if self.roles[name] in roles}

    def standing(self, *standings: Standing) -> tuple[Known, ...]:
        """The parameters of which so much is known."""
        return tuple(parameter for parameter in self.known if parameter.standing in standings)


@dataclass(frozen=True, eq=False)
class Run:
    """One recording on a grid, and its digest. Samples that were not measured are not ``valid``."""

    log: Log
    digest: str
    time: FloatArray
    measured: FloatArray
    velocity: FloatArray
    goal: FloatArray
    torque_enable: FloatArray
    valid: npt.NDArray[np.bool_]


class Coverage(NamedTuple):
    """What the recordings span: 95 % of the samples, and all of them.

    :param speed: absolute velocity [rad/s].
    :param load: absolute gravity torque [N m].
    """

    speed: tuple[float, float]
    load: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Assessment:
    """Parameter files on recordings."""

    runs: tuple[Run, ...]
    files: tuple[Assessed, ...]
    coverage: Coverage


class Recordings:
    """Runs on any grid, each grid made once."""

    def __init__(self, logs: Sequence[Log]) -> None:
        self.logs = tuple(logs)
        self._batches: dict[float, Batch] = {}

    def batch(self, dt: float) -> Batch:
        """The runs on a grid of ``dt`` [s]."""
        if dt not in self._batches:
            self._batches[dt] = batch_of([log.resample(dt) for log in self.logs])
        return self._batches[dt]

    @cached_property
    def digests(self) -> dict[str, str]:
        """Digest of each run by name."""
        return {log.name: digest_of(log) for log in self.logs}


def stated_stepping(file: ParameterFile) -> Stepping | None:
    """How a file says that runs were simulated in its fit."""
    stated = file.provenance.simulation if file.provenance is not None else {}
    return Stepping(float(stated["dt"]), stated.get("reset_period")) if stated.get("dt") else None


def stepping_of(file: ParameterFile, dt: float | None = None, reset_period: float | None = None) -> Stepping:
    """How to simulate runs: as the file was fitted, where nothing else is given."""
    stated = stated_stepping(file) or Stepping(DEFAULT_STEP, None)
    return Stepping(dt or stated.dt, reset_period or stated.reset_period)


def simulated(
    path: Path, file: ParameterFile, recordings: Recordings, stepping: Stepping
) -> tuple[Batch, FloatArray]:
    """The runs on a grid, and their simulated positions (T, R) [rad].

    :raises ParameterFileError: if a simulation leaves all bounds.
    """
    batch = recordings.batch(stepping.dt)
    with np.errstate(all="ignore"):
        motion = simulate(
            batch,
            file.actuator,
            file.law,
            file.values,
            reset_period=stepping.reset_period,
        )
        errors = batch.mean_absolute_errors(motion.position)
    if not np.all(errors < FARTHEST):
        raise ParameterFileError(
            f"{path}: a simulation with these values leaves all bounds; are they in SI units?"
        )
    return batch, motion.position


def assess(
    files: Sequence[tuple[str, Path, ParameterFile]],
    logs: Sequence[Log],
    dt: float | None = None,
    reset_period: float | None = None,
) -> Assessment:
    """Hold parameter files, each with its label, against recordings.

    :param dt, reset_period: see :func:`stepping_of`.
    :raises ParameterFileError: if a simulation does not stay finite.
    """
    recordings = Recordings(logs)
    runs = tuple(_runs(recordings, dt or DEFAULT_STEP))
    coverage = _coverage(runs)
    assessed = [
        _assessed(label, path, file, recordings, coverage, dt, reset_period) for label, path, file in files
    ]
    return Assessment(runs, tuple(_with_rivals(one, assessed) for one in assessed), coverage)


def _runs(recordings: Recordings, dt: float) -> Iterator[Run]:
    for log in recordings.logs:
        samples = log.resample(dt)
        yield Run(
            log=log,
            digest=recordings.digests[log.name],
            time=samples.time - samples.time[0],
            measured=samples.position,
            velocity=samples.velocity,
            goal=samples.goal,
            torque_enable=samples.torque_enable,
            valid=samples.valid,
        )


def _coverage(runs: Sequence[Run]) -> Coverage:
    speed = np.concatenate([np.abs(run.velocity[run.valid]) for run in runs])
    load = np.concatenate([np.abs(_gravity(run)) for run in runs])
    spans = [(float(np.quantile(values, 0.95)), float(np.max(values))) for values in (speed, load)]
    return Coverage(*spans)


def _gravity(run: Run) -> FloatArray:
    setup = run.log.setup
    pendulum = Pendulum(setup.mass, setup.length, setup.arm_mass)
    return np.asarray(gravity_torque(pendulum, run.measured[run.valid], 0.0))


def _assessed(
    label: str,
    path: Path,
    file: ParameterFile,
    recordings: Recordings,
    coverage: Coverage,
    dt: float | None,
    reset_period: float | None,
) -> Assessed:
    stepping = stepping_of(file, dt, reset_period)
    batch, position = simulated(path, file, recordings, stepping)
    errors = batch.mean_absolute_errors(position)
    residual = np.where(batch.weight > 0.0, position - batch.position, np.nan)
    lengths = [len(log.resample(batch.dt).time) for log in batch.logs]
    roles, matched, same_data = _roles(file, recordings)
    largest_load = MARGIN * max(float(np.max(gravity_amplitude(batch.pendulum))), 1e-3)
    return Assessed(
        label=label,
        path=path,
        file=file,
        runs={
            log.name: Simulated(
                batch.time[:length], position[:length, r], residual[:length, r], float(errors[r])
            )
            for r, (log, length) in enumerate(zip(batch.logs, lengths, strict=True))
        },
        roles=roles,
        matched=matched,
        same_data=same_data,
        stepping=stepping,
        known=tuple(_known(file)),
        trends=_trends(batch, residual),
        friction=_friction(file, min(coverage.speed[1], BEYOND * coverage.speed[0]), largest_load),
        diagram=diagram_curve(
            label, file.law, file.values, np.linspace(0.0, largest_load, CURVE_POINTS), SPEEDS
        ),
    )


def _roles(
    file: ParameterFile, recordings: Recordings
) -> tuple[dict[str, Role], Literal["content", "name", "nothing"], bool | None]:
    """What each run was to the fit, how that is known, and whether the fitted recordings are these."""
    names = tuple(recordings.digests)
    provenance = file.provenance
    if provenance is None or "train" not in provenance.split:
        return dict.fromkeys(names, "not stated"), "nothing", None
    stated: dict[str, Role] = {
        **dict.fromkeys(provenance.split["train"], "fitted"),
        **dict.fromkeys(provenance.split.get("validation", ()), "held out"),
    }
    digests = provenance.data.get("digests")
    if isinstance(digests, Mapping):
        by_digest: dict[str, Role] = {digests[name]: stated[name] for name in stated if name in digests}
        roles = {name: by_digest.get(digest, "not in the fit") for name, digest in recordings.digests.items()}
        return roles, "content", set(by_digest) <= set(recordings.digests.values())
    of_fit = [log for log in recordings.logs if log.name in stated]
    same = len(of_fit) == len(stated) and fingerprint(of_fit) == provenance.data.get("fingerprint")
    if not same and len(of_fit) == len(stated):
        # Other recordings by the same names: nobody knows what they were to the fit.
        return dict.fromkeys(names, "not stated"), "nothing", False
    return {name: stated.get(name, "not in the fit") for name in names}, "name", same or None


def _known(file: ParameterFile) -> Iterator[Known]:
    provenance = file.provenance
    ours = file.actuator.parameters(file.law)
    for name in sorted(file.values, key=lambda name: ours.names.index(name) if name in ours else -1):
        value = file.values[name]
        unit = ours[name].unit if name in ours else ""
        interval = bounds = None
        standing: Standing = "not stated"
        why = "the file gives a value and nothing else"
        if provenance is not None:
            unit = provenance.units.get(name, unit)
            interval, bounds = provenance.intervals.get(name), provenance.bounds.get(name)
            if name in provenance.fixed:
                standing, why = "fixed", "was not identified"
            elif name in provenance.at_bounds:
                standing, why = "at a bound", f"sits at its {provenance.at_bounds[name]} search bound"
            elif name in provenance.not_determined:
                standing, why = "not determined", provenance.not_determined[name]
            elif interval is None:
                standing, why = "not determined", "the file has no interval for it"
            else:
                standing, why = "determined", ""
        yield Known(name, unit, value, interval, bounds, standing, why)


def _with_rivals(one: Assessed, files: Sequence[Assessed]) -> Assessed:
    """Take back what a file claims to know where another fit of the same law is as good and says otherwise."""
    own = _mean(one)
    rivals = [
        other
        for other in files
        if other is not one
        and other.file.law == one.file.law
        and other.file.values.keys() == one.file.values.keys()
        and abs(_mean(other) - own) <= EQUALLY_GOOD * own
    ]
    bounds = {parameter.name: parameter.bounds for parameter in one.standing("determined")}
    contested = disagreements(bounds, [one.file.values, *(rival.file.values for rival in rivals)])
    known = tuple(
        replace(
            parameter,
            standing="not determined",
            why="fits of this law that are as good have {:.3g} to {:.3g}".format(*contested[parameter.name])
            + f" {parameter.unit}",
        )
        if parameter.name in contested
        else parameter
        for parameter in one.known
    )
    return replace(one, known=known)


def _mean(one: Assessed) -> float:
    return float(np.mean([run.error for run in one.runs.values()]))


def _trends(batch: Batch, residual: FloatArray) -> dict[str, Trend]:
    """Residuals (T, R) against what was measured beside them."""
    temperature = np.full_like(residual, np.nan)
    for r, log in enumerate(batch.logs):
        if log.temperature is not None:
            temperature[:, r] = log.temperature.at(log.start + batch.time)
    measured = {"velocity": batch.velocity, "position": batch.position, "temperature": temperature}
    found = {name: trend(values, residual) for name, values in measured.items()}
    return {name: curve for name, curve in found.items() if len(curve.centre) > 0}


def trend(values: FloatArray, residual: FloatArray) -> Trend:
    """Quantiles of residuals in bins of equal width over 99 % of ``values``, both of one shape.

    Samples of which either is not a number do not count; bins of few samples are left out.
    """
    counts = np.isfinite(values) & np.isfinite(residual)
    values, residual = values[counts], residual[counts]
    if len(values) < FEWEST_SAMPLES:
        return Trend(*np.empty((4, 0)))
    first, last = np.quantile(values, [0.005, 0.995])
    edges = np.linspace(first, max(last, first + 1e-9), TREND_BINS + 1)
    order = np.argsort(values, kind="stable")
    ends = np.searchsorted(values[order], edges, side="right")
    ends[0] = np.searchsorted(values[order], edges[0])
    rows = [
        (0.5 * (edges[k] + edges[k + 1]), *np.quantile(residual[order[start:end]], [0.5, 0.1, 0.9]))
        for k, (start, end) in enumerate(pairwise(ends))
        if end - start >= FEWEST_SAMPLES
    ]
    return Trend(*np.array(rows, dtype=np.float64).reshape(-1, 4).T)


def _friction(file: ParameterFile, fastest: float, largest_load: float) -> Friction:
    law, values = file.law, file.values
    slowest = -fastest if law.asymmetric else 0.0
    velocity = np.linspace(slowest, max(fastest, 1e-3), CURVE_POINTS)
    loads = np.array([0.0, 0.5, 1.0]) * largest_load / MARGIN
    load = np.linspace(0.0, largest_load, CURVE_POINTS)
    speeds = np.array([0.0, *(speed for speed in SPEEDS[1:] if speed <= fastest)])

    def budget(motor: FloatArray, moving: FloatArray) -> FloatArray:
        positive, negative = friction_budget(law, values, motor, -motor, moving)
        chosen = np.where(moving < 0.0, negative, positive)
        return np.asarray(np.broadcast_to(chosen, np.broadcast_shapes(motor.shape, moving.shape)))

    return Friction(
        velocity=velocity,
        loads=loads,
        over_velocity=budget(loads[:, None], velocity[None]),
        load=load,
        speeds=speeds,
        over_load=budget(load[None], speeds[:, None]),
    )
