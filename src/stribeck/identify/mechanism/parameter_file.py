"""Reads and writes parameter files of mechanisms: estimates and their provenance as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from stribeck.errors import ParameterFileError
from stribeck.files.estimate_entry import ParameterEntry
from stribeck.files.folders import save_json
from stribeck.files.schema import Schema, check_keys, read_json
from stribeck.model.estimate import Estimate, estimates_to_json
from stribeck.model.parameters import ParameterSet


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
    save_json(path, data)


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
