r"""The slowest speed at which a servo follows a ramp without stopping, and the height of the stairs below it (stick-slip).

A motion at a constant speed v is stable while damping grows faster than friction falls: :math:`D + d\tau_f/dv > 0`. Below the largest
speed at which this does not hold the speed oscillates, and where it oscillates to zero the joint sticks until the growing error overcomes its friction, slips,
and sticks again. The first speed is a bound; the second follows from simulated ramps that begin at rest. The height of the
stairs is the mean movement between two stops in a simulated ramp at half that speed. Source: B. Armstrong-Hélouvry, P. Dupont and
C. Canudas de Wit, "A survey of models, analysis tools and compensation methods for the control of machines with friction", Automatica
30, 1994, 10.1016/0005-1098(94)90209-7.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from stribeck.advise.plant import JointPlant
from stribeck.model.arrays import Array
from stribeck.model.law import viscous_friction

SAMPLED = np.concatenate([[0.0], np.geomspace(1e-5, 10.0, 2000)])
"""Speeds at which friction is tabulated [rad/s]."""

STEP = 1e-3
"""Longest time step [s]."""

SHORT = 0.05
"""Time step as a share of the time constant of the joint."""

LENGTHS = (3e-4, 1e-3, 3e-3)
"""Deflection at which friction breaks away: lower end of its assumed 90 % interval, median and upper end [rad]. No law knows it."""

DAMPING_RATIO = 0.7
"""Of the joint on its bristles."""

STICKING, RESOLVED = 5e-4, 0.3
"""Longest time step of these ramps [s], and its largest product with the angular frequency of the joint on its bristles."""

STANDS = 0.02
"""Share of the speed of a ramp below which a joint stands."""

SETTLED = 2.0
"""Time that ramps last beyond that [s]."""

SLIPS = 12.0
"""Simulated ramp in multiples of the way on which the error grows to what moves the joint."""


RAMPS = np.geomspace(0.25, 2.5, 32)
"""Speeds of simulated ramps, in those at which a constant motion becomes stable; ten times as fast ones follow while the fastest sticks."""

FASTEST = float(SAMPLED[-1])
"""Speed beyond which no faster ramps follow [rad/s]."""

MOST_STEPS = 200_000
"""Most steps of a simulation."""


def stable_speed(plant: JointPlant) -> float:
    """Largest speed below which a constant motion is not stable [rad/s]; 0 if every one is."""
    against, _ = plant.friction(SAMPLED, -plant.load)
    falling = np.flatnonzero(np.diff(against) / np.diff(SAMPLED) < -plant.damping)
    return float(SAMPLED[falling[-1] + 1]) if len(falling) else 0.0


def slowest_speeds(plant: JointPlant, lengths: Array) -> Array:
    r"""Speed below which a joint stops again and again while its goal rises from rest, for several presliding lengths (n,) [rad]: (n,) [rad/s].

    It is 0 if the joint never stops, infinite if it does on all ramps.

    In the simulation dry friction follows its law g over a way, as LuGre's: :math:`\tau_f = \sigma_0 z + w\,\sigma_1\dot z + \tau_v(v)`, :math:`\dot z = v - \sigma_0|v|z/g(v)`,
    :math:`\sigma_0 = g(0)/\delta`, :math:`\sigma_1 = 2\zeta\sqrt{\sigma_0 J}`, with the viscous part :math:`\tau_v` and the share w of the fading part that is left. That g
    lags behind the velocity makes more speeds smooth. A law knows nothing of :math:`\delta`: see :data:`LENGTHS`.
    Ramps on which the joint has not moved within half of :data:`MOST_STEPS` count as stopped, so that the speed is then an upper bound.
    """
    stable = stable_speed(plant)
    found = np.full(len(lengths), np.inf if stable else 0.0)
    speeds, open_ = stable * RAMPS, np.flatnonzero(found)
    while len(open_):
        for k, stops in zip(open_, _stops(plant, speeds, lengths[open_]), strict=True):
            last = np.flatnonzero(stops)
            if not len(last):
                found[k] = speeds[0] if speeds[0] > stable else 0.0
            elif last[-1] + 1 < len(speeds):
                found[k] = math.sqrt(speeds[last[-1]] * speeds[last[-1] + 1])
        open_ = open_[np.isinf(found[open_])] if speeds[-1] < FASTEST else open_[:0]
        speeds = speeds[-1] / speeds[0] * speeds
    return found


def _stops(plant: JointPlant, speeds: Array, lengths: Array) -> npt.NDArray[np.bool_]:
    """Whether the joint stands in the second half of ramps at some speeds (n,) [rad/s], for each presliding length (m,): (m, n)."""
    against, _ = plant.friction(SAMPLED, -plant.load)
    viscous = np.asarray(viscous_friction(plant.law, plant.values, 1.0, SAMPLED))
    dry = against - viscous
    fades = (dry - dry[-1]) / (dry[0] - dry[-1])
    bristles = float(dry[0]) / lengths[:, None]
    damping = 2.0 * DAMPING_RATIO * np.sqrt(bristles * plant.inertia)
    resolved = RESOLVED * math.sqrt(plant.inertia / float(bristles.max()))
    dt = min(STEP, SHORT * math.sqrt(plant.inertia / plant.stiffness), STICKING, resolved)
    duration = SLIPS * float(against[0]) / plant.stiffness / speeds[0] + SETTLED
    steps = min(int(duration / dt), MOST_STEPS)
    position, velocity, deflection = (np.zeros((len(lengths), len(speeds))) for _ in range(3))
    least = np.full_like(position, np.inf)
    for step in range(steps):
        size, sign = np.abs(velocity), np.sign(velocity)
        law = np.interp(size, SAMPLED, dry)
        steady = sign * law / bristles
        change = (steady - deflection) * -np.expm1(-size * dt * bristles / law)
        deflection = deflection + change
        friction = bristles * deflection + damping * np.interp(size, SAMPLED, fades) * change / dt
        friction = friction + sign * np.interp(size, SAMPLED, viscous)
        drive = plant.stiffness * (speeds * dt * step - position) - plant.damping * velocity
        velocity = velocity + (drive - friction) * dt / plant.inertia
        position = position + dt * velocity
        if step > steps // 2:
            least = np.minimum(least, velocity)
    return np.asarray(least < STANDS * speeds)


def stair_height(plant: JointPlant, speed: float) -> float:
    """Mean movement between two stops while the goal rises at a speed [rad]; 0 if the joint does not stop."""
    dt = min(STEP, SHORT * math.sqrt(plant.inertia / plant.stiffness))
    against, _ = plant.friction(SAMPLED, -plant.load)
    duration = SLIPS * float(against[0]) / plant.stiffness / speed
    position = velocity = 0.0
    stops: list[float] = []
    for step in range(int(duration / dt)):
        drive = plant.stiffness * (speed * dt * step - position) - plant.damping * velocity
        if velocity == 0.0 and drive <= against[0]:
            continue
        faster = velocity + (drive - float(np.interp(velocity, SAMPLED, against))) * dt / plant.inertia
        velocity = max(faster, 0.0)
        position += dt * velocity
        if velocity == 0.0:
            stops.append(position)
    return float(np.mean(np.diff(stops))) if len(stops) > 1 else 0.0
