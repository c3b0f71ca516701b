"""Export as an ONNX graph: the friction law of one joint over arrays of any shape.

Inputs ``motor``, ``external`` [N m], ``velocity`` [rad/s] and, for laws that depend on it, ``position`` [rad]; outputs ``positive`` and ``negative``: the budget of
:func:`stribeck.model.law.friction_budget` [N m], in double precision, recorded as an expression
(:mod:`stribeck.model.trace.expressions`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from stribeck.errors import ConfigError
from stribeck.exports.task import ExportTask, Written, title_of
from stribeck.model.law import friction_budget
from stribeck.model.trace.expressions import Expression, Tracer

OPSET = 17


_OPERATIONS = {
    "neg": ("Neg",), "~": ("Not",), "+": ("Add",), "-": ("Sub",), "*": ("Mul",), "/": ("Div",), "**": ("Pow",),
    "<": ("Less",), ">": ("Greater",), "<=": ("LessOrEqual",), ">=": ("GreaterOrEqual",), "==": ("Equal",),
    "!=": ("Equal", "Not"), "&": ("And",), "|": ("Or",), "where": ("Where",), "maximum": ("Max",), "minimum": ("Min",),
    **{name: (name.capitalize(),) for name in ("abs", "exp", "log", "sqrt", "sin", "cos", "tanh", "sign")},
}  # fmt: skip
"""Operations of an expression as operators of ONNX, each applied to the result of the one before."""


class _Graph:
    """Nodes and constants of a graph under construction."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, float] = {}
        self._names: dict[int, str] = {}

    def name_of(self, value: Any) -> str:
        """The name of an expression, whose nodes are added, or of a constant."""
        if not isinstance(value, Expression):
            name = f"c{float(value)!r}"
            self.constants[name] = float(value)
            return name
        if value.operation == "input":
            return str(value.arguments[0])
        if value.index not in self._names:
            inputs = [self.name_of(argument) for argument in value.arguments]
            for operator in _OPERATIONS[value.operation]:
                name = f"n{len(self.nodes)}"
                self.nodes.append(helper.make_node(operator, inputs, [name]))
                inputs = [name]
            self._names[value.index] = inputs[0]
        return self._names[value.index]


def write(task: ExportTask) -> Written:
    """The graph of one joint.

    :raises ConfigError: for several joints.
    """
    if len(task.joints) != 1:
        raise ConfigError(
            f"an ONNX file contains one joint, found {len(task.joints)}: write one file for each"
        )
    file, graph = task.joints[0].servo.parameters, _Graph()
    budget = friction_budget(file.law, file.values, *map(Tracer().symbol, file.law.arguments))
    for one, name in zip(budget, ("positive", "negative"), strict=True):
        graph.nodes.append(helper.make_node("Identity", [graph.name_of(one)], [name]))

    def port(name: str) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["n"])

    constants = [
        onnx.numpy_helper.from_array(np.array(value), name) for name, value in graph.constants.items()
    ]
    whole = helper.make_graph(
        graph.nodes,
        "friction",
        [port(name) for name in file.law.arguments],
        [port(name) for name in ("positive", "negative")],
        constants,
        doc_string=title_of(task.joints[0]),
    )
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    onnx.checker.check_model(model)
    return Written({task.output: model.SerializeToString()})
