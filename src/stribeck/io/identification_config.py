"""How the recordings of a machine are read and what is identified: the section ``identification`` of its YAML file.

.. code-block:: yaml

    identification:
      recording:
        format: csv                     # csv (text with or without a header), mat, or bag
        rate: 5000                      # Hz, where no column holds the time
        time: {column: 0}               # s; mat: {variable: t}
        position: {file: pos.csv, columns: [0, 6], unit: deg}
        velocity: {columns: [7, 13]}    # where it was measured
        effort: {columns: [13, 19], scale: [14.87, 13.26, 11.13, 10.62, 11.03, 11.47]}
        gears: [[32, 0], [32, 32]]      # motor positions = gears · joint positions
        offset: [0, 1.5708]             # added to joint positions after the gears
      protocol:
        rows: {fourier_30s: [635, 3510]}  # first and one beyond the last row, by file name
        resample: 100                   # Hz, for samples with jitter
        position_filter: {order: 4, cutoff: 100}   # of positions, or of measured velocities
        effort_filter: {order: 4, cutoff: 100}
        every: 10                       # every so-many-th row is used
        drop: 30                        # samples that are left out at each end
        edge_order: 2                   # of the differences at the ends, 1 or 2
        moving: 0.1                     # rad/s: rows above it are moving rows
        rest: 1.0e-4                    # rad/s: below it a joint has no direction
        fit: moving                     # or every_row
      couplings: {wrist: {joint_5: 1, joint_6: 1}}   # what turns with the sum of two motors
      neighbourhood: {mass: 0.5, com: 0.1, inertia: 1}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from stribeck.errors import ConfigError
from stribeck.io import strict
from stribeck.io.robot_config import RobotConfig, numbers

Format = Literal["csv", "mat", "bag"]
UNITS = {"rad": 1.0, "m": 1.0, "deg": 0.017453292519943295, "mm": 1e-3}
"""Units of positions and velocities, in rad or m."""


@dataclass(frozen=True)
class SignalSource:
    """Where a signal stands, and what it has to be multiplied by.

    :param file: name of its file, where the signals of a run lie in several.
    :param columns: first and one beyond the last column of a text file.
    :param variable: name in a MAT file.
    :param scale: one number, one for each joint, or the name of a variable of the MAT file.
    :param unit: of :data:`UNITS`; the scale brings it to SI.
    """

    file: str | None
    columns: tuple[int, int] | None
    variable: str | None
    scale: float | tuple[float, ...] | str
    unit: str


@dataclass(frozen=True)
class RecordingFormat:
    """How recordings of a machine are read.

    :param signals: of ``time``, ``position``, ``velocity``, ``effort``, what files hold.
    :param rate: of files without time [Hz].
    :param gears: matrix G, motor positions = G · joint positions; torque of the joints is Gᵀ · torque of the motors.
    :param offset: added to joint positions [rad].
    """

    format: Format
    signals: Mapping[str, SignalSource]
    rate: float | None
    gears: tuple[tuple[float, ...], ...] | None
    offset: tuple[float, ...] | None


@dataclass(frozen=True)
class FilterSettings:
    """A zero-phase Butterworth filter: order of a pass, cut-off [Hz], samples of extension."""

    order: int
    cutoff: float
    padding: int | None


@dataclass(frozen=True)
class Protocol:
    """What is done to signals before they are fitted and scored; see the module."""

    rows: Mapping[str, tuple[int, int]]
    resample: float | None
    position_filter: FilterSettings | None
    effort_filter: FilterSettings | None
    every: int
    drop: int
    edge_order: Literal[1, 2]
    moving: float
    rest: float
    fit: Literal["moving", "every_row"]


@dataclass(frozen=True)
class Neighbourhood:
    """How far a physically consistent solution may go from the URDF.

    :param mass: of each link, as a share of its mass.
    :param com: centre of mass [m].
    :param inertia: factors of the inertia about the centre of mass, as a share of their size.
    """

    mass: float
    com: float
    inertia: float


@dataclass(frozen=True)
class IdentificationConfig:
    """The section ``identification`` of a machine.

    :param couplings: weights of the joints' velocities in what turns with several motors, by name.
    """

    recording: RecordingFormat
    protocol: Protocol
    couplings: Mapping[str, Mapping[str, float]]
    neighbourhood: Neighbourhood


def identification_config(robot: RobotConfig) -> IdentificationConfig:
    """The section ``identification``.

    :raises ConfigError: for what is missing or not valid.
    """
    what = f"{robot.path}: identification"
    data = robot.section("identification")
    strict.check_keys(data, ("recording", "protocol"), ("couplings", "neighbourhood"), what, ConfigError)
    return IdentificationConfig(
        recording=_recording(data["recording"], f"{what}: recording"),
        protocol=_protocol(data["protocol"], f"{what}: protocol"),
        couplings=_couplings(data.get("couplings", {}), robot.joints, f"{what}: couplings"),
        neighbourhood=_neighbourhood(data.get("neighbourhood", {}), f"{what}: neighbourhood"),
    )


def _recording(value: Any, what: str) -> RecordingFormat:
    data = strict.mapping(value, what, ConfigError)
    signals = ("time", "position", "velocity", "effort")
    strict.check_keys(data, ("format",), (*signals, "rate", "gears", "offset"), what, ConfigError)
    kind = data["format"]
    if kind not in ("csv", "mat", "bag"):
        raise ConfigError(f"{what}: format must be csv, mat or bag, found {kind!r}")
    found = {name: _source(data[name], kind, f"{what}: {name}") for name in signals if name in data}
    if kind != "bag":
        strict.check_keys(found, ("position", "effort"), signals, what, ConfigError)
        if ("time" in found) == ("rate" in data):
            raise ConfigError(f"{what}: give either time or rate")
    return RecordingFormat(
        format=kind,
        signals=found,
        rate=_positive(data["rate"], f"{what}: rate") if "rate" in data else None,
        gears=_gears(data["gears"], f"{what}: gears") if "gears" in data else None,
        offset=_list(data["offset"], f"{what}: offset") if "offset" in data else None,
    )


def _source(value: Any, kind: str, what: str) -> SignalSource:
    data = strict.mapping(value, what, ConfigError)
    strict.check_keys(data, (), ("file", "column", "columns", "variable", "scale", "unit"), what, ConfigError)
    unit = data.get("unit", "rad")
    if unit not in UNITS:
        raise ConfigError(f"{what}: unit must be one of {', '.join(UNITS)}, found {unit!r}")
    scale = data.get("scale", 1.0)
    columns = None
    if "column" in data:
        first = _count(data["column"], f"{what}: column", least=0)
        columns = (first, first + 1)
    if "columns" in data:
        pair = data["columns"]
        if not isinstance(pair, list) or len(pair) != 2:
            raise ConfigError(f"{what}: columns: expected [first, one beyond the last], found {pair!r}")
        columns = (_count(pair[0], what, least=0), _count(pair[1], what, least=1))
    if kind == "csv" and columns is None:
        raise ConfigError(
            f"{what}: say which columns it is: column, or columns: [first, one beyond the last]"
        )
    if kind == "mat" and "variable" not in data:
        raise ConfigError(f"{what}: name its variable")
    return SignalSource(
        file=None if data.get("file") is None else strict.text(data["file"], f"{what}: file", ConfigError),
        columns=columns,
        variable=strict.text(data["variable"], f"{what}: variable", ConfigError)
        if "variable" in data
        else None,
        scale=_list(scale, f"{what}: scale")
        if isinstance(scale, list)
        else scale
        if isinstance(scale, str)
        else strict.number(scale, f"{what}: scale", ConfigError),
        unit=unit,
    )


def _protocol(value: Any, what: str) -> Protocol:
    data = strict.mapping(value, what, ConfigError)
    optional = (
        "rows",
        "resample",
        "position_filter",
        "effort_filter",
        "every",
        "drop",
        "edge_order",
        "rest",
        "fit",
    )
    strict.check_keys(data, ("moving",), optional, what, ConfigError)
    rows = {}
    for name, pair in strict.mapping(data.get("rows", {}), f"{what}: rows", ConfigError).items():
        if not isinstance(pair, list) or len(pair) != 2:
            raise ConfigError(f"{what}: rows: {name}: expected [first, one beyond the last], found {pair!r}")
        rows[name] = (_count(pair[0], f"{what}: rows", least=0), _count(pair[1], f"{what}: rows", least=1))
    fit = data.get("fit", "every_row")
    if fit not in ("moving", "every_row"):
        raise ConfigError(f"{what}: fit must be moving or every_row, found {fit!r}")
    rest = data.get("rest", 1e-4)
    return Protocol(
        rows=rows,
        resample=_positive(data["resample"], f"{what}: resample") if "resample" in data else None,
        position_filter=_filter(data.get("position_filter"), f"{what}: position_filter"),
        effort_filter=_filter(data.get("effort_filter"), f"{what}: effort_filter"),
        every=_count(data.get("every", 1), f"{what}: every"),
        drop=_count(data.get("drop", 0), f"{what}: drop", least=0),
        edge_order=_edge_order(data.get("edge_order", 2), f"{what}: edge_order"),
        moving=_positive(data["moving"], f"{what}: moving"),
        rest=0.0 if rest == 0 else _positive(rest, f"{what}: rest"),
        fit=fit,
    )


def _edge_order(value: Any, what: str) -> Literal[1, 2]:
    if value == 1:
        return 1
    if value == 2:
        return 2
    raise ConfigError(f"{what}: must be 1 or 2, found {value!r}")


def _filter(value: Any, what: str) -> FilterSettings | None:
    if value is None:
        return None
    data = strict.mapping(value, what, ConfigError)
    strict.check_keys(data, ("order", "cutoff"), ("padding",), what, ConfigError)
    return FilterSettings(
        order=_count(data["order"], f"{what}: order"),
        cutoff=_positive(data["cutoff"], f"{what}: cutoff"),
        padding=_count(data["padding"], f"{what}: padding") if "padding" in data else None,
    )


def _couplings(value: Any, joints: tuple[str, ...], what: str) -> dict[str, dict[str, float]]:
    found = {}
    for name, weights in strict.mapping(value, what, ConfigError).items():
        given = strict.mapping(weights, f"{what}: {name}", ConfigError)
        unknown = [joint for joint in given if joint not in joints]
        if unknown or len(given) < 2:
            raise ConfigError(
                f"{what}: {name}: expected weights of two joints or more out of {', '.join(joints)}, "
                f"found {', '.join(given)}"
            )
        found[name] = {
            joint: strict.number(weight, f"{what}: {name}: {joint}", ConfigError)
            for joint, weight in given.items()
        }
    return found


def _neighbourhood(value: Any, what: str) -> Neighbourhood:
    data = strict.mapping(value, what, ConfigError)
    strict.check_keys(data, (), ("mass", "com", "inertia"), what, ConfigError)
    return Neighbourhood(
        mass=_positive(data.get("mass", 0.9), f"{what}: mass"),
        com=_positive(data.get("com", 0.2), f"{what}: com"),
        inertia=_positive(data.get("inertia", 5.0), f"{what}: inertia"),
    )


def _gears(value: Any, what: str) -> tuple[tuple[float, ...], ...]:
    if not isinstance(value, list) or not value:
        raise ConfigError(f"{what}: expected a square matrix as a list of rows")
    return tuple(numbers(row if isinstance(row, list) else [row], what, len(value)) for row in value)


def _list(value: Any, what: str) -> tuple[float, ...]:
    if not isinstance(value, list):
        raise ConfigError(f"{what}: expected a list of numbers, found {value!r}")
    return numbers(value, what, len(value))


def _positive(value: Any, what: str) -> float:
    found = strict.number(value, what, ConfigError)
    if not found > 0.0:
        raise ConfigError(f"{what}: must be positive, found {found:g}")
    return found


def _count(value: Any, what: str, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{what}: expected a whole number from {least}, found {value!r}")
    return value
