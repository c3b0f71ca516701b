"""The C++ header of the terms of friction laws, and their parameters of the controller of ros2_control.

Both are written from :mod:`stribeck.model.terms` by ``generate.py`` and kept with the sources; a test compares.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from stribeck.exports.c_expressions import Dialect, statements
from stribeck.model.law import LAWS, optional_terms
from stribeck.model.namespace import array_namespace
from stribeck.model.terms import FRICTION_PARAMETERS, TERMS
from stribeck.model.terms.term import Conditions, Kind, Term
from stribeck.model.trace.derivative import Dual, namespace_of, slope_of
from stribeck.model.trace.expressions import Tracer

_CPP = Dialect(
    "double",
    lambda value: repr(value) if value >= 0.0 else f"({value!r})",
    {name: f"std::{name}" for name in ("abs", "exp", "log", "sqrt", "sin", "cos", "tanh", "expm1")}
    | {"**": "std::pow"},
)

_HEAD = """\
// Copyright the Stribeck maintainers. SPDX-License-Identifier: Apache-2.0
/// \\file
/// The terms of friction laws: written by controllers/generate.py from model/terms of the Python
/// package; do not edit.
// clang-format off
#ifndef STRIBECK_CONTROLLERS__TERMS_HPP_
#define STRIBECK_CONTROLLERS__TERMS_HPP_

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace stribeck
{
"""

_LAW = """
/// Terms of a friction budget.
struct Law
{
  std::uint32_t terms = 0;

  /// Whether the law has a term.
  constexpr bool has(Term term) const noexcept { return has(static_cast<std::uint32_t>(term)); }

  /// Whether the law has one of several terms.
  constexpr bool has(std::uint32_t some) const noexcept { return (terms & some) != 0u; }

  /// Add a term, or take it off.
  constexpr void set(Term term, bool present = true) noexcept
  {
    const auto bit = static_cast<std::uint32_t>(term);
    terms = present ? terms | bit : terms & ~bit;
  }
};
"""

_CONDITIONS = """
/// What friction depends on: velocity and its magnitude [rad/s], torques [N m], position [rad].
struct Conditions
{
  double velocity, speed, motor, external, position;
};
"""

_WIDTH = 100
"""Most characters in a line of C++, as in the packages of ros2_control."""

_VALID = {
    "positive": ("p.{0} >= 0.0 && std::isfinite(p.{0})", "zero or positive"),
    "nonnegative": ("p.{0} >= 0.0 && std::isfinite(p.{0})", "zero or positive"),
    "static": ("std::isfinite(p.{0})", "finite"),
    "any": ("std::isfinite(p.{0})", "finite"),
}
"""Condition in C++ for the values of each sign, with any law, and its words."""

_STATIC = """
/// Coulomb friction and terms without fixed sign, together at least zero [N m].
inline double static_friction(const Law & law, const FrictionValues & p, const Conditions & x) noexcept
{{
{sum}
  return law.has(signed_terms) && total < 0.0 ? 0.0 : total;
}}

/// Dry friction that is the same in both directions [N m].
inline double shared_friction(const Law & law, const FrictionValues & p, const Conditions & x) noexcept
{{
{shared}
  if (law.has(Term::{weight})) {{
    double fading = 0.0;
{fading}
    total = total + value::{weight}(p, x) * fading;
  }}
  return total;
}}
"""


def terms_header() -> str:
    """The header ``terms.hpp``."""
    dry, loaded = _of_kind("dry"), _loaded()
    summands = [term for term in TERMS.values() if term.kind != "sides"]
    static = [term for term in dry if term.signed or not term.inputs]
    blocks = [
        _HEAD,
        *_enumeration(),
        _LAW,
        *_laws(),
        *_values(),
        _CONDITIONS,
        *_functions("value", "Values of the terms [N m], of a weight [1].", summands, _value),
        *_functions(
            "speed_slope",
            "Their slopes in the speed [N m s/rad].",
            _of_kind("viscous"),
            partial(_slope, "speed"),
        ),
        *_functions("motor_slope", "Their slopes in the motor torque [1].", loaded, partial(_slope, "motor")),
        _group("signed_terms", "Terms that lower the friction, too.", [term for term in dry if term.signed]),
        _group("loaded_terms", "Terms that depend on the torques.", [t for t in TERMS.values() if t.loaded]),
        _group("offset_terms", "Torques beside motor and external torque.", _of_kind("offset")),
        _STATIC.format(
            sum=_sum(static),
            shared=_sum([term for term in dry if term not in static]),
            fading="\n".join(_added(_of_kind("fading"), "fading", 4)),
            weight=_of_kind("weight")[0].name,
        ),
        _summed("viscous_part", "Viscous friction [N m].", _of_kind("viscous"), "value"),
        _summed(
            "viscous_slope", "Slope of the viscous friction [N m s/rad].", _of_kind("viscous"), "speed_slope"
        ),
        _summed(
            "offset_torque", "Torque beside motor and external torque [N m].", _of_kind("offset"), "value"
        ),
        _load_slopes(),
        "\n}  // namespace stribeck\n// clang-format on\n\n#endif  // STRIBECK_CONTROLLERS__TERMS_HPP_\n",
    ]
    text = "\n".join(block.rstrip("\n") for block in blocks) + "\n"
    return "\n".join(piece for line in text.split("\n") for piece in _folded(line))


def controller_parameters() -> str:
    """The parameters of the terms in ``friction_compensation_controller_parameters.yaml``."""
    lines = []
    for term in TERMS.values():
        if term.kind == "sides":
            names = " and ".join(term.names)
            lines.append(
                f"{term.name}: {{ type: bool, default_value: false, description: "
                f'"Whether negative motion has {names}." }}'
            )
    for name, one in FRICTION_PARAMETERS.items():
        valid = ", validation: { gt<>: [0.0] }" if one.sign == "positive" else ""
        text = f"Parameter {name} of the law [{one.units.rotary}]."
        lines.append(
            f"{name}: {{ type: double, default_value: {one.value!r}, description: {json.dumps(text)}{valid} }}"
        )
    return "".join(f"      {line}\n" for line in lines)


def _folded(line: str) -> Iterator[str]:
    """A line of C++ in pieces of at most :data:`_WIDTH` characters; a long condition has its block on lines of its own."""
    indent = " " * (len(line) - len(line.lstrip()))
    if len(line) <= _WIDTH:
        yield line
    elif block := re.fullmatch(r" *(if \(.*\)) \{(.*)\}", line):
        yield from _folded(f"{indent}{block[1]} {{")
        for statement in block[2].split("; "):
            yield from _folded(f"{indent}  {statement.rstrip(';')};")
        yield indent + "}"
    elif comment := re.search(r"(?<=;)  // .*", line):
        yield from _folded(indent + comment[0].strip())
        yield from _folded(line[: comment.start()])
    else:
        further = re.match(r" *//+ ", line)
        end = _break(line)
        yield line[:end].rstrip()
        yield from _folded((further[0] if further else indent + "  ") + line[end:].lstrip())


def _break(line: str) -> int:
    """Where a line is broken: at the last possible place with the fewest open brackets around it."""
    if line.lstrip().startswith("//"):
        return line.rindex(" ", 0, _WIDTH + 1)
    places, depth = [], 0
    for token in re.finditer(
        r'"[^"]*"|[({]|[)}]|(?<=[,|]) |(?<=&&) |(?<= [-+*=]) | (?=[?:] )', line[:_WIDTH]
    ):
        depth += (token[0] in "({") - (token[0] in ")}")
        if token[0] == " ":
            places.append((-depth, token.start()))
    return max(places)[1]


def _of_kind(*kinds: Kind) -> list[Term]:
    return [term for term in TERMS.values() if term.kind in kinds]


def _loaded() -> list[Term]:
    return [term for term in _of_kind("dry", "fading") if term.loaded]


def _mask(terms: Sequence[Term]) -> str:
    places = list(TERMS.values())
    return f"0x{sum(1 << places.index(term) for term in terms):x}u"


def _group(name: str, title: str, terms: Sequence[Term]) -> str:
    return f"\n/// {title}\nconstexpr std::uint32_t {name} = {_mask(terms)};"


def _enumeration() -> Iterator[str]:
    yield "/// A term of a friction law."
    yield "enum class Term : std::uint32_t\n{"
    for place, term in enumerate(TERMS.values()):
        yield f"  {term.name} = 1u << {place},  ///< {term.title}"
    yield "};"


def _laws() -> Iterator[str]:
    yield "\n/// The law M1 to M6, by its number; M1 for any other number."
    yield "inline Law law_numbered(int number) noexcept\n{\n  switch (number) {"
    for law in list(LAWS.values())[1:]:
        yield f"    case {law.name[1:]}: return {{{_mask(law.terms)}}};  // {', '.join(t.name for t in law.terms)}"
    yield f"    default: return {{{_mask(LAWS['m1'].terms)}}};\n  }}\n}}"


def _values() -> Iterator[str]:
    yield "\n/// Values of a law, named as in parameter files; those that the law lacks are not used."
    yield "struct FrictionValues\n{"
    for name, one in FRICTION_PARAMETERS.items():
        yield f"  double {name} = {one.value!r};  ///< {one.symbol} [{one.units.rotary}]"
    yield "};"
    yield "\n/// The values that parameters of the same names have."
    yield "template<class Parameters>\nFrictionValues values_of(const Parameters & p)\n{"
    yield _wrapped("  return {", [f"p.{name}" for name in FRICTION_PARAMETERS], ", ", "};\n}")
    names = [f'"{name}"' for name in FRICTION_PARAMETERS]
    yield "\n/// Names of all values."
    yield _wrapped("constexpr const char * value_names[] = {", names, ", ", "};")
    yield "\n/// The value with a name; a null pointer for an unknown one."
    yield "inline double * value_named(FrictionValues & p, std::string_view name) noexcept\n{"
    for name in FRICTION_PARAMETERS:
        yield f'  if (name == "{name}") {{return &p.{name};}}'
    yield "  return nullptr;\n}"
    yield "\n/// The law and its further terms: those that are switched on, or whose coefficients are not all zero."
    yield "template<class Parameters>\nLaw law_of(int number, const Parameters & p)\n{"
    yield "  Law law = law_numbered(number);"
    for name in optional_terms():
        term = TERMS[name]
        factors = [f"p.{one.name} != 0.0" for one in term.parameters if one.free and not one.shape]
        present = f"p.{name}" if term.kind == "sides" else " || ".join(factors)
        yield f"  law.set(Term::{name}, {present});"
    yield "  return law;\n}"
    yield "\n/// A value that cannot be: its name (a null pointer: there is none), what it must be, and what it is."
    yield "struct Refusal\n{\n  const char * name = nullptr, * valid = nullptr;\n  double found = 0.0;\n};"
    yield "\n/// The first value that the law cannot have."
    yield "inline Refusal refused_value(const Law & law, const FrictionValues & p) noexcept\n{"
    for name, one in FRICTION_PARAMETERS.items():
        valid, text = _VALID[one.sign]
        yield f'  if (!({valid.format(name)})) {{return {{"{name}", "{text}", p.{name}}};}}'
    for term in TERMS.values():
        for one in term.parameters:
            if one.sign == "positive":
                yield f'  if (law.has(Term::{term.name}) && !(p.{one.name} > 0.0)) {{return {{"{one.name}", "positive", p.{one.name}}};}}'
    yield "  return {};\n}"
    yield "\n/// The values that count for motion in negative direction."
    yield "inline FrictionValues negative_values(const Law & law, FrictionValues p) noexcept\n{"
    for term in _of_kind("sides"):
        moves = " ".join(f"p.{one.opposite} = p.{one.name};" for one in term.parameters)
        yield f"  if (law.has(Term::{term.name})) {{{moves}}}"
    yield "  return p;\n}"
    yield "\n/// Whether the budget differs by the direction of motion."
    yield "inline bool differs_by_direction(const Law & law) noexcept\n{"
    yield f"  return {' || '.join(f'law.has(Term::{term.name})' for term in _of_kind('sides'))};\n}}"


def _wrapped(before: str, parts: Sequence[str], joint: str, after: str) -> str:
    """Parts on lines of their own, three at a time."""
    rows = [joint.join(parts[k : k + 3]) for k in range(0, len(parts), 3)]
    return before + f"{joint.rstrip()}\n    ".join(rows) + after


def _functions(
    space: str, title: str, terms: Sequence[Term], formula: Callable[[Term, Any, Conditions], Any]
) -> Iterator[str]:
    """A namespace with a function of values ``p`` and conditions ``x`` for each term."""
    yield f"\n/// {title}\nnamespace {space}\n{{"
    for term in terms:
        trace = Tracer()
        x = Conditions(*(trace.symbol(f"x.{name}") for name in Conditions._fields))
        p = {name: trace.symbol(f"p.{name}") for name in term.names}
        lines, (result,) = statements([formula(term, p, x)], _CPP)
        body = [*lines, f"return {result};"]
        names = [f" {name}" if f"{name}." in " ".join(body) else "" for name in "px"]
        yield f"inline double {term.name}(const FrictionValues &{names[0]}, const Conditions &{names[1]}) noexcept"
        yield "\n".join(["{", *(f"  {line}" for line in body), "}"])
    yield f"}}  // namespace {space}"


def _value(term: Term, p: Any, x: Conditions) -> Any:
    return term.budget(p, x, array_namespace(x.speed))


def _slope(varying: str, term: Term, p: Any, x: Conditions) -> Any:
    xp = namespace_of(array_namespace(x.speed))
    return slope_of(term.budget(p, x._replace(**{varying: Dual(getattr(x, varying), 1.0)}), xp))


def _added(terms: Sequence[Term], total: str, indent: int, space: str = "value") -> Iterator[str]:
    for term in terms:
        line = f"if (law.has(Term::{term.name})) {{{total} = {total} + {space}::{term.name}(p, x);}}"
        yield " " * indent + line


def _sum(terms: Sequence[Term], space: str = "value") -> str:
    return "\n".join(["  double total = 0.0;", *_added(terms, "total", 2, space)])


def _summed(name: str, title: str, terms: Sequence[Term], space: str) -> str:
    head = f"inline double {name}(const Law & law, const FrictionValues & p, const Conditions & x) noexcept"
    return "\n".join([f"\n/// {title}", head, "{", _sum(terms, space), "  return total;", "}"])


def _load_slopes() -> str:
    terms = _loaded()
    lines = [
        f"  largest[{k}] = law.has(Term::{t.name}) ? larger(largest[{k}], motor_slope::{t.name}(p, x)) : 0.0;"
        for k, t in enumerate(terms)
    ]
    head = "inline void widen(LoadSlopes & largest, const Law & law, const FrictionValues & p, const Conditions & x) noexcept"
    return "\n".join(
        [
            "\n/// Largest slope of each load-dependent term in the motor torque [1].",
            f"using LoadSlopes = std::array<double, {len(terms)}>;",
            "\n/// Raise the largest slopes to those at some conditions.",
            head,
            "{",
            "  const auto larger = [](double a, double b) {return std::abs(b) > a ? std::abs(b) : a;};",
            *lines,
            "}",
        ]
    )
