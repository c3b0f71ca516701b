r"""The library: drives identified from public recordings, which are part of the installation (``config/library``).

Equal drives in different joints show the spread from unit to unit: of n of them the standard deviation of a parameter, divided by its
mean. It contains the uncertainty of the identification, and for joints that carry different loads their difference.
"""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from stribeck.errors import check_valid
from stribeck.files.drives import Drives, read_drives
from stribeck.files.folders import shared_directory
from stribeck.files.schema import Schema, read_yaml
from stribeck.model.estimate import Estimate
from stribeck.model.joint import Drive

FEWEST = 3
"""Equal drives from which on a spread is stated."""


class LibraryEntry(Schema, kw_only=True):
    """One set of drives.

    :param title: what was recorded.
    :param source: of the recordings.
    :param licence: of the recordings.
    :param command: that identified the drives, with ``{data}`` for the folder of the recordings.
    :param kinds: joints with equal drives, by kind.
    """

    title: str
    source: str
    licence: str
    command: str
    kinds: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class LibraryFile(Schema):
    """The list of the library.

    :param schema: version of the format.
    :param entries: by name of the file.
    """

    schema: Literal[1]
    entries: dict[str, LibraryEntry]


@dataclass(frozen=True)
class ParameterSpread:
    """A parameter of equal drives: their number, its mean, and the standard deviation as a share of it."""

    count: int
    mean: float
    share: float


def folder() -> Path:
    """The folder of the library."""
    return shared_directory("config") / "library"


def entries() -> dict[str, LibraryEntry]:
    """What the library offers, by name.

    :raises ConfigError: for an installation without it.
    """
    return read_yaml(folder() / "library.yaml", LibraryFile).entries


def path_of(name: str) -> Path:
    """The file of drives with a name.

    :raises ConfigError: for a name that is not in the library.
    """
    check_valid(name, entries(), "the library has no drives")
    return folder() / f"{name}.json"


def drives_of(name: str) -> Drives:
    """The drives with a name; see :func:`path_of`."""
    return read_drives(path_of(name))


def friction_of(drive: Drive) -> dict[str, Estimate]:
    """Estimates of the friction parameters of a drive that a fit states, by name; fixed ones are left out."""
    stated = {name: drive.estimates[name] for name in drive.law.parameter_names}
    return {
        name: one for name, one in stated.items() if one.status != "fixed" and (one.interval or one.value)
    }


def spread_of(entry: LibraryEntry, drives: Drives) -> dict[str, Mapping[str, ParameterSpread]]:
    """Spread of the friction parameters of each kind of equal drives, without those that are not known or of either sign."""
    found: dict[str, Mapping[str, ParameterSpread]] = {}
    for kind, joints in entry.kinds.items():
        columns: dict[str, list[float]] = {}
        for joint in joints:
            for name, estimate in friction_of(drives.joints[joint]).items():
                if estimate.known:
                    columns.setdefault(name, []).append(float(estimate.value))
        found[kind] = {
            name: ParameterSpread(len(values), mean, statistics.stdev(values) / abs(mean))
            for name, values in columns.items()
            if len(values) >= FEWEST
            and min(values) * max(values) > 0.0
            and (mean := statistics.fmean(values))
        }
    return found
