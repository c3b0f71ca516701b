"""Compiled programs of a rollout, some of them compiled ahead of their first use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any

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
