"""The whole loop without hardware: an emulated servo is recorded, identified, and moved again with compensation.

Exits when finished, with exit code 1 if a process fails. The results are in the folder `output`.
"""

from functools import partial
from pathlib import Path

from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    ExecuteProcess,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
    Shutdown,
)
from launch.event_handlers import OnProcessExit, OnProcessIO
from launch.events import matches_action
from launch.events.process import ShutdownProcess
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackagePrefix, FindPackageShare

from stribeck.nodes.launching import FailureReport, refuse_earlier_arguments


def generate_launch_description():
    """Start the emulated servo, and everything else once it is running."""
    config = PathJoinSubstitution([FindPackageShare("stribeck"), "config"])
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "output", default_value="stribeck_demo", description="folder for the results"
            ),
            DeclareLaunchArgument(
                "bench_file",
                default_value=[config, "/record_demo.yaml"],
                description="servos and plays, a YAML file as for `stribeck record`",
            ),
            DeclareLaunchArgument("model", default_value="m6", description="friction law: m1 to m6"),
            DeclareLaunchArgument(
                "python",
                default_value="",
                description="Python interpreter with stribeck[fit]; empty: as for the node",
            ),
            DeclareLaunchArgument(
                "namespace", default_value="", description="namespace of all nodes and topics"
            ),
            DeclareLaunchArgument(
                "autostart", default_value="true", description="false: nodes wait for `ros2 lifecycle set`"
            ),
            DeclareLaunchArgument(
                "use_sim_time",
                default_value="false",
                description="use the time on /clock, which another program publishes",
            ),
            OpaqueFunction(function=refuse_earlier_arguments),
            OpaqueFunction(function=stages),
        ]
    )


def stages(context):
    """Record, identify, compensate; each stage starts when the previous one has ended."""
    # Read now: when a later stage starts, the arguments may be those of another launch file.
    given = {
        name: LaunchConfiguration(name).perform(context)
        for name in ("output", "bench_file", "model", "python", "namespace", "autostart", "use_sim_time")
    }
    switches = {name: given[name].lower() == "true" for name in ("autostart", "use_sim_time")}
    output = Path(given["output"]).expanduser().absolute()
    failure = FailureReport(stays=True)
    node = partial(_node, given["namespace"], switches, failure)
    excitation = partial(_excitation, node, given["bench_file"])
    output.mkdir(parents=True, exist_ok=True)
    port, parameters = output / "servo", output / "parameters.json"
    emulator = ExecuteProcess(
        name="emulator",
        cmd=[
            PathJoinSubstitution([FindPackagePrefix("stribeck"), "lib", "stribeck", "stribeck"]),
            *("emulate", "--servo", "xl330", "--bench", "mass=0.1,length=0.1,arm_mass=0.02"),
            *("--link", str(port)),
        ],
        output="screen",
        on_exit=failure.ended,
    )
    # A separate servo node for each motion, as one could time out while the fit keeps the machine busy.
    recorded, compensated = (node("servo", config=given["bench_file"], port=str(port)) for _ in range(2))
    recording = excitation(output / "bags")
    identification = node(
        "identification",
        watch=str(output / "bags"),
        min_bags=1,
        settle_time=0.0,
        output=str(parameters),
        model=given["model"],
        python=given["python"],
        exit_when_done=True,
    )
    compensation = [
        node("guard", **compensated_joint(parameters)),
        node("compensation", guarded=True, **compensated_joint(parameters)),
    ]
    moving = excitation(output / "compensated", remappings=[("joint_goals", "controller_command")])
    return [
        failure.handler,
        emulator,
        RegisterEventHandler(OnProcessIO(target_action=emulator, on_stdout=once([recorded, recording]))),
        after(recording, [ended(recorded), identification]),
        after(identification, [compensated, *compensation, moving]),
        after(moving, [LogInfo(msg=f"results: {output}"), Shutdown(reason="the demo is over")]),
    ]


def _node(namespace, switches, failure, name, remappings=(), **parameters):
    """A node of this package, configured and activated unless `autostart` is false; the demo fails with it."""
    return Node(
        package="stribeck",
        executable=name,
        name=name,
        namespace=namespace,
        output="screen",
        parameters=[{**parameters, **switches, "exit_on_failure": True}],
        on_exit=failure.ended,
        remappings=list(remappings),
    )


def _excitation(node, config, bags, remappings=()):
    """Play everything once and record it into a folder."""
    return node(
        "excitation",
        remappings,
        config=config,
        output=str(bags),
        autoplay=True,
        exit_when_done=True,
    )


def compensated_joint(parameters):
    """Shared parameters of compensation and guard, which convert goals to goals with an offset for the servo."""
    return {
        "joints": ["joint"],
        "joint.parameter_file": str(parameters),
        "output_mode": "goal_offset",
        "output_type": "joint_state",
        "effort_meaning": "motor",
        "remappings": [("compensated_command", "joint_goals")],
    }


def after(process, actions):
    """Continue after a process has succeeded."""

    def proceed(event, context):
        return None if context.is_shutdown or event.returncode else actions

    return RegisterEventHandler(OnProcessExit(target_action=process, on_exit=proceed))


def ended(process):
    """End a process."""
    return EmitEvent(event=ShutdownProcess(process_matcher=matches_action(process)))


def once(actions):
    """Start actions at the first output of a process."""
    waiting = [actions]
    return lambda _: waiting.pop() if waiting else None
