r"""Current of a drive/coast bridge with inductance, which flows on through the diodes while the bridge is open.

With the inductance L, :math:`\tau = L/R`, the period T of the PWM, and voltages in the direction of the duty d, the mean current is

.. math::

    \bar I = |d|\frac{V - k_t\dot\theta}{R} - \frac{V + k_t\dot\theta}{R}\min\Bigl(\frac{t_0}{T}, 1 - |d|\Bigr), \qquad
    t_0 = \tau\ln\Bigl(1 + \frac{V - k_t\dot\theta}{V + k_t\dot\theta}\bigl(1 - e^{-|d|T/\tau}\bigr)\Bigr)

from the circuit's equation :math:`L\dot I = U - k_t\dot\theta - R I` with U = V for :math:`|d|T`, then U = -V for :math:`t_0`, until the current
is zero. Both limits are known laws: :math:`\tau \ll T` gives that of a bridge without inductance, :math:`t_0 \ge (1 - |d|)T` a current that
never stops, :math:`\bar I = ((2|d| - 1)V - k_t\dot\theta)/R`.

Source: derived here; the circuit is that of Sihite, Yang, Bewley 2019.
"""

from __future__ import annotations

from typing import Any

from stribeck.model.namespace import array_namespace


def freewheeling_voltage(tau: Any, voltage: Any, supply: Any, back_emf: Any) -> Any:
    """Mean voltage against the current while a bridge is open [V]; see the module.

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
