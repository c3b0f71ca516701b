"""Jobs in processes: results, order, crashes, and nothing left behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from driving import wait_for
from helpers import REPOSITORY
from stribeck.identify.common.jobs import Job, run_in_processes


def run(jobs, workers=2, retries=1, **options):
    return {ended.job.name: ended for ended in run_in_processes(jobs, workers, retries, **options)}


def gone(pid: int) -> bool:
    """Whether a process has ended, reaped or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def of_another_program(folder: Path, job: str) -> subprocess.Popen[str]:
    """A program that runs one job in the first process of its life, and prints what it returned."""
    script = folder / "parent.py"
    script.write_text(
        "from pathlib import Path; from stribeck.identify.common.jobs import Job, run_in_processes\n"
        "if __name__ == '__main__':\n"
        f"    print([(ended.value, ended.attempts) for ended in run_in_processes([{job}], 1, 0)])\n"
    )
    path = os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY / "test" / "support")])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.Popen([sys.executable, script], env=environment, stdout=subprocess.PIPE, text=True)


def test_a_job_gets_what_the_one_before_it_returned():
    """2 · 20 + 2, in three processes."""
    first = Job("first", "unruly:double", (20,))
    found = run([first, Job("second", "unruly:add", (2,), after=first), Job("third", "unruly:double", (1,))])
    assert {name: ended.value for name, ended in found.items()} == {"first": 40, "second": 42, "third": 2}
    assert all(ended.attempts == 1 and not ended.failure for ended in found.values())


def test_a_killed_job_is_tried_again_and_the_others_do_not_notice(tmp_path):
    """Two kills with two retries end well; the third process of that job is another one than the first."""
    marker = tmp_path / "marker"
    jobs = [Job("bad", "unruly:killed_at_first", (marker, 2, 7)), Job("good", "unruly:double", (1,))]
    found = run(jobs, retries=2)
    assert (found["bad"].value, found["bad"].attempts) == (7, 3)
    assert found["good"].attempts == 1
    assert len(set(marker.read_text().split())) == 3


@pytest.mark.parametrize(
    ("work", "arguments", "attempts", "words"),
    [
        ("segfault", (), 2, ("SIGSEGV", "tried 2 times")),
        ("stumble", ("over this",), 2, ("ValueError: over this", "tried 2 times")),
        ("refuse", ("no such gain",), 1, ("no such gain",)),
    ],
)
def test_what_failed_for_good_says_why_and_takes_what_needs_it_along(work, arguments, attempts, words):
    """Crashes are tried again, our own errors are not: they would be the same."""
    first = Job("first", f"unruly:{work}", arguments)
    found = run([first, Job("second", "unruly:add", (2,), after=first)])
    assert found["first"].attempts == attempts
    for word in words:
        assert word in found["first"].failure
    assert found["second"].failure == found["first"].failure
    assert found["second"].attempts == 0


def test_stopping_ends_the_processes(tmp_path):
    """A request to stop while a job hangs: the process is gone when the iterator has ended."""
    started = tmp_path / "pid"
    jobs = [Job("hangs", "unruly:wait_for_ever", (started,))]
    assert run(jobs, stop=lambda: started.exists() and bool(started.read_text())) == {}
    assert gone(int(started.read_text()))


def test_no_process_outlives_a_killed_parent(tmp_path):
    """SIGKILL leaves the parent no time to end its children: they notice themselves."""
    started = tmp_path / "pid"
    with of_another_program(
        tmp_path, f"Job('a', 'unruly:wait_for_ever', (Path({str(started)!r}),))"
    ) as parent:
        wait_for(lambda: started.exists() and started.read_text(), "the job starts", 30.0)
        child = int(started.read_text())
        assert not gone(child)
        parent.send_signal(signal.SIGKILL)
    wait_for(lambda: gone(child), "the child ends", 30.0)


def test_ctrl_c_is_the_parents_business(tmp_path):
    """SIGINT to the process of a job, the first that a program starts: the job goes on to its end."""
    with of_another_program(tmp_path, "Job('a', 'unruly:interrupted', (7,))") as parent:
        assert parent.communicate()[0] == "[(7, 1)]\n"
