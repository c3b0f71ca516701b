"""Position control laws of servo firmware, by what the firmware sets: voltage, current or torque."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np


class Gains(NamedTuple):
    """Firmware gains of a run, in firmware units: floats for one run, arrays for many."""

    kp: Any
    ki: Any
    kd: Any


@dataclass(frozen=True)
class VoltageControl:
    r"""Position control by duty cycle, for a servo that drives the motor with the switched supply voltage.

    :math:`d = clip(g K_p e + g_i K_i \int e - g_d K_d \dot\theta, \pm d_{max})`, :math:`U = d V`, and with a
    drive/brake bridge :math:`\tau_m = k_t (U - k_t\dot\theta) / R`. With a drive/coast bridge the current stops
    whenever the bridge opens, so the back-EMF brakes only during the driven part of the PWM period:
    :math:`\tau_m = k_t |d| (sign(d) V - k_t\dot\theta) / R` (electrical time constant far below the PWM period;
    Sihite et al., CASE 2019). Torque off is an open circuit: :math:`\tau_m = 0`.

    With an ``inductance`` the current of a drive/coast bridge flows on through its diodes, see :mod:`stribeck.model.freewheeling`.

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


@dataclass(frozen=True)
class CurrentControl:
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

    kind = "current"
    motor_parameters = ("kt", "R", "armature")
    required_parameters = ("kt", "armature")


@dataclass(frozen=True)
class TorqueControl:
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
    motor_parameters = ("ratio", "armature")
    required_parameters = ("ratio", "armature")


Control = VoltageControl | CurrentControl | TorqueControl
