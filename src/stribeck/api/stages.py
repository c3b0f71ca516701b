"""Progress of computations that have stages in place of a known number of steps."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from tqdm.auto import tqdm


def same_stage(text: str) -> str:
    """What stages have in common that differ in a last number, as that of an iteration."""
    return text.rstrip("0123456789")


class Stages:
    """A line that shows the present stage of a computation, and the elapsed time.

    :param shown: whether it is shown.
    """

    def __init__(self, shown: bool) -> None:
        self._stage = ""
        self._bar = tqdm(bar_format="{elapsed} {desc}", disable=not shown, leave=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def tell(self, stage: str) -> None:
        """Show a stage; where stderr is not a terminal, only new ones, not each iteration."""
        shown = sys.stderr.isatty() or same_stage(stage) != same_stage(self._stage)
        self._stage = stage
        self._bar.set_description_str(stage, refresh=shown)
