"""All recordings of a folder, whatever format each is in."""

from dataclasses import replace

import numpy as np
import pytest

import recordings_made
from bags import Bag, joint_state, one_run
from helpers import SETUP, XL330, bam_recording, full_log, log_of, needs_xl330, refusal, write_json
from stribeck.model.log import Setup
from stribeck.recordings.bags.bag import BenchDescription, write_bag
from stribeck.recordings.bags.messages import JOINT_STATES
from stribeck.recordings.bags.recorder import BagRecorder
from stribeck.recordings.bam_json import read_bam_json
from stribeck.recordings.sources import bags_below, fingerprint, read_recordings


@pytest.fixture
def folder(tmp_path):
    """A bag, a lone storage file, JSON recordings at two depths, and things that are no recordings."""
    write_bag(tmp_path / "b_bag", [full_log("two", seed=2), full_log("three", seed=3)])
    one_run(run_id="six").write(tmp_path / "made")
    (tmp_path / "made" / "made.mcap").rename(tmp_path / "e_lone.mcap")
    (tmp_path / "made" / "metadata.yaml").unlink()
    (tmp_path / "made").rmdir()
    write_json(tmp_path / "a_one.json", bam_recording())
    (tmp_path / "c_deep" / "er").mkdir(parents=True)
    write_json(tmp_path / "c_deep" / "er" / "four.json", bam_recording())
    write_bag(tmp_path / "d_bag", [full_log("five", seed=5)], storage="sqlite3")
    (tmp_path / "README.md").write_text("notes")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "old.json").write_text("{")
    return tmp_path


def test_every_recording_below_a_folder_is_found_in_the_order_of_paths(folder):
    """Bags, lone files, JSON; neither notes nor hidden folders."""
    assert [log.name for log in read_recordings(folder)] == ["a_one", "two", "three", "four", "five", "six"]


@pytest.mark.parametrize(
    ("path", "names"),
    [("b_bag", ["two", "three"]), ("e_lone.mcap", ["six"]), ("a_one.json", ["a_one"]), ("c_deep", ["four"])],
)
def test_a_single_recording_may_be_named_itself(folder, path, names):
    """One bag, one file, or a folder of them."""
    assert [log.name for log in read_recordings(folder / path)] == names


def test_what_bags_and_json_need_is_passed_on(tmp_path):
    """The rod mass for JSON, the joint and the description for bags."""
    write_json(tmp_path / "json" / "x.json", {}) if (tmp_path / "json").mkdir() else None
    write_json(tmp_path / "json" / "x.json", bam_recording(arm_mass=None))
    (log,) = read_recordings(tmp_path / "json", arm_mass=0.125)
    assert log.setup.arm_mass == 0.125
    told = BenchDescription("told", "shoulder", "xl330", "unknown", Setup(1.0, 0.2, 0.1, 7.4, 100.0))
    plain = Bag()
    plain.samples(0.0, 1.5)
    plain.write(tmp_path / "plain")
    (log,) = read_recordings(tmp_path / "plain", bench=told)
    assert log.name == "told"
    one_run().write(tmp_path / "bag")
    refusal(lambda: read_recordings(tmp_path / "bag", joint="wrist"), tmp_path / "bag", "'wrist'")


def test_folders_without_recordings_are_refused(tmp_path):
    """Empty, missing, or full of other things: the message names the folder and says what belongs there."""
    refusal(lambda: read_recordings(tmp_path), tmp_path, "no recordings", "metadata.yaml", ".json")
    refusal(lambda: read_recordings(tmp_path / "none"), tmp_path / "none", "no such file or folder")
    (tmp_path / "notes.txt").write_text("")
    refusal(lambda: read_recordings(tmp_path), tmp_path, "no recordings")
    refusal(lambda: read_recordings(tmp_path / "notes.txt"), tmp_path / "notes.txt")


def test_a_recording_that_is_there_twice_is_refused(folder):
    """The name of the run is the name of the result; a copy would also count double in a fit."""
    write_json(folder / "c_deep" / "a_one.json", bam_recording())
    refusal(lambda: read_recordings(folder), folder, "a_one", "several runs")


def test_runs_that_were_ended_at_once_are_left_out_with_a_note(folder):
    """Of less than a second, or of a sample, in bags of their own or beside others; alone they are refused."""
    whole = [log.name for log in read_recordings(folder)]
    bag = Bag()
    bag.run(0.0, 0.6, "at_once")
    short = bag.write(folder / "z_short")
    bag.run(1.0, 2.5, "long_enough")
    bag.bench(3.0, run_id="nothing_commanded")
    bag.add(3.1, "/joint_states", joint_state(3.1, ["shoulder"], 0.0, 0.0))
    bag.end(3.2, "nothing_commanded")
    bag.write(folder / "z_three")
    notes = []
    assert [log.name for log in read_recordings(folder, note=notes.append)] == [*whole, "long_enough"]
    assert len(notes) == 3
    assert all("not used" in note and len(note.splitlines()) == 1 for note in notes)
    names = ("at_once", "at_once", "nothing_commanded")
    assert all(name in note for name, note in zip(names, notes, strict=True)), notes
    refusal(lambda: read_recordings(short), short, "at_once", "at least 1 s")
    lonely = folder.with_name("lonely")
    lonely.mkdir()
    short.rename(lonely / "z_short")
    refusal(lambda: read_recordings(lonely), lonely, "no usable recordings", "at least 1 s")


def test_one_damaged_recording_spoils_the_folder(folder):
    """Nothing is left out silently: the message names the file."""
    (folder / "c_deep" / "cut.json").write_text('{"mass": 0.5, "entr')
    refusal(lambda: read_recordings(folder), folder / "c_deep" / "cut.json")


def test_a_fingerprint_tells_recordings_apart():
    """Samples, times and loads count; names and the order of runs do not."""
    one, two = full_log("one", seed=1), full_log("two", seed=2)
    same = fingerprint([one, two])
    assert same == fingerprint([two, one]) == fingerprint([replace(two, name="x"), one])
    assert same.startswith("sha256:")
    heavier = replace(one, setup=replace(SETUP, mass=0.6))
    time = one.position.time
    moved = log_of(time + np.eye(1, len(time), 3)[0] * 1e-8, one.position.value)
    still = log_of(time, one.position.value)
    assert len({same, fingerprint([one]), fingerprint([heavier, two]), fingerprint([one, one])}) == 4
    assert fingerprint([moved]) != fingerprint([still])


@pytest.mark.slow
@needs_xl330
def test_the_real_recordings_are_twelve_runs():
    """Four trajectories at three gains, read in the order of their names."""
    logs = read_recordings(XL330, arm_mass=0.0)
    assert [log.name for log in logs] == sorted(path.stem for path in XL330.glob("*.json"))
    assert {(log.setup.kp, log.trajectory) for log in logs} == {
        (kp, name)
        for kp in (100, 200, 400)
        for name in ("sin_sin", "sin_time_square", "lift_and_drop", "up_and_down")
    }
    assert fingerprint(logs) == fingerprint([read_bam_json(p, arm_mass=0.0) for p in XL330.glob("*.json")])


def test_results_beside_the_recordings_are_no_recordings(tmp_path):
    """A parameter file or a summary written into the folder of the recordings does not stop the next fit."""
    write_bag(tmp_path / "bag", [full_log("one")])
    (tmp_path / "m1.json").write_text('{"kt": 1.0, "model": "m1", "actuator": "xl330"}')
    (tmp_path / "all.json").write_text('{"schema": 1, "fits": []}')
    (tmp_path / "errors.json").write_text('{"schema": 1, "results": []}')
    assert [log.name for log in read_recordings(tmp_path)] == ["one"]
    (tmp_path / "damaged.json").write_text('{"model": "m1", "act')
    refusal(lambda: read_recordings(tmp_path), tmp_path / "damaged.json", "not valid JSON")


def test_finished_bags_are_known_without_reading_them(folder):
    """Bags of any storage; JSON is none, and what is being recorded is not finished."""
    names = {"b_bag", "d_bag", "e_lone.mcap"}
    found = bags_below(folder)
    assert ({path.name for path in found.finished}, found.recording) == (names, False)
    with BagRecorder(folder / "f_now", [JOINT_STATES]):
        found = bags_below(folder)
        assert ({path.name for path in found.finished}, found.recording) == (names, True)
    assert {path.name for path in bags_below(folder).finished} == names | {"f_now"}
    assert bags_below(folder / "not_there") == (frozenset(), False)


def test_a_bag_that_was_cut_off_counts_once(tmp_path):
    """The finished copy that reading makes is no new bag."""
    cut_off = recordings_made.unfinished_bag(
        tmp_path / "cut", recordings_made.unfinished_bytes(recordings_made.run(2.0))
    )
    before = bags_below(tmp_path)
    assert before.finished == {cut_off}
    read_recordings(tmp_path)
    assert (tmp_path / "cut_recovered").is_dir()
    assert bags_below(tmp_path) == before
