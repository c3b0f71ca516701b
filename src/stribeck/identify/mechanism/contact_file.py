"""The section ``contacts`` of a model file: points of bodies that rest on planes, with friction.

.. code-block:: yaml

    contacts:
      floor: {body: block, point: [0, 0, -0.05], grip: mu, plane: {point: [0, 0, -0.05], normal: [0, 0, 1]}}
      rim: {body: disk, point: [0, 0, 0], radius: 0.1, grip: 0.4, plane: {point: [0, 0, -0.1]}}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from msgspec import Meta

from stribeck.files.schema import NotNegative, Schema
from stribeck.identify.mechanism.affine import Number, index_of
from stribeck.identify.mechanism.mechanism import PlaneContact


class PlaneSection(Schema):
    """A plane of the world.

    :param point: of the plane [m].
    :param normal: towards the side of the body.
    """

    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        if np.linalg.norm(self.normal) < 1e-9:
            raise ValueError("normal must not be zero")


class ContactSection(Schema):
    """A point of a body, or a ball around it, that can touch a plane.

    :param body: name of the body.
    :param grip: coefficient of friction.
    :param radius: of the ball about the point; zero: the point itself.
    """

    body: str
    point: Annotated[tuple[Number, Number, Number], Meta(description="x, y, z in the zero pose [m]")]
    grip: Number = 0.0
    radius: NotNegative = 0.0
    plane: PlaneSection = PlaneSection()


class StartSection(Schema):
    """Motion of a body at the beginning of a simulation, in the zero pose.

    :param velocity: of its centre of mass [m/s].
    :param spin: angular velocity in the body's frame [rad/s].
    """

    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    spin: tuple[float, float, float] = (0.0, 0.0, 0.0)


def contact_of(name: str, section: ContactSection, bodies: Sequence[str], where: str) -> PlaneContact:
    """The contact that a section describes.

    :param bodies: names, the world first.
    :raises ConfigError: for an unknown body, or the world.
    """
    body = 1 + index_of(section.body, bodies[1:], f"{where}: body")
    x, y, z = (np.array(section.plane.normal) / np.linalg.norm(section.plane.normal)).tolist()
    return PlaneContact(name, body, section.radius, section.plane.point, (x, y, z))
