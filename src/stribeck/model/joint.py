"""What drives a joint: its actuator and friction, as identified, and a servo with its settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stribeck.errors import ConfigError
from stribeck.model.actuator import Actuator
from stribeck.model.arrays import Array
from stribeck.model.control_laws import Gains
from stribeck.model.estimate import Estimate, Interval
from stribeck.model.law import FrictionLaw
from stribeck.model.provenance import ModelErrors, Provenance, Spread
from stribeck.model.verdict import Verdict

STIFFNESS, DERIVATIVE = "stiffness", "derivative"
"""Estimates of the gains of a joint's position control [N m/rad, N m s/rad; N/m, N s/m], where it is known by torque alone."""

ROBOT_METHOD = "identify-robot"
"""Method of the search in files of whole robots."""

VALUE_ALONE = "the file states only a value"
"""Reason of estimates that no file states."""


@dataclass(frozen=True)
class CorrelationMatrix:
    """Correlation of n estimated parameters.

    :param names: of the rows and columns.
    :param matrix: (n, n).
    """

    names: tuple[str, ...]
    matrix: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        count = len(self.names)
        square = len(self.matrix) == count and all(len(row) == count for row in self.matrix)
        if not square or any(abs(number) > 1.0 for row in self.matrix for number in row):
            raise ValueError(
                f"correlation: expected {count} rows of {count} numbers between -1 and 1, found {len(self.matrix)} rows"
            )

    def between(self, names: Sequence[str]) -> Array:
        """Correlation of other parameters (m, m), in their order; those that are not among :attr:`names` have none with others."""
        matrix, rows = np.eye(len(names)), [k for k, name in enumerate(names) if name in self.names]
        own = [self.names.index(names[k]) for k in rows]
        stated = np.array(self.matrix).reshape(len(self.names), len(self.names))
        matrix[np.ix_(rows, rows)] = stated[np.ix_(own, own)]
        return matrix


@dataclass(frozen=True)
class Member:
    """Another fit to the same runs that predicts about as well (:mod:`stribeck.identify.servo.averaging`).

    :param weight: in averages of predictions; the fit of the file has the rest of 1.
    :param model: name of its law.
    :param effects: effects beyond the paper that are on.
    :param values: of all its parameters.
    """

    weight: float
    model: str
    effects: tuple[str, ...]
    values: Mapping[str, float]

    def __post_init__(self) -> None:
        if not 0.0 < self.weight < 1.0:
            raise ValueError(f"weight: must be between 0 and 1, found {self.weight:g}")


@dataclass(frozen=True)
class Prediction:
    """Predictive distribution of motions (:mod:`stribeck.identify.servo.prediction`).

    :param names: uncertain parameters.
    :param covariance: of these, in their units (n, n).
    :param deviation: standard deviation of the model's error [rad].
    :param correlation_time: of that error [s].
    :param factors: on the standard deviation: under recorded conditions, and under a new one of each kind.
    :param conditions: recorded conditions of each kind.
    :param members: other fits that predict about as well; the distribution is the mixture of all.
    """

    names: tuple[str, ...]
    covariance: tuple[tuple[float, ...], ...]
    deviation: float
    correlation_time: float
    factors: Mapping[str, float]
    conditions: Mapping[str, tuple[str, ...]]
    members: tuple[Member, ...] = ()

    def __post_init__(self) -> None:
        total = sum(one.weight for one in self.members)
        if not total < 1.0:
            raise ValueError(f"members: the sum of their weights must be below 1, found {total:g}")


@dataclass(frozen=True)
class Drive:
    """Actuator and friction of one joint.

    :param actuator: with the effects that are on.
    :param law: friction law, with its terms.
    :param values: of the parameters of actuator, bench and law.
    :param stated: estimates that a fit states, also of parameters of the joint beyond actuator and law (``delay``, ``bias``).
    :param bounds: search bounds of each free parameter.
    :param correlation: of the estimates.
    :param prediction: predictive distribution of motions.
    :param temperatures: of the servo during the recordings [°C].
    :param statements: conclusions that the recordings do not allow, as text.
    :param verdict: whether the result may be used.
    :param loss: errors on the recordings.
    :param provenance: origin of the parameters.
    """

    actuator: Actuator
    law: FrictionLaw
    values: Mapping[str, float]
    stated: Mapping[str, Estimate] = field(default_factory=dict)
    bounds: Mapping[str, Interval] = field(default_factory=dict)
    correlation: CorrelationMatrix | None = None
    prediction: Prediction | None = None
    temperatures: Spread | None = None
    statements: tuple[str, ...] = ()
    verdict: Verdict | None = None
    loss: ModelErrors = field(default_factory=ModelErrors)
    provenance: Provenance | None = None

    def __post_init__(self) -> None:
        for name, (lower, upper) in (*self.bounds.items(), *self.intervals.items()):
            if lower > upper:
                raise ValueError(f"{name}: {lower:g} is above {upper:g}")

    @property
    def estimates(self) -> dict[str, Estimate]:
        """All parameters as estimates; those that no fit states are not determined."""
        values = {
            name: Estimate(value, "", "not determined", reason=VALUE_ALONE)
            for name, value in self.values.items()
        }
        return {**values, **self.stated}

    @property
    def intervals(self) -> dict[str, Interval]:
        """Interval of each parameter that has one."""
        return {name: one.interval for name, one in self.stated.items() if one.interval is not None}

    @property
    def of_robot(self) -> bool:
        """Whether it was identified with a whole robot.

        Trajectories of a bench are then no motion of it: its inertia, its loads and its angles are those of a leg or an arm, and friction
        that depends on the position would be extrapolated.
        """
        return self.provenance is not None and self.provenance.search.method == ROBOT_METHOD

    @property
    def gains(self) -> Gains | None:
        """Gains of the position control in the recordings, where the file states them, in the units of the actuator."""
        if STIFFNESS not in self.stated:
            return None
        ratio = self.values.get("ratio", 1.0)
        damping = self.stated[DERIVATIVE].value if DERIVATIVE in self.stated else 0.0
        return Gains(self.stated[STIFFNESS].value / (self.actuator.control.gain * ratio), 0.0, damping)

    @property
    def temperature(self) -> float | None:
        """Temperature of the servo at which the parameters are valid [°C], if it is known."""
        if "reference_temperature" in self.values:
            return self.values["reference_temperature"]
        return self.temperatures.middle if self.temperatures is not None else None


@dataclass(frozen=True)
class Servo:
    r"""A servo with its settings.

    :param parameters: identified parameters; ``q_offset``, a property of the test bench, is ignored.
    :param kp: proportional gain, in firmware units.
    :param ki: integral gain.
    :param kd: derivative gain.
    :param supply_voltage: no-load supply voltage :math:`V_0` [V]; default: the servo's nominal voltage.
    :param supply_resistance: resistance :math:`R_s` of supply and cables [ohm], 0 for a stiff supply; the voltage sags
        with this servo's current in the previous step (:func:`stribeck.model.electrics.sagging_supply`).
    :param period: the firmware's control period [s], during which its output is constant; ``None``: it is updated in
        every step, as in the simulation used for a fit.
    :raises ConfigError: for values that are not finite or out of range, or a sag that cannot be computed.
    """

    parameters: Drive
    kp: float
    ki: float = 0.0
    kd: float = 0.0
    supply_voltage: float | None = None
    supply_resistance: float = 0.0
    period: float | None = None

    def __post_init__(self) -> None:
        actuator = self.parameters.actuator
        for name in ("kp", "ki", "kd", "supply_resistance"):
            value = getattr(self, name)
            if not 0.0 <= value < math.inf:
                raise ConfigError(
                    f"{actuator.name}: {name} must be zero or positive and finite, found {value}"
                )
        for name, value in (("supply_voltage", self.voltage), ("period", self.period)):
            if value is not None and not 0.0 < value < math.inf:
                raise ConfigError(f"{actuator.name}: {name} must be positive and finite, found {value}")
        self._check_terms()

    def _check_terms(self) -> None:
        actuator, control = self.parameters.actuator, self.parameters.actuator.control
        for name in actuator.lacks_gains(self.gains):
            raise ConfigError(
                f"{actuator.name}: its control law has no {name}, found {getattr(self, name):g}: set it to 0"
            )
        driven = "R" in self.parameters.values and control.bridge != "coast"
        if self.supply_resistance and not driven:
            raise ConfigError(
                f"{actuator.name}: the voltage drop of the supply needs a drive/brake bridge and the parameter R: set supply_resistance to 0"
            )

    @property
    def gains(self) -> Gains:
        """The firmware's gains."""
        return Gains(float(self.kp), float(self.ki), float(self.kd))

    @property
    def voltage(self) -> float:
        """No-load supply voltage [V]."""
        nominal = self.parameters.actuator.supply.nominal
        return float(nominal if self.supply_voltage is None else self.supply_voltage)
