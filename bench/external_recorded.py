r"""External torque in recorded free motion of real arms: alarms a minute, and how often the band holds. Nothing touched them, so every alarm is false.

    python bench/external_recorded.py MACHINE DRIVES RECORDING... [--urdf FILE] [--rate 500]

MACHINE is a file of ``config/robots`` by name, DRIVES what ``stribeck identify arm`` writes (from other recordings than those that are replayed). States and
torques of the motors are given to the compensator as a loop would; there are no goals. Mass and inertia are those of the URDF, not identified ones.
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
from stribeck.identify.arm.recordings import ArmRecording, read_arm_recordings, velocity_slopes

SETTLING = 1.0
"""So long nothing is counted after the start [s]."""


def replayed(loop: sb.Compensator, run: ArmRecording, rate: float) -> dict[str, Any]:
    """Alarms and time within the band of one recording at so many states a second."""
    loop.restart()
    time, step = run.time - run.time[0], 1.0 / rate
    keep = np.searchsorted(time, np.arange(0.0, time[-1], step))
    velocity = run.velocity if run.velocity is not None else velocity_slopes(run)[0]
    alarms, before = 0, np.zeros(len(run.joints), dtype=np.bool_)
    within: list[FloatArray] = []
    largest = np.zeros(len(run.joints))
    for k in keep.tolist():
        loop.torque(run.position[k], velocity[k], effort=run.effort[k], t=float(time[k]))
        found = loop.external_torque
        if found is None or time[k] < SETTLING:
            continue
        alarm = np.abs(found.torque) > found.threshold
        alarms += bool((alarm & ~before).any())
        before = alarm
        within.append(np.abs(found.torque) <= found.band)
        largest = np.maximum(largest, np.abs(found.torque) / found.threshold)
    minutes = len(within) * step / 60.0
    shares = np.mean(within, axis=0) if within else np.full(len(run.joints), np.nan)
    return {
        "recording": run.name,
        "seconds": round(60.0 * minutes, 1),
        "alarms": alarms,
        "alarms per minute": round(alarms / max(minutes, 1e-9), 2),
        "within the band": round(float(shares.mean()), 4),
        "least within the band": round(float(shares.min()), 4),
        "largest per threshold": [round(float(x), 2) for x in largest],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("machine", help="of config/robots, or its YAML file")
    parser.add_argument("drives", type=Path, help="file of drives of the arm")
    parser.add_argument("recordings", type=Path, nargs="+", help="free motion")
    parser.add_argument("--urdf", type=Path, help="of the arm; by default beside the recordings")
    parser.add_argument("--rate", type=float, default=500.0, help="states a second")
    given = parser.parse_args()
    machine = read_robot(given.machine)
    form = identification_config(machine).recording
    runs = read_arm_recordings(given.recordings, form, machine.joints, machine.units)
    urdf = given.urdf or given.recordings[0].parent / machine.urdf
    loop = sb.Compensator(given.drives, urdf, effort_meaning="motor", max_torque=100.0, state_timeout=0.1)
    print(json.dumps([replayed(loop, run, given.rate) for run in runs], indent=1))


if __name__ == "__main__":
    sys.exit(main())
