"""The result of a calibration as a JSON file.

It holds the nominal chain, the estimates of all parameters, the calibrated geometry as URDF origins, and the provenance of the fit. Lengths are in m, angles in rad.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from stribeck.errors import ConfigError, ParameterFileError
from stribeck.files.earlier_drives import ParameterEntry
from stribeck.files.folders import save_json
from stribeck.files.schema import Schema, read_json
from stribeck.identify.common.quantiles import normal_estimate
from stribeck.identify.geometry.calibration import ArmCalibration
from stribeck.identify.geometry.chain import SerialChain
from stribeck.identify.geometry.model import KinematicModel, candidate_terms
from stribeck.identify.geometry.urdf import calibrated_chain, origin_of
from stribeck.model.arrays import Array
from stribeck.model.estimate import Estimate, estimates_to_json

SCHEMA = 2
KIND = "kinematic calibration"
Row = tuple[float, float, float, float]
Pose = tuple[Row, Row, Row, Row]


class NominalGeometry(Schema):
    """Nominal geometry: the chain of joints, the base pose, the direction of gravity.

    :param joints: names, from the base.
    :param prismatic: whether each is prismatic.
    :param placements: pose of each joint in the frame before it [m].
    :param flange: its pose in the frame of the last joint [m].
    :param base: pose of the base in the measuring system [m].
    :param gravity: its direction in the frame of the base.
    """

    joints: tuple[str, ...]
    prismatic: tuple[bool, ...]
    placements: tuple[Pose, ...]
    flange: Pose
    base: Pose
    gravity: tuple[float, float, float]


class CalibratedParameter(ParameterEntry, kw_only=True):
    """One value of ``parameters``.

    :param group: parameters that are fitted together.
    :param sigma: of early files: standard deviation, null if it was not estimated.
    """

    group: str
    sigma: float | None = None

    @property
    def estimate(self) -> Estimate:
        """Convert to an estimate, deriving interval and status of early files."""
        if self.status is None and self.sigma is not None:
            return normal_estimate(self.value, self.unit, self.sigma)
        return super().estimate


class CalibrationFile(Schema):
    """The whole file.

    :param schema: version of the format; 1 has ``sigma``.
    :param kind: of the file.
    :param robot: its name.
    :param fit: set of free parameters.
    :param markers: names of the measured points.
    :param calibrated: origins of the calibrated joints, as in a URDF [m, rad].
    :param noise: standard deviation of the measurement [m].
    :param provenance: data and settings of the fit.
    :param status: how the solver ended.
    """

    schema: Literal[1, 2]
    kind: Literal["kinematic calibration"]
    robot: str
    fit: str
    nominal: NominalGeometry
    markers: tuple[str, ...]
    parameters: dict[str, CalibratedParameter]
    calibrated: dict[str, Any]
    noise: float
    provenance: dict[str, Any]
    status: str = "converged"


@dataclass(frozen=True, eq=False)
class CalibratedArm:
    """A calibrated arm, read from its file.

    :param estimates: of all parameters of the model.
    """

    robot: str
    model: KinematicModel
    estimates: Mapping[str, Estimate]

    def predict(self, positions: Array) -> Array:
        """Positions of the markers in the measuring system (poses, k, 3) [m] at joint positions (poses, n)."""
        values = np.array([self.estimates[name].value for name in self.model.names])
        return self.model.predict(positions, values)


def write_calibration(
    path: Path, robot: str, fit: str, calibration: ArmCalibration, provenance: Mapping[str, Any]
) -> None:
    """Write a calibration.

    :param provenance: data and settings of the fit.
    :raises OutputError: if the file cannot be written.
    """
    model, chain = calibration.model, calibration.model.chain
    base, calibrated = calibrated_chain(model, calibration.estimate.values)
    poses = [base, *calibrated.placements, calibrated.flange]
    content = {
        "schema": SCHEMA,
        "kind": KIND,
        "robot": robot,
        "fit": fit,
        "status": calibration.estimate.status.value,
        "nominal": {
            "joints": list(chain.names),
            "prismatic": list(chain.prismatic),
            "placements": chain.placements.tolist(),
            "flange": chain.flange.tolist(),
            "base": model.base.tolist(),
            "gravity": list(model.gravity),
        },
        "markers": list(model.markers),
        "parameters": parameter_entries(calibration),
        "calibrated": {
            name: dict(zip(("xyz", "rpy"), origin_of(pose), strict=True))
            for name, pose in zip(("base", *chain.names, "flange"), poses, strict=True)
        },
        "noise": calibration.estimate.scale,
        "provenance": dict(provenance),
    }
    save_json(path, content, allow_nan=True)


def parameter_entries(calibration: ArmCalibration) -> dict[str, dict[str, Any]]:
    """Estimate and group of each parameter, by name."""
    entries = estimates_to_json(calibration.estimates)
    groups = zip(calibration.model.names, calibration.model.groups, strict=True)
    return {name: {**entries[name], "group": group} for name, group in groups}


def read_calibration_file(path: Path) -> CalibratedArm:
    """Read a calibration.

    :raises ParameterFileError: for a file that :func:`write_calibration` cannot have written.
    """
    content = read_json(path, CalibrationFile, ParameterFileError)
    nominal, parameters = content.nominal, content.parameters
    try:
        chain = SerialChain(
            nominal.joints, np.array(nominal.placements), np.array(nominal.flange), nominal.prismatic
        )
    except ConfigError as error:
        raise ParameterFileError(f"{path}: nominal: {error}") from None
    terms = tuple(term for term in candidate_terms(chain, nominal.gravity) if term.name in parameters)
    model = KinematicModel(chain, np.array(nominal.base), terms, content.markers, nominal.gravity)
    missing = [name for name in model.names if name not in parameters]
    unknown = [name for name in parameters if name not in model.names]
    for problem, names in (("missing", missing), ("unknown", unknown)):
        if names:
            raise ParameterFileError(f"{path}: parameters: {problem} {', '.join(names)}")
    return CalibratedArm(content.robot, model, {name: parameters[name].estimate for name in model.names})
