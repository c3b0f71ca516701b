r"""What a friction term is: its parameters, and its part of the friction budget as a formula.

Everything else about a term follows from this: names and bounds for searches, checks of files, priors, derivatives,
columns of regressors, and code in other languages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

from stribeck.model.namespace import array_namespace

Values = Mapping[str, Any]
"""Parameter values by name: floats or arrays that broadcast with the state."""

Kind = Literal["dry", "fading", "viscous", "offset", "weight", "sides", "state"]
"""What a term is in a law.

- ``dry``: a part of the budget that does not vanish at rest,
- ``fading``: the same, times the Stribeck weight,
- ``viscous``: a part of the budget that grows with speed from zero,
- ``offset``: a torque beside motor and external torque, no part of the budget,
- ``weight``: the Stribeck weight of the fading terms,
- ``sides``: values of other terms for motion in negative direction,
- ``state``: the share of the dry and fading terms that has developed since the last reversal.
"""

Sign = Literal["positive", "nonnegative", "static", "any"]
"""Values that a parameter can have: above zero; at least zero; negative too, while friction at rest is not; any."""


class Conditions(NamedTuple):
    r"""What friction depends on: numbers or arrays that broadcast to each other.

    :param velocity: :math:`\dot\theta` [rad/s].
    :param speed: :math:`|\dot\theta|` [rad/s].
    :param motor: motor torque at the output shaft :math:`\tau_m` [N m].
    :param external: external torque :math:`\tau_e` [N m].
    :param position: :math:`\theta` [rad].
    """

    velocity: Any
    speed: Any
    motor: Any
    external: Any
    position: Any = 0.0


class ArmShape(NamedTuple):
    """Search and prior of a parameter that shapes a term, for a joint of an arm.

    :param lower, upper: bounds.
    :param step: largest change in one step.
    :param mean, deviation: of the prior.
    :param of_speed: whether all these are relative to a velocity: bounds and step to the largest one of the joint, mean to
        the first guess, with the deviation of the logarithm.
    """

    lower: float
    upper: float
    step: float
    mean: float
    deviation: float
    of_speed: bool = False


class RobotSearch(NamedTuple):
    """Start, bounds and largest change in one step of a parameter that is identified for a joint of a robot."""

    start: float
    lower: float
    upper: float
    step: float


class Units(NamedTuple):
    """Unit of a parameter for a joint that turns, and for one that slides."""

    rotary: str
    linear: str


@dataclass(frozen=True)
class FrictionParameter:
    """A parameter of a friction term.

    :param name: key in parameter files.
    :param units: unit for a joint that turns, and for one that slides.
    :param bounds: default search bounds, for a small servo.
    :param sign: values that it can have.
    :param shape: of a parameter to which the budget is not proportional, its search for a joint of an arm.
    :param thermal: whether it changes with temperature as friction torques do.
    :param robot: its search for a joint of a robot; ``None``: it keeps ``value``.
    :param value: where it is not identified.
    :param free: whether it is identified for a servo.
    :param given: whether the user has to state it, because no value of it is usual.
    :param like: parameter of a simpler law that it equals where the richer law is the simpler one.
    :param opposite: parameter of positive motion whose place it takes in negative motion.
    """

    name: str
    symbol: str
    units: Units
    bounds: tuple[float, float]
    sign: Sign = "nonnegative"
    shape: ArmShape | None = None
    thermal: bool = True
    robot: RobotSearch | None = None
    value: float = 0.0
    free: bool = True
    given: bool = False
    like: str | None = None
    opposite: str | None = None

    @property
    def lower(self) -> float:
        """Lower end of the default search bounds."""
        return self.bounds[0]

    @property
    def upper(self) -> float:
        """Upper end of the default search bounds."""
        return self.bounds[1]

    @property
    def signed(self) -> bool:
        """Whether it may be positive or negative."""
        return self.sign == "any"

    def unit(self, units: str) -> str:
        """Unit for ``rotary`` or ``linear`` joints."""
        return self.units.rotary if units == "rotary" else self.units.linear


def torque_parameter(name: str, symbol: str, upper: float, **others: Any) -> FrictionParameter:
    """A parameter with the unit of a torque, from zero to ``upper``."""
    return FrictionParameter(name, symbol, Units("N m", "N"), (0.0, upper), **others)


def share_parameter(name: str, symbol: str, upper: float, **others: Any) -> FrictionParameter:
    """A share of a torque, from zero to ``upper``."""
    return FrictionParameter(name, symbol, Units("1", "1"), (0.0, upper), **others)


@dataclass(frozen=True, eq=False, repr=False)
class Term:
    r"""A term of a friction law. Terms are the same only if they are one object.

    :param name: in code and on the command line.
    :param title: the effect in words, for messages that say what a simpler model lacks.
    :param formula: from :class:`Conditions`, an array namespace and the values of the parameters in order, the term's
        part of the budget [N m]; of a ``weight`` the weight [1], of an ``offset`` the torque [N m].
    :param alike: whether its two parameters belong to torques of the motor and from outside, are nearly equal, and
        enter as a difference.
    :param advance: of a ``state``, from its value, the movement [rad], an array namespace and the values of the
        parameters in order, its value after the movement; affine in its value before.
    """

    name: str
    title: str
    kind: Kind
    parameters: tuple[FrictionParameter, ...]
    formula: Callable[..., Any]
    alike: bool = False
    advance: Callable[..., Any] | None = None

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], Term], tuple[str]]:
        from stribeck.model.terms import term_named

        return term_named, (self.name,)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of its parameters."""
        return tuple(parameter.name for parameter in self.parameters)

    @cached_property
    def named(self) -> dict[str, FrictionParameter]:
        """Its parameters by name."""
        return {parameter.name: parameter for parameter in self.parameters}

    def budget(self, p: Values, x: Conditions, xp: Any) -> Any:
        """Its part of the friction budget [N m].

        :param p: parameter values.
        :param xp: array namespace of the values and conditions.
        """
        return self.formula(x, xp, *[p[name] for name in self.names])

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The conditions on which it depends."""
        seen: set[str] = set()

        class Recorder:
            def __getattr__(self, name: str) -> float:
                seen.add(name)
                return 0.5

        self.formula(Recorder(), array_namespace(0.5), *[0.5 for _ in self.parameters])
        return frozenset(seen)

    @cached_property
    def loaded(self) -> bool:
        """Whether it depends on the torques on the transmission."""
        return not self.inputs.isdisjoint({"motor", "external"})

    @cached_property
    def signed(self) -> bool:
        """Whether its part of the budget may be negative, so that a law bounds it together with Coulomb friction."""
        return self.kind == "dry" and any(parameter.signed for parameter in self.parameters)


def fading(term: Term, name: str, title: str, *parameters: FrictionParameter) -> Term:
    """A term that falls with the Stribeck weight, by the formula of another one."""
    return replace(term, name=name, title=title, kind="fading", parameters=parameters)
