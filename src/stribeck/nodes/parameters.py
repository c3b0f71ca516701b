"""The parameters of all nodes, as tables: declaration, checks and ``config/*.yaml`` follow them.

No ROS here, so that the command line reads the same YAML files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from stribeck.core.compensation import EFFORT_MEANINGS
from stribeck.core.friction import LAWS
from stribeck.core.settings import CONTROLS, OUTPUT_MODES
from stribeck.errors import ConfigError
from stribeck.io import strict
from stribeck.nodes.goals import GOAL_TYPES
from stribeck.nodes.sections import sections_of

Kind = Literal["bool", "int", "float", "text", "floats", "texts"]
Value = bool | int | float | str | list[float] | list[str]

INFINITY = math.inf


@dataclass(frozen=True)
class Spec:
    """One parameter of a node.

    :param name: its name; dots make groups.
    :param kind: its type.
    :param default: value if nothing is said.
    :param description: what it does, with the unit.
    :param lower: smallest number, or length of a list.
    :param upper: largest number, or length of a list.
    :param choices: valid texts; all if empty.
    :param live: whether it may change while the node is configured.
    """

    name: str
    kind: Kind
    default: Value
    description: str
    lower: float = -INFINITY
    upper: float = INFINITY
    choices: tuple[str, ...] = ()
    live: bool = False

    def check(self, value: Any, what: str | None = None) -> Value:
        """``value`` in the parameter's type.

        :raises ConfigError: for another type or a value out of range.
        """
        what = what or self.name
        if self.kind in ("floats", "texts"):
            if not isinstance(value, (list, tuple)):
                raise ConfigError(f"{what}: expected a list, found {value!r}")
            self._check_range(len(value), f"{what}: length")
            if self.kind == "floats":
                return [strict.number(part, what, ConfigError) for part in value]
            return [strict.text(part, what, ConfigError) for part in value]
        if self.kind == "text":
            found = strict.text(value, what, ConfigError)
            if self.choices and found not in self.choices:
                raise ConfigError(f"{what} must be one of {', '.join(self.choices)}, found {found!r}")
            return found
        if self.kind == "bool":
            if not isinstance(value, bool):
                raise ConfigError(f"{what}: expected true or false, found {value!r}")
            return value
        number = strict.number(value, what, ConfigError)
        self._check_range(number, what)
        if self.kind == "float":
            return number
        if number != int(number):
            raise ConfigError(f"{what}: expected a whole number, found {value!r}")
        return int(number)

    def _check_range(self, number: float, what: str) -> None:
        if not self.lower <= number <= self.upper:
            raise ConfigError(f"{what} must be between {self.lower:g} and {self.upper:g}, found {number:g}")


Table = tuple[Spec, ...]

_RATE = Spec("rate", "float", 200.0, "cycles per second [Hz]", 1.0, 2000.0)

JOINT_MAP: Table = (
    Spec(
        "sign", "float", 1.0, "1 or -1: direction of the joint against its parameter file or servo", -1.0, 1.0
    ),
    Spec("ratio", "float", 1.0, "turns of the servo per turn of the joint", 1e-4, 1e4),
    Spec("offset", "float", 0.0, "position of the joint where the servo stands at 0 [rad]", -1e3, 1e3),
)

TUNING: Table = (
    Spec(
        "deadband",
        "float",
        0.0,
        "position error that a joint at rest may keep [rad]; 0: automatic, from the servo's resolution",
        0.0,
        1.0,
    ),
    Spec(
        "error_width",
        "float",
        0.0,
        "error beyond the dead-band for full torque [rad]; 0: automatic",
        0.0,
        1.0,
    ),
    Spec(
        "command_velocity",
        "float",
        0.0,
        "commanded velocity for full torque at rest [rad/s]; 0: automatic",
        0.0,
        100.0,
    ),
    Spec(
        "moving_velocity",
        "float",
        0.0,
        "measured velocity from which motion itself decides [rad/s]; 0: automatic",
        0.0,
        100.0,
    ),
    Spec(
        "away",
        "float",
        0.0,
        "share of the torque that is left when a joint moves away from a goal that rests; 0: automatic (0.3)",
        0.0,
        1.0,
    ),
)
"""Rest and reversals, for all joints and for each, in the joint's coordinates; what a joint says goes first."""

COMPENSATED_JOINT: Table = (
    Spec("parameter_file", "text", "", "parameter file of the joint, as `stribeck fit` writes it"),
    *JOINT_MAP,
    Spec(
        "max_torque",
        "float",
        0.0,
        "the friction torque stays within ± this [N m, at the servo]; 0: half the stall torque of the datasheet",
        0.0,
        1e4,
    ),
    Spec(
        "p_gain",
        "float",
        0.0,
        "goal_offset: firmware gain, in firmware units; 0: what telemetry says",
        0.0,
        1e6,
    ),
    Spec(
        "supply_voltage",
        "float",
        0.0,
        "goal_offset: supply [V]; 0: what telemetry says, until then the servo's nominal one",
        0.0,
        1e3,
    ),
    Spec(
        "inertia",
        "float",
        0.0,
        "without urdf: inertia of what hangs on the joint, rotor excluded [kg m^2]; 0: not known, or the load's",
        0.0,
        1e6,
    ),
    Spec(
        "load_mass",
        "float",
        0.0,
        "without urdf, for a servo on a bench: mass at the end of the rod [kg]",
        0.0,
        1e4,
    ),
    Spec("load_length", "float", 0.0, "length of that rod, from the shaft to the mass [m]", 0.0, 100.0),
    Spec("rod_mass", "float", 0.0, "mass of that rod, which is uniform [kg]", 0.0, 1e4),
    *TUNING,
    Spec(
        "presliding",
        "float",
        0.0,
        "motion after a reversal within which friction turns round [rad]; 0: automatic",
        0.0,
        1.0,
    ),
)
"""Parameters of each joint of the compensation, under ``<joint>.``."""

_COMPENSATION_COMMON: Table = (
    Spec("joints", "texts", [], "joints to compensate; each has a group of parameters of its own"),
    Spec(
        "output_mode",
        "text",
        "friction_only",
        "friction_only: friction torque alone; sum: controller's effort + friction; goal_offset: goal of a "
        "position-controlled servo, offset so that its firmware produces the torque; current: friction current",
        choices=OUTPUT_MODES,
    ),
    Spec(
        "output_type",
        "text",
        "array",
        "array: std_msgs/Float64MultiArray in the order of joints; joint_state: sensor_msgs/JointState",
        choices=("array", "joint_state"),
    ),
    Spec(
        "command_type",
        "text",
        "joint_state",
        "type of the controller's commands: joint_state, or array (efforts for sum, goals else, in the order of joints)",
        choices=("joint_state", "array"),
    ),
    Spec(
        "effort_meaning",
        "text",
        "",
        "what effort in /joint_states is: motor (torque of the motor), link (torque at the link), none. No default: "
        "load-dependent laws need to know",
        choices=("", *EFFORT_MEANINGS),
    ),
    Spec("command_timeout", "float", 0.1, "commands older than this are not passed on [s]", 0.005, 10.0),
    Spec(
        "pause_limit",
        "float",
        0.04,
        "a node that stood still for so long stands back by itself [s]; shorter than lease",
        0.02,
        10.0,
    ),
    Spec(
        "lease",
        "float",
        0.05,
        "the guard takes over from a node that gives no sign of life for so long [s]",
        0.03,
        10.0,
    ),
)

COMPENSATION: Table = (
    *_COMPENSATION_COMMON,
    Spec("gain", "float", 0.8, "share of the friction that is cancelled", 0.0, 2.0, live=True),
    Spec(
        "friction_quantile",
        "float",
        0.5,
        "friction is taken at this quantile of the parameter files' intervals; 0.5: their values, lower: cautious",
        0.001,
        0.5,
    ),
    Spec("state_timeout", "float", 0.04, "states older than this: zero torque [s]", 0.005, 10.0),
    Spec("ramp_time", "float", 0.5, "from zero to full torque after a start or a doubt [s]", 0.0, 60.0),
    Spec(
        "slew_limit",
        "float",
        0.0,
        "largest change of torque [N m/s]; 0: 50 times the limit per second",
        0.0,
        1e6,
    ),
    Spec(
        "other_joints",
        "text",
        "refuse",
        "states with joints that are not listed: zero torque, or ignored",
        choices=("refuse", "ignore"),
    ),
    *TUNING,
    Spec(
        "control",
        "text",
        "tracking",
        "what goals are for: tracking (what the friction law leaves is cancelled too), impedance (the joint may yield)",
        choices=CONTROLS,
    ),
    Spec(
        "urdf",
        "text",
        "",
        "URDF of the robot, from which the momentum tells how much friction there is; other joints are locked at 0; "
        "empty: inertia or load of each joint",
    ),
    Spec(
        "gravity",
        "floats",
        [],
        "urdf: acceleration of free fall in the frame of its root link, three numbers [m/s^2]; empty: it stands upright",
        0,
        3,
    ),
    Spec(
        "adapt",
        "bool",
        True,
        "learn how much friction there is now; needs urdf, or inertia or load of the joints",
    ),
    Spec(
        "sure",
        "float",
        0.25,
        "share of the identified friction that is there for sure; without goals no more is cancelled at first",
        0.0,
        1.0,
    ),
    Spec(
        "learned_gain",
        "float",
        1.0,
        "the gain goes towards this as friction is learnt, to 1.25 times gain at most",
        0.0,
        1.0,
    ),
    Spec(
        "loop_delay",
        "float",
        0.0,
        "from a measurement to the torque that it makes [s]; 0: two periods of the states",
        0.0,
        1.0,
    ),
    Spec(
        "state_lag",
        "float",
        0.1,
        "states that arrive this much later than others are not used [s]",
        0.0,
        10.0,
    ),
    Spec(
        "state_file",
        "text",
        "",
        "file that keeps what was learnt between runs (JSON); empty: it is not kept",
    ),
    Spec(
        "goal_topic",
        "text",
        "",
        "sum, friction_only: topic of the goals that the controller follows; empty: those in its commands, if any",
    ),
    Spec(
        "goal_type",
        "text",
        "joint_state",
        "joint_state; array: std_msgs/Float64MultiArray of positions in the order of joints; joint_trajectory: "
        "trajectory_msgs/JointTrajectory; controller_state: control_msgs/JointTrajectoryControllerState",
        choices=tuple(GOAL_TYPES),
    ),
    Spec(
        "temperature_margin",
        "float",
        15.0,
        "warn if the servo is this much warmer or colder than at the fit [K]",
        0.0,
        200.0,
    ),
    Spec(
        "guarded",
        "bool",
        False,
        "a guard runs beside this node: it passes commands on while this node is not enabled",
    ),
    Spec(
        "automatic_returns",
        "int",
        0,
        "so often the node compensates again by itself after the guard took over, until somebody enables it; "
        "0: only when enabled",
        0,
        1000,
    ),
    Spec(
        "latency_samples", "int", 2000, "cycles that the figures in diagnostics are taken from", 100, 1000000
    ),
    Spec("enabled", "bool", True, "compensate as soon as the node is active; else wait for ~/enable"),
)
"""Parameters of the compensation node."""

GUARD: Table = (
    *_COMPENSATION_COMMON,
    Spec(
        "slew_limit",
        "float",
        0.0,
        "sum, goal_offset: how fast the friction is taken back [N m/s]; 0: 50 times the limit per second",
        0.0,
        1e6,
    ),
)
"""Parameters of the guard."""

IDENTIFICATION: Table = (
    Spec("watch", "text", "", "folder with the bags to identify from"),
    Spec(
        "min_bags",
        "int",
        0,
        "a fit starts by itself when the folder holds so many finished bags, and again when more have come; "
        "0: only on ~/identify",
        0,
        1000000,
        live=True,
    ),
    Spec("settle_time", "float", 5.0, "a fit starts by itself when no bag came for so long [s]", 0.0, 3600.0),
    Spec("output", "text", "", "parameter file to write; the one before is kept beside it, with a number"),
    Spec("model", "text", "m6", "friction law", choices=tuple(LAWS), live=True),
    Spec("actuator", "text", "", "servo by name, or a YAML file; empty: the recordings'", live=True),
    Spec("joint", "text", "", "the joint to identify, of bags with several", live=True),
    Spec("fit_options", "texts", [], "further options of `stribeck fit`, one word each", live=True),
    Spec("python", "text", "", "interpreter that `stribeck[fit]` is installed for; empty: this node's"),
    Spec("exit_when_done", "bool", False, "end the process after one fit, with exit code 1 if that failed"),
)
"""Parameters of the identification node."""

SERVO: Table = (
    Spec(
        "config",
        "text",
        "",
        "YAML file of the servos: the same as for `stribeck record`, see config/record.yaml",
    ),
    Spec("port", "text", "", "serial port; empty: the file's"),
    Spec("rate", "float", 0.0, "cycles per second [Hz]; 0: the file's", 0.0, 2000.0),
    Spec(
        "p_gain",
        "floats",
        [],
        "position gain in firmware units, one for all joints or one for each; empty: the file's",
        0,
        254,
        live=True,
    ),
    Spec("enabled", "bool", True, "obey goals as soon as the node is active; else wait for ~/enable"),
)
"""Parameters of the servo node."""

COMMANDERS = ("servo", "forward", "trajectory", "trajectory_action")

EXCITATION: Table = (
    Spec(
        "config",
        "text",
        "",
        "YAML file of joints and plays: the same as for `stribeck record`, see config/record.yaml; without port "
        "and servos for a robot that others drive",
    ),
    Spec(
        "commander",
        "text",
        "servo",
        "who moves the joints: the servo node, a forward_command_controller, or a joint_trajectory_controller by "
        "its topic or its action",
        choices=COMMANDERS,
    ),
    Spec(
        "controller",
        "text",
        "",
        "name of the controller; empty: forward_position_controller or joint_trajectory_controller",
    ),
    Spec("servo_node", "text", "servo", "name of the servo node"),
    Spec(
        "gain_node",
        "text",
        "",
        "node whose parameter sets the firmware gain; empty: the servo node with commander servo, else nobody",
    ),
    Spec("gain_parameter", "text", "p_gain", "that parameter: a list of floats, one for all joints"),
    Spec("output", "text", "", "folder for the bags; empty: the file's"),
    Spec("record", "bool", True, "record a bag of every run"),
    Spec("autoplay", "bool", False, "start as soon as the node is active; else wait for ~/start"),
    Spec(
        "exit_when_done",
        "bool",
        False,
        "end the process when everything is played, with exit code 1 if that failed",
    ),
    Spec("rate", "float", 0.0, "goals per second [Hz]; 0: the file's", 0.0, 2000.0),
    Spec(
        "patience", "float", 10.0, "how long the start waits for the commander and for states [s]", 0.1, 600.0
    ),
    Spec("allow_overvoltage", "bool", False, "record although the supply is above the servos' rating"),
)
"""Parameters of the excitation node."""

RECORDER: Table = (
    Spec("output", "text", "bags/recorded", "folder for the bags"),
    Spec("prefix", "text", "recording", "bags are called <prefix>_<number>"),
    Spec(
        "topics",
        "texts",
        [],
        "further topics as `NAME TYPE`, for example `/imu sensor_msgs/msg/Imu`; those of the bag contract are always "
        "recorded",
    ),
)
"""Parameters of the recorder node."""


def joint_table(table: Table, joint: str) -> Table:
    """A table of one joint under its prefix."""
    return tuple(
        Spec(f"{joint}.{s.name}", s.kind, s.default, s.description, s.lower, s.upper, s.choices, s.live)
        for s in table
    )


def complete(table: Iterable[Spec], given: Mapping[str, Any], what: str) -> dict[str, Value]:
    """All values of a table: those given, checked, and defaults.

    :raises ConfigError: for unknown names or values that do not fit.
    """
    specs = {spec.name: spec for spec in table}
    strict.check_keys(given, (), specs, what, ConfigError)
    return {
        name: spec.check(given[name], f"{what}: {name}") if name in given else spec.default
        for name, spec in specs.items()
    }


def read_yaml(path: Path, node: str, table: Table, per_joint: Table = ()) -> dict[str, Value]:
    """Values for a node from a ROS parameter file, flat, with those of each joint under ``<joint>.``.

    Sections count as they do for ROS (:mod:`stribeck.nodes.sections`): the last one that gives a parameter.

    :param node: its name, or its fully qualified one.
    :raises ConfigError: for a file that is no parameter file, or values that do not fit.
    """
    given: dict[str, Any] = {}
    for section in sections_of(path, node):
        given |= _flat(section.values)
    names = given.get("joints", [])
    joints = names if isinstance(names, list) else []
    full = (*table, *(spec for joint in joints for spec in joint_table(per_joint, str(joint))))
    given.pop("use_sim_time", None)
    return complete(full, given, str(path))


def _flat(group: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in group.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


KNOWN_NAMES = frozenset(
    spec.name
    for table in (COMPENSATION, GUARD, IDENTIFICATION, SERVO, EXCITATION, RECORDER)
    for spec in table
)
"""Parameters of some node: a section ``/**`` may hold them for others."""
