"""Reading of saved fits: drives of servos, joints, arms and robots, and files of mechanisms."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from stribeck.api.fit import Fit
from stribeck.api.recordings import PathLike
from stribeck.errors import ParameterFileError
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import Drives, MachineParameters, read_drives
from stribeck.files.folders import save_json
from stribeck.files.schema import convert, read_json
from stribeck.identify.mechanism.parameter_file import MechanismParameterFile


def read(path: PathLike, servo: str | None = None) -> Fit:
    """Read a saved fit: a file of drives (of a servo, a joint, an arm, a robot), or that of a mechanism.

    :param servo: its name or YAML file, for files that neither describe it nor name an installed one.
    :returns: a fit that behaves like the fresh one, but for recordings, which files do not hold.
    :raises ParameterFileError: for a file that is missing or damaged.
    """
    path = Path(path)
    data = read_json(path, dict[str, Any], ParameterFileError)
    where = str(path)
    if data.get("kind") == "mechanism":
        mechanism = convert(data, MechanismParameterFile, where, ParameterFileError)
        estimates = {name: entry.estimate for name, entry in mechanism.parameters.items()}
        content = Drives({}, MachineParameters(mechanism.model, estimates))
        return Fit(content, title=mechanism.model, where=where, write=partial(_copy, data))
    drives = read_drives(path, None if servo is None else load_actuator(servo))
    return Fit(drives, where=where)


def _copy(data: dict[str, Any], path: Path) -> None:
    save_json(path, data)
