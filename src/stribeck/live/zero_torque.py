"""Zero-torque mode of a compensator: begins, carries the joints, and ends where something is not as it must be.

The torques are those of :mod:`stribeck.live.guiding` with the compensator's against friction. The mode ends

- when it is left, and where a joint gets too hot: joints are damped, and gravity compensation ramps down within the ramp time;
- when states are lost: after the time-out the weight at the last pose fades within the ramp time. Nothing can be damped without states:
  brakes, or a mode of the servos that holds or damps, have to take over;
- when a controller commands: its commands count at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from stribeck.errors import ConfigError
from stribeck.live.compensator import Compensator
from stribeck.live.guiding import Guiding
from stribeck.live.parameters import CompensationParameters
from stribeck.live.samples import State
from stribeck.live.states.admission import LONGEST_STEP
from stribeck.model.arrays import Array
from stribeck.rigid.dynamics import Dynamics

LARGEST_TORQUE = 1e4
"""Limit of the torque of joints whose motors have none [N m]."""

TYPICAL_DELAY = 0.004
"""Of a loop whose delay is not given [s]."""


@dataclass(frozen=True)
class GuidingSettings:
    """How a hand guides.

    :param fastest: speed above which joints are braked [rad/s].
    :param gravity_error: relative error of the robot's weight [1].
    :param hottest: temperature of a motor at which the mode ends [°C]; 0: none.
    """

    fastest: float = 1.0
    gravity_error: float = 0.1
    hottest: float = 0.0


def guiding_of(parameters: CompensationParameters) -> GuidingSettings:
    """The settings of the parameters of the compensation node."""
    return GuidingSettings(parameters.guiding_speed, parameters.gravity_error, parameters.guiding_temperature)


class ZeroTorque:
    """Torques of joints that a hand guides; off until :meth:`begin`.

    :param dynamics: inertia and weight of the joints, in the robot's coordinates.
    :raises ConfigError: without them.
    """

    def __init__(
        self, compensator: Compensator, dynamics: Dynamics | None, settings: GuidingSettings | None = None
    ) -> None:
        if dynamics is None:
            raise ConfigError(
                "zero torque needs the gravity torque of the robot: give its `urdf`, and `payload` if it carries one"
            )
        settings = GuidingSettings() if settings is None else settings
        timing, of_robot, model = compensator.settings.timing, compensator.map.torque, compensator.model
        self._dynamics, self._names = dynamics, compensator.names
        self._hottest = settings.hottest or math.inf
        self._timeout, self._ramp_time = timing.state_timeout, timing.ramp_time
        self._guiding = Guiding(
            np.abs(of_robot(model.at_rest)),
            np.minimum(np.abs(of_robot(model.stall)), LARGEST_TORQUE),
            np.full(len(self._names), settings.fastest),
            gravity_error=settings.gravity_error,
            ramp_time=timing.ramp_time,
            delay=timing.loop_delay or TYPICAL_DELAY,
        )
        self.on, self.reason = False, "not begun"
        """Whether it carries the joints, and why it does not, or is being left."""

    def begin(self, now: float) -> None:
        """Hold the joints where they are at the next state, and let go within the ramp time."""
        self._guiding.begin()
        self.on, self.reason = True, ""
        self._seen, self._stamp = now, math.nan
        self._weight: Array | None = None

    def release(self, reason: str) -> None:
        """Leave the mode with damping."""
        if self.on and not self.reason:
            self._guiding.release()
            self.reason = reason

    def stop(self, reason: str) -> None:
        """Leave it at once."""
        if self.on:
            self.on, self.reason = False, reason

    @property
    def holding(self) -> tuple[str, ...]:
        """Joints that it holds because their friction alone is less than the error of their weight."""
        return tuple(name for name, holds in zip(self._names, self._guiding.holding, strict=True) if holds)

    def torque(self, now: float, state: State | None, friction: Array, temperature: Array) -> Array:
        """The whole motor torque (n,) [N m], zero while the mode is off.

        :param friction: torque of the compensator (n,) [N m].
        """
        carried, limit = self.carried(now, state, temperature), self._guiding.limit
        if not self.on or state is None:
            return carried
        return np.minimum(np.maximum(carried + friction, -limit), limit)

    def carried(self, now: float, state: State | None, temperature: Array) -> Array:
        """Motor torque without that against friction (n,) [N m].

        :param now: on a steady clock [s].
        :param state: ``None`` while states are not trusted.
        :param temperature: of the motors, NaN where unknown (n,) [°C].
        """
        if not self.on:
            return np.zeros(len(self._names))
        if state is None:
            return self._lost(now)
        hot = temperature >= self._hottest
        if True in hot.tolist():
            k = int(np.argmax(hot))
            self.release(
                f"{self._names[k]} is at {temperature[k]:.0f} °C, and the limit is {self._hottest:g} °C"
            )
        at = state.joint_position
        mass, weight = self._dynamics.mass_matrix_and_bias(at, np.zeros(len(at)))
        inertia = mass if mass.ndim == 1 else np.diagonal(mass)
        passed = state.stamp - self._stamp
        dt = min(max(passed, 0.0), LONGEST_STEP) if math.isfinite(passed) else 0.0
        self._seen, self._stamp, self._weight = now, state.stamp, weight
        found = self._guiding.torque(at, state.joint_velocity, inertia, weight, dt)
        self.on = not self._guiding.ended
        return found if self.on else np.zeros(len(self._names))

    def _lost(self, now: float) -> Array:
        """Torque without a trusted state: the weight at the last pose, which fades after the time-out."""
        over = max(now - self._seen - self._timeout, 0.0)
        share = max(1.0 - over / self._ramp_time, 0.0) if self._ramp_time else float(over == 0.0)
        if self._weight is None or share == 0.0:
            self.stop(f"no valid states for {1e3 * (now - self._seen):.0f} ms")
            return np.zeros(len(self._names))
        if not self.reason:
            self._guiding.begin()  # holds where the next state is
        limit = self._guiding.limit
        return share * self._guiding.share * np.minimum(np.maximum(self._weight, -limit), limit)
