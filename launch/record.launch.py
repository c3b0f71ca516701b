"""Records runs: starts the servo node and the excitation node, which plays trajectories.

Exits when all are played, with exit code 1 if a node fails.
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from stribeck.nodes.launching import FailureReport, parameters_of, refuse_earlier_arguments


def generate_launch_description():
    """Both nodes, configured and activated; the excitation starts at once unless `autoplay` is false."""
    config = PathJoinSubstitution([FindPackageShare("stribeck"), "config"])
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "bench_file",
                default_value=[config, "/record_xl330.yaml"],
                description="servos, limits, loads and plays, a YAML file as for `stribeck record`",
            ),
            DeclareLaunchArgument(
                "port", default_value="", description="serial port; empty: as in bench_file"
            ),
            DeclareLaunchArgument(
                "output",
                default_value="~/stribeck/bags",
                description="folder for the bags; empty: as in bench_file",
            ),
            DeclareLaunchArgument(
                "autoplay",
                default_value="true",
                description="false: wait for /excitation/start, and keep running after the last run",
            ),
            DeclareLaunchArgument(
                "params_file",
                default_value="",
                description="parameters of both nodes, a YAML file; they replace those in config/servo.yaml and config/excitation.yaml",
            ),
            DeclareLaunchArgument(
                "autostart", default_value="true", description="false: wait for `ros2 lifecycle set`"
            ),
            DeclareLaunchArgument(
                "use_sim_time", default_value="false", description="use the time on /clock"
            ),
            DeclareLaunchArgument(
                "namespace", default_value="", description="namespace of both nodes and of their topics"
            ),
            DeclareLaunchArgument("log_level", default_value="info", description="log level of both nodes"),
            OpaqueFunction(function=refuse_earlier_arguments),
            OpaqueFunction(function=nodes),
        ]
    )


def nodes(context):
    """The two nodes; the launch ends when the excitation node exits, or with the reason of one that fails."""
    failure = FailureReport()
    autoplay = ParameterValue(LaunchConfiguration("autoplay"), value_type=bool)
    shipped = FindPackageShare("stribeck")
    switches = {
        name: ParameterValue(LaunchConfiguration(name), value_type=bool)
        for name in ("autostart", "use_sim_time")
    }
    config = {"config": LaunchConfiguration("bench_file"), **switches, "exit_on_failure": True}
    common = {
        "package": "stribeck",
        "namespace": LaunchConfiguration("namespace"),
        "on_exit": failure.ended,
        "output": "screen",
        "ros_arguments": ["--log-level", LaunchConfiguration("log_level")],
    }
    servo = Node(
        executable="servo",
        name="servo",
        parameters=[
            *parameters_of(context, PathJoinSubstitution([shipped, "config", "servo.yaml"])),
            {**config, **given(context, "port")},
        ],
        **common,
    )
    excitation = Node(
        executable="excitation",
        name="excitation",
        parameters=[
            *parameters_of(context, PathJoinSubstitution([shipped, "config", "excitation.yaml"])),
            {**config, **given(context, "output"), "autoplay": autoplay, "exit_when_done": autoplay},
        ],
        **common,
    )
    return [failure.handler, servo, excitation]


def given(context, name):
    """A launch argument as a parameter, unless it is empty."""
    text = LaunchConfiguration(name).perform(context)
    return {name: ParameterValue(text, value_type=str)} if text else {}
