"""Reads measured axis inertias of an arm from a table of poses, axes and inertias."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from stribeck.errors import RecordingError
from stribeck.model.arrays import Array
from stribeck.recordings.tables.readers import read_table


def read_inertias(path: Path, joints: int) -> tuple[Array, npt.NDArray[np.int64], Array]:
    """Read poses (N, n) [rad], axes (N,) counted from 0, and inertias (N,) [kg m²].

    :raises RecordingError: for a file that is not such a table.
    """
    table = read_table(path)
    rows = table.columns(0, len(table.names))
    if rows.shape[1] != joints + 2 or not np.all(np.isfinite(rows)):
        raise RecordingError(
            f"{path}: expected rows of {joints} joint positions, axis and inertia, all finite; found {len(rows)} rows of {rows.shape[1]}"
        )
    axes, measured = rows[:, joints].astype(int) - 1, rows[:, joints + 1]
    if (
        np.any(axes != rows[:, joints] - 1)
        or np.any((axes < 0) | (axes >= joints))
        or np.any(measured <= 0.0)
    ):
        raise RecordingError(f"{path}: axes must be 1 to {joints} and inertias positive")
    return rows[:, :joints], axes, measured
