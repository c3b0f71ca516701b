"""``stribeck excite`` as a user types it, on a small arm."""

import _thread
import json
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from small_arm import JOINTS, small_robot
from stribeck.cli.design.trajectory import run as excitation
from stribeck.cli.main import main
from stribeck.excitation import search
from stribeck.session.excitation_file import read_excitation_file


def designed(folder: Path, *options: str, robot: Path | None = None) -> int:
    """Run the verb on the small arm, briefly."""
    usual = {
        "--config": str(robot or small_robot(folder)),
        "--output": str(folder / "motion.yaml"),
        "--harmonics": "3",
        "--duration": "4",
        "--seconds": "1000",
        "--starts": "2",
        "--random": "40",
    }
    given = dict(zip(options[::2], options[1::2], strict=True))
    flat = [word for pair in {**usual, **given}.items() for word in pair if word]
    return main(["excite", *flat, "--quiet"])


def refusal(
    capsys: pytest.CaptureFixture[str], folder: Path, *options: str, robot: Path | None = None
) -> str:
    """The one line that a command ends with."""
    assert designed(folder, *options, robot=robot) == 1
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert not (folder / "motion.yaml").exists()
    return text


@pytest.mark.slow
def test_trajectory_summary_points_and_pictures_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All outputs of one command, and they agree."""
    outputs = {
        "--json": str(tmp_path / "summary.json"),
        "--joint-trajectory": str(tmp_path / "points.yaml"),
        "--plots": str(tmp_path / "plots"),
    }
    assert designed(tmp_path, *(word for pair in outputs.items() for word in pair)) == 0
    file = read_excitation_file(tmp_path / "motion.yaml")
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert file.robot == summary["robot"] == "small"
    assert file.trajectory.joints == tuple(JOINTS)
    assert file.log_det == summary["log_det"]
    assert summary["schema"] == 1
    assert summary["random"]["count"] == 40
    assert summary["gain"] == pytest.approx(summary["log_det"] - summary["random"]["best_log_det"])
    assert summary["gain"] > 0.0
    assert not any(summary["violations"].values())
    assert len(summary["starts"]) == 2
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == ["sigmas.png", "trajectory.png"]
    assert (tmp_path / "points.yaml").is_file()
    assert f"{summary['log_det']:.2f}" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["in a descent", "where descents are begun"])
def test_interrupted_the_best_so_far_is_saved(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
    moment: str,
) -> None:
    """Ctrl-C in the middle of the search: exit code 130, and a trajectory that keeps its limits.

    While descents were being begun it ended the command, and nothing was saved.
    """
    called = []
    # A program that was started in the background ignores Ctrl-C, and then so does what it starts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))

    def interrupt() -> None:
        if not called:
            called.append(moment)
            _thread.interrupt_main()

    def tell(bar: excitation.SearchBar, phase: str, best: float | None) -> None:
        if moment == "in a descent" and phase.startswith("start"):
            interrupt()

    def submit(pool: ThreadPoolExecutor, task: Any, *arguments: Any) -> Any:
        if moment != "in a descent" and task is search._climb:
            interrupt()
        return begin(pool, task, *arguments)

    begin = ThreadPoolExecutor.submit
    monkeypatch.setattr(ThreadPoolExecutor, "submit", submit)
    monkeypatch.setattr(excitation.SearchBar, "tell", tell)
    # The deadline would end the process of the tests on a machine that is busy.
    monkeypatch.setattr("stribeck.cli.stop.exit_after_interrupt", nullcontext)
    assert designed(tmp_path, "--json", str(tmp_path / "summary.json")) == 130
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["interrupted"]
    assert not any(summary["violations"].values())
    assert np.isfinite(read_excitation_file(tmp_path / "motion.yaml").trajectory.coefficients).all()
    assert "interrupted" in capsys.readouterr().err


@pytest.mark.slow
def test_a_trajectory_that_breaks_limits_is_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The search is made blind for the floor; the check is not."""
    from stribeck.excitation.criterion import Criterion

    original = Criterion._look_around
    blind = {"excitation": {"floor": 0.45}}

    def look_around(self: Criterion) -> None:
        original(self)
        self._low = np.full_like(self._low, -9.0)

    monkeypatch.setattr(Criterion, "_look_around", look_around)
    assert "nothing was written" in (text := refusal(capsys, tmp_path, robot=small_robot(tmp_path, **blind)))
    assert "floor (" in text


def test_missing_limits_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A URDF gives no accelerations."""
    text = refusal(capsys, tmp_path, robot=small_robot(tmp_path, limits={"velocity": 2}))
    assert "limits: acceleration missing" in text


def test_wrong_joints_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And the valid ones listed."""
    text = refusal(capsys, tmp_path, robot=small_robot(tmp_path, joints=["shoulder", "wrist"]))
    assert "no movable joint 'wrist'; valid: shoulder, elbow, slide" in text


def test_links_to_be_ignored_must_be_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A link that the URDF does not have."""
    robot = small_robot(tmp_path, excitation={"ignore": [["base", "hand"]]})
    assert "ignore: no link 'hand'" in refusal(capsys, tmp_path, robot=robot)


def test_robot_without_urdf(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What to do is said."""
    assert "--model FILE" in refusal(capsys, tmp_path, robot=small_robot(tmp_path, urdf=None))


def test_output_must_not_replace_the_robot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The YAML stays."""
    robot = small_robot(tmp_path)
    assert designed(tmp_path, "--output", str(robot), robot=robot) == 1
    assert "is also an input of this command" in capsys.readouterr().err


def test_one_harmonic_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The parser says so."""
    assert designed(tmp_path, "--harmonics", "1") == 1
    assert "argument --harmonics: must be between 2 and 50, found 1" in capsys.readouterr().err


def test_urdf_alone_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No configuration: defaults are printed, one line each, and the trajectory is that of the URDF's joints."""
    small_robot(tmp_path)
    words = ["--urdf", str(tmp_path / "small.urdf"), "--output", str(tmp_path / "motion.yaml"), "--quiet"]
    words += ["--harmonics", "3", "--duration", "4", "--seconds", "20", "--starts", "1", "--random", "20"]
    assert main(["excite", *words]) == 0
    assert "acceleration: limited to 10 rad/s^2 or 2 m/s^2 (all joints)\n" in capsys.readouterr().out
    assert read_excitation_file(tmp_path / "motion.yaml").trajectory.joints == tuple(JOINTS)


def test_without_a_robot_what_to_give_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line."""
    assert main(["excite", "--output", str(tmp_path / "motion.yaml")]) == 1
    assert "give --model FILE" in capsys.readouterr().err
