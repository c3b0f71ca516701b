"""Estimated parameters of mechanisms as JSON: values with units, intervals, and where they come from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stribeck.core.parameters import ParameterSet
from stribeck.errors import ParameterFileError
from stribeck.io import strict
from stribeck.io.files import write_atomically

SCHEMA = 1
KIND = "mechanism"


@dataclass(frozen=True)
class MechanismParameters:
    """What a parameter file holds.

    :param model: name of the mechanism.
    :param values: by the names of parameters, fixed ones included.
    :param intervals: of the estimated ones.
    :param identifiable: names that the recordings determine.
    :param provenance: recordings, step, ratio.
    """

    model: str
    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    identifiable: tuple[str, ...]
    provenance: Mapping[str, Any]


def write_mechanism_parameters(path: Path, content: MechanismParameters, parameters: ParameterSet) -> None:
    """Write a parameter file beside and rename.

    :raises OutputError: if it cannot be written.
    """
    entries = {}
    for parameter in parameters:
        entry: dict[str, Any] = {"value": content.values[parameter.name], "unit": parameter.unit}
        if parameter.name in content.intervals:
            entry["interval"] = list(content.intervals[parameter.name])
        if parameter.free:
            entry["identifiable"] = parameter.name in content.identifiable
        entries[parameter.name] = entry
    data = {
        "schema": SCHEMA,
        "kind": KIND,
        "model": content.model,
        "parameters": entries,
        "provenance": dict(content.provenance),
    }
    write_atomically(path, json.dumps(data, indent=1, allow_nan=False) + "\n")


def read_mechanism_parameters(path: Path, model: str, parameters: ParameterSet) -> MechanismParameters:
    """A parameter file of the mechanism ``model``.

    :raises ParameterFileError: for files of something else, and parameters missing, unknown or in other units.
    """
    error = ParameterFileError
    data = strict.mapping(strict.parse_json(strict.read_text(path, error), path, error), str(path), error)
    strict.check_keys(data, ("schema", "kind", "model", "parameters"), ("provenance",), str(path), error)
    if data["schema"] != SCHEMA or data["kind"] != KIND:
        raise error(f"{path} is no parameter file of a mechanism (schema {SCHEMA})")
    if data["model"] != model:
        raise error(f"{path} belongs to the mechanism {data['model']!r}, not to {model!r}")
    entries = strict.mapping(data["parameters"], f"{path}: parameters", error)
    strict.check_keys(entries, parameters.names, (), f"{path}: parameters", error)
    values, intervals, identifiable = {}, {}, []
    for name, given in entries.items():
        what = f"{path}: {name}"
        entry = strict.mapping(given, what, error)
        strict.check_keys(entry, ("value", "unit"), ("interval", "identifiable"), what, error)
        if entry["unit"] != parameters[name].unit:
            raise error(f"{what}: unit {entry['unit']!r}, the model has {parameters[name].unit!r}")
        values[name] = strict.number(entry["value"], what, error)
        if "interval" in entry:
            low, high = (strict.number(x, f"{what}: interval", error) for x in entry["interval"])
            intervals[name] = (low, high)
        if entry.get("identifiable"):
            identifiable.append(name)
    provenance = strict.mapping(data.get("provenance", {}), f"{path}: provenance", error)
    return MechanismParameters(model, values, intervals, tuple(identifiable), provenance)
