"""Studies: the sampler asked for, storages, resuming, workers, and databases that are none of ours."""

import json
import os
import sqlite3

import numpy as np
import optuna
import pytest

from recovery import truth_of, virtual_logs
from small_studies import TINY, tiny_task, trials_in
from stribeck.errors import StudyError
from stribeck.identify.servo.identify import identify
from stribeck.identify.servo.sampling import sampler_for
from virtual import Encoder


@pytest.fixture(scope="module")
def logs():
    return virtual_logs(TINY, truth_of(TINY, "m1"), "m1", Encoder(0.0))


def fit(logs, **settings):
    return identify(tiny_task(logs, **settings))


@pytest.mark.parametrize(
    ("method", "sampler"),
    [
        ("random", optuna.samplers.RandomSampler),
        ("tpe", optuna.samplers.TPESampler),
        ("nsgaii", optuna.samplers.NSGAIISampler),
    ],
)
def test_the_method_is_the_sampler(method, sampler):
    """Each method has its own sampler of Optuna's, not the default one."""
    assert type(sampler_for(method, 0, 64)) is sampler


@pytest.mark.ci
@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("method", ["random", "tpe", "nsgaii"])
def test_samplers_of_optuna_improve_in_batches_and_keep_the_budget(logs, method):
    """The best of 256 trials is better than a typical one, and no trial more is spent."""
    result = fit(logs, method=method, trials=256)
    assert result.search.evaluations == 256
    assert result.train.mean < 0.2


@pytest.mark.slow
def test_a_study_is_kept_resumed_and_not_started_twice(logs, tmp_path):
    """Trials stay in the file; going on adds what the study lacks and never gets worse; starting again is refused."""
    url = f"sqlite:///{tmp_path / 'study.db'}"
    first = fit(logs, method="tpe", trials=64, study=url)
    assert len(trials_in(url)) == 64
    with pytest.raises(StudyError, match="`resume`"):
        fit(logs, method="tpe", trials=64, study=url)
    again = fit(logs, method="tpe", trials=128, study=url, resume=True)
    assert len(trials_in(url)) == 128
    assert again.train.mean <= first.train.mean * (1 + 1e-6)


@pytest.mark.slow
def test_our_own_searches_keep_their_best_points_in_a_study(logs, tmp_path):
    """A study of the hybrid holds its optimum, polished on a finer step last, and resuming starts from it."""
    url = f"sqlite:///{tmp_path / 'study.db'}"
    first = fit(logs, trials=2_000, study=url)
    assert trials_in(url)[-1].params["kt"] == pytest.approx(first.parameters["kt"].value, rel=1e-6)
    again = fit(logs, trials=300, study=url, resume=True)
    assert again.train.mean <= first.train.mean * (1 + 1e-3)


def test_a_journal_file_is_a_storage_too(logs, tmp_path):
    """journal:FILE works without a database."""
    url = f"journal:{tmp_path / 'study.log'}"
    fit(logs, method="random", trials=32, study=url)
    assert fit(logs, method="random", trials=33, study=url, resume=True).search.evaluations == 33
    assert (
        fit(logs, method="random", trials=33, study=str(tmp_path / "study.log"), join=True).search.evaluations
        == 33
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", ["nsgaii", "hybrid"])
def test_workers_share_the_budget_and_use_the_method(logs, tmp_path, method):
    """Two processes; NSGA-II leaves its generation marks in the trials, which TPE would not."""
    url = f"sqlite:///{tmp_path / 'study.db'}"
    result = fit(logs, method=method, trials=256, workers=2, study=url)
    trials = trials_in(url)
    assert result.search.evaluations <= 256 + 128 * (method == "hybrid")
    assert np.isfinite(result.train.mean)
    if method == "nsgaii":
        assert len(trials) == 256
        assert any("generation" in key for trial in trials for key in trial.system_attrs)


def test_a_study_of_other_recordings_is_not_gone_on_with(logs, tmp_path):
    """Another set of runs, or other bounds, is another study."""
    url = f"sqlite:///{tmp_path / 'study.db'}"
    fit(logs, method="random", trials=8, study=url)
    with pytest.raises(StudyError, match="recordings"):
        fit(logs[:2], method="random", trials=8, study=url, resume=True)
    with pytest.raises(StudyError, match="no 'stribeck mx106 m2' to resume; it contains: stribeck mx106 m1"):
        fit(logs, law="m2", method="random", trials=8, study=url, resume=True)


def test_databases_that_are_none_of_ours_are_left_alone(logs, tmp_path):
    """A foreign database, a text file, a folder: refused in one line, and not one byte changed."""
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()
    text = tmp_path / "text.db"
    text.write_text("this is no database, " * 100)
    journal = tmp_path / "journal.log"
    journal.write_text(json.dumps({"something": "else"}) + "\n")
    for path, url in (
        (foreign, f"sqlite:///{foreign}"),
        (text, f"sqlite:///{text}"),
        (journal, f"journal:{journal}"),
        (text, f"journal:{text}"),
    ):
        before = path.read_bytes()
        with pytest.raises(StudyError) as refused:
            fit(logs, method="random", trials=8, study=url)
        assert "\n" not in str(refused.value)
        assert path.read_bytes() == before
    for url in (
        f"sqlite:///{tmp_path}",
        f"sqlite:///{tmp_path / 'missing' / 'study.db'}",
        "sqlite:///",
        "postgresql://nobody@localhost:1/none",
        "nonsense",
    ):
        with pytest.raises(StudyError):
            fit(logs, method="random", trials=8, study=url)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_write_protected_study_is_refused(logs, tmp_path):
    """Before any simulation."""
    tmp_path.chmod(0o500)
    with pytest.raises(StudyError, match="no permission"):
        fit(logs, method="random", trials=8, study=f"sqlite:///{tmp_path / 'study.db'}")
