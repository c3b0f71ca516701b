"""What launch files say when a step fails: the reason of the node or command, without launch itself."""

from types import SimpleNamespace

import pytest

from stribeck.nodes.launching import FailureReport

RUNNING = SimpleNamespace(is_shutdown=False)


def ended(code, pid=7):
    """The end of a process."""
    return SimpleNamespace(returncode=code, pid=pid, process_name="identification-2")


@pytest.mark.parametrize(
    ("logged", "reason"),
    [
        (
            b"[ERROR] [1.0] [identification]: identification failed: no runs\n",
            "identification failed: no runs",
        ),
        (b"stribeck: candidates.txt: no such file\n", "candidates.txt: no such file"),
        (b"cannot start: no such parameter\n", "cannot start: no such parameter"),
    ],
)
def test_the_last_step_and_those_before_it_end_the_launch_with_the_reason(logged, reason):
    """Of a node, of a command, and of a node that did not start; what follows is not started."""
    failure = FailureReport(stays=True)
    failure._note(SimpleNamespace(pid=7, text=b"stribeck: warning: something else\n" + logged))
    started = []
    for handler in (failure.last, failure.then(lambda: started.append(1))):
        with pytest.raises(RuntimeError, match=f"identification-2 has failed with exit code 1: {reason}"):
            handler(ended(1), RUNNING)
    assert not started


def test_what_follows_starts_when_a_step_has_done_its_work():
    """Its actions are those of the launch; while the launch ends nothing more is started."""
    failure = FailureReport(stays=True)
    assert failure.then(lambda: ["next"])(ended(0), RUNNING) == ["next"]
    assert failure.then(lambda: ["next"])(ended(0), SimpleNamespace(is_shutdown=True)) is None
    assert failure.then(lambda: ["next"])(ended(1), SimpleNamespace(is_shutdown=True)) is None
