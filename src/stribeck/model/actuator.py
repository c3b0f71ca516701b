r"""Servo models: firmware control law and motor equation of each servo family.

Source: Duclusaud et al., "Extended Friction Models for the Physics Simulation of Servo Actuators", §IV. The
current interval here is asymmetric in the back-EMF; the paper's :math:`-I_{emf}` has a sign error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from stribeck.errors import ConfigError, check_valid
from stribeck.model.control_laws import Control, CurrentControl, Gains, VoltageControl
from stribeck.model.freewheeling import freewheeling_voltage
from stribeck.model.law import FrictionLaw
from stribeck.model.namespace import array_namespace
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


class ServoCommand(NamedTuple):
    """Inputs of the firmware during one step.

    :param torque_enable: 1 with torque on, 0 with torque off.
    :param supply_voltage: supply voltage V [V].
    :param temperature: of the servo [°C]; ``None``: that of the reference.
    """

    goal: Any
    torque_enable: Any
    supply_voltage: Any
    temperature: Any = None


class ControlState(NamedTuple):
    """State of the firmware between steps.

    :param goal: goal position after the firmware's ramp [rad].
    :param integral: integral of the position error [rad s].
    """

    goal: Any
    integral: Any


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
            if np.any(getattr(gains, name)) and getattr(self.control, term, None) is None
        )

    @property
    def datasheet_torque_constant(self) -> float | None:
        r"""Torque constant :math:`k_t = \tau_{stall} / I_{stall}` from the datasheet [N m/A], ``None`` if not given.

        It includes the losses of the gearbox at stall, so torques computed with it from a measured current are accurate
        to about 20 %; a fit estimates its own k_t.
        """
        torque, current = (
            self.datasheet.figures.get("stall_torque"),
            self.datasheet.figures.get("stall_current"),
        )
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
        if not isinstance(self.control, VoltageControl):
            return self
        return replace(self, control=self.control.with_used_terms(gains))

    @property
    def rise_of_constant(self) -> float:
        r"""Ratio :math:`1 + c I_{stall}` of k_t without current to that at the datasheet's stall, 1 without saturation."""
        saturates = "saturation" in self.active_effects
        return (
            1.0 + self.effects["saturation"][0] * self.datasheet.figures.get("stall_current", 0.0)
            if saturates
            else 1.0
        )

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


def initial_control_state(actuator: Actuator, goal: Any) -> ControlState:
    """The firmware's state at the start of a run: the goal ramp at the first goal, the integral at zero.

    :param goal: first goal of the run [rad], an array for several runs.

    State variables that a firmware does not have are 0.0.
    """
    control = actuator.control
    ramps = isinstance(control, VoltageControl) and control.goal_speed is not None
    integrates = isinstance(control, VoltageControl) and control.integral_gain is not None
    return ControlState(goal if ramps else 0.0, 0.0 * goal if integrates else 0.0)


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
    state = next_control_state(actuator, gains, state, command.goal, position, dt)
    output = firmware_output(actuator, p, gains, state, command.goal, position, velocity)
    return output_torque(actuator, p, output, command, velocity), state


def next_control_state(
    actuator: Actuator, gains: Gains, state: ControlState, goal: Any, position: Any, dt: float
) -> ControlState:
    """The firmware's state a time ``dt`` [s] later: its goal ramp and the integral of the position error.

    The integral is clipped where it alone would saturate the duty.
    """
    control = actuator.control
    if not isinstance(control, VoltageControl):
        return state
    return next_voltage_control_state(control, gains, state, goal, position, dt)


def next_voltage_control_state(
    control: VoltageControl, gains: Gains, state: ControlState, goal: Any, position: Any, dt: float
) -> ControlState:
    """:func:`next_control_state` of a firmware that sets a duty."""
    xp = array_namespace(position, goal)
    ramped, integral = state
    if control.goal_speed is not None:
        reach = control.goal_speed * dt
        goal = ramped = xp.clip(goal, ramped - reach, ramped + reach)
    if control.integral_gain is not None:
        limit = control.duty_max / xp.maximum(control.integral_gain * gains.ki, 1e-12)
        integral = xp.clip(integral + (goal - position) * dt, -limit, limit)
    return ControlState(ramped, integral)


def firmware_output(
    actuator: Actuator,
    p: Values,
    gains: Gains,
    state: ControlState,
    goal: Any,
    position: Any,
    velocity: Any,
    reach: Any = None,
) -> Any:
    """Output of the firmware in a given state (a duty in [-1, 1], a current [A] or a torque [N m]).

    :param reach: mean over position errors up to so much smaller and larger [rad] instead of the value at ``position``.
    """
    control = actuator.control
    if isinstance(control, VoltageControl):
        return duty_of(control, gains, state, goal, position, velocity, reach)
    xp = array_namespace(position, velocity, goal, *p.values())
    error = goal - position
    if isinstance(control, CurrentControl):
        return control.gain * gains.kp * error - control.damping * xp.sqrt(gains.kp) * velocity
    damping = control.damping + (control.derivative_gain or 0.0) * gains.kd
    stiffness = p["ratio"] * control.gain * gains.kp
    return _clipped(
        stiffness * error - damping * velocity,
        control.torque_max,
        None if reach is None else stiffness * reach,
    )


def duty_of(
    control: VoltageControl,
    gains: Gains,
    state: ControlState,
    goal: Any,
    position: Any,
    velocity: Any,
    reach: Any = None,
) -> Any:
    """Duty of the bridge in a given state of the firmware (see :class:`VoltageControl` and :func:`firmware_output`)."""
    goal = goal if control.goal_speed is None else state.goal
    duty = control.gain * gains.kp * (goal - position)
    if control.integral_gain is not None:
        duty = duty + control.integral_gain * gains.ki * state.integral
    if control.derivative_gain is not None:
        duty = duty - control.derivative_gain * gains.kd * velocity
    return _clipped(duty, control.duty_max, None if reach is None else control.gain * gains.kp * reach)


def _clipped(value: Any, limit: float, spread: Any = None) -> Any:
    r"""A value :math:`x` clipped to :math:`\pm L`, or its mean while x moves evenly from :math:`x - s` to :math:`x + s`.

    The mean is :math:`clip(x) + b(x + L) - b(x - L)` with :math:`b(u) = \max(s - |u|, 0)^2 / 4s`. A stiff controller
    crosses its limits within a step, and the value in the middle would be off by up to :math:`s/4`.

    :param spread: s, not negative.
    """
    xp = array_namespace(value)
    clipped = xp.clip(value, -limit, limit)
    if spread is None:
        return clipped
    low, high = (xp.maximum(spread - xp.abs(value + side), 0.0) for side in (limit, -limit))
    return clipped + (low - high) * (low + high) / (4.0 * xp.maximum(spread, 1e-9))


def output_torque(actuator: Actuator, p: Values, output: Any, command: ServoCommand, velocity: Any) -> Any:
    """Motor torque at the output shaft [N m] for a firmware output (:func:`firmware_output`)."""
    control = actuator.control
    if isinstance(control, VoltageControl):
        return voltage_torque(control, p, output, command, velocity)
    if isinstance(control, CurrentControl):
        return current_torque(control, p, output, command, velocity)
    return command.torque_enable * output


def voltage_torque(
    control: VoltageControl, p: Values, duty: Any, command: ServoCommand, velocity: Any
) -> Any:
    r"""Torque of a motor driven by a bridge [N m] (see :class:`VoltageControl`; paper, eq. 13).

    If the values include ``current_limit``, the firmware bounds the phase current,
    :math:`|U - k_t\dot\theta| \le R I_{max}`, as far as the supply allows. If they include ``torque_saturation`` c
    [1/A], the iron saturates: :math:`\tau_m = k_t I / (1 + c|I|)`, with the back-EMF of the unsaturated constant.
    """
    xp = array_namespace(duty, velocity, *p.values())
    supply = command.supply_voltage
    back_emf = p["kt"] * velocity
    voltage = duty * supply
    if "current_limit" in p:
        reach = p["R"] * p["current_limit"]
        voltage = xp.clip(xp.clip(voltage, back_emf - reach, back_emf + reach), -supply, supply)
    driven = 1.0 if control.bridge == "brake" else xp.abs(voltage) / supply
    net = voltage - driven * back_emf - freewheeling_voltage(control, p, voltage, supply, back_emf)
    torque = command.torque_enable * (p["kt"] / p["R"]) * net
    if "torque_saturation" in p:
        torque = torque / (1.0 + p["torque_saturation"] / p["kt"] * xp.abs(torque))
    return torque


def current_torque(
    control: CurrentControl, p: Values, wanted: Any, command: ServoCommand, velocity: Any
) -> Any:
    """Torque of a motor driven by a current loop [N m] (see :class:`CurrentControl`; paper, eqs. 14-15)."""
    xp = array_namespace(wanted, velocity, *p.values())
    current = command.torque_enable * wanted
    if "R" in p:
        supply, back_emf = command.supply_voltage, p["kt"] * velocity
        current = xp.clip(current, (-supply - back_emf) / p["R"], (supply - back_emf) / p["R"])
    return p["kt"] * xp.clip(current, -control.current_max, control.current_max)
