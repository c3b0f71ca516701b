"""Virtual time: a clock that stands still until somebody waits, so that tests are exact and quick."""

from collections.abc import Callable


class VirtualClock:
    """A clock that only :meth:`sleep` moves on.

    :param start: where it begins [s].
    :ivar watchers: called with the time whenever it has moved on.
    """

    def __init__(self, start: float = 1000.0) -> None:
        self._now = start
        self.watchers: list[Callable[[float], object]] = []

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        """Move on at once."""
        self.move_to(self._now + seconds)

    def move_to(self, time: float) -> None:
        """Move on to a time; nothing happens if it is past."""
        if time > self._now:
            self._now = time
            for watcher in self.watchers:
                watcher(time)
