"""How ROS describes a node's parameters."""

from __future__ import annotations

import math

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor

from stribeck.files.declaration import Spec


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
