"""Bags made message by message with the ``rosbags`` library, as other recorders would write them."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from stribeck.model.actuator import PwmRegister

BENCH = {
    "run_id": "first",
    "joint": "shoulder",
    "actuator": "xl330",
    "trajectory": "sin_sin",
    "mass": 0.5,
    "length": 0.1,
    "arm_mass": 0.02,
    "supply_voltage": 5.0,
    "kp": 200.0,
}
"""What a ``/bench`` message says of a run."""

CONTROL_MESSAGES = {
    "control_msgs/msg/InterfaceValue": "string[] interface_names\nfloat64[] values\n",
    "control_msgs/msg/DynamicJointState": (
        "std_msgs/Header header\nstring[] joint_names\ncontrol_msgs/InterfaceValue[] interface_values\n"
    ),
    "control_msgs/msg/JointTrajectoryControllerState": (
        "std_msgs/Header header\nstring[] joint_names\ntrajectory_msgs/JointTrajectoryPoint reference\n"
        "trajectory_msgs/JointTrajectoryPoint feedback\ntrajectory_msgs/JointTrajectoryPoint error\n"
        "trajectory_msgs/JointTrajectoryPoint output\n"
    ),
}

STORE = get_typestore(Stores.ROS2_JAZZY)
for _name, _definition in CONTROL_MESSAGES.items():
    STORE.register(get_types_from_msg(_definition, _name))


def message(kind: str, **fields: Any) -> Any:
    """A message of a type like ``std_msgs/String``."""
    package, name = kind.split("/")
    return STORE.types[f"{package}/msg/{name}"](**fields)


def header(time: float) -> Any:
    """A header stamped with ``time`` [s]."""
    stamp = message("builtin_interfaces/Time", sec=int(time // 1), nanosec=round(time % 1 * 1e9))
    return message("std_msgs/Header", stamp=stamp, frame_id="")


def floats(values: Any) -> np.ndarray:
    """An array of a message."""
    return np.atleast_1d(np.asarray(values, dtype=np.float64))


def joint_state(time: float, names: list[str], position: Any, velocity: Any = ()) -> Any:
    """A sensor_msgs/JointState."""
    return message(
        "sensor_msgs/JointState",
        header=header(time),
        name=names,
        position=floats(position),
        velocity=floats(velocity),
        effort=floats(()),
    )


def dynamic_joint_state(time: float, joint: str, **interfaces: float) -> Any:
    """A control_msgs/DynamicJointState of one joint."""
    values = message(
        "control_msgs/InterfaceValue",
        interface_names=list(interfaces),
        values=floats(list(interfaces.values())),
    )
    return message(
        "control_msgs/DynamicJointState", header=header(time), joint_names=[joint], interface_values=[values]
    )


def diagnostics(time: float, joint: str, **interfaces: Any) -> Any:
    """The same as a diagnostic_msgs/DiagnosticArray: texts of numbers by ``repr``."""
    pairs = [
        message("diagnostic_msgs/KeyValue", key=key, value=f"{value}") for key, value in interfaces.items()
    ]
    status = message(
        "diagnostic_msgs/DiagnosticStatus", level=0, name=joint, message="", hardware_id="", values=pairs
    )
    return message("diagnostic_msgs/DiagnosticArray", header=header(time), status=[status])


def trajectory_point(position: Any) -> Any:
    """A trajectory_msgs/JointTrajectoryPoint with positions only."""
    none = message("builtin_interfaces/Duration", sec=0, nanosec=0)
    return message(
        "trajectory_msgs/JointTrajectoryPoint",
        positions=floats(position),
        velocities=floats(()),
        accelerations=floats(()),
        effort=floats(()),
        time_from_start=none,
    )


def controller_state(time: float, names: list[str], goal: Any, position: Any) -> Any:
    """A JointTrajectoryController's ``controller_state``."""
    points = {"reference": goal, "feedback": position, "error": floats(goal) - floats(position), "output": ()}
    return message(
        "control_msgs/JointTrajectoryControllerState",
        header=header(time),
        joint_names=names,
        **{name: trajectory_point(value) for name, value in points.items()},
    )


def multi_array(values: Any) -> Any:
    """A std_msgs/Float64MultiArray: numbers without names or time."""
    layout = message("std_msgs/MultiArrayLayout", dim=[], data_offset=0)
    return message("std_msgs/Float64MultiArray", layout=layout, data=floats(values))


@dataclass
class Bag:
    """Messages in the order of their log time, to be written as a bag."""

    messages: list[tuple[float, str, Any]] = field(default_factory=list)

    def add(self, time: float, topic: str, content: Any) -> None:
        """Record a message at log time ``time`` [s]."""
        self.messages.append((time, topic, content))

    def bench(self, time: float, **changes: Any) -> None:
        """Begin a run; ``None`` leaves a key out."""
        content = {key: value for key, value in {**BENCH, **changes}.items() if value is not None}
        self.text(time, json.dumps(content))

    def end(self, time: float, run_id: str = "first") -> None:
        """End a run by its event."""
        self.text(time, json.dumps({"run_id": run_id, "event": "end"}))

    def text(self, time: float, data: str) -> None:
        """Any text on ``/bench``."""
        self.add(time, "/bench", message("std_msgs/String", data=data))

    def samples(
        self,
        start: float,
        stop: float,
        joint: str = "shoulder",
        *,
        rate: float = 20.0,
        scale: float = 1.0,
        telemetry: Literal["dynamic", "diagnostic"] = "dynamic",
    ) -> None:
        """States, commands and telemetry of a joint from ``start`` up to, not including, ``stop``."""
        for k in range(round((stop - start) * rate)):
            time = start + k / rate
            self.add(time, "/joint_states", joint_state(time, [joint], scale * time, scale))
            self.add(time, "/joint_commands", joint_state(time, [joint], 2.0 * scale * time))
            values = {"torque_enable": 1.0, "voltage": 5.0, "temperature": 31.0, "pwm": 0.25}
            if telemetry == "dynamic":
                self.add(time, "/dynamic_joint_states", dynamic_joint_state(time, joint, **values))
            else:
                self.add(time, "/servo_status", diagnostics(time, joint, **values))

    def run(
        self, start: float, stop: float, run_id: str = "first", joint: str = "shoulder", **options: Any
    ) -> None:
        """A whole run with its end."""
        self.bench(start, run_id=run_id, joint=joint)
        self.samples(start, stop, joint, **options)
        self.end(stop, run_id)

    def write(self, path: Path, storage: Literal["mcap", "sqlite3"] = "mcap") -> Path:
        """Write the bag, messages in the order of their log times."""
        plugin = StoragePlugin.MCAP if storage == "mcap" else StoragePlugin.SQLITE3
        with Writer(path, version=9, storage_plugin=plugin) as writer:
            connections: dict[str, Any] = {}
            for time, topic, content in sorted(self.messages, key=lambda entry: entry[0]):
                kind = content.__msgtype__
                if topic not in connections:
                    connections[topic] = writer.add_connection(topic, kind, typestore=STORE)
                writer.write(connections[topic], round(time * 1e9), STORE.serialize_cdr(content, kind))
        return path


def one_run(**options: Any) -> Bag:
    """A bag of one run of 1.5 s."""
    bag = Bag()
    bag.run(0.0, 1.5, **options)
    return bag


def raw_pwm(duty: npt.ArrayLike, register: PwmRegister) -> npt.NDArray[np.int64]:
    """The raw register of a duty in [-1, 1]: the exact inverse of reading it."""
    signed = np.round(np.asarray(duty, dtype=np.float64) * register.full_scale).astype(np.int64)
    return np.where(signed < 0, signed + (1 << register.bits), signed)
