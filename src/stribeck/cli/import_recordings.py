"""``stribeck import``: recordings in the BAM JSON format to bags."""

from __future__ import annotations

import argparse

from stribeck.cli.inputs import warn_of_supply
from stribeck.errors import OutputError
from stribeck.io.actuators import load_actuator
from stribeck.io.bag import write_bag
from stribeck.io.bam_json import read_bam_json
from stribeck.io.files import check_writable


def run(arguments: argparse.Namespace) -> int:
    """Read everything first, so that a bad recording leaves nothing half done; then write."""
    targets = {path: arguments.output / path.stem for path in arguments.logs}
    if len(set(targets.values())) < len(arguments.logs):
        raise OutputError("two recordings of one name: import them to different folders")
    for target in targets.values():
        if target.exists():
            raise OutputError(f"{target} exists already; choose another --output or move it away")
        check_writable(target)
    logs = {
        path: read_bam_json(path, actuator=arguments.actuator, arm_mass=arguments.arm_mass)
        for path in targets
    }
    for name in sorted({log.actuator for log in logs.values()}):
        servo = load_actuator(arguments.actuator or name)
        warn_of_supply([log for log in logs.values() if log.actuator == name], servo)
    for path, log in logs.items():
        write_bag(targets[path], [log], joint=arguments.joint, storage=arguments.storage)
        print(f"{path} -> {targets[path]} ({log.duration:.2f} s, {len(log.position.time)} samples)")
    return 0
