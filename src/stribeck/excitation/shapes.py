"""Bodies of an arm that must not collide: collision geometry of the URDF, or capsules from the robot's YAML file.

The search uses enclosing capsules (:func:`enclosing_capsules`), the final check the exact bodies
(:mod:`stribeck.excitation.check`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import coal
import numpy as np
import pinocchio as pin
from scipy import optimize

from stribeck.errors import ConfigError, check_valid
from stribeck.identify.arm.model import ArmModel, locked_urdf
from stribeck.model.arrays import Array
from stribeck.rigid.urdf import robot_element


@dataclass(frozen=True, eq=False)
class Shape:
    """A body fixed to a link.

    :param link: name of the link in the URDF.
    :param joint: Pinocchio's index of the joint that moves it, 0 for the base.
    :param placement: pose of the shape in the joint frame.
    """

    link: str
    joint: int
    placement: Any
    geometry: Any


@dataclass(frozen=True, eq=False)
class Capsule:
    """All points within a radius of a segment.

    :param start, end: ends of the segment in the joint frame (3,) [m].
    :param radius: [m].
    """

    link: str
    joint: int
    start: Array
    end: Array
    radius: float


def shapes_of(arm: ArmModel, capsules: Mapping[str, Sequence[Sequence[float]]]) -> tuple[Shape, ...]:
    """The bodies of an arm.

    :param capsules: ``[x, y, z, x, y, z, radius]`` by link, both ends of the segment in the link frame [m]; empty for
        the collision geometry of the URDF.
    :raises ConfigError: for unknown links, and missing geometry files.
    """
    return _from_capsules(arm, capsules) if capsules else _from_urdf(arm)


def has_bodies(arm: ArmModel) -> bool:
    """Whether the URDF has any collision geometry."""
    return any(link.find("collision") is not None for link in robot_element(arm.path).findall("link"))


def _from_capsules(arm: ArmModel, capsules: Mapping[str, Sequence[Sequence[float]]]) -> tuple[Shape, ...]:
    shapes = []
    for link, rows in capsules.items():
        joint, placement = _frame(arm, link)
        for row in rows:
            start, end, radius = np.array(row[:3]), np.array(row[3:6]), float(row[6])
            length = float(np.linalg.norm(end - start))
            turn = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), end - start).matrix()
            middle = pin.SE3(turn if length > 0.0 else np.eye(3), 0.5 * (start + end))
            shapes.append(Shape(link, joint, placement * middle, coal.Capsule(radius, length)))
    return tuple(shapes)


def _from_urdf(arm: ArmModel) -> tuple[Shape, ...]:
    """The collision elements of the URDF; ``package://`` is resolved in all its parent folders."""
    folders = [str(folder) for folder in arm.path.resolve().parents]
    text, kind = locked_urdf(arm.path, arm.joints), pin.GeometryType.COLLISION
    try:
        geometry = pin.buildGeomFromUrdfString(arm.model, text, kind, package_dirs=folders)
    except (ValueError, RuntimeError) as error:
        raise ConfigError(
            f"{arm.path}: its collision geometry cannot be read ({' '.join(str(error).split())}): put the files at the package:// paths, give capsules in the "
            "robot's YAML file (excitation: capsules), or switch the check off with `no_collisions`"
        ) from None
    shapes = [
        Shape(arm.model.frames[item.parentFrame].name, int(item.parentJoint), item.placement, item.geometry)
        for item in geometry.geometryObjects
    ]
    if not shapes:
        raise ConfigError(
            f"{arm.path} has no collision geometry: give capsules in the robot's YAML file (excitation: "
            "capsules), or switch the check off with `no_collisions`"
        )
    return tuple(shapes)


def _frame(arm: ArmModel, link: str) -> tuple[int, Any]:
    """The joint that moves a link, and the link's placement in the joint frame."""
    links = {frame.name: frame for frame in arm.model.frames if frame.type == pin.FrameType.BODY}
    check_valid(link, links, f"{arm.path} has no link")
    return int(links[link].parentJoint), links[link].placement


def enclosing_capsules(shapes: Sequence[Shape]) -> tuple[Capsule, ...]:
    """Capsules that enclose shapes: one for each round shape, and one for all other shapes of a link."""
    capsules: list[Capsule] = []
    for link, joint in dict.fromkeys((shape.link, shape.joint) for shape in shapes):
        of_link = [shape for shape in shapes if shape.link == link]
        exact = [_exact(shape) for shape in of_link]
        capsules += [Capsule(link, joint, *part) for part in exact if part is not None]
        others = [_points(shape) for shape, part in zip(of_link, exact, strict=True) if part is None]
        if others:
            capsules.append(Capsule(link, joint, *capsule_around(np.concatenate(others))))
    return tuple(capsules)


def _exact(shape: Shape) -> tuple[Array, Array, float] | None:
    """The capsule of a sphere, capsule or cylinder; ``None`` for other shapes."""
    geometry, place = shape.geometry, shape.placement
    if isinstance(geometry, coal.Sphere):
        return place.translation, place.translation, float(geometry.radius)
    if isinstance(geometry, coal.Capsule | coal.Cylinder):
        half = geometry.halfLength * place.rotation[:, 2]
        return place.translation - half, place.translation + half, float(geometry.radius)
    return None


def _points(shape: Shape) -> Array:
    """Points whose convex hull contains the shape, in the joint frame, (N, 3)."""
    geometry = shape.geometry
    if isinstance(geometry, coal.Box):
        points = np.array(list(product((-1.0, 1.0), repeat=3))) * geometry.halfSide
    elif isinstance(geometry, coal.BVHModelBase):
        points = np.array(geometry.vertices())
    elif isinstance(geometry, coal.ConvexBase):
        points = np.array(geometry.points())
    else:
        raise ConfigError(
            f"link {shape.link!r}: geometry {type(geometry).__name__} is not supported; valid: meshes, boxes, "
            "cylinders, capsules, spheres"
        )
    return np.asarray(points @ shape.placement.rotation.T + shape.placement.translation)


def capsule_around(points: Array) -> tuple[Array, Array, float]:
    """A small capsule around points (N, 3): both ends and the radius.

    Starts from the best principal axis and improves direction and position of the axis by Nelder-Mead.
    """
    spread = points - points.mean(axis=0)
    _, _, axes = np.linalg.svd(spread, full_matrices=False)
    frames = [np.roll(axes, -k, axis=0) for k in range(3)]
    frame = min(frames, key=lambda axes: _volume(*_about(points, axes, np.zeros(4))))
    best = optimize.minimize(
        lambda shift: _volume(*_about(points, frame, shift)),
        np.zeros(4),
        method="Nelder-Mead",
        options={"maxiter": 120, "initial_simplex": _simplex(points)},
    )
    return _about(points, frame, best.x)


def _simplex(points: Array) -> Array:
    size = 0.1 * float(np.ptp(points, axis=0).max())
    return np.vstack([np.zeros(4), np.diag([size, size, 0.15, 0.15])])


def _about(points: Array, axes: Array, shift: Array) -> tuple[Array, Array, float]:
    """The capsule around points whose axis is the first of ``axes``, after a shift (2) and a tilt (2)."""
    along = axes[0] + shift[2] * axes[1] + shift[3] * axes[2]
    along = along / np.linalg.norm(along)
    middle = points.mean(axis=0)
    across = (points - middle) @ axes[1:].T
    foot = middle + (0.5 * (across.max(axis=0) + across.min(axis=0)) + shift[:2]) @ axes[1:]
    place = (points - foot) @ along
    distance = np.linalg.norm(points - foot - np.outer(place, along), axis=1)
    radius = float(distance.max())
    cap = np.sqrt(np.maximum(radius**2 - distance**2, 0.0))
    low, high = float((place + cap).min()), float((place - cap).max())
    if low > high:
        low = high = 0.5 * (low + high)
        radius = float(np.sqrt((place - low) ** 2 + distance**2).max())
    return foot + low * along, foot + high * along, radius


def _volume(start: Array, end: Array, radius: float) -> float:
    return float(np.pi * radius**2 * (np.linalg.norm(end - start) + 4.0 / 3.0 * radius))
