"""The streaming recorder: nothing is lost, nothing is written over, a bad disk is told of and delays nobody."""

import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

from bag_readers import READERS, mcap_file
from bags import STORE
from helpers import refusal
from recordings_made import PERIOD, RATE, TOPICS, begin, end, run, samples
from stribeck.errors import OutputError
from stribeck.files.folders import write_atomically
from stribeck.recordings.bags import recorder as recorder_module
from stribeck.recordings.bags.bag import read_bag
from stribeck.recordings.bags.mcap import DIGEST_KEY, McapBag, custom_value
from stribeck.recordings.bags.messages import BENCH, JOINT_STATES, Topic, joint_state
from stribeck.recordings.bags.recorder import FLUSH_PERIOD, BagRecorder, next_path
from stribeck.recordings.bags.recovery import salvaged
from stribeck.recordings.bags.storage import read_messages

MINUTE = 60.0


def record(path: Path, recorded) -> Path:
    """A finished bag."""
    with BagRecorder(path, TOPICS) as recorder:
        for message in recorded:
            recorder.write(*message)
    return path


def wait_until(condition, what: str, timeout: float = 20.0) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout:g} s: {what}"
        threading.Event().wait(0.005)


@pytest.fixture(scope="module")
def minute(tmp_path_factory) -> Path:
    """A minute at 200 Hz on all topics, written as fast as it goes."""
    return record(tmp_path_factory.mktemp("minute") / "run_001", run(MINUTE))


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_no_sample_of_a_minute_at_200_hz_is_lost_in_any_reader(minute, reader):
    """12,000 samples on each topic, in rosbags, mcap-ros2-support and JavaScript's @mcap/core."""
    count = round(MINUTE * RATE)
    expected = {topic.name: 2 if topic is BENCH else count for topic in TOPICS}
    assert READERS[reader](minute) == expected


@pytest.mark.slow
def test_what_was_recorded_reads_back_as_the_run_it_was(minute):
    """Times to the nanosecond, values to the last bit."""
    (log,) = read_bag(minute)
    assert log.name == "first"
    count = round(MINUTE * RATE)
    np.testing.assert_array_equal((log.position.time * 1e9).round(), PERIOD * np.arange(count))
    k = np.arange(count)
    np.testing.assert_array_equal(log.position.value, [np.sin(j / RATE) for j in k])
    assert log.pwm is not None
    np.testing.assert_array_equal(log.pwm.value, k % 885 / 885)


def test_the_metadata_is_rosbag2s_of_version_9(minute):
    """With the digest of the messages, counts, the span, types with their hash, and a latched bench."""
    information = yaml.safe_load((minute / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    assert information["version"] == 9
    assert information["storage_identifier"] == "mcap"
    assert information["relative_file_paths"] == ["run_001.mcap"]
    assert information["message_count"] == 3 * round(MINUTE * RATE) + 2
    assert information["starting_time"] == {"nanoseconds_since_epoch": 0}
    assert information["duration"] == {"nanoseconds": round(MINUTE * 1e9)}
    topics = {entry["topic_metadata"]["name"]: entry for entry in information["topics_with_message_count"]}
    assert topics["/joint_states"]["message_count"] == round(MINUTE * RATE)
    for entry in topics.values():
        told = entry["topic_metadata"]
        assert told["type_description_hash"] == STORE.hash_rihs01(told["type"])
        latched = [profile["durability"] for profile in told["offered_qos_profiles"]]
        assert latched == (["transient_local"] if told["name"] == "/bench" else [])
    assert custom_value(minute, DIGEST_KEY)


def test_a_bag_that_was_changed_afterwards_is_refused(tmp_path):
    """By its digest, also where the checksum of the chunk was made to fit."""
    bag = record(tmp_path / "bag", run(1.5))
    metadata = bag / "metadata.yaml"
    digest = custom_value(bag, DIGEST_KEY)
    metadata.write_text(metadata.read_text().replace(digest, digest[::-1]))
    refusal(lambda: read_bag(bag), bag, "differ from those that were written")


def test_what_was_written_is_on_disk_within_half_a_second(tmp_path):
    """Also when nothing follows: no size of a chunk is waited for."""
    assert FLUSH_PERIOD < 0.5
    delays = []
    with BagRecorder(tmp_path / "bag", TOPICS) as recorder:
        file = mcap_file(recorder.path)
        for k in range(1, 6):
            recorder.write(*begin(k))
            started = time.monotonic()
            wait_until(lambda k=k: len(salvaged(file.read_bytes()).messages) == k, f"message {k} on disk")
            delays.append(time.monotonic() - started)
        wait_until(lambda: recorder.lag == 0.0, "nothing waits any more")
    assert sorted(delays)[2] <= 0.5, delays


def test_what_was_written_survives_a_power_cut(tmp_path, monkeypatch):
    """The disk is told to keep it before the recorder says that nothing waits any more."""
    kept: list[int] = []
    keep = os.fdatasync

    def counting(file: int) -> None:
        keep(file)
        kept.append(os.fstat(file).st_size)

    monkeypatch.setattr(recorder_module.os, "fdatasync", counting)
    with BagRecorder(tmp_path / "bag", TOPICS) as recorder:
        recorder.write(*begin(0))
        wait_until(lambda: recorder.lag == 0.0, "nothing waits any more")
        assert kept[-1] == mcap_file(recorder.path).stat().st_size
    assert kept[-1] == mcap_file(recorder.path).stat().st_size


def test_a_bag_has_its_metadata_only_when_it_is_whole(tmp_path):
    """Until then the folder is marked as unfinished by what it lacks; nothing else is left in it."""
    with BagRecorder(tmp_path / "bag", TOPICS) as recorder:
        assert [path.name for path in recorder.path.iterdir()] == ["bag.mcap"]
        recorder.write(*begin(0))
    assert sorted(path.name for path in recorder.path.iterdir()) == ["bag.mcap", "metadata.yaml"]


def test_nothing_is_recorded_over_what_is_there(tmp_path):
    """A finished bag, an unfinished one, any folder, a file."""
    bag = record(tmp_path / "bag", run(1.5))
    before = {path: path.read_bytes() for path in bag.iterdir()}
    refusal(lambda: BagRecorder(bag, TOPICS), bag, "already exists")
    assert {path: path.read_bytes() for path in bag.iterdir()} == before
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    for name in ("empty", "file", "file/below"):
        refusal(lambda name=name: BagRecorder(tmp_path / name, TOPICS), tmp_path / name)


def test_numbered_bags_follow_the_highest_number_there_is(tmp_path):
    """Finished, unfinished, recovered or anything else: a number is never used twice."""
    assert next_path(tmp_path / "none", "run") == tmp_path / "none" / "run_001"
    for name in ("run_002", "run_007_recovered", "other_009", "run_x", "run_1a"):
        (tmp_path / name).mkdir()
    assert next_path(tmp_path, "run") == tmp_path / "run_008"
    with (
        BagRecorder.numbered(tmp_path, "run", TOPICS) as one,
        BagRecorder.numbered(tmp_path, "run", TOPICS) as other,
    ):
        assert [one.path.name, other.path.name] == ["run_008", "run_009"]
    refusal(lambda: BagRecorder.numbered(tmp_path, "a/b", TOPICS), "a/b", "slashes")


def test_recorders_that_start_at_once_take_different_numbers(tmp_path):
    """Eight threads, eight bags."""
    barrier = threading.Barrier(8)
    names: list[str] = []

    def one() -> None:
        barrier.wait()
        with BagRecorder.numbered(tmp_path, "run", TOPICS) as recorder:
            recorder.write(*begin(0))
        names.append(recorder.path.name)

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(names) == [f"run_{n:03d}" for n in range(1, 9)]


def test_threads_that_write_at_once_lose_nothing(tmp_path):
    """As callbacks of an executor with several threads do."""
    with BagRecorder(tmp_path / "bag", TOPICS) as recorder:

        def one(number: int) -> None:
            for k in range(1000):
                recorder.write(JOINT_STATES.name, joint_state(k, [f"{number}"], [k]), k)

        threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert recorder.counts[JOINT_STATES.name] == 4000
    messages = read_messages(tmp_path / "bag").messages
    assert sorted({message.log_time for message in messages}) == list(range(1000))
    assert len(messages) == 4000


def test_wrong_use_is_refused(tmp_path):
    """Topics that the bag has not, times that are none, types that nobody knows, writing after the end."""
    with BagRecorder(tmp_path / "bag", TOPICS) as recorder:
        refusal(lambda: recorder.write("/other", b"", 0), "/other", "/joint_states")
        refusal(lambda: recorder.write("/bench", b"", -1), "/bench", "-1 ns")
        refusal(lambda: recorder.write("/bench", b"", 1 << 63), "/bench")
        recorder.write(*begin(0))
    refusal(lambda: recorder.write(*begin(1)), tmp_path / "bag", "closed")
    recorder.close()
    assert len(read_messages(tmp_path / "bag").messages) == 1
    told = Topic("/told", "robot_msgs/msg/Told")
    refusal(lambda: BagRecorder(tmp_path / "new", [told]), "robot_msgs/msg/Told", "definition")
    bad = {told.type: "float64 ]["}
    refusal(lambda: McapBag("new", [told], definitions=bad), "robot_msgs/msg/Told")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("reader", ["mcap_ros2", "javascript"])
def test_a_robots_own_types_are_recorded_with_their_definition(tmp_path, reader):
    """Also those that are made of types that ROS ships."""
    told = Topic("/told", "robot_msgs/msg/Told")
    definitions = {told.type: "std_msgs/Header header\nfloat64 angle  # in rad\n"}
    data = joint_state(5, [], [])[:16] + b"\x00" * 16
    bag = McapBag("bag", [told], definitions=definitions)
    bag.add("/told", memoryview(data), 7)
    metadata = bag.finish()
    write_atomically(tmp_path / "bag" / "bag.mcap", bag.take())
    write_atomically(tmp_path / "bag" / "metadata.yaml", metadata)
    content = read_messages(tmp_path / "bag")
    assert [(m.topic.name, m.topic.type, m.log_time, m.data) for m in content.messages] == [
        (*told[:2], 7, data)
    ]
    assert told.type in content.typestore.types
    assert READERS[reader](tmp_path / "bag") == {"/told": 1}


def test_a_bag_without_a_message_is_a_bag(tmp_path):
    """It can be opened, and is refused as a recording because it holds no run."""
    bag = record(tmp_path / "bag", [])
    assert read_messages(bag).messages == []
    refusal(lambda: read_bag(bag), bag)


def test_an_error_while_recording_leaves_a_finished_bag(tmp_path):
    """The error passes; what was recorded before it is whole."""

    def failing() -> None:
        with BagRecorder(tmp_path / "bag", TOPICS) as recorder:
            recorder.write(*begin(0))
            recorder.write(*begin(1 // 0))

    with pytest.raises(ZeroDivisionError):
        failing()
    assert len(read_messages(tmp_path / "bag").messages) == 1


@pytest.fixture
def stalled(monkeypatch) -> threading.Event:
    """A disk that does not answer until the event is set."""
    answers = threading.Event()
    append = recorder_module._append

    def waiting(file: int, data: bytes) -> None:
        answers.wait()
        append(file, data)

    monkeypatch.setattr(recorder_module, "_append", waiting)
    return answers


def test_a_stalled_disk_delays_no_caller_and_loses_nothing(tmp_path, stalled):
    """Writing goes on without an answer of the disk; when it is back, all of it is there."""
    with BagRecorder(tmp_path / "bag", TOPICS) as recorder:
        for message in run(10.0):
            recorder.write(*message)
        wait_until(lambda: recorder.lag > 0.3, "the lag shows that the disk does not answer")
        stalled.set()
    (log,) = read_bag(tmp_path / "bag")
    assert len(log.position.time) == 10 * RATE


def test_more_than_memory_may_hold_is_one_clear_error(tmp_path, stalled, monkeypatch):
    """The limit is kept; what was taken before it is not lost, but the bag does not look whole."""
    limit = 200_000
    monkeypatch.setattr("stribeck.recordings.bags.recorder.MEMORY_LIMIT", limit)
    recorder = BagRecorder(tmp_path / "bag", TOPICS)
    recorded = run(60.0)
    taken = 0

    def write_all() -> None:
        nonlocal taken
        for message in recorded:
            recorder.write(*message)
            taken += 1

    message = refusal(write_all, tmp_path / "bag", "has not responded", "MiB")
    assert sum(len(data) for _, data, _ in recorded[:taken]) < limit + 100_000
    assert refusal(lambda: recorder.write(*begin(0))) == message
    stalled.set()
    recorder.close()  # the error was told already
    assert not (tmp_path / "bag" / "metadata.yaml").exists()
    assert len(salvaged(mcap_file(tmp_path / "bag").read_bytes()).messages) == taken


def test_a_disk_that_never_answers_again_is_told_of_at_the_end(tmp_path, stalled, monkeypatch):
    """Closing waits for it, but not for ever."""
    monkeypatch.setattr(recorder_module, "CLOSE_TIMEOUT", 0.05)
    recorder = BagRecorder(tmp_path / "bag", TOPICS)
    recorder.write(*begin(0))
    refusal(recorder.close, tmp_path / "bag", "has not responded", "recovered")
    stalled.set()
    wait_until(lambda: (tmp_path / "bag" / "metadata.yaml").exists(), "the bag is finished after all")


FULL_DISK = """
    import resource, sys
    from pathlib import Path
    from recordings_made import TOPICS, run
    from stribeck.errors import OutputError
    from stribeck.recordings.bags.recorder import BagRecorder

    limit, seconds, path = int(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        with BagRecorder(path, TOPICS) as recorder:
            while seconds > 100.0:
                for message in run(1.0):
                    recorder.write(*message)
            for message in run(seconds):
                recorder.write(*message)
    except OutputError as error:
        print(error)
        sys.exit(1)
"""


@pytest.mark.ci
@pytest.mark.parametrize("seconds", [1e9, 2.0], ids=["while writing", "at the end"])
def test_a_full_disk_is_one_clear_error_and_what_it_holds_comes_back(tmp_path, seconds):
    """A limit on the size of files stands for it; the error says where, why, and what becomes of it."""
    bag, limit = tmp_path / "bag", 100_000
    command = [sys.executable, "-c", textwrap.dedent(FULL_DISK), str(limit), str(seconds), str(bag)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1] / "support")}
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert result.returncode == 1, result.stderr
    assert result.stderr == ""
    (line,) = result.stdout.splitlines()
    assert str(bag) in line
    assert "File too large" in line
    assert mcap_file(bag).stat().st_size == limit
    found = salvaged(mcap_file(bag).read_bytes()).messages
    assert len(found) > 0.5 * limit / 170


def test_a_folder_that_cannot_be_written_is_refused_at_once(tmp_path):
    """Before anything moves."""
    with pytest.raises(OutputError):
        BagRecorder(Path("/proc/none/bag"), TOPICS)
    name = "x" * 300
    refusal(lambda: BagRecorder(tmp_path / name, TOPICS), "too long")
    assert list(tmp_path.iterdir()) == []


def test_the_samples_of_these_tests_follow_each_other():
    """200 Hz to the nanosecond."""
    times = [time for topic, _, time in samples(3, 3) if topic == "/joint_states"]
    assert times == [15_000_000, 20_000_000, 25_000_000]
    assert end(5)[2] == 5
