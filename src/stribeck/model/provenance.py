"""Origin of identified parameters: recordings, simulation, search, choice of the law, versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from stribeck.model.estimate import Interval

Setting = str | float | int | bool | None
"""A setting of an engine."""


@dataclass(frozen=True)
class Spread:
    """A quantity over the recordings, as far as it is known.

    :param nominal: its nominal value.
    :param mean: over the runs.
    :param min, max: of all samples.
    """

    nominal: float | None = None
    mean: float | None = None
    min: float | None = None
    max: float | None = None

    @property
    def middle(self) -> float | None:
        """The mean, otherwise the middle between smallest and largest, otherwise the nominal value."""
        if self.mean is not None:
            return self.mean
        if self.min is not None and self.max is not None:
            return 0.5 * (self.min + self.max)
        return self.nominal


@dataclass(frozen=True)
class ModelErrors:
    """Errors of a model.

    :param name: what was minimised.
    :param unit: of the errors.
    :param train, validation: errors on fitted runs and on runs that were held out.
    :param draw_error: relative standard deviation of friction and motor torque with which simulated draws contain one more run.
    :param draw_share: of the standard deviations of the parameters, in these draws.
    :param draw_coverage: share of the samples of the fitted runs within the middle 90 % of these draws.
    """

    name: str = ""
    unit: str = ""
    train: float | None = None
    validation: float | None = None
    draw_error: float | None = None
    draw_share: float | None = None
    draw_coverage: float | None = None


@dataclass(frozen=True)
class Runs:
    """Recordings of a fit.

    :param rule: by which they were split.
    :param train, validation: names of the runs that were fitted and held out.
    :param digests: of the samples of each run.
    :param fingerprint: digest of all runs.
    :param unreadable: recordings that could not be read, and why.
    :param inputs: digest of recordings, options and version, by which a fleet recognises a fit that is up to date.
    """

    rule: str = ""
    train: tuple[str, ...] = ()
    validation: tuple[str, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    fingerprint: str = ""
    unreadable: tuple[str, ...] = ()
    inputs: str = ""


@dataclass(frozen=True)
class SimulationSettings:
    """How the fit simulated.

    :param dt: time step [s], ``None`` without simulation.
    :param integrator: see :mod:`stribeck.model.step`.
    :param reset_period: interval at which simulations are reset to the measurement [s].
    :param dtype: floating-point type.
    """

    dt: float | None = None
    integrator: str = ""
    reset_period: float | None = None
    dtype: str = ""

    def __post_init__(self) -> None:
        for name in ("dt", "reset_period"):
            value = getattr(self, name)
            if value is not None and not value > 0.0:
                raise ValueError(f"{name}: must be above 0, found {value:g}")


@dataclass(frozen=True)
class Minimum:
    """A minimum of the search.

    :param error: of the motion [rad].
    :param values: of all free parameters.
    """

    error: float
    values: Mapping[str, float]


@dataclass(frozen=True)
class SearchRecord:
    """How the parameters were searched for.

    :param method: of the search.
    :param seed: of its random numbers.
    :param evaluations: of the loss.
    :param outcome: how the search ended.
    :param status: of the solver.
    :param clusters: the unit assumed to be independent for the intervals, in words.
    :param minima: the best point and the minima that fit equally well.
    :param convergence: for each improvement of the search, the number of evaluations and the equivalent error [rad].
    :param settings: further settings of the engine.
    """

    method: str = ""
    seed: int | None = None
    evaluations: int | None = None
    outcome: str = ""
    status: str = ""
    clusters: str = ""
    minima: tuple[Minimum, ...] = ()
    convergence: tuple[tuple[float, float], ...] = ()
    settings: Mapping[str, Setting] = field(default_factory=dict)


@dataclass(frozen=True)
class Expected:
    """Expected error under a new condition of a kind.

    :param value: [rad].
    :param interval: lower and upper end [rad].
    """

    value: float
    interval: Interval


@dataclass(frozen=True)
class LawCandidate:
    """A law that was compared with others.

    :param model: its name.
    :param effects: effects beyond the paper.
    :param prior_strength: how strongly the prior counts in the loss, 1 for its statistical weight.
    :param fitted: error on the runs that were fitted [rad].
    :param left_out: errors under each condition left out, by kind [rad].
    """

    model: str
    effects: tuple[str, ...]
    prior_strength: float
    fitted: float | None
    left_out: Mapping[str, tuple[float | None, ...]]


@dataclass(frozen=True)
class LawChoice:
    """Choice of the law by conditions left out.

    :param chosen: label of the chosen candidate.
    :param sentence: whether a simpler law predicts better than the one that fits best.
    :param expected_error: under a new condition of each kind.
    :param left_out: names of the conditions, by kind.
    :param candidates: all candidates with their errors.
    :param seconds: time that the comparison took.
    """

    chosen: str
    sentence: str
    expected_error: Mapping[str, Expected]
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    candidates: tuple[LawCandidate, ...] = ()
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """The keys ``expected_error`` and ``selection`` of ``--json``; errors in rad."""
        content = asdict(self)
        return {"expected_error": content.pop("expected_error"), "selection": content}


@dataclass(frozen=True)
class Provenance:
    """Origin of all parameters of a file.

    :param runs: the recordings.
    :param simulation: time step and integrator.
    :param search: method, outcome, minima.
    :param choice: of the law, where laws were compared.
    :param supply_voltage: of the recordings [V].
    :param versions: of all software involved.
    """

    runs: Runs = field(default_factory=Runs)
    simulation: SimulationSettings = field(default_factory=SimulationSettings)
    search: SearchRecord = field(default_factory=SearchRecord)
    choice: LawChoice | None = None
    supply_voltage: Spread | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
