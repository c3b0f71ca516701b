"""Identifies friction: starts a node that watches a folder for bags and fits them in a child process.

Fails if the node does.
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from stribeck.nodes.launching import FailureReport, parameters_of, refuse_earlier_arguments

OVER_THE_FILE = {
    "watch": "folder with the bags",
    "output": "parameter file to write",
    "python": "interpreter with stribeck[fit]",
}


def generate_launch_description():
    """The identification node, configured and activated."""
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "params_file",
                default_value="",
                description="parameters of the node, a YAML file; they replace those in config/identification.yaml",
            ),
            *(
                DeclareLaunchArgument(name, default_value="", description=f"{text}; empty: as in params_file")
                for name, text in OVER_THE_FILE.items()
            ),
            DeclareLaunchArgument(
                "friction_parameters",
                default_value="friction_parameters",
                description="name of the topic of friction parameters as JSON, latched",
            ),
            DeclareLaunchArgument(
                "namespace", default_value="", description="namespace of the node and of relative topics"
            ),
            DeclareLaunchArgument(
                "autostart", default_value="true", description="false: wait for `ros2 lifecycle set`"
            ),
            DeclareLaunchArgument(
                "use_sim_time", default_value="false", description="use the time on /clock"
            ),
            DeclareLaunchArgument("log_level", default_value="info", description="log level of the node"),
            OpaqueFunction(function=refuse_earlier_arguments),
            OpaqueFunction(function=identification),
        ]
    )


def identification(context):
    """The node, with launch arguments that override the parameter file."""
    given = {name: LaunchConfiguration(name).perform(context) for name in OVER_THE_FILE}
    over = {name: ParameterValue(text, value_type=str) for name, text in given.items() if text}
    switches = {
        name: ParameterValue(LaunchConfiguration(name), value_type=bool)
        for name in ("autostart", "use_sim_time")
    }
    shipped = PathJoinSubstitution([FindPackageShare("stribeck"), "config", "identification.yaml"])
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
                *parameters_of(context, shipped),
                {**over, **switches, "exit_on_failure": True},
            ],
            remappings=[("friction_parameters", LaunchConfiguration("friction_parameters"))],
            ros_arguments=["--log-level", LaunchConfiguration("log_level")],
        ),
    ]
