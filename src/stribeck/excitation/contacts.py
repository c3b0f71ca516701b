"""Which exact bodies of an arm collide, by coal; pairs that collide at nearly every configuration."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import coal
import numpy as np
import pinocchio as pin

from stribeck.excitation.shapes import Shape
from stribeck.identify.arm.model import ArmModel
from stribeck.model.arrays import Array, Mask

Pair = frozenset[str]
"""Names of two links."""

NEARLY_ALWAYS, MOSTLY = 0.9, 0.5
"""Share of random configurations at which a pair collides that is taken to touch by design, as overlapping meshes do;
and the same for a pair that collides in the middle of all joint ranges, too."""


def geometry_of(
    arm: ArmModel, shapes: Sequence[Shape], ignored: Collection[Pair], convex: bool
) -> pin.GeometryModel:
    """Pinocchio model of the bodies, with all pairs but neighbours and ignored ones.

    :param convex: whether meshes are replaced by their convex hulls.
    """
    model = pin.GeometryModel()
    for number, shape in enumerate(shapes):
        body = shape.geometry
        if convex and isinstance(body, coal.BVHModelBase):
            body.buildConvexHull(True, "Qt")
            body = body.convex
        item = pin.GeometryObject(f"{shape.link}/{number}", shape.joint, shape.placement, body)
        model.addGeometryObject(item)
    before = arm.model.parents
    for first, one in enumerate(shapes):
        for second, other in enumerate(shapes[:first]):
            near = neighbours(before, one.joint, other.joint)
            if not near and frozenset((one.link, other.link)) not in ignored:
                model.addCollisionPair(pin.CollisionPair(second, first))
    return model


def neighbours(parents: Sequence[int], one: int, other: int) -> bool:
    """Whether two bodies are on the same joint, or on a joint and its parent, by Pinocchio's indices (0: the base)."""
    return one == other or parents[one] == other or parents[other] == one


def contacts(
    arm: ArmModel, shapes: Sequence[Shape], ignored: Collection[Pair], position: Array
) -> dict[Pair, Mask]:
    """At which positions (N, n) the bodies of two links collide, (N,) for each pair that is not ignored."""
    geometry = geometry_of(arm, shapes, ignored, convex=False)
    links = [
        frozenset((shapes[pair.first].link, shapes[pair.second].link)) for pair in geometry.collisionPairs
    ]
    found = {pair: np.zeros(len(position), dtype=bool) for pair in links}
    data, bodies = arm.model.createData(), geometry.createData()
    for k, configuration in enumerate(arm.configuration(position)):
        pin.computeCollisions(arm.model, data, geometry, bodies, configuration, False)
        for pair, result in zip(links, bodies.collisionResults, strict=True):
            found[pair][k] |= result.isCollision()
    return found


def always_touching(
    arm: ArmModel, shapes: Sequence[Shape], ignored: Collection[Pair], position: Array
) -> frozenset[Pair]:
    """Pairs that collide at :data:`NEARLY_ALWAYS` of the positions (N, n): no motion keeps them apart.

    :param position: the first is the middle of the joint ranges, the others are random.
    """
    found = contacts(arm, shapes, ignored, position)
    return frozenset(
        pair
        for pair, collides in found.items()
        if collides.mean() >= (MOSTLY if collides[0] else NEARLY_ALWAYS)
    )
