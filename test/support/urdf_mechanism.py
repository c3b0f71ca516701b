"""Builds mechanisms from URDF files of serial chains, merging fixed links into one body."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin

from stribeck.errors import ConfigError
from stribeck.identify.mechanism.mechanism import Mechanism, MechanismJoint, Regularization, Sensor, shapes
from stribeck.identify.mechanism.plausibility import check_mechanism
from stribeck.model.parameters import Parameter, ParameterSet

FRICTION = (("coulomb", "N m"), ("viscous", "N m s/rad"))
LARGEST_FRICTION = 100.0
PRISMATIC = ("JointModelPX", "JointModelPY", "JointModelPZ", "JointModelPrismaticUnaligned")


def mechanism_of_urdf(path: Path, regularization: Regularization | None = None) -> Mechanism:
    """Build a mechanism with friction ``<joint>_coulomb``, ``<joint>_viscous`` as free parameters.

    Friction has the initial values of ``<dynamics>``. Every joint has a position sensor.

    :raises ConfigError: for invalid files, branched chains, and joints that are neither revolute nor prismatic.
    """
    try:
        model = pin.buildModelFromUrdf(str(path))
    except (ValueError, RuntimeError) as problem:
        raise ConfigError(f"{path} is not a valid URDF: {problem}") from None
    count = model.njoints - 1
    if list(model.parents)[1:] != list(range(count)):
        raise ConfigError(f"{path}: only serial chains are supported, this one branches")
    if count == 0:
        raise ConfigError(f"{path} has no movable joint")
    names = list(model.names)[1:]
    parameters = _friction(model, names)
    sizes = shapes(count, count, 0, count)
    numbers = {name: np.zeros(shape) for name, shape in sizes.items()}
    joints, place = [], pin.SE3.Identity()
    for j in range(1, count + 1):
        place = place * model.jointPlacements[j]
        body, inertia = j - 1, model.inertias[j]
        numbers["mass"][body] = inertia.mass
        numbers["com"][body] = place.act(inertia.lever)
        about = place.rotation @ inertia.inertia @ place.rotation.T
        numbers["inertia"][body] = about[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        numbers["point"][body] = place.translation
        joints.append(_joint(model, j, place, path))
    matrix = {name: np.zeros((*shape, len(parameters))) for name, shape in sizes.items()}
    for k, (kind, _) in enumerate(FRICTION):
        for j in range(count):
            matrix[kind][j, 2 * j + k] = 1.0
    mechanism = Mechanism(
        path.stem,
        tuple(names),
        tuple(joints),
        (),
        tuple(Sensor(name, j) for j, name in enumerate(names)),
        parameters,
        np.concatenate([part.reshape(-1) for part in numbers.values()]),
        np.concatenate([part.reshape(-1, len(parameters)) for part in matrix.values()]),
        regularization or Regularization(length=max(float(np.ptp(numbers["point"], axis=0).max()), 0.1)),
    )
    check_mechanism(mechanism, str(path))
    return mechanism


def _friction(model: pin.Model, names: list[str]) -> ParameterSet:
    parameters = []
    for j, name in enumerate(names):
        given = (float(model.friction[j]), float(model.damping[j]))
        for (kind, unit), value in zip(FRICTION, given, strict=True):
            parameters.append(
                Parameter(f"{name}_{kind}", unit, value, 0.0, max(LARGEST_FRICTION, 2.0 * value))
            )
    return ParameterSet(parameters)


def _joint(model: pin.Model, j: int, place: pin.SE3, path: Path) -> MechanismJoint:
    joint = model.joints[j]
    if joint.nv != 1 or joint.nq > 2:
        raise ConfigError(f"{path}: joint {model.names[j]} has {joint.nv} degrees of freedom, not 1")
    kind = "prismatic" if joint.shortname() in PRISMATIC else "revolute"
    motion = joint.createData()
    joint.calc(motion, pin.neutral(model)[joint.idx_q : joint.idx_q + joint.nq])
    column = np.asarray(motion.S).reshape(6)
    axis = place.rotation @ (column[:3] if kind == "prismatic" else column[3:])
    x, y, z = (axis / np.linalg.norm(axis)).tolist()
    return MechanismJoint(
        model.names[j], "prismatic" if kind == "prismatic" else "revolute", j - 1, j, (x, y, z)
    )
