"""Compiled programs of a rollout, some of them compiled ahead of their first use, and points side by side in one call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import jax
import numpy as np
import numpy.typing as npt

from stribeck.model.arrays import Array
from stribeck.processes import cores

Program = Callable[..., Any]


class Programs:
    """Compiled functions by key. XLA compiles without the lock of the interpreter, so what is needed later compiles beside
    what runs now, on another core.
    """

    def __init__(self) -> None:
        self._found: dict[Hashable, Future[Program]] = {}

    def __contains__(self, key: Hashable) -> bool:
        """Whether a program is compiled; not while another thread compiles it."""
        return key in self._found and self._found[key].done()

    def get(self, key: Hashable, compiled: Callable[[], Program]) -> Program:
        """The program of a key: compiled before, or now, or waited for while another thread compiles it.

        :param compiled: compiles it.
        :raises Exception: of the compilation, also of one ahead.
        """
        if key not in self._found:
            future: Future[Program] = Future()
            future.set_result(compiled())
            self._found[key] = future
        return self._found[key].result()

    def ahead(self, key: Hashable, compiled: Callable[[], Program]) -> None:
        """Begin to compile a program in a thread of its own; an interpreter that exits waits for it."""
        if key in self._found:
            return
        future: Future[Program] = Future()
        self._found[key] = future

        def work() -> None:
            try:
                future.set_result(compiled())
            except BaseException as error:  # whoever needs the program gets it
                future.set_exception(error)

        threading.Thread(target=work, name="compilation").start()


Call = TypeVar("Call")
Result = TypeVar("Result")

LANES, FEWEST_LANES = 128, 16
"""Usual and smallest number of candidates per compiled call; all calls have one, so that one shape is compiled."""

OF_ONE_CORE = 384
"""Simulations per compiled call on a processor: XLA divides more among cores, for up to twice the processor time."""

TANGENT_LANES = 16
"""Points per compiled call with derivatives."""


def lanes_for(runs: int) -> int:
    """Candidates per compiled call; on a processor for up to 24 runs within :data:`OF_ONE_CORE`: 16 of 36 runs cost half as much again."""
    if jax.default_backend() != "cpu":
        return LANES
    fitting = OF_ONE_CORE // max(runs, 1) // FEWEST_LANES * FEWEST_LANES
    return min(fitting, LANES) if fitting else LANES


def side_by_side(function: Callable[[Call], Result], calls: Sequence[Call]) -> list[Result]:
    """Results of the calls of a compiled program, each of which keeps one core busy: on a processor as many at a time as there are cores.

    XLA divides one call among cores, too, but its other threads mostly wait: two calls on two cores take the time of one.
    """
    if min(len(calls), cores()) == 1 or jax.default_backend() != "cpu":
        return list(map(function, calls))
    with ThreadPoolExecutor(cores(), "rollout") as threads:
        return list(threads.map(function, calls))


def joined(batches: Sequence[Sequence[Any]], count: int) -> Iterator[Array]:
    """Each result of all batches, with the first ``count`` points along the last axis; the others are padding."""
    for parts in zip(*batches, strict=True):
        yield np.concatenate([np.asarray(part, dtype=np.float64) for part in parts], axis=-1)[..., :count]


def batches(points: npt.NDArray[Any], size: int) -> Iterator[npt.NDArray[Any]]:
    """Points in batches of one size, the last one padded with its last point."""
    for begin in range(0, len(points), size):
        batch = points[begin : begin + size]
        yield np.concatenate([batch, np.repeat(batch[-1:], size - len(batch), axis=0)])
