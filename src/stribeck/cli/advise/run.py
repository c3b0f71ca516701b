"""What ``stribeck advise`` does: measure standstill, compute advice, print and write both."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stribeck.advise.advice import AdviceSettings, JointAdvice, Value, advise
from stribeck.advise.rest import UNSEEN, RestAdvice
from stribeck.cli.advise.options import AdviseOptions
from stribeck.cli.exit_codes import DONE
from stribeck.cli.inputs import as_number, assignments, check_outputs, warn, words_of, write_json
from stribeck.cli.table import print_table
from stribeck.errors import ConfigError, check_valid
from stribeck.files.drives import read_drives
from stribeck.files.versions import versions
from stribeck.identify.robot.standstill import RESAMPLINGS

if TYPE_CHECKING:
    from stribeck.advise.rest import Bearing

ASKED = ("tolerance", "delay")
"""Names that ``--set`` takes."""

RECORD = "record for two minutes: steps of 0.05 to 0.3 rad in both directions, 0.5 s each, in several poses"


def run(options: AdviseOptions) -> int:
    """Advice for the joints of a file of drives, and standstill in recordings."""
    if options.params is None and not options.recordings:
        raise ConfigError("give a file of drives (--params), or recordings and --model")
    if options.recordings and options.model is None:
        raise ConfigError("recordings need the model of the robot: give its URDF or MJCF with --model")
    settings = _settings(options)
    inputs = [options.params, options.model, options.calibration, *options.recordings]
    check_outputs([options.json, options.report], inputs)
    excluded = words_of(options.exclude)
    advice = _advice(options, options.params, settings, excluded) if options.params is not None else []
    rests = {}
    if options.recordings and options.model is not None:
        rests = _standstill(options, options.model, settings, excluded)
    if rests:
        _print_rests(rests)
    if advice:
        _print_advice(advice)
    write_json(options.json, _content(advice, rests))
    if options.report is not None:
        from stribeck.advise.page import render_advice

        subject = options.params or options.model or Path("joints")
        options.report.write_bytes(render_advice(subject, advice, rests, versions("numpy")))
    return DONE


def _settings(options: AdviseOptions) -> AdviceSettings:
    asked = assignments(options.set, "--set")
    check_valid(asked, ASKED, "--set: unknown name")
    numbers = {name: as_number(text, f"--set {name}") for name, text in asked.items()}
    return AdviceSettings(kp=options.kp, supply=options.supply, seed=options.seed, **numbers)


def _advice(
    options: AdviseOptions, path: Path, settings: AdviceSettings, excluded: Sequence[str]
) -> list[JointAdvice]:
    drives, bearings = read_drives(path), {}
    if options.model is not None:
        from stribeck.advise.rest import worst_poses
        from stribeck.identify.robot.tree import load_tree

        bearings = worst_poses(load_tree(options.model), options.seed)
        if "" in drives.joints:
            bearings = {"": _only(bearings, options.model, path)}
        missing = [name for name in drives.joints if name and name not in bearings and name not in excluded]
        if missing:
            raise ConfigError(
                f"{options.model} has no joint {', '.join(missing)}, which {path} contains; it has {', '.join(bearings)}"
            )
    found = []
    for name, drive in drives.joints.items():
        if name in excluded:
            continue
        bearing = bearings.get(name)
        known = {} if bearing is None else {"load": bearing.load, "inertia": bearing.inertia}
        found.append(advise(name or "joint", drive, settings=settings, **known))
    if not found:
        raise ConfigError(f"all joints of {path} are excluded: leave at least one")
    return found


def _only(bearings: Mapping[str, Bearing], model: Path, path: Path) -> Bearing:
    """What the one joint of a model bears, for a file of a servo, which names no joint."""
    if len(bearings) != 1:
        raise ConfigError(
            f"{path} is of a servo and names no joint, but {model} has {len(bearings)}, {', '.join(bearings)}: give a model with the joint of this servo "
            "alone, the others fixed"
        )
    return next(iter(bearings.values()))


def _standstill(
    options: AdviseOptions, model: Path, settings: AdviceSettings, excluded: Sequence[str]
) -> dict[str, RestAdvice]:
    from stribeck.advise.rest import worst_poses
    from stribeck.identify.robot.recordings import read_runs
    from stribeck.identify.robot.standstill import standstill_of, stops_of
    from stribeck.identify.robot.tree import load_tree

    tree = load_tree(model)
    runs = read_runs(options.recordings, tree, excluded, options.degrees, calibration=options.calibration)
    for one in runs:
        if one.flaw is not None:
            warn(f"{one.name} is not used: {one.flaw}")
    joints = [k for k, name in enumerate(tree.names) if name not in excluded]
    stops, found, bearings = stops_of(runs, tree, joints), {}, worst_poses(tree, options.seed)
    for joint in joints:
        name = tree.names[joint]
        own = [stop for stop in stops if stop.joint == joint]
        standstill = standstill_of(name, own, options.seed)
        if standstill is None:
            warn(f"{name}: stops {len(own)} times, too few to measure its dead band: {RECORD}")
        else:
            found[name] = RestAdvice(standstill, bearings[name].load, settings.tolerance, settings.kp)
    if not found:
        raise ConfigError(f"in these recordings no joint stops often enough: {RECORD}")
    return found


def _mrad(value: float) -> str:
    return f"{1e3 * value:.3g}"


def _with_interval(one: Value, scale: float = 1.0) -> str:
    if not math.isfinite(one.value):
        return "none"
    ends = f" ({scale * one.lower:.3g} to {scale * one.upper:.3g})" if math.isfinite(one.lower) else ""
    return f"{scale * one.value:.3g}{ends}"


def _print_rests(rests: Mapping[str, RestAdvice]) -> None:
    print(f"Joints at rest in the recordings (90 % intervals, from {RESAMPLINGS} resamplings of the runs):")
    rows = []
    for name, advice in rests.items():
        one = advice.standstill
        low, high = one.half_interval
        compliance = f"{1e3 * one.compliance:.3g}" if one.compliance else ""
        band = f"{_mrad(one.dead_band)} ({_mrad(2.0 * low)} to {_mrad(2.0 * high)})"
        sag = _mrad(advice.sag) if one.compliance else ""
        rows.append([name, band, compliance, sag, _mrad(one.offset), str(one.stops)])
    print_table(
        ["joint", "dead band [mrad]", "sag [mrad per N m]", "largest sag [mrad]", "offset [mrad]", "stops"],
        rows,
    )
    for name, advice in rests.items():
        print(f"{name}: {advice.text}")
    print(f"{', '.join(rests)}: {UNSEEN}")


def _print_advice(advice: Sequence[JointAdvice]) -> None:
    rows = []
    for one in advice:
        errors = _with_interval(one.dead_band, 1e3), _with_interval(one.sag, 1e3)
        gains = _with_interval(one.sufficient), _with_interval(one.hunts)
        slowest = _with_interval(one.slowest) if one.slowest.value else "all"
        stairs = _mrad(one.stair) if one.stair else ""
        rows.append([one.joint, f"{one.kp:.3g}", *errors, *gains, slowest, stairs])
    header = ["joint", "gain", "dead band [mrad]", "sag [mrad]", "sufficient gain", "hunts at gain"]
    print_table([*header, "slowest smooth [rad/s]", "stairs [mrad]"], rows)
    for one in advice:
        print(f"{one.joint}: {one.text}")
    for note in dict.fromkeys(note for one in advice for note in one.notes):
        print(f"{', '.join(one.joint for one in advice if note in one.notes)}: {note}")


def _content(advice: Sequence[JointAdvice], rests: Mapping[str, RestAdvice]) -> dict[str, Any]:
    """The numbers for programs; infinite and missing ones are null."""

    def clean(value: Any) -> Any:
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, Value):
            return {"value": clean(value.value), "interval": [clean(value.lower), clean(value.upper)]}
        if isinstance(value, dict):
            return {name: clean(one) for name, one in value.items()}
        return [clean(one) for one in value] if isinstance(value, (list, tuple)) else value

    joints = {
        one.joint: vars(one) | {"hunting": asdict(one.hunting), "text": one.text, "advised": one.advised}
        for one in advice
    }
    names = ("load", "sag", "error", "with_offsets", "text")
    standstill = {
        name: asdict(one.standstill)
        | {"dead_band": one.standstill.dead_band, "sufficient_factor": one.factor}
        | {key: getattr(one, key) for key in names}
        for name, one in rests.items()
    }
    content: dict[str, Any] = clean({"joints": joints, "standstill": standstill})
    return content
