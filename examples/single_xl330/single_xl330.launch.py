"""One XL330: the servo node, friction compensation and its guard. Send goals to /controller_command.

ros2 launch stribeck single_xl330.launch.py port:=/dev/ttyUSB0, or a copy of this file by its path.
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.substitutions import FindPackageShare

HERE = Path(__file__).parent


def generate_launch_description():
    """The servo node, and compensate.launch.py between it and whoever sends goals."""
    compensate = PathJoinSubstitution([FindPackageShare("stribeck"), "launch", "compensate.launch.py"])
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "port", default_value="/dev/ttyUSB0", description="serial port of the servo"
            ),
            DeclareLaunchArgument(
                "namespace", default_value="", description="namespace of all nodes and topics"
            ),
            DeclareLaunchArgument(
                "bench_file",
                default_value=str(HERE / "record.yaml"),
                description="bus, servo and limits, a YAML file as for `stribeck record`",
            ),
            DeclareLaunchArgument(
                "params_file",
                default_value=str(HERE / "compensation.yaml"),
                description="parameters of compensation and guard, a YAML file",
            ),
            IncludeLaunchDescription(
                compensate,
                launch_arguments={
                    name: LaunchConfiguration(name)
                    for name in ("bench_file", "params_file", "port", "namespace")
                }.items(),
            ),
        ]
    )
