"""A servo of a simulated robot: identified parameters, firmware gains and period, supply."""

from __future__ import annotations

import math
from dataclasses import dataclass

from stribeck.errors import ConfigError
from stribeck.files.parameter_file import ParameterFile
from stribeck.model.control_laws import CurrentControl, Gains, VoltageControl


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

    parameters: ParameterFile
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
                f"{actuator.name}: its control law has no {name}, found {getattr(self, name):g}; use 0"
            )
        bridged = isinstance(control, VoltageControl) and control.bridge == "brake"
        driven = bridged or (isinstance(control, CurrentControl) and "R" in self.parameters.values)
        if self.supply_resistance and not driven:
            raise ConfigError(
                f"{actuator.name}: the sag of its supply cannot be computed, that needs a drive/brake bridge and R; "
                "use supply_resistance 0"
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
