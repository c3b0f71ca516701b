"""Parameters given to a node that it does not declare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from stribeck.errors import ConfigError
from stribeck.files.declaration import NodeParameters, not_compensated

ROS_PARAMETERS = ("use_sim_time", "qos_overrides", "start_type_description_service")
"""Parameters in a file that ROS itself reads."""


def without_effect(
    declares: type[NodeParameters], given: Set[str], declared: Sequence[str], joints: Sequence[str]
) -> Iterator[str]:
    """Warnings of parameters that have no effect.

    :param declares: class of the node's parameters.
    :param given: names that the node does not declare.
    :param declared: those that it declares.
    :param joints: of the node.
    :raises ConfigError: if a parameter belongs to a joint of the node.
    """
    unknown = []
    apart = declares.groups_without_joint([*given], joints)
    for name in sorted(given - {one for names in apart.values() for one in names}):
        first, _, rest = name.partition(".")
        if rest and first in joints:
            valid = [one.removeprefix(f"{first}.") for one in declared if one.startswith(f"{first}.")]
            raise ConfigError(f"{name}: unknown parameter of a joint; valid: {', '.join(valid)}")
        unused = first == "qos_overrides" and ".publisher" in name
        if unused or (first not in ROS_PARAMETERS and not (rest and not joints)):
            unknown.append(name)
    if apart:
        yield not_compensated(apart)
    if unknown:
        yield f"unknown parameters, which have no effect: {', '.join(unknown)}; valid: {', '.join(declared)}"
