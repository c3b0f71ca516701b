"""Implements ``stribeck simulate``: the motion of an identified servo on a bench that was not recorded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stribeck.cli.evaluate.pictures import panels_of, write_drawings
from stribeck.cli.inputs import (
    check_outputs,
    described,
    display_name,
    engine_of,
    parameter_files_of,
    write_json,
)
from stribeck.cli.simulate.options import SimulateOptions
from stribeck.cli.table import csv_text, print_table
from stribeck.errors import ConfigError
from stribeck.evaluate.assessment import Recordings, simulated, stepping_of
from stribeck.evaluate.suggestion import planned_run, trajectory_of
from stribeck.files.folders import write_atomically
from stribeck.model.joint import Drive
from stribeck.model.log import Batch, Setup
from stribeck.model.step import Simulation
from stribeck.recordings.bench import SETUP_KEYS
from stribeck.report.figures import RunDrawing

OF_BENCHES = ("params", "servo", "bench", "integrator", "plot", "json")
"""Options that a mechanism does not take."""


def run(options: SimulateOptions) -> int:
    """Simulate, print and write."""
    if options.mechanism is not None:
        return _mechanism(options, options.mechanism)
    if not options.trajectories or not options.params or options.bench is None:
        raise ConfigError("name trajectories with --params and --bench, or give a --mechanism")
    if options.seconds is not None:
        raise ConfigError("--seconds is for a --mechanism only: trajectories have their own duration")
    labels = _labels(options.params)
    trajectories = [trajectory_of(word) for word in options.trajectories]
    tables = _tables(options.output, [one.name for one in trajectories], list(labels.values()))
    animated = options.plot is not None and options.plot.suffix == ".gif"
    picture = options.plot if options.plot is None or animated else options.plot / "overview.png"
    inputs = [*options.params, *(Path(word) for word in options.trajectories if Path(word).suffix)]
    check_outputs([options.json, picture, *tables.values()], inputs)
    integrator, simulator = engine_of(options.integrator)
    motions: dict[str, Simulation] = {}
    batches: dict[str, Batch] = {}
    for path, drive in parameter_files_of(options):
        setup = _setup(options.bench, path, drive)
        runs = [planned_run(one, setup, drive.actuator.name) for one in trajectories]
        stepping = stepping_of(drive, options.step, None, integrator)._replace(reset_period=None)
        batches[labels[path]], motions[labels[path]] = simulated(
            path, drive, Recordings(runs), stepping, simulator, with_torques=True
        )
    rows = [
        _row(label, r, one.name, batches[label], motions[label])
        for r, one in enumerate(trajectories)
        for label in motions
    ]
    write_json(options.json, {"results": rows}, allow_nan=False)
    for (r, label), table in tables.items():
        write_atomically(table, _table(batches[label], r, motions[label]))
        print(table)
    if options.plot is not None:
        write_drawings(_drawings(motions, batches), options.plot)
    header = ["trajectory", "file", "end [rad]", "largest speed [rad/s]", "largest error to the goal [rad]"]
    cells = [
        [row["trajectory"], row["params"], *(f"{row[key]:.4g}" for key in ("end", "speed", "error"))]
        for row in rows
    ]
    print_table(header, cells, left=2)
    return 0


def _mechanism(options: SimulateOptions, name: str) -> int:
    unused = ["trajectories"] if options.trajectories else []
    unused += [f"--{word}" for word in OF_BENCHES if getattr(options, word)]
    if unused:
        raise ConfigError(f"remove {' and '.join(unused)}: a --mechanism does not need them")
    from stribeck.cli.simulate.mechanism import simulate_mechanism

    simulate_mechanism(name, options.seconds, options.step, options.output)
    return 0


def _labels(paths: Sequence[Path]) -> dict[Path, str]:
    """Short names of the parameter files, each another one."""
    labels = {path: display_name(path, paths) for path in paths}
    if len(set(labels.values())) < len(paths):
        raise ConfigError("--params names a file twice; name each once")
    return labels


def _tables(folder: Path | None, runs: Sequence[str], labels: Sequence[str]) -> dict[tuple[int, str], Path]:
    """The table of each run with each parameter file.

    :raises ConfigError: for trajectories of the same name.
    """
    twice = sorted({name for name in runs if runs.count(name) > 1})
    if twice:
        raise ConfigError(
            f"two trajectories have the same name ({', '.join(twice)}): name each once, and give different names to tables"
        )
    if folder is None:
        return {}
    return {
        (r, label): folder / f"{name}_{label}.csv".replace("/", "_")
        for r, name in enumerate(runs)
        for label in labels
    }


def _setup(text: str, path: Path, drive: Drive) -> Setup:
    """The bench that ``--bench`` describes; supply and gain are those of the parameter file's servo if they are left out."""
    given = described(text)
    if not isinstance(given, dict):
        raise ConfigError("--bench: a file cannot be used here: give mass=KG,length=M,arm_mass=KG,kp=GAIN")
    unknown = sorted(set(given) - set(SETUP_KEYS))
    if unknown:
        raise ConfigError(f"--bench: unknown {', '.join(unknown)}; valid: {', '.join(SETUP_KEYS)}")
    usual: dict[str, Any] = {"arm_mass": 0.0, "supply_voltage": drive.actuator.supply.nominal}
    if drive.gains is not None:
        usual["kp"] = drive.gains.kp
    values: dict[str, Any] = usual | given
    missing = [name for name in ("mass", "length", "kp") if name not in values]
    if missing:
        raise ConfigError(
            f"--bench: {', '.join(missing)} missing for {path}: mass=KG,length=M,kp=GAIN are required"
        )
    return Setup(**values)


def _row(label: str, r: int, name: str, batch: Batch, motion: Simulation) -> dict[str, Any]:
    last = batch.lengths[r]
    position, goal = motion.position[:last, r], batch.goal[:last, r]
    enabled = batch.torque_enable[:last, r] >= 0.5
    row: dict[str, Any] = {
        "trajectory": name,
        "params": label,
        "end": float(position[-1]),
        "speed": float(np.max(np.abs(motion.velocity[:last, r]))),
        "error": float(np.max(np.abs(position - goal), where=enabled, initial=0.0)),
    }
    if motion.motor_torque is not None:
        row["motor_torque"] = float(np.max(np.abs(motion.motor_torque[:last, r])))
    return row


def _table(batch: Batch, r: int, motion: Simulation) -> str:
    """A table of the motion of a run, in SI units."""
    columns = {
        "time": batch.time,
        "goal": batch.goal[:, r],
        "torque_enable": batch.torque_enable[:, r],
        "position": motion.position[:, r],
        "velocity": motion.velocity[:, r],
    }
    for name, signal in (("motor_torque", motion.motor_torque), ("external_torque", motion.external_torque)):
        if signal is not None:
            columns[name] = signal[:, r]
    return csv_text(columns, np.column_stack(list(columns.values()))[: batch.lengths[r]].tolist())


def _drawings(motions: dict[str, Simulation], batches: dict[str, Batch]) -> list[RunDrawing]:
    """Runs to draw, on the grid of the first file; files with another step are drawn at its times."""
    first = next(iter(batches.values()))
    aligned = {
        label: motion if batches[label].dt == first.dt else _at(first, batches[label], motion)
        for label, motion in motions.items()
    }
    drawings = []
    for r, (log, length) in enumerate(zip(first.logs, first.lengths, strict=True)):
        drawings.append(
            RunDrawing(
                time=first.time[:length],
                measured=np.full(length, np.nan),
                goal=first.goal[:length, r],
                torque_enable=first.torque_enable[:length, r],
                simulated={label: motion.position[:length, r] for label, motion in aligned.items()},
                title=log.name,
                errors={},
                panels=panels_of(first, r, length, aligned, None),
            )
        )
    return drawings


def _at(first: Batch, batch: Batch, motion: Simulation) -> Simulation:
    def moved(signal: Any) -> Any:
        if signal is None:
            return None
        return np.stack([np.interp(first.time, batch.time, column) for column in signal.T], axis=1)

    return Simulation(*map(moved, motion))
