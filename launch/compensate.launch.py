"""Compensates friction: starts the compensation node and its guard as separate processes.

Ends with the reason of a node that cannot be configured or fails.
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from stribeck.nodes.launching import FailureReport

TOPICS = {
    "joint_states": "measured states (input)",
    "controller_command": "commands of the controller (input): goals, or efforts in mode sum",
    "compensated_command": "commands to the joints (output): friction torque, efforts, goals or currents",
}


def generate_launch_description():
    """Both nodes with one parameter file, configured and activated."""
    shared = FindPackageShare("stribeck")
    config = PathJoinSubstitution([shared, "config", "compensation.yaml"])
    arguments = [
        DeclareLaunchArgument(
            "config", default_value=config, description="parameters of both nodes, a YAML file"
        ),
        DeclareLaunchArgument(
            "namespace", default_value="", description="namespace of both nodes and of relative topics"
        ),
        DeclareLaunchArgument(
            "autostart", default_value="true", description="false: wait for `ros2 lifecycle set`"
        ),
        DeclareLaunchArgument("use_sim_time", default_value="false", description="use the time on /clock"),
        DeclareLaunchArgument("log_level", default_value="info", description="log level of both nodes"),
        *(
            DeclareLaunchArgument(name, default_value=name, description=f"topic: {text}")
            for name, text in TOPICS.items()
        ),
    ]
    switches = {
        name: ParameterValue(LaunchConfiguration(name), value_type=bool)
        for name in ("autostart", "use_sim_time")
    }
    switches["exit_on_failure"] = True
    failure = FailureReport(stays=True)
    common = {
        "on_exit": failure.ended,
        "package": "stribeck",
        "namespace": LaunchConfiguration("namespace"),
        "output": "screen",
        "remappings": [(name, LaunchConfiguration(name)) for name in TOPICS],
        "ros_arguments": ["--log-level", LaunchConfiguration("log_level")],
    }
    return LaunchDescription(
        [
            *arguments,
            failure.handler,
            # The guard starts first, as it is in charge until compensation is enabled.
            Node(
                executable="guard",
                name="guard",
                parameters=[LaunchConfiguration("config"), switches],
                **common,
            ),
            Node(
                executable="compensation",
                name="compensation",
                parameters=[LaunchConfiguration("config"), {**switches, "guarded": True}],
                **common,
            ),
        ]
    )
