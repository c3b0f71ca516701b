"""What a compensator returns: values to publish, and its estimate of the present friction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from stribeck.model.arrays import Array
from stribeck.model.namespace import array_namespace


class Output(NamedTuple):
    """Values to publish.

    :param values: efforts [N m], goals [rad] or currents [A], (n,), depending on the output mode.
    :param friction: the friction torque contained in them [N m], (n,).
    """

    values: Array
    friction: Array


class Account(NamedTuple):
    """Estimate of the present friction of the joints, (n,) each.

    :param dry: ratio of present to identified friction without its viscous part [1].
    :param viscous: ratio of present to identified viscous friction [1].
    :param offset: torque that cancels the remaining residual, in the robot's coordinates [N m].
    :param certainty: certainty of the ratios, 0 to 1.
    :param contact: degree of contact, 0 to 1.
    :param energy: without a goal, remaining fraction of the torque beyond the guaranteed friction, 0 to 1.
    """

    dry: Array
    viscous: Array
    offset: Array
    certainty: Array
    contact: Array
    energy: Array


def fading(joints: Iterable[str]) -> str:
    """A warning that names joints whose torque fades."""
    return (
        f"{', '.join(joints)}: moving for a long time without a goal, or with a goal that is never ahead of the motion: the friction torque decreases to the "
        "guaranteed fraction, and returns when the joint is at rest without a goal, or behind its goal"
    )


def slew_limited(applied: Any, wanted: Any, slew: Any, dt: Any) -> Any:
    """The torque nearest to the wanted one that the slew limit allows after the applied one [N m]."""
    xp = array_namespace(applied, wanted, slew)
    reach = slew * dt
    return xp.minimum(xp.maximum(wanted, applied - reach), applied + reach)
