"""From candidates to a calibrated arm: chooses poses, visits them and records joints and tracker, identifies the geometry.

Each step starts when the one before has done its work; the launch ends with the reason of one that fails.
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

from stribeck.nodes.launching import FailureReport, parameters_of, refuse_earlier_arguments
from stribeck.session.fit_process import ENGINES, environment_for, find_interpreter

ARGUMENTS = {
    "bench_file": "joints and limits of the excitation, a YAML file as for `stribeck record`; its `plays` names the file `poses`",
    "machine": "YAML file of the arm, with a section `calibration` that names the topics of the tracker",
    "candidates": "file of joint positions from which poses are chosen, one a row",
    "poses": "file for the chosen poses (.yaml), the trajectory that `bench_file` plays",
}
USUAL = {
    "count": ("30", "number of poses to choose"),
    "model": ("", "URDF: no way between poses leads through a self-collision; empty: ways are not checked"),
    "speed": ("0.5", "largest speed between poses [rad/s]"),
    "acceleration": ("1.0", "largest acceleration between poses [rad/s²]"),
    "rest": ("1.5", "rest at each pose [s]"),
    "validate": ("", "measured poses that are predicted; empty: none"),
    "bags": ("~/stribeck/geometry/bags", "folder for the bags"),
    "output": ("~/stribeck/geometry/result", "folder for the calibration"),
    "python": ("", "Python interpreter with stribeck[arm]; empty: as for the node"),
    "params_file": (
        "",
        "parameters of all nodes (commander, topics of the tracker), a YAML file; they replace those in config/excitation.yaml",
    ),
    "autostart": ("true", "false: nodes wait for `ros2 lifecycle set`"),
    "use_sim_time": ("false", "use the time on /clock"),
    "namespace": ("", "namespace of all nodes and of relative topics"),
    "log_level": ("info", "log level of all nodes"),
}


def generate_launch_description():
    """The steps, one after the other."""
    return LaunchDescription(
        [
            *(DeclareLaunchArgument(name, description=text) for name, text in ARGUMENTS.items()),
            *(
                DeclareLaunchArgument(name, default_value=usual, description=text)
                for name, (usual, text) in USUAL.items()
            ),
            OpaqueFunction(function=refuse_earlier_arguments),
            OpaqueFunction(function=steps),
        ]
    )


def steps(context):
    """The choice of poses; what follows is started as it ends."""
    failure = FailureReport(stays=True)
    value = {name: LaunchConfiguration(name).perform(context) for name in (*ARGUMENTS, *USUAL)}
    path = {
        name: str(Path(value[name]).expanduser().absolute()) if value[name] else ""
        for name in ("candidates", "poses", "model", "validate", "bags", "output")
    }
    switches = {name: value[name].lower() == "true" for name in ("autostart", "use_sim_time")}
    start = {**switches, "exit_on_failure": True}
    shipped = PathJoinSubstitution([FindPackageShare("stribeck"), "config", "excitation.yaml"])
    # Read now: when a later node starts, the arguments may be those of another launch file.
    given = {step: parameters_of(context, step=step) for step in ("excitation", "identification")}
    common = {
        "package": "stribeck",
        "namespace": value["namespace"],
        "output": "screen",
        "ros_arguments": ["--log-level", value["log_level"]],
    }

    def visit():
        played = {
            "config": value["bench_file"],
            "output": path["bags"],
            "autoplay": True,
            "exit_when_done": True,
        }
        return [
            Node(
                executable="excitation",
                name="excitation",
                parameters=[shipped, *given["excitation"], {**played, **start}],
                on_exit=failure.then(identification),
                **common,
            )
        ]

    def identification():
        hidden = ["--validate", path["validate"]] if path["validate"] else []
        chosen = {
            "engine": "geometry",
            "watch": path["bags"],
            "output": path["output"],
            "python": value["python"],
            "fit_options": ["--machine", value["machine"], *hidden],
            "min_bags": 1,
            "settle_time": 0.0,
            "exit_when_done": True,
            **start,
        }
        return [
            Node(
                executable="identification",
                name="identification",
                parameters=[*given["identification"], chosen],
                on_exit=failure.last,
                **common,
            )
        ]

    return [failure.handler, choice(value, path, failure.then(visit))]


def choice(value, path, on_exit):
    """`stribeck design poses`."""
    python = find_interpreter(value["python"], ENGINES["geometry"])
    visit = [f"{name}={value[name]}" for name in ("speed", "acceleration", "rest")]
    words = ["--machine", value["machine"], "--candidates", path["candidates"], "--count", value["count"]]
    words += [word for one in visit for word in ("--set", one)]
    words += ["--model", path["model"]] if path["model"] else []
    return ExecuteProcess(
        cmd=[str(python), "-m", "stribeck", "design", "poses", *words, "--output", path["poses"]],
        env=environment_for(python),
        name="design_poses",
        output="screen",
        on_exit=on_exit,
    )
