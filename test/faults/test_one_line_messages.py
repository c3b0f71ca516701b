"""Names found in files may hold line breaks; the messages that quote them still are one line."""

from pathlib import Path

import pytest

from bags import Bag, joint_state, one_run
from helpers import bam_recording, full_log, refusal, write_json
from stribeck.errors import StribeckError
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive
from stribeck.model.actuator import Actuator
from stribeck.recordings.bags.bag import read_bag, write_bag
from stribeck.recordings.sources import read_recordings

BROKEN = "two\nlines"


def parameter_file(folder: Path) -> None:
    """A parameter whose name has a line break, in the bounds of the block."""
    servo: Actuator = load_actuator("xl330")
    block = {"schema": 1, "bounds": {BROKEN: [2.0, 1.0]}}
    content = {**servo.published["m1"], "model": "m1", "actuator": "xl330", "stribeck": block, BROKEN: 1.0}
    read_drive(write_json(folder / "m1.json", content))


def servo_file(folder: Path) -> None:
    """A datasheet figure whose name has one."""
    text = (Path(__file__).parents[2] / "config" / "actuators" / "mx64.yaml").read_text()
    (folder / "own.yaml").write_text(text.replace("datasheet:", 'datasheet:\n  "two\\nlines": none\n', 1))
    load_actuator(str(folder / "own.yaml"))


def twice(folder: Path) -> None:
    """Two runs of one name."""
    for bag in ("a", "b"):
        write_bag(folder / bag, [full_log(BROKEN)])
    read_recordings(folder)


def joints(folder: Path) -> None:
    """Runs of several joints."""
    bag = one_run()
    bag.run(2.0, 3.5, "second", joint=BROKEN)
    read_bag(bag.write(folder / "bag"))


def topics(folder: Path) -> None:
    """A bag of strange topics."""
    bag = Bag()
    bag.bench(0.0)
    bag.add(0.0, "/two\nlines", joint_state(0.0, ["shoulder"], 0.0))
    read_bag(bag.write(folder / "bag"))


def entries(folder: Path) -> None:
    """Keys of samples."""
    content = bam_recording()
    content["entries"][0][BROKEN] = 1
    write_json(folder / "run.json", content)
    read_recordings(folder)


def folder_name(folder: Path) -> None:
    """The path itself."""
    read_recordings(folder / BROKEN)


@pytest.mark.parametrize("cause", [parameter_file, servo_file, twice, joints, topics, entries, folder_name])
def test_a_message_that_quotes_a_name_with_a_line_break_is_one_line(tmp_path, cause):
    """One error is one line on the terminal and in a log, whatever a file calls its things."""
    refusal(lambda: cause(tmp_path))


def test_every_error_of_ours_is_one_line():
    """The base class sees to it, so that no place can forget it; nothing else of the text changes."""
    assert str(StribeckError("a\nb\r\nc\x0cd  e")) == "a b c d  e"
    assert str(StribeckError("unchanged – αβ")) == "unchanged – αβ"
