"""Reading of saved fits."""

from __future__ import annotations

from pathlib import Path

from stribeck.api.fit import Fit
from stribeck.api.recordings import PathLike
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drives


def read(path: PathLike, servo: str | None = None) -> Fit:
    """Read a saved fit: the file of drives of a servo, a joint, an arm, a robot or a mechanism.

    :param servo: its name or YAML file, for files that neither describe it nor name an installed one.
    :returns: a fit that behaves like the fresh one, but for recordings, which files do not hold.
    :raises ParameterFileError: for a file that is missing or damaged.
    """
    path = Path(path)
    drives = read_drives(path, None if servo is None else load_actuator(servo))
    return Fit(drives, title="" if drives.joints else drives.machine.name, where=str(path))
