"""``stribeck data import``: converts bags of other robots, tables, and BAM JSON recordings to bags that describe themselves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from stribeck.api.recordings import benches_of
from stribeck.api.servo_notes import supply_notes
from stribeck.cli.inputs import described, warn
from stribeck.cli.options import NotNegative, declared, option
from stribeck.errors import ConfigError, OutputError
from stribeck.files.actuators import load_actuator
from stribeck.files.folders import check_writable
from stribeck.model.log import Log
from stribeck.recordings.bags.bag import write_bag
from stribeck.recordings.bags.storage import Storage
from stribeck.recordings.bench import Benches, recording_name
from stribeck.recordings.signals.run_units import oddities, overload
from stribeck.recordings.signals.sources import load_signals
from stribeck.recordings.sources import recorded_runs


@declared
class ImportOptions:
    """Options: recordings, and values that they do not contain."""

    recordings: tuple[Path, ...] = option(
        "bags, .csv, .txt, .mat, .npz or BAM JSON files, or folders of them",
        metavar="RECORDING",
        positional=True,
    )
    output: Path = option("folder for the new bags, one per recording", metavar="BAGS")
    signals: Path | None = option(
        "table of signals: topics or columns, and units (docs/recordings.md)", metavar="YAML"
    )
    bench: str | None = option(
        "load, gain and servo, for recordings that do not state them: a bench file, or mass=KG,length=M,arm_mass=KG,kp=GAIN,…",
        metavar="FILE",
    )
    arm_mass: NotNegative | None = option("rod mass, for JSON recordings without one", metavar="KG")
    servo: str | None = option(
        "the servo, if the recordings name none; replaces the one named in JSON recordings"
    )
    joint: str | None = option(
        "joint to read from bags with several joints; it is also the name of the joint in the new bags"
    )
    storage: Storage = option("storage format of the bags (default: mcap)", "mcap")


def run(options: ImportOptions) -> int:
    """Read all recordings, then write all bags, so that an unreadable recording leaves no bags behind."""
    bench = None if options.bench is None else benches_of(described(options.bench), options.servo)
    runs = [
        (folder, path, logs) for folder in options.recordings for path, logs in _read(options, bench, folder)
    ]
    targets = {path: _target(options.output, folder, path) for folder, path, _ in runs}
    if len(set(targets.values())) < len(runs):
        raise OutputError("two recordings have the same name: import them into different folders")
    for target in targets.values():
        if target.exists():
            raise OutputError(f"{target} already exists; choose another --output or move it")
        check_writable(target)
    logs = [log for _, _, found in runs for log in found]
    for name in sorted({log.actuator for log in logs}):
        own = options.servo is not None and load_actuator(options.servo).name == name
        servo = load_actuator(
            options.servo if own and options.servo else bench.servo(name) if bench else name
        )
        own_logs = [log for log in logs if log.actuator == name]
        if options.servo is not None and not own:
            warn(
                f"{own_logs[0].name} states that its servo is {name!r}: --servo {options.servo} is not used for it"
            )
        notes = (*supply_notes(own_logs, servo), overload(own_logs, servo))
        for text in filter(None, (*notes, *(line for log in own_logs for line in oddities(log)))):
            warn(text)
    for _, path, found in runs:
        write_bag(targets[path], found, storage=options.storage)
        seconds, samples = sum(log.duration for log in found), sum(len(log.position.time) for log in found)
        several = f"{len(found)} runs, " if len(found) > 1 else ""
        print(f"{path} -> {targets[path]} ({several}{seconds:.2f} s, {samples} samples)")
    return 0


def _read(options: ImportOptions, bench: Benches | None, folder: Path) -> list[tuple[Path, list[Log]]]:
    runs = recorded_runs(
        folder,
        signals=None if options.signals is None else load_signals(options.signals),
        joint=options.joint,
        bench=bench,
        arm_mass=options.arm_mass,
        actuator=options.servo,
        note=warn,
    )
    if options.joint in (None, "*"):
        return runs
    return [
        (path, [replace(log, setup=replace(log.setup, joint=options.joint)) for log in logs])
        for path, logs in runs
    ]


def _target(output: Path, folder: Path, path: Path) -> Path:
    """The new bag of a recording: named after it, below the folders in which it lies in ``folder``."""
    inside = path.relative_to(folder).parent if path != folder else Path()
    name = recording_name(path)
    if name in ("", "."):
        raise ConfigError(f"{path}: the new bag is named after the folder: name a folder above this one")
    return output / inside / name
