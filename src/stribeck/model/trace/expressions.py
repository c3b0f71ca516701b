"""Expressions: formulas written for arrays, recorded as graphs of elementary operations.

A formula is called once with symbols of a :class:`Tracer` in place of numbers. The resulting graph is evaluated by whatever
an emitter makes of it: Python statements (:mod:`stribeck.model.trace.straight_line`), a call of numexpr
(:mod:`stribeck.live.compiled`), C and C++ (:mod:`stribeck.exports.c_expressions`), or ONNX
(:mod:`stribeck.exports.onnx_graph`). Equal operations on equal arguments are one node; operations on numbers alone are
computed at once.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from stribeck.model.namespace import array_namespace

OPERATORS = ("+", "-", "*", "/", "**", "<", ">", "<=", ">=", "==", "!=", "&", "|")
"""Operations between two arguments."""


class Tracer:
    """The nodes of one graph, in the order in which they were made, so that arguments come before their results."""

    def __init__(self) -> None:
        self.nodes: list[Expression] = []
        self._known: dict[tuple[Any, ...], Expression] = {}

    def symbol(self, name: str) -> Expression:
        """An input of the formula."""
        return self.node("input", name)

    def node(self, operation: str, *arguments: Any, truth: bool = False) -> Expression:
        """The result of an operation on expressions and numbers.

        :param truth: whether the result is a truth value.
        """
        # repr() tells 0.0 from -0.0.
        key = (operation, *(id(a) if isinstance(a, Expression) else repr(a) for a in arguments))
        if key not in self._known:
            self._known[key] = Expression(self, len(self.nodes), operation, arguments, truth)
            self.nodes.append(self._known[key])
        return self._known[key]


def _operator(operation: str, truth: bool = False) -> Callable[[Any, Any], Any]:
    def operator(a: Expression, b: Any) -> Any:
        if getattr(b, "__array_ufunc__", b) is None:  # dual numbers, as numpy's arrays do
            return NotImplemented
        return a.trace.node(operation, a, _argument(b), truth=truth)

    return operator


_product = _operator("*")


def _reflected(operation: str) -> Callable[[Any, Any], Expression]:
    return lambda a, b: a.trace.node(operation, _argument(b), a)


def _logical(operation: str) -> Callable[[Any, Any], Expression]:
    return lambda a, b: a.trace.node(operation, condition(a), condition(b), truth=True)


class Expression:
    """A number that is known when the graph is evaluated.

    :param index: place in the trace.
    :param operation: name of an operator or function; ``input`` for an input, whose argument is its name.
    :param arguments: expressions and numbers.
    :param truth: whether it is a truth value; inputs are numbers, even those used as masks.
    """

    __slots__ = ("arguments", "index", "operation", "trace", "truth")

    def __init__(
        self, trace: Tracer, index: int, operation: str, arguments: tuple[Any, ...], truth: bool
    ) -> None:
        self.trace, self.index, self.operation = trace, index, operation
        self.arguments, self.truth = arguments, truth

    def __array_namespace__(self) -> ModuleType:
        functions: Any = _Functions
        module: ModuleType = functions
        return module

    def __neg__(self) -> Expression:
        return self.trace.node("neg", self)

    __add__, __radd__ = _operator("+"), _reflected("+")
    __sub__, __rsub__ = _operator("-"), _reflected("-")

    def __mul__(self, other: Any) -> Any:
        return self if _is_one(other) else _product(self, other)

    def __rmul__(self, other: Any) -> Expression:
        return self.trace.node("*", _argument(other), self) if not _is_one(other) else self

    __truediv__, __rtruediv__ = _operator("/"), _reflected("/")
    __pow__ = _operator("**")
    __lt__, __gt__ = _operator("<", truth=True), _operator(">", truth=True)
    __le__, __ge__ = _operator("<=", truth=True), _operator(">=", truth=True)
    __eq__, __ne__ = _operator("==", truth=True), _operator("!=", truth=True)
    __and__, __or__ = _logical("&"), _logical("|")
    __hash__ = object.__hash__

    def __invert__(self) -> Expression:
        return self.trace.node("~", condition(self), truth=True)

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value while it is recorded: use where()")


def _is_one(value: Any) -> bool:
    return not isinstance(value, Expression) and bool(value == 1.0)


def _argument(value: Any) -> Any:
    return value if isinstance(value, Expression) else float(value)


def condition(value: Any) -> Any:
    """A truth value as it is; a number as the condition that it is not zero."""
    if not isinstance(value, Expression):
        return bool(value)
    return value if value.truth else value.trace.node("!=", value, 0.0, truth=True)


def _function(operation: str, truth: bool = False) -> Callable[..., Any]:
    def function(*arguments: Any) -> Any:
        traces = [a.trace for a in arguments if isinstance(a, Expression)]
        if not traces:
            return getattr(array_namespace(*arguments), operation)(*arguments)
        return traces[0].node(operation, *map(_argument, arguments), truth=truth)

    return function


class _Functions:
    """The array functions of formulas. Comparisons with NaN are false; NaN values propagate."""

    abs = staticmethod(_function("abs"))
    sin = staticmethod(_function("sin"))
    cos = staticmethod(_function("cos"))
    exp = staticmethod(_function("exp"))
    expm1 = staticmethod(_function("expm1"))
    log = staticmethod(_function("log"))
    sqrt = staticmethod(_function("sqrt"))
    floor = staticmethod(_function("floor"))
    tanh = staticmethod(_function("tanh"))
    sign = staticmethod(_function("sign"))
    isfinite = staticmethod(_function("isfinite", truth=True))
    minimum = staticmethod(_function("minimum"))
    maximum = staticmethod(_function("maximum"))
    clip = staticmethod(_function("clip"))

    @staticmethod
    def where(chosen: Any, a: Any, b: Any) -> Any:
        """``a`` where the condition is true, else ``b``."""
        chosen = condition(chosen)
        if not isinstance(chosen, Expression):
            return a if chosen else b
        a, b = _operand(chosen, a, 1), _operand(chosen, b, 2)
        same = a is b or (
            not isinstance(a, Expression) and not isinstance(b, Expression) and repr(a) == repr(b)
        )
        return a if same else chosen.trace.node("where", chosen, a, b)


def _operand(chosen: Expression, value: Any, place: int) -> Any:
    """An operand of a ``where``; of another ``where`` with the same condition the operand that is then chosen."""
    if isinstance(value, Expression) and value.operation == "where" and value.arguments[0] is chosen:
        return value.arguments[place]
    return _argument(value)
