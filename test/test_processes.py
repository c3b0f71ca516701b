"""Child processes end within their deadlines, with all their descendants, and not later than this process."""

import multiprocessing as mp
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers import REPOSITORY
from process_children import leave_orphan, report_blocked
from stribeck.processes import ChildProcess, cores, exit_reason, interrupts_blocked

STUBBORN = "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def until(condition, timeout: float = 100.0):
    end = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < end, "timed out"
        time.sleep(0.01)
    return value


def lines_of(child: ChildProcess, count: int) -> list[str]:
    lines: list[str] = []
    until(lambda: lines.extend(child.read_lines()) or len(lines) >= count)
    return lines


def test_lines_come_whole() -> None:
    """A line that arrives in pieces is returned once, when it is complete; poll gives the exit code."""
    code = "import sys, time; w = sys.stderr; w.write('one\\ntw'); w.flush(); time.sleep(0.2); w.write('o\\n'); sys.exit(3)"
    child = ChildProcess(python(code))
    assert lines_of(child, 2) == ["one", "two"]
    assert until(lambda: child.poll()) == 3
    assert not child.stopping
    child.close()


def test_output_goes_to_the_log(tmp_path) -> None:
    """Both streams."""
    child = ChildProcess(python("import os; os.write(1, b'out '); os.write(2, b'err')"), log=tmp_path / "log")
    assert until(lambda: child.poll() is not None)
    child.close()
    assert (tmp_path / "log").read_text() == "out err"
    assert child.read_lines() == []


def test_a_program_that_cannot_start_raises() -> None:
    """As an OSError of Popen, or in the words of the program that wraps it."""
    try:
        child = ChildProcess(["/nowhere/program"])
    except FileNotFoundError:
        return
    assert "/nowhere/program" in lines_of(child, 1)[0]
    child.close()


def test_descendants_that_ignore_the_request_are_killed() -> None:
    """Both ways: polled after the deadline, and closed."""
    code = (
        f"{STUBBORN}import subprocess; worker = subprocess.Popen([sys.executable, '-c', {STUBBORN!r} + "
        "\"sys.stderr.write('ready\\\\n'); sys.stderr.flush(); time.sleep(99)\"]); "
        "sys.stderr.write(f'{worker.pid}\\n'); sys.stderr.flush(); time.sleep(99)"
    )
    for polled in (True, False):
        child = ChildProcess(python(code))
        (worker,) = [int(line) for line in lines_of(child, 2) if line != "ready"]
        child.terminate(0.1)
        assert child.stopping
        if polled:
            assert until(lambda child=child: child.poll()) == -signal.SIGKILL
        child.close()
        until(lambda worker=worker: not is_alive(worker))


def test_a_child_dies_with_this_process() -> None:
    """Even with one that is killed, where setpriv is installed."""
    if not any(Path(folder, "setpriv").exists() for folder in ("/usr/bin", "/bin")):
        pytest.skip("setpriv (util-linux) is not installed: nothing ends a child of a killed process")
    code = (
        "import sys, time; from stribeck.processes import ChildProcess; "
        "child = ChildProcess([sys.executable, '-c', 'import time; time.sleep(99)']); "
        "print(child._process.pid, flush=True); time.sleep(99)"
    )
    with subprocess.Popen(python(code), stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        assert is_alive(child)
        parent.kill()
    until(lambda: not is_alive(child))


def test_reasons() -> None:
    """Exit codes and signals in words."""
    assert exit_reason(3) == "ended with exit code 3"
    assert exit_reason(-9) == "was killed by SIGKILL (out of memory?)"
    assert exit_reason(-15) == "was killed by SIGTERM"
    assert exit_reason(-40) == "was killed by signal 40"


def test_workers_do_not_hear_interrupts() -> None:
    """SIGINT is blocked in a worker, and not in this process."""
    context = mp.get_context("spawn")
    reports = context.Queue()
    with interrupts_blocked():
        worker = context.Process(target=report_blocked, args=(reports,))
        worker.start()
    assert reports.get(timeout=200.0)
    worker.join()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_worker_ends_with_its_parent() -> None:
    """However that ended."""
    context = mp.get_context("spawn")
    pid = context.Value("i", 0)
    parent = context.Process(target=leave_orphan, args=(pid,))
    parent.start()
    parent.join(60.0)
    assert pid.value
    until(lambda: not is_alive(pid.value))


SUPERVISED = """
import os, signal, sys, time
from stribeck.processes import supervised

def work():
    {handling}
    print(os.getpid(), flush=True)
    {waiting}

sys.exit(supervised(work, 0.2))
"""


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("handling", "waiting", "number", "code"),
    [
        ("signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])", "time.sleep(1000)", signal.SIGINT, 130),
        ("signal.signal(signal.SIGINT, lambda *_: os.abort())", "time.sleep(1000)", signal.SIGINT, 130),
        ("signal.signal(signal.SIGINT, lambda *_: sys.exit(7))", "time.sleep(1000)", signal.SIGINT, 7),
        ("pass", "time.sleep(1000)", signal.SIGTERM, -signal.SIGTERM),
        ("pass", "return 3", None, 3),
    ],
    ids=["deaf", "crashes", "ends by itself", "terminated", "done"],
)
def test_a_supervised_process_ends_soon_after_an_interrupt(handling, waiting, number, code):
    """Even one that never handles it; otherwise its own exit code counts. Its output closes: nothing is left behind."""
    with subprocess.Popen(
        [sys.executable, "-c", SUPERVISED.format(handling=handling, waiting=waiting)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        child = int(process.stdout.readline())
        assert child != process.pid
        if number is not None:
            process.send_signal(number)
        process.communicate(timeout=200.0)
    assert process.returncode == code


def test_cores_are_those_that_a_parent_grants_else_those_allowed(monkeypatch):
    """NPROC, which jobs of a fleet have; nonsense in it counts as nothing."""
    monkeypatch.delenv("NPROC", raising=False)
    allowed = cores()
    assert allowed == len(os.sched_getaffinity(0))
    monkeypatch.setenv("NPROC", "3")
    assert cores() == 3
    for nonsense in ("", "0", "-1", "two"):
        monkeypatch.setenv("NPROC", nonsense)
        assert cores() == allowed
