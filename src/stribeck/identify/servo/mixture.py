"""Motions that several fits predict together: their mean and variance."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from stribeck.model.arrays import Array
from stribeck.model.joint import Member


class Mixed(NamedTuple):
    """Mean (T, R) [rad] and variance (T, R) [rad²] of the positions of some fits."""

    mean: Array
    variance: Array

    def about(self, position: Array) -> Array:
        """Mean squared distance from a position (T, R) [rad²]."""
        return np.asarray(self.variance + (self.mean - position) ** 2)


def mixed(best: Array, others: Array, weights: Array) -> Mixed:
    """Mean and variance of motions.

    :param best: positions of the best fit (T, R) [rad], with the weight that the others leave.
    :param others: those of the other fits (T, R, M).
    :param weights: of these (M,).
    """
    rest = 1.0 - float(np.sum(weights))
    mean = rest * best + others @ weights
    variance = rest * (best - mean) ** 2 + (others - mean[:, :, None]) ** 2 @ weights
    return Mixed(np.asarray(mean), np.asarray(variance))


def alike(members: Sequence[Member]) -> list[list[int]]:
    """Indices of members with the same law, effects and delay, which are simulated together."""

    def kind(index: int) -> tuple[str, tuple[str, ...], float]:
        one = members[index]
        return one.model, one.effects, one.values.get("command_delay", 0.0)

    return [list(group) for _, group in groupby(sorted(range(len(members)), key=kind), key=kind)]
