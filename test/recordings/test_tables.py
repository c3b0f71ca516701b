"""Tables of numbers: text, MAT, NPZ and bags give the same table, and the same messages."""

import subprocess
import sys

import numpy as np
import pytest

from stribeck.errors import RecordingError
from stribeck.recordings.bags.messages import (
    BENCH,
    JOINT_COMMANDS,
    JOINT_STATES,
    RawMessage,
    joint_state,
    text,
)
from stribeck.recordings.bags.storage import write_messages
from stribeck.recordings.tables.readers import find_tables, read_joint_states, read_table

savemat = pytest.importorskip("scipy.io").savemat

TIME = np.array([0.0, 0.1, 0.2])
ANGLES = np.array([[1.0, 4.0], [2.0, 5.0], [3.0, -6.5e-3]])


def text_file(folder, content, name="run.csv"):
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "content",
    [
        "time,a,b\n0,1,4\n0.1,2,5\n0.2,3,-6.5e-3\n",
        "\ufefftime ; a ; b\n0;1;4\n\n0.1;2;5\n# pause\n0.2;3;-6.5e-3\n",
        "# from the bench\ntime a b\n0 1 4\n0.1\t2 5\n0.2 3  -6.5e-3",
        "time; a, deg; b\n0,0;1,0;4\n0,1;2;5\n0,2;3;-6,5e-3\n",
        'time,"a",b,note\n0,1,4,start\n0.1,2,5,\n0.2,3,-6.5e-3,"end, at last"\n',
    ],
)
def test_text_in_every_separator_gives_the_same_columns(tmp_path, content):
    """Commas, semicolons, blanks; byte order mark, comments, blank lines, quotes, a column of text, decimal commas."""
    table = read_table(text_file(tmp_path, content))
    assert table.names[:3] in (("time", "a", "b"), ("time", "a, deg", "b"))
    np.testing.assert_array_equal(table.column("time"), TIME)
    np.testing.assert_array_equal(table.columns(1, 3), ANGLES)


def test_text_without_names_is_read_by_index(tmp_path):
    """Names of columns without a header are their indices; empty fields are NaN."""
    table = read_table(text_file(tmp_path, "0,1,4\n0.1,,5\n", "run.txt"))
    assert table.names == ("0", "1", "2")
    np.testing.assert_array_equal(table.columns(0, 2), [[0.0, 1.0], [0.1, np.nan]])


def test_names_with_blanks_in_them_leave_columns_to_their_indices(tmp_path):
    """A header of words between blanks that are not one for each column is passed over."""
    table = read_table(text_file(tmp_path, "time (s)  angle (rad)\n0 1\n1 2\n"))
    assert table.names == ("0", "1")


def test_mat_and_npz_give_arrays_by_name(tmp_path):
    """Arrays keep their shape; a row counts as a column; text and cells are left out."""
    savemat(tmp_path / "run.mat", {"time": TIME, "q": ANGLES, "title": "run"})
    np.savez(tmp_path / "run.npz", time=TIME, q=ANGLES)
    for name in ("run.mat", "run.npz"):
        table = read_table(tmp_path / name)
        assert set(table.arrays) == {"time", "q"}
        np.testing.assert_array_equal(table.column("time"), TIME)
        np.testing.assert_array_equal(table.array("q"), ANGLES)
        with pytest.raises(RecordingError, match=rf"{name}: q has 2 columns, expected one"):
            table.column("q")


def test_a_bag_gives_states_and_commands_in_the_order_of_time(tmp_path):
    """One row per message; what a message does not hold is NaN."""
    messages = [
        RawMessage(JOINT_COMMANDS, 1, joint_state(500_000_000, ["b"], [], [], [0.3])),
        RawMessage(JOINT_STATES, 2, joint_state(0, ["a", "b"], [1.0, 2.0], [0.1, 0.2])),
        RawMessage(JOINT_STATES, 3, joint_state(1_000_000_000, ["b", "a"], [4.0, 3.0])),
    ]
    write_messages(tmp_path / "bag", [JOINT_STATES, JOINT_COMMANDS], messages)
    table = read_table(tmp_path / "bag")
    np.testing.assert_array_equal(table.column("time"), [0.0, 0.5, 1.0])
    np.testing.assert_array_equal(table.column("a/position"), [1.0, np.nan, 3.0])
    np.testing.assert_array_equal(table.column("b/velocity"), [0.2, np.nan, np.nan])
    np.testing.assert_array_equal(table.column("b/effort_command"), [np.nan, 0.3, np.nan])
    states = read_joint_states(tmp_path / "bag", [JOINT_STATES])
    np.testing.assert_array_equal(states.column("time"), [0.0, 1.0])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "run.csv is empty"),
        ("time,a\n", "run.csv has no rows of data"),
        ("time,a\n0,1\n1\n", "run.csv: row 3 has 1 fields, expected 2"),
        ("0 1\n\n1 2 3\n", "run.csv: row 3 has 3 fields, expected 2"),
        ("a,a\n0,1\n", "run.csv has two columns named 'a'"),
        ("a;b\nx;y\n", "run.csv has no numeric column; it begins with 'a;b'"),
    ],
)
def test_damaged_text_is_refused_in_one_line(tmp_path, content, message):
    """The line names the file, and the row as an editor counts it."""
    with pytest.raises(RecordingError, match=message) as caught:
        read_table(text_file(tmp_path, content))
    assert "\n" not in str(caught.value)


def test_other_damage_is_refused_in_one_line(tmp_path):
    """Missing files, other suffixes, bytes that are not what the suffix says, bags without joint states."""
    (tmp_path / "run.csv").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "run.mat").write_bytes(b"no MAT file")
    (tmp_path / "run.npz").write_bytes(b"no NPZ file")
    np.savez(tmp_path / "objects.npz", a=np.array([{}], dtype=object))
    write_messages(tmp_path / "bag", [BENCH], [RawMessage(BENCH, 1, text("{}"))])
    for name, message in (
        ("run.csv", "not a text file"),
        ("run.mat", "not a MAT file"),
        ("run.npz", "not an NPZ file"),
        ("objects.npz", "not an NPZ file"),
        ("none.csv", "no such file"),
        ("run.xlsx", r"expected \.csv or \.txt or \.mat or \.npz or \.parquet or \.pt, or a bag"),
        ("bag", "no messages on /joint_states"),
    ):
        with pytest.raises(RecordingError, match=message) as caught:
            read_table(tmp_path / name)
        assert name in str(caught.value)


def test_a_missing_column_is_answered_with_those_there_are(tmp_path):
    """By name and by index; a column of text cannot be asked for."""
    table = read_table(text_file(tmp_path, "t,a,note\n0,1,x\n1,2,y\n"))
    with pytest.raises(RecordingError, match=r"run\.csv has no numeric column 'time'; found: t, a"):
        table.column("time")
    with pytest.raises(RecordingError, match=r"run\.csv has 3 columns, but columns 2 to 4 are needed"):
        table.columns(2, 5)
    with pytest.raises(RecordingError, match="no numeric column 'note'"):
        table.columns(1, 3)


def test_files_of_folders_are_found_once(tmp_path):
    """Folders give their tables and bags in the order of names; other files there are passed over."""
    for name in ("b.csv", "a.mat", "notes.md"):
        (tmp_path / name).touch()
    write_messages(tmp_path / "bag", [BENCH], [RawMessage(BENCH, 1, text("{}"))])
    assert [p.name for p in find_tables([tmp_path, tmp_path / "b.csv"])] == ["a.mat", "b.csv", "bag"]
    assert find_tables([tmp_path], [".csv"]) == [tmp_path / "b.csv"]
    assert find_tables([tmp_path / "notes.md", tmp_path / "b.csv"], ignore=[".md"]) == [tmp_path / "b.csv"]
    with pytest.raises(RecordingError, match=r"notes\.md: expected \.csv or a bag"):
        find_tables([tmp_path / "notes.md"], [".csv", ".mcap"])
    with pytest.raises(RecordingError, match=r"no recordings in .*: expected \.txt"):
        find_tables([tmp_path], [".txt"])
    with pytest.raises(RecordingError, match="no such file"):
        find_tables([tmp_path / "none"])


def test_reading_text_needs_no_scipy():
    """SciPy, which no robot needs, is imported for MAT files only."""
    code = "import sys, stribeck.recordings.tables.readers; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
