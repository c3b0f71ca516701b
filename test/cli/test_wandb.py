"""--wandb: what a run holds, that it is asked for, and that its errors cost nothing."""

import json
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from helpers import REPOSITORY
from recovery import truth_of, virtual_logs
from small_studies import TINY
from stribeck.cli.main import main
from stribeck.files.drives import read_drive
from stribeck.recordings.bags.bag import write_bag
from virtual import Encoder


@pytest.fixture(scope="module")
def bags(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bags")
    for log in virtual_logs(TINY, truth_of(TINY, "m1"), "m1", Encoder(0.0)):
        write_bag(folder / log.name, [log])
    return folder


def command(bags, output, *options):
    common = [
        "--model",
        "m1",
        "--method",
        "random",
        "--trials",
        "64",
        "--dt",
        "0.005",
        "--quiet",
        "--validation-fraction",
        "0.25",
    ]
    return ["fit", "--logdir", str(bags), "--output", str(output), *common, *options]


class FakeRun:
    """Takes what a run is given, or fails at one of its functions."""

    def __init__(self, folder, fails_at=None):
        self.dir, self.fails_at, self.logged, self.summary, self.finished = folder, fails_at, [], {}, False

    def log(self, figures, step):
        if self.fails_at == "log":
            raise RuntimeError("the server\nis gone")
        self.logged.append((step, figures))

    def finish(self):
        self.finished = True


@pytest.fixture
def wandb(monkeypatch, tmp_path):
    """The library, replaced: what it was asked for, and its run."""
    fake = SimpleNamespace(run=FakeRun(str(tmp_path)), asked=None, Settings=dict)

    def init(**arguments):
        if fake.run.fails_at == "init":
            raise RuntimeError("no network")
        fake.asked = arguments
        return fake.run

    fake.init = init
    monkeypatch.setitem(sys.modules, "wandb", fake)
    return fake


@pytest.mark.slow
def test_a_run_has_the_arguments_the_figures_and_the_parameter_file(bags, tmp_path, wandb):
    """Project, configuration without passwords, errors and parameters along the way, the summary, the file."""
    output = tmp_path / "m1.json"
    study = f"sqlite:///{tmp_path / 'study.db'}"
    options = ("--wandb", "--wandb-project", "joints", "--study", study)
    assert main(command(bags, output, *options)) == 0
    assert wandb.asked["project"] == "joints"
    config = wandb.asked["config"]
    assert (config["law"], config["method"], config["trials"]) == ("m1", "random", 64)
    assert config["study"] == study
    fitted = read_drive(output)
    step, figures = wandb.run.logged[-1]
    assert step == 64
    assert figures["train_mae"] == fitted.loss.train
    assert figures["validation_mae"] == fitted.loss.validation
    assert figures["parameters/kt"] == fitted.values["kt"]
    assert wandb.run.summary["outcome"] == "budget spent"
    assert wandb.run.finished


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("fails_at", ["init", "log"])
def test_an_error_of_the_run_is_a_warning(bags, tmp_path, wandb, capsys, fails_at):
    """The fit ends as if nothing had been asked for, with one line on stderr."""
    wandb.run.fails_at = fails_at
    output = tmp_path / "m1.json"
    assert main(command(bags, output, "--wandb")) == 0
    assert read_drive(output).values["kt"] > 0.0
    lines = [line for line in capsys.readouterr().err.splitlines() if "Weights & Biases" in line]
    assert len(lines) == 1
    assert lines[0].endswith("the fit continues without it")


def test_without_the_library_one_line_says_what_to_install(bags, tmp_path, monkeypatch, capsys):
    """Before anything is read or written."""
    monkeypatch.setitem(sys.modules, "wandb", None)
    output = tmp_path / "m1.json"
    assert main(command(bags, output, "--wandb")) == 1
    error = capsys.readouterr().err
    assert "pip install 'stribeck[wandb]'" in error
    assert len(error.splitlines()) == 1
    assert not output.exists()


def test_passwords_stay_out_of_a_run():
    """The study's URL is in the configuration, its password is not."""
    from stribeck.cli.identify.servo.tracking import config_of
    from stribeck.cli.parser import parse

    url = "postgresql://me:secret@host/friction"
    _, options, _ = parse(["fit", "--logdir", "x", "--study", url])
    config = config_of(options, "m6")
    assert config["study"] == "postgresql://me:***@host/friction"
    assert "secret" not in json.dumps(config)


@pytest.mark.slow
def test_offline_mode_writes_a_run_and_needs_no_network(bags, tmp_path):
    """The real library, where there is one, in a process without any network, where the system allows that."""
    pytest.importorskip("wandb")
    isolated = ["unshare", "--net"] if os.geteuid() == 0 and shutil.which("unshare") else []
    if isolated and subprocess.run([*isolated, "true"], check=False, capture_output=True).returncode:
        isolated = []
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY / "src"),
        "WANDB_MODE": "offline",
        "WANDB_DIR": str(tmp_path),
        "HOME": str(tmp_path),
    }
    output = tmp_path / "m1.json"
    done = subprocess.run(
        [*isolated, sys.executable, "-m", "stribeck", *command(bags, output, "--wandb")],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "continues without it" not in done.stderr
    (run,) = (tmp_path / "wandb").glob("offline-run-*")
    assert next(run.glob("run-*.wandb")).stat().st_size > 0
    assert read_drive(run / "files" / "m1.json").values == read_drive(output).values


@pytest.mark.slow
def test_nothing_is_sent_unless_asked_for(bags, tmp_path, monkeypatch):
    """Without --wandb the library is not even imported."""
    monkeypatch.setitem(sys.modules, "wandb", None)  # an import would fail
    assert main(command(bags, tmp_path / "m1.json")) == 0
