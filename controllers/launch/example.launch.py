"""Mock hardware of two joints, a trajectory controller, and friction compensation between them."""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

SHARE = Path(__file__).resolve().parents[1]
LINK = '<inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>'
JOINT = """<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{name}_link"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="3" effort="10" velocity="5"/></joint><link name="{name}_link">{link}</link>"""
CONTROLLED = """<joint name="{name}"><command_interface name="effort"/><state_interface name="position">
<param name="initial_value">0.0</param></state_interface><state_interface name="velocity"/></joint>"""
JOINTS = {"shoulder": "base", "elbow": "shoulder_link"}


def robot() -> str:
    """The robot's URDF with its ros2_control section."""
    joints = "".join(JOINT.format(name=name, parent=parent, link=LINK) for name, parent in JOINTS.items())
    controlled = "".join(CONTROLLED.format(name=name) for name in JOINTS)
    hardware = "<hardware><plugin>mock_components/GenericSystem</plugin></hardware>"
    section = f'<ros2_control name="mock" type="system">{hardware}{controlled}</ros2_control>'
    return f'<robot name="example"><link name="base"/>{joints}{section}</robot>'


def generate_launch_description() -> LaunchDescription:
    """Controller manager and spawners; compensation is spawned before the controller that writes to it."""
    controllers = LaunchConfiguration("controllers")
    names = ["joint_state_broadcaster", "friction_compensation", "joint_trajectory_controller"]
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "controllers",
                default_value=str(SHARE / "config" / "example.yaml"),
                description="parameters of the controller manager and of its controllers",
            ),
            Node(package="robot_state_publisher", executable="robot_state_publisher",
                 parameters=[{"robot_description": robot()}]),
            Node(package="controller_manager", executable="ros2_control_node", parameters=[controllers]),
            Node(package="controller_manager", executable="spawner",
                 arguments=[*names, "--param-file", controllers]),
        ]
    )  # fmt: skip
