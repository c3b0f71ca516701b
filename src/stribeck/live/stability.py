"""Conditions under which compensation is stable: bounds of gain, delay and learnt scales."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from stribeck.errors import ConfigError
from stribeck.live.friction import FASTEST, LARGEST_FEEDBACK, EffortMeaning, JointModel
from stribeck.model.arrays import Array
from stribeck.model.joint_map import JointMap
from stribeck.model.law import FrictionLaw, load_slopes, viscous_slope
from stribeck.rigid.dynamics import Dynamics

LOADS = np.linspace(-1.0, 1.0, 9)
"""Loads at which the slope of the budget is computed, relative to the largest torque."""


def load_feedback(law: FrictionLaw, p: Mapping[str, float], torque_max: float) -> float:
    r"""Largest slope of the budget over motor torque at rest, :math:`\partial\tau_f^m/\partial\tau_m` [1].

    The sum of the largest slope of each term: :math:`K_l + K_l^s` for M3 and M4; :math:`K_m + K_m^s` for M5; for M6 also
    :math:`2 K_m^q \tau_{max}`.

    :param torque_max: largest motor torque [N m].
    """
    motor, external = np.meshgrid(torque_max * LOADS, 2.0 * torque_max * LOADS)
    return float(sum(np.max(np.abs(slope)) for slope in load_slopes(law, p, motor, external)))


def inertias(joints: Sequence[JointModel], maps: Sequence[JointMap], dynamics: Dynamics | None) -> Array:
    """Inertia of each joint with all others at 0, or of its rotor alone, in parameter file coordinates (n,) [kg m²]."""
    rotors = np.array([joint.values.get("armature", 0.0) or math.inf for joint in joints])
    if dynamics is None:
        return rotors
    zero = np.zeros(len(joints))
    whole, _ = dynamics.mass_matrix_and_bias(zero, zero)
    diagonal = whole if whole.ndim == 1 else np.diagonal(whole)
    return np.asarray(diagonal / np.array([m.ratio for m in maps]) ** 2)


def check_gain(joints: Sequence[JointModel], gain: float, effort_meaning: EffortMeaning) -> None:
    """Refuse a gain at which the feed-forward torque of a joint that is compensated would amplify the friction that it causes itself.

    :raises ConfigError: if the gain is not a number in [0, 2], or gain times :func:`load_feedback`
        reaches :data:`LARGEST_FEEDBACK`.
    """
    if not (math.isfinite(gain) and 0.0 <= gain <= 2.0):
        raise ConfigError(f"gain must be between 0 and 2, found {gain:g}")
    if effort_meaning == "none":
        return
    for joint in (joint for joint in joints if joint.enabled):
        slope = load_feedback(joint.law, joint.values, joint.max_torque)
        if gain * slope >= LARGEST_FEEDBACK:
            raise ConfigError(
                f"joint {joint.name!r}{' of ' + joint.source if joint.source else ''}: friction increases by {slope:.2f} of the motor torque; times the gain "
                f"{gain:g} this is {gain * slope:.2f}, which must be less than {LARGEST_FEEDBACK} for the compensation to be stable: choose a gain below "
                f"{LARGEST_FEEDBACK / slope:.2f}, or effort_meaning none"
            )


def viscous_lag(joints: Sequence[JointModel], inertia: Array, delay: float) -> Array:
    r"""Bandwidth of the viscous friction times a delay, :math:`K_v T/J` of each joint (n,) [1].

    :param inertia: J of each joint, (n,) [kg m²]; infinite where unknown.
    :param delay: T [s].
    """
    fastest = (joint.actuator.datasheet.figures.get("no_load_speed", FASTEST) for joint in joints)
    viscous = [
        max(viscous_slope(joint.law, joint.values, speed, side) for side in (1, -1))
        for joint, speed in zip(joints, fastest, strict=True)
    ]
    return np.array(viscous) * delay / inertia


def check_delay(joints: Sequence[JointModel], inertia: Array, delay: float) -> None:
    r"""Refuse a loop delay with which a joint without a goal might not come to rest.

    The torque computed from the velocity a time T ago exceeds that for the present velocity by
    :math:`g K_v |\ddot\theta| T`, and with friction B the braking torque is :math:`J|\ddot\theta| = B - \tau_{ff}`. With
    :math:`\tau_{ff} \le g B`, :math:`K_v T / J \le 1` is sufficient (:func:`viscous_lag`).

    :raises ConfigError: if the delay is too long.
    """
    for joint, mass, lag in zip(
        joints, inertia.tolist(), viscous_lag(joints, inertia, delay).tolist(), strict=True
    ):
        if lag > 1.0:
            raise ConfigError(
                f"joint {joint.name!r}: with a loop delay of {1e3 * delay:g} ms, viscous friction of {lag * mass / delay:.3g} N m s/rad and an inertia of "
                f"{mass:.3g} kg m^2, the joint might not come to rest without a goal (bandwidth {lag / delay:.3g} rad/s times delay is {lag:.2g}, but must be "
                "at most 1): shorten the delay"
            )


def steepest_feedback(joints: Sequence[JointModel]) -> float:
    """Largest :func:`load_feedback` of joints that are compensated [1]."""
    slopes = (load_feedback(j.law, j.values, j.max_torque) for j in joints if j.enabled)
    return max(slopes, default=0.0)


def largest_scales(joints: Sequence[JointModel], meaning: EffortMeaning) -> Array:
    """Scales beyond which feed-forward at gain 1 would amplify the friction that it causes itself (n,) [1]."""
    slopes = [0.0 if meaning == "none" else load_feedback(j.law, j.values, j.max_torque) for j in joints]
    return np.array([LARGEST_FEEDBACK / slope if slope > 0.0 else math.inf for slope in slopes])
