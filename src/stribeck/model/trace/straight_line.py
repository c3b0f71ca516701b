"""Compiles a time step, written for arrays, to a Python loop over plain numbers, or to a function of arrays.

A step of one joint has about two hundred operations. Called as a formula of :mod:`stribeck.model`, it spends most of its time
in calls, look-ups of parameters and repeated expressions; as statements on local variables it takes a tenth for numbers, a
third for arrays. The values are those of the formula on Python floats or numpy's arrays, to the last bit: the operations and
their order are the same.

What depends on constants alone is computed once. A loop computes the operands of a ``where`` that nothing else uses only
where they are chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stribeck.model.namespace import array_namespace
from stribeck.model.trace.expressions import Expression, Tracer, condition

_SCALARS = array_namespace(0.0)

_GLOBALS: dict[str, Any] = {
    "abs": abs, "inf": math.inf, "nan": math.nan, "isfinite": math.isfinite, "floor": math.floor, "cos": math.cos, "sin": math.sin,
    "sqrt": math.sqrt, "tanh": math.tanh, "expm1": math.expm1, "exp": math.exp, "log": math.log,
    "unusual_exp": _SCALARS.exp, "unusual_log": _SCALARS.log,
}  # fmt: skip

_FORMS = {
    "neg": "(-{0})",
    "~": "(not {0})",
    "&": "({0} and {1})",
    "|": "({0} or {1})",
    "sign": "(1.0 if {0} > 0.0 else -1.0 if {0} < 0.0 else {0})",
    "maximum": "({0} if {0} >= {1} or {0} != {0} else {1})",
    "minimum": "({0} if {0} <= {1} or {0} != {0} else {1})",
    "clip": "({0} if {1} <= {0} <= {2} else {2} if {0} > {2} or {1} > {2} else {1} if {0} < {1} else {0})",
    "exp": "(exp({0}) if {0} < 700.0 else unusual_exp({0}))",
    "log": "(log({0}) if {0} > 0.0 else unusual_log({0}))",
    "where": "({1} if {0} else {2})",
}
"""Operations in Python, as :mod:`stribeck.model.namespace` defines them for floats; others are functions or operators."""

_ARRAY_FORMS = {"neg": "(-{0})", "~": "logical_not({0})", "clip": "minimum(maximum({0}, {1}), {2})"}
"""Operations on arrays that are neither functions of numpy nor operators."""

_ARRAY_GLOBALS: dict[str, Any] = {"inf": np.inf, "nan": np.nan} | {
    name: getattr(np, name)
    for name in (
        *("abs", "isfinite", "floor", "cos", "sin", "sqrt", "tanh", "expm1", "exp", "log"),
        *("sign", "maximum", "minimum", "where", "logical_not"),
    )
}

_ONCE = {"neg", "~", "+", "-", "*", "/", "**", "<", ">", "<=", ">=", "==", "!=", "&", "|"}
"""Operations whose form contains each argument once, so that an argument may be a whole expression."""

Scope = tuple[Any, ...]
"""Where a node is computed: ``("constants",)``, ``("loop",)``, or a loop's scope and conditions with their outcomes."""

CONSTANTS: Scope = ("constants",)
LOOP: Scope = ("loop",)

Step = Callable[[Mapping[str, Any], Sequence[Any]], tuple[Sequence[Any], Any]]
"""A formula: from constants by name and a state, the next state and whether the loop has to end after it."""

Steps = Callable[..., tuple[Any, ...]]
"""``steps(count, observe, *state)``: up to ``count`` steps; returns the number of steps made, and the state.

``observe`` is called with the first variable of the state after each step."""


class Loop(NamedTuple):
    """A compiled time step.

    :param prepare: from the constants, in order, the loop.
    :param source: the Python source.
    """

    prepare: Callable[..., Steps]
    source: str


def compiled_loop(step: Step, constants: Sequence[str], state: Sequence[str]) -> Loop:
    """Compile a time step to a loop.

    :param constants: names of the values that stay the same during a loop.
    :param state: names of the variables of the state.
    """
    trace = Tracer()
    fixed = {name: trace.symbol(name) for name in constants}
    following, ends = step(fixed, [trace.symbol(name) for name in state])
    source = "\n".join(_Emitter(trace, constants, state).lines(following, condition(ends)))
    namespace = dict(_GLOBALS)
    exec(compile(source, "<time step>", "exec"), namespace)  # noqa: S102 - generated from formulas above
    return Loop(namespace["prepare"], source)


def compiled_function(
    formula: Callable[[Mapping[str, Any], Sequence[Any]], Sequence[Any]],
    constants: Mapping[str, Any],
    variables: Sequence[str],
) -> Callable[..., tuple[Any, ...]]:
    """Compile a formula to a function of numpy's arrays, of which only what depends on the variables is computed at a call.

    :param constants: by name, numbers or arrays that broadcast with the variables.
    :param variables: names of the arguments of the function.
    """
    trace = Tracer()
    results = formula(
        {name: trace.symbol(name) for name in constants}, [trace.symbol(name) for name in variables]
    )
    lines = _Emitter(trace, tuple(constants), variables, arrays=True).function(results)
    namespace = dict(_ARRAY_GLOBALS)
    exec(compile("\n".join(lines), "<formula>", "exec"), namespace)  # noqa: S102 - generated from formulas above
    function: Callable[..., tuple[Any, ...]] = namespace["prepare"](**constants)
    return function


class _Emitter:
    """Writes the statements of a trace, for numbers or for arrays."""

    def __init__(
        self, trace: Tracer, constants: Sequence[str], state: Sequence[str], *, arrays: bool = False
    ) -> None:
        self._trace, self._constants, self._state = trace, constants, state
        self._branches = not arrays
        self._forms, self._functions = (_ARRAY_FORMS, _ARRAY_GLOBALS) if arrays else (_FORMS, _GLOBALS)
        self._names = {n.index: n.arguments[0] for n in trace.nodes if n.operation == "input"}

    def lines(self, following: Sequence[Any], ends: Any) -> list[str]:
        """The source of the function ``prepare``."""
        self._place([*following, ends])
        once = self._statements(CONSTANTS, len(self._trace.nodes), "    ")
        body = self._statements(LOOP, len(self._trace.nodes), "            ")
        targets = ", ".join(self._state)
        return [
            f"def prepare({', '.join(self._constants)}):",
            *once,
            f"    def steps(count, observe, {targets}):",
            "        for made in range(1, count + 1):",
            *body,
            f"            {targets} = {', '.join(map(self._text, following))}",
            f"            observe({self._state[0]})",
            f"            if {self._text(ends)}:",
            "                break",
            f"        return made, {targets}",
            "    return steps",
        ]

    def function(self, results: Sequence[Any]) -> list[str]:
        """The source of a function ``prepare``, which returns that of the variables."""
        self._place(results)
        return [
            f"def prepare({', '.join(self._constants)}):",
            *self._statements(CONSTANTS, len(self._trace.nodes), "    "),
            f"    def function({', '.join(self._state)}):",
            *self._statements(LOOP, len(self._trace.nodes), "        "),
            f"        return {', '.join(map(self._text, results))},",
            "    return function",
        ]

    def _place(self, results: Sequence[Any]) -> None:
        """Find for each node its scope, the number of its uses, and whether it needs a name."""
        constant: set[int] = set()
        for node in self._trace.nodes:
            known = node.operation == "input" and node.arguments[0] in self._constants
            inner = [a.index in constant for a in node.arguments if isinstance(a, Expression)]
            if known or (inner and all(inner)):
                constant.add(node.index)
        uses: dict[int, list[Scope]] = {}
        named: set[int] = set()
        for result in results:
            if isinstance(result, Expression):
                uses.setdefault(result.index, []).append(LOOP)
                named.add(result.index)
        self._scopes: dict[int, Scope] = {}
        for node in reversed(self._trace.nodes):
            if node.index not in uses:
                continue
            scope = CONSTANTS if node.index in constant else _common(uses[node.index])
            self._scopes[node.index] = scope
            if node.operation == "input":
                continue
            for place, argument in enumerate(node.arguments):
                if not isinstance(argument, Expression):
                    continue
                inside = scope
                if self._branches and node.operation == "where" and place and scope != CONSTANTS:
                    inside = (*scope, (node.arguments[0].index, place == 1))
                uses.setdefault(argument.index, []).append(inside)
                if node.operation not in _ONCE or (argument.index in constant and scope != CONSTANTS):
                    named.add(argument.index)
        self._named = named | {index for index, scopes in uses.items() if len(scopes) > 1}

    def _statements(self, scope: Scope, end: int, indent: str) -> list[str]:
        """Statements for the nodes of a scope before a place in the trace, except for those that have been written."""
        lines: list[str] = []
        for node in self._trace.nodes[:end]:
            if node.index in self._names or self._scopes.get(node.index) != scope:
                continue
            if self._branches and node.operation == "where":
                lines += self._choice(node, scope, indent)
            elif node.index in self._named:
                text = self._written(node)
                self._names[node.index] = f"t{node.index}"
                lines.append(f"{indent}t{node.index} = {text}")
        return lines

    def _choice(self, node: Expression, scope: Scope, indent: str) -> list[str]:
        """A ``where`` as a branch, or as a conditional expression if both operands are known already."""
        chosen, a, b = node.arguments
        name, inner = f"t{node.index}", indent + "    "
        branches = [
            self._statements((*scope, (chosen.index, outcome)), node.index, inner)
            for outcome in (True, False)
        ]
        test, first, second = map(self._text, (chosen, a, b))
        self._names[node.index] = name
        if not any(branches):
            return [f"{indent}{name} = {first} if {test} else {second}"]
        return [
            f"{indent}if {test}:",
            *branches[0],
            f"{inner}{name} = {first}",
            f"{indent}else:",
            *branches[1],
            f"{inner}{name} = {second}",
        ]

    def _text(self, value: Any) -> str:
        if not isinstance(value, Expression):
            return repr(value) if isinstance(value, bool) or value >= 0.0 else f"({value!r})"
        return self._names.get(value.index) or self._written(value)

    def _written(self, node: Expression) -> str:
        arguments = list(map(self._text, node.arguments))
        if node.operation in self._forms:
            return self._forms[node.operation].format(*arguments)
        if node.operation in self._functions:
            return f"{node.operation}({', '.join(arguments)})"
        return f"({arguments[0]} {node.operation} {arguments[1]})"


def _common(scopes: Sequence[Scope]) -> Scope:
    """The innermost scope that contains all of these."""
    first = scopes[0]
    for length in range(len(first), 1, -1):
        if all(scope[:length] == first[:length] for scope in scopes):
            return first[:length]
    return LOOP
