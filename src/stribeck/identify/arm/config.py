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
from typing import Literal

from msgspec.structs import replace

from stribeck.errors import ConfigError
from stribeck.files.robots import RobotConfig
from stribeck.files.schema import Count, NotNegative, Positive, convert
from stribeck.recordings.bags.messages import JOINT_STATES
from stribeck.recordings.signals.sources import Index, SignalSource, SignalTable

Rows = tuple[Index, Count]


@dataclass(frozen=True)
class RecordingFormat:
    """How recordings of a machine are read.

    A source of a bag that names no topic is the field of that name in ``/joint_states``.

    :param format: ``csv`` (text, with or without a header), ``mat``, ``npz`` or ``bag``.
    :param time: of files [s]; only without ``rate``.
    :param position: joint or motor positions.
    :param velocity: joint or motor velocities, if they were measured.
    :param effort: torques or forces of joints or motors; currents with their drive gains as ``scale``.
    :param motor_position: positions of the motors, where ``position`` is that of encoders on the links; ``scale`` is one over the
        gear ratio, unless ``gears`` are given. Stiffnesses of the joints follow from both.
    :param rate: sampling rate of files without time [Hz].
    :param gears: matrix G, motor positions = G · joint positions; joint torques are :math:`G^T` · motor torques. With
        ``motor_position``, positions and velocities are those of the joints already.
    :param offset: added to joint positions after the gears [rad].
    """

    format: Literal["csv", "mat", "npz", "bag"]
    time: SignalSource | None = None
    position: SignalSource | None = None
    velocity: SignalSource | None = None
    effort: SignalSource | None = None
    motor_position: SignalSource | None = None
    rate: Positive | None = None
    gears: tuple[tuple[float, ...], ...] | None = None
    offset: tuple[float, ...] | None = None

    @property
    def signals(self) -> dict[str, SignalSource]:
        """The sources that are given, by signal."""
        names = ("time", "position", "velocity", "effort", "motor_position")
        return {name: source for name in names if (source := getattr(self, name)) is not None}

    def __post_init__(self) -> None:
        if self.gears is not None and {len(row) for row in self.gears} != {len(self.gears)}:
            raise ValueError(
                f"gears: expected a square matrix, as a list of rows; found {len(self.gears)} rows of {sorted({len(row) for row in self.gears})} numbers"
            )
        for name, source in self.signals.items():
            source.checked(name)
            self._check_place(name, source)
        if self.format == "bag":
            return
        missing = [name for name in ("position", "effort") if name not in self.signals]
        if missing:
            raise ValueError(f"{', '.join(missing)} missing")
        if (self.time is None) == (self.rate is None):
            raise ValueError("either time or rate is needed, and not both")

    def _check_place(self, name: str, source: SignalSource) -> None:
        if self.format == "bag":
            places = ("bag",) if name == "motor_position" else ("bag", "none")
            if source.place not in places or name == "time":
                raise ValueError(
                    f"{name}: in bags a signal needs topic, names and values, or an interface; its times are those of the messages"
                )
        elif self.format == "csv" and source.column is None and not source.columns:
            raise ValueError(f"{name}: give column, or columns: [first, last + 1]")
        elif self.format in ("mat", "npz") and source.variable is None:
            raise ValueError(f"{name}: give the name of its array as variable")

    def table(self) -> SignalTable:
        """Sources of the signals of a bag: those of ``/joint_states`` where none is named."""
        found = {}
        for name in ("position", "velocity", "effort"):
            source = self.signals.get(name, SignalSource())
            if source.place == "none":
                source = replace(source, topic=JOINT_STATES.name, names="name", values=name)
            found[name] = (source,)
        if self.motor_position is not None:
            found["motor_position"] = (self.motor_position,)
        return found


@dataclass(frozen=True)
class FilterSettings:
    """A Butterworth low-pass filter, applied forwards and backwards.

    :param order: order of each pass.
    :param cutoff: frequency at which the gain is one half [Hz].
    :param padding: samples by which each end is extended, so that transients decay outside the signal.
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
    :param sticking: whether joints stick and slip: directions of motion are then those of filtered states in predictions, too, and
        rows at rest contain no information on friction.
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
    sticking: bool = False


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
    :param couplings: parts that several motors turn, by name: the weight of each joint's velocity in that of the part.
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
                f"{where}: couplings: {name}: expected weights of at least two joints out of {', '.join(robot.joints)}, found {', '.join(weights)}"
            )
    return config
