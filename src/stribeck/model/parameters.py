"""Named physical parameters with units and bounds, and their conversion to an optimiser's vector."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from stribeck.errors import ConfigError
from stribeck.model.arrays import Array
from stribeck.model.estimate import Side, side_of


@dataclass(frozen=True)
class Parameter:
    """One physical parameter.

    :param name: key in parameter files.
    :param unit: unit symbol, ``"1"`` for a pure number.
    :param value: starting or fixed value, within the bounds when the parameter is free.
    :param free: whether a fit may change it.
    :raises ConfigError: for values that are not finite, or bounds in the wrong order.
    """

    name: str
    unit: str
    value: float
    lower: float
    upper: float
    free: bool = True

    def __post_init__(self) -> None:
        numbers = (self.value, self.lower, self.upper)
        if not all(math.isfinite(number) for number in numbers):
            raise ConfigError(f"parameter {self.name}: value and bounds must be finite, found {numbers}")
        if not self.lower < self.upper:
            raise ConfigError(
                f"parameter {self.name}: lower bound {self.lower:g} is not below upper bound {self.upper:g}"
            )
        if self.free and not self.lower <= self.value <= self.upper:
            raise ConfigError(
                f"parameter {self.name}: value {self.value:g} is outside [{self.lower:g}, {self.upper:g}]"
            )


class ParameterSet:
    """An ordered, immutable set of parameters.

    An optimiser sees only the free parameters, as a vector in the unit cube:
    ``unit = (value - lower) / (upper - lower)``.
    """

    def __init__(self, parameters: Iterable[Parameter]) -> None:
        self._parameters = {parameter.name: parameter for parameter in parameters}

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self._parameters.values())

    def __len__(self) -> int:
        return len(self._parameters)

    def __contains__(self, name: object) -> bool:
        return name in self._parameters

    def __getitem__(self, name: str) -> Parameter:
        if name not in self._parameters:
            raise ConfigError(f"unknown parameter {name!r}; valid: {', '.join(self._parameters)}")
        return self._parameters[name]

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in order."""
        return tuple(self._parameters)

    @property
    def free(self) -> tuple[Parameter, ...]:
        """The free parameters, in the order of the optimiser's vector."""
        return tuple(parameter for parameter in self if parameter.free)

    @property
    def free_names(self) -> tuple[str, ...]:
        """The names of the free parameters, in the order of the optimiser's vector."""
        return tuple(parameter.name for parameter in self.free)

    @property
    def lower(self) -> Array:
        """Lower search bounds of the free parameters, (n,)."""
        return np.array([parameter.lower for parameter in self.free], dtype=np.float64)

    @property
    def upper(self) -> Array:
        """Upper search bounds of the free parameters, (n,)."""
        return np.array([parameter.upper for parameter in self.free], dtype=np.float64)

    def values(self) -> dict[str, float]:
        """All values, free and fixed."""
        return {parameter.name: parameter.value for parameter in self}

    def vector(self) -> Array:
        """Values of the free parameters, (n,)."""
        return np.array([parameter.value for parameter in self.free], dtype=np.float64)

    def with_vector(self, vector: npt.ArrayLike) -> ParameterSet:
        """The set with the free values replaced by those of ``vector``, (n,)."""
        values = np.asarray(vector, dtype=np.float64)
        if values.shape != (len(self.free),):
            raise ConfigError(
                f"expected {len(self.free)} free values, found an array of shape {values.shape}"
            )
        return self.with_values(dict(zip(self.free_names, values.tolist(), strict=True)))

    def with_values(self, values: Mapping[str, float]) -> ParameterSet:
        """The set with some values replaced; bounds and free flags stay."""
        return self._with(replace(self[name], value=float(value)) for name, value in values.items())

    def fixed(self, values: Mapping[str, float]) -> ParameterSet:
        """The set with some parameters fixed at given values, which may lie outside the search bounds."""
        return self._with(
            replace(self[name], value=float(value), free=False) for name, value in values.items()
        )

    def freed(self, names: Iterable[str]) -> ParameterSet:
        """The set with some parameters free, their values clipped to the search bounds."""
        return self._with(
            replace(one, free=True, value=min(max(one.value, one.lower), one.upper))
            for one in map(self.__getitem__, names)
        )

    def _with(self, changed: Iterable[Parameter]) -> ParameterSet:
        """The set in the same order, with some parameters in place of those of their names."""
        return ParameterSet((*self, *changed))

    def sides(self, vector: npt.ArrayLike) -> dict[str, Side]:
        """Free parameters at a search bound (:func:`~stribeck.model.estimate.side_of`) for the values (n,), with the side."""
        values = np.asarray(vector, dtype=np.float64).tolist()
        found = {
            one.name: side_of(value, (one.lower, one.upper))
            for one, value in zip(self.free, values, strict=True)
        }
        return {name: side for name, side in found.items() if side is not None}

    def to_unit(self, vector: npt.ArrayLike) -> Array:
        """Values of the free parameters (…, n) as points of the unit cube."""
        return (np.asarray(vector, dtype=np.float64) - self.lower) / (self.upper - self.lower)

    def from_unit(self, unit: npt.ArrayLike) -> Array:
        """Points of the unit cube (…, n) as values of the free parameters."""
        return self.lower + np.asarray(unit, dtype=np.float64) * (self.upper - self.lower)
