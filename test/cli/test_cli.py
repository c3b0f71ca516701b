"""The command line as a user meets it: verbs, exit codes, files, and one line for every mistake."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bags import Bag
from helpers import REPOSITORY, XL330, needs_xl330
from recovery import Bench, truth_of, virtual_logs
from stribeck.cli.main import main
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive
from stribeck.recordings.bags.bag import write_bag
from virtual import Encoder

SMALL = Bench("mx106", (0.5, 1.5), 0.15, 0.05, (8.0, 32.0), 15.0)
STEP = 2.0 * np.pi / 4096.0
COARSE = ("--integrator", "paper", "--dt", "0.005")
"""The step that compiles fastest."""


@pytest.fixture(scope="module")
def logs():
    """Two trajectories at each gain with each load."""
    every = virtual_logs(SMALL, truth_of(SMALL, "m1"), "m1", Encoder(STEP, STEP))
    return [log for log in every if log.trajectory in ("sin_time_square", "lift_and_drop")]


@pytest.fixture(scope="module")
def bags(logs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bags")
    write_bag(folder / "campaign", logs)
    return folder


@pytest.fixture(scope="module")
def few(logs, tmp_path_factory):
    """A run of each gain."""
    folder = tmp_path_factory.mktemp("few")
    write_bag(folder / "campaign", list({log.setup.kp: log for log in logs}.values()))
    return folder


@pytest.fixture(scope="module")
def fitted(bags, tmp_path_factory):
    path = tmp_path_factory.mktemp("fitted") / "m1.json"
    words = ["--model", "m1", "--trials", "2000", "--quiet", *COARSE]
    assert main(["fit", "--logdir", str(bags), "--output", str(path), *words]) == 0
    return path


def refused(capsys, *argv):
    """Run a command that has to fail, and give its one line."""
    capsys.readouterr()
    assert main([str(argument) for argument in argv]) == 1
    captured = capsys.readouterr()
    lines = [line for line in captured.err.splitlines() if "warning" not in line]
    assert len(lines) == 1, captured.err
    assert lines[0].startswith("stribeck: ")
    assert "Traceback" not in captured.err
    return lines[0]


@pytest.mark.slow
def test_a_run_that_was_ended_at_once_does_not_stop_a_fit(bags, tmp_path, capsys):
    """A bag of half a second beside the others is left out, which one line on stderr says."""
    folder = tmp_path / "bags"
    shutil.copytree(bags, folder)
    short = Bag()
    short.run(0.0, 0.5, "at_once")
    short.write(folder / "short")
    output = str(tmp_path / "m1.json")
    words = ["fit", "--model", "m1", "--logdir", str(folder), "--trials", "200", "--output", output]
    assert main([*words, "--actuator", "mx106", "--quiet"]) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "not used" in line]
    assert "at_once" in line
    assert read_drive(Path(output))


def test_fit_writes_file_and_summary(bags, tmp_path, capsys):
    """One law: one object with the stable keys; errors in rad, times in s."""
    code = main(
        [
            "fit",
            "--actuator",
            "mx106",
            "--model",
            "m1",
            "--logdir",
            str(bags),
            "--trials",
            "2000",
            "--seed",
            "3",
            "--validation_kp",
            "32",
            "--output",
            str(tmp_path / "m1.json"),
            "--json",
            str(tmp_path / "s.json"),
            "--quiet",
        ]
    )
    assert code == 0
    summary = json.loads((tmp_path / "s.json").read_text())
    for key in ("model", "actuator", "method", "seed", "evaluations", "compile_seconds", "search_seconds"):
        assert key in summary
    assert summary["schema"] == 1
    assert summary["seed"] == 3
    assert summary["evaluations"] <= 2000
    assert 0 < summary["train_mae"] < 0.01
    assert 0 < summary["validation_mae"] < 0.01
    assert summary["wall_seconds"] > summary["search_seconds"]
    assert set(summary["intervals"]) <= set(summary["parameters"])
    file = read_drive(tmp_path / "m1.json")
    assert file.values == summary["parameters"]
    truth = truth_of(SMALL, "m1").values()
    for name in ("kt", "armature", "friction_base", "friction_viscous"):
        assert file.values[name] == pytest.approx(truth[name], rel=0.01), name
    printed = capsys.readouterr().out
    assert "M1 (Coulomb-viscous)" in printed
    assert "friction_viscous" in printed


@pytest.mark.slow
def test_by_default_the_law_is_chosen_by_conditions_left_out(bags, tmp_path, capsys):
    """Simulated Coulomb friction: M1, with the expected error under a new gain, load and trajectory in both files."""
    output, summary = tmp_path / "p.json", tmp_path / "s.json"
    words = ["fit", "--logdir", str(bags), "--trials", "2000", "--quiet"]
    assert main([*words, "--output", str(output), "--json", str(summary)]) == 0
    told = json.loads(summary.read_text())
    assert told["model"] == "m1"
    assert set(told["expected_error"]) == {"gain", "higher gain", "load", "heavier load", "trajectory"}
    for one in told["expected_error"].values():
        assert one["interval"][0] < one["value"] < one["interval"][1] < 0.02
    stored = read_drive(output).provenance.choice.to_json()["expected_error"]
    assert json.loads(json.dumps(stored)) == told["expected_error"]
    assert "Expected error with a new gain: " in capsys.readouterr().out


@pytest.mark.slow
def test_all_laws_go_into_a_folder(bags, tmp_path, capsys):
    """--model all: one file per law, one summary with all, and a comparison."""
    folder = tmp_path / "laws"
    code = main(
        [
            "fit",
            "--model",
            "all",
            "--logdir",
            str(bags),
            "--trials",
            "400",
            "--quiet",
            "--output",
            str(folder),
            "--json",
            str(tmp_path / "s.json"),
        ]
    )
    assert code == 0
    summary = json.loads((tmp_path / "s.json").read_text())
    assert summary["schema"] == 1
    assert [fit["model"] for fit in summary["fits"]] == ["m1", "m2", "m3", "m4", "m5", "m6"]
    assert sorted(path.name for path in folder.iterdir()) == [f"m{k}.json" for k in range(1, 7)]
    assert "held out" not in capsys.readouterr().out


@pytest.mark.slow
def test_evaluate_gives_errors_by_run(bags, fitted, tmp_path, capsys):
    """The evaluation of a fit on its own runs is its training error."""
    target = tmp_path / "e.json"
    assert (
        main(["evaluate", "--params", str(fitted), str(fitted), "--logdir", str(bags), "--json", str(target)])
        == 0
    )
    results = json.loads(target.read_text())["results"]
    assert len(results) == 2
    assert results[0]["params"] == str(fitted)
    assert results[0]["model"] == "m1"
    assert set(results[0]["per_log"][0]) == {
        *("log", "kp", "trajectory", "mae", "band_half_width", "band_coverage")
    }
    assert results[0]["mae"] == pytest.approx(np.mean([entry["mae"] for entry in results[0]["per_log"]]))
    assert results[0]["mae"] == pytest.approx(read_drive(fitted).loss.train)
    assert "mean of all runs" in capsys.readouterr().out


@pytest.mark.slow
def test_a_file_in_the_reference_format_is_evaluated(bags, tmp_path):
    """Flat keys only, as other programs of the method write them."""
    flat = tmp_path / "flat.json"
    flat.write_text(
        json.dumps({**load_actuator("mx106").published["m4"], "model": "m4", "actuator": "mx106"})
    )
    assert main(["evaluate", "--params", str(flat), "--logdir", str(bags)]) == 0


@pytest.mark.slow
def test_eval_evaluates_the_file_of_output(bags, fitted, capsys):
    """--eval, which users of the method know, does not fit and does not write."""
    before = fitted.read_bytes()
    assert main(["fit", "--eval", "--logdir", str(bags), "--output", str(fitted)]) == 0
    assert fitted.read_bytes() == before
    assert "mean of all runs" in capsys.readouterr().out


def test_plot_and_diagram_write_pictures(few, fitted, tmp_path):
    """One picture per run, one of all, and the diagram."""
    command = [
        "plot",
        "--logdir",
        str(few),
        "--params",
        str(fitted),
        "--sim",
        "--output",
        str(tmp_path / "plots"),
    ]
    assert main(command) == 0
    pictures = list((tmp_path / "plots").iterdir())
    assert len(pictures) == 3
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    diagram = tmp_path / "diagram.png"
    assert main(["diagram", "--params", str(fitted), "--max-torque", "3", "--output", str(diagram)]) == 0
    assert diagram.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_spellings_with_underscores_are_known(bags, tmp_path):
    """--validation_kp, --reset_period and --load-study work like ours."""
    url = f"sqlite:///{tmp_path / 'study.db'}"
    common = [
        "fit",
        "--model",
        "m1",
        "--logdir",
        str(bags),
        "--trials",
        "64",
        "--method",
        "random",
        "--quiet",
    ]
    assert main([*common, "--validation_kp=8", "--reset_period", "1.5", "--study", url]) == 0
    assert main([*common, "--validation_kp", "8", "--reset_period=1.5", "--load-study", url]) == 0


def test_wrong_usage_is_one_line_as_other_bad_input(capsys):
    """Unknown commands, missing recordings and impossible values: exit code 1, the message alone, where help is."""
    for argv, message in (
        (["frobnicate"], "unknown command: frobnicate (stribeck alone shows all commands)"),
        (
            ["fit"],
            "RECORDING (name recordings and files before the options) (help: stribeck identify servo --help)",
        ),
        (["fit", "--logdir", "x", "--method", "magic"], "invalid choice: 'magic'"),
        (["fit", "--logdir", "x", "--trials", "0"], "argument --trials: must be at least 1, found 0"),
        (
            ["fit", "--logdir", "x", "--trials", "2.5"],
            "argument --trials: expected a whole number, found '2.5'",
        ),
        (["fit", "--logdir", "x", "--step", "5ms"], "argument --step: expected a number, found '5ms'"),
        (["identify", "servo", "x", "--hold-out", "1/0"], "must be at least 0 and less than 1, found 1/0"),
        (
            ["identify", "mechanism", "x", "--set", "m=1,g=big"],
            "argument --set: expected a number, found 'big'",
        ),
    ):
        assert main(argv) == 1
        (said,) = capsys.readouterr().err.splitlines()
        assert said.startswith("stribeck: ")
        assert message in said


def test_bad_input_is_one_line(few, fitted, tmp_path, capsys):
    """Every mistake: what was found, what is valid, exit 1, nothing written."""
    output = tmp_path / "m1.json"
    fit = ("fit", "--model", "m1", "--logdir", few, "--output", output, "--quiet")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "contains no recordings" in refused(capsys, "fit", "--logdir", empty)
    assert "no such file" in refused(capsys, "fit", "--logdir", tmp_path / "missing")
    assert "unknown actuator 'xl999'; valid: ax12, " in refused(capsys, *fit, "--actuator", "xl999")
    assert "recordings are of the servo 'mx106'" in refused(capsys, *fit, "--actuator", "xl330")
    assert "gains of the runs: 8, 32" in refused(capsys, *fit, "--validation-kp", "99")
    assert "no datasheet value" in refused(capsys, *fit, "--effects", "current-limit")
    assert "expected name=value" in refused(capsys, *fit, "--set", "kt")
    assert "expected a number, found 'many'" in refused(capsys, *fit, "--set", "kt=many")
    assert "unknown parameter" in refused(capsys, *fit, "--set", "ktt=1")
    assert "add --study" in refused(capsys, *fit, "--resume")
    assert "measured supply voltage" in refused(capsys, *fit, "--effects", "supply")
    assert "is always identified unless it is fixed" in refused(capsys, *fit, "--free", "kt")
    assert "is a folder" in refused(capsys, "fit", "--logdir", few, "--output", tmp_path)
    assert "is not a folder" in refused(capsys, "fit", "--logdir", few, "--output", fitted / "x.json")
    assert "--law all writes several: name a folder" in refused(
        capsys, "fit", "--model", "all", "--logdir", few, "--output", fitted
    )
    assert "unknown picture format" in refused(
        capsys, "diagram", "--params", fitted, "--max-torque", 1, "--output", tmp_path / "d.jpg"
    )
    assert "no such file" in refused(capsys, "evaluate", "--params", tmp_path / "none.json", "--logdir", few)
    broken = tmp_path / "broken.json"
    broken.write_text(fitted.read_text()[:200])
    assert "not valid JSON" in refused(capsys, "evaluate", "--params", broken, "--logdir", few)
    broken.write_text(fitted.read_text().replace('"kt"', '"ktt"', 1))
    assert "missing" in refused(capsys, "evaluate", "--params", broken, "--logdir", few)
    assert not output.exists()


def test_a_failed_fit_leaves_the_old_file(few, fitted, tmp_path, capsys):
    """What was there before a mistake is there after it."""
    kept = tmp_path / "kept.json"
    kept.write_bytes(fitted.read_bytes())
    refused(capsys, "fit", "--logdir", few, "--output", kept, "--validation-kp", "99")
    assert kept.read_bytes() == fitted.read_bytes()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_output_is_known_before_the_fit(bags, tmp_path, capsys):
    """The permission is checked before the recordings are even read."""
    tmp_path.chmod(0o500)
    assert "no permission" in refused(
        capsys, "fit", "--logdir", tmp_path / "missing", "--output", tmp_path / "m.json"
    )


def test_a_special_file_system_is_known_before_the_fit(capsys):
    """Where even root cannot write, the error comes before the recordings are read."""
    line = refused(capsys, "fit", "--logdir", "missing", "--output", "/proc/m.json")
    assert "cannot write /proc/m.json" in line


def test_an_output_replaces_nothing_that_the_command_needs(bags, fitted, tmp_path, capsys):
    """Not another output, not a parameter file that is read, not a recording, not a device."""
    same = tmp_path / "same.json"
    assert "another output" in refused(capsys, "fit", "--logdir", bags, "--output", same, "--json", same)
    line = refused(capsys, "evaluate", "--params", fitted, "--logdir", bags, "--json", fitted)
    assert "an input" in line
    (recording,) = (bags / "campaign").glob("*.mcap")
    before = recording.read_bytes()
    assert "recording" in refused(capsys, "fit", "--logdir", bags, "--output", recording)
    assert recording.read_bytes() == before
    assert "device" in refused(
        capsys, "evaluate", "--params", fitted, "--logdir", bags, "--json", "/dev/null"
    )
    assert Path("/dev/null").is_char_device()


@pytest.mark.slow
def test_evaluate_uses_the_time_step_of_the_fit(bags, tmp_path):
    """A file fitted with another time step and reset period is evaluated with them."""
    output, errors = tmp_path / "m1.json", tmp_path / "e.json"
    options = [
        "--model",
        "m1",
        "--logdir",
        str(bags),
        "--trials",
        "500",
        "--dt",
        "0.01",
        "--reset-period",
        "1",
    ]
    assert main(["fit", *options, "--output", str(output), "--quiet"]) == 0
    assert main(["evaluate", "--params", str(output), "--logdir", str(bags), "--json", str(errors)]) == 0
    mae = json.loads(errors.read_text())["results"][0]["mae"]
    assert mae == pytest.approx(read_drive(output).loss.train)


@pytest.mark.slow
def test_a_servo_of_ones_own_is_imported_fitted_and_evaluated(tmp_path):
    """Its YAML file is given by its path, everywhere."""
    servo = tmp_path / "my_servo.yaml"
    text = (REPOSITORY / "config" / "actuators" / "mx106.yaml").read_text()
    servo.write_text(text.replace("name: mx106", "name: my_servo"))
    time = 0.01 * np.arange(300)
    entries = [
        {"timestamp": t, "position": 0.3 * np.sin(t), "goal_position": 0.4 * np.sin(t), "torque_enable": True}
        for t in time.tolist()
    ]
    head = {
        "mass": 0.5,
        "length": 0.1,
        "arm_mass": 0,
        "kp": 8,
        "vin": 15.0,
        "motor": "x",
        "trajectory": "sine",
    }
    log = tmp_path / "logs" / "a.json"
    log.parent.mkdir()
    log.write_text(json.dumps({**head, "entries": entries}))
    own = ["--actuator", str(servo)]
    assert main(["import", str(log), *own, "--output", str(tmp_path / "bags")]) == 0
    output = str(tmp_path / "m1.json")
    common = [*own, "--model", "m1", "--trials", "64", "--quiet", "--output", output]
    for folder in ("bags", "logs"):
        assert main(["fit", "--logdir", str(tmp_path / folder), *common]) == 0
        assert main(["evaluate", "--params", output, "--logdir", str(tmp_path / folder), *own]) == 0


def test_import_reads_all_before_it_writes(tmp_path, capsys):
    """A bad recording among good ones leaves no bag behind; a missing rod mass is never assumed."""
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    entries = [
        {"timestamp": 0.01 * k, "position": 0.1, "speed": 0.0, "goal_position": 0.1, "torque_enable": True}
        for k in range(200)
    ]
    content = {
        "mass": 0.5,
        "length": 0.1,
        "kp": 100,
        "vin": 5.0,
        "motor": "xl330",
        "trajectory": "nothing",
        "entries": entries,
    }
    good.write_text(json.dumps({**content, "arm_mass": 0.0}))
    bad.write_text(json.dumps(content))
    output = tmp_path / "bags"
    assert "--arm-mass" in refused(capsys, "import", good, bad, "--output", output)
    assert not output.exists()
    assert main(["import", str(good), str(bad), "--arm-mass", "0", "--output", str(output)]) == 0
    assert "already exists" in refused(capsys, "import", good, "--output", output)


@pytest.mark.slow
def test_a_supply_above_the_rating_is_a_warning(tmp_path, capsys):
    """Exit 0, one warning with both voltages."""
    bench = Bench("xl330", (0.3,), 0.1, 0.0, (200.0,), 7.4)
    logs = virtual_logs(bench, truth_of(bench, "m1"), "m1", Encoder(STEP))
    write_bag(tmp_path / "bag", logs)
    flat = tmp_path / "flat.json"
    flat.write_text(
        json.dumps({**load_actuator("xl330").published["m1"], "model": "m1", "actuator": "xl330"})
    )
    assert main(["evaluate", "--params", str(flat), "--logdir", str(tmp_path / "bag")]) == 0
    assert "warning: the recorded supply is 7.4 V, above the rated 6 V" in capsys.readouterr().err


@pytest.mark.slow
def test_an_interrupted_fit_exits_130_and_keeps_the_best(bags, tmp_path):
    """Ctrl-C while searching: the best point is in the file, which says that the fit was interrupted."""
    output = tmp_path / "m1.json"
    words = ["fit", "--model", "m1", "--logdir", str(bags), "--output", str(output), *COARSE]
    command = [sys.executable, "-m", "stribeck", *words]
    process = subprocess.Popen(
        [*command, "--trials", "100000000", "--method", "random"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        # The best-so-far file appears while the search goes on.
        while not output.exists():
            assert process.poll() is None, process.communicate()
            try:
                process.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                continue
        assert read_drive(output).provenance.search.outcome == "running"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert read_drive(output).provenance.search.outcome == "interrupted"


@pytest.mark.slow
@needs_xl330
def test_real_recordings_are_imported_and_evaluated(tmp_path, capsys):
    """The real runs as bags give the same errors as the JSON recordings, to the last bit."""
    files = [str(path) for path in sorted(XL330.glob("*.json"))]
    assert main(["import", *files, "--arm-mass", "0", "--output", str(tmp_path / "bags")]) == 0
    flat = tmp_path / "flat.json"
    flat.write_text(
        json.dumps({**load_actuator("xl330").published["m6"], "model": "m6", "actuator": "xl330"})
    )
    errors = []
    for source in (tmp_path / "bags", XL330):
        target = tmp_path / "e.json"
        command = [
            "evaluate",
            "--params",
            str(flat),
            "--logdir",
            str(source),
            "--arm-mass",
            "0",
            "--json",
            str(target),
        ]
        assert main(command) == 0
        errors.append(json.loads(target.read_text())["results"][0]["mae"])
    assert errors[0] == pytest.approx(errors[1], rel=1e-6)
    assert "above the rated 6 V" in capsys.readouterr().err


def test_module_and_script_agree():
    """python -m stribeck is the same program."""
    shown = subprocess.run(
        [sys.executable, "-m", "stribeck", "--version"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.startswith("stribeck 0.")
    assert Path(sys.executable).exists()
