r"""The friction laws M1 to M6 as tuples of terms, and the budget of a law.

A friction law gives a budget :math:`\tau_f^m \ge 0`, the largest torque with which friction can oppose a motion. The
laws are those of Duclusaud et al., "Extended Friction Models for the Physics Simulation of Servo Actuators", §II-B
and §III, with optional terms for robot joints and linear axes. The terms are in :mod:`stribeck.model.terms`.

All functions take numpy or jax.numpy arrays of any shapes that broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from stribeck.errors import ConfigError
from stribeck.model.namespace import array_namespace
from stribeck.model.terms import TERMS
from stribeck.model.terms.term import Conditions, Kind, Term, Values
from stribeck.model.trace.derivative import Dual, namespace_of, slope_of

Formula = Callable[..., Any]


_Sum = tuple[tuple[Formula, tuple[str, ...]], ...]
"""Formulas of terms that are added, with the names of their values."""


class _Side(NamedTuple):
    """Parts of the budget against motion in one direction.

    :param static: Coulomb friction and terms without fixed sign, together at least zero if ``bounded``.
    """

    static: _Sum
    bounded: bool
    viscous: _Sum


class _Parts(NamedTuple):
    """Parts of the budget of a law; ``negative`` is ``None`` if it is that of positive motion."""

    positive: _Side
    negative: _Side | None
    shared: _Sum
    fading: _Sum
    weight: _Sum
    offset: _Sum


def _sum_of(terms: Iterable[Term], opposites: Mapping[str, str] = MappingProxyType({})) -> _Sum:
    return tuple((term.formula, tuple(opposites.get(name, name) for name in term.names)) for term in terms)


@dataclass(frozen=True)
class FrictionLaw:
    """Terms of a friction budget.

    :param name: key in parameter files and on the command line, ``"m1"`` .. ``"m6"``.
    :param terms: in the order of the optimiser's vector.
    """

    name: str
    title: str
    terms: tuple[Term, ...]

    @cached_property
    def parameter_names(self) -> tuple[str, ...]:
        """The law's parameters, in the order of the optimiser's vector."""
        return tuple(name for term in self.terms for name in term.names)

    @property
    def optional_terms(self) -> tuple[str, ...]:
        """Names of the terms that are not those of the paper's law."""
        return tuple(term.name for term in self.terms if term.name in optional_terms())

    def with_terms(self, **chosen: bool) -> FrictionLaw:
        """The law with these optional terms, and no others.

        :raises ConfigError: for a term that does not exist or is not optional.
        """
        valid = optional_terms()
        for name in chosen:
            if name not in valid:
                raise ConfigError(f"unknown friction term {name!r}; valid: {', '.join(valid)}")
        own = [term for term in self.terms if term.name not in valid]
        return replace(self, terms=(*own, *(TERMS[name] for name in valid if chosen.get(name))))

    def with_parameters(self, names: Iterable[str]) -> FrictionLaw:
        """The law with the optional terms that have parameters among ``names``, and no others."""
        given = set(names)
        return self.with_terms(**{name: bool(given & set(TERMS[name].names)) for name in optional_terms()})

    def based_on(self, name: str) -> FrictionLaw:
        """The law called ``name`` with the optional terms of this one."""
        return law_named(name).with_terms(**dict.fromkeys(self.optional_terms, True))

    def of_kind(self, *kinds: Kind) -> tuple[Term, ...]:
        """Its terms of some kinds."""
        return tuple(term for term in self.terms if term.kind in kinds)

    @cached_property
    def inputs(self) -> frozenset[str]:
        """Names of the fields of :class:`Conditions` on which the budget or the offset torque depends."""
        return self.inputs_beside()

    def inputs_beside(self, *names: str) -> frozenset[str]:
        """:attr:`inputs` of the terms that are not called so."""
        others = self.of_kind("dry", "fading", "weight", "viscous", "offset")
        return frozenset().union(*(term.inputs for term in others if term.name not in names))

    @cached_property
    def budget_inputs(self) -> frozenset[str]:
        """:attr:`inputs` of the budget alone, without those of the offset torque."""
        return self.inputs_beside(*(term.name for term in self.of_kind("offset")))

    @cached_property
    def load_inputs(self) -> frozenset[str]:
        """Torques on which the budget depends, of ``motor`` and ``external``."""
        return self.budget_inputs & {"motor", "external"}

    def rounds(self, most: int) -> int:
        """How often the motor torque is computed again with the friction that depends on it: ``most`` times, or never."""
        return most if self.load_inputs else 0

    def speed_range(self, fastest: float) -> tuple[float, float]:
        """Velocities that show the whole budget up to ``fastest``: of both directions where the budget differs by direction."""
        return (-fastest if self.opposites else 0.0), fastest

    def with_load(self) -> FrictionLaw:
        """The simplest law with symmetric load friction and what this one has of the laws of the paper."""
        return self.based_on("m3" if self.weight is None else "m4")

    def with_stribeck(self) -> FrictionLaw:
        """The simplest law with the Stribeck effect and what this one has of the laws of the paper."""
        return self.based_on("m4" if self.load_inputs else "m2")

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """What a budget is written for in other languages, in the order of :func:`friction_budget`; the position only if needed."""
        return ("motor", "external", "velocity", *["position"] * ("position" in self.inputs))

    @cached_property
    def weight(self) -> Term | None:
        """The Stribeck weight of the fading terms, if the law has any."""
        return next(iter(self.of_kind("weight")), None)

    @cached_property
    def opposites(self) -> dict[str, str]:
        """Names of the parameters for negative motion, by those for positive motion."""
        parameters = [parameter for term in self.of_kind("sides") for parameter in term.parameters]
        return {parameter.opposite: parameter.name for parameter in parameters if parameter.opposite}

    @cached_property
    def _parts(self) -> _Parts:
        dry = self.of_kind("dry")
        return _Parts(
            self._side({}),
            self._side(self.opposites) if self.opposites else None,
            _sum_of(term for term in dry if term.inputs and not term.signed),
            _sum_of(self.of_kind("fading")),
            _sum_of(self.of_kind("weight")),
            _sum_of(self.of_kind("offset")),
        )

    def _side(self, opposites: Mapping[str, str]) -> _Side:
        static = [term for term in self.of_kind("dry") if term.signed or not term.inputs]
        return _Side(
            _sum_of(static, opposites),
            any(term.signed for term in static),
            _sum_of(self.of_kind("viscous"), opposites),
        )


def _m(number: int, title: str, *names: str) -> FrictionLaw:
    terms = tuple(TERMS[name] for name in ("coulomb", *names, "viscous"))
    return FrictionLaw(f"m{number}", title, terms)


_DIRECTIONAL = ("fading_coulomb", "directional_load", "fading_directional_load")

LAWS: dict[str, FrictionLaw] = {
    law.name: law
    for law in (
        _m(1, "Coulomb-viscous"),
        _m(2, "Stribeck", "fading_coulomb", "stribeck"),
        _m(3, "load-dependent", "symmetric_load"),
        _m(
            4,
            "Stribeck, load-dependent",
            "fading_coulomb",
            "symmetric_load",
            "fading_symmetric_load",
            "stribeck",
        ),
        _m(5, "directional", *_DIRECTIONAL, "stribeck"),
        _m(6, "quadratic", *_DIRECTIONAL, "quadratic_load", "stribeck"),
    )
}
"""The laws of the paper, M1 to M6, by name."""


def optional_terms() -> tuple[str, ...]:
    """Names of the terms that can be added to a law of the paper, in the order of the table."""
    return tuple(name for name in TERMS if name not in _OF_THE_PAPER)


def optional_parts() -> tuple[str, ...]:
    """Names of the optional terms that are parts of the budget of their own."""
    return tuple(name for name in optional_terms() if TERMS[name].kind in ("dry", "fading", "viscous"))


_OF_THE_PAPER = frozenset(term.name for law in LAWS.values() for term in law.terms)


def law_named(name: str) -> FrictionLaw:
    """The law called ``name``, in upper or lower case.

    :raises ConfigError: for an unknown name.
    """
    if name.lower() not in LAWS:
        raise ConfigError(f"unknown friction law {name!r}; valid: {', '.join(LAWS)}")
    return LAWS[name.lower()]


def friction_budget(
    law: FrictionLaw,
    p: Values,
    motor_torque: Any,
    external_torque: Any,
    velocity: Any,
    position: Any = 0.0,
    *,
    weight: Any = None,
) -> tuple[Any, Any]:
    r"""Friction budget :math:`(\tau_f^{m+}, \tau_f^{m-})` against positive and negative motion [N m].

    ==  =====================================================================================
    M1  :math:`K_v|\dot\theta| + K_c`
    M2  M1 + :math:`s K_c^s`
    M3  M1 + :math:`K_l|\tau_m - \tau_e|`
    M4  M3 + :math:`s (K_c^s + K_l^s|\tau_m - \tau_e|)`
    M5  M1 + :math:`|K_m\tau_m - K_e\tau_e| + s (K_c^s + |K_m^s\tau_m - K_e^s\tau_e|)`
    M6  M5 + :math:`s Q`, see :mod:`stribeck.model.terms.quadratic_load`
    ==  =====================================================================================

    with :math:`s` of :func:`~stribeck.model.terms.stribeck.stribeck_weight`. Coulomb friction and terms without fixed
    sign are together at least zero. The two budgets are the same array unless the law differs by direction.

    :param p: values of the law's parameters by name (see :data:`~stribeck.model.terms.FRICTION_PARAMETERS`).
    :param motor_torque: motor torque at the output shaft :math:`\tau_m` [N m].
    :param external_torque: external torque :math:`\tau_e` [N m].
    :param velocity: joint velocity :math:`\dot\theta` [rad/s].
    :param position: :math:`\theta` [rad], for laws that depend on it.
    :param weight: Stribeck weight to use instead of that at ``velocity``, where it is known already.

    Source: paper, eqs. (3), (6)-(10).
    """
    xp = array_namespace(velocity, motor_torque, external_torque, position, *p.values())
    x = Conditions(velocity, xp.abs(velocity), motor_torque, external_torque, position)
    parts, get = law._parts, p.__getitem__
    shared: Any = None
    if parts.shared:
        shared = _sum(parts.shared, get, x, xp)
    if parts.weight:
        if weight is None:
            weight = _sum(parts.weight, get, x, xp)
        faded = weight * _sum(parts.fading, get, x, xp)
        shared = faded if shared is None else shared + faded
    positive = _side(parts.positive, get, x, xp, shared)
    return positive, positive if parts.negative is None else _side(parts.negative, get, x, xp, shared)


def _side(side: _Side, get: Callable[[str], Any], x: Conditions, xp: Any, shared: Any) -> Any:
    static = _sum(side.static, get, x, xp)
    if side.bounded:
        static = xp.maximum(static, 0.0)
    budget = _sum(side.viscous, get, x, xp) + static
    return budget if shared is None else budget + shared


def _sum(parts: _Sum, get: Callable[[str], Any], x: Conditions, xp: Any) -> Any:
    formula, names = parts[0]
    total = formula(x, xp, *map(get, names))
    for formula, names in parts[1:]:
        total = total + formula(x, xp, *map(get, names))
    return total


def viscous_friction(law: FrictionLaw, p: Values, direction: Any, velocity: Any) -> Any:
    r"""Viscous part of the budget against motion in a direction, :math:`K_v^\pm|\dot\theta|` [N m]."""
    xp = array_namespace(direction, velocity, *p.values())
    x = Conditions(velocity, xp.abs(velocity), 0.0, 0.0)
    positive, negative = law._parts[:2]
    found = _sum(positive.viscous, p.__getitem__, x, xp)
    if negative is not None:
        found = xp.where(direction < 0.0, _sum(negative.viscous, p.__getitem__, x, xp), found)
    return found


def viscous_slope(law: FrictionLaw, p: Values, speed: Any, direction: int = 1) -> Any:
    r"""Derivative of the viscous part of the budget with respect to speed, :math:`K_v^\pm` for linear friction [N m s/rad].

    :param direction: of the motion, 1 or -1.
    """
    xp = array_namespace(speed, *p.values())
    x = Conditions(speed, Dual(speed, 1.0), 0.0, 0.0)
    parts = law._parts
    side = parts.positive if direction > 0 or parts.negative is None else parts.negative
    return slope_of(_sum(side.viscous, p.__getitem__, x, namespace_of(xp)))


def load_slopes(law: FrictionLaw, p: Values, motor_torque: Any, external_torque: Any) -> list[Any]:
    r"""Derivative of the budget at rest with respect to the motor torque, :math:`\partial\tau_f^m/\partial\tau_m`, by term [1]."""
    xp = array_namespace(motor_torque, external_torque, *p.values())
    x = Conditions(0.0, 0.0, Dual(motor_torque, 1.0), external_torque)
    loaded = [term for term in law.of_kind("dry", "fading") if term.loaded]
    return [slope_of(term.budget(p, x, namespace_of(xp))) for term in loaded]


_ORDER: tuple[Kind, ...] = ("viscous", "dry", "fading", "offset")


def friction_columns(
    law: FrictionLaw, p: Values, developed: Any, x: Conditions, direction: Any = None
) -> dict[str, Any]:
    r"""Columns of a regressor: derivatives of the torque against friction with respect to the law's coefficients.

    That torque is :math:`z\tau_f^m - \tau_0`. It is linear in the coefficients at fixed values of the other parameters, and
    while no term in an absolute value changes its sign. Viscous terms come first, the offset last.

    :param p: values of the other parameters, and of coefficients on which the sign of a term depends.
    :param developed: z in [-1, 1]; viscous terms have the direction of the motion instead.
    :param direction: of the motion, by default the sign of the velocity.
    """
    xp = array_namespace(x.speed, developed)
    weight = 1.0 if law.weight is None else law.weight.budget(p, x, xp)
    columns = {}
    for term in sorted(law.of_kind(*_ORDER), key=lambda term: _ORDER.index(term.kind)):
        along = developed
        if term.kind == "viscous":
            along = xp.sign(x.velocity) if direction is None else direction
        elif term.kind == "fading":
            along = developed * weight
        elif term.kind == "offset":
            along = -xp.ones_like(developed)
        for name, one in term.named.items():
            if one.shape or not one.free:
                continue
            slope = slope_of(term.budget(_varying(p, term, name), x, namespace_of(xp)))
            other = law.opposites.get(name)
            columns[name] = slope * (along if other is None else xp.maximum(along, 0.0))
            if other is not None:
                columns[other] = slope * xp.minimum(along, 0.0)
    return columns


def _varying(p: Values, term: Term, varied: str) -> Values:
    return {name: Dual(p.get(name, 1.0), 1.0) if name == varied else p.get(name, 1.0) for name in term.names}


def offset_torque(law: FrictionLaw, p: Values, position: Any = 0.0) -> Any:
    r"""Torque of the law beside motor and external torque :math:`\tau_0(\theta)`, 0 without such a term [N m]."""
    if not law._parts.offset:
        return 0.0
    x = Conditions(0.0, 0.0, 0.0, 0.0, position)
    return _sum(law._parts.offset, p.__getitem__, x, array_namespace(position, *p.values()))


def with_offset(law: FrictionLaw, p: Values, torque: Any, position: Any = 0.0) -> Any:
    """A torque and the law's offset torque [N m]."""
    return torque + offset_torque(law, p, position) if law._parts.offset else torque


def less_offset(law: FrictionLaw, p: Values, torque: Any, share: Any, position: Any = 0.0) -> Any:
    r"""A torque [N m] less a share of the offset torque, :math:`\tau - |s|\,\tau_0`; itself without one."""
    if not law._parts.offset:
        return torque
    return torque - array_namespace(torque, share).abs(share) * offset_torque(law, p, position)


def stopping_torque(velocity: Any, net_torque: Any, inertia: Any, dt: float) -> Any:
    r"""Torque that stops the joint within one step [N m] (paper, eq. 4, with all torques in one sum).

    :math:`\tau_{stop} = -(J/\Delta t\;\dot\theta + \tau)`, where :math:`\tau` is the sum of all torques except friction.
    """
    return -(inertia / dt * velocity + net_torque)


def friction_torque(stop: Any, budget: tuple[Any, Any]) -> Any:
    r"""Friction torque :math:`\tau_f = clip(\tau_{stop}, [-\tau_f^{m+}, \tau_f^{m-}])` [N m] (paper, eq. 5).

    ``+`` and ``-`` are the directions of the next motion: moving in positive direction means overcoming the first budget.
    """
    xp = array_namespace(stop, *budget)
    return xp.clip(stop, -budget[0], budget[1])
