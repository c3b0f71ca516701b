"""Friction compensation between a controller of efforts and ros2_control's forward_command_controller.

ros2 launch stribeck ros2_control.launch.py, or a copy of this file by its path; beside it the controller_manager with
controllers.yaml, and both of its controllers active.
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.substitutions import FindPackageShare


def generate_launch_description():
    """compensate.launch.py with the topics of this robot."""
    compensate = PathJoinSubstitution([FindPackageShare("stribeck"), "launch", "compensate.launch.py"])
    given = {name: LaunchConfiguration(name) for name in ("params_file", "namespace")}
    topics = {
        "controller_command": "my_controller/efforts",
        "compensated_command": "friction_effort_controller/commands",
        "joint_states": "joint_states",
    }
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "params_file",
                default_value=str(Path(__file__).with_name("compensation.yaml")),
                description="parameters of compensation and guard, a YAML file",
            ),
            DeclareLaunchArgument(
                "namespace",
                default_value="",
                description="namespace of the robot, its controllers and topics",
            ),
            IncludeLaunchDescription(compensate, launch_arguments={**given, **topics}.items()),
        ]
    )
