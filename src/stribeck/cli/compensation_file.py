"""Writes the parameters of the compensation node for the joints of an identified arm or robot."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stribeck.cli.inputs import warn
from stribeck.files.commented_yaml import Commented, commented_yaml
from stribeck.files.folders import write_keeping
from stribeck.live.direction.motion import Tuning
from stribeck.model.arrays import Array
from stribeck.model.verdict import Verdict
from stribeck.rigid.payload import Payload

if TYPE_CHECKING:
    from stribeck.files.robots import RobotConfig
    from stribeck.identify.arm.recordings import ArmRecording
    from stribeck.identify.arm.regressor import Machine

COMPENSATION = "compensation.yaml"
"""Usual name of the file."""

Entry = tuple[str, Any, str]
"""Name, value and comment of a parameter."""

NODE, BOTH = "/**/compensation.ros__parameters", "/**.ros__parameters"

TUNED = {
    "deadband": "position error that is tolerated at rest, 3 times the noise step of the recordings",
    "error_width": "additional error at which the torque is largest",
    "moving_velocity": (
        "velocity above which the direction of friction is that of the motion; larger than the noise"
    ),
    "command_velocity": "commanded velocity at which the torque of a joint at rest is largest",
    "presliding": "displacement after a reversal in which friction changes sign",
}

MEANINGS = {
    "motor": "effort in /joint_states is the torque of the motors, at the joints",
    "none": "effort in /joint_states is not used: friction does not depend on the load",
}
"""What the node takes efforts for."""

TORQUE = "effort limit of the model, or largest recorded effort"
TORQUE_OF_FRICTION = "1.3 times the largest identified friction, at most the effort limit of the model"
"""Where torque limits come from."""

MARGIN, LEAST = 1.3, 1e-3
"""Limit of the friction torque beside the largest identified friction, and beside the effort limit, below which it is not [1]."""

SLOWEST = 100.0
"""Rate of states below which ``state_timeout`` is longer than usual [Hz]."""


def write_compensation(
    path: Path,
    joints: Sequence[str],
    drives: Path,
    urdf: Path | None,
    limits: Array,
    tunings: Sequence[Tuning],
    rate: float,
    units: Sequence[str],
    verdict: Verdict | None,
    command: str,
    effort_meaning: str = "motor",
    payload: Payload | None = None,
    friction: Array | None = None,
) -> None:
    """Write a parameter file of the compensation node and its guard; an older, different one is kept under another name.

    :param drives: file with the drives of the joints.
    :param urdf: the identified URDF, ``None`` if there is none.
    :param limits: largest torque of each joint (n,).
    :param tunings: rest thresholds of each joint.
    :param rate: rate of the recorded states [Hz].
    :param units: of the positions of each joint, ``rad`` or ``m``.
    :param verdict: on the drives, if there is one.
    :param command: that identified them.
    :param effort_meaning: of the effort in the states, as the node takes it.
    :param friction: largest identified friction of each joint (n,), which reduces the torque limits; ``None``: not known.
    :param payload: carried in the recordings, without which the URDF is.
    """
    head = (
        f"Parameters of the compensation node and its guard, written by `stribeck {command}`. "
        "config/compensation.yaml of stribeck explains all parameters, including those that are not in this file."
    )
    if verdict is not None:
        head += f" {verdict.lines()[0]}."
    if friction is not None:
        limits = np.minimum(limits, np.maximum(MARGIN * friction, LEAST * limits))
    source = TORQUE if friction is None else TORQUE_OF_FRICTION
    off = [] if verdict is None else not_to_be_used(verdict)
    entries: list[Entry] = [
        (f"{NODE}.{name}", value, comment) for name, value, comment in _of_node(urdf, rate, payload)
    ]
    entries += [
        (f"{BOTH}.joints", list(joints), "as in the URDF and /joint_states"),
        (f"{BOTH}.drives_file", str(drives.resolve()), "identified drives of all joints"),
        (
            f"{BOTH}.output_mode",
            "friction_only",
            "friction torque alone; sum: controller's effort + friction torque",
        ),
        (f"{BOTH}.output_type", "array", "std_msgs/Float64MultiArray in the order of `joints`"),
        (f"{BOTH}.effort_meaning", effort_meaning, MEANINGS[effort_meaning]),
    ]
    for joint, limit, tuning, unit in zip(joints, limits.tolist(), tunings, units, strict=True):
        for name, value, comment in _of_joint(joint not in off, limit, source, tuning, unit):
            entries.append((f"{BOTH}.{joint}.{name}", value, comment if joint == joints[0] else ""))
    kept = write_keeping(path, commented_yaml(head, [Commented(*entry) for entry in entries]))
    if kept is not None:
        warn(f"{path.name} already existed; the old file is now {kept}")


def write_compensation_of_arm(
    path: Path,
    drives: Path,
    urdf: Path | None,
    robot: RobotConfig,
    machine: Machine,
    runs: Sequence[ArmRecording],
    presliding: float | None = None,
    **more: Any,
) -> None:
    """Write the file for an arm as :func:`write_compensation` does, with limits and thresholds from its recordings.

    :param presliding: of the fit.
    :param more: further arguments.
    """
    from stribeck.identify.arm.friction.drives import torque_limits
    from stribeck.identify.common.noise import tunings

    units = machine.units(robot.units)
    write_compensation(
        path,
        machine.joints,
        drives,
        urdf,
        torque_limits(machine.arm, robot.limit("effort", len(machine.joints)), runs),
        tunings(
            [run.position for run in runs],
            [run.velocity for run in runs if run.velocity is not None],
            presliding,
        ),
        min(1.0 / float(np.median(np.diff(run.time))) for run in runs),
        ["rad" if units[joint] == "rotary" else "m" for joint in machine.joints],
        **more,
    )


def not_to_be_used(verdict: Verdict) -> list[str]:
    """Joints whose friction should not be compensated: it is unusable, or the recordings do not determine it."""
    reasons = [one for one in verdict.reasons if one.use == "unusable" or one.key == "friction_unknown"]
    return list(dict.fromkeys(one.joint for one in reasons if one.joint))


def launch_command(path: Path) -> str:
    """The command that starts compensation with a parameter file."""
    return f"ros2 launch stribeck compensate.launch.py params_file:={path.resolve()}"


def _of_node(urdf: Path | None, rate: float, payload: Payload | None) -> Iterator[Entry]:
    yield "gain", 0.4, "fraction of the friction that is compensated; raise it to 0.8 while it runs"
    yield "other_joints", "ignore", "ignore grippers and wheels in /joint_states"
    if rate < SLOWEST:
        period = f"[s]; the states were recorded at {rate:.3g} Hz"
        yield "state_timeout", float(f"{4.0 / rate:.2g}"), period
    if urdf is not None:
        comment = "identified links: with them and with goals, the current friction is learnt"
        yield "urdf", str(urdf.resolve()), comment
        if payload is not None:
            numbers = [float(f"{number:.4g}") for number in (payload.mass, *payload.com)]
            yield "payload", numbers, "payload in the recordings: mass [kg] and centre of mass [m]"
            yield "payload_link", payload.link, "link in whose frame the centre is stated; [] for no payload"
    comment = "topic of the controller's goals: with it friction is compensated before a joint moves, and is learnt; set goal_type to its type"
    yield "goal_topic", "", comment


def _of_joint(enabled: bool, limit: float, source: str, tuning: Tuning, unit: str) -> Iterator[Entry]:
    torque = "N m" if unit == "rad" else "N"
    yield "enabled", enabled, "false: this joint is not compensated, see the verdict"
    if math.isfinite(limit):
        yield "max_torque", float(f"{limit:.4g}"), f"{torque}: {source}"
    else:
        yield "max_torque", 0.0, f"{torque}: enter a limit, because the model has no effort limit"
    for name, comment in TUNED.items():
        quantity = f"{unit}/s" if name.endswith("velocity") else unit
        yield name, float(f"{getattr(tuning, name):.4g}"), f"{quantity}: {comment}"
