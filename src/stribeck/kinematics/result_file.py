"""The result of a calibration as a JSON file: written and read here, with a version.

It holds the nominal chain, the values and standard deviations of all parameters (``null`` where the poses could
not tell), the calibrated geometry as origins of a URDF, and what the fit was made of. Lengths are in m, angles
in rad.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stribeck.errors import ConfigError, ParameterFileError
from stribeck.io import strict
from stribeck.io.files import write_atomically
from stribeck.kinematics.calibrated_chain import calibrated_chain, origin_of
from stribeck.kinematics.calibration import ArmCalibration
from stribeck.kinematics.chain import SerialChain
from stribeck.kinematics.model import KinematicModel, candidate_terms

FloatArray = npt.NDArray[np.float64]

SCHEMA = 1
KIND = "kinematic calibration"


@dataclass(frozen=True, eq=False)
class CalibratedArm:
    """An arm as its file describes it.

    :param robot: its name.
    :param model: chain and terms.
    :param values: of all parameters.
    :param sigma: their standard deviations, NaN where they were not estimated.
    """

    robot: str
    model: KinematicModel
    values: FloatArray
    sigma: FloatArray

    def predict(self, positions: FloatArray) -> FloatArray:
        """Where the measuring system sees the markers (poses, k, 3) [m] at joint positions (poses, n)."""
        return self.model.predict(positions, self.values)


def write_calibration(
    path: Path, robot: str, fit: str, calibration: ArmCalibration, provenance: Mapping[str, Any]
) -> None:
    """Write a calibration.

    :param provenance: what the fit was made of.
    :raises OutputError: if the file cannot be written.
    """
    model, values = calibration.model, calibration.estimate.values
    content = {
        "schema": SCHEMA,
        "kind": KIND,
        "robot": robot,
        "fit": fit,
        "nominal": {
            "joints": list(model.chain.names),
            "prismatic": list(model.chain.prismatic),
            "placements": model.chain.placements.tolist(),
            "flange": model.chain.flange.tolist(),
            "base": model.base.tolist(),
            "gravity": list(model.gravity),
        },
        "markers": list(model.markers),
        "parameters": parameter_entries(calibration),
        "calibrated": _origins(model, values),
        "noise": calibration.estimate.scale,
        "provenance": dict(provenance),
    }
    write_atomically(path, json.dumps(content, indent=1) + "\n")


def parameter_entries(calibration: ArmCalibration) -> dict[str, dict[str, Any]]:
    """Value, unit, group and standard deviation of each parameter, by name."""
    model = calibration.model
    return {
        name: {"value": value, "unit": unit, "group": group, "sigma": sigma if np.isfinite(sigma) else None}
        for name, value, unit, group, sigma in zip(
            model.names,
            calibration.estimate.values.tolist(),
            model.units,
            model.groups,
            calibration.sigma.tolist(),
            strict=True,
        )
    }


def _origins(model: KinematicModel, values: FloatArray) -> dict[str, Any]:
    """The calibrated geometry as origins: base, joints and flange, each in the frame before it."""
    base, chain = calibrated_chain(model, values)
    poses = {
        "base": base,
        **dict(zip(chain.names, chain.placements, strict=True)),
        "flange": chain.flange,
    }
    return {name: dict(zip(("xyz", "rpy"), origin_of(pose), strict=True)) for name, pose in poses.items()}


def read_calibration_file(path: Path) -> CalibratedArm:
    """Read a calibration.

    :raises ParameterFileError: for anything that :func:`write_calibration` does not write.
    """
    data = strict.parse_json(strict.read_text(path, ParameterFileError), path, ParameterFileError)
    data = strict.mapping(data, str(path), ParameterFileError)
    keys = (
        "schema",
        "kind",
        "robot",
        "fit",
        "nominal",
        "markers",
        "parameters",
        "calibrated",
        "noise",
        "provenance",
    )
    if data.get("kind") != KIND or data.get("schema") != SCHEMA:
        raise ParameterFileError(f"{path} is no {KIND} of schema {SCHEMA}: write it with stribeck calibrate")
    strict.check_keys(data, keys, (), str(path), ParameterFileError)
    parameters = strict.mapping(data["parameters"], f"{path}: parameters", ParameterFileError)
    model = _model(path, data, parameters)
    entries = []
    for name in model.names:
        if name not in parameters:
            raise ParameterFileError(f"{path}: parameters: {name} missing")
        entries.append(strict.mapping(parameters[name], f"{path}: {name}", ParameterFileError))
    unknown = set(parameters) - set(model.names)
    if unknown:
        raise ParameterFileError(f"{path}: parameters: unknown {', '.join(sorted(unknown))}")
    values = [strict.number(entry.get("value"), f"{path}: value", ParameterFileError) for entry in entries]
    sigma = [
        np.nan
        if entry.get("sigma") is None
        else strict.number(entry["sigma"], f"{path}: sigma", ParameterFileError)
        for entry in entries
    ]
    robot = strict.text(data["robot"], f"{path}: robot", ParameterFileError)
    return CalibratedArm(robot, model, np.array(values), np.array(sigma))


def _model(path: Path, data: Mapping[str, Any], parameters: Mapping[str, Any]) -> KinematicModel:
    """The model of a file, with the terms that have a value there."""
    nominal = strict.mapping(data["nominal"], f"{path}: nominal", ParameterFileError)
    keys = ("joints", "prismatic", "placements", "flange", "base", "gravity")
    strict.check_keys(nominal, keys, (), f"{path}: nominal", ParameterFileError)
    try:
        chain = SerialChain(
            tuple(nominal["joints"]),
            np.array(nominal["placements"], dtype=float),
            np.array(nominal["flange"], dtype=float),
            tuple(bool(slides) for slides in nominal["prismatic"]),
        )
        x, y, z = (float(component) for component in nominal["gravity"])
        base = np.array(nominal["base"], dtype=float)
        markers = tuple(str(name) for name in data["markers"])
    except (TypeError, ValueError, ConfigError) as problem:
        raise ParameterFileError(f"{path}: nominal: {problem}") from None
    if base.shape != (4, 4):
        raise ParameterFileError(f"{path}: nominal: base: expected 4×4 numbers, found {base.shape}")
    terms = tuple(term for term in candidate_terms(chain, (x, y, z)) if term.name in parameters)
    return KinematicModel(chain, base, terms, markers, (x, y, z))
