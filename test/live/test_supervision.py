"""Who speaks, node or guard, on virtual time: leases, pauses, revocation, automatic returns. No ROS."""

import pytest

from compensating import model
from stribeck.live.compensator import Compensator
from stribeck.live.settings import Settings
from stribeck.live.supervision import CALM_TIME, TICK, EnableState, Heartbeat
from stribeck.model.joint_map import JointMap


class Setup:
    """A compensation node without ROS, ticking on virtual time."""

    def __init__(self, **options: object) -> None:
        self.compensator = Compensator([model("a")], [JointMap()], Settings("sum", "none"))
        self.log: list[tuple[str, str]] = []
        self.time = 100.0
        given = {"guarded": True, "pause_limit": 0.04, "returns": 0, "at_start": True, **options}
        self.state = EnableState(
            self.compensator, log=lambda *line: self.log.append(line), now=self.time, **given
        )
        self.state.start(self.time)

    def tick(self, duration: float = TICK) -> None:
        """Ticks for a time [s]."""
        for _ in range(round(duration / TICK)):
            self.time += TICK
            self.state.beat(self.time)
            if self.state.resumes(self.time):
                self.state.enable(self.time, round(1e9 * self.time))

    def pause(self, duration: float) -> None:
        """The process is suspended for a time [s]."""
        self.time += duration


@pytest.fixture
def enabled() -> Setup:
    """A node that has started by itself and moved."""
    s = Setup()
    s.tick(1.0)
    assert s.compensator.enabled
    s.state.moved = True
    return s


def test_a_node_starts_by_itself_once_it_is_calm() -> None:
    """Not earlier than 0.3 s after the last pause, and muted until then; not at all if it is not to."""
    s = Setup()
    s.tick(0.2)
    s.pause(0.1)
    s.tick(CALM_TIME - TICK)
    assert s.state.muted
    assert not s.compensator.enabled
    s.tick(3 * TICK)
    assert s.compensator.enabled
    assert not s.state.muted
    assert s.state.period > 0
    waiting = Setup(at_start=False)
    waiting.tick(2.0)
    assert not waiting.compensator.enabled


@pytest.mark.parametrize(("pause", "trips"), [(0.029, False), (0.045, True)])
def test_a_node_that_was_suspended_stands_back_before_it_serves(enabled, pause, trips) -> None:
    """Longer than pause_limit: muted at the next message, whatever comes first; one line, which says for how long."""
    enabled.pause(pause)
    enabled.state.check_pause(enabled.time)
    assert enabled.state.muted is trips
    assert enabled.compensator.enabled is not trips
    assert bool(enabled.state.period) is not trips
    assert len(enabled.log) == trips
    if trips:
        level, text = enabled.log[0]
        assert level == "error"
        assert text.startswith(
            "the node was suspended for 45 ms, so the guard took over: enable compensation again"
        )
        assert "pause_limit (0.04 s)" in text
    enabled.tick(2.0)
    assert enabled.compensator.enabled is not trips, "it does not return by itself"


def test_a_node_without_guard_goes_on_after_a_pause() -> None:
    """Nobody has taken over."""
    s = Setup(guarded=False)
    s.tick(1.0)
    s.pause(5.0)
    s.tick()
    assert s.compensator.enabled
    assert not s.state.muted


def test_only_the_present_period_can_be_revoked(enabled) -> None:
    """A revocation of an earlier one does nothing; enabling anew ends what a guard holds against the last one."""
    before = enabled.state.period
    enabled.state.enable(enabled.time, before + 5)
    enabled.state.revoke(before, enabled.time)
    assert enabled.compensator.enabled
    enabled.state.revoke(before + 5, enabled.time)
    assert not enabled.compensator.enabled
    assert enabled.log[-1][1].startswith(
        "the guard received no heartbeat, so the guard took over: enable compensation again"
    )
    assert not enabled.state.resumes(enabled.time + 10.0)


def test_before_anything_has_moved_a_trip_is_no_trip() -> None:
    """It may still start by itself, without a line in the log."""
    s = Setup()
    s.tick(1.0)
    s.state.revoke(s.state.period, s.time)
    assert s.state.muted
    s.tick(CALM_TIME + 2 * TICK)
    assert s.compensator.enabled
    assert s.log == []


def test_automatic_returns_are_bounded() -> None:
    """Two of them, each a warning; the third trip is an error and stays."""
    s = Setup(returns=2)
    s.tick(1.0)
    s.state.moved = True
    for count in (1, 2):
        s.state.revoke(s.state.period, s.time)
        assert s.log[-1][0] == "warning"
        assert s.log[-1][1].endswith(f"automatic return {count} of 2")
        s.tick(CALM_TIME - TICK)
        assert not s.compensator.enabled
        s.tick(3 * TICK)
        assert s.compensator.enabled
    s.state.revoke(s.state.period, s.time)
    s.tick(5.0)
    assert not s.compensator.enabled
    assert s.log[-1][0] == "error"
    assert s.state.tripped.endswith("enable compensation again")


def test_disabling_sends_zero_before_the_node_falls_silent(enabled) -> None:
    """Once; a guarded node is muted afterwards."""
    muted: list[bool] = []
    assert enabled.state.disable(enabled.time, lambda: muted.append(enabled.state.muted))
    assert not enabled.state.disable(enabled.time, lambda: muted.append(enabled.state.muted))
    assert muted == [False]
    assert enabled.state.muted
    assert enabled.state.period == 0


class Watching:
    """A guard without ROS, ticking on virtual time."""

    def __init__(self, duration: float = 0.05) -> None:
        self.time = 50.0
        self.heartbeat = Heartbeat(duration, self.time)

    def tick(self, duration: float, period: int | None = None) -> int:
        """Ticks for a time [s], with signs of life of a period; how often it took over."""
        count = 0
        for _ in range(round(duration / TICK)):
            self.time += TICK
            if period is not None:
                self.heartbeat.beat(period, self.time)
            count += self.heartbeat.expired(self.time)
        return count


def test_a_guard_is_in_charge_until_the_node_is_enabled() -> None:
    """Signs of life of a node that is not enabled change nothing."""
    guard = Watching()
    assert guard.tick(1.0, period=0) == 0
    assert guard.heartbeat.in_charge
    assert "not been enabled yet" in guard.heartbeat.reason
    assert guard.heartbeat.beat(7, guard.time) == "returned"
    assert not guard.heartbeat.in_charge


@pytest.mark.parametrize("duration", [0.05, 0.4])
def test_the_lease_is_waited_for_and_no_longer(duration) -> None:
    """Within one tick; once; and it names the period that it revokes."""
    guard = Watching(duration)
    guard.tick(1.0, period=7)
    assert guard.tick(duration - TICK) == 0
    assert guard.tick(3 * TICK) == 1
    assert guard.heartbeat.revoked == 7
    assert "no heartbeat" in guard.heartbeat.reason
    assert guard.tick(1.0) == 0


def test_a_revoked_period_does_not_come_back() -> None:
    """A node that wakes up gives signs of the old period; only a new one counts."""
    guard = Watching()
    guard.tick(1.0, period=7)
    guard.tick(0.2)
    guard.tick(1.0, period=7)
    assert guard.heartbeat.in_charge
    assert guard.heartbeat.beat(8, guard.time) == "returned"


def test_a_node_that_is_switched_off_is_replaced_at_once() -> None:
    """Without waiting for the timeout."""
    guard = Watching()
    guard.tick(1.0, period=7)
    assert guard.heartbeat.beat(0, guard.time) == "lost"
    assert "switched off" in guard.heartbeat.reason
    assert guard.heartbeat.revoked == 0


def test_a_guard_that_was_suspended_itself_takes_nobody_for_dead() -> None:
    """Its own pause does not count for the timeout, which afterwards is what it was."""
    guard = Watching()
    guard.tick(1.0, period=7)
    guard.time += 1.0
    assert guard.tick(2 * TICK) == 0
    assert not guard.heartbeat.in_charge
    assert guard.tick(0.06) == 1
