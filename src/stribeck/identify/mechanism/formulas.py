r"""Sensors :math:`h(x; \chi)` by expressions of a mechanism's motion (Marklund et al. 2025, eq. 3.5).

An expression such as ``norm(point(rod, 0, 0, -0.2) - point(world, 0.1, 0, 0))`` consists of numbers, parameters, the operators
``+ - * /``, ``.x .y .z``, ``norm, dot, sqrt, sin, cos`` and the quantities of :data:`QUANTITIES`. Points are given in the zero pose; their
coordinates may be expressions of parameters.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stribeck.errors import ConfigError
from stribeck.identify.mechanism.affine import index_of
from stribeck.identify.mechanism.vectors import ZERO, Vector, add, cos, dot, scale, sin, sqrt, sub

QUANTITIES = {
    "point": ("body", True),
    "velocity": ("body", True),
    "accelerometer": ("body", True),
    "gyroscope": ("body", False),
    "force": ("joint", False),
    "torque": ("joint", False),
    "position": ("joint", False),
    "rate": ("joint", False),
}
"""Quantities: of a body or a joint, and whether a point follows its name.

``point``, ``velocity``: of a point of a body in the world [m, m/s]. ``accelerometer``: acceleration minus gravity, ``gyroscope``: angular
velocity, both in the frame of the body [m/s², rad/s]. ``force``, ``torque``: of the constraints of a joint on its child, in the
frame of the child [N, N m]. ``position``, ``rate``: the joint's coordinate and its rate [rad or m, per s].
"""

SCALARS = ("position", "rate")

Ask = Callable[[str, int, Vector], Any]
"""Value of a quantity of a body (0: the world) or a joint by index, at a point of the zero pose."""


@dataclass(frozen=True)
class Formula:
    """An expression.

    :param names: of bodies, starting with the world, of joints, and of parameters.
    :raises ConfigError: for anything that is not one, from :meth:`check`.
    """

    text: str
    bodies: tuple[str, ...]
    joints: tuple[str, ...]
    parameters: tuple[str, ...]

    def check(self, where: str) -> None:
        """Refuse expressions that name unknown things, mix vectors and numbers, give a vector, or divide by zero whatever the motion is.

        :raises ConfigError: with ``where``.
        """
        # Different numbers for all parameters and quantities: what is zero with these is zero with any.
        draws, drawn = np.random.default_rng(0), dict[str, Any]()
        numbers = draws.uniform(1.0, 2.0, len(self.parameters)).tolist()

        def ask(name: str, index: int, place: Vector) -> Any:
            x, y, z = draws.uniform(1.0, 2.0, 3).tolist()
            return drawn.setdefault(f"{name} {index} {place}", x if name in SCALARS else (x, y, z))

        if isinstance(self.value(numbers, ask, where), tuple):
            raise ConfigError(
                f"{where}: {self.text!r} is a vector, but a number is needed: use .x, .y, .z, norm(…) or dot(…)"
            )
        for node in ast.walk(ast.parse(self.text.strip())):
            match node:  # JAX divides by the sine of zero
                case ast.BinOp(op=ast.Div(), right=by) if float(self._of(by, numbers, ask, where)) == 0.0:
                    raise self._refused(where, "divides by zero")

    @property
    def of_pose(self) -> bool:
        """Whether it depends on places and joint coordinates alone."""
        calls = (node.func for node in ast.walk(ast.parse(self.text.strip())) if isinstance(node, ast.Call))
        used = {call.id for call in calls if isinstance(call, ast.Name)}
        return not used & (QUANTITIES.keys() - {"point", "position"})

    @property
    def summed(self) -> tuple[str, ...]:
        """Joints whose coordinates it adds or subtracts; none for anything but a sum of these, numbers and parameters."""

        def inside(node: ast.expr) -> list[str]:
            match node:
                case ast.Constant() | ast.Name():
                    return []
                case ast.UnaryOp(operand=operand):
                    return inside(operand)
                case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
                    return inside(left) + inside(right)
                case ast.Call(
                    func=ast.Name(id="position"), args=[ast.Name(id=owner) | ast.Constant(value=owner)]
                ):
                    return [str(owner)]
            raise ValueError

        try:
            return tuple(inside(ast.parse(self.text.strip(), mode="eval").body))
        except ValueError:
            return ()

    def value(self, parameters: Any, ask: Ask, where: str = "expression") -> Any:
        """The value for parameters (p) and quantities.

        :raises ConfigError: for a division by a plain number that is zero, such as a difference of equal parameters that are known.
        """
        try:
            tree = ast.parse(self.text.strip(), mode="eval").body
        except SyntaxError:
            raise self._refused(where, "is not a valid expression") from None
        try:
            return self._of(tree, parameters, ask, where)
        except ZeroDivisionError:
            raise self._refused(where, "divides by zero") from None

    def _of(self, node: ast.expr, parameters: Any, ask: Ask, where: str) -> Any:
        def inner(one: ast.expr) -> Any:
            return self._of(one, parameters, ask, where)

        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return float(number)
            case ast.Name(id=name):
                return parameters[index_of(name, self.parameters, where, "parameter ")]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                value = inner(operand)
                return scale(-1.0, value) if isinstance(value, tuple) else -value
            case ast.BinOp(left=left, op=operator, right=right):
                return self._joined(operator, inner(left), inner(right), where)
            case ast.Attribute(value=vector, attr="x" | "y" | "z" as axis):
                value = inner(vector)
                if not isinstance(value, tuple):
                    raise self._refused(where, f"applies .{axis} to a number; only vectors have components")
                return value["xyz".index(axis)]
            case ast.Call(func=ast.Name(id=name), args=found, keywords=[]) if name in QUANTITIES:
                return self._quantity(name, found, inner, ask, where)
            case ast.Call(func=ast.Name(id=name), args=found, keywords=[]):
                return self._function(name, found, inner, where)
        raise self._refused(where, "is not a valid expression")

    def _quantity(
        self, name: str, found: Sequence[ast.expr], inner: Callable[[ast.expr], Any], ask: Ask, where: str
    ) -> Any:
        kind, placed = QUANTITIES[name]
        if len(found) != (4 if placed else 1):
            raise self._refused(where, f"must call {name}({kind}{', x, y, z' if placed else ''})")
        match found[0]:
            case ast.Name(id=owner) | ast.Constant(value=str() as owner):
                names = self.bodies if kind == "body" else self.joints
                place = tuple(inner(one) for one in found[1:]) or ZERO
                if any(isinstance(one, tuple) for one in place):
                    raise self._refused(where, f"has a vector as a coordinate in {name}; numbers are needed")
                return ask(name, index_of(owner, names, where, f"{kind} "), (place[0], place[1], place[2]))
        raise self._refused(where, f"needs the name of a {kind} in {name}")

    def _joined(self, operator: ast.operator, a: Any, b: Any, where: str) -> Any:
        vectors = isinstance(a, tuple), isinstance(b, tuple)
        match operator, vectors:
            case ast.Add(), (True, True):
                return add(a, b)
            case ast.Sub(), (True, True):
                return sub(a, b)
            case ast.Add(), (False, False):
                return a + b
            case ast.Sub(), (False, False):
                return a - b
            case ast.Mult(), (False, False):
                return a * b
            case ast.Mult(), (True, False) | (False, True):
                return scale(a, b) if vectors[1] else scale(b, a)
            case ast.Div(), (_, False):
                if isinstance(b, float) and b == 0.0:  # CasADi divides its symbols by zero
                    raise ZeroDivisionError
                return scale(1.0 / b, a) if vectors[0] else a / b
        raise self._refused(where, "combines a vector with a number, or uses an operator other than + - * /")

    def _function(
        self, name: str, found: Sequence[ast.expr], inner: Callable[[ast.expr], Any], where: str
    ) -> Any:
        functions: Mapping[str, tuple[tuple[bool, ...], Callable[..., Any]]] = {
            "norm": ((True,), lambda a: sqrt(dot(a, a))),
            "dot": ((True, True), dot),
            "sqrt": ((False,), sqrt),
            "sin": ((False,), sin),
            "cos": ((False,), cos),
        }
        valid = ", ".join((*QUANTITIES, *functions))
        if name not in functions:
            raise self._refused(where, f"calls {name}; valid: {valid}")
        wanted, function = functions[name]
        values = [inner(one) for one in found]
        if tuple(isinstance(value, tuple) for value in values) != wanted:
            of = " and ".join("a vector" if one else "a number" for one in wanted)
            raise self._refused(where, f"needs {of} in {name}")
        return function(*values)

    def _refused(self, where: str, what: str) -> ConfigError:
        return ConfigError(
            f"{where}: {self.text!r} {what}; a valid example: norm(point(rod, 0, 0, -0.2)) + offset"
        )
