"""A soak: servo bus, nodes, guard and compensation at 1 kHz for a long time, with random faults.

    python bench/soak.py [--minutes 30] [--seed 0] [--json FILE]

A robot in this process publishes states and commands of seven joints at 1 kHz and hears every answer. Beside it run the
compensation node and its guard, an emulated bus with two servos, and the servo node, each in a process of its own. Faults
come in random order; each has to end as the documentation says. Exit code 1 when a limit is broken.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from soaking.faults import BUS_FAULTS, COMPENSATION_FAULTS, KILLS, EndError, Stage
from soaking.figures import Usage, percentile, usage_of, waiting_of
from soaking.robot import PAUSE, RATE, Robot

PERIOD, WATCHING = 5.0, 0.05
"""Of looking at the processes, and at how long they wait for a processor [s]."""

REST = 2.0
"""Shortest time between two faults [s]."""

WARM, MOST_GROWTH, MOST_HANDLES = 60.0, 5.0, 8
"""From what age a process is judged [s]; allowed growth of memory [MB] and of open files."""

KILLING = 0.4
"""Share of the time after which no process is killed any more, so that memory is judged over the rest."""


@dataclass
class Report:
    """What happened.

    :ivar ends: by fault, how often it ended as documented and the longest time until then [s].
    :ivar broken: limits that were broken.
    """

    ends: dict[str, list[float]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    rows: list[dict[str, float]] = field(default_factory=list)
    usage: dict[tuple[str, int], list[Usage]] = field(default_factory=dict)


def soak(seconds: float, seed: int) -> tuple[Report, dict[str, Any]]:
    """Run everything for so long."""
    report, chance = Report(), random.Random(seed)  # noqa: S311
    with tempfile.TemporaryDirectory(prefix="soak") as folder, Stage(Path(folder)) as stage:
        stage.start()
        robot, ended = stage.robot, threading.Event()
        watching = threading.Thread(target=watch, args=(stage, ended), daemon=True)
        watching.start()
        begin = due = time.monotonic()
        strike_at = begin + REST
        waiting: list[str] = []
        print(
            "   min  " + "".join(f"{name:>24}" for name in stage.processes) + "   round trip      sent  lost"
        )
        print(
            "        " + "  MB  files  CPU % of core" * len(stage.processes) + "   p50    p99 ms", flush=True
        )
        while (now := time.monotonic()) - begin < seconds:
            if now >= strike_at:
                if not waiting:
                    waiting = [*BUS_FAULTS, *COMPENSATION_FAULTS]
                    if now - begin < KILLING * seconds:
                        waiting += KILLS
                    chance.shuffle(waiting)
                name = waiting.pop()
                if name in KILLS and now - begin >= KILLING * seconds:
                    continue
                suffer(stage, report, name, chance)
                strike_at = time.monotonic() + REST + chance.uniform(0.0, 2.0)
            if now >= due:
                look(stage, report)
                if len(report.rows) % round(60.0 / PERIOD) == 0 or seconds <= 120.0:
                    show(report, robot, (now - begin) / 60.0)
                due = now + PERIOD
            time.sleep(0.05)
        try:
            stage.calm()
        except EndError as error:
            report.broken.append(f"at the end: {error}")
        ended.set()
        watching.join()
        judge(report, robot)
        counts = robot.counts()
    return report, counts


def watch(stage: Stage, ended: threading.Event) -> None:
    """Tell the robot of each time that the kernel let a thread wait for a processor so long that a queue overflows."""
    before: dict[int, float] = {}
    last = time.monotonic()
    while not ended.wait(WATCHING):
        pids = [os.getpid(), *(stage.processes[name].pid for name in ("compensation", "guard"))]
        waited = {task: seconds for pid in pids for task, seconds in waiting_of(pid).items()}
        now = time.monotonic()
        longest = max((seconds - before.get(task, seconds) for task, seconds in waited.items()), default=0.0)
        if longest > PAUSE:
            stage.robot.machine_paused(last - longest - WATCHING, now + WATCHING)
        before, last = waited, now


def suffer(stage: Stage, report: Report, name: str, chance: random.Random) -> None:
    """One fault and its end."""
    fault = {**BUS_FAULTS, **COMPENSATION_FAULTS, **KILLS}[name]
    stage.robot.fault_begins()
    try:
        report.ends.setdefault(name, []).append(fault(stage, chance))
    except EndError as error:
        report.ends.setdefault(name, []).append(math.inf)
        report.broken.append(f"{name}: {error}")
        print(f"  {name}: {error}", flush=True)
        stage.restart()
    stage.robot.fault_ends()


def look(stage: Stage, report: Report) -> None:
    """Memory, handles and processor time of the processes."""
    row: dict[str, float] = {}
    for name, process in stage.processes.items():
        found = usage_of(process.pid)
        if found is None:
            continue
        history = report.usage.setdefault((name, process.pid), [])
        history.append(found)
        row[f"{name} MB"], row[f"{name} files"] = found.memory, found.files
        row[f"{name} cpu"] = found.share(history[-2]) if len(history) > 1 else math.nan
    p50, p99 = stage.robot.latency()
    report.rows.append({**row, "p50_ms": p50, "p99_ms": p99})


def show(report: Report, robot: Robot, minutes: float) -> None:
    """The last row."""
    row = report.rows[-1]
    names = [key.removesuffix(" MB") for key in row if key.endswith(" MB")]
    columns = "".join(
        f"{row[f'{n} MB']:8.1f} {row[f'{n} files']:5.0f} {100 * row[f'{n} cpu']:8.0f} " for n in names
    )
    counts = robot.counts()
    print(
        f"{minutes:6.1f}  {columns} {row['p50_ms']:7.2f} {row['p99_ms']:7.2f} {counts['sent']:10d} "
        f"{counts['unaccounted']:5d}",
        flush=True,
    )


def judge(report: Report, robot: Robot) -> None:
    """Compare with the limits."""
    for (name, _), history in report.usage.items():
        old = [found for found in history if found.age >= WARM]
        if len(old) < 3:
            continue
        growth = np.median([f.memory for f in old[-3:]]) - old[0].memory
        handles = old[-1].files - old[0].files
        if growth > MOST_GROWTH:
            report.broken.append(
                f"memory of {name} grew by {growth:.1f} MB in {old[-1].age - old[0].age:.0f} s"
            )
        if handles > MOST_HANDLES:
            report.broken.append(f"{name} has {handles} open files more than after its first minute")
    counts = robot.counts()
    if counts["unaccounted"]:
        report.broken.append(
            f"{counts['unaccounted']} of {counts['sent']} commands were lost without a reason: "
            + "; ".join(robot.unaccounted())
        )


def growth_of(report: Report) -> dict[str, float]:
    """Largest growth of memory of each kind of process after its first minute [MB]."""
    found: dict[str, float] = {}
    for (name, _), history in report.usage.items():
        old = [usage.memory for usage in history if usage.age >= WARM]
        if old:
            found[name] = max(found.get(name, -math.inf), float(old[-1] - old[0]))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0, help="how long (at most 120)")
    parser.add_argument("--seed", type=int, default=0, help="order of the faults")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    if not 0.0 < options.minutes <= 120.0:
        parser.error("--minutes: expected a number above 0, at most 120")
    report, counts = soak(60.0 * options.minutes, options.seed)
    print("\nfaults, how often, and the longest until the documented end")
    for name, times in sorted(report.ends.items()):
        print(f"  {name:42} {len(times):4d}  {max(times):7.2f} s")
    print("\n" + ", ".join(f"{key} {value}" for key, value in counts.items()))
    for name, growth in growth_of(report).items():
        print(f"memory of {name} after its first minute: {growth:+.1f} MB")
    for key in ("p50_ms", "p99_ms"):
        parts = np.array_split(np.array([row[key] for row in report.rows]), 4)
        print(
            f"round trip {key}: " + ", ".join(f"{percentile(part, 50):.2f}" for part in parts) + " by quarter"
        )
    if options.json:
        found = {"broken": report.broken, "ends": report.ends, "counts": counts, "rows": report.rows}
        options.json.write_text(json.dumps(found, indent=1))
    for text in report.broken:
        print(f"broken: {text}", file=sys.stderr)
    print("a limit was broken" if report.broken else f"all limits held, {RATE} Hz")
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
