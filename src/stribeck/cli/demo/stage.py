"""Emulated servos and ROS node processes of the demo."""

from __future__ import annotations

import fcntl
import json
import math
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from stribeck.emulator.joint import published_parameters
from stribeck.errors import StribeckError
from stribeck.files.drives import write_drive
from stribeck.model.bench import Pendulum
from stribeck.model.joint import Drive
from stribeck.model.law import law_named
from stribeck.nodes.transport import stay_on_this_machine
from stribeck.processes import ChildProcess, exit_reason

SERVO = "xl330"
SUPPLY = 5.0
BAUD_RATE = 4_000_000
RATE = 200

DOMAINS = range(81, 101)
"""ROS domains for demos; tests and benchmarks use lower ones."""

LOOK_PERIOD = 0.05
"""Period at which the processes are looked after [s]."""

ROS_ERROR = re.compile(r"\[(?:ERROR|FATAL)\] \[[\d.]+\] \[[^]]*\]: (.*)")
"""An error in the log of a node."""

GRACE = 10.0
"""Time for a node to exit before it is killed [s]."""

LIMITS = {"velocity": float("inf"), "acceleration": float("inf"), "following_error": 3.0}
"""Limits of emulated joints, which cannot be damaged."""


def truth() -> Drive:
    """True parameters of the emulated servos: the published parameters of law M6 for the XL330."""
    return published_parameters(SERVO, "m6")


def frictionless() -> Drive:
    """The same joint without friction."""
    parameters = truth()
    law = law_named("m1")
    values = {name: parameters.values[name] for name in ("kt", "R", "armature", "q_offset")}
    return Drive(parameters.actuator, law, {**values, **dict.fromkeys(law.parameter_names, 0.0)})


class EmulatedLoad(NamedTuple):
    """An emulated servo: its load and its parameters."""

    load: Pendulum
    parameters: Drive


def servo_yaml(
    port: Path, joints: Mapping[str, Pendulum], plays: Mapping[str, Sequence[Any]], output: Path
) -> str:
    """The configuration of servos and plays for ``stribeck record`` and the nodes."""
    content = {
        "port": str(port),
        "baud_rate": BAUD_RATE,
        "rate": RATE,
        "supply_voltage": SUPPLY,
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
    """Isolate the ROS graph of this process from others on this machine, also from other demos, and in the network.

    :raises StribeckError: if there is no domain left.
    """
    os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)
    stay_on_this_machine()
    folder = Path(tempfile.gettempdir())
    for domain in random.SystemRandom().sample(DOMAINS, len(DOMAINS)):
        path = folder / f"stribeck_domain_{domain}"
        try:
            if not path.exists():
                path.touch()
            lock = os.open(path, os.O_RDONLY)  # as it may be another user's
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # until this process ends
        except OSError:
            os.close(lock)
        else:
            os.environ["ROS_DOMAIN_ID"] = str(domain)
            return
    raise StribeckError(
        f"all {len(DOMAINS)} ROS domains for demos are in use, or their files {folder / 'stribeck_domain_*'} cannot be read: "
        "wait until a demo has ended, or remove these files"
    )


class NodeProcesses:
    """Processes of nodes and emulated servos in simulated time, which are stopped when the context is left.

    :param folder: for parameter files, logs and sockets.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: dict[str, ChildProcess] = {}

    def __enter__(self) -> NodeProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(*self._running)

    def start(
        self,
        node: str,
        values: Mapping[str, Any],
        socket: Path,
        *,
        namespace: str = "",
        remap: Mapping[str, str] | None = None,
        name: str = "",
    ) -> None:
        """Start a node in lock-step, configured and activated automatically, once its servos are emulated.

        :param socket: of the emulated servos.
        """
        self.wait_until(socket.is_socket)
        label = name or f"{namespace}_{node}".strip("_")
        config = self.folder / f"{label}.yaml"
        started = {"autostart": True, "exit_on_failure": True, "lockstep": str(socket)}
        config.write_text(node_yaml(name or node, {**values, **started}), encoding="utf-8")
        command = [sys.executable, "-m", f"stribeck.nodes.{node}", "--ros-args", "--params-file", str(config)]
        rules = dict(remap or {})
        if namespace:
            rules["__ns"] = f"/{namespace}"
        if name:
            rules["__node"] = name
        for old, new in rules.items():
            command += ["-r", f"{old}:={new}"]
        self._run(label, command)

    def emulate(
        self,
        name: str,
        servos: Sequence[EmulatedLoad],
        nodes: Sequence[str],
        *,
        seed: int,
        noise: float,
        faults: Sequence[str] = (),
    ) -> Path:
        """Start a process that emulates servos on a bus in simulated time; returns its socket, on which :meth:`start` waits.

        :param nodes: that run in lock-step with it.
        :param noise: standard deviation of the encoder noise in counts.
        """
        socket = self.folder / name
        command = [sys.executable, "-m", "stribeck", "emulate", "--servo", SERVO, "--link", str(socket)]
        command += ["--simulated", "--nodes", *nodes, "--seed", str(seed), "--noise", str(noise)]
        command += ["--voltage", str(SUPPLY), "--supply-resistance", "0"]
        command += ["--id", *map(str, range(1, len(servos) + 1)), "--params"]
        for number, one in enumerate(servos, start=1):
            path = self.folder / f"{name}_{number}.json"
            write_drive(path, one.parameters)
            command.append(str(path))
        for one in servos:
            command += ["--bench", ",".join(f"{key}={value}" for key, value in one.load._asdict().items())]
        for fault in faults:
            command += ["--fault", fault]
        self._run(f"{name}_servos", command)
        return socket

    def _run(self, label: str, command: Sequence[str]) -> None:
        self._running[label] = ChildProcess(command, log=self.folder / f"{label}.log")

    def stop(self, *labels: str) -> None:
        """Stop processes: first the nodes, side by side, then the servos on which they switch torque off."""
        nodes = [label for label in labels if not label.endswith("_servos")]
        for group in (nodes, [label for label in labels if label not in nodes]):
            processes = [self._running.pop(label) for label in group]
            for process in processes:
                process.terminate(GRACE, signal.SIGINT)
            for process in processes:
                process.close()

    def stop_namespace(self, name: str) -> None:
        """Stop the nodes of a namespace and their servos."""
        self.stop(*[label for label in self._running if label.startswith(f"{name}_")])

    def check(self) -> None:
        """Raise if a process has exited unexpectedly.

        :raises StribeckError: with its own message.
        """
        for label, process in self._running.items():
            if (code := process.poll()) is not None:
                log = (self.folder / f"{label}.log").read_text(errors="replace")
                raise StribeckError(f"{label}: {last_error(log) or exit_reason(code)}")

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition while all processes are running.

        :raises StribeckError: if one has ended.
        """
        while not condition():
            self.check()
            time.sleep(LOOK_PERIOD)


def last_error(log: str) -> str:
    """The last error in the log of a node, otherwise its last line; without what ROS puts before it."""
    lines = [line for line in log.splitlines() if line.strip()]
    errors = [found[1] for line in lines if (found := ROS_ERROR.match(line))]
    return (errors or lines or [""])[-1].strip()
