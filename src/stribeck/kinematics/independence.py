r"""Which columns of a matrix depend on the ones before them, and how.

Gram-Schmidt in the given order, twice for accuracy: a column of which less than a share
:data:`RANKLESS` is left after projection onto the kept ones is dependent. Other than QR with pivoting
this keeps the columns that stand first, so that their order says which parameters are preferred.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

RANKLESS = 1e-7
"""Share of a column's length below which its independent part is rounding."""


def independent_columns(matrix: FloatArray, rankless: float = RANKLESS) -> list[int]:
    """Indices of the columns that do not depend on kept ones before them.

    :param matrix: (rows, columns); columns may differ in scale.
    """
    basis = np.zeros((matrix.shape[0], min(matrix.shape)))
    kept: list[int] = []
    lengths = np.linalg.norm(matrix, axis=0)
    for c, length in enumerate(lengths):
        if length <= rankless * lengths.max() * 1e-3 or len(kept) == basis.shape[1]:
            continue
        found = basis[:, : len(kept)]
        left = matrix[:, c] / length
        left = left - found @ (found.T @ left)
        left = left - found @ (found.T @ left)
        size = np.linalg.norm(left)
        if size > rankless:
            basis[:, len(kept)] = left / size
            kept.append(c)
    return kept


def dependence(
    matrix: FloatArray, kept: Sequence[int], column: int, negligible: float = 1e-6
) -> dict[int, float]:
    """A dependent column as a combination of kept ones: coefficient by index.

    :param negligible: coefficients whose contribution is below this share of the column's length are left out.
    """
    scale = np.linalg.norm(matrix[:, list(kept)], axis=0)
    length = np.linalg.norm(matrix[:, column])
    found = np.linalg.lstsq(matrix[:, list(kept)] / scale, matrix[:, column], rcond=None)[0]
    return {
        index: float(value / size)
        for index, value, size in zip(kept, found, scale, strict=True)
        if abs(value) > negligible * length
    }
