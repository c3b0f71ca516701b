"""Reads and writes parameter files of mechanisms: estimates and their provenance as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from stribeck.core.parameters import ParameterSet
from stribeck.errors import ParameterFileError
from stribeck.estimates.estimate import CONFIDENCE, Estimate, Interval, Side, Status, estimates_to_json
from stribeck.io.files import write_atomically
from stribeck.io.schema import Schema, check_keys, read_json


class ParameterEntry(Schema):
    """One parameter; early files have ``identifiable`` instead of ``status``.

    :param value: the estimate.
    :param unit: its unit.
    :param interval: lower and upper end of its interval.
    :param identifiable: of early files: whether the recordings determine it.
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


_STATUS: Mapping[bool | None, Status] = {None: "fixed", True: "determined", False: "not determined"}


class MechanismParameterFile(Schema):
    """The content of a file.

    :param schema: version of the format.
    :param kind: of the file.
    :param model: name of the mechanism.
    :param provenance: recordings and settings of the estimation.
    """

    schema: Literal[1]
    kind: Literal["mechanism"]
    model: str
    parameters: dict[str, ParameterEntry]
    provenance: dict[str, Any] = msgspec.field(default_factory=dict)


@dataclass(frozen=True)
class MechanismParameters:
    """Estimated parameters of a mechanism.

    :param estimates: estimates of all parameters, including fixed ones.
    :param provenance: recordings, step, ratio, status of the search.
    """

    model: str
    estimates: Mapping[str, Estimate]
    provenance: Mapping[str, Any]

    @property
    def values(self) -> dict[str, float]:
        """Values by parameter name."""
        return {name: estimate.value for name, estimate in self.estimates.items()}


def write_mechanism_parameters(path: Path, content: MechanismParameters) -> None:
    """Write a parameter file atomically.

    :raises OutputError: if it cannot be written.
    """
    data = {
        "schema": 1,
        "kind": "mechanism",
        "model": content.model,
        "parameters": estimates_to_json(content.estimates),
        "provenance": dict(content.provenance),
    }
    write_atomically(path, json.dumps(data, indent=1, allow_nan=False) + "\n")


def read_mechanism_parameters(path: Path, model: str, parameters: ParameterSet) -> MechanismParameters:
    """Read a parameter file of the mechanism ``model``.

    :raises ParameterFileError: for other files, missing or unknown parameters, and wrong units.
    """
    content = read_json(path, MechanismParameterFile, ParameterFileError)
    if content.model != model:
        raise ParameterFileError(f"{path} belongs to the mechanism {content.model!r}, not to {model!r}")
    check_keys(content.parameters, parameters.names, (), f"{path}: parameters", ParameterFileError)
    for name, entry in content.parameters.items():
        if entry.unit != parameters[name].unit:
            raise ParameterFileError(
                f"{path}: {name}: unit {entry.unit!r}, the model has {parameters[name].unit!r}"
            )
    estimates = {name: entry.estimate for name, entry in content.parameters.items()}
    return MechanismParameters(model, estimates, content.provenance)
