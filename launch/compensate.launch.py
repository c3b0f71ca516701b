"""Cancel friction: the compensation node and, in a process of its own, its guard."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

TOPICS = {
    "joint_states": "measured states in",
    "controller_command": "the controller's commands in: goals, or efforts in mode sum",
    "compensated_command": "what goes to the joints: friction torque, efforts, goals or currents",
}


def generate_launch_description():
    """Both nodes with one parameter file, brought to active."""
    shared = FindPackageShare("stribeck")
    config = PathJoinSubstitution([shared, "config", "compensation.yaml"])
    arguments = [
        DeclareLaunchArgument(
            "config", default_value=config, description="parameters of both nodes, a YAML file"
        ),
        DeclareLaunchArgument(
            "autostart", default_value="true", description="false: wait for `ros2 lifecycle set`"
        ),
        DeclareLaunchArgument("use_sim_time", default_value="false", description="take the time from /clock"),
        DeclareLaunchArgument("log_level", default_value="info", description="of both nodes"),
        *(
            DeclareLaunchArgument(name, default_value=name, description=f"topic: {text}")
            for name, text in TOPICS.items()
        ),
    ]
    switches = {
        name: ParameterValue(LaunchConfiguration(name), value_type=bool)
        for name in ("autostart", "use_sim_time")
    }
    common = {
        "package": "stribeck",
        "output": "screen",
        "remappings": [(name, LaunchConfiguration(name)) for name in TOPICS],
        "ros_arguments": ["--log-level", LaunchConfiguration("log_level")],
    }
    return LaunchDescription(
        [
            *arguments,
            # The guard first: it is in charge until compensation is enabled.
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
