"""Elementwise formulas of the live loop, as a compiler takes them (numpy runs them as they are written)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

Formula = Callable[..., Any]
Compiler = Callable[[Formula, Sequence[str]], Formula]
"""Makes an elementwise formula of the named arguments faster; they come in that order, as arrays or numbers."""


def as_written(formula: Formula, names: Sequence[str]) -> Formula:
    """The compiler that leaves a formula to numpy."""
    return formula


def compiled_by(compiler: Compiler, formula: Formula) -> Formula:
    """A formula compiled with the argument names of its definition."""
    return compiler(formula, tuple(inspect.signature(formula).parameters))
