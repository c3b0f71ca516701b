"""The follower: LeRobot's own, with a thread that reads the servos and writes offset goals."""

import math
import threading
import time
from typing import Any

from lerobot.robots.so_follower import SOFollower
from lerobot.robots.utils import ensure_safe_goal_position

import stribeck as sb

from .bus_thread import BusThread
from .config_stribeck_follower import StribeckFollowerConfig

RAMP = 0.5
"""Time in which the compensation rises [s]."""


class StribeckFollower(SOFollower):
    """An SO follower whose goals are offset against friction and weight.

    One thread owns the bus while the robot is connected: it reads all positions and writes all goals :attr:`StribeckFollowerConfig.rate`
    times a second. Where the state cannot be trusted, goals are sent without the part against friction.
    """

    config_class = StribeckFollowerConfig
    name = "stribeck_follower"

    def __init__(self, config: StribeckFollowerConfig):
        super().__init__(config)
        drives = set(sb.read(config.drives).drives)
        self._joints = [name for name in self.bus.motors if name in drives]
        if not self._joints:
            raise ValueError(
                f"{config.drives}: no drive of {', '.join(self.bus.motors)}; it has {', '.join(sorted(drives))}"
            )
        settings = {"state_timeout": max(0.04, 4.0 / config.rate), "ramp_time": RAMP}
        if config.loop_delay > 0.0:
            settings["loop_delay"] = config.loop_delay
        self._compensator = sb.Compensator(
            config.drives, config.urdf or None, joints=self._joints, gain=config.share, **settings
        )
        self._lock = threading.Lock()
        self._present: dict[str, float] = {}
        self._goal: dict[str, float] = {}
        self._thread = BusThread(self._cycle, config.rate)

    def connect(self, calibrate: bool = True) -> None:
        """Connect and configure as LeRobot does, then start the thread."""
        super().connect(calibrate)
        self._compensator.restart()
        self._present = self.bus.sync_read("Present_Position")
        self._goal = {}
        self._thread.start()

    def get_observation(self) -> dict[str, Any]:
        """The last positions of the servos, and the images of the cameras."""
        self._thread.check()
        with self._lock:
            found: dict[str, Any] = {f"{motor}.pos": value for motor, value in self._present.items()}
        for name, camera in self.cameras.items():
            found[name] = camera.read_latest()
        return found

    def send_action(self, action: dict[str, Any]) -> dict[str, Any]:
        """Set the goals, which the thread sends with offsets; returns them without."""
        self._thread.check()
        goal = {
            key.removesuffix(".pos"): float(value) for key, value in action.items() if key.endswith(".pos")
        }
        with self._lock:
            if self.config.max_relative_target is not None:
                pairs = {name: (value, self._present[name]) for name, value in goal.items()}
                goal = ensure_safe_goal_position(pairs, self.config.max_relative_target)
            self._goal |= goal
        return {f"{motor}.pos": value for motor, value in goal.items()}

    def disconnect(self) -> None:
        """End the thread, then disconnect as LeRobot does."""
        self._thread.end()
        super().disconnect()

    def _cycle(self) -> None:
        """One reading, and the goals that follow from it."""
        present = self.bus.sync_read("Present_Position")
        now = time.perf_counter()
        with self._lock:
            self._present, goal = present, dict(self._goal)
        if not all(name in goal for name in self._joints):
            if goal:
                self.bus.sync_write("Goal_Position", goal)
            return
        position = [math.radians(present[name]) for name in self._joints]
        wanted = [math.radians(goal[name]) for name in self._joints]
        offset = self._compensator.goal(position, wanted, now)
        sent = goal | {
            name: math.degrees(value) for name, value in zip(self._joints, offset.tolist(), strict=True)
        }
        self.bus.sync_write("Goal_Position", sent)
