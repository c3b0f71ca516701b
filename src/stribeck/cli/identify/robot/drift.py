"""What ``stribeck identify robot --since`` does: friction run by run, and which joint changed since an earlier fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from stribeck.cli.identify.robot.options import IdentifyRobotOptions
from stribeck.cli.inputs import check_outputs, write_json
from stribeck.cli.table import print_table
from stribeck.files.drives import read_drives
from stribeck.identify.robot.drift import FALSE_ALARMS, JointDrift, friction_over_runs
from stribeck.identify.robot.identify import usable
from stribeck.identify.robot.recordings import RobotRun
from stribeck.identify.robot.tree import RobotTree


def report_drift(
    since: Path,
    options: IdentifyRobotOptions,
    tree: RobotTree,
    runs: list[RobotRun],
    excluded: tuple[str, ...],
    note: Callable[[str], None],
) -> int:
    """Print friction by joint and run, draw it, and write the requested files."""
    picture = options.output / "drift.png" if options.output else None
    check_outputs([options.json, picture], [options.model, since, *options.recordings])
    good = usable(runs, note)
    names = [run.name for run in good]
    found = friction_over_runs(tree, good, read_drives(since), excluded)
    rows = []
    for each in found:
        values = [
            f"{value:.3f}±{1.96 * width:.3f}"
            for value, width in zip(each.friction, each.deviation, strict=True)
        ]
        change = f"{_change(each):+.0%} since {names[each.since]}" if each.since is not None else "none"
        rows.append([each.joint, f"{each.speed:.2f}", f"{each.earlier[0]:.3f}", *values, change])
    print("friction [N m] at the given speed [rad/s], and its change as far as it is statistically certain")
    print_table(["joint", "speed", "earlier", *names, "change"], rows)
    unsure = [each.joint for each in found if not np.isfinite(each.earlier[1])]
    if unsure:
        print(
            f"not tested: {', '.join(unsure)}. The earlier fit states no intervals for these joints, which need at least three runs"
        )
    print(
        f"probability of a false alarm in any joint, for any number of later runs: at most {FALSE_ALARMS:.0%}"
    )
    content: dict[str, Any] = {"runs": names, "false_alarms": FALSE_ALARMS}
    content["drift"] = {each.joint: _content(each, names) for each in found}
    write_json(options.json, content, allow_nan=False)
    if picture:
        from stribeck.report.drift import draw_drift
        from stribeck.report.style import save

        picture.parent.mkdir(parents=True, exist_ok=True)
        save(draw_drift(found, names), picture)
    return 0


def _change(drift: JointDrift) -> float:
    """Relative change of the mean over all runs, weighted by their variances."""
    weight = drift.deviation**-2
    return float(np.sum(weight * drift.friction) / weight.sum() / max(drift.earlier[0], 1e-12) - 1.0)


def _content(drift: JointDrift, names: list[str]) -> dict[str, Any]:
    wide = 1.96 * drift.deviation
    intervals = np.stack([drift.friction - wide, drift.friction + wide], axis=1)
    spread = drift.earlier[1]
    return {
        "speed": drift.speed,
        "earlier": drift.earlier[0],
        "earlier_deviation": spread if np.isfinite(spread) else None,
        "friction": drift.friction.tolist(),
        "intervals": intervals.tolist(),
        "log_evidence": drift.evidence.tolist(),
        "changed": drift.since is not None,
        "since": None if drift.since is None else names[drift.since],
        "change": _change(drift),
    }
