"""Conditions that recordings vary: gain, load and trajectory, the runs recorded under each, and how errors scatter over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from stribeck.model.arrays import Array, Mask
from stribeck.model.log import Log

MOST_LEVELS = 6
"""Conditions of one kind beyond this number are left out in groups of neighbours."""

PRIOR_SPREAD = 0.25
"""Expected standard deviation of the logarithm of the error between conditions of one kind."""

PRIOR_FREEDOM = 2.0
"""Degrees of freedom of that expectation."""


@dataclass(frozen=True, eq=False)
class ConditionKind:
    """A kind of condition that the recordings vary.

    :param name: ``gain``, ``load``, ``trajectory``, or ``run`` if these do not vary.
    :param levels: name and runs (R,) of each condition, in increasing order if ``ordered``.
    :param ordered: whether a condition beyond the recorded ones makes sense, and its name.
    """

    name: str
    levels: tuple[tuple[str, Mask], ...]
    beyond: str | None = None

    @property
    def masks(self) -> Mask:
        """Runs of each condition (L, R)."""
        return np.stack([mask for _, mask in self.levels])

    @property
    def before(self) -> list[Mask]:
        """Runs of the conditions before each but the first (R,), where they have an order."""
        count = 0 if self.beyond is None else len(self.levels)
        return [np.any(self.masks[:k], axis=0) for k in range(1, count)]


KINDS: tuple[tuple[str, str | None, Callable[[Log], Any], str], ...] = (
    ("gain", "higher gain", lambda log: log.setup.kp, "gain {:g}"),
    ("load", "heavier load", lambda log: round(log.setup.load, 6), "load {:.4g} kg m"),
    ("trajectory", None, lambda log: log.trajectory, "{}"),
)
"""Name, name of a condition beyond the recorded ones, value of a run, and its name."""


def kinds_of(logs: Sequence[Log]) -> list[ConditionKind]:
    """The kinds of conditions that the runs vary; single runs if they vary none, nothing for one run."""
    found = []
    for name, beyond, value_of, text in KINDS:
        values = [value_of(log) for log in logs]
        distinct = sorted(set(values))
        if len(distinct) > 1:
            levels = [(text.format(v), np.array([value == v for value in values])) for v in distinct]
            found.append(ConditionKind(name, _grouped(levels), beyond))
    if not found and len(logs) > 1:
        levels = [(log.name, np.arange(len(logs)) == k) for k, log in enumerate(logs)]
        found.append(ConditionKind("run", _grouped(levels)))
    return found


def _grouped(levels: Sequence[tuple[str, Mask]]) -> tuple[tuple[str, Mask], ...]:
    if len(levels) <= MOST_LEVELS:
        return tuple(levels)
    groups = [[levels[k] for k in part] for part in np.array_split(np.arange(len(levels)), MOST_LEVELS)]
    return tuple(
        (
            group[0][0] if len(group) == 1 else f"{group[0][0]} to {group[-1][0]}",
            np.any([mask for _, mask in group], axis=0),
        )
        for group in groups
    )


class Scatter(NamedTuple):
    """Student's t distribution of the logarithm of an error under one more condition."""

    mean: float
    scale: float
    freedom: float


def one_more(logarithms: Array) -> Scatter:
    """Distribution of one more logarithm after those of L conditions (L,).

    They are normal, and their variance has a prior of :data:`PRIOR_FREEDOM` degrees of freedom at :data:`PRIOR_SPREAD`.
    """
    count, mean = len(logarithms), float(np.mean(logarithms))
    freedom = PRIOR_FREEDOM + count - 1
    variance = (PRIOR_FREEDOM * PRIOR_SPREAD**2 + np.sum((logarithms - mean) ** 2)) / freedom
    return Scatter(mean, float(np.sqrt(variance * (1.0 + 1.0 / count))), freedom)
