"""Processes beside the robot, what happens to them, and how that has to end: docs/compensated_motion.md, docs/ros_robots.md."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)

import numpy as np
import rclpy
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

from soaking.robot import BUS, EFFORT, JOINTS, Robot
from stribeck.files.actuators import load_actuator
from stribeck.nodes.transport import stay_on_this_machine

PATIENCE = 20.0
"""Longest wait for a documented end on a busy machine [s]."""

PATIENT = {"command_timeout": 0.5, "silence_timeout": 0.4, "watchdog": 0.5}
"""Of the servo node: this machine also runs the emulated servos, and may stand still."""

DISTURBANCE = 3.0
"""Time of disturbed answers before torque is switched off in between [s]."""

WINDOW, RESOLUTION = 0.06, 0.01
"""Largest error of the stamp of a servo's state [s], and of its position [rad]; answers are 0.15 s late or more."""

LAW = "m6"
QUIET, WORKS = 1e-9, 1e-3
"""Friction torque below which there is none, and above which there is some [N m]."""


class EndError(Exception):
    """A fault did not end as documented."""


class Stage:
    """The robot and the processes: bus, servo node, compensation node, guard.

    :ivar answer: what the last service said.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answer = ""
        self.processes: dict[str, subprocess.Popen[Any]] = {}
        self._log = (folder / "log").open("w")

    def __enter__(self) -> Stage:
        stay_on_this_machine()
        os.environ.setdefault("ROS_DOMAIN_ID", str(61 + os.getpid() % 20))
        rclpy.init()
        self.robot = Robot()
        kinds = {"compensation": SetBool, "servo": SetBool}
        self._enable = {
            name: self.robot.create_client(kind, f"{self._scope(name)}/{name}/enable")
            for name, kind in kinds.items()
        }
        self._clear = self.robot.create_client(Trigger, f"/{BUS}/servo/clear")
        self._write_configs()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.send_signal(signal.SIGINT)
        for process in self.processes.values():
            try:
                process.wait(timeout=10.0)
            except subprocess.TimeoutExpired:
                process.kill()
        self.robot.finish()
        rclpy.shutdown()
        self._log.close()

    @staticmethod
    def _scope(name: str) -> str:
        return f"/{BUS}" if name == "servo" else ""

    def _write_configs(self) -> None:
        servo = load_actuator("xl330")
        law = self.folder / "law.json"
        law.write_text(json.dumps({**servo.published[LAW], "model": LAW, "actuator": "xl330"}))
        common = {
            "joints": JOINTS,
            "output_mode": "sum",
            "output_type": "joint_state",
            "effort_meaning": "motor",
        }
        joints = {name: {"parameter_file": str(law)} for name in JOINTS}
        own = {"guarded": True, "automatic_returns": 1000, "autostart": True}
        sections = {
            "compensation": {**common, **joints, **own},
            "guard": {**common, **joints, "autostart": True},
            "servo": {"config": str(self.folder / "servos.yaml"), "autostart": True},
        }
        for name, values in sections.items():
            text = json.dumps({f"/**/{name}": {"ros__parameters": values}})
            (self.folder / f"{name}.yaml").write_text(text)
        ids = {f"j{k}": {"id": k, "model": "xl330", "position_limits": [-1.9, 1.9]} for k in (1, 2)}
        bus = {
            "port": str(self.folder / "port"),
            "baud_rate": 1_000_000,
            "rate": 200,
            "joints": ids,
            **PATIENT,
        }
        (self.folder / "servos.yaml").write_text(json.dumps(bus))

    # -- processes

    def spawn(self, name: str) -> None:
        """Start a process again, or for the first time."""
        if name == "bus":
            command = [sys.executable, str(Path(__file__).with_name("bus.py")), str(self.folder / "port")]
        else:
            scope = ["-r", f"__ns:={self._scope(name)}"] if self._scope(name) else []
            file = str(self.folder / f"{name}.yaml")
            command = [
                sys.executable,
                "-m",
                f"stribeck.nodes.{name}",
                "--ros-args",
                *scope,
                "--params-file",
                file,
            ]
        environment = {
            key: value for key, value in os.environ.items() if key != "_ROS_WHEELS_BOOTSTRAP_COMPLETE"
        }
        self.robot.said.pop(name, None)
        self.processes[name] = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=self._log, stderr=self._log, env=environment
        )

    def start(self) -> None:
        """Everything, until friction is compensated and the servos move."""
        self.spawn("bus")
        self.until((self.folder / "port").exists, "the emulated bus")
        for name in ("servo", "guard", "compensation"):
            self.spawn(name)
        self.robot.begin()
        self.until(self._found, "the servos", 120.0)
        self.until(self.compensates, "friction compensation", 120.0)
        self.calm()
        self.robot.count_from_now()

    def _found(self) -> bool:
        """Whether the servo node has found its servos; one that did not, on a busy machine, is started again."""
        if self.processes["servo"].poll() is not None or self.says("servo", "cannot configure"):
            self.processes["servo"].kill()
            self.processes["servo"].wait()
            self.spawn("servo")
        return self.robot.servo_states > 0

    def restart(self) -> None:
        """Bring back what has ended, after a fault that did not end well."""
        for name, process in list(self.processes.items()):
            process.send_signal(signal.SIGCONT)
            if process.poll() is not None:
                self.spawn(name)
        robot = self.robot
        robot.feeding = robot.commanding = robot.moving = True
        robot.spoiled = {}
        self.command("set_voltage", 5.0)
        self.command("plug")
        self.call(self._clear, Trigger.Request())
        self.enable("servo")
        self.enable("compensation")

    def calm(self) -> None:
        """Wait until everything works. A servo node that a pause of this machine has stopped is started again."""
        self.until(self.compensates, "friction compensation")
        asked = time.monotonic()

        def served() -> bool:
            nonlocal asked
            stopped = self.robot.said.get("servo", (0,))[0] == 2
            if (stopped or self.says("servo", "torque is off")) and time.monotonic() - asked > 1.0:
                self.robot.servo_pauses += stopped
                self.call(self._clear, Trigger.Request())
                self.enable("servo")
                asked = time.monotonic()
            return self.energised(True)

        self.until(served, "torque of the servos")

    def command(self, *words: Any) -> None:
        """One for the bus."""
        stdin = self.processes["bus"].stdin
        if stdin is None:
            raise EndError("the bus takes no commands")
        stdin.write(json.dumps(words).encode() + b"\n")
        stdin.flush()

    # -- what is seen

    def compensates(self) -> bool:
        """Whether the last 20 answers contained friction."""
        last = list(self.robot.friction)[-20:]
        return len(last) == 20 and min(last) > WORKS

    def passes(self) -> bool:
        """Whether the last 20 answers were the controller's effort alone."""
        last = list(self.robot.friction)[-20:]
        return len(last) == 20 and max(last) < QUIET

    def says(self, name: str, *words: str) -> bool:
        """Whether the last diagnostics of a node contain one of the words."""
        return name in self.robot.said and any(word in self.robot.said[name][1] for word in words)

    def energised(self, on: bool) -> bool:
        """Whether the servo node says so of all servos."""
        level, _, figures = self.robot.said.get("servo", (2, "", {}))
        found = [value for key, value in figures.items() if key.startswith("energised/")]
        return len(found) == 2 and set(found) == {str(on)} and (not on or level < 2)

    def until(self, condition: Callable[[], Any], what: str, patience: float = PATIENCE) -> float:
        """Wait; how long it took [s].

        :raises EndError: if it does not come in time.
        """
        begin = time.monotonic()
        while not condition():
            if time.monotonic() - begin > patience:
                said = {name: text for name, (_, text, _) in self.robot.said.items()}
                last = f"last friction torque {self.robot.last_friction:.3g} N m; last service answered {self.answer!r}"
                raise EndError(f"after {patience:g} s still not: {what}; {last}; said last: {said}")
            time.sleep(0.002)
        return time.monotonic() - begin

    def call(self, client: Any, request: Any) -> bool:
        """Whether a service was there and succeeded."""
        if not client.wait_for_service(5.0):
            return False
        future = client.call_async(request)
        end = time.monotonic() + 5.0
        while not future.done() and time.monotonic() < end:
            time.sleep(0.002)
        if not future.done():
            return False
        self.answer = str(future.result().message)
        return bool(future.result().success)

    def enable(self, name: str, on: bool = True) -> bool:
        """By its service."""
        return self.call(self._enable[name], SetBool.Request(data=on))

    def alive(self) -> None:
        """:raises EndError: if a process has ended."""
        gone = [name for name, process in self.processes.items() if process.poll() is not None]
        if gone:
            raise EndError(f"{', '.join(gone)} ended")


Fault = Callable[[Stage, random.Random], float]


def back(stage: Stage, took: float) -> float:
    """Everything works again; the time of the documented end is kept."""
    stage.calm()
    stage.alive()
    return took


# -- compensation and guard


def killed_compensation(stage: Stage, chance: random.Random) -> float:
    """The guard passes the commands on, without friction; a new node compensates again."""
    stage.processes["compensation"].kill()
    took = stage.until(stage.passes, "the effort alone")
    stage.processes["compensation"].wait()
    stage.spawn("compensation")
    return back(stage, took)


def killed_guard(stage: Stage, chance: random.Random) -> float:
    """Compensation goes on and says that no guard is there; a new guard is found."""
    stage.processes["guard"].kill()
    took = stage.until(
        lambda: stage.says("compensation", "no guard is running"), "a word about the guard", 60.0
    )
    stage.processes["guard"].wait()
    stage.spawn("guard")
    stage.until(lambda: not stage.says("compensation", "no guard is running"), "the new guard")
    return back(stage, took)


def stopped_compensation(stage: Stage, chance: random.Random) -> float:
    """The guard takes over within its lease; the node returns by itself, a bounded number of times."""
    process = stage.processes["compensation"]
    process.send_signal(signal.SIGSTOP)
    took = stage.until(stage.passes, "the effort alone")
    process.send_signal(signal.SIGCONT)
    return back(stage, took)


def silent_states(stage: Stage, chance: random.Random) -> float:
    """Without states no friction, the effort passes; it returns with them."""
    stage.robot.feeding = False
    took = stage.until(stage.passes, "the effort alone")
    stage.robot.feeding = True
    return back(stage, took)


def spoiled_states(**fields: Any) -> Fault:
    """States with other contents: no friction, and why is said; it returns with good ones."""

    def fault(stage: Stage, chance: random.Random) -> float:
        stage.robot.spoiled = fields
        took = stage.until(stage.passes, "the effort alone")
        stage.robot.spoiled = {}
        return back(stage, took)

    return fault


def silent_controller(stage: Stage, chance: random.Random) -> float:
    """The friction is taken back from the last effort, then nothing more is sent."""
    robot = stage.robot
    robot.commanding = False
    took = stage.until(lambda: robot.last_friction < QUIET, "the effort alone")
    time.sleep(0.2)
    before = robot.answered + robot.twice
    time.sleep(0.3)
    if robot.answered + robot.twice != before:
        raise EndError("commands were sent although the controller is silent")
    if robot.last_friction >= QUIET:
        raise EndError(f"friction torque of {robot.last_friction:.3g} N m stays applied")
    robot.commanding = True
    return back(stage, took)


def damaged_command(stage: Stage, chance: random.Random) -> float:
    """Bytes that are no joint names: logged, nobody ends, the next command is served."""
    message = JointState(name=JOINTS, effort=[EFFORT] * len(JOINTS))
    begin = time.monotonic()
    stage.robot.commands.publish(serialize_message(message).replace(b"joint_3", b"h\xff\xfe\xffe__"))
    time.sleep(0.2)
    stage.until(stage.compensates, "friction after it")
    return back(stage, time.monotonic() - begin)


def disabled(stage: Stage, chance: random.Random) -> float:
    """``~/enable`` off: the guard passes the effort on; on again: friction."""
    if not stage.enable("compensation", False):
        raise EndError("~/enable did not succeed")
    took = stage.until(stage.passes, "the effort alone")
    if not stage.enable("compensation"):
        raise EndError("~/enable did not succeed")
    return back(stage, took)


COMPENSATION_FAULTS: dict[str, Fault] = {
    "compensation stopped": stopped_compensation,
    "states stop": silent_states,
    "states are NaN": spoiled_states(position=[float("nan")] * len(JOINTS)),
    "states of other joints": spoiled_states(name=[*JOINTS[:-1], "gripper"]),
    "controller stops": silent_controller,
    "damaged command": damaged_command,
    "disabled and enabled": disabled,
}

KILLS: dict[str, Fault] = {"compensation killed": killed_compensation, "guard killed": killed_guard}


# -- the servo bus


def trouble(strike: tuple[Any, ...], mend: tuple[Any, ...] | None, *words: str) -> Fault:
    """Torque goes off and why is said, once; after ``~/clear`` and ``~/enable`` the servos move again."""

    def fault(stage: Stage, chance: random.Random) -> float:
        for _ in range(
            3
        ):  # a pause of the machine may come first: then the servos are off for another reason
            stage.calm()
            stage.robot.said.pop("servo", None)
            stage.command(*strike)
            seen = (*words, "has not answered")
            took = stage.until(lambda seen=seen: stage.says("servo", *seen), f"one of {', '.join(words)}")
            said = stage.says("servo", *words)
            if mend is not None:
                stage.command(*mend)
            clear_and_enable(stage)
            if said:
                break
        else:
            raise EndError(f"three times another reason than {', '.join(words)}")
        return back(stage, took)

    return fault


def clear_and_enable(stage: Stage) -> None:
    """As the documentation says; a bus that is just plugged in needs a moment."""
    stage.until(lambda: stage.call(stage._clear, Trigger.Request()), "~/clear")
    stage.until(lambda: stage.enable("servo"), "~/enable")


def silent_goals(stage: Stage, chance: random.Random) -> float:
    """Goals that stop: torque off after ``command_timeout``; cleared and enabled, it moves again."""
    stage.calm()
    stage.robot.moving = False
    took = stage.until(lambda: stage.says("servo", "no command for", "has not answered"), "no command for")
    stage.robot.moving = True
    clear_and_enable(stage)
    return back(stage, took)


def noise(stage: Stage, chance: random.Random) -> float:
    """5 % lost and 1 % corrupt bytes for two seconds: it runs on."""
    begin = time.monotonic()
    stage.command("fault", "lost:p=0.05,for=2")
    stage.command("fault", "corrupt:bytes=0.01,for=2")
    time.sleep(2.0)
    if stage.robot.said.get("servo", (0,))[0] > 1:
        clear_and_enable(stage)
    return back(stage, time.monotonic() - begin)


def told(stage: Stage) -> dict[str, Any]:
    """What the emulated servos really did."""
    path = stage.folder / "told.json"
    path.unlink(missing_ok=True)
    stage.command("tell", str(path))
    stage.until(path.exists, "an account of the servos")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def compare(messages: list[bytes], readings: list[list[list[float]]]) -> None:
    """Compare published positions with those of the servos around the time of their stamps.

    A request that waited while the emulation paused was answered after the pause, with the state before or after it. States after the
    last reading of which there is an account are not compared.

    :raises EndError: if a servo was nowhere near a published position at that time.
    """
    for data in messages:
        message = deserialize_message(data, JointState)
        stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        for name, position in zip(message.name, message.position, strict=True):
            time_of, where, paused = np.array(readings[int(name[1:]) - 1]).T
            after = np.append(paused[1:], 0.0)
            near = (time_of - paused - WINDOW < stamp) & (stamp < time_of + after + WINDOW)
            known = near.any() and stamp < time_of[-1] - WINDOW
            if math.isfinite(position) and known and np.abs(where[near] - position).min() > RESOLUTION:
                error = float(np.abs(where[near] - position).min())
                raise EndError(f"{name} was published {error:.3f} rad from where it was")


def disturbed(*strikes: tuple[Any, ...]) -> Fault:
    """Late, doubled or held answers: no wrong position is published, torque off is confirmed only if it is off."""

    def fault(stage: Stage, chance: random.Random) -> float:
        stage.calm()
        begin = time.monotonic()
        stage.robot.servo_messages.clear()
        for strike in strikes:
            stage.command(*strike)
        time.sleep(DISTURBANCE)
        off = stage.enable("servo", False)
        truth = told(stage)
        if off and any(truth["torque"]):
            raise EndError(f"torque off was confirmed, but it is {truth['torque']}")
        compare(list(stage.robot.servo_messages), truth["readings"])
        took = time.monotonic() - begin
        clear_and_enable(stage)
        return back(stage, took)

    return fault


BUS_FAULTS: dict[str, Fault] = {
    "overload": trouble(("fail", 1, "overload"), None, "overload"),
    "brown-out": trouble(
        ("set_voltage", 3.2), ("set_voltage", 5.0), "input voltage", "supply voltage of 3.2 V"
    ),
    "unplugged": trouble(("unplug",), ("plug",), "is lost"),
    "bus falls silent": trouble(("silence", 1.0), None, "has not answered"),
    "goals stop": silent_goals,
    "noise on the bus": noise,
    "late answers": disturbed(("fault", "late:p=0.1,delay=0.15,spread=0.15,for=4")),
    "doubled answers": disturbed(("fault", "double:p=0.3,delay=0.1,spread=0.2,for=4")),
    "held answers": disturbed(("stall", 0.25, 0.004)),
    "late and held answers": disturbed(
        ("fault", "late:p=0.3,delay=0.15,spread=0.15,for=4"), ("stall", 0.2, 0.01)
    ),
}
