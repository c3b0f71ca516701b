"""Identify friction: a node that watches a folder with bags, and fits in a child process."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

OVER_THE_FILE = {
    "watch": "folder with the bags",
    "output": "parameter file to write",
    "python": "interpreter that stribeck[fit] is installed for",
}


def generate_launch_description():
    """The identification node, brought to active."""
    config = PathJoinSubstitution([FindPackageShare("stribeck"), "config", "identification.yaml"])
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "config", default_value=config, description="parameters of the node, a YAML file"
            ),
            *(
                DeclareLaunchArgument(name, default_value="", description=f"{text}; empty: as the file says")
                for name, text in OVER_THE_FILE.items()
            ),
            DeclareLaunchArgument(
                "friction_parameters",
                default_value="friction_parameters",
                description="topic: the parameters, latched, as JSON",
            ),
            DeclareLaunchArgument(
                "autostart", default_value="true", description="false: wait for `ros2 lifecycle set`"
            ),
            DeclareLaunchArgument("log_level", default_value="info", description="of the node"),
            OpaqueFunction(function=identification),
        ]
    )


def identification(context):
    """The node, with what was given over its file."""
    given = {name: LaunchConfiguration(name).perform(context) for name in OVER_THE_FILE}
    over = {name: ParameterValue(text, value_type=str) for name, text in given.items() if text}
    return [
        Node(
            package="stribeck",
            executable="identification",
            name="identification",
            output="screen",
            parameters=[
                LaunchConfiguration("config"),
                {**over, "autostart": ParameterValue(LaunchConfiguration("autostart"), value_type=bool)},
            ],
            remappings=[("friction_parameters", LaunchConfiguration("friction_parameters"))],
            ros_arguments=["--log-level", LaunchConfiguration("log_level")],
        )
    ]
