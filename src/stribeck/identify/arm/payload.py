r"""Payloads of an arm: known ones, and their identification from recorded motion.

A payload of mass m with its centre at c in the frame of a link adds :math:`m\,(1, \; c, \; c \cdot c\,1 - c c^T)` to the
inertial parameters of the link. It is identified by weighted least squares on the torques that remain beyond those of
the URDF,

.. math:: \tau - Y\pi_{URDF} - Y_I(m, c) = Y_{m}\,m + Y_{mc}\,m c + Y_f \theta_f

with rotor inertias and symmetric friction :math:`\theta_f` of all joints as further unknowns. The inertia :math:`Y_I`, which
is of second order in c, follows from the previous iteration (Atkeson, An, Hollerbach 1986).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pinocchio as pin

from stribeck.errors import ConfigError, RecordingError
from stribeck.identify.arm.config import Protocol
from stribeck.identify.arm.inertia import consistency, inertials_of
from stribeck.identify.arm.least_squares import FittedRows
from stribeck.identify.arm.model import INERTIALS, ArmModel
from stribeck.identify.arm.motion import ProcessedMotion
from stribeck.identify.arm.regressor import Machine, design
from stribeck.identify.common.autoregressive import standard_deviations
from stribeck.model.arrays import Array
from stribeck.rigid.payload import Payload

ITERATIONS = 10

CONTRADICTED = 0.1
"""Share of its mass in the URDF that a link has to keep when the payload is taken off."""


def payload_link(arm: ArmModel, link: str | None) -> str:
    """The link that carries a payload, by default the one that the last joint moves.

    :raises ConfigError: for links that are not there, or do not move.
    """
    if link is None:
        return arm.joints[-1]
    _place(arm, link)
    return link


def _place(arm: ArmModel, link: str) -> tuple[int, Array]:
    """Index of the joint that moves a link, and the link's pose (4, 4) in the frame of that joint."""
    if link in arm.joints:
        return arm.joints.index(link), np.eye(4)
    links = {frame.name: frame for frame in arm.model.frames if frame.type == pin.FrameType.BODY}
    moving = {name: frame for name, frame in links.items() if int(frame.parentJoint) > 0}
    if link not in moving:
        raise ConfigError(f"{arm.path}: no moving link {link!r} for a payload; valid: {', '.join(moving)}")
    frame = moving[link]
    joint = arm.joints.index(arm.model.names[int(frame.parentJoint)])
    return joint, np.asarray(frame.placement.homogeneous)


def payload_inertials(arm: ArmModel, payload: Payload) -> Array:
    """What a payload adds to the standard inertial parameters of the arm, (10 n,)."""
    joint, pose = _place(arm, payload.link)
    added = np.zeros((len(arm), INERTIALS))
    added[joint] = inertials_of(pose @ payload.pseudo_inertia @ pose.T)
    return added.ravel()


def identify_payload(
    machine: Machine, arm: ArmModel, motions: Sequence[ProcessedMotion], protocol: Protocol, link: str
) -> tuple[Payload, Array]:
    """The payload at a link, and standard deviations (4,) of its mass [kg] and centre [m].

    :param motions: recordings with the payload.
    :raises RecordingError: if the motion does not determine it, or its mass would be negative.
    """
    joint, pose = _place(arm, link)
    places = slice(INERTIALS * joint, INERTIALS * joint + 4)
    pull = np.eye(4)  # mass and first moment in the joint's frame from those in the link's
    pull[1:, 0], pull[1:, 1:] = pose[:3, 3], pose[:3, :3]
    designs = [design(machine, motion.states, protocol.rest).columns for motion in motions]
    size = len(arm.inertials)
    columns = [np.concatenate([d[:, :, places] @ pull, d[:, :, size:]], axis=2) for d in designs]
    found = Payload(0.0, (0.0, 0.0, 0.0), link)
    noise = np.ones(len(machine.joints))
    for _ in range(ITERATIONS):
        known = arm.inertials + payload_inertials(arm, found)
        known[places] = arm.inertials[places]
        beyond = [
            replace(motion, torque=motion.torque - d[:, :, :size] @ known)
            for motion, d in zip(motions, designs, strict=True)
        ]
        fitted = FittedRows.of(beyond, columns, protocol)
        weights = 1.0 / noise[fitted.joint]
        rows = fitted.rows * weights[:, None]
        length = np.linalg.norm(rows, axis=0)
        if not (length[:4] > 0.0).all():
            raise RecordingError(
                f"too little motion to determine a payload at {link}: record a motion of all joints"
            )
        values = np.linalg.lstsq(rows / np.maximum(length, 1e-300), fitted.torque * weights)[0]
        values = values / np.maximum(length, 1e-300)
        residual = fitted.torque - fitted.rows @ values
        noise = (
            np.array([np.sqrt(np.mean(residual[fitted.joint == j] ** 2)) for j in range(len(noise))]) + 1e-12
        )
        mass, moment = float(values[0]), values[1:4]
        if not mass > 0.0:
            raise RecordingError(
                f"the mass of the payload at {link} would be {mass:.3g} kg: the links in the URDF are too "
                "heavy: first identify the arm without payload, and use the resulting URDF"
            )
        x, y, z = (moment / mass).tolist()
        found = Payload(mass, (x, y, z), link)
    covariance = fitted.covariance(values, noise)[:4, :4]
    slope = np.eye(4)
    slope[1:, 0], slope[1:, 1:] = -np.array(found.com) / mass, np.eye(3) / mass
    return found, standard_deviations(slope @ covariance @ slope.T)


def without_payload(arm: ArmModel, given: ArmModel, payload: Payload) -> tuple[Array, bool]:
    """Inertials (n, 10) of an identified arm when its payload is taken off, and whether a body remains.

    If the identified link is hardly heavier than the payload, it keeps the inertials of the URDF.

    :param given: the arm of the URDF, without the payload.
    """
    joint, _ = _place(given, payload.link)
    old = given.inertials.reshape(-1, INERTIALS)
    inertials = (arm.inertials - payload_inertials(given, payload)).reshape(-1, INERTIALS)
    body = inertials[joint]
    remains = bool(body[0] > CONTRADICTED * old[joint, 0] and (consistency(body) > 0.0).all())
    if not remains:
        inertials[joint] = old[joint]
    return inertials, remains
