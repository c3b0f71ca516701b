"""Emulated servos and ROS node processes of the demo."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stribeck.core.bench import Pendulum
from stribeck.core.friction import law_named
from stribeck.emulator.device import EmulatedServo
from stribeck.emulator.joint import published_parameters
from stribeck.errors import StribeckError
from stribeck.io.parameter_file import ParameterFile
from stribeck.nodes.transport import stay_on_this_machine
from stribeck.processes import ChildProcess

SERVO = "xl330"
SUPPLY = 5.0
BAUD_RATE = 4_000_000
RATE = 200

GRACE = 10.0
"""Time for a node to exit before it is killed [s]."""

LIMITS = {"velocity": float("inf"), "acceleration": float("inf"), "following_error": 3.0}
"""Limits of emulated joints, which cannot be damaged."""


def truth() -> ParameterFile:
    """True parameters of the emulated servos: the published parameters of law M6 for the XL330."""
    return published_parameters(SERVO, "m6")


def frictionless() -> ParameterFile:
    """The same joint without friction."""
    parameters = truth()
    law = law_named("m1")
    values = {name: parameters.values[name] for name in ("kt", "R", "armature", "q_offset")}
    return ParameterFile(parameters.actuator, law, {**values, **dict.fromkeys(law.parameter_names, 0.0)})


def servo(number: int, pendulum: Pendulum, parameters: ParameterFile, noise: float) -> EmulatedServo:
    """An emulated servo with a load.

    :param noise: standard deviation of the encoder noise in counts.
    """
    return EmulatedServo(
        SERVO, parameters, pendulum, servo_id=number, voltage=SUPPLY, supply_resistance=0.0, noise=noise
    )


def servo_yaml(
    port: str, joints: Mapping[str, Pendulum], plays: Mapping[str, Sequence[Any]], output: Path
) -> str:
    """The configuration of servos and plays for ``stribeck record`` and the nodes."""
    content = {
        "port": port,
        "baud_rate": BAUD_RATE,
        "rate": RATE,
        "supply_voltage": SUPPLY,
        "command_timeout": 0.5,
        "silence_timeout": 0.5,
        "state_timeout": 0.5,
        "watchdog": 1.0,
        "joints": {
            name: {
                "id": number,
                "model": SERVO,
                "bench": pendulum._asdict(),
                "position_limits": [-3.0, 3.0],
                "limits": {key: ".inf" if math.isinf(value) else value for key, value in LIMITS.items()},
            }
            for number, (name, pendulum) in enumerate(joints.items(), start=1)
        },
        "plays": plays,
        "soft_start": {"speed": 3.0, "acceleration": 20.0},
        "output": str(output),
    }
    return json.dumps(content).replace('".inf"', ".inf")


def node_yaml(node: str, values: Mapping[str, Any]) -> str:
    """A ROS parameter file for one node."""
    return json.dumps({f"/**/{node}": {"ros__parameters": values}})


def join_private_domain() -> None:
    """Isolate the demo's ROS graph from other nodes on this machine and in the network."""
    os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)
    stay_on_this_machine()
    os.environ["ROS_DOMAIN_ID"] = str(random.SystemRandom().randrange(81, 101))


class NodeProcesses:
    """Node processes that are stopped when the context is left.

    :param folder: for parameter files and logs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: dict[str, ChildProcess] = {}

    def __enter__(self) -> NodeProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._running.values()):
            process.terminate(GRACE, signal.SIGINT)
        for process in reversed(self._running.values()):
            process.close()

    def start(
        self,
        node: str,
        values: Mapping[str, Any],
        *,
        namespace: str = "",
        remap: Mapping[str, str] | None = None,
        name: str = "",
    ) -> None:
        """Start a node, configured and activated automatically."""
        label = name or f"{namespace}_{node}".strip("_")
        config = self.folder / f"{label}.yaml"
        config.write_text(node_yaml(name or node, {**values, "autostart": True}), encoding="utf-8")
        command = [sys.executable, "-m", f"stribeck.nodes.{node}", "--ros-args", "--params-file", str(config)]
        rules = dict(remap or {})
        if namespace:
            rules["__ns"] = f"/{namespace}"
        if name:
            rules["__node"] = name
        for old, new in rules.items():
            command += ["-r", f"{old}:={new}"]
        self._run(label, command)

    def emulate(self, name: str, loads: Sequence[Pendulum], seed: int) -> Path:
        """Start a process that emulates servos on a bus; returns the path where its port will appear."""
        link = self.folder / f"{name}_port"
        command = [sys.executable, "-m", "stribeck", "emulate", "--servo", SERVO, "--link", str(link)]
        command += ["--id", *map(str, range(1, len(loads) + 1)), "--seed", str(seed)]
        command += ["--voltage", str(SUPPLY), "--supply-resistance", "0"]
        for load in loads:
            command += ["--bench", ",".join(f"{key}={value}" for key, value in load._asdict().items())]
        self._run(f"{name}_emulator", command)
        return link

    def _run(self, label: str, command: Sequence[str]) -> None:
        self._running[label] = ChildProcess(command, log=self.folder / f"{label}.log")

    def check(self) -> None:
        """Raise if a process has exited unexpectedly.

        :raises StribeckError: with the last lines of its log.
        """
        for label, process in self._running.items():
            if process.poll() is not None:
                lines = (self.folder / f"{label}.log").read_text(errors="replace").splitlines()
                raise StribeckError(
                    f"the node {label} ended: {' | '.join(lines[-3:]) or 'it printed nothing'}"
                )

    def wait_until(self, condition: Callable[[], bool], what: str, timeout: float = 30.0) -> None:
        """Wait for a condition while all processes are running.

        :raises StribeckError: if it is not met in time.
        """
        end = time.monotonic() + timeout
        while not condition():
            self.check()
            if time.monotonic() > end:
                raise StribeckError(f"the nodes did not come up: no {what} after {timeout:g} s")
            time.sleep(0.05)
