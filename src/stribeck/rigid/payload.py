"""A payload: a point mass fixed to a link of a robot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stribeck.errors import ConfigError
from stribeck.model.arrays import Array
from stribeck.rigid.tree import pseudo_inertia_of

EXPECTED = "expected MASS,X,Y,Z: kg, and the centre of mass in the frame of its link [m]"


@dataclass(frozen=True)
class Payload:
    """A point mass; its own inertia, about its centre, is left out.

    :param mass: [kg].
    :param com: centre of mass in the frame of ``link`` [m].
    :param link: the link, or the joint that moves it.
    """

    mass: float
    com: tuple[float, float, float]
    link: str

    @property
    def pseudo_inertia(self) -> Array:
        """Pseudo-inertia (4, 4) in the frame of the link."""
        return pseudo_inertia_of(self.mass, self.com, [[0.0] * 3] * 3)


def payload_numbers(text: str, name: str) -> list[float]:
    """Parse ``MASS`` or ``MASS,X,Y,Z``.

    :raises ConfigError: for anything else.
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(f"{name}: {EXPECTED}; found {text!r}") from None


def payload_of(numbers: Sequence[float], link: str, name: str) -> Payload:
    """A payload from its mass, alone at the link's origin or followed by its centre.

    :param name: of the option or parameter, for messages.
    :raises ConfigError: for another number of numbers, or a mass that is not positive.
    """
    if len(numbers) not in (1, 4) or not all(map(math.isfinite, numbers)):
        raise ConfigError(f"{name}: {EXPECTED}; found {', '.join(f'{number:g}' for number in numbers)}")
    if not numbers[0] > 0.0:
        raise ConfigError(f"{name}: the mass must be positive, found {numbers[0]:g} kg")
    x, y, z = numbers[1:] or (0.0, 0.0, 0.0)
    return Payload(float(numbers[0]), (float(x), float(y), float(z)), link)
