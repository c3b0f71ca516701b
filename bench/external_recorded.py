r"""External torque in recorded free motion of real arms: alarms a minute, and how often the band holds. Nothing touched them, so every alarm is false.

    python bench/external_recorded.py MACHINE DRIVES RECORDING... [--urdf FILE] [--rate 500]

MACHINE is a file of ``config/robots`` by name, DRIVES what ``stribeck identify arm`` writes (from other recordings than those that are replayed). States and
torques of the motors are given to the compensator as a loop would; there are no goals. Mass and inertia are those of the URDF.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import stribeck as sb
from plants.friction import FloatArray
from stribeck.files.robots import read_robot
from stribeck.identify.arm.config import identification_config
from stribeck.identify.arm.recordings import ArmRecording, read_arm_recordings

SETTLING = 1.0
"""So long nothing is counted after the start [s]."""

SLOPE = 0.004
"""Velocities that were not recorded are slopes of the positions over this time before and after [s]."""


def slopes(run: ArmRecording) -> FloatArray:
    """Velocities from positions [rad/s]."""
    width = max(1, round(SLOPE / float(np.median(np.diff(run.time)))))
    place = np.arange(len(run.time))
    before, after = np.maximum(place - width, 0), np.minimum(place + width, len(place) - 1)
    return np.asarray(
        (run.position[after] - run.position[before]) / (run.time[after] - run.time[before])[:, None]
    )


def means(values: FloatArray, places: FloatArray) -> FloatArray:
    """Means of the samples since the last of the places (k,): what a loop measures that averages over its cycle."""
    sums = np.cumsum(np.vstack([np.zeros_like(values[:1]), values]), axis=0)
    ends = np.concatenate([[0], places + 1])
    return np.asarray(np.diff(sums[ends], axis=0) / np.diff(ends)[:, None])


def replayed(loop: sb.Compensator, run: ArmRecording, rate: float) -> dict[str, Any]:
    """Alarms and time within the band of one recording at so many states a second, or as many as there are."""
    loop.restart()
    time = run.time - run.time[0]
    keep = np.unique(np.searchsorted(time, np.arange(0.0, time[-1], 1.0 / rate)))
    velocity = run.velocity if run.velocity is not None else slopes(run)
    before = np.zeros(len(run.joints), dtype=np.bool_)
    alarms, begun = 0, np.zeros(len(run.joints), dtype=np.int64)
    within: list[FloatArray] = []
    largest = np.zeros(len(run.joints))
    for k, effort in zip(keep.tolist(), means(run.effort, keep), strict=True):
        loop.torque(run.position[k], velocity[k], effort=effort, t=float(time[k]))
        found = loop.external_torque
        if found is None or time[k] < SETTLING:
            continue
        alarm = np.abs(found.torque) > found.threshold
        alarms += bool((alarm & ~before).any())
        begun += alarm & ~before
        before = alarm
        within.append(np.abs(found.torque) <= found.band)
        largest = np.maximum(largest, np.abs(found.torque) / found.threshold)
    minutes = len(within) * (time[-1] / max(len(keep) - 1, 1)) / 60.0
    shares = np.mean(within, axis=0) if within else np.full(len(run.joints), np.nan)
    return {
        "recording": run.name,
        "seconds": round(60.0 * minutes, 1),
        "alarms": alarms,
        "alarms per minute": round(alarms / max(minutes, 1e-9), 2),
        "alarms by joint": begun.tolist(),
        "within the band": round(float(shares.mean()), 4),
        "within the band by joint": [round(float(share), 4) for share in shares],
        "largest per threshold": [round(float(x), 2) for x in largest],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("machine", help="of config/robots, or its YAML file")
    parser.add_argument("drives", type=Path, help="file of drives of the arm")
    parser.add_argument("recordings", type=Path, nargs="+", help="free motion")
    parser.add_argument("--urdf", type=Path, help="of the arm; by default beside the recordings")
    parser.add_argument("--rate", type=float, default=500.0, help="largest number of states a second")
    given = parser.parse_args()
    machine = read_robot(given.machine)
    form = identification_config(machine).recording
    runs = read_arm_recordings(given.recordings, form, machine.joints, machine.units)
    urdf = given.urdf or given.recordings[0].parent / machine.urdf
    loop = sb.Compensator(given.drives, urdf, effort_meaning="motor", max_torque=100.0, state_timeout=0.1)
    print(json.dumps([replayed(loop, run, given.rate) for run in runs], indent=1))


if __name__ == "__main__":
    sys.exit(main())
