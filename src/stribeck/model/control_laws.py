"""Position control laws of servo firmware, by what the firmware sets: voltage, current or torque.

Each law states ``kind``; ``scaled_by``, the parameter in proportion to which (or, for R, in inverse proportion) its torque changes;
``clips_output``, whether :meth:`~VoltageControl.output` is limited rather than the torque; and the names of its parameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from stribeck.model.namespace import array_namespace
from stribeck.model.terms.term import Values


class Gains(NamedTuple):
    """Firmware gains of a run, in firmware units: floats for one run, arrays for many."""

    kp: Any
    ki: Any
    kd: Any


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


class _Memoryless:
    """A firmware without state, whose law is used whole."""

    goal_speed: ClassVar[None] = None
    integral_gain: ClassVar[None] = None
    bridge: ClassVar[None] = None

    def first_state(self, goal: Any) -> ControlState:
        """See :meth:`VoltageControl.first_state`."""
        return ControlState(0.0, 0.0)

    def next_state(
        self, gains: Gains, state: ControlState, goal: Any, position: Any, dt: float
    ) -> ControlState:
        """See :meth:`VoltageControl.next_state`."""
        return state

    def with_used_terms(self, gains: Gains) -> Self:
        """The law as it is."""
        return self


@dataclass(frozen=True)
class VoltageControl:
    r"""Position control by duty cycle, for a servo that drives the motor with the switched supply voltage.

    :math:`d = clip(g K_p e + g_i K_i \int e - g_d K_d \dot\theta, \pm d_{max})`, :math:`U = d V`, and with a
    drive/brake bridge :math:`\tau_m = k_t (U - k_t\dot\theta) / R`. With a drive/coast bridge the current stops
    whenever the bridge opens, so the back-EMF brakes only during the driven part of the PWM period:
    :math:`\tau_m = k_t |d| (sign(d) V - k_t\dot\theta) / R` (electrical time constant far below the PWM period;
    Sihite et al., CASE 2019). Torque off is an open circuit: :math:`\tau_m = 0`.

    With an ``inductance`` the current of a drive/coast bridge flows on through its diodes, see :func:`freewheeling_voltage`.

    :param gain: duty per K_p and rad of position error.
    :param duty_max: largest duty that the firmware applies.
    :param integral_gain: duty per K_i and rad s, where the firmware has it.
    :param derivative_gain: duty per K_d and rad/s, where the firmware has it.
    :param goal_speed: speed of the firmware's goal ramp [rad/s], ``None`` without a ramp.
    :param bridge: ``"brake"`` or ``"coast"``.
    :param inductance: of the winding [H], for a drive/coast bridge; ``None``: its time constant is far below the period.
    :param pwm_period: period of the PWM [s], with ``inductance``.
    :raises ValueError: for an inductance without period, of another bridge, or not positive.
    """

    gain: float
    duty_max: float
    integral_gain: float | None = None
    derivative_gain: float | None = None
    goal_speed: float | None = None
    bridge: Literal["brake", "coast"] = "brake"
    inductance: float | None = None
    pwm_period: float | None = None

    kind = "voltage"
    scaled_by = "R"
    clips_output = True
    motor_parameters = ("kt", "R", "armature")
    required_parameters = ("kt", "R", "armature")

    def __post_init__(self) -> None:
        if (self.inductance is None) != (self.pwm_period is None):
            raise ValueError("inductance and pwm_period are stated together: state both, or none")
        if self.inductance is None or self.pwm_period is None:
            return
        if self.bridge != "coast":
            raise ValueError(
                f"inductance has no influence on the mean current of a drive/{self.bridge} bridge: remove it, or set bridge to coast"
            )
        if not (0.0 < self.inductance < math.inf and 0.0 < self.pwm_period < math.inf):
            raise ValueError(
                f"inductance and pwm_period must be positive, found {self.inductance:g} H and {self.pwm_period:g} s"
            )

    def with_used_terms(self, gains: Gains) -> VoltageControl:
        """The law without the terms whose gain is zero in every run."""
        return replace(
            self,
            integral_gain=self.integral_gain if np.any(gains.ki) else None,
            derivative_gain=self.derivative_gain if np.any(gains.kd) else None,
        )

    @property
    def output_max(self) -> float:
        """Largest output of the firmware, a duty."""
        return self.duty_max

    def no_load_speed(self, p: Values, supply: float) -> float | None:
        """Speed at which the back-EMF takes all torque [rad/s]."""
        return float(self.duty_max * supply / p["kt"])

    def first_state(self, goal: Any) -> ControlState:
        """The state at the start of a run: the ramp at its first goal, the integral at zero, 0.0 for what the firmware does not have."""
        return ControlState(
            goal if self.goal_speed is not None else 0.0,
            0.0 * goal if self.integral_gain is not None else 0.0,
        )

    def next_state(
        self, gains: Gains, state: ControlState, goal: Any, position: Any, dt: float
    ) -> ControlState:
        """The state a time ``dt`` [s] later; the integral is clipped where it alone would saturate the duty."""
        xp = array_namespace(position, goal)
        ramped, integral = state
        if self.goal_speed is not None:
            reach = self.goal_speed * dt
            goal = ramped = xp.clip(goal, ramped - reach, ramped + reach)
        if self.integral_gain is not None:
            limit = self.duty_max / xp.maximum(self.integral_gain * gains.ki, 1e-12)
            integral = xp.clip(integral + (goal - position) * dt, -limit, limit)
        return ControlState(ramped, integral)

    def output(
        self,
        p: Values,
        gains: Gains,
        state: ControlState,
        goal: Any,
        position: Any,
        velocity: Any,
        reach: Any = None,
    ) -> Any:
        """Duty of the bridge in a given state of the firmware, in [-1, 1]; it depends on no parameter.

        :param reach: mean over position errors up to so much smaller and larger [rad] instead of the value at ``position``.
        """
        goal = goal if self.goal_speed is None else state.goal
        duty = self.gain * gains.kp * (goal - position)
        if self.integral_gain is not None:
            duty = duty + self.integral_gain * gains.ki * state.integral
        if self.derivative_gain is not None:
            duty = duty - self.derivative_gain * gains.kd * velocity
        return _clipped(duty, self.duty_max, None if reach is None else self.gain * gains.kp * reach)

    def torque(self, p: Values, duty: Any, command: ServoCommand, velocity: Any) -> Any:
        r"""Torque of the motor at the output shaft [N m] (paper, eq. 13).

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
        driven = 1.0 if self.bridge == "brake" else xp.abs(voltage) / supply
        net = voltage - driven * back_emf
        if self.inductance is not None and self.pwm_period is not None:
            net = net - freewheeling_voltage(
                self.inductance / (p["R"] * self.pwm_period), voltage, supply, back_emf
            )
        torque = command.torque_enable * (p["kt"] / p["R"]) * net
        if "torque_saturation" in p:
            torque = torque / (1.0 + p["torque_saturation"] / p["kt"] * xp.abs(torque))
        return torque


@dataclass(frozen=True)
class CurrentControl(_Memoryless):
    r"""Position control by motor current.

    :math:`I^* = g K_p e - d\sqrt{K_p}\,\dot\theta`;
    :math:`I = clip(I^*, [\max((-V - k_t\dot\theta)/R, -I_{max}), \min((V - k_t\dot\theta)/R, I_{max})])`
    where :math:`I_{max}` wins if the interval is empty; :math:`\tau_m = k_t I`. Torque off means
    :math:`I^* = 0`, not an open circuit. Without a known R there is no voltage bound.

    :param gain: current per K_p and rad of position error [A/rad].
    :param damping: d [A s/rad].
    :param current_max: largest current :math:`I_{max}` [A].
    """

    gain: float
    damping: float
    current_max: float

    derivative_gain: ClassVar[None] = None

    kind = "current"
    scaled_by = "kt"
    clips_output = False
    motor_parameters = ("kt", "R", "armature")
    required_parameters = ("kt", "armature")

    @property
    def output_max(self) -> float:
        """Largest output of the firmware [A]."""
        return self.current_max

    def no_load_speed(self, p: Values, supply: float) -> float | None:
        """Speed at which the back-EMF takes all torque [rad/s]; ``None`` without a known R."""
        return float(supply / p["kt"]) if "R" in p else None

    def output(
        self,
        p: Values,
        gains: Gains,
        state: ControlState,
        goal: Any,
        position: Any,
        velocity: Any,
        reach: Any = None,
    ) -> Any:
        """The current [A]; :meth:`torque` clips it."""
        xp = array_namespace(position, velocity, goal, *p.values())
        return self.gain * gains.kp * (goal - position) - self.damping * xp.sqrt(gains.kp) * velocity

    def torque(self, p: Values, wanted: Any, command: ServoCommand, velocity: Any) -> Any:
        """Torque of the motor at the output shaft [N m] (paper, eqs. 14-15)."""
        xp = array_namespace(wanted, velocity, *p.values())
        current = command.torque_enable * wanted
        if "R" in p:
            supply, back_emf = command.supply_voltage, p["kt"] * velocity
            current = xp.clip(current, (-supply - back_emf) / p["R"], (supply - back_emf) / p["R"])
        return p["kt"] * xp.clip(current, -self.current_max, self.current_max)


@dataclass(frozen=True)
class TorqueControl(_Memoryless):
    r"""Position control by torque, for an actuator that closes its own current loop.

    :math:`\tau_m = clip(\rho g K_p e - (d + g_d K_d)\,\dot\theta, \pm\tau_{max})`, :math:`\rho` the torque
    multiplier (key ``ratio``).

    :param gain: torque per K_p and rad of position error [N m/rad].
    :param damping: d [N m s/rad].
    :param torque_max: largest torque [N m].
    :param derivative_gain: torque per K_d and rad/s [N m s/rad], where the firmware has it.
    """

    gain: float
    damping: float
    torque_max: float
    derivative_gain: float | None = None

    kind = "torque"
    scaled_by = "ratio"
    clips_output = True
    motor_parameters = ("ratio", "armature")
    required_parameters = ("ratio", "armature")

    @property
    def output_max(self) -> float:
        """Largest output of the firmware [N m]."""
        return self.torque_max

    def no_load_speed(self, p: Values, supply: float) -> float | None:
        """Not known of an actuator with a current loop of its own."""
        return None

    def output(
        self,
        p: Values,
        gains: Gains,
        state: ControlState,
        goal: Any,
        position: Any,
        velocity: Any,
        reach: Any = None,
    ) -> Any:
        """The torque [N m], see :meth:`VoltageControl.output` for ``reach``."""
        damping = self.damping + (self.derivative_gain or 0.0) * gains.kd
        stiffness = p["ratio"] * self.gain * gains.kp
        return _clipped(
            stiffness * (goal - position) - damping * velocity,
            self.torque_max,
            None if reach is None else stiffness * reach,
        )

    def torque(self, p: Values, wanted: Any, command: ServoCommand, velocity: Any) -> Any:
        """The torque, with torque on."""
        return command.torque_enable * wanted


Control = VoltageControl | CurrentControl | TorqueControl


def freewheeling_voltage(tau: Any, voltage: Any, supply: Any, back_emf: Any) -> Any:
    r"""Mean voltage [V] against the current of a drive/coast bridge, which flows on through the diodes while the bridge is open.

    With the inductance L, :math:`\tau = L/R`, the period T of the PWM, and voltages in the direction of the duty d, the mean current is

    .. math::

        \bar I = |d|\frac{V - k_t\dot\theta}{R} - \frac{V + k_t\dot\theta}{R}\min\Bigl(\frac{t_0}{T}, 1 - |d|\Bigr), \qquad
        t_0 = \tau\ln\Bigl(1 + \frac{V - k_t\dot\theta}{V + k_t\dot\theta}\bigl(1 - e^{-|d|T/\tau}\bigr)\Bigr)

    from the circuit's equation :math:`L\dot I = U - k_t\dot\theta - R I` with U = V for :math:`|d|T`, then U = -V for :math:`t_0`, until
    the current is zero. Both limits are known laws: :math:`\tau \ll T` gives that of a bridge without inductance,
    :math:`t_0 \ge (1 - |d|)T` a current that never stops, :math:`\bar I = ((2|d| - 1)V - k_t\dot\theta)/R`.

    Source: derived here; the circuit is that of Sihite, Yang, Bewley 2019.

    :param tau: time constant of the winding in periods of the PWM, :math:`L / (R T)`.
    :param voltage: mean voltage of the driven part of the period, signed [V].
    :param supply: [V].
    :param back_emf: of the motor, signed [V].
    """
    xp = array_namespace(voltage, back_emf, tau)
    turn = xp.sign(voltage)
    share, against = xp.abs(voltage) / supply, supply + turn * back_emf
    # A current against the drive, at speeds beyond the supply, does not decay through the diodes.
    peak = xp.maximum(supply - turn * back_emf, 0.0) * (1.0 - xp.exp(-share / tau))
    decay = tau * xp.log(1.0 + peak / xp.maximum(against, 1e-9 * supply))
    return turn * against * xp.minimum(decay, 1.0 - share)
