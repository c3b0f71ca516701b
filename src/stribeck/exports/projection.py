r"""Projection of an identified law onto a poorer one: its parameters are fitted to the motion of the source law.

With :math:`\theta(t)` simulated with the source law and the given commands, the parameters p of the target law minimise
:math:`\frac1R\sum_r \frac1{n_r}\sum_k \rho(\theta_r(t_k; p) - \theta_r(t_k))`, the loss of a fit
(:mod:`stribeck.identify.servo.objective`) with the source law in place of the measurement.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import numpy as np

from stribeck.errors import StribeckError
from stribeck.evaluate.assessment import Stepping
from stribeck.evaluate.draws import CENTRE
from stribeck.exports.bam_drive import law_of_drive
from stribeck.exports.registry import Format
from stribeck.exports.runs import rest_friction
from stribeck.identify.servo.incumbent import BudgetSpentError, Incumbent
from stribeck.identify.servo.rollout import Rollout
from stribeck.identify.servo.search import hybrid
from stribeck.model.actuator import Actuator
from stribeck.model.control_laws import Gains, VoltageControl
from stribeck.model.joint import Drive
from stribeck.model.law import LAWS, FrictionLaw
from stribeck.model.log import Batch
from stribeck.model.terms.position import POSITION
from stribeck.model.terms.term import Conditions, Term

BUDGET = 20_000
"""Evaluations of a projection."""

ONLY_PROPORTIONAL = Gains(1.0, 0.0, 0.0)
"""Gains of a servo that is used without integral and derivative gain."""

BENCH = ("q_offset",)
"""Parameters of the bench, which are no part of an export and stay."""


def target_law(source: Drive, form: Format) -> FrictionLaw:
    """The law that a format holds of a source law."""
    if form.law == "source":
        return source.law if form.terms else source.law.with_terms()
    return law_of_drive(source.law) if form.law == "drive" else LAWS["m1"]


def target_actuator(source: Drive, form: Format) -> Actuator:
    """The servo with the effects and the firmware terms that a format holds."""
    actuator = source.actuator
    if not form.gains:
        actuator = actuator.with_used_terms(ONLY_PROPORTIONAL)
    return replace(actuator, active_effects=actuator.active_effects & frozenset(form.effects))


def lost(source: Drive, form: Format, gains: Gains = ONLY_PROPORTIONAL) -> tuple[str, ...]:
    """Effects of the source that a format has no place for, in words.

    :param gains: with which the servo is used.
    """
    control = source.actuator.control
    falls = not form.falling_limit and isinstance(control, VoltageControl)
    ramps = not form.ramp and control.goal_speed is not None
    words = {
        "the decrease of the torque limit with speed": falls,
        "the speed limit of the firmware's goal (the sender of goals must keep it)": ramps,
    }
    return (*missing_terms(source, form, gains), *(text for text, missing in words.items() if missing))


def missing_terms(source: Drive, form: Format, gains: Gains = ONLY_PROPORTIONAL) -> tuple[str, ...]:
    """Terms of the law and effects that a format lacks, in words; a projection makes up for them."""
    law, other = source.law, target_law(source, form)
    instead = {term.name: term for term in other.terms}
    words = list(
        dict.fromkeys(
            f"{term.title} (instead: {instead[term.name].title})" if term.name in instead else term.title
            for term in law.terms
            if term not in other.terms and _acts(term, source)
        )
    )
    missing = sorted(source.actuator.active_effects - target_actuator(source, form).active_effects)
    words += ["Coulomb friction"] if "friction_base" in form.absent else []
    words += [
        f"the {name} gain"
        for name, gain in (("integral", gains.ki), ("derivative", gains.kd))
        if not form.gains and np.any(gain)
    ]
    return (*words, *(f"the effect {name}" for name in missing))


def _acts(term: Term, source: Drive) -> bool:
    """Whether a term has a coefficient other than zero, so that something is lost without it."""
    return any(source.values.get(one.name) for one in term.parameters if one.shape is None and one.free)


def over_the_position(sources: Mapping[str, Drive], form: Format) -> str | None:
    """How large the friction over the position is that a format lacks, of joints of robots; ``None`` if none is lost."""
    told = []
    for joint, source in sources.items():
        if not source.of_robot or POSITION.title not in missing_terms(source, form):
            continue
        middle = source.values[CENTRE]
        below, above = (
            round(float(POSITION.budget(source.values, Conditions(0.0, 0.0, 0.0, 0.0, middle + away), np)), 9)
            + 0.0
            for away in (-AWAY, AWAY)
        )
        told.append(f"{joint} {below:+.2g} and {above:+.2g} of {rest_friction(source):.2g}")
    if not told:
        return None
    return f"lost {AWAY:g} rad below and above the middle of the goals, of Coulomb friction there [N m]: {', '.join(told)}"


def armature_remark(joint: str, source: Drive) -> str | None:
    """A warning about an armature whose search ended at a bound: recordings do not determine it, and draws do not vary it."""
    one = source.stated.get("armature")
    if one is None or one.status != "at bound":
        return None
    remedy = "record faster motion"
    if source.of_robot:
        remedy = (
            f"identify joints with equal drives together (`stribeck identify robot … --same`), or {remedy}"
        )
    return f"{joint}: the armature is {one.reason}, which the recordings do not determine; it is exported as it is, and all draws have it: {remedy}"


def rest_remark(source: Drive, held: Drive, form: Format) -> str | None:
    """A remark if a format holds less than half of the friction at rest without load, which moving runs do not show."""
    own, written = rest_friction(source), rest_friction(held)
    if written >= 0.5 * own or "friction_base" in form.absent:
        return None
    remedy = "give recordings with rests, so that the export represents them"
    if source.of_robot:
        remedy = "identify the robot with a law that the format has (`stribeck identify robot … --law m1`)"
    return (
        f"friction at rest without load is {own:.3g} in the source law, but {written:.3g} in the export: a joint that should stay at rest may sink; "
        f"{remedy}"
    )


def plain(source: Drive, form: Format) -> Drive:
    """The source with the terms that the format lacks left out."""
    law, actuator = target_law(source, form), target_actuator(source, form)
    kept = {*actuator.parameters(law).names, *actuator.control.motor_parameters, *BENCH}
    values = {name: value for name, value in source.values.items() if name in kept}
    values |= dict.fromkeys(form.absent, 0.0)
    return Drive(actuator, law, values)


AWAY = 0.5
"""Distance from the middle of the goals at which lost friction is stated [rad or m]."""

NEGLIGIBLE = 1e-3
"""Mean difference of position [rad] below which no projection is sought."""


def closest(source: Drive, form: Format, runs: Batch, stepping: Stepping) -> Drive:
    """The format's law with the source's own parameters if the motion differs little, else the closer of these and a projection.

    :param runs: the runs with the motion of the source law.
    """

    def distance(file: Drive) -> float:
        with np.errstate(all="ignore"):
            apart = runs.mean_absolute_errors(stepping.motion(file, runs).position)
        return float(np.mean(np.nan_to_num(apart, nan=np.inf)))

    own = plain(source, form)
    if distance(own) < NEGLIGIBLE:
        return own
    return min((projected(source, form, runs, stepping), own), key=distance)


def projected(source: Drive, form: Format, runs: Batch, stepping: Stepping) -> Drive:
    """The format's law with the parameters that move most like the source.

    :param runs: the runs with the motion of the source law.
    :raises StribeckError: if no simulation stays finite.
    """
    start = plain(source, form)
    parameters = start.actuator.parameters(start.law)
    bounded = parameters.names
    free = [name for name in bounded if name not in BENCH and name in (form.fitted or bounded)]
    kept = {name: value for name, value in start.values.items() if name in bounded and name not in free}
    rollout = Rollout(
        runs,
        start.actuator,
        start.law,
        parameters.fixed(kept).freed(free),
        reset_period=stepping.reset_period,
        integrator=stepping.integrator,
    )
    incumbent = Incumbent(BUDGET, lambda: rollout.meter.evaluations)
    with suppress(BudgetSpentError):
        hybrid(rollout, incumbent, np.random.default_rng(0))
    if incumbent.unit is None:
        raise StribeckError("all simulations of these runs diverge: check masses, lengths and gains")
    found = rollout.parameters.with_vector(rollout.parameters.from_unit(incumbent.unit)).values()
    return replace(start, values={**start.values, **found})
