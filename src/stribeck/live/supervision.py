"""Decides who publishes commands: the compensation node while it is enabled, otherwise its guard.

The node sends heartbeats that hold the time at which it was enabled, which identifies the enabled period. If
none arrives for longer than the guard's ``heartbeat_timeout``, the guard takes over and revokes that period. A node that was
suspended for longer than its ``pause_limit``, which is shorter than that timeout, stops compensating automatically. So at most
one of the two publishes. All times are steady [s].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from stribeck.live.handover import Compensating

TICK = 0.01
"""Period of the heartbeats and of the checks for them [s]."""

CALM_TIME = 0.3
"""Time without a pause before a node starts to compensate automatically [s]."""

SUSPENDED = 2.0 * TICK
"""A longer interval between two ticks of the guard means that its own process was suspended [s]."""

NOT_YET = "the compensation node has not been enabled yet"

Log = Callable[[Literal["info", "warning", "error"], str], None]


class EnableState:
    """Decides when the compensation node compensates.

    :param compensator: enabled and disabled accordingly.
    :param guarded: whether a guard publishes while this node does not.
    :param pause_limit: a node that was suspended for longer stops compensating [s].
    :param returns: number of automatic resumptions before the node must be enabled again.
    :param at_start: whether it starts to compensate automatically.
    :param log: receives log messages.
    :ivar period: time at which it was enabled [ns], 0 while disabled; identifies the enabled period.
    :ivar muted: whether it publishes no commands.
    :ivar tripped: why it was disabled automatically; empty if it was not.
    :ivar moved: whether a state was processed; earlier trips are not counted.
    """

    def __init__(
        self,
        compensator: Compensating,
        *,
        guarded: bool,
        pause_limit: float,
        returns: int,
        at_start: bool,
        log: Log,
        now: float,
    ) -> None:
        self._compensator, self._log = compensator, log
        self._guarded, self._pause, self.returns, self._at_start = guarded, pause_limit, returns, at_start
        self.period, self.returned = 0, 0
        self.muted, self.moved = guarded, False
        self.tripped = ""
        self._when_calm, self._calm_since, self._last_beat = False, now, now

    def start(self, now: float) -> None:
        """Activate the node; if configured, it starts once discovery no longer causes pauses."""
        self._calm_since, self._when_calm = now, self._at_start

    def enable(self, now: float, period: int) -> None:
        """Start a new enabled period, even if already enabled; a revocation of the previous one no longer applies.

        :param period: wall clock [ns].
        """
        self._when_calm, self._last_beat, self.tripped = False, now, ""
        if not self._compensator.enabled:
            self._compensator.enable()
        self.period, self.muted = period, False

    def disable(self, now: float, send_zero: Callable[[], None]) -> bool:
        """Stop compensating; returns whether it was compensating.

        :param send_zero: publishes zero torque before the node stops publishing.
        """
        self._when_calm = False
        if not self._compensator.enabled:
            return False
        self._last_beat, self.tripped = now, ""
        self._compensator.disable()
        send_zero()
        self.period, self.muted = 0, self._guarded
        return True

    def check_pause(self, now: float) -> bool:
        """Trip after too long a pause, as the guard has taken over; call before processing messages, and after publishing.

        Returns whether it was enabled and has tripped.
        """
        pause = now - self._last_beat
        if not (pause > self._pause and self._guarded and self._compensator.enabled):
            return False
        self.trip(f"the node was suspended for {1e3 * pause:.0f} ms", now)
        return True

    def beat(self, now: float) -> None:
        """Prepare to send a heartbeat."""
        if now - self._last_beat > self._pause:
            self._calm_since = now
        self.check_pause(now)
        self._last_beat = now

    def resumes(self, now: float) -> bool:
        """Whether the node should now enable itself."""
        return self._when_calm and now - self._calm_since > CALM_TIME

    def revoke(self, period: int, now: float) -> None:
        """Handle a revocation: the guard has taken over an enabled period."""
        if period == self.period:
            self.trip("the guard received no heartbeat", now)

    def trip(self, reason: str, now: float) -> None:
        """Stop compensating because the guard is in charge; resume automatically if allowed."""
        if not self._compensator.enabled:
            return
        self.tripped = f"{reason}, so the guard took over: enable compensation again"
        self._compensator.disable(self.tripped)
        self.period, self.muted = 0, True
        if self._at_start and not self.moved:
            self._when_calm, self._calm_since = True, now
        elif self.returned < self.returns:
            self.returned += 1
            self.tripped = (
                f"{reason}, so the guard took over: automatic return {self.returned} of {self.returns}"
            )
            self._when_calm, self._calm_since = True, now
            self._log("warning", self.tripped)
        else:
            advice = f"if this computer pauses for longer than pause_limit ({self._pause:g} s), increase pause_limit and heartbeat_timeout"
            self._log("error", f"{self.tripped}; {advice}")


class Heartbeat:
    """Tracks whether the guard is in charge.

    :param duration: the guard takes over after this time without a heartbeat [s].
    :ivar revoked: the last enabled period that it took over [ns].
    :ivar reason: why it is in charge; empty while it is not.
    """

    def __init__(self, duration: float, now: float) -> None:
        self._duration = duration
        self._period = self.revoked = 0
        self._alive_at = self._ticked = now
        self.reason = NOT_YET

    @property
    def in_charge(self) -> bool:
        """Whether the guard publishes commands."""
        return bool(self.reason)

    def beat(self, period: int, now: float) -> Literal["lost", "returned", ""]:
        """Take in a heartbeat; returns what has changed.

        :param period: time at which the node was enabled [ns], 0 while it is disabled.
        """
        self._period, self._alive_at = period, now
        if period == 0 and not self.in_charge:
            self._take_over("the compensation node is switched off")
            return "lost"
        if self.in_charge and period > self.revoked:
            self.reason = ""
            return "returned"
        return ""

    def expired(self, now: float) -> bool:
        """Whether the guard takes over now; call every :data:`TICK`.

        A pause of the guard's own process does not count as silence of the node.
        """
        since, self._ticked = now - self._ticked, now
        if since > SUSPENDED:
            self._alive_at += since - TICK
        if self.in_charge or now - self._alive_at <= self._duration:
            return False
        self._take_over("the compensation node sends no heartbeat")
        return True

    def _take_over(self, reason: str) -> None:
        self.reason, self.revoked = reason, self._period
