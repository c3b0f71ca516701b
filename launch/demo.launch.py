"""The whole loop without hardware: an emulated servo is recorded, identified, and moved again with compensation.

Ends by itself. What comes of it lies in the folder `output`.
"""

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


def generate_launch_description():
    """The emulated servo first; everything else when it is there."""
    config = PathJoinSubstitution([FindPackageShare("stribeck"), "config"])
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "output", default_value="stribeck_demo", description="folder for the results"
            ),
            DeclareLaunchArgument(
                "config",
                default_value=[config, "/record_demo.yaml"],
                description="what is played, a YAML file as for `stribeck record`",
            ),
            DeclareLaunchArgument("model", default_value="m6", description="friction law: m1 to m6"),
            DeclareLaunchArgument(
                "python",
                default_value="",
                description="interpreter with stribeck[fit]; empty: that of the node",
            ),
            OpaqueFunction(function=stages),
        ]
    )


def stages(context):
    """Record, identify, compensate: each begins when the one before has ended."""
    output = Path(LaunchConfiguration("output").perform(context)).expanduser().absolute()
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
    )
    # One for each motion: a machine that is busy with the fit might leave a servo node waiting for the servo.
    recorded, compensated = (
        node("servo", config=LaunchConfiguration("config"), port=str(port)) for _ in range(2)
    )
    recording = excitation(output / "bags")
    identification = node(
        "identification",
        watch=str(output / "bags"),
        min_bags=1,
        settle_time=0.0,
        output=str(parameters),
        model=LaunchConfiguration("model"),
        python=LaunchConfiguration("python"),
        exit_when_done=True,
    )
    compensation = [
        node("guard", **compensated_joint(parameters)),
        node("compensation", guarded=True, **compensated_joint(parameters)),
    ]
    moving = excitation(output / "compensated", remappings=[("joint_goals", "controller_command")])
    return [
        emulator,
        RegisterEventHandler(OnProcessIO(target_action=emulator, on_stdout=once([recorded, recording]))),
        after(recording, [ended(recorded), identification]),
        after(identification, [compensated, *compensation, moving]),
        after(moving, [LogInfo(msg=f"results: {output}"), Shutdown(reason="the demo is over")]),
    ]


def node(name, remappings=(), **parameters):
    """A node of this package, brought to active."""
    return Node(
        package="stribeck",
        executable=name,
        name=name,
        output="screen",
        parameters=[{**parameters, "autostart": True}],
        remappings=list(remappings),
    )


def excitation(bags, remappings=()):
    """Everything is played once and recorded into a folder."""
    return node(
        "excitation",
        remappings,
        config=LaunchConfiguration("config"),
        output=str(bags),
        autoplay=True,
        exit_when_done=True,
    )


def compensated_joint(parameters):
    """What compensation and guard know of the joint: goals come in, goals with an offset go to the servo."""
    return {
        "joints": ["joint"],
        "joint.parameter_file": str(parameters),
        "output_mode": "goal_offset",
        "output_type": "joint_state",
        "effort_meaning": "motor",
        "remappings": [("compensated_command", "joint_goals")],
    }


def after(process, actions):
    """Go on when a process has ended well, else end everything."""

    def proceed(event, context):
        if context.is_shutdown:
            return None
        if event.returncode == 0:
            return actions
        return Shutdown(reason=f"{event.process_name} has failed")

    return RegisterEventHandler(OnProcessExit(target_action=process, on_exit=proceed))


def ended(process):
    """End a process."""
    return EmitEvent(event=ShutdownProcess(process_matcher=matches_action(process)))


def once(actions):
    """Start something at the first sign of a process."""
    waiting = [actions]
    return lambda _: waiting.pop() if waiting else None
