"""Jobs on a Dask cluster of processes: results, refusals, and workers that are killed."""

import os
import signal
import threading

import pytest

from driving import wait_for
from helpers import REPOSITORY, refusal
from stribeck.identify.common.jobs import Job

pytest.importorskip("distributed", reason="Dask is not installed")
import dask.config

from stribeck.fleet.cluster import cluster_at, local_cluster, run_on_cluster


@pytest.fixture(scope="module")
def client():
    environment = {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY / 'test' / 'support'}",
    }
    with local_cluster(2, 2, environment) as found:
        yield found


def run(client, jobs, **options):
    return {ended.job.name: ended for ended in run_on_cluster(client, jobs, 1, **options)}


def test_results_refusals_and_errors_come_back(client):
    """As from processes of our own; what needs a job that failed fails with it."""
    first, bad = Job("first", "unruly:double", (20,)), Job("bad", "unruly:refuse", ("no such gain",))
    jobs = [
        first,
        Job("second", "unruly:add", (2,), after=first),
        bad,
        Job("after bad", "unruly:add", (2,), after=bad),
        Job("stumbles", "unruly:stumble", ("over this",)),
        Job("threads", "unruly:threads"),
    ]
    found = run(client, jobs)
    assert found["second"].value == 42
    assert found["threads"].value == "1"
    assert found["bad"].failure == found["after bad"].failure == "no such gain"
    assert found["stumbles"].failure == "ValueError: over this"


@pytest.mark.ci
def test_a_worker_killed_in_the_middle_costs_nothing(client, tmp_path):
    """Its job is done by another process, and so is all that was waiting behind it."""
    started, go_on = tmp_path / "started", tmp_path / "go on"
    first = Job("first", "unruly:double", (20,))
    jobs = [first, Job("killed", "unruly:wait_for", (started, go_on, 5))]
    jobs += [Job(f"sum {k}", "unruly:add", (k,), after=first) for k in range(10)]

    def kill():
        wait_for(lambda: started.exists() and started.read_text().endswith("\n"), "the job starts", 30.0)
        os.kill(int(started.read_text()), signal.SIGKILL)
        go_on.touch()

    killer = threading.Thread(target=kill)
    killer.start()
    found = run(client, jobs)
    killer.join()
    assert found["killed"].value == 5
    assert len(set(started.read_text().split())) == 2
    assert [found[f"sum {k}"].value for k in range(10)] == [40 + k for k in range(10)]


@pytest.mark.slow
def test_a_job_that_kills_every_worker_is_given_up(client):
    """What waits behind it at the workers that die is not blamed for them; what needs it fails with it."""
    bad = Job("bad", "unruly:segfault")
    jobs = [
        bad,
        *(Job(f"good {k}", "unruly:double", (k,)) for k in range(4)),
        Job("late", "unruly:add", (1,), bad),
    ]
    found = run(client, jobs)
    assert "its worker process died, 3 times" in found["bad"].failure
    assert found["late"].failure == found["bad"].failure
    assert [found[f"good {k}"].value for k in range(4)] == [0, 2, 4, 6]


def test_stopping_leaves_the_cluster_usable(client, tmp_path):
    """What is not done is cancelled."""
    started = tmp_path / "started"
    jobs = [Job("waits", "unruly:wait_for", (started, tmp_path / "go on", 1))]
    assert run(client, jobs, stop=started.exists) == {}
    (tmp_path / "go on").touch()
    assert run(client, [Job("next", "unruly:double", (4,))])["next"].value == 8


def test_a_lost_scheduler_is_one_line(client, tmp_path):
    """The connection breaks while a job waits."""
    with cluster_at(client.scheduler.address) as second:
        jobs = [Job("waits", "unruly:wait_for", (tmp_path / "started", tmp_path / "go on", 1))]
        refusal(lambda: run(second, jobs, stop=second.close), "lost the Dask scheduler")
    (tmp_path / "go on").touch()


def test_a_cluster_without_workers_is_not_waited_for_for_ever(monkeypatch):
    """All died and none came back; at the start it is said at once."""
    monkeypatch.setattr("stribeck.fleet.cluster.PATIENCE", 0.0)
    monkeypatch.setattr("stribeck.fleet.cluster.LOOK_EVERY", 0.0)
    with local_cluster(0, 0, {}) as empty:
        refusal(lambda: run(empty, [Job("waits", "unruly:double", (1,))]), "no workers")

        def connect():
            with cluster_at(empty.scheduler.address):
                pass

        refusal(connect, "has no workers", "dask worker")


@pytest.mark.slow
def test_no_cluster_there_is_one_line(monkeypatch):
    """An address at which nobody listens, and one that is none."""
    monkeypatch.setattr("stribeck.fleet.cluster.CONNECT_TIMEOUT", 0.5)

    def connect(address):
        with cluster_at(address):
            pass

    refusal(lambda: connect("tcp://127.0.0.1:9"), "tcp://127.0.0.1:9", "dask scheduler")
    refusal(lambda: connect("nonsense://x"), "nonsense://x")
    assert dask.config.get("scheduler", None) is None
