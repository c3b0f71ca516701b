"""Compensates friction: starts the compensation node and its guard as separate processes, and the servo node where a bench file is given.

Ends with the reason of a node that cannot be configured or fails.
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from stribeck.nodes.launching import FailureReport, parameters_of, refuse_earlier_arguments

TOPICS = {
    "joint_states": "measured states (input)",
    "controller_command": "topic of the controller's commands (input): goals, or efforts in output_mode sum",
    "compensated_command": (
        "topic of the commands to the joints (output): friction torques, efforts, goals or currents"
    ),
}


def generate_launch_description():
    """The nodes with one parameter file, configured and activated."""
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "params_file",
                description="parameters of compensation and guard, a YAML file: copy config/compensation.yaml and enter your joints",
            ),
            DeclareLaunchArgument(
                "bench_file",
                default_value="",
                description="servos on a serial bus that move the joints, a YAML file as for `stribeck record`; the servo node is then started too, and "
                "receives the compensated goals. Empty: another driver moves the joints",
            ),
            DeclareLaunchArgument(
                "port",
                default_value="",
                description="serial port of the servos; empty: as in bench_file",
            ),
            DeclareLaunchArgument(
                "namespace", default_value="", description="namespace of the nodes and of relative topics"
            ),
            DeclareLaunchArgument(
                "autostart", default_value="true", description="false: wait for `ros2 lifecycle set`"
            ),
            DeclareLaunchArgument(
                "use_sim_time", default_value="false", description="use the time on /clock"
            ),
            DeclareLaunchArgument("log_level", default_value="info", description="log level of the nodes"),
            *(
                DeclareLaunchArgument(name, default_value=name, description=f"topic: {text}")
                for name, text in TOPICS.items()
            ),
            OpaqueFunction(function=refuse_earlier_arguments),
            OpaqueFunction(function=nodes),
        ]
    )


def nodes(context):
    """Guard and compensation, and the servo node where a bench file is given."""
    given = context.launch_configurations
    switches = {
        name: ParameterValue(LaunchConfiguration(name), value_type=bool)
        for name in ("autostart", "use_sim_time")
    }
    switches["exit_on_failure"] = True
    failure = FailureReport(stays=True)
    topics = {name: LaunchConfiguration(name) for name in TOPICS}
    if given["bench_file"] and given["compensated_command"] == "compensated_command":
        topics["compensated_command"] = "joint_goals"  # where the servo node takes goals
    common = {
        "on_exit": failure.ended,
        "package": "stribeck",
        "namespace": LaunchConfiguration("namespace"),
        "output": "screen",
        "ros_arguments": ["--log-level", LaunchConfiguration("log_level")],
    }

    def node(name, parameters, **more):
        return Node(executable=name, name=name, parameters=parameters, **common, **more)

    remappings = list(topics.items())
    # The guard starts first, as it is in charge until compensation is enabled.
    found = [
        failure.handler,
        node("guard", [*parameters_of(context), switches], remappings=remappings),
        node("compensation", [*parameters_of(context), {**switches, "guarded": True}], remappings=remappings),
    ]
    if given["bench_file"]:
        shipped = PathJoinSubstitution([FindPackageShare("stribeck"), "config", "servo.yaml"])
        servo = {"config": given["bench_file"], **({"port": given["port"]} if given["port"] else {})}
        servo = {name: ParameterValue(text, value_type=str) for name, text in servo.items()}
        found.append(node("servo", [shipped, {**switches, **servo}]))
    return found
