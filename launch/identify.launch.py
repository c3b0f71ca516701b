"""Identifies friction: starts a node that watches a folder for bags and fits them in a child process.

Fails if the node does.
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from stribeck.nodes.launching import FailureReport

OVER_THE_FILE = {
    "watch": "folder with the bags",
    "output": "parameter file to write",
    "python": "interpreter with stribeck[fit]",
}


def generate_launch_description():
    """The identification node, configured and activated."""
    config = PathJoinSubstitution([FindPackageShare("stribeck"), "config", "identification.yaml"])
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "config", default_value=config, description="parameters of the node, a YAML file"
            ),
            *(
                DeclareLaunchArgument(name, default_value="", description=f"{text}; empty: value in the file")
                for name, text in OVER_THE_FILE.items()
            ),
            DeclareLaunchArgument(
                "friction_parameters",
                default_value="friction_parameters",
                description="topic: friction parameters as JSON, latched",
            ),
            DeclareLaunchArgument(
                "namespace", default_value="", description="namespace of the node and of relative topics"
            ),
            DeclareLaunchArgument(
                "autostart", default_value="true", description="false: wait for `ros2 lifecycle set`"
            ),
            DeclareLaunchArgument("log_level", default_value="info", description="log level of the node"),
            OpaqueFunction(function=identification),
        ]
    )


def identification(context):
    """The node, with launch arguments that override the parameter file."""
    given = {name: LaunchConfiguration(name).perform(context) for name in OVER_THE_FILE}
    over = {name: ParameterValue(text, value_type=str) for name, text in given.items() if text}
    autostart = ParameterValue(LaunchConfiguration("autostart"), value_type=bool)
    failure = FailureReport(stays=True)
    return [
        failure.handler,
        Node(
            package="stribeck",
            executable="identification",
            name="identification",
            namespace=LaunchConfiguration("namespace"),
            on_exit=failure.ended,
            output="screen",
            parameters=[
                LaunchConfiguration("config"),
                {**over, "autostart": autostart, "exit_on_failure": True},
            ],
            remappings=[("friction_parameters", LaunchConfiguration("friction_parameters"))],
            ros_arguments=["--log-level", LaunchConfiguration("log_level")],
        ),
    ]
