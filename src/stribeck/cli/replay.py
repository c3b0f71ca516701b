"""``stribeck replay``: the friction torque of a recorded motion, as the compensation node computes it live."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from stribeck.cli.inputs import check_outputs, warn, warn_of_friction, write_json
from stribeck.cli.options import declared, group, one_or_assigned, option
from stribeck.cli.table import csv_text, print_table
from stribeck.errors import ConfigError
from stribeck.evaluate.replay import Replay, replay
from stribeck.files.folders import write_atomically
from stribeck.live.compensator import Compensator
from stribeck.live.feedforward import LARGEST_LEARNED, SAFETY
from stribeck.live.friction import EFFORT_MEANINGS
from stribeck.live.parameters import CompensationParameters
from stribeck.live.settings import OUTPUT_MODES
from stribeck.live.setup import CompensatedJoint, compensated_joints, compensator_of, learning_of
from stribeck.recordings.bags.messages import JOINT_STATES
from stribeck.recordings.bags.signals import decode
from stribeck.recordings.bags.standard_messages import as_standard_messages
from stribeck.recordings.bags.storage import BagContent, is_bag, read_messages
from stribeck.recordings.signals.sources import load_signals
from stribeck.rigid.payload import payload_numbers

_joints, _law = group("joints"), group("compensation (overrides --node-params)")
_output = group("output")

NODE = "compensation"


@declared
class ReplayOptions:
    """Options: a recorded motion, the joints, and the settings of the compensation."""

    recordings: Path = option("bag with /joint_states, or a table", metavar="RECORDING", positional=True)
    signals: Path | None = option(
        "table of signals, for tables, and for bags with other topics or units", metavar="YAML"
    )
    goals: str | None = option(
        "topic of the controller's goals, if its commands are not the goals: JointState, Float64MultiArray, JointTrajectory or JointTrajectoryControllerState",
        metavar="TOPIC",
    )
    params: tuple[Path, ...] = _joints("parameter file of each joint", ())
    model: Path | None = _joints("URDF of the robot, needed to learn the current friction")
    joint: tuple[str, ...] = _joints("joints of the files in --params, in the same order", (), "NAME")
    node_params: Path | None = _joints(
        "instead of --params: YAML file of the compensation node; paths in it are relative to the file",
        metavar="YAML",
    )
    node: str = _joints(
        "name of the node in --node-params, such as /left/compensation, if it has several (default: compensation)",
        NODE,
        "NAME",
    )
    gain: float | None = _law("fraction of the friction that is compensated (default: 0.8)")
    effort_meaning: str | None = _law(
        "meaning of the effort in the joint states; required for load-dependent laws", choices=EFFORT_MEANINGS
    )
    mode: str | None = _law("output mode of the node (default: friction_only)", choices=OUTPUT_MODES)
    max_torque: Annotated[float | dict[str, float], one_or_assigned] | None = _law(
        "torque limit [N m], one for all joints or JOINT=T,… (default: half of the datasheet's stall torque)",
        metavar="T",
    )
    payload: str | None = _law(
        "payload that the URDF lacks: mass [kg], or mass and centre of mass [m] in the frame of the last joint",
        metavar="M[,X,Y,Z]",
    )
    output: Path | None = _output(
        "CSV file of time stamps and friction torque of each joint [N m]", metavar="TORQUE.csv"
    )
    json: Path | None = _output("summary for scripts")


def run(options: ReplayOptions) -> int:
    """Replay the recording through the compensator, and write the torques."""
    check_outputs(
        [options.output, options.json], [options.node_params, *options.params], [options.recordings]
    )
    if (options.node_params is None) == (not options.params):
        raise ConfigError(
            "the joints are not known: give their parameter files with --params, or a node's YAML file with --node-params"
        )
    if options.node_params is None and options.node != NODE:
        raise ConfigError(
            "--node is the name of a node in --node-params: add --node-params FILE, or remove --node"
        )
    bag = _bag(options)
    parameters = _parameters(options, bag)
    base = None if options.node_params is None else options.node_params.parent
    joints = compensated_joints(parameters, base)
    for joint in joints:
        warn_of_friction(joint.model.source, joint.file)
    parameters = replace(parameters, effort_meaning=_effort_meaning(parameters, joints))
    learning = learning_of(parameters, joints, base)
    if learning.dynamics is not None:
        for line in learning.words:
            warn(line)
    compensator = compensator_of(parameters, joints, learning.dynamics)
    result = replay(options.recordings, bag, compensator, joints, parameters.goal_topic)
    summary = summary_of(result, compensator, joints)
    print_replay(summary)
    if options.output is not None:
        write_atomically(options.output, _csv(result, compensator.names))
        print(options.output)
    write_json(options.json, summary, allow_nan=False)
    return 0


def _bag(options: ReplayOptions) -> BagContent:
    """The messages of the recording, or of our own topics made of its signals."""
    if options.signals is None:
        if not is_bag(options.recordings) and options.recordings.is_file():
            raise ConfigError(
                f"{options.recordings} is not a bag: name its columns in a table of signals (--signals FILE)"
            )
        return read_messages(_storage(options.recordings), warn)
    joints = options.joint
    if options.node_params is not None and not is_bag(options.recordings):
        joints = tuple(CompensationParameters.read(options.node_params, options.node).flat()["joints"])
    return as_standard_messages(options.recordings, load_signals(options.signals), joints, warn)


def _storage(path: Path) -> Path:
    """The bag; of a folder without metadata.yaml its storage file, if there is one only, as for the identifications."""
    if not path.is_dir() or is_bag(path):
        return path
    files = [file for file in sorted(path.iterdir()) if file.is_file() and is_bag(file)]
    return files[0] if len(files) == 1 else path


def _parameters(options: ReplayOptions, bag: BagContent) -> CompensationParameters:
    """The parameters of the node, from its YAML file and from options, which take precedence."""
    chosen = {
        "gain": options.gain,
        "effort_meaning": options.effort_meaning,
        "output_mode": options.mode,
        "goal_topic": options.goals,
        "payload": None if options.payload is None else payload_numbers(options.payload, "--payload"),
        "urdf": None if options.model is None else str(options.model.resolve()),
    }
    if options.goals == "":
        raise ConfigError("--goals is empty: name a topic of the bag, or remove the option")
    overridden = {name: value for name, value in chosen.items() if value is not None}
    if options.node_params is not None:
        if options.joint:
            raise ConfigError(f"the joints are those in {options.node_params}: remove --joint")
        values = CompensationParameters.read(options.node_params, options.node, warn).flat()
        names = values["joints"]
    else:
        names = _joint_names(options, bag)
        files = {
            f"{name}.parameter_file": str(path) for name, path in zip(names, options.params, strict=True)
        }
        values = {"joints": list(names), "other_joints": "ignore", **files}
    overridden |= _limits(options, names)
    return CompensationParameters.complete(
        {**values, **overridden}, str(options.node_params or "command line")
    )


def _limits(options: ReplayOptions, names: Sequence[str]) -> dict[str, float]:
    """The torque limits of ``--max-torque``, by parameter."""
    given = options.max_torque
    if given is None:
        return {}
    limits = given if isinstance(given, dict) else dict.fromkeys(names, given)
    if unknown := [name for name in limits if name not in names]:
        raise ConfigError(f"--max-torque: no joint {', '.join(unknown)}; valid: {', '.join(names)}")
    return {f"{name}.max_torque": limit for name, limit in limits.items()}


def _joint_names(options: ReplayOptions, bag: BagContent) -> list[str]:
    """The joints of ``--params``: those of ``--joint``, or the only joint in the bag."""
    files = len(options.params)
    if options.joint:
        if len(options.joint) != files:
            raise ConfigError(
                f"{files} parameter files need the same number of joints, found {len(options.joint)}"
            )
        recorded = _names(options.recordings, bag)
        if unknown := [name for name in options.joint if recorded and name not in recorded]:
            raise ConfigError(
                f"--joint: no joint {', '.join(unknown)} in {options.recordings}, which has: {', '.join(recorded)}"
            )
        return list(options.joint)
    message = next((m for m in bag.messages if m.topic == JOINT_STATES), None)
    names = [] if message is None else list(decode(options.recordings, message, bag.typestore).name)
    if message is not None and (len(names) != 1 or files != 1):
        raise ConfigError(
            "each parameter file needs its joint: name the joints with --joint, in the order of --params; "
            f"{options.recordings} has: {', '.join(names) or 'no joints'}"
        )
    return names or ["joint"]


def _names(states: Path, bag: BagContent) -> list[str]:
    messages = (decode(states, m, bag.typestore) for m in bag.messages if m.topic == JOINT_STATES)
    return list(dict.fromkeys(name for message in messages for name in message.name))


def _effort_meaning(parameters: CompensationParameters, joints: Sequence[CompensatedJoint]) -> str:
    """The meaning of measured effort, which is only needed by load-dependent laws."""
    if not parameters.effort_meaning:
        dependent = [joint for joint in joints if joint.model.law.load_inputs]
        if not dependent:
            return "none"
        raise ConfigError(
            f"the law in {dependent[0].model.source} depends on the load: state with --effort-meaning what "
            "the effort in the joint states is: motor, link or none"
        )
    return parameters.effort_meaning


def _csv(result: Replay, names: Sequence[str]) -> str:
    """CSV with stamps in nanoseconds and torques in full precision."""
    stamps = [divmod(stamp, 1_000_000_000) for stamp in result.stamps.tolist()]
    rows = (
        [f"{seconds}.{nanoseconds:09d}", *map(repr, torque)]
        for (seconds, nanoseconds), torque in zip(stamps, result.torque.tolist(), strict=True)
    )
    return csv_text(["stamp", *names], rows)


def summary_of(
    result: Replay, compensator: Compensator, joints: Sequence[CompensatedJoint]
) -> dict[str, Any]:
    """The content of the ``--json`` file: torques in N m, times in s after the first state."""
    # Messages that differ only in the duration are counted together.
    doubts = Counter(re.sub(r"\d+ ms", "some ms", doubt) for doubt in result.doubts if doubt is not None)
    return {
        "states": len(result.stamps),
        "mode": compensator.settings.mode,
        "effort_meaning": compensator.settings.effort_meaning,
        "gain": compensator.gain,
        "largest_gain": _largest_gain(result, compensator),
        "joints": [_of_joint(result, k, joint) for k, joint in enumerate(joints)],
        "learned": None
        if compensator.learned is None
        else {
            joint.model.name: scale._asdict()
            for joint, scale in zip(joints, compensator.learned, strict=True)
        },
        "learned_status": None if compensator.learned is None else _statuses(result, compensator),
        "warnings": [
            {"time": _seconds(result, warned.stamp), "text": warned.text} for warned in result.warnings
        ],
        "zero_torque": dict(doubts),
    }


def _of_joint(result: Replay, k: int, joint: CompensatedJoint) -> dict[str, Any]:
    torque, off = result.torque[:, k], result.off[:, k]
    on = np.flatnonzero(~off)
    since = 0 if not len(on) else int(on[-1]) + 1
    shares = [math.nan, math.nan]
    if result.cancelled is not None:
        shares = [float(part[k]) for part in (result.cancelled.measured, result.cancelled.identified)]
    measured, identified = (None if math.isnan(share) else share for share in shares)
    return {
        "joint": joint.model.name,
        "params": joint.model.source,
        "model": joint.model.law.name,
        "rms": float(np.sqrt(np.mean(torque**2))),
        "largest": float(np.max(np.abs(torque))),
        "of_measured": measured,
        "of_identified": identified,
        "enabled": joint.model.enabled,
        "off_from": _seconds(result, int(result.stamps[since])) if off[-1] else None,
    }


def _seconds(result: Replay, stamp: int) -> float:
    return 1e-9 * (stamp - int(result.stamps[0]))


def _largest_gain(result: Replay, compensator: Compensator) -> float:
    """The gain that learning may reach."""
    gain = compensator.gain
    learns = result.cancelled is not None
    return max(gain, min(compensator.settings.learned_gain, LARGEST_LEARNED * gain)) if learns else gain


def _statuses(result: Replay, compensator: Compensator) -> dict[str, dict[str, str]]:
    """Of each scale of each joint: learnt, not learnt, or at a bound."""
    settings = compensator.settings.adaptation
    bounds = {settings.scale_lower: "at its lower bound", settings.scale_upper: "at its upper bound"}
    taught = (
        [False] * len(compensator.names) if result.cancelled is None else result.cancelled.learned.tolist()
    )
    return {
        name: {
            part: bounds.get(getattr(scale, part), "learnt") if learns else "not learnt"
            for part in ("dry", "viscous")
        }
        for name, scale, learns in zip(compensator.names, compensator.learned or (), taught, strict=True)
    }


def print_replay(summary: Mapping[str, Any]) -> None:
    """Print the summary: warnings with their times, what was learnt, and last the table of the joints."""
    for warned in summary["warnings"]:
        print(f"at {warned['time']:.2f} s: {warned['text']}")
    for joint, scale in (summary["learned"] or {}).items():
        print(f"{joint}: {_learned(scale, summary['learned_status'][joint])}")
    print(f"{summary['states']} states, gain {summary['gain']:g}, mode {summary['mode']}")
    for reason, count in summary["zero_torque"].items():
        print(f"friction torque zero for {count} of them: {reason}")
    if summary["learned"] is not None:
        print(_words_on_gain(summary))
    rows = []
    for entry in summary["joints"]:
        names = [entry["joint"], entry["params"], entry["model"], _state(entry)]
        shares = ("-" if entry[key] is None else f"{100.0 * entry[key]:.0f}" for key in SHARES)
        rows.append([*names, f"{entry['rms']:.4g}", f"{entry['largest']:.4g}", *shares])
    header = ["joint", "parameter file", "law", "torque", "rms [N m]", "largest [N m]", *SHARES.values()]
    print_table(header, rows, left=4)


SHARES = {"of_identified": "of identified [%]", "of_measured": "of measured [%]"}


def _words_on_gain(summary: Mapping[str, Any]) -> str:
    reached = summary["largest_gain"]
    return (
        f"share of the friction that is cancelled: up to {reached:g} with a goal, as learning raises the gain by at most {LARGEST_LEARNED:g} times, "
        f"to at most learned_gain; up to {SAFETY * min(reached, 1.0):.3g} of the friction certainly present without a goal"
    )


def _state(entry: Mapping[str, Any]) -> str:
    if not entry["enabled"]:
        return "not enabled"
    return "on" if entry["off_from"] is None else f"off from {entry['off_from']:.2f} s"


def _learned(scale: Mapping[str, float], status: Mapping[str, str]) -> str:
    """The learnt scales in words."""
    if set(status.values()) == {"not learnt"}:
        return "friction not learnt, as identified"
    parts = []
    for part in ("dry", "viscous"):
        words = f"{part} friction {scale[part]:.2f}"
        bound = status[part]
        deviation = scale[f"deviation_{part}"]
        parts.append(f"{words} ± {deviation:.2f}" if bound == "learnt" else f"{words} ({bound})")
    return f"{', '.join(parts)} times the identified value (± one standard deviation)"
