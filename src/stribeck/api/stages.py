"""Progress of computations that have stages in place of a known number of steps."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from tqdm.auto import tqdm


class Stages:
    """A line that shows the present stage of a computation, and the elapsed time.

    :param shown: whether it is shown.
    """

    def __init__(self, shown: bool) -> None:
        self._bar = tqdm(bar_format="{elapsed} {desc}", disable=not shown, leave=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def tell(self, stage: str) -> None:
        """Show a stage."""
        self._bar.set_description_str(stage)
