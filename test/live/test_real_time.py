"""Real-time scheduling: asked for once, and if it is refused the node runs on without and says so once."""

import errno
import os

import pytest

from stribeck.live.real_time import has_capability, request_real_time


def test_no_priority_changes_nothing():
    """The default: no call at all."""
    assert request_real_time(0, lambda *_: pytest.fail("called"), lambda: pytest.fail("called")) == ""


def test_all_threads_get_the_priority_and_memory_is_locked():
    """Each thread of the process once."""
    asked, locked = [], []

    def lock():
        locked.append(True)
        return 0

    assert request_real_time(40, lambda thread, priority: asked.append((thread, priority)), lock) == ""
    threads = {int(name) for name in os.listdir("/proc/self/task")}
    assert os.getpid() in dict(asked)
    assert {thread for thread, _ in asked} <= threads | {thread for thread, _ in asked}
    assert {priority for _, priority in asked} == {40}
    assert locked == [True]


def test_a_refusal_is_one_line():
    """Both reasons, what happens, and where to look."""

    def refuse(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    text = request_real_time(40, refuse, lambda: errno.ENOMEM)
    assert text == (
        "no real-time priority 40 (Operation not permitted), memory cannot be locked (Cannot allocate memory): the node continues without it; stribeck doctor shows how to permit it"
    )


def test_a_system_without_these_policies_is_a_refusal():
    """macOS has no sched_setscheduler."""

    def missing(*_):
        raise AttributeError("module 'os' has no attribute 'sched_setscheduler'")

    assert "no real-time priority 1" in request_real_time(1, missing, lambda: 0)


def test_a_thread_that_ends_meanwhile_is_no_refusal():
    """Its number is gone when its turn comes."""

    def gone(*_):
        raise ProcessLookupError(errno.ESRCH, "No such process")

    assert request_real_time(1, gone, lambda: 0) == ""


def test_capabilities_are_read_from_the_kernel(tmp_path):
    """One bit each; none where there is no /proc."""
    assert not has_capability(23, tmp_path)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/status").write_text("CapPrm:\tffffffffffffffff\nCapEff:\t0000000000800000\n")
    assert has_capability(23, tmp_path)
    assert not has_capability(14, tmp_path)
