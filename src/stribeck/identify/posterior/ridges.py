"""Ridges of a posterior: parameters that the data determine only in combination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stribeck.identify.servo.uncertainty import one_load
from stribeck.model.arrays import Array
from stribeck.model.log import Log
from stribeck.model.terms import CONSTANT_PARAMETERS, LOAD_PARAMETERS

STRONG = 0.6
"""Smallest absolute correlation of a ridge."""


@dataclass(frozen=True)
class Ridge:
    """Two parameters that the data determine only in combination.

    :param correlation: of their draws.
    :param width: standard deviations of both.
    """

    first: str
    second: str
    correlation: float
    width: tuple[float, float]

    @property
    def words(self) -> str:
        """Description in one sentence."""
        if self.correlation < 0.0:
            how = f"an increase of one is compensated by a decrease of the other (correlation {self.correlation:.2f}), so that only a sum of them is known"
        else:
            how = (
                "an increase of one is compensated by an increase of the other (correlation "
                f"{self.correlation:.2f}), so that only a difference of them is known"
            )
        return f"{self.first} and {self.second} cannot be distinguished: {how}."


def ridges(names: Sequence[str], draws: Array) -> list[Ridge]:
    """Pairs of parameters with strongly correlated draws (S, P), in decreasing order."""
    correlation = np.atleast_2d(np.corrcoef(draws.T))
    deviation = draws.std(axis=0)
    pairs = [
        Ridge(names[i], names[j], float(correlation[i, j]), (float(deviation[i]), float(deviation[j])))
        for i in range(len(names))
        for j in range(i + 1, len(names))
        if abs(correlation[i, j]) > STRONG
    ]
    return sorted(pairs, key=lambda ridge: -abs(ridge.correlation))


def pairs_to_show(names: Sequence[str], draws: Array, logs: Sequence[Log]) -> list[tuple[str, str]]:
    """Pairs to plot: ridges, and constant against load-dependent friction if all runs have the same load."""
    pairs = [(ridge.first, ridge.second) for ridge in ridges(names, draws)]
    pair = _constant_and_load(names)
    if one_load(logs) and pair is not None and pair not in pairs:
        pairs.insert(0, pair)
    return pairs[:6]


def statements(names: Sequence[str], draws: Array, logs: Sequence[Log]) -> list[str]:
    """Sentences that describe what the draws (S, P) leave undetermined."""
    sentences = [ridge.words for ridge in ridges(names, draws)]
    if one_load(logs) and not set(LOAD_PARAMETERS).isdisjoint(names):
        sentences.append(
            f"All runs have the same load ({logs[0].setup.load:.4g} kg m): the division of friction into constant and load-dependent parts depends on the "
            f"prior as much as on the data{_division(names, draws)}. Record a second mass or rod length."
        )
    return sentences


def _division(names: Sequence[str], draws: Array) -> str:
    """Sentence on the correlation of constant and load-dependent friction, if the law has both."""
    pair = _constant_and_load(names)
    if pair is None:
        return ""
    i, j = (names.index(name) for name in pair)
    plain, held = np.atleast_2d(np.corrcoef(draws.T))[i, j], held_correlation(draws)[i, j]
    return f" ({pair[0]} and {pair[1]}: correlation {plain:.2f}, partial correlation {held:.2f})"


def held_correlation(draws: Array) -> Array:
    r"""Partial correlations (P, P), :math:`-\Lambda_{ij}/\sqrt{\Lambda_{ii}\Lambda_{jj}}` with the inverse covariance Λ of
    draws (S, P).
    """
    inverse = np.linalg.inv(np.corrcoef(draws.T))
    size = np.sqrt(np.diag(inverse))
    correlation = -inverse / np.outer(size, size)
    np.fill_diagonal(correlation, 1.0)
    return np.asarray(correlation)


def _constant_and_load(names: Sequence[str]) -> tuple[str, str] | None:
    constant, load = (
        [name for name in names if name in terms] for terms in (CONSTANT_PARAMETERS, LOAD_PARAMETERS)
    )
    return (constant[0], load[0]) if constant and load else None
