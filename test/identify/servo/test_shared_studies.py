"""Several workers on one study: its trials are exactly those asked for, whoever joins, leaves or dies."""

import json
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState

from databases import postgres, postgres_binaries
from driving import wait_for
from helpers import REPOSITORY, refusal
from recovery import truth_of, virtual_logs
from small_studies import TINY, best_of, tiny_task, trials_in
from stribeck.errors import MissingDependencyError
from stribeck.identify.servo.identify import identify, open_for, search
from stribeck.identify.servo.incumbent import Incumbent
from stribeck.identify.servo.rollout import Meter
from stribeck.identify.servo.sampling import SAMPLED, SILENCE, SharedCMA, sample
from stribeck.identify.servo.study import canonical, close_storage, open_study, storage_for
from stribeck.identify.servo.trials import Trials, evaluated
from virtual import Encoder

DISTRIBUTIONS = {"kt": FloatDistribution(0.1, 2.0), "R": FloatDistribution(1.0, 5.0)}


@pytest.fixture(scope="module")
def logs():
    return virtual_logs(TINY, truth_of(TINY, "m1"), "m1", Encoder(0.0))


@pytest.fixture(scope="module")
def server():
    binaries = postgres_binaries()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed")
    with postgres(binaries) as new_database:
        yield new_database


@pytest.fixture(params=["sqlite", "journal", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'study.db'}"
    if request.param == "journal":
        return f"journal:{tmp_path / 'study.log'}"
    return request.getfixturevalue("server")()


def batch(count, first=0):
    """Evaluated points, one of them infinite, one pruned, with attributes of both kinds."""
    return [
        optuna.create_trial(
            state=TrialState.PRUNED if k == first + 2 else TrialState.COMPLETE,
            value=np.inf if k == first + 1 else 1.0 / (k + 7),
            params={"kt": 0.5 + 0.001 * k, "R": 1.0 + 1.0 / (k + 3)},
            distributions=DISTRIBUTIONS,
            user_attrs={"cmaes": {"restart": 1, "point": [0.1 * k, -0.3]}},
            system_attrs={"nsga2:generation": 3},
        )
        for k in range(first, first + count)
    ]


def content(trials):
    return [(t.params, t.value, t.state, t.user_attrs, t.system_attrs, t.datetime_start) for t in trials]


@pytest.mark.slow
def test_a_batch_is_read_back_as_it_was_appended(url, request):
    """Parameters, values, states, attributes and starts, once; and any program reads the same trials."""
    storage = storage_for(url)
    request.addfinalizer(lambda: close_storage(storage))
    samples = batch(6)
    study = optuna.create_study(storage=storage, study_name="ours")
    trials = Trials(study, storage, canonical(url))
    assert trials.append(samples, 6)
    assert content(trials.news()) == content(samples)
    assert trials.news() == []
    written = trials_in(url, "ours")
    assert [(trial.number, trial.state) for trial in written] == [
        (k, one.state) for k, one in enumerate(samples)
    ]
    assert all(trial.datetime_start <= trial.datetime_complete for trial in written)


@pytest.mark.slow
def test_a_study_takes_no_trial_more_than_asked_for(url):
    """Eight workers append at once to a study with room for some of them: it is filled to the last trial."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    close_storage(storage_for(url))  # which makes its tables

    def work(worker):
        opened = open_study(url, "full", {}, 50, join=True)
        trials = opened.trials()
        trials.append(batch(8, 8 * worker), 50)
        with closing(opened):
            return opened.join()

    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(work, range(8)))
    found = trials_in(url, "full")
    assert sorted(trial.number for trial in found) == list(range(50))
    with closing(open_study(url, "full", {}, 50, join=True)) as opened:
        trials = opened.trials()
        assert trials.append(batch(4), 52), "the study is open"
        trials.end()
        trials.end()
        assert not trials.append(batch(4), 60), "the study has ended"
    assert len(trials_in(url, "full")) == 52
    assert len({(worker.signed_in, worker.place) for worker in names}) == 8, (
        "two workers would draw the same random numbers"
    )


@pytest.fixture(scope="module")
def new_rollout(logs):
    """Compiled once."""
    rollout = tiny_task(logs, method="random").rollout()
    rollout.losses(np.full((1, rollout.dimension), 0.5))
    return lambda: replace(rollout, meter=Meter())


def cma(logs, url, trials, **settings):
    return tiny_task(logs, method="cmaes", trials=trials, study=url, **settings)


@pytest.mark.slow
def test_two_workers_fill_a_study_and_agree_on_its_best(logs, new_rollout, url):
    """Both end when the study has its trials; the best they know is the study's; both have contributed."""
    task = cma(logs, url, 512, join=True)
    rollouts = [new_rollout(), new_rollout()]

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda mine: search(task, mine, 0, 512, lambda incumbent: None), rollouts)
    found = trials_in(url)
    assert len(found) == 512
    assert {trial.state for trial in found} == {TrialState.COMPLETE, TrialState.PRUNED}
    assert one.evaluations() == other.evaluations() == 512
    assert one.loss == other.loss == best_of(found)
    assert all(64 <= rollout.meter.evaluations < 512 for rollout in rollouts)
    assert {trial.user_attrs[SAMPLED]["restart"] for trial in found} >= {0, 1}, "a chain for each"


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_its_batch_and_no_more(logs, new_rollout, server):
    """kill -9 in the middle of its work: the other ends the study, with every trial, none running, and the best."""
    url, trials, rollout, killed_at = server(), 3_200, new_rollout(), []
    task = cma(logs, url, trials, join=True)
    code = REPOSITORY / "test" / "support" / "study_worker_child.py"
    folders = ("src", "test/support", "examples/two_links")
    path = os.pathsep.join(str(REPOSITORY / folder) for folder in folders)
    child = subprocess.Popen([sys.executable, code, url, str(trials)], env={**os.environ, "PYTHONPATH": path})

    def watch(incumbent):
        others = incumbent.evaluations() - rollout.meter.evaluations
        if not killed_at and rollout.meter.evaluations >= 128 and others >= 128:
            child.send_signal(signal.SIGKILL)
            child.wait()
            killed_at.append(incumbent.evaluations())

    with closing(open_for(task)) as opened:
        seen = opened.trials()
        while not seen.news():
            assert child.poll() is None, "the worker ended by itself"
    incumbent = search(task, rollout, 0, trials, watch)
    assert child.wait() == -signal.SIGKILL
    assert killed_at[0] < trials
    found = trials_in(url)
    assert [trial.number for trial in found] == list(range(trials))
    assert {trial.state for trial in found} == {TrialState.COMPLETE, TrialState.PRUNED}
    assert incumbent.loss == best_of(found)


@pytest.mark.slow
def test_resuming_goes_on_where_the_study_is(logs, new_rollout, tmp_path):
    """After 320 of 640 trials a search is resumed: same chain, a better point, the trials that lacked, no more."""
    url = f"sqlite:///{tmp_path / 'study.db'}"
    search(cma(logs, url, 320), new_rollout(), 0, 320, lambda incumbent: None)
    before = trials_in(url)
    resumed = search(cma(logs, url, 640, resume=True), new_rollout(), 0, 640, lambda incumbent: None)
    found = trials_in(url)
    assert len(found) == 640
    assert found[:320] == before
    assert resumed.loss == best_of(found) < best_of(before)
    tags = [trial.user_attrs[SAMPLED] for trial in found]
    assert {tag["restart"] for tag in tags} == {0}
    assert [tag["generation"] for tag in tags[::64]] == list(range(10)), "the distribution went on"
    idle = new_rollout()
    again = search(cma(logs, url, 640, resume=True), idle, 0, 640, lambda incumbent: None)
    assert (again.loss, idle.meter.evaluations) == (resumed.loss, 0), "a full study is read, not worked on"


class Bowl:
    """A quadratic with its minimum at 0.3 along every axis."""

    dimension = 4

    def with_reset_period(self, reset_period):
        return self

    def losses(self, unit):
        return np.sum((np.asarray(unit) - 0.3) ** 2, axis=1)


def test_workers_that_read_the_same_trials_sample_from_the_same_distribution(logs):
    """However the trials were cut into batches; and a trial that comes too late moves nothing."""
    parameters = tiny_task(logs).parameters
    lower, width = parameters.lower[:4], (parameters.upper - parameters.lower)[:4]
    parameters = parameters.fixed({name: parameters[name].value for name in parameters.free_names[4:]})

    def worker(seed):
        incumbent = Incumbent(1_000, lambda: 0)
        rng = np.random.default_rng(seed)
        name = f"worker {seed}"
        return SharedCMA(
            Bowl(), parameters, incumbent, seed=3, budget=1_000, population=24, worker=name, rng=rng
        )

    first, told = worker(0), []
    for _ in range(40):
        asked = first.ask(24)
        units = [(np.array(list(s.params.values())) - lower) / width for s in asked]
        told += [
            evaluated(s, TrialState.COMPLETE, float(loss))
            for s, loss in zip(asked, Bowl().losses(units), strict=True)
        ]
        first.tell(told[-24:])
    late = evaluated(told[0], TrialState.COMPLETE, -1.0)
    others = worker(1), worker(1)
    others[0].tell(told)
    for k in range(0, len(told), 7):
        others[1].tell([*told[k : k + 7], *([late] if k > 24 else [])])
    one, other = (sampler.ask(64) for sampler in others)
    assert [s.params for s in one] == [s.params for s in other]
    spread = np.std([list(s.params.values()) for s in one], axis=0) / width
    assert np.all(spread < 0.1), "nothing was learned"


@pytest.mark.slow
def test_joining_with_anything_else_is_refused_in_one_line(logs, new_rollout, tmp_path):
    """Other recordings, bounds, method, seed or batch; each named."""
    url = f"sqlite:///{tmp_path / 'study.db'}"
    task = tiny_task(logs, method="random", trials=8, study=url)
    search(task, new_rollout(), 0, 8, lambda incumbent: None)

    def joined(recordings=logs, change=lambda task: task, **settings):
        settings = {"method": "random", "trials": 16, "study": url, "join": True} | settings
        return lambda: identify(change(tiny_task(recordings, **settings)))

    refusal(joined(logs[:2]), "in recordings:")
    refusal(joined(method="tpe"), "differs from this fit in method:")
    refusal(joined(seed=1), "differs from this fit in seed:")
    refusal(joined(batch=32), "differs from this fit in batch:")
    fixed = joined(change=lambda task: replace(task, parameters=task.parameters.fixed({"kt": 1.5})))
    refusal(fixed, "differs from this fit in bounds, fixed:")
    assert len(trials_in(url)) == 8


def test_passwords_are_not_shown_and_a_missing_driver_is_named(monkeypatch):
    """A server that is not there: its URL without the password; without psycopg what to install."""
    url = "postgresql://me:secret@127.0.0.1:1/none"
    message = refusal(lambda: open_study(url, "x", {}, 1), "me:***@127.0.0.1")
    assert "secret" not in message
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingDependencyError, match="stribeck\\[postgres\\]"):
        open_study(url, "x", {}, 1)


def test_a_search_ends_where_two_chains_agree(logs):
    """One worker, two chains: the study is not filled when both have found the minimum."""
    parameters = tiny_task(logs).parameters

    class Floor(Bowl):
        dimension = len(parameters.free)

        def losses(self, unit):
            return 1.0 + super().losses(unit)

    floor, incumbent = Floor(), Incumbent(60_000, lambda: 0)
    sampler = SharedCMA(
        floor,
        parameters,
        incumbent,
        seed=0,
        budget=1_000,
        population=16,
        worker="alone",
        rng=np.random.default_rng(0),
    )
    study = optuna.create_study()
    sample(sampler, floor, incumbent, Trials(study), parameters, 16)
    assert incumbent.converged
    assert len(study.trials) < 20_000
    assert incumbent.loss == pytest.approx(1.0, abs=1e-6)
    assert {trial.user_attrs[SAMPLED]["restart"] for trial in study.trials} >= {0, 1}


def test_a_chain_is_left_to_its_worker_as_long_as_that_is_heard_of(logs):
    """Two workers keep to a chain each; when one falls silent, the other advances both."""
    parameters = tiny_task(logs).parameters

    class Flat(Bowl):
        dimension = len(parameters.free)

    def worker(name):
        incumbent, rng = Incumbent(60_000, lambda: 0), np.random.default_rng(0)
        return SharedCMA(
            Flat(), parameters, incumbent, seed=0, budget=1_000, population=8, worker=name, rng=rng
        )

    def step(sampler, others):
        asked = sampler.ask(8)
        done = [evaluated(s, TrialState.COMPLETE, 1.0) for s in asked]
        for one in (sampler, *others):
            one.tell(done)
        return asked[0].user_attrs[SAMPLED]["restart"]

    first, second = worker("first"), worker("second")
    assert step(first, [second]) == 0
    assert step(second, [first]) == 0, "nothing had been heard of the first one"
    assert [(step(first, [second]), step(second, [first])) for _ in range(5)] == [(1, 0)] * 5
    alone = [step(first, []) for _ in range(120)]
    assert alone[:SILENCE] == [1] * SILENCE
    assert {0, 1, 2} <= set(alone), "the silent worker's chain is not taken over"
    assert sum(one != other for one, other in pairwise(alone)) <= 3, "a chain is left before its end"


@pytest.mark.ci
@pytest.mark.parametrize(
    "url",
    [
        "postgresql",
        pytest.param("sqlite", marks=pytest.mark.slow),
        pytest.param("journal", marks=pytest.mark.slow),
    ],
    indirect=True,
)
def test_the_dashboard_shows_a_study(logs, new_rollout, url):
    """Optuna's dashboard, started on the storage, answers with its trials, their values and parameters."""
    incumbent = search(cma(logs, url, 512), new_rollout(), 0, 512, lambda incumbent: None)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    program = Path(sys.executable).with_name("optuna-dashboard")
    storage = canonical(url).removeprefix("journal:")
    command = [program, storage, "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as dashboard:

        def asked(path):
            with urlopen(f"http://127.0.0.1:{port}/api/{path}", timeout=10) as answer:  # our own
                return json.load(answer)

        def listening():
            with suppress(URLError):
                return bool(asked("studies"))
            return False

        try:
            wait_for(listening, "the dashboard to answer", timeout=60.0)
            (summary,) = asked("studies")["study_summaries"]
            shown = asked(f"studies/{summary['study_id']}")
        finally:
            dashboard.terminate()
    assert summary["study_name"] == "stribeck mx106 m1"
    assert '"recordings": "sha256:' in {a["key"]: a["value"] for a in summary["user_attrs"]}["stribeck"]
    trials = shown["trials"]
    assert len(trials) == 512
    assert {trial["state"] for trial in trials} == {"Complete", "Pruned"}
    assert min(float(t["values"][0]) for t in trials if t["state"] == "Complete") == incumbent.loss
    names = {param["name"] for param in trials[0]["params"]}
    assert names == {"kt", "R", "armature", "q_offset", "friction_base", "friction_viscous"}
