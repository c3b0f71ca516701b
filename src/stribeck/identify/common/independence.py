"""Linear dependence of the columns of a matrix on earlier columns.

Gram-Schmidt in the given order, applied twice for accuracy. A column is dependent if less than a share :data:`RANKLESS`
of it remains after projection onto the kept ones. Unlike QR with pivoting this prefers earlier columns, so callers
choose the preferred parameters by the order of the columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stribeck.model.arrays import Array

RANKLESS = 1e-7
"""If the independent part is below this share of a column's length, it is rounding error."""

NEGLIGIBLE = 1e-6


def independent_columns(matrix: Array, rankless: float = RANKLESS) -> list[int]:
    """Indices of the columns that do not depend on earlier ones.

    :param matrix: (rows, columns); columns may differ in scale.
    """
    basis = np.zeros((matrix.shape[0], min(matrix.shape)))
    kept: list[int] = []
    lengths = np.linalg.norm(matrix, axis=0)
    for c, length in enumerate(lengths):
        if length <= rankless * lengths.max() * 1e-3 or len(kept) == basis.shape[1]:
            continue
        earlier, rest = basis[:, : len(kept)], matrix[:, c] / length
        for _ in range(2):
            rest = rest - earlier @ (earlier.T @ rest)
        size = np.linalg.norm(rest)
        if size > rankless:
            basis[:, len(kept)] = rest / size
            kept.append(c)
    return kept


def dependence(matrix: Array, kept: Sequence[int], column: int) -> dict[int, float]:
    """Coefficients, by index, of a dependent column as a combination of kept ones.

    Coefficients that contribute less than :data:`NEGLIGIBLE` of the column's length are left out.
    """
    scale = np.linalg.norm(matrix[:, list(kept)], axis=0)
    length = np.linalg.norm(matrix[:, column])
    coefficients = np.linalg.lstsq(matrix[:, list(kept)] / scale, matrix[:, column], rcond=None)[0]
    return {
        index: float(value / size)
        for index, value, size in zip(kept, coefficients, scale, strict=True)
        if abs(value) > NEGLIGIBLE * length
    }
