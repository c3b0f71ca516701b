"""Virtual time: a clock that stands still until somebody waits, so that tests are exact and quick."""

from stribeck.session.timing import SimulatedClock as VirtualClock

__all__ = ["VirtualClock"]
