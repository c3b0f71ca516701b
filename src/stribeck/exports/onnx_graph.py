"""Export as an ONNX graph: the friction law of one joint over arrays of any shape.

Inputs ``motor``, ``external`` [N m] and ``velocity`` [rad/s], outputs ``positive`` and ``negative``: the budget of
:func:`stribeck.core.friction.friction_budget` [N m], in double precision. The graph is traced: the formula of ``core`` runs on
symbols that record their operations, so that it stands in one place.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from stribeck.core.friction import friction_budget
from stribeck.errors import ConfigError
from stribeck.exports.task import ExportTask, Written, title_of

OPSET = 17


class Graph:
    """Nodes and constants of a graph under construction."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, float] = {}

    def call(self, operation: str, *arguments: Any) -> Symbol:
        """A node and the symbol of its output."""
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(operation, [self.name_of(one) for one in arguments], [name]))
        return Symbol(self, name)

    def name_of(self, value: Any) -> str:
        """The name of a symbol, or of a constant with this value."""
        if isinstance(value, Symbol):
            return value.name
        return self.constant(float(value))

    def constant(self, value: float) -> str:
        """The name of a constant."""
        name = f"c{value!r}"
        self.constants[name] = value
        return name


class Symbol:
    """An array of the graph; its operators add nodes."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def __array_namespace__(self) -> ModuleType:
        namespace: Any = _Operations(self.graph)
        module: ModuleType = namespace
        return module

    def __add__(self, other: Any) -> Symbol:
        return self.graph.call("Add", self, other)

    def __sub__(self, other: Any) -> Symbol:
        return self.graph.call("Sub", self, other)

    def __rsub__(self, other: Any) -> Symbol:
        return self.graph.call("Sub", other, self)

    def __mul__(self, other: Any) -> Symbol:
        return self.graph.call("Mul", self, other)

    def __truediv__(self, other: Any) -> Symbol:
        return self.graph.call("Div", self, other)

    def __neg__(self) -> Symbol:
        return self.graph.call("Neg", self)

    def __lt__(self, other: Any) -> Symbol:
        return self.graph.call("Less", self, other)

    def __gt__(self, other: Any) -> Symbol:
        return self.graph.call("Greater", self, other)

    __radd__, __rmul__ = __add__, __mul__


class _Operations:
    """The functions of an array namespace that the friction laws use."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def abs(self, x: Any) -> Symbol:
        return self._graph.call("Abs", x)

    def exp(self, x: Any) -> Symbol:
        return self._graph.call("Exp", x)

    def log(self, x: Any) -> Symbol:
        return self._graph.call("Log", x)

    def maximum(self, a: Any, b: Any) -> Symbol:
        return self._graph.call("Max", a, b)

    def where(self, condition: Any, a: Any, b: Any) -> Symbol:
        return self._graph.call("Where", condition, a, b)


def write(task: ExportTask) -> Written:
    """The graph of one joint.

    :raises ConfigError: for several joints.
    """
    if len(task.joints) != 1:
        raise ConfigError(f"an ONNX file holds one joint, found {len(task.joints)}: write one file for each")
    file, graph = task.joints[0].servo.parameters, Graph()
    motor, external, velocity = (Symbol(graph, name) for name in ("motor", "external", "velocity"))
    budget = friction_budget(file.law, file.values, motor, external, velocity)
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
        [port(name) for name in ("motor", "external", "velocity")],
        [port(name) for name in ("positive", "negative")],
        constants,
        doc_string=title_of(task.joints[0]),
    )
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    onnx.checker.check_model(model)
    return Written({task.output: model.SerializeToString()})
