"""``stribeck import``: converts recordings in the BAM JSON format to bags."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stribeck.cli.inputs import warn_of_supply
from stribeck.cli.options import option
from stribeck.errors import OutputError
from stribeck.io.actuators import load_actuator
from stribeck.io.bag import write_bag
from stribeck.io.bam_json import read_bam_json
from stribeck.io.files import check_writable
from stribeck.io.storage import Storage


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """Options: recordings, and values that they do not contain."""

    logs: tuple[Path, ...] = option("recordings", metavar="LOG.json", positional=True)
    output: Path = option("folder for the bags, one per recording", metavar="BAGS")
    arm_mass: float | None = option("rod mass, for recordings that give none", None, "KG")
    actuator: str | None = option("the servo, where the recordings name another", None)
    joint: str = option("name of the joint in the bags (default: joint)", "joint")
    storage: Storage = option("storage of the bags (default: mcap)", "mcap")


def run(options: ImportOptions) -> int:
    """Read all recordings, then write all bags, so that an unreadable recording leaves no bags behind."""
    targets = {path: options.output / path.stem for path in options.logs}
    if len(set(targets.values())) < len(options.logs):
        raise OutputError("two recordings of one name: import them to different folders")
    for target in targets.values():
        if target.exists():
            raise OutputError(f"{target} exists already; choose another --output or move it away")
        check_writable(target)
    logs = {
        path: read_bam_json(path, actuator=options.actuator, arm_mass=options.arm_mass) for path in targets
    }
    for name in sorted({log.actuator for log in logs.values()}):
        servo = load_actuator(options.actuator or name)
        warn_of_supply([log for log in logs.values() if log.actuator == name], servo)
    for path, log in logs.items():
        write_bag(targets[path], [log], joint=options.joint, storage=options.storage)
        print(f"{path} -> {targets[path]} ({log.duration:.2f} s, {len(log.position.time)} samples)")
    return 0
