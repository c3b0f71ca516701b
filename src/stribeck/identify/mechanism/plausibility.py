"""Checks the plausibility of a mechanism's masses, inertias, distances and friction before any computation."""

from __future__ import annotations

import jax
import numpy as np

from stribeck.errors import ConfigError
from stribeck.identify.mechanism.mechanism import Mechanism, inertia_matrices

LARGEST = 100.0
"""Larger distances [m] are probably in millimetres."""


def check_mechanism(mechanism: Mechanism, what: str) -> None:
    """Reject implausible masses, inertias, distances and friction.

    :raises ConfigError: naming the body or joint.
    """
    with jax.enable_x64():
        physical = jax.tree.map(np.asarray, mechanism.physical(mechanism.values()))
        inertias = np.asarray(inertia_matrices(physical.inertia))
    reach = np.abs(np.concatenate([physical.com, physical.point])).max()
    if reach > LARGEST:
        raise ConfigError(
            f"{what}: a point is {reach:g} m away from the origin: is it in millimetres instead of metres?"
        )
    size = max(float(np.ptp(np.concatenate([physical.com, physical.point]), axis=0).max()), 0.1)
    for name, mass, inertia in zip(mechanism.bodies, physical.mass, inertias, strict=True):
        if not mass > 0.0:
            raise ConfigError(f"{what}: bodies: {name}: mass must be positive, found {mass:g}")
        _check_inertia(inertia, mass, size, f"{what}: bodies: {name}")
    for joint, coulomb, viscous in zip(mechanism.joints, physical.coulomb, physical.viscous, strict=True):
        if coulomb < 0.0 or viscous < 0.0:
            raise ConfigError(
                f"{what}: joints: {joint.name}: friction must not be negative, found {coulomb:g}, {viscous:g}"
            )
    for contact, grip in zip(mechanism.contacts, physical.grip, strict=True):
        if grip < 0.0:
            raise ConfigError(f"{what}: contacts: {contact.name}: grip must not be negative, found {grip:g}")
    for motor, resistance in zip(mechanism.motors, physical.resistance, strict=True):
        if not resistance > 0.0:
            raise ConfigError(
                f"{what}: motors: {motor.name}: resistance must be positive, found {resistance:g}"
            )
    _check_reached(mechanism, what)


def _check_inertia(inertia: np.ndarray, mass: float, size: float, what: str) -> None:
    moments = np.linalg.eigvalsh(inertia)
    if not moments[0] > 0.0:
        raise ConfigError(f"{what}: principal moments of inertia must be positive, found {moments.tolist()}")
    if moments[2] > (moments[0] + moments[1]) * (1.0 + 1e-6):
        raise ConfigError(
            f"{what}: principal moments of inertia {moments.tolist()} are impossible: each must be at most the sum of the other two"
        )
    gyration = float(np.sqrt(moments[2] / mass))
    if gyration > 20.0 * size:
        raise ConfigError(
            f"{what}: the radius of gyration is {gyration:.3g} m in a mechanism of {size:.2g} m: is the inertia in kg m², and the mass in kg?"
        )


def _check_reached(mechanism: Mechanism, what: str) -> None:
    """Reject bodies that no chain of joints connects to the world."""
    reached = {0}
    for _ in mechanism.joints:
        for joint in mechanism.joints:
            if joint.parent in reached or joint.child in reached:
                reached |= {joint.parent, joint.child}
    loose = [name for k, name in enumerate(mechanism.bodies, start=1) if k not in reached]
    if loose:
        raise ConfigError(f"{what}: no joints connect {', '.join(loose)} to the world")
