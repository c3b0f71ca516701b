"""Parameters of all nodes: one typed class per node, against which a test checks ``config/*.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stribeck.files.declaration import NodeParameters, ParameterGroup, parameter
from stribeck.live.controller_goals import GOAL_TYPES
from stribeck.live.friction import EFFORT_MEANINGS
from stribeck.live.settings import CONTROLS, OUTPUT_MODES, Control, OutputMode
from stribeck.model.law import LAWS


@dataclass(frozen=True)
class StartParameters(ParameterGroup):
    """Parameters of every node for its start."""

    autostart: bool = parameter(False, "configure and activate at start")
    exit_on_failure: bool = parameter(False, "end the process with exit code 1 if autostart fails")
    lockstep: str = parameter(
        "", "socket of `stribeck emulate --simulated`, for lock-step with emulated servos; empty: real time"
    )


@dataclass(frozen=True)
class RealTimeParameters(ParameterGroup):
    """Parameters of the nodes that work in the control loop."""

    realtime_priority: int = parameter(
        0,
        "priority of all threads (SCHED_FIFO), with locked memory, where the system permits it; 0: neither",
        0,
        99,
    )


@dataclass(frozen=True)
class TuningParameters(ParameterGroup):
    """Rest and reversal thresholds in joint coordinates, for all joints; per-joint values take precedence."""

    deadband: float = parameter(
        0.0, "position error that is tolerated at rest [rad]; 0: from the servo's resolution", 0.0, 1.0
    )
    error_width: float = parameter(
        0.0, "additional error at which the torque is largest [rad]; 0: automatic", 0.0, 1.0
    )
    command_velocity: float = parameter(
        0.0,
        "commanded velocity at which the torque of a joint at rest is largest [rad/s]; 0: automatic",
        0.0,
        100.0,
    )
    moving_velocity: float = parameter(
        0.0,
        "velocity above which the direction of friction is that of the motion [rad/s]; 0: automatic",
        0.0,
        100.0,
    )
    overshoot_fraction: float = parameter(
        0.0,
        "fraction of the torque that remains while a joint moves away from a goal at rest; 0: automatic (0.3)",
        0.0,
        1.0,
    )


@dataclass(frozen=True)
class CompensatedJointParameters(TuningParameters):
    """Parameters of each joint of the compensation node and the guard."""

    parameter_file: str = parameter(
        "", "file of drives; the joint is found by its name if there are several; empty: drives_file"
    )
    sign: float = parameter(
        1.0, "1 or -1: direction of the joint relative to its parameter file or servo", -1.0, 1.0
    )
    ratio: float = parameter(1.0, "turns of the servo per turn of the joint", 1e-4, 1e4)
    offset: float = parameter(0.0, "position of the joint at the zero of the servo [rad]", -1e3, 1e3)
    enabled: bool = parameter(
        True, "compensate this joint; false: its friction torque is zero, the other joints are compensated"
    )
    max_torque: float = parameter(
        0.0,
        "limit of the friction torque on the servo side [N m]; 0: half the datasheet's stall torque",
        0.0,
        1e4,
    )
    p_gain: float = parameter(
        0.0,
        "for output_mode goal_offset: firmware gain, in units of the firmware; 0: from the file, or from telemetry",
        0.0,
        1e6,
    )
    supply_voltage: float = parameter(
        0.0,
        "for output_mode goal_offset: supply voltage [V]; 0: from telemetry, and before that from the file, or nominal",
        0.0,
        1e3,
    )
    inertia: float = parameter(
        0.0,
        "without urdf: inertia of the load, without rotor [kg m^2]; 0: unknown, or computed from load_mass, load_length and rod_mass",
        0.0,
        1e6,
    )
    load_mass: float = parameter(
        0.0, "without urdf, for a servo on a bench: mass at the end of the rod [kg]", 0.0, 1e4
    )
    load_length: float = parameter(
        0.0, "without urdf: length of the rod, from the shaft to the mass [m]", 0.0, 100.0
    )
    rod_mass: float = parameter(0.0, "without urdf: mass of the uniform rod [kg]", 0.0, 1e4)
    presliding: float = parameter(
        0.0, "displacement after a reversal within which friction changes sign [rad]; 0: automatic", 0.0, 1.0
    )


@dataclass(frozen=True)
class InterfaceParameters(NodeParameters, RealTimeParameters):
    """Parameters shared by the compensation node and the guard."""

    joint_class = CompensatedJointParameters

    joints: list[str] = parameter([], "joints to compensate; each has a group of parameters")
    by_joint: Mapping[str, CompensatedJointParameters] = field(default_factory=dict)
    drives_file: str = parameter(
        "",
        "file of drives of all joints without their own parameter_file, as written by every identification",
    )
    output_mode: OutputMode = parameter(
        "friction_only",
        "friction_only: friction torque alone; sum: controller's effort + friction; goal_offset: goal of a "
        "position-controlled servo, offset so that its firmware produces the torque; current: friction current",
        choices=OUTPUT_MODES,
    )
    output_type: str = parameter(
        "array",
        "array: std_msgs/Float64MultiArray in the order of joints; joint_state: sensor_msgs/JointState",
        choices=("array", "joint_state"),
    )
    command_type: str = parameter(
        "joint_state",
        "type of the controller's commands: joint_state, or array (efforts in mode sum, otherwise goals)",
        choices=("joint_state", "array"),
    )
    effort_meaning: str = parameter(
        "",
        "meaning of effort in /joint_states: motor (torque of the motor), link (torque at the link), none; required for load-dependent laws",
        choices=("", *EFFORT_MEANINGS),
    )
    command_timeout: float = parameter(0.1, "age above which commands are not passed on [s]", 0.005, 10.0)
    pause_limit: float = parameter(
        0.04,
        "a node that is suspended for longer stops compensating [s]; must be shorter than heartbeat_timeout",
        0.02,
        10.0,
    )
    heartbeat_timeout: float = parameter(
        0.05, "time without a heartbeat of the node after which the guard takes over [s]", 0.03, 10.0
    )
    slew_limit: float = parameter(
        0.0,
        "largest rate of change of the friction torque [N m/s]; 0: 50 times max_torque per second",
        0.0,
        1e6,
    )


@dataclass(frozen=True)
class GuardParameters(InterfaceParameters):
    """Parameters of the guard."""


@dataclass(frozen=True)
class CompensationParameters(InterfaceParameters, TuningParameters):
    """Parameters of the compensation node."""

    drives_file: str = parameter(
        "",
        "file of drives of all joints without their own parameter_file, as written by every identification; "
        "it can be changed while the node runs, without a step in the torque",
        live=True,
    )
    gain: float = parameter(0.8, "fraction of the friction that is cancelled", 0.0, 2.0, live=True)
    friction_quantile: float = parameter(
        0.5,
        "quantile of the intervals in the parameter files that is used; 0.5: the estimates, lower: less friction",
        0.001,
        0.5,
    )
    state_timeout: float = parameter(0.04, "age of states above which the torque is zero [s]", 0.005, 10.0)
    ramp_time: float = parameter(
        0.5, "time from zero to full torque after a start or a rejected state [s]", 0.0, 60.0
    )
    other_joints: str = parameter(
        "refuse",
        "if states contain unlisted joints: refuse (zero torque), or ignore these joints",
        choices=("refuse", "ignore"),
    )
    control: Control = parameter(
        "tracking",
        "purpose of goals: tracking (also compensates residual friction), impedance (stays compliant)",
        choices=CONTROLS,
    )
    urdf: str = parameter(
        "",
        "URDF of the robot, to learn the current friction; other joints are assumed to be locked at 0; empty: see inertia",
    )
    gravity: list[float] = parameter(
        [], "acceleration of gravity in the frame of the root link [m/s^2]; empty: -z", 0, 3
    )
    payload: list[float] = parameter(
        [], "payload that the urdf lacks: mass [kg], centre of mass x, y, z [m] in payload_link", 0, 4
    )
    payload_link: str = parameter(
        "", "link of the urdf that carries the payload; empty: that of the last joint"
    )
    adapt: bool = parameter(True, "learn the current friction; needs urdf, or inertia or load of the joints")
    certain_fraction: float = parameter(
        0.25,
        "guaranteed fraction of the identified friction; without goals only this fraction is compensated at first",
        0.0,
        1.0,
    )
    learned_gain: float = parameter(
        1.0, "gain that is approached as friction is learnt, at most 1.25 times gain", 0.0, 1.0
    )
    loop_delay: float = parameter(
        0.0, "delay from a measurement to the resulting torque [s]; 0: two periods of the states", 0.0, 1.0
    )
    state_lag: float = parameter(
        0.1, "delay of states, in addition to the usual one, above which they are not used [s]", 0.0, 10.0
    )
    state_file: str = parameter("", "JSON file that stores what was learnt for the next start; empty: none")
    goal_topic: str = parameter(
        "", "modes sum and friction_only: topic of the controller's goals; empty: goals in its commands"
    )
    goal_type: str = parameter(
        "joint_state",
        "type of goal_topic: joint_state; array: std_msgs/Float64MultiArray of positions in the order of joints; joint_trajectory: "
        "trajectory_msgs/JointTrajectory; controller_state: control_msgs/JointTrajectoryControllerState",
        choices=tuple(GOAL_TYPES),
    )
    temperature_margin: float = parameter(
        15.0,
        "warn if the servo is warmer or colder by this amount than in the recordings of the fit [K]",
        0.0,
        200.0,
    )
    guarded: bool = parameter(
        False, "a guard runs beside this node, and passes commands on while this node is not enabled"
    )
    automatic_returns: int = parameter(
        0,
        "how often the node may resume automatically after the guard has taken over; enabling it resets the count",
        0,
        1000,
    )
    guiding_speed: float = parameter(
        1.0, "zero torque: speed above which joints are braked [rad/s]", 0.01, 100.0
    )
    gravity_error: float = parameter(
        0.1,
        "zero torque: relative error of the gravity torque up to which joints at rest do not move",
        0.0,
        1.0,
    )
    guiding_temperature: float = parameter(
        0.0, "zero torque: temperature of a motor at which the mode ends [°C]; 0: none", 0.0, 200.0
    )
    tool_point: list[float] = parameter(
        [], "point of external_wrench in the frame of the last joint [m]; empty: its origin", 0, 3
    )
    latency_samples: int = parameter(
        2000, "number of cycles in the latency statistics of the diagnostics", 100, 1000000
    )
    enabled: bool = parameter(True, "compensate as soon as the node is active; otherwise wait for ~/enable")


ENGINE_NAMES = ("servo", "joint", "arm", "robot", "mechanism", "posterior", "geometry")


@dataclass(frozen=True)
class IdentificationParameters(NodeParameters):
    """Parameters of the identification node."""

    watch: str = parameter("", "folder with the bags to identify from")
    min_bags: int = parameter(
        0,
        "start automatically at this number of finished bags, and again when more arrive; 0: only on ~/identify",
        0,
        1000000,
        live=True,
    )
    settle_time: float = parameter(
        5.0, "an automatic fit starts when no bag has arrived for this time [s]", 0.0, 3600.0
    )
    output: str = parameter(
        "",
        "parameter file to write; for arm, robot, geometry and the posterior of an arm a folder; previous files are kept beside it, with a number",
    )
    engine: str = parameter(
        "servo",
        "command of `stribeck identify` that is run; posterior: identify servo --bayes, or identify arm --bayes if fit_options contain --machine",
        choices=ENGINE_NAMES,
    )
    model: str = parameter(
        "m6",
        "friction law of a servo; auto: chosen by cross-validation",
        choices=(*LAWS, "auto"),
        live=True,
    )
    actuator: str = parameter("", "servo by name, or a YAML file; empty: as in the recordings", live=True)
    joint: str = parameter(
        "",
        "for engines servo, joint and posterior: joint to identify in bags with several; names separated by commas give one file of several joints",
        live=True,
    )
    fit_options: list[str] = parameter([], "further options of the command, one word each", live=True)
    python: str = parameter(
        "", "Python interpreter in which stribeck with the engine's extra is installed; empty: this node's"
    )
    exit_when_done: bool = parameter(
        False, "end the process after one fit, with exit code 1 if the fit failed"
    )
    compensation: str = parameter(
        "",
        "name of a compensation node that takes over each result whose verdict is usable, while it runs; empty: none",
    )


@dataclass(frozen=True)
class ServoParameters(NodeParameters, RealTimeParameters):
    """Parameters of the servo node."""

    config: str = parameter(
        "", "YAML file of the servos: the same as for `stribeck record`, see config/record.yaml"
    )
    port: str = parameter("", "serial port; empty: as in the YAML file")
    rate: float = parameter(0.0, "cycles per second [Hz]; 0: as in the YAML file", 0.0, 2000.0)
    p_gain: list[float] = parameter(
        [], "firmware gain, one for all joints or one for each; empty: as in the YAML file", 0, 254, live=True
    )
    enabled: bool = parameter(
        True, "execute goals as soon as the node is active; otherwise wait for ~/enable"
    )


COMMANDERS = ("servo", "forward", "trajectory", "trajectory_action")


@dataclass(frozen=True)
class ExcitationParameters(NodeParameters):
    """Parameters of the excitation node."""

    config: str = parameter(
        "",
        "YAML file of joints and plays: the same as for `stribeck record`, see config/record.yaml; without port and servos if another driver moves the robot",
    )
    commander: str = parameter(
        "servo",
        "what moves the joints: servo (the servo node), forward (a forward_command_controller), trajectory "
        "or trajectory_action (topic or action of a joint_trajectory_controller)",
        choices=COMMANDERS,
    )
    controller: str = parameter(
        "", "name of the controller; empty: forward_position_controller or joint_trajectory_controller"
    )
    servo_node: str = parameter("servo", "name of the servo node")
    gain_node: str = parameter(
        "", "node with a parameter for the gain; empty: the servo node if commander is servo"
    )
    gain_parameter: str = parameter("p_gain", "name of that parameter: a list of floats, one for all joints")
    output: str = parameter("", "folder for the bags; empty: as in the YAML file")
    record: bool = parameter(True, "record a bag of every run")
    autoplay: bool = parameter(False, "start as soon as the node is active; otherwise wait for ~/start")
    exit_when_done: bool = parameter(
        False, "end the process when everything has been played, with exit code 1 if that failed"
    )
    topics: list[str] = parameter(
        [], "further topics to record, such as '/tracker/pose geometry_msgs/msg/PoseStamped'"
    )
    rate: float = parameter(0.0, "goals per second [Hz]; 0: as in the YAML file", 0.0, 2000.0)
    patience: float = parameter(
        10.0, "time to wait at the start for the commander and for states [s]", 0.1, 600.0
    )
    allow_overvoltage: bool = parameter(False, "allow recording above the rated supply voltage of the servos")
    urdf: str = parameter("", "URDF of the robot, for self-collisions and torques in ~/dry_run")


@dataclass(frozen=True)
class RecorderParameters(NodeParameters):
    """Parameters of the recorder node."""

    output: str = parameter("bags/recorded", "folder for the bags")
    prefix: str = parameter("recording", "bags are called <prefix>_<number>")
    topics: list[str] = parameter(
        [],
        "further topics as `NAME TYPE`, for example `/imu sensor_msgs/msg/Imu`; those of a Stribeck bag are always recorded",
    )


NODES: dict[str, type[NodeParameters]] = {
    "compensation": CompensationParameters,
    "guard": GuardParameters,
    "identification": IdentificationParameters,
    "servo": ServoParameters,
    "excitation": ExcitationParameters,
    "recorder": RecorderParameters,
}
"""Parameters by the node's usual name."""

ALL_NAMES = frozenset(spec.name for parameters in NODES.values() for spec in parameters.specs())
"""Parameters of all nodes; a section ``/**`` may set parameters of other nodes."""
