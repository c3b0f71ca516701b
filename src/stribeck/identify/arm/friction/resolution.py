r"""Speeds below which filtered torques do not show the friction of an arm's joints.

A joint that reverses with the acceleration a reaches the speed v in the time :math:`v/|a|`. Torques filtered at the frequency
:math:`f_c`, by a robot's driver before recording or by the protocol, do not show what changes within half a period
:math:`1/(2 f_c)`. Friction is therefore not resolved below

.. math:: v_{min} = \frac{|a|}{2 f_c}

Friction at rest and the Stribeck term then depend on the filter, friction at higher speeds does not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stribeck.identify.arm.motion import ProcessedMotion
from stribeck.model.arrays import Array


def resolved_speeds(motions: Sequence[ProcessedMotion], cutoff: float) -> dict[str, float]:
    r"""Lowest speed at which the friction of each joint is resolved, :math:`|a|/(2 f_c)`, by name [rad/s or m/s].

    a is the median of the acceleration at the joint's reversals; joints that never reverse are left out.

    :param motions: all of the same joints.
    :param cutoff: frequency :math:`f_c` above which torques were filtered [Hz].
    """
    joints = motions[0].joints if motions else ()
    found = {}
    for k, joint in enumerate(joints):
        parts = [_at_reversals(m.fine.velocity[:, k], m.fine.acceleration[:, k]) for m in motions]
        if len(accelerations := np.concatenate(parts)):
            found[joint] = float(np.median(accelerations)) / (2.0 * cutoff)
    return found


def _at_reversals(velocity: Array, acceleration: Array) -> Array:
    """Magnitudes of the acceleration where the velocity changes its sign."""
    crosses = velocity[:-1] * velocity[1:] < 0.0
    return np.asarray(np.abs(acceleration[:-1])[crosses])
