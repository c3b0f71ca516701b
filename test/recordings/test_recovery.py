"""Bags that a crash left unfinished come back, once, in a finished copy; the original stays as it is."""

import errno
import os
import shutil
import threading
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mcap.opcode import Opcode
from mcap.writer import CompressionType, Writer

from bag_readers import READERS
from helpers import assert_clear, assert_same_log, refusal
from recordings_made import PERIOD, RATE, TOPICS, begin, run, samples, unfinished_bag, unfinished_bytes
from stribeck.errors import StribeckError
from stribeck.recordings.bags import recovery
from stribeck.recordings.bags.bag import read_bag
from stribeck.recordings.bags.mcap import CHUNK_SIZE, MAGIC
from stribeck.recordings.bags.messages import BENCH, contract_types
from stribeck.recordings.bags.recorder import BagRecorder
from stribeck.recordings.bags.recovery import is_being_recorded, is_recovered, salvaged, unfinished_file
from stribeck.recordings.bags.storage import is_bag
from stribeck.recordings.sources import read_recordings

SECONDS = 3.0
RECORDED = [begin(0), *samples(0, round(SECONDS * RATE))]
"""A run that never ends."""

WHOLE = unfinished_bytes(RECORDED)
TAILS = {"nothing": b"", "few zeros": bytes(9), "zeros": bytes(5000), "ones": b"\xff" * 700}
"""What file systems leave behind a cut."""

SHORT = unfinished_bytes([begin(0), *samples(0, 8)], chunk=2 * PERIOD * 1e-9)
"""A file so short that it can be cut anywhere."""


@pytest.fixture
def bag(tmp_path) -> Path:
    """A bag of 3 s that was cut off in a chunk."""
    return unfinished_bag(tmp_path / "run_001", WHOLE[:-1000])


def notes_of(read) -> list[str]:
    """What a user is told while ``read`` runs; each is one line."""
    notes: list[str] = []
    read(notes.append)
    assert all(len(note.splitlines()) == 1 for note in notes)
    return notes


def content_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Files of a folder, with the time of their last change."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def test_a_cut_off_bag_reads_back_and_leaves_a_finished_copy(bag):
    """The user is told in one line; the original is not touched."""
    before = content_of(bag)
    logs = []
    (note,) = notes_of(lambda note: logs.extend(read_recordings(bag, note=note)))
    for part in (str(bag), "cut off", "messages", "were recovered", "run_001_recovered"):
        assert part in note
    (log,) = logs
    assert log.name == "first (cut off)"
    assert log.position.time[-1] > SECONDS - 0.45
    assert content_of(bag) == before
    copy = bag.with_name("run_001_recovered")
    assert sorted(path.name for path in copy.iterdir()) == ["metadata.yaml", "run_001_recovered.mcap"]
    assert is_recovered(copy)
    assert not is_recovered(bag)
    assert sorted(path.name for path in bag.parent.iterdir()) == ["run_001", "run_001_recovered"]


@pytest.mark.parametrize("reader", READERS)
def test_the_copy_opens_everywhere(bag, reader):
    """With all messages up to the last whole chunk."""
    read_bag(bag)
    counts = READERS[reader](bag.with_name("run_001_recovered"))
    assert counts.pop("/bench") == 1
    assert set(counts) == {topic.name for topic in TOPICS if topic is not BENCH}
    assert min(counts.values()) == max(counts.values()) > (SECONDS - 0.45) * RATE


def test_the_copy_is_made_once_and_then_read(bag):
    """By its digest it is known as this bag's copy, whatever it is called."""
    first = read_bag(bag)
    copy = bag.with_name("run_001_recovered")
    before = content_of(copy)
    (note,) = notes_of(lambda note: read_bag(bag, note=note))
    assert "run_001_recovered is read instead" in note
    assert content_of(copy) == before
    renamed = copy.rename(bag.with_name("saved"))
    (again,) = read_bag(bag)
    assert_same_log(again, first[0])
    assert not copy.exists()
    (from_copy,) = read_bag(renamed)
    assert_same_log(from_copy, first[0])


def test_a_folder_never_counts_a_bag_and_its_copy(bag):
    """Before the copy is made, when it is there, and when it was moved; other bags are read as ever."""
    folder = bag.parent
    with BagRecorder(folder / "run_002", TOPICS) as recorder:
        for message in run(1.5, "second"):
            recorder.write(*message)
    names = ["first (cut off)", "second"]
    assert [log.name for log in read_recordings(folder)] == names
    notes = notes_of(lambda note: read_recordings(folder, note=note))
    assert notes == []
    assert [log.name for log in read_recordings(folder)] == names
    (folder / "a_below").mkdir()
    (folder / "run_001_recovered").rename(folder / "a_below" / "copy")
    assert [log.name for log in read_recordings(folder)] == names
    assert not (folder / "run_001_recovered").exists()


def test_the_unfinished_file_may_be_named_itself(bag):
    """It is the bag that is meant."""
    file = bag / "run_001.mcap"
    assert is_bag(bag)
    assert unfinished_file(file) == unfinished_file(bag) == file
    (log,) = read_recordings(file)
    assert log.name == "first (cut off)"


def test_a_name_that_is_taken_is_left_alone(bag):
    """By something else, or by the copy of what the bag was before."""
    taken = bag.with_name("run_001_recovered")
    taken.mkdir()
    read_bag(bag)
    assert list(taken.iterdir()) == []
    second = content_of(bag.with_name("run_001_recovered_2"))
    (bag / "run_001.mcap").write_bytes(WHOLE)
    read_bag(bag)
    assert content_of(bag.with_name("run_001_recovered_2")) == second
    assert is_recovered(bag.with_name("run_001_recovered_3"))


@pytest.mark.parametrize("code", [errno.EROFS, errno.ENOSPC])
def test_where_no_copy_can_be_made_the_bag_is_read_as_it_is(bag, monkeypatch, code):
    """A read-only folder, a full disk: the note says so, and the run is the same."""
    (expected,) = read_bag(unfinished_bag(bag.parent / "other" / "run_001", WHOLE[:-1000]))

    def refuse(*_: object, **__: object) -> str:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(recovery.tempfile, "mkdtemp", refuse)
    logs = []
    (note,) = notes_of(lambda note: logs.extend(read_recordings(bag, note=note)))
    assert "no repaired copy can be written" in note
    assert os.strerror(code) in note
    assert_same_log(logs[0], expected)
    assert {path.name for path in bag.parent.iterdir()} == {"run_001", "other"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write into every folder")
def test_a_read_only_folder_is_read(bag):
    """By its permissions."""
    bag.parent.chmod(0o555)
    try:
        assert len(read_bag(bag)) == 1
    finally:
        bag.parent.chmod(0o755)


def test_a_run_that_ended_before_the_crash_keeps_its_name(tmp_path):
    """Only what was being recorded is marked; less than a second of it is left out with a note."""
    recorded = [*run(1.5), begin(300 * PERIOD, "second"), *samples(300, 100)]
    bag = unfinished_bag(tmp_path / "bag", unfinished_bytes(recorded))
    logs = []
    notes = notes_of(lambda note: logs.extend(read_bag(bag, note=note)))
    assert [log.name for log in logs] == ["first"]
    assert any("'second'" in note and "not used" in note for note in notes)
    longer = [*recorded, *samples(400, 150)]
    other = unfinished_bag(tmp_path / "other", unfinished_bytes(longer))
    assert [log.name for log in read_bag(other)] == ["first", "second (cut off)"]


@pytest.mark.parametrize(
    "content", [b"", MAGIC[:3], MAGIC, WHOLE[:40], WHOLE[:2000], unfinished_bytes([begin(0)])]
)
def test_a_bag_cut_off_before_its_first_run_is_no_recording(tmp_path, content):
    """Named itself it is an error; in a folder it is left out with a note, and the others are read."""
    bag = unfinished_bag(tmp_path / "bags" / "run_001", content)
    refusal(lambda: read_bag(bag), bag, "cut off before")
    unfinished_bag(tmp_path / "bags" / "run_002", WHOLE)
    logs = []
    notes = notes_of(lambda note: logs.extend(read_recordings(tmp_path / "bags", note=note)))
    assert [log.name for log in logs] == ["first (cut off)"]
    assert any("not used" in note and "run_001" in note for note in notes)


def test_a_process_that_ends_meanwhile_hides_no_writer(tmp_path, monkeypatch):
    """Ours has the file open; the one before it has ended since /proc was listed."""
    glob, ended = Path.glob, Path("/proc/999999999")
    assert not ended.exists()

    def listed(self, pattern):
        return (ended, *glob(self, pattern)) if self == Path("/proc") else glob(self, pattern)

    monkeypatch.setattr(Path, "glob", listed)
    file = tmp_path / "bag_0.mcap"
    file.write_bytes(b"")
    assert not recovery._is_written(file)
    with file.open("ab"):
        assert recovery._is_written(file)


def test_a_bag_that_is_being_recorded_is_not_taken_for_a_dead_one(tmp_path):
    """Named itself it is an error, in a folder it is left out with a note; nothing is made beside it."""
    unfinished_bag(tmp_path / "run_001", WHOLE)
    with BagRecorder(tmp_path / "run_002", TOPICS) as recorder:
        for message in run(1.5, "second"):
            recorder.write(*message)
        refusal(lambda: read_bag(recorder.path), recorder.path, "still being recorded")
        logs = []
        notes = notes_of(lambda note: logs.extend(read_recordings(tmp_path, note=note)))
        assert [log.name for log in logs] == ["first (cut off)"]
        assert any("being recorded" in note and "run_002" in note for note in notes)
        assert not (tmp_path / "run_002_recovered").exists()
    (log,) = read_bag(tmp_path / "run_002")
    assert log.name == "second"


def test_a_bag_that_lacks_only_its_metadata_is_finished(tmp_path):
    """A crash between the last two steps of closing."""
    with BagRecorder(tmp_path / "bag", TOPICS) as recorder:
        for message in run(1.5):
            recorder.write(*message)
    (tmp_path / "bag" / "metadata.yaml").unlink()
    (log,) = read_bag(tmp_path / "bag")
    assert log.name == "first"
    assert (tmp_path / "bag_recovered" / "metadata.yaml").is_file()


def foreign_bytes(compression: CompressionType, chunk_size: int = CHUNK_SIZE) -> bytes:
    """What another recorder leaves, with its own name in the header."""
    stream = BytesIO()
    writer = Writer(stream, chunk_size=chunk_size, compression=compression)
    writer.start(profile="ros2", library="libmcap 1.4")
    channels = {}
    for topic in TOPICS:
        text, _ = contract_types().generate_msgdef(topic.type, ros_version=2)
        schema = writer.register_schema(topic.type, "ros2msg", text.encode())
        channels[topic.name] = writer.register_channel(topic.name, "cdr", schema)
    for topic, data, time in RECORDED:
        writer.add_message(channels[topic], time, data, time)
    writer.flush()
    return stream.getvalue()


@pytest.mark.parametrize("compression", [CompressionType.NONE, CompressionType.LZ4])
@pytest.mark.parametrize("name", ["bag.mcap", "bag_0.mcap"])
def test_what_rosbag2s_recorder_left_comes_back_too(tmp_path, compression, name):
    """Its file has a number, its chunks may be compressed, and it takes no lock: a fresh file may still grow."""
    (tmp_path / "bag").mkdir()
    file = tmp_path / "bag" / name
    file.write_bytes(foreign_bytes(compression)[:-10])
    refusal(lambda: read_bag(tmp_path / "bag"), tmp_path / "bag", "being recorded")
    os.utime(file, (1e9, 1e9))
    (log,) = read_bag(tmp_path / "bag")
    assert log.name == "first (cut off)"
    assert log.position.time[-1] > 2.0


@pytest.mark.parametrize(
    "files", [["a.mcap"], ["a.mcap", "b.mcap"], ["bag.mcap", "b.mcap"], ["bag.mcap", "metadata.yaml"]]
)
def test_other_files_that_are_cut_off_stay_what_they_were(tmp_path, files):
    """Lone files, and bags whose metadata promise more than there is, are refused: nothing is half read."""
    bag = tmp_path / "bag"
    bag.mkdir()
    for name in files:
        (bag / name).write_bytes(WHOLE if name.endswith("mcap") else b"rosbag2_bagfile_information: {}\n")
    assert unfinished_file(bag) is None
    refusal(lambda: read_recordings(bag), bag)
    assert [path.name for path in tmp_path.iterdir()] == ["bag"]


def test_readers_that_meet_make_one_copy(bag):
    """Six threads read at once: all get the run, and one copy is there."""
    barrier = threading.Barrier(6)
    found = []

    def one() -> None:
        barrier.wait()
        found.extend(log.name for log in read_bag(bag))

    threads = [threading.Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["first (cut off)"] * 6
    assert sorted(path.name for path in bag.parent.iterdir()) == ["run_001", "run_001_recovered"]


def test_a_file_cut_at_any_byte_gives_its_whole_chunks():
    """Every length there is: the messages are the first of those written, and never fewer than before."""
    wanted = [(topic, time, data) for topic, data, time in [begin(0), *samples(0, 8)]]
    most = 0
    for length in range(len(SHORT) + 1):
        found = salvaged(SHORT[:length])
        messages = [(m.topic.name, m.log_time, m.data) for m in found.messages]
        assert messages == wanted[: len(messages)]
        assert len(messages) >= most
        assert found.damaged == 0
        most = len(messages)
    assert most == len(wanted)


@pytest.mark.parametrize("tail", TAILS)
def test_a_damaged_header_does_not_make_the_recorder_another(tmp_path, tail):
    """Whoever wrote a file that is damaged from its start on is dead, if nobody locks it."""
    file = tmp_path / "bag.mcap"
    for length in range(100):
        file.write_bytes(SHORT[:length] + TAILS[tail])
        assert not is_being_recorded(file), length


@pytest.mark.ci
@settings(deadline=None, max_examples=60)
@given(length=st.integers(0, len(WHOLE)), tail=st.sampled_from(sorted(TAILS)))
@example(len(WHOLE), "nothing")
@example(len(WHOLE), "zeros")
@example(0, "zeros")
@example(len(MAGIC), "ones")
@example(len(MAGIC) + 1, "zeros")
@example(len(MAGIC) + 25, "zeros")
@example(len(MAGIC) + 25, "ones")
def test_cut_off_files_are_read_or_refused(tmp_path_factory, length, tail):
    """Cut anywhere, also with rubbish behind the cut: never anything but an error of ours."""
    bag = unfinished_bag(tmp_path_factory.mktemp("cut") / "bag", WHOLE[:length] + TAILS[tail])
    logs = []
    try:
        logs = read_bag(bag)
    except StribeckError as error:
        assert_clear(error, bag, "cut off before")
    # A run needs a second, 0.2 s are in the chunk that was cut.
    share = length / len(WHOLE)
    assert bool(logs) == (share > 0.5) or 0.3 < share < 0.5
    assert all(log.position.time[-1] > SECONDS * share - 0.25 for log in logs)


@settings(deadline=None, max_examples=200)
@given(
    place=st.integers(0, len(SHORT) - 1),
    damage=st.binary(min_size=1, max_size=40),
    way=st.sampled_from(["changed", "inserted", "removed"]),
)
def test_damage_never_gives_messages_that_were_not_written(place, damage, way):
    """Checksums guard what is read: what comes back was written, or nothing comes back."""
    wanted = {(topic, time, data) for topic, data, time in [begin(0), *samples(0, 8)]}
    after = SHORT[place:] if way == "inserted" else SHORT[place + len(damage) :]
    content = SHORT[:place] + (b"" if way == "removed" else damage) + after
    assert {(m.topic.name, m.log_time, m.data) for m in salvaged(content).messages} <= wanted


def test_a_damaged_length_leads_to_no_messages_without_checksum(tmp_path):
    """A chunk that seems to end before one of its messages: that message has nothing that guards it."""
    chunks = list(chunk_starts(SHORT))
    second = chunks[1]
    message = second + 49  # opcode and length, times, size, checksum, no compression, size again
    damaged = bytearray(SHORT)
    damaged[second + 1 : second + 9] = (message - second - 9).to_bytes(8, "little")
    damaged[message + 40] ^= 0xFF
    wanted = {(topic, time, data) for topic, data, time in [begin(0), *samples(0, 8)]}
    found = salvaged(bytes(damaged))
    assert found.damaged == 1
    assert found.messages
    assert {(m.topic.name, m.log_time, m.data) for m in found.messages} <= wanted


def chunk_starts(content: bytes) -> Iterator[int]:
    """Where chunks begin in a file."""
    place = len(MAGIC)
    while place < len(content):
        if content[place] == Opcode.CHUNK:
            yield place
        place += 9 + int.from_bytes(content[place + 1 : place + 9], "little")


def test_a_reader_that_comes_second_takes_the_first_ones_copy(bag, monkeypatch):
    """Between looking for the copy and placing its own."""
    rename = os.rename

    def outrun(source: Path, target: Path) -> None:
        shutil.copytree(source, target)
        rename(source, target)

    monkeypatch.setattr(recovery.os, "rename", outrun)
    (note,) = notes_of(lambda note: read_bag(bag, note=note))
    assert "no repaired copy" not in note
    assert sorted(path.name for path in bag.parent.iterdir()) == ["run_001", "run_001_recovered"]
