"""Affine expressions of parameters in model files, and the physical constants that they make.

A :data:`Number` is a number or an affine expression of parameters such as ``-l2`` or ``0.0935 + 0.5 l2``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from stribeck.errors import ConfigError

TERM = re.compile(r"([+-]?)\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)\s*\*?\s*)?([A-Za-z_]\w*)?\s*")
"""One term of an affine expression: sign, factor, parameter."""

Number = float | str


def affine(value: Number, names: Sequence[str], where: str) -> tuple[float, Any]:
    """Constant and coefficients (p,) of a number or an affine expression of parameters.

    :raises ConfigError: for other text and unknown names.
    """
    row = np.zeros(len(names))
    if not isinstance(value, str):
        return float(value), row
    constant, position, text = 0.0, 0, value.strip()
    while position < len(text) or not text:
        match = TERM.match(text, position)
        sign, factor, name = match.groups() if match else ("", None, None)
        if match is None or (factor is None and name is None) or (position > 0 and not sign):
            raise ConfigError(
                f"{where}: {value!r} is neither a number nor a sum of numbers and parameters such as '0.1 - 0.5 l2'"
            )
        number = (-1.0 if sign == "-" else 1.0) * float(factor or 1.0)
        if name is None:
            constant += number
        else:
            row[index_of(name, names, where, "parameter ")] += number
        position = match.end()
    return constant, row


def index_of(name: str, names: Iterable[str], where: str, kind: str = "") -> int:
    """Place of a name among the valid ones.

    :raises ConfigError: for another name.
    """
    names = list(names)
    if name not in names:
        raise ConfigError(f"{where}: unknown {kind}{name!r}; valid: {', '.join(names) or 'none'}")
    return names.index(name)


class AffineNumbers:
    """Collects the affine expressions of all physical constants of a mechanism."""

    def __init__(self, names: Sequence[str], sizes: Mapping[str, tuple[int, ...]]) -> None:
        self.names = names
        self.constant = {name: np.zeros(shape) for name, shape in sizes.items()}
        self.matrix = {name: np.zeros((*shape, len(names))) for name, shape in sizes.items()}

    def put(self, name: str, index: int | tuple[int, int], value: Number | None, where: str) -> None:
        """Set one constant; ``None`` is zero.

        :raises ConfigError: for an invalid expression.
        """
        constant, row = affine(0.0 if value is None else value, self.names, where)
        self.constant[name][index], self.matrix[name][index] = constant, row

    def put_all(self, name: str, index: int, values: Sequence[Number], where: str) -> None:
        """Set a row of constants."""
        for k, value in enumerate(values):
            self.put(name, (index, k), value, where)

    def flat(self) -> tuple[Any, Any]:
        """Constants (n,) and coefficients (n, p) of all fields in order."""
        constant = np.concatenate([part.reshape(-1) for part in self.constant.values()])
        matrix = np.concatenate([part.reshape(-1, len(self.names)) for part in self.matrix.values()])
        return constant, matrix
