r"""Servo models: firmware control law and motor equation of each servo family.

Source: Duclusaud et al., "Extended Friction Models for the Physics Simulation of Servo Actuators", §IV. The
current interval here is asymmetric in the back-EMF; the paper's :math:`-I_{emf}` has a sign error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from stribeck.errors import ConfigError, check_valid
from stribeck.model.control_laws import Control, ControlState, Gains, ServoCommand
from stribeck.model.law import FrictionLaw
from stribeck.model.parameters import Parameter, ParameterSet
from stribeck.model.temperature import TEMPERATURE_PARAMETERS
from stribeck.model.terms import FRICTION_PARAMETERS
from stribeck.model.terms.term import Values

JointUnits = Literal["rotary", "linear"]
"""Rotary joints have rad, N m and kg m², linear ones m, N and kg."""

ISOTHERMAL_EFFECTS = ("current-limit", "supply", "delay", "saturation")
"""Optional effects that do not depend on the servo's temperature."""

EFFECTS = (*ISOTHERMAL_EFFECTS, "temperature")
"""Optional effects beyond the paper, named as on the command line; all are off by default."""

EFFECT_PARAMETERS = {
    "current-limit": "current_limit",
    "delay": "command_delay",
    "saturation": "torque_saturation",
}
"""The parameter that each effect adds; it stays at its datasheet value unless freed."""

EFFECT_UNITS = {"current_limit": "A", "command_delay": "s", "torque_saturation": "1/A"}


MOTOR_UNITS = {
    "kt": {"rotary": "N m/A", "linear": "N/A"},
    "R": {"rotary": "ohm", "linear": "ohm"},
    "armature": {"rotary": "kg m^2", "linear": "kg"},
    "ratio": {"rotary": "1", "linear": "1"},
    "q_offset": {"rotary": "rad", "linear": "m"},
}


@dataclass(frozen=True)
class Supply:
    """Supply voltages of a servo.

    :param nominal: supply assumed for recordings that do not state one [V].
    :param rated_min, rated_max: rating [V].
    """

    nominal: float
    rated_min: float
    rated_max: float

    def __post_init__(self) -> None:
        if not (self.nominal > 0.0 and 0.0 <= self.rated_min <= self.rated_max):
            raise ValueError(
                f"expected nominal above 0 and 0 <= rated_min <= rated_max [V], found {self.nominal:g}, {self.rated_min:g} "
                f"and {self.rated_max:g}"
            )


@dataclass(frozen=True)
class PwmRegister:
    """Integer register in which a servo reports its duty.

    :param full_scale: the integer at full duty.
    :param bits: width of the register, in which negative numbers wrap around.
    """

    full_scale: int
    bits: int


@dataclass(frozen=True)
class Datasheet:
    """What the manufacturer of a servo says.

    :param figures: by name, for reports and priors.
    :param bounds: bounds that replace the search bounds of motor parameters while the current limit is on; without them
        the fit would compensate for a fixed current limit with implausible motor constants.
    :param prior: ``(mean, standard deviation)`` of motor parameters, used while the current limit is on.
    """

    figures: Mapping[str, float] = field(default_factory=dict)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    prior: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Actuator:
    """One servo family, as its YAML file in ``config/actuators`` describes it.

    :param name: key in parameter files and on the command line.
    :param units: ``rotary`` (N m, rad) or ``linear`` (N, m).
    :param resolution: smallest step of the measured position [rad].
    :param bounds: search bounds of motor and bench parameters, and of friction parameters whose bounds differ
        from the defaults.
    :param effects: datasheet value and search bounds ``(value, lower, upper)`` of the parameter that each
        effect adds; effects without an entry are not available for this servo.
    :param datasheet: what the manufacturer says.
    :param published: published identified parameters, by law.
    :param pwm_register: how the servo reports its duty, if recordings hold the raw integer.
    """

    name: str
    title: str
    units: JointUnits
    control: Control
    supply: Supply
    resolution: float
    bounds: Mapping[str, tuple[float, float]]
    effects: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    datasheet: Datasheet = field(default_factory=Datasheet)
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    pwm_register: PwmRegister | None = None
    active_effects: frozenset[str] = frozenset()

    @property
    def uses_measured_supply(self) -> bool:
        """Whether the measured supply voltage drives the motor instead of the run's nominal one."""
        return "supply" in self.active_effects

    @property
    def datasheet_torque(self) -> float | None:
        """Stall torque, otherwise peak torque, from the datasheet [N m], ``None`` if not given."""
        return self.datasheet.figures.get("stall_torque", self.datasheet.figures.get("peak_torque"))

    def lacks_gains(self, gains: Gains) -> tuple[str, ...]:
        """The firmware gains that are not zero in every run, but mean nothing in this control law."""
        terms = {"ki": "integral_gain", "kd": "derivative_gain"}
        return tuple(
            name
            for name, term in terms.items()
            if np.any(getattr(gains, name)) and getattr(self.control, term) is None
        )

    @property
    def datasheet_torque_constant(self) -> float | None:
        r"""Torque constant :math:`k_t = \tau_{stall} / I_{stall}` from the datasheet [N m/A], ``None`` if not given.

        It includes the losses of the gearbox at stall, so torques computed with it from a measured current are accurate
        to about 20 %; a fit estimates its own k_t.
        """
        figures = self.datasheet.figures
        torque, current = figures.get("stall_torque"), figures.get("stall_current")
        return torque / current if torque and current else None

    def with_effects(self, effects: Iterable[str]) -> Actuator:
        """The actuator with effects beyond the paper switched on.

        :raises ConfigError: for an effect that does not exist or that this servo's file does not describe.
        """
        chosen = frozenset(effects)
        for effect in sorted(chosen):
            check_valid(effect, EFFECTS, "unknown effect")
            if effect in EFFECT_PARAMETERS and effect not in self.effects:
                raise ConfigError(
                    f"the effect {effect!r} has no datasheet value for {self.name}, only {', '.join(self.known_effects)} have one: add it under effects: in "
                    "the YAML file of the servo"
                )
            if effect == "saturation" and self.control.kind != "voltage":
                raise ConfigError(
                    f"effect 'saturation' is not possible for {self.name}, because its firmware controls current or torque: remove it"
                )
            if effect == "supply" and self.control.kind == "torque":
                raise ConfigError(
                    f"effect 'supply' is not possible for {self.name}, because its torque does not depend on the voltage: remove it"
                )
        return replace(self, active_effects=chosen)

    def with_used_terms(self, gains: Gains) -> Actuator:
        """The actuator without the firmware terms whose gain is zero in every run."""
        return replace(self, control=self.control.with_used_terms(gains))

    @property
    def rise_of_constant(self) -> float:
        r"""Ratio :math:`1 + c I_{stall}` of k_t without current to that at the datasheet's stall, 1 without saturation."""
        if "saturation" not in self.active_effects:
            return 1.0
        return 1.0 + self.effects["saturation"][0] * self.datasheet.figures.get("stall_current", 0.0)

    @property
    def known_effects(self) -> tuple[str, ...]:
        """The effects that can be switched on for this servo."""
        unknown = EFFECT_PARAMETERS.keys() - self.effects.keys()
        unknown |= {"supply"} if self.control.kind == "torque" else set()
        return tuple(e for e in EFFECTS if e not in unknown)

    def parameters(self, law: FrictionLaw) -> ParameterSet:
        """Motor, bench, friction and effect parameters with units and search bounds.

        Motor, bench and friction parameters are free; motor parameters without bounds are left out. Effect
        parameters are fixed at their datasheet values. With asymmetric Coulomb friction, the offset torque is fixed
        at zero.
        """
        narrowed = self.datasheet.bounds if "current-limit" in self.active_effects else {}
        parameters = []
        for name in (*self.control.motor_parameters, "q_offset"):
            if name not in self.bounds:
                continue
            lower, upper = narrowed.get(name, self.bounds[name])
            if name == "kt" and name in narrowed:
                lower, upper = lower * self.rise_of_constant, upper * self.rise_of_constant
            unit = MOTOR_UNITS[name][self.units]
            parameters.append(Parameter(name, unit, 0.5 * (lower + upper), lower, upper))
        offsets = {name for term in law.of_kind("offset") for name in term.names} if law.opposites else set()
        for name in law.parameter_names:
            friction = FRICTION_PARAMETERS[name]
            base = friction.opposite or name
            lower, upper = self.bounds.get(name, self.bounds.get(base, (friction.lower, friction.upper)))
            free = friction.free and name not in offsets
            value = 0.5 * (lower + upper) if friction.free and not friction.signed else friction.value
            parameters.append(Parameter(name, friction.unit(self.units), value, lower, upper, free=free))
        for effect in sorted(self.active_effects & EFFECT_PARAMETERS.keys()):
            name = EFFECT_PARAMETERS[effect]
            value, lower, upper = self.effects[effect]
            parameters.append(Parameter(name, EFFECT_UNITS[name], value, lower, upper, free=False))
        for name in self.temperature_parameters:
            unit, value, lower, upper = TEMPERATURE_PARAMETERS[name]
            parameters.append(
                Parameter(name, unit, value, lower, upper, free=name != "reference_temperature")
            )
        return ParameterSet(parameters)

    @property
    def temperature_parameters(self) -> tuple[str, ...]:
        """Parameters of the effect ``temperature``, if it is on; resistance counts where a voltage drives the motor."""
        if "temperature" not in self.active_effects:
            return ()
        voltage = self.control.kind == "voltage"
        return tuple(n for n in TEMPERATURE_PARAMETERS if voltage or n != "resistance_per_kelvin")


def motor_torque(
    actuator: Actuator,
    p: Values,
    gains: Gains,
    state: ControlState,
    command: ServoCommand,
    position: Any,
    velocity: Any,
    dt: float,
) -> tuple[Any, ControlState]:
    """Motor torque at the output shaft [N m] and the firmware's next state.

    :param p: values of the motor parameters (and ``current_limit`` while that effect is on).
    :param dt: time step [s].
    """
    state = actuator.control.next_state(gains, state, command.goal, position, dt)
    output = actuator.control.output(p, gains, state, command.goal, position, velocity)
    return actuator.control.torque(p, output, command, velocity), state
