"""Elementwise formulas of the live loop, for an optional compiler (numpy evaluates them as they are)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

Formula = Callable[..., Any]
Compiler = Callable[[Formula, Sequence[str]], Formula]
"""Compiles an elementwise formula; its named arguments are arrays or numbers, in the given order."""


def as_written(formula: Formula, names: Sequence[str]) -> Formula:
    """The compiler that returns the formula unchanged, for numpy."""
    return formula


def compiled_by(compiler: Compiler, formula: Formula) -> Formula:
    """A formula compiled with the argument names of its definition."""
    return compiler(formula, tuple(inspect.signature(formula).parameters))
