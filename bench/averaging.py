"""Averages of fits against the best fit, on conditions of real servos that were left out of them.

Each gain and each trajectory of an XL330, and each trajectory of an STS3250, is predicted by the law that the other runs choose,
alone and in the average that its file contains. ``--folder`` keeps the fits.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

import stribeck as sb
from left_out import DATA, conditions, fitted
from stribeck.api.prediction import Prediction, predicted
from stribeck.identify.servo.prediction import COVERAGE
from stribeck.model.joint import Drive


class Judged(NamedTuple):
    """Errors [mrad] and bands of a prediction of several runs.

    :param wide: mean half-width of the band relative to the half-width that would hold 90 % of the samples.
    """

    error: float
    coverage: float
    wide: float


def cases(data: Path) -> Iterator[tuple[str, str, list[Path], list[Path]]]:
    """Servo, what is left out, recordings that are fitted and recordings that are predicted."""
    for servo in ("xl330", "sts3250"):
        for name, kept, other in conditions(servo, data):
            yield servo, name, kept, other
    files = sorted((data / "xl330").glob("kp*.json"))
    for name in sorted({path.stem.split("_", 1)[1] for path in files}):
        other = [path for path in files if path.stem.endswith(name)]
        yield "xl330", name, [path for path in files if path not in other], other


def judged(drive: Drive, runs: sb.Recordings) -> Judged:
    """Mean error over the runs, share of samples in the band, and its width."""
    motions: list[Prediction] = [predicted(drive, run, "") for run in runs.logs]
    residual = np.concatenate([np.abs(one.measured - one.position) for one in motions])
    band = np.concatenate([one.band for one in motions])
    valid = np.isfinite(residual)
    needed = np.quantile(residual[valid], COVERAGE)
    return Judged(
        1e3 * float(np.mean([one.error for one in motions])),
        float(np.mean(residual[valid] <= band[valid])),
        float(np.mean(band[valid]) / needed),
    )


def alone(drive: Drive) -> Drive:
    """The drive without the other fits of its file."""
    if drive.prediction is None:
        return drive
    return replace(drive, prediction=replace(drive.prediction, members=()))


def main() -> None:
    """Print and write the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--folder", type=Path, help="keeps the fits")
    parser.add_argument("--only", nargs="*", help="conditions")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = []
    print(f"{'left out':26} {'law':>4} {'fits':>4}   alone [mrad]   averaged   in the band, width / needed")
    for servo, name, kept, other in cases(options.data):
        if options.only and name not in options.only:
            continue
        train, test = (sb.load(paths, arm_mass=0.0) for paths in (kept, other))
        drive = fitted(train, "auto", options.folder, f"{servo}-{name}")
        members = drive.prediction.members if drive.prediction else ()
        best, mean = judged(alone(drive), test), judged(drive, test)
        print(
            f"{servo + ' ' + name:26} {drive.law.name:>4} {1 + len(members):4}   {best.error:12.2f} {mean.error:10.2f}   {100 * mean.coverage:3.0f} %, {mean.wide:.2f}",
            flush=True,
        )
        found.append(
            {"servo": servo, "left_out": name, "law": drive.law.name, "fits": 1 + len(members)}
            | {"alone": best._asdict(), "averaged": mean._asdict()}
        )
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
