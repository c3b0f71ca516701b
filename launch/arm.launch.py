"""From the excitation of an arm to its compensation: plays motions and records them, identifies the arm, compensates.

Each node starts when the one before has done its work; the launch ends with the reason of a node that fails.
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

from stribeck.nodes.launching import FailureReport, parameters_of, refuse_earlier_arguments

ARGUMENTS = {
    "bench_file": "joints, limits and plays of the excitation, a YAML file as for `stribeck record`",
    "model": "URDF of the arm",
}
USUAL = {
    "bags": ("~/stribeck/arm/bags", "folder for the bags"),
    "output": (
        "~/stribeck/arm/result",
        ("folder for the URDF, the drives, and the parameters of the compensation node"),
    ),
    "python": ("", "Python interpreter with stribeck[arm]; empty: as for the node"),
    "compensate": ("true", "false: end after the identification, without compensation"),
    "params_file": (
        "",
        "parameters of all nodes, a YAML file; they replace those in config/excitation.yaml and those of the identified arm",
    ),
    "autostart": ("true", "false: nodes wait for `ros2 lifecycle set`"),
    "use_sim_time": ("false", "use the time on /clock"),
    "namespace": ("", "namespace of all nodes and of relative topics"),
    "log_level": ("info", "log level of all nodes"),
}


def generate_launch_description():
    """The nodes, one after the other."""
    return LaunchDescription(
        [
            *(DeclareLaunchArgument(name, description=text) for name, text in ARGUMENTS.items()),
            *(
                DeclareLaunchArgument(name, default_value=usual, description=text)
                for name, (usual, text) in USUAL.items()
            ),
            OpaqueFunction(function=refuse_earlier_arguments),
            OpaqueFunction(function=nodes),
        ]
    )


def nodes(context):
    """The excitation; what follows is started as it ends."""
    failure = FailureReport(stays=True)
    value = {name: LaunchConfiguration(name).perform(context) for name in (*ARGUMENTS, *USUAL)}
    path = {name: str(Path(value[name]).expanduser().absolute()) for name in ("model", "bags", "output")}
    switches = {name: value[name].lower() == "true" for name in ("autostart", "use_sim_time")}
    start = {**switches, "exit_on_failure": True}
    shipped = PathJoinSubstitution([FindPackageShare("stribeck"), "config", "excitation.yaml"])
    # Read now: when a later node starts, the arguments may be those of another launch file.
    given = {
        step: parameters_of(context, step=step)
        for step in ("excitation", "identification", "guard", "compensation")
    }
    common = {
        "package": "stribeck",
        "namespace": value["namespace"],
        "output": "screen",
        "ros_arguments": ["--log-level", value["log_level"]],
    }

    def identification():
        chosen = {
            "engine": "arm",
            "watch": path["bags"],
            "output": path["output"],
            "python": value["python"],
            "fit_options": ["--model", path["model"]],
            "min_bags": 1,
            "settle_time": 0.0,
            "exit_when_done": True,
            **start,
        }
        last = failure.then(compensation) if value["compensate"].lower() == "true" else failure.last
        return [
            Node(
                executable="identification",
                name="identification",
                parameters=[*given["identification"], chosen],
                on_exit=last,
                **common,
            )
        ]

    def compensation():
        config = str(Path(path["output"]) / "compensation.yaml")
        return [
            Node(
                executable=name,
                name=name,
                parameters=[config, *given[name], {**start, **more}],
                on_exit=failure.ended,
                **common,
            )
            # The guard starts first, as it is in charge until compensation is enabled.
            for name, more in (("guard", {}), ("compensation", {"guarded": True}))
        ]

    played = {"config": value["bench_file"], "output": path["bags"], "autoplay": True, "exit_when_done": True}
    excitation = Node(
        executable="excitation",
        name="excitation",
        parameters=[shipped, *given["excitation"], {**played, **start}],
        on_exit=failure.then(identification),
        **common,
    )
    return [failure.handler, excitation]
