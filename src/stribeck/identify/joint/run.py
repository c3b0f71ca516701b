"""Runs of one joint: signals at the same times, and the states of presliding along them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from stribeck.model.arrays import Array
from stribeck.model.terms.presliding import PRESLIDING

KEPT = 40
"""States that a run keeps."""


@dataclass(frozen=True, eq=False)
class JointRun:
    r"""A piece of a recording without gaps, all signals (N,) in SI units.

    :param file: name of the recording.
    :param velocity: :math:`\dot q`, measured or differentiated.
    :param acceleration: :math:`\ddot q`, likewise.
    :param torque: of the motor at the joint [N m].
    :param rigid: known part of it that is no friction [N m].
    :param load: external torque on the transmission :math:`\tau_e` [N m], the known part of it.
    :param kept: 1 in rows that are fitted, 0 in others.
    :param temperature: [°C].
    :param track: positions without noise along which friction develops, :attr:`every` of them a row; by default those of the rows.
    """

    file: str
    time: Array
    position: Array
    velocity: Array
    acceleration: Array
    torque: Array
    rigid: Array
    load: Array
    kept: Array
    temperature: Array | None = None
    track: Array | None = None
    every: int = 1
    shares: dict[float, Array] = field(default_factory=dict, init=False, repr=False)

    def developed(self, length: float) -> Array:
        """Developed share of the dry friction for a presliding length (N,); kept for the next call."""
        if length not in self.shares:
            if len(self.shares) >= KEPT:
                self.shares.clear()
            share = developed_share(self.position if self.track is None else self.track, length)
            self.shares[length] = share.reshape(-1, self.every).mean(axis=1)
        return self.shares[length]

    def changed(self, change: Callable[[Array], Array]) -> JointRun:
        """The run with all its signals changed alike."""
        arrays: dict[str, Any] = {
            name: change(value)
            for name, value in vars(self).items()
            if isinstance(value, np.ndarray) and name != "track"
        }
        return replace(self, **arrays)


def developed_share(position: Array, length: float) -> Array:
    """State of the term ``presliding`` along a movement (N,), from zero at its beginning."""
    moved = np.diff(position, prepend=position[:1])
    assert PRESLIDING.advance is not None  # noqa: S101
    target = PRESLIDING.advance(0.0, moved, np, length)
    decay = PRESLIDING.advance(1.0, moved, np, length) - target  # affine in the state
    return recursion(decay, target)


def recursion(kept: Array, added: Array) -> Array:
    r"""States :math:`x_k = a_kx_{k-1} + b_k` from zero (N,), in :math:`2\sqrt N` steps: all blocks at once, then from block to block."""
    size = int(np.ceil(np.sqrt(len(kept))))
    blocks = -(-len(kept) // size)
    a, b = (
        np.resize(np.pad(values, (0, blocks * size - len(values))), (blocks, size)).T
        for values in (kept, added)
    )
    gain, state = np.empty((size, blocks)), np.empty((size, blocks))
    gain[0], state[0] = a[0], b[0]
    for k in range(1, size):
        gain[k] = a[k] * gain[k - 1]
        state[k] = a[k] * state[k - 1] + b[k]
    start = np.zeros(blocks)
    for k in range(1, blocks):
        start[k] = gain[-1, k - 1] * start[k - 1] + state[-1, k - 1]
    return np.asarray((gain * start + state).T.reshape(-1)[: len(kept)])


def thinned(runs: Sequence[JointRun], most: int) -> list[JointRun]:
    """The runs with means over as many rows in place of each, so that all have about so many rows at most."""
    count = max(1, sum(len(run.time) for run in runs) // most)

    def few(run: JointRun) -> JointRun:
        whole = len(run.time) // count * count
        track = run.position if run.track is None else run.track
        means = run.changed(lambda values: values[:whole].reshape(-1, count).mean(axis=1))
        return replace(means, track=track[: whole * run.every], every=count * run.every)

    return list(runs) if count == 1 else [few(run) for run in runs]


def joined(runs: Sequence[JointRun], name: str) -> Array:
    """A signal of all runs, one after the other."""
    return np.concatenate([getattr(run, name) for run in runs])
