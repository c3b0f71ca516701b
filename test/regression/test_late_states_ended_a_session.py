"""A busy machine made all joint states half a second late, once; the session of an hour ended with that run."""

from sessions import Follower, drive, session_of


def test_states_that_are_late_once_do_not_end_a_session():
    """States 0.501 s old for a moment in the first run: every play is still recorded to its end."""
    session = session_of(["sin_sin", "sin_sin"], state_timeout=0.5)

    def measure(k, arguments):
        return {**arguments, "state_age": 0.501 if 400 <= k < 420 else 0.0}

    trace = drive(session, Follower([0.0]), measure=measure)
    ended = [event for _, event in trace.events if type(event).__name__ == "RunEnded"]
    assert trace.phases[-1] == "finished"
    assert [event.index for event in ended if event.reason is None] == [0, 1]
