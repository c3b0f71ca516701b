"""``stribeck compensate``: the friction torque of a recorded motion, as the node would give it live."""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from stribeck.cli.inputs import check_distinct, warn
from stribeck.cli.table import print_table
from stribeck.core.compensator import Compensator
from stribeck.errors import ConfigError
from stribeck.io.bag import decode
from stribeck.io.files import check_writable, write_atomically
from stribeck.io.messages import JOINT_STATES
from stribeck.io.storage import BagContent, read_messages
from stribeck.nodes.parameters import CompensationParameters
from stribeck.nodes.replay import Replay, replay
from stribeck.nodes.setup import CompensatedJoint, compensated_joints, compensator_of, learning_of

SCHEMA = 1


def run(arguments: argparse.Namespace) -> int:
    """Play the recording through the compensator, and write what came out."""
    outputs = [arguments.output, arguments.json]
    check_distinct(outputs, [arguments.config, *arguments.params], arguments.states)
    for output in outputs:
        if output is not None:
            check_writable(output)
    if (arguments.config is None) == (not arguments.params):
        raise ConfigError(
            "say what the joints are: either --params with their parameter files, or --config with a node's YAML"
        )
    bag = read_messages(arguments.states, warn)
    parameters = _parameters(arguments, bag)
    base = None if arguments.config is None else arguments.config.parent
    joints = compensated_joints(parameters, base)
    parameters = replace(parameters, effort_meaning=_effort_meaning(parameters, joints))
    learning = learning_of(parameters, joints, base)
    if learning.dynamics is not None:
        for line in learning.words:
            warn(line)
    compensator = compensator_of(parameters, joints, learning.dynamics)
    found = replay(arguments.states, bag, compensator, joints, parameters.goal_topic)
    summary = _summary(found, compensator, joints)
    _print(summary)
    if arguments.output is not None:
        write_atomically(arguments.output, _csv(found, compensator.names))
        print(arguments.output)
    if arguments.json is not None:
        write_atomically(arguments.json, json.dumps(summary, indent=1, allow_nan=False) + "\n")
    return 0


def _parameters(arguments: argparse.Namespace, bag: BagContent) -> CompensationParameters:
    """The parameters of the node: from its YAML or from options, which overrule it."""
    said = {
        "gain": arguments.gain,
        "effort_meaning": arguments.effort_meaning,
        "output_mode": arguments.mode,
        "goal_topic": arguments.goals,
        "urdf": None if arguments.urdf is None else str(arguments.urdf.resolve()),
    }
    overruled = {name: value for name, value in said.items() if value is not None}
    if arguments.config is not None:
        if arguments.joint:
            raise ConfigError(f"the joints are those of {arguments.config}: leave --joint out")
        values = CompensationParameters.read(arguments.config, arguments.node).flat()
        names = values["joints"]
    else:
        names = _joints(arguments, bag)
        files = {
            f"{name}.parameter_file": str(path) for name, path in zip(names, arguments.params, strict=True)
        }
        values = {"joints": list(names), "other_joints": "ignore", **files}
    if arguments.max_torque is not None:
        overruled |= {f"{name}.max_torque": arguments.max_torque for name in names}
    return CompensationParameters.complete({**values, **overruled}, "options")


def _joints(arguments: argparse.Namespace, bag: BagContent) -> list[str]:
    """The joints of ``--params``: those of ``--joint``, or the only one of the bag."""
    files = len(arguments.params)
    if arguments.joint:
        if len(arguments.joint) != files:
            raise ConfigError(f"{files} parameter files need as many joints, found {len(arguments.joint)}")
        known = _names(arguments.states, bag)
        if unknown := [name for name in arguments.joint if known and name not in known]:
            raise ConfigError(
                f"--joint {', '.join(unknown)}: not in {arguments.states}, which has: {', '.join(known)}"
            )
        return list(arguments.joint)
    message = next((m for m in bag.messages if m.topic == JOINT_STATES), None)
    names = [] if message is None else list(decode(arguments.states, message, bag.typestore).name)
    if message is not None and (len(names) != 1 or files != 1):
        raise ConfigError(
            f"which parameter file is for which joint? Name them with --joint, in the order of --params; "
            f"{arguments.states} has: {', '.join(names) or 'no joints'}"
        )
    return names or ["joint"]


def _names(states: Path, bag: BagContent) -> list[str]:
    """All joints that a bag has states of."""
    found = (decode(states, m, bag.typestore).name for m in bag.messages if m.topic == JOINT_STATES)
    return list(dict.fromkeys(name for names in found for name in names))


def _effort_meaning(parameters: CompensationParameters, joints: Sequence[CompensatedJoint]) -> Any:
    """What was said; where no law depends on the load it does not matter."""
    if not parameters.effort_meaning:
        dependent = [joint for joint in joints if joint.model.law.load != "none"]
        if not dependent:
            return "none"
        raise ConfigError(
            f"{dependent[0].model.source} holds a law that depends on the load: say with --effort-meaning what the "
            "effort of the joint states is: motor, link or none"
        )
    return parameters.effort_meaning


def _summary(found: Replay, compensator: Compensator, joints: Sequence[CompensatedJoint]) -> dict[str, Any]:
    """The object of ``--json``: torques in N m."""
    # Durations differ from one doubt to the next of the same kind.
    doubts = Counter(re.sub(r"\d+ ms", "some ms", doubt) for doubt in found.doubts if doubt is not None)
    return {
        "schema": SCHEMA,
        "states": len(found.stamps),
        "mode": compensator.settings.mode,
        "effort_meaning": compensator.settings.effort_meaning,
        "gain": compensator.gain,
        "joints": [
            {
                "joint": joint.model.name,
                "params": joint.model.source,
                "model": joint.model.law.name,
                "rms": float(np.sqrt(np.mean(found.torque[:, k] ** 2))),
                "largest": float(np.max(np.abs(found.torque[:, k]))),
            }
            for k, joint in enumerate(joints)
        ],
        "learned": None
        if compensator.learned is None
        else {
            joint.model.name: own._asdict() for joint, own in zip(joints, compensator.learned, strict=True)
        },
        "zero_torque": dict(doubts),
    }


def _print(summary: Mapping[str, Any]) -> None:
    rows = [
        [entry["joint"], entry["params"], entry["model"], f"{entry['rms']:.4g}", f"{entry['largest']:.4g}"]
        for entry in summary["joints"]
    ]
    print_table(["joint", "parameter file", "law", "rms [N m]", "largest [N m]"], rows, left=3)
    for joint, own in (summary["learned"] or {}).items():
        print(
            f"{joint}: {own['dry']:.2f} ± {own['deviation_dry']:.2f} of the identified friction, "
            f"{own['viscous']:.2f} ± {own['deviation_viscous']:.2f} of its viscous part"
        )
    print(f"{summary['states']} states, gain {summary['gain']:g}, mode {summary['mode']}")
    for reason, count in summary["zero_torque"].items():
        print(f"zero torque for {count} of them: {reason}")


def _csv(found: Replay, names: Sequence[str]) -> str:
    """Stamps to the nanosecond, and torques to the last bit."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["stamp", *names])
    for stamp, torque in zip(found.stamps.tolist(), found.torque.tolist(), strict=True):
        seconds, nanoseconds = divmod(stamp, 1_000_000_000)
        writer.writerow([f"{seconds}.{nanoseconds:09d}", *map(repr, torque)])
    return text.getvalue()
