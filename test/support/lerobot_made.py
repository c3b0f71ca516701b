"""LeRobot data sets and calibrations made of runs: the layouts of versions 2.1 and 3.0, float32 as LeRobot stores them."""

import json
import math

import numpy as np
import pytest

pyarrow = pytest.importorskip("pyarrow", reason="PyArrow is not installed")
from pyarrow import parquet  # noqa: E402 - after the check

RANGES = {"hip": (700, 3300), "knee": (400, 3900)}
"""Calibrated ranges [counts]."""


def calibration(path, ranges=RANGES, **changes):
    """A calibration file as LeRobot writes it."""
    joints = {
        name: {"id": k + 1, "drive_mode": 0, "homing_offset": 0, "range_min": low, "range_max": high}
        | changes
        for k, (name, (low, high)) in enumerate(ranges.items())
    }
    path.write_text(json.dumps(joints, indent=4))
    return path


def numbers(angle, unit, ranges=RANGES):
    """Angles (N, k) [rad] in the unit of a data set."""
    if unit == "radians":
        return angle
    if unit == "degrees":
        return np.degrees(angle)
    half = np.array([high - low for low, high in ranges.values()]) * math.pi / 4095
    return 100.0 * angle / half


def data_set(folder, episodes, fps, unit, *, version="v3.0", names=("hip.pos", "knee.pos"), feature=None):
    """Write episodes, (positions, goals) [rad], as a data set; returns its folder."""
    (folder / "meta").mkdir(parents=True)
    described = {"dtype": "float32", "shape": [len(names)], "names": list(names), **(feature or {})}
    info = {
        "codebase_version": version,
        "fps": fps,
        "features": {"observation.state": described, "action": described},
    }
    (folder / "meta/info.json").write_text(json.dumps(info))
    (folder / "data/chunk-000").mkdir(parents=True)
    tables = []
    for k, (position, goal) in enumerate(episodes):
        rows = len(position)
        columns = {
            "observation.state": pyarrow.array(list(numbers(position, unit).astype(np.float32))),
            "action": pyarrow.array(list(numbers(goal, unit).astype(np.float32))),
            "timestamp": pyarrow.array((np.arange(rows) / fps).astype(np.float32)),
            "frame_index": pyarrow.array(np.arange(rows)),
            "episode_index": pyarrow.array(np.full(rows, k)),
        }
        tables.append(pyarrow.table(columns))
    if version.startswith("v3"):
        parquet.write_table(pyarrow.concat_tables(tables), folder / "data/chunk-000/file-000.parquet")
        (folder / "meta/episodes/chunk-000").mkdir(parents=True)
        parquet.write_table(
            pyarrow.table({"episode_index": [0]}), folder / "meta/episodes/chunk-000/file-000.parquet"
        )
    else:
        for k, table in enumerate(tables):
            parquet.write_table(table, folder / f"data/chunk-000/episode_{k:06d}.parquet")
    return folder
