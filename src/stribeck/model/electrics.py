r"""Electrical equations of a servo with a voltage bridge: current, duty and supply voltage.

They give the quantities that a servo measures, and the inverse of the motor equation
(:func:`stribeck.model.control_laws.VoltageControl`). They hold for a drive/brake bridge, whose winding always carries
:math:`I = \tau_m / k_t = (d V - k_t\dot\theta) / R`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stribeck.model.control_laws import ControlState, Gains, VoltageControl
from stribeck.model.log import Log
from stribeck.model.namespace import array_namespace
from stribeck.model.terms.term import Values

COMPARED_DUTY = (0.02, 0.9)
"""Duties that are compared: below, the resolution of the position distorts them, above, limits do."""

FEWEST_DUTIES = 50
"""Fewest samples that are compared."""

LEAST_CONSTANT = 0.01
"""Smallest torque per current of a saturated motor, relative to the unsaturated one."""


def motor_current(p: Values, motor_torque: Any) -> Any:
    r"""Winding current :math:`I = \tau_m / k_t` [A], with saturation :math:`\tau_m / (k_t - c|\tau_m|)`.

    No current gives a saturated motor the torque :math:`k_t/c`; the torque constant is taken as at least
    :data:`LEAST_CONSTANT` of :math:`k_t`, so that the current is finite and has the sign of the torque.

    :param motor_torque: :math:`\tau_m` at the output shaft [N m].
    """
    if "torque_saturation" in p:
        xp = array_namespace(motor_torque, *p.values())
        left = 1.0 - p["torque_saturation"] / p["kt"] * xp.abs(motor_torque)
        return motor_torque / (p["kt"] * xp.maximum(left, LEAST_CONSTANT))
    return motor_torque / p["kt"]


def duty_for_current(p: Values, current: Any, supply_voltage: Any, velocity: Any) -> Any:
    r"""Duty :math:`d = (R I + k_t\dot\theta) / V` that drives a current through the winding [1].

    It is clipped to :math:`\pm 1`, where the current is smaller than requested.

    :param current: I [A].
    :param supply_voltage: V > 0 [V].
    :param velocity: :math:`\dot\theta` [rad/s].
    """
    xp = array_namespace(current, supply_voltage, velocity, *p.values())
    return xp.clip((p["R"] * current + p["kt"] * velocity) / supply_voltage, -1.0, 1.0)


def supply_current(duty: Any, current: Any) -> Any:
    r"""Current drawn from the supply [A] by conservation of power, :math:`V I_s = d V I`, so :math:`I_s = d I`.

    It is negative while the motor brakes and feeds energy back.
    """
    return duty * current


def sagging_supply(open_voltage: Any, resistance: Any, drawn: Any) -> Any:
    r"""Voltage at the servo :math:`V = V_0 - R_s \max(I_s, 0)` [V], never below 0.

    :param open_voltage: :math:`V_0` without load [V].
    :param resistance: :math:`R_s` of supply, cables and connectors [ohm].
    :param drawn: :math:`I_s` of :func:`supply_current` [A]; the supply absorbs no current.
    """
    xp = array_namespace(open_voltage, resistance, drawn)
    return xp.maximum(open_voltage - resistance * xp.maximum(drawn, 0.0), 0.0)


def duty_ratio(log: Log, control: VoltageControl) -> float | None:
    r"""Duty that a servo reported, relative to that of a control law: :math:`\sum_t d_t d'_t / \sum_t d_t^2` [1].

    :math:`d = g K_p e` follows from the recorded goal and position, :math:`d'` is the reported duty. A ratio of 0.5 means that
    the servo's gain is half of :math:`g`.

    :returns: ``None`` without reports, with a goal ramp, with other gains than K_p, or with too few samples with torque on
        and both duties within :data:`COMPARED_DUTY`.
    """
    setup, reported = log.setup, log.pwm
    if reported is None or control.goal_speed is not None or setup.ki or setup.kd:
        return None
    gains = Gains(setup.kp, 0.0, 0.0)
    goal, position = log.goal.at(reported.time), log.position.at(reported.time)
    control = control.with_used_terms(gains)
    duty = control.output({}, gains, ControlState(0.0, 0.0), goal, position, 0.0)
    lowest, highest = COMPARED_DUTY
    used = (log.torque_enable.at(reported.time) > 0.0) & (np.abs(duty) > lowest)
    used &= (np.abs(duty) < highest * control.duty_max) & (np.abs(reported.value) < highest)
    if np.count_nonzero(used) < FEWEST_DUTIES:
        return None
    return float(np.sum(duty[used] * reported.value[used]) / np.sum(duty[used] ** 2))
