"""Several joints were identified one after the other also by engines that take no joint: twice the same, and the result was lost. A
result that could not be moved, and a second joint whose process did not start, ended the node."""

import errno
import stat
import sys
from pathlib import Path

import pytest

from driving import wait_for
from helpers import refusal
from stribeck.errors import OutputError
from stribeck.session import fit_process
from stribeck.session.fit_process import ENGINES, FitProcess, engine_of, joints_of

FAKE = """\
#!{python}
import os, sys
place = sys.argv[sys.argv.index("--output") + 1]
if {folder}:
    os.makedirs(place + "/deep")
    open(place + "/calibration.json", "w").write("1")
    open(place + "/deep/table.csv", "w").write("1")
"""


@pytest.fixture
def started(tmp_path):
    """Starts an identification whose interpreter writes a folder, or nothing."""
    running = []

    def start(engine, joint=""):
        path = tmp_path / "python3"
        path.write_text(FAKE.format(python=sys.executable, folder=ENGINES[engine].folder))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        running.append(
            FitProcess(path, ENGINES[engine], tmp_path / "bags", tmp_path / "out", {"joint": joint}, [])
        )
        return running[-1]

    yield start
    for one in running:
        one.close()


def ended(process: FitProcess) -> str:
    """Why it failed, empty for success."""
    found: list[str] = []

    def done() -> bool:
        reason = process.poll()
        found.extend([] if reason is None else [reason])
        return bool(found)

    wait_for(done, "the identification")
    return found[0]


@pytest.mark.parametrize("engine", ["arm", "robot", "mechanism", "geometry"])
@pytest.mark.parametrize("joint", ["hip", "hip, knee"])
def test_engines_without_joints_refuse_them(started, tmp_path, engine, joint):
    """In one line, before anything runs."""
    refusal(
        lambda: joints_of(ENGINES[engine], joint), joint, f"`stribeck identify {engine}`", "leave joint empty"
    )
    refusal(lambda: started(engine, joint), "has no option for joints")
    assert not list(tmp_path.glob(".out*"))
    assert joints_of(ENGINES[engine], " , ") == []


def test_engines_with_joints_take_them():
    """The posterior only as that of a servo."""
    for engine in ("servo", "joint", "posterior"):
        assert joints_of(ENGINES[engine], "hip, knee,") == ["hip", "knee"]
    refusal(
        lambda: joints_of(engine_of("posterior", ["--machine=arm.yaml"]), "hip"), "has no option for joints"
    )


def test_a_second_joint_that_cannot_start_is_a_reason(started, monkeypatch):
    """Not an error of whoever asks how far it is."""
    process = started("joint", "hip, knee")

    def refuse(*_, **__):
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(fit_process, "ChildProcess", refuse)
    reason = ended(process)
    assert reason.startswith("cannot start ")
    assert reason.endswith("python3: Resource temporarily unavailable")


def test_a_result_that_cannot_be_moved_is_an_output_error(started, tmp_path):
    """The place of a folder is a file: one line that names it, and the file stays."""
    process = started("geometry")
    assert ended(process) == ""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "deep").write_text("mine")
    with pytest.raises(OutputError, match=r"cannot write .*out/deep: File exists"):
        process.install()
    assert Path(tmp_path / "out" / "deep").read_text() == "mine"
