"""Compensation of two robots from one launch, in the namespaces left and right, each with its own parameters.

ros2 launch stribeck two_robots.launch.py, or a copy of this folder by its path.
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.substitutions import FindPackageShare

ROBOTS = ("left", "right")


def generate_launch_description():
    """compensate.launch.py once for each robot."""
    compensate = PathJoinSubstitution([FindPackageShare("stribeck"), "launch", "compensate.launch.py"])
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "params_file",
                default_value=str(Path(__file__).with_name("compensation.yaml")),
                description="parameters of all nodes, with sections for each namespace, a YAML file",
            ),
            *(
                IncludeLaunchDescription(
                    compensate,
                    launch_arguments={
                        "params_file": LaunchConfiguration("params_file"),
                        "namespace": robot,
                    }.items(),
                )
                for robot in ROBOTS
            ),
        ]
    )
