"""The section ``identification:`` of a robot's YAML file: format of its recordings, and what is identified.

.. code-block:: yaml

    identification:
      recording:
        format: csv
        rate: 5000
        position: {file: pos.csv, columns: [0, 6], unit: deg}
        velocity: {columns: [7, 13]}
        effort: {columns: [13, 19], scale: [14.87, 13.26, 11.13, 10.62, 11.03, 11.47]}
        gears: [[32, 0], [32, 32]]
        offset: [0, 1.5708]
      protocol:
        rows: {fourier_30s: [635, 3510]}
        resample: 100
        position_filter: {order: 4, cutoff: 100}
        effort_filter: {order: 4, cutoff: 100}
        every: 10
        drop: 30
        moving: 0.1
        fit: moving
      couplings: {wrist: {joint_5: 1, joint_6: 1}}
      neighbourhood: {mass: 0.5, com: 0.1, inertia: 1}
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

from stribeck.errors import ConfigError
from stribeck.io.robot_config import RobotConfig
from stribeck.io.schema import Count, NotNegative, Positive, convert
from stribeck.io.tables import UNITS as UNITS  # re-exported for scaling the signals

Index = Annotated[int, Meta(ge=0)]
Rows = tuple[Index, Count]


@dataclass(frozen=True)
class SignalSource:
    """Where a recording holds a signal.

    :param file: name of its file, if the signals of a run are in several files.
    :param column: column of a text file.
    :param columns: first column of a text file, and one beyond the last.
    :param variable: name of the variable in a MAT file.
    :param scale: factor: one number, one for each joint, or the name of a variable of the MAT file.
    :param unit: unit of the signal after scaling; ``rad`` stands for every SI unit.
    """

    file: str | None = None
    column: Index | None = None
    columns: Rows | None = None
    variable: str | None = None
    scale: float | tuple[float, ...] | str = 1.0
    unit: Literal["rad", "m", "deg", "mm"] = "rad"

    def __post_init__(self) -> None:
        if self.column is not None:
            object.__setattr__(self, "columns", (self.column, self.column + 1))


@dataclass(frozen=True)
class RecordingFormat:
    """How recordings of a machine are read.

    :param format: ``csv`` (text, with or without a header), ``mat`` or ``bag``.
    :param time: [s]; only without ``rate``.
    :param position: joint or motor positions.
    :param velocity: joint or motor velocities, if they were measured.
    :param effort: torques or forces of joints or motors.
    :param rate: sampling rate of files without time [Hz].
    :param gears: matrix G, motor positions = G · joint positions; joint torques are :math:`G^T` · motor torques.
    :param offset: added to joint positions after the gears [rad].
    """

    format: Literal["csv", "mat", "bag"]
    time: SignalSource | None = None
    position: SignalSource | None = None
    velocity: SignalSource | None = None
    effort: SignalSource | None = None
    rate: Positive | None = None
    gears: tuple[tuple[float, ...], ...] | None = None
    offset: tuple[float, ...] | None = None

    @property
    def signals(self) -> dict[str, SignalSource]:
        """The sources that are given, by signal."""
        names = ("time", "position", "velocity", "effort")
        return {name: source for name in names if (source := getattr(self, name)) is not None}

    def __post_init__(self) -> None:
        if self.gears is not None and {len(row) for row in self.gears} != {len(self.gears)}:
            raise ValueError("gears: expected a square matrix as a list of rows")
        if self.format == "bag":
            return
        missing = [name for name in ("position", "effort") if name not in self.signals]
        if missing:
            raise ValueError(f"{', '.join(missing)} missing")
        if (self.time is None) == (self.rate is None):
            raise ValueError("give either time or rate")
        for name, source in self.signals.items():
            if self.format == "csv" and source.columns is None:
                raise ValueError(f"{name}: give column, or columns: [first, one beyond the last]")
            if self.format == "mat" and source.variable is None:
                raise ValueError(f"{name}: give the name of its variable")


@dataclass(frozen=True)
class FilterSettings:
    """A zero-phase Butterworth filter.

    :param order: order of one pass.
    :param cutoff: cut-off frequency [Hz].
    :param padding: samples by which the signal is extended at each end.
    """

    order: Count
    cutoff: Positive
    padding: Count | None = None


@dataclass(frozen=True)
class Protocol:
    """Processing of the signals before the fit and its evaluation.

    :param moving: rows above this speed of a joint count as moving [rad/s or m/s].
    :param rows: first row and one beyond the last, by the name of the run.
    :param resample: rate to which samples with jitter are interpolated [Hz].
    :param velocity: whether measured velocities are used, where there are any, or positions are differentiated.
    :param position_filter: filter of positions, or of measured velocities.
    :param effort_filter: filter of efforts.
    :param every: only every n-th row is used.
    :param drop: samples that are left out at each end.
    :param edge_order: order of the finite differences at both ends.
    :param rest: speed below which a joint has no direction of motion [rad/s or m/s].
    :param fit: whether all rows are fitted, or moving ones only.
    """

    moving: Positive
    rows: dict[str, Rows] = field(default_factory=dict)
    resample: Positive | None = None
    velocity: Literal["measured", "differentiated"] = "measured"
    position_filter: FilterSettings | None = None
    effort_filter: FilterSettings | None = None
    every: Count = 1
    drop: Index = 0
    edge_order: Literal[1, 2] = 2
    rest: NotNegative = 1e-4
    fit: Literal["moving", "every_row"] = "every_row"


@dataclass(frozen=True)
class Neighbourhood:
    """How far a physically consistent solution may be from the URDF.

    :param mass: of each link, as a fraction of its mass.
    :param com: centre of mass [m].
    :param inertia: UDU factors of the inertia about the centre of mass, relative to their size.
    """

    mass: Positive = 0.9
    com: Positive = 0.2
    inertia: Positive = 5.0


@dataclass(frozen=True)
class IdentificationConfig:
    """The section ``identification`` of a machine.

    :param recording: how recordings are read.
    :param protocol: processing of the signals before the fit.
    :param couplings: parts that turn with several motors: weights of the joints' velocities, by name.
    :param neighbourhood: how far a physically consistent solution may be from the URDF.
    """

    recording: RecordingFormat
    protocol: Protocol
    couplings: dict[str, dict[str, float]] = field(default_factory=dict)
    neighbourhood: Neighbourhood = Neighbourhood()


def identification_config(robot: RobotConfig) -> IdentificationConfig:
    """The section ``identification``.

    :raises ConfigError: for missing or invalid keys.
    """
    where = f"{robot.path}: identification"
    config = convert(dict(robot.section("identification")), IdentificationConfig, where)
    for name, weights in config.couplings.items():
        if len(weights) < 2 or not set(weights) <= set(robot.joints):
            raise ConfigError(
                f"{where}: couplings: {name}: expected weights of two joints or more out of "
                f"{', '.join(robot.joints)}, found {', '.join(weights)}"
            )
    return config
