"""The leader: LeRobot's own, with servos that hold its pose, bear its weight and let the hand feel a torque."""

import math
import threading
import time
from typing import Any

from lerobot.teleoperators.so_leader import SOLeader

import stribeck as sb

from .bus_thread import BusThread
from .config_stribeck_leader import StribeckLeaderConfig
from .yielding import Yielding

RAMP = 0.5
"""Time in which weight and friction compensation rise [s]."""

FULL_TORQUE = 1000
"""Of the register ``Torque_Limit``."""

RETRIES = 3
"""Further attempts to switch off a servo that did not answer, once all others were told."""

P_GAIN = 16
"""LeRobot's for the follower, with which its drives are recorded."""


class StribeckLeader(SOLeader):
    """An SO leader that stays where it is put.

    Each joint of the file of drives is held in position mode with its weight borne and its friction cancelled in the direction in which it
    is pulled; its pose follows the hand (:class:`Yielding`). Other joints, such as the gripper, turn freely. If the servos are lost, torque goes off
    where it can be written, and the next call raises.
    """

    config_class = StribeckLeaderConfig
    name = "stribeck_leader"

    def __init__(self, config: StribeckLeaderConfig):
        super().__init__(config)
        drives = sb.read(config.drives).drives
        self._joints = [name for name in self.bus.motors if name in drives]
        if not self._joints:
            raise ValueError(
                f"{config.drives}: no drive of {', '.join(self.bus.motors)}; it has {', '.join(sorted(drives))}"
            )
        of = [drives[name] for name in self._joints]
        if any(drive.gains is None for drive in of):
            raise ValueError(f"{config.drives}: states no stiffness; use a file of `stribeck identify robot`")
        stiffness = [float(drive.gains.kp) for drive in of]
        friction = [
            float(drive.values.get("friction_base", 0.0)) / kp
            for drive, kp in zip(of, stiffness, strict=True)
        ]
        n = len(of)
        self._yielding = Yielding(
            [config.slip + band for band in friction], stiffness, [config.feedback_limit] * n
        )
        self._compensator = sb.Compensator(
            config.drives,
            config.urdf or None,
            joints=self._joints,
            gain=config.share,
            state_timeout=max(0.04, 4.0 / config.rate),
            ramp_time=RAMP,
        )
        self._lock = threading.Lock()
        self._present: dict[str, float] = {}
        self._thread = BusThread(self._cycle, config.rate, self._let_go)

    @property
    def feedback_features(self) -> dict[str, type]:
        """Torques that the hand shall feel [N m], by joint."""
        return {f"{name}.torque": float for name in self._joints}

    def connect(self, calibrate: bool = True) -> None:
        """Connect and configure as LeRobot does, then hold the pose; if that fails, torque goes off again."""
        super().connect(calibrate)
        self._compensator.restart()
        self._yielding.restart()
        try:
            self._present = self.bus.sync_read("Present_Position")
            for name in self._joints:
                self.bus.write(
                    "Torque_Limit", name, round(FULL_TORQUE * self.config.torque_limit), normalize=False
                )
                self.bus.write("P_Coefficient", name, P_GAIN)
            self.bus.sync_write("Goal_Position", {name: self._present[name] for name in self._joints})
            self.bus.enable_torque(self._joints)
            self._thread.start()
        except BaseException:
            self._let_go()
            raise

    def get_action(self) -> dict[str, float]:
        """The last positions of the servos."""
        self._thread.check()
        with self._lock:
            return {f"{motor}.pos": value for motor, value in self._present.items()}

    def send_feedback(self, feedback: dict[str, Any]) -> None:
        """Let the hand feel torques for 0.2 s [N m]; joints that are not named feel none."""
        self._thread.check()
        torque = [float(feedback.get(f"{name}.torque", 0.0)) for name in self._joints]
        with self._lock:
            self._yielding.feel(torque, time.perf_counter())

    def disconnect(self) -> None:
        """End the thread, switch torque off, and close the port.

        :raises ConnectionError: once the port is closed, if there are servos whose torque could not be switched off; names them.
        """
        self._thread.end()
        if not self.is_connected:
            return super().disconnect()  # which refuses
        silent = self._let_go()
        self.bus.disconnect(disable_torque=False)
        if silent:
            raise ConnectionError(
                f"disconnected, but {', '.join(silent)} did not answer and may still hold: switch the supply off"
            )
        return None

    def _let_go(self) -> list[str]:
        """Switch torque off, each servo by itself; returns those that do not answer, which are asked last once more."""
        return [name for name in self._holding(list(self.bus.motors), 0) if self._holding([name], RETRIES)]

    def _holding(self, names: list[str], retries: int) -> list[str]:
        """Servos of which torque off was not confirmed."""
        silent = []
        for name in names:
            try:
                self.bus.disable_torque(name, num_retry=retries)
            except Exception:  # the others are told all the same
                silent.append(name)
        return silent

    def _cycle(self) -> None:
        """One reading, and the goals that follow from it."""
        present = self.bus.sync_read("Present_Position")
        now = time.perf_counter()
        position = [math.radians(present[name]) for name in self._joints]
        with self._lock:
            self._present = present
            held, moved = self._yielding.goal(position, now)
        goal = self._compensator.goal(position, held, now) + moved
        self.bus.sync_write(
            "Goal_Position",
            {name: math.degrees(value) for name, value in zip(self._joints, goal.tolist(), strict=True)},
        )
