"""A compensator driven by hand: states every 5 ms, commands between them."""

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from helpers import published
from stribeck.files.actuators import load_actuator
from stribeck.live.compensator import Compensator
from stribeck.live.friction import JointModel
from stribeck.live.outputs import Output
from stribeck.live.settings import Settings, Timing
from stribeck.model.joint_map import JointMap
from stribeck.model.law import LAWS

XL330 = load_actuator("xl330")
STEP = 0.005
NAN = math.nan
M1 = published("xl330", "m1")


def model(name: str = "a", law: str = "m1", limit: float = 0.3, **changes: float) -> JointModel:
    return JointModel(name, XL330, LAWS[law], {**published("xl330", law), **changes}, limit)


def settings_with(**chosen: Any) -> Settings:
    """Settings, times among them by their names."""
    times = {time.name: chosen.pop(time.name) for time in fields(Timing) if time.name in chosen}
    return Settings(**chosen, timing=Timing(**times))


class Driven:
    """A compensator with a clock: states every 5 ms, arriving 1 ms after their stamps.

    Without a goal all of the identified friction counts, unless ``certain_fraction`` is said.
    """

    def __init__(self, joints: Sequence[JointModel] | None = None, **settings: Any) -> None:
        self.joints = list(joints or [model()])
        self.maps = settings.pop("maps", [JointMap()] * len(self.joints))
        chosen = {
            "mode": "friction_only",
            "effort_meaning": "none",
            "ramp_time": 0.0,
            "slew": 1e6,
            "certain_fraction": 1.0,
            **settings,
        }
        self.compensator = Compensator(self.joints, self.maps, settings_with(**chosen))
        for joint in self.joints:
            self.compensator.on_telemetry(joint.name, kp=200.0, supply_voltage=5.0)
        self.compensator.enable()
        self.names = [joint.name for joint in self.joints]
        self.time = 100.0
        self.position = np.zeros(len(self.joints))
        self.velocity: np.ndarray | None = None

    def state(
        self, velocity: Any = 1.0, position: Any = None, effort: Any = NAN, dt: float = STEP
    ) -> np.ndarray:
        """One more state; numbers stand for all joints. Positions follow from the velocities if left out."""
        self.time += dt
        self.move(velocity, position, dt)
        return self.send(self.time, velocity, position, effort)

    def move(self, velocity: Any, position: Any = None, dt: float = STEP) -> None:
        """Where the joints are now, as far as positions and velocities are numbers."""
        told = np.asarray(velocity, dtype=np.float64)
        if told.size in (1, len(self.names)) and np.all(np.abs(told) < 100.0):
            speed = np.broadcast_to(told, self.position.shape)
            before = speed if self.velocity is None else self.velocity
            self.position = self.position + (
                0.5 * (before + speed) * dt if self.velocity is not None else 0.0
            )
            self.velocity = speed
        if position is not None and np.all(np.isfinite(position)) and np.size(position):
            self.position = np.broadcast_to(position, self.position.shape).astype(np.float64)

    def send(
        self, stamp: float, velocity: Any = 1.0, position: Any = None, effort: Any = NAN, names: Any = None
    ) -> np.ndarray:
        """A state with a stamp, where the joints are if no position is said; others than ours are at 0."""
        names = self.names if names is None else names
        if position is None:
            places = dict(zip(self.names, self.position.tolist(), strict=True))
            position = [places.get(name, 0.0) for name in names]
        position, velocity, effort = (
            [value] * len(names) if np.isscalar(value) else value for value in (position, velocity, effort)
        )
        return self.compensator.on_state(stamp + 0.001, stamp, names, position, velocity, effort)

    def command(self, position: Any = (), effort: Any = (), velocity: Any = (), dt: float = 0.001) -> None:
        """A command stamped shortly after the last state."""
        stamp = self.time + dt
        self.compensator.on_command(stamp, stamp, self.names, position, velocity, effort)

    def output(self) -> Output | None:
        return self.compensator.output(self.time + 0.002)

    def settled(self) -> np.ndarray:
        """The torque once the first state, which has no time behind it, is over."""
        self.state()
        return self.state()

    @property
    def torque(self) -> np.ndarray:
        return self.compensator.torque

    @property
    def doubt(self) -> str | None:
        return self.compensator.doubt
