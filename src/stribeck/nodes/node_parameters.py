"""How ROS describes a node's parameters, and those given to a node that does not declare them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor

from stribeck.errors import ConfigError
from stribeck.files.declaration import NodeParameters, Spec, not_compensated

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


def descriptor_of(spec: Spec) -> ParameterDescriptor:
    """Description, type and range of a parameter."""
    text = spec.description + (f" ({', '.join(c for c in spec.choices if c)})" if spec.choices else "")
    descriptor = ParameterDescriptor(name=spec.name, description=text)
    descriptor.dynamic_typing = spec.is_list  # an empty list has no element type
    if math.isfinite(spec.upper - spec.lower):
        if spec.type is float:
            descriptor.floating_point_range = [FloatingPointRange(from_value=spec.lower, to_value=spec.upper)]
        elif spec.type is int:
            descriptor.integer_range = [IntegerRange(from_value=int(spec.lower), to_value=int(spec.upper))]
    return descriptor
