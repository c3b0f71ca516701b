"""Files of earlier versions as drives: parameter files of schema 1, and what ``identify-robot`` and ``estimate`` wrote."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from stribeck.errors import ParameterFileError
from stribeck.files.actuators import ActuatorFile
from stribeck.files.drive_entry import DriveBlock, with_names_of_today
from stribeck.files.schema import Positive, Schema, convert
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.model.estimate import CONFIDENCE, Estimate, Interval, Side, Status, at_bound, fixed
from stribeck.model.joint import CorrelationMatrix, Drive, Prediction
from stribeck.model.law import law_named
from stribeck.model.provenance import (
    Expected,
    LawCandidate,
    LawChoice,
    Minimum,
    ModelErrors,
    Provenance,
    Runs,
    SearchRecord,
    Setting,
    SimulationSettings,
    Spread,
)
from stribeck.model.verdict import Reason, Verdict

INVERSE = "inverse_dynamics"
"""Key of ``simulation`` in files of ``identify-arm``, whose other keys there are settings."""

LOSS = tuple(ModelErrors.__dataclass_fields__)


@dataclass(frozen=True, kw_only=True)
class EarlierBlock:
    """The block ``stribeck`` of schema 1."""

    schema: Literal[1]
    actuator: ActuatorFile | None = None
    units: dict[str, str]
    bounds: dict[str, Interval]
    fixed: tuple[str, ...]
    intervals: dict[str, Interval]
    confidence: float
    not_determined: dict[str, str]
    at_bounds: dict[str, str]
    statements: tuple[str, ...]
    loss: dict[str, Any]
    split: dict[str, Any]
    simulation: dict[str, Any]
    effects: tuple[str, ...]
    supply_voltage: Spread | None
    temperature: Spread | None
    data: dict[str, Any]
    search: dict[str, Any]
    versions: dict[str, str]
    correlation: CorrelationMatrix | None = None
    minima: tuple[Minimum, ...] | None = None
    convergence: tuple[tuple[float, float], ...] | None = None
    estimates: dict[str, Estimate] | None = None
    selection: dict[str, Any] | None = None
    prediction: Prediction | None = None

    def __post_init__(self) -> None:
        for key, pairs in (("bounds", self.bounds), ("intervals", self.intervals)):
            for name, (lower, upper) in pairs.items():
                if lower > upper:
                    raise ValueError(f"{key}: {name}: {lower:g} is above {upper:g}")

    def drive_block(self, values: Mapping[str, float], where: str) -> DriveBlock:
        """What it says of the joint.

        :param values: by name, of which it gives estimates.
        :raises ParameterFileError: for entries of the wrong type.
        """
        estimates = self.estimates
        if estimates is None:
            estimates = {name: self._estimate(name, value) for name, value in values.items()}
        names = {"train_mae": "train", "validation_mae": "validation"}
        loss = {names.get(key, key): value for key, value in self.loss.items() if key in (*names, *LOSS)}
        return DriveBlock(
            actuator=self.actuator,
            effects=self.effects,
            estimates=estimates,
            bounds=self.bounds,
            correlation=self.correlation,
            prediction=self.prediction,
            temperature=self.temperature,
            statements=self.statements,
            loss=convert(loss, ModelErrors, f"{where}: loss", ParameterFileError),
        )

    def _estimate(self, name: str, value: float) -> Estimate:
        unit, interval = self.units.get(name, ""), self.intervals.get(name)
        if name in self.fixed:
            return fixed(value, unit)
        if name in self.at_bounds:
            side: Side = "lower" if self.at_bounds[name] == "lower" else "upper"
            return at_bound(value, unit, side, self.bounds.get(name))
        if name in self.not_determined:
            reason = self.not_determined[name]
            status: Status = "loosely determined" if reason.startswith("loosely") else "not determined"
            return Estimate(value, unit, status, interval, self.confidence, reason)
        if interval is None:
            reason = "the file states no interval for it"
            return Estimate(value, unit, "not determined", None, self.confidence, reason)
        return Estimate(value, unit, "determined", interval, self.confidence)

    def provenance(self, where: str) -> Provenance:
        """What it says of the origin.

        :raises ParameterFileError: for entries of the wrong type.
        """

        def entry(section: str, key: str, kind: Any, default: Any = None) -> Any:
            content: Mapping[str, Any] = getattr(self, section)
            if content.get(key) is None:
                return default
            return convert(content[key], kind, f"{where}: {section}: {key}", ParameterFileError)

        names = tuple[str, ...]
        arm = INVERSE in self.simulation
        return Provenance(
            runs=Runs(
                entry("split", "rule", str, ""),
                entry("split", "train", names, ()),
                entry("split", "validation", names, ()),
                entry("data", "digests", dict[str, str], {}),
                entry("data", "fingerprint", str, ""),
                entry("data", "left_out", names, ()),
                entry("data", "inputs", str, ""),
            ),
            simulation=SimulationSettings(
                entry("simulation", "dt", Positive),
                entry("simulation", "integrator", str, ""),
                entry("simulation", "reset_period", Positive),
                entry("simulation", "dtype", str, ""),
            ),
            search=SearchRecord(
                entry("search", "method", str, ""),
                entry("search", "seed", int),
                entry("search", "evaluations", int),
                entry("search", "outcome", str, ""),
                entry("search", "status", str, ""),
                entry("search", "clusters", str, ""),
                self.minima or (),
                self.convergence or (),
                {**_settings(self.search, SearchRecord), **(_settings(self.simulation) if arm else {})},
            ),
            choice=None if self.selection is None else _choice(self.selection, where),
            supply_voltage=self.supply_voltage,
            versions=self.versions,
        )


def _settings(content: Mapping[str, Any], known: type | None = None) -> dict[str, Setting]:
    names: Iterable[str] = getattr(known, "__dataclass_fields__", ())
    return {
        name: value
        for name, value in content.items()
        if name not in names and (value is None or isinstance(value, str | float | int))
    }


def _choice(selection: Mapping[str, Any], where: str) -> LawChoice:
    content = {**selection["selection"], "expected_error": selection["expected_error"]}
    place = f"{where}: selection"
    candidates = convert(content.pop("candidates", []), tuple[LawCandidate, ...], place, ParameterFileError)
    expected = convert(content.pop("expected_error"), dict[str, Expected], place, ParameterFileError)
    return LawChoice(
        content["chosen"],
        content["sentence"],
        expected,
        {kind: tuple(names) for kind, names in content.get("left_out", {}).items()},
        candidates,
        content.get("seconds", 0.0),
    )


class EarlierJoint(Schema):
    """A joint in a file of ``identify-robot``.

    :param rms: error by kind of run [rad].
    :param parameters: by name.
    :param centre: position around which friction varies [rad].
    """

    rms: Any
    parameters: dict[str, Estimate]
    centre: float = 0.0


class EarlierRobotFile(Schema):
    """What ``identify-robot`` wrote, and what ``identify robot --json`` writes.

    :param rms: total errors [rad].
    :param per_joint: by name of the joint.
    :param per_run: errors of the runs.
    :param laws: friction law by name of the joint.
    :param base: parameters of the base.
    :param not_determined: what the data tell least.
    :param same: mean and scatter of parameters of joints with equal drives.
    :param seconds: time that the fit took.
    :param reasons: against the result or single joints; ``None`` in files without a verdict.
    :param verdict, verdicts: uses that follow from them.
    """

    schema: Literal[1]
    rms: Any
    per_joint: dict[str, EarlierJoint]
    per_run: Any
    laws: dict[str, str]
    base: dict[str, Estimate]
    not_determined: Any = None
    same: Any = None
    seconds: float = 0.0
    reasons: tuple[Reason, ...] | None = None
    verdict: Any = None
    verdicts: Any = None

    def __post_init__(self) -> None:
        missing = [name for name in self.per_joint if name not in self.laws]
        if missing:
            raise ValueError(
                f"no parameters of the law {', '.join(missing)}; laws in the file: {', '.join(self.laws) or 'none'}"
            )

    @property
    def stated(self) -> Verdict | None:
        """The verdict on all joints."""
        return None if self.reasons is None else Verdict(self.reasons, tuple(self.per_joint))

    def drives(self) -> dict[str, Drive]:
        """The drives by joint; the model's torque limits and the resolution of the positions are not in the file."""
        actuator = torque_actuator("rotary", derivative_gain=1.0)
        found = {}
        for name, joint in self.per_joint.items():
            estimates = with_names_of_today(joint.parameters)
            law = law_named(self.laws[name]).with_parameters(estimates)
            if "friction_centre" in law.parameter_names:
                estimates["friction_centre"] = fixed(joint.centre, "rad")
            own = None if self.stated is None else self.stated.of(name)
            found[name] = torque_drive(actuator, law, estimates, verdict=own)
        return found


_STATUS: Mapping[bool | None, Status] = {None: "fixed", True: "determined", False: "not determined"}


class ParameterEntry(Schema):
    """One parameter; early files have ``identifiable`` instead of ``status``.

    :param value: the estimate.
    :param unit: its unit.
    :param interval: lower and upper end of its interval.
    :param identifiable: in files of version 0.1: whether the recordings determine the value.
    :param status: whether the recordings determine it.
    :param confidence: probability with which the interval contains the value.
    :param reason: why it has this status.
    :param side: the bound of the search at which it lies.
    """

    value: float
    unit: str
    interval: Interval | None = None
    identifiable: bool | None = None
    status: Status | None = None
    confidence: float = CONFIDENCE
    reason: str = ""
    side: Side | None = None

    @property
    def estimate(self) -> Estimate:
        """Convert to an estimate, deriving the status of early files."""
        status = self.status or _STATUS[self.identifiable]
        return Estimate(self.value, self.unit, status, self.interval, self.confidence, self.reason, self.side)


class EarlierMechanismFile(Schema):
    """What ``estimate`` wrote.

    :param kind: of the file.
    :param model: name of the mechanism.
    :param provenance: recordings and settings of the estimation.
    """

    schema: Literal[1]
    kind: Literal["mechanism"]
    model: str
    parameters: dict[str, ParameterEntry]
    provenance: dict[str, Any] = msgspec.field(default_factory=dict)
