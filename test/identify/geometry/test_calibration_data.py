"""Files of poses: what is read, and what is refused in one line."""

import numpy as np
import pytest
from msgspec.structs import replace

from simulated_arms import MARKERS, irb120, true_arm, write_data
from stribeck.errors import ConfigError, RecordingError
from stribeck.files.robots import read_robot
from stribeck.identify.geometry.config import JointsFile, PoseFile, nominal_chain, read_calibration
from stribeck.identify.geometry.data import read_columns, read_poses

POSES = 12


@pytest.fixture(scope="module")
def config():
    return read_calibration(read_robot("irb120"))


@pytest.fixture
def folder(tmp_path):
    return write_data(tmp_path / "poses", true_arm().measure(POSES, seed=0))


def refused(folder, config, message):
    with pytest.raises(RecordingError, match=message) as caught:
        read_poses([folder], config, irb120())
    assert "\n" not in str(caught.value)


def with_data(config, **changes):
    return replace(config, data=replace(config.data, **changes))


def change(folder, name, function):
    path = folder / name
    np.savetxt(path, function(np.loadtxt(path)))


def test_files_are_read_in_si(folder, config):
    """Degrees and millimetres of the files are rad and m; files and folders are the same."""
    expected = true_arm().measure(POSES, seed=0)
    for paths in ([folder], sorted(folder.iterdir())):
        found = read_poses(paths, config, irb120())
        np.testing.assert_allclose(found.data.positions, expected.positions)
        np.testing.assert_allclose(found.data.points, expected.points)
        assert found.markers == MARKERS
        np.testing.assert_allclose(found.base, [2.5, 0.5, -0.5])


def test_folders_are_put_one_behind_the_other(folder, config, tmp_path):
    """Rows count through."""
    other = write_data(tmp_path / "more", true_arm().measure(5, seed=1))
    found = read_poses([folder, other], config, irb120())
    assert found.data.rows.tolist() == list(range(POSES + 5))


@pytest.mark.parametrize("separator", [", ", ";", " "])
def test_separators_comments_and_blank_lines_are_no_matter(tmp_path, separator):
    """As spreadsheets write them."""
    path = tmp_path / "t.csv"
    path.write_text(f"# x, y\n1{separator}2\n\n3{separator}4\n")
    assert read_columns(path, 2).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2\n", r"2 columns, expected 3"),
        ("1 2 3\n1 two 3\n", r"no numeric column '1'"),
        ("1 2 3\n1 2 nan\n", r"row 1: a number is missing or not finite"),
        ("1 2 inf\n", r"row 0: a number is missing or not finite"),
        ("# nothing\n", r"is empty"),
    ],
)
def test_damaged_tables_are_refused(tmp_path, text, message):
    """The wrong row or column is named."""
    (tmp_path / "t.txt").write_text(text)
    with pytest.raises(RecordingError, match=message):
        read_columns(tmp_path / "t.txt", 3)


def test_degrees_and_radians_are_told_apart(folder, config):
    """Radians in a file of degrees, and degrees where the YAML says rad."""
    change(folder, "measured_joints.txt", np.deg2rad)
    refused(folder, config, "too small for deg")
    change(folder, "measured_joints.txt", np.rad2deg)
    refused(
        folder,
        with_data(config, joints=JointsFile(file="measured_joints.txt", unit="rad")),
        "too large for rad",
    )


@pytest.mark.parametrize(("factor", "message"), [(1e3, "too far"), (1e-3, "too little")])
def test_millimetres_and_metres_are_told_apart(folder, config, factor, message):
    """Markers that move by kilometres or by less than a millimetre."""
    for marker in MARKERS:
        change(folder, f"measured_{marker}.txt", lambda table: factor * table)
    loose = "distance between|same positions"
    refused(folder, config, f"{message}|{loose}")


def test_one_marker_in_other_units_is_refused(folder, config):
    """One file in metres among files in millimetres."""
    change(folder, "measured_SMR_2.txt", lambda table: 1e-3 * table)
    refused(folder, config, "distance between SMR_1 and SMR_2 changes")


def test_files_of_different_length_are_refused(folder, config):
    """Both files and both numbers are named."""
    change(folder, "measured_SMR_3.txt", lambda table: table[:-1])
    refused(folder, config, r"measured_SMR_3.txt has 11 rows, .*measured_joints.txt has 12")


def test_rows_of_other_poses_are_refused(folder, config):
    """Markers whose distance changes from row to row."""
    change(folder, "measured_SMR_3.txt", lambda table: np.roll(table, 1, axis=0))
    refused(folder, config, "changes by .* mm from pose to pose")


def test_a_marker_given_twice_is_refused(folder, config):
    """Two files with the same point."""
    (folder / "measured_SMR_2.txt").write_text((folder / "measured_SMR_1.txt").read_text())
    refused(folder, config, "SMR_1 and SMR_2 have the same positions")


def test_markers_on_one_line_are_refused(folder, config):
    """The third marker between the others."""
    middle = 0.5 * (np.loadtxt(folder / "measured_SMR_1.txt") + np.loadtxt(folder / "measured_SMR_2.txt"))
    np.savetxt(folder / "measured_SMR_3.txt", middle)
    refused(folder, config, "lie on one line")


def test_missing_and_doubled_files_are_named(folder, config):
    """With the pattern that was looked for."""
    doubled = with_data(config, joints=JointsFile(file="measured_*.txt", unit="deg"))
    refused(folder, doubled, "several files match")
    (folder / "measured_SMR_2.txt").unlink()
    refused(folder, config, "no file measured_SMR_2.txt for SMR_2")
    refused(folder / "nowhere", config, "no such file or folder")


def test_a_base_that_moved_is_refused(folder, config):
    """The first row after the move is named."""

    def moved(table):
        table[9:] += 3.0
        return table

    change(folder, "measured_base_1.txt", moved)
    refused(folder, config, r"in row 9 the fixed point is 5\.20 mm")


def test_full_poses_are_four_points(folder, config, tmp_path):
    """A pose x y z qx qy qz qw is its origin and one lever along each of its axes."""
    joints = np.loadtxt(folder / "measured_joints.txt")
    half = np.sqrt(0.5)
    path = folder / "measured_pose.txt"
    poses = np.column_stack([100.0 * np.arange(36).reshape(12, 3), np.tile([0, 0, half, half], (12, 1))])
    np.savetxt(path, poses)
    only = with_data(config, markers={}, pose=PoseFile(file=path.name, unit="mm", lever=200.0))
    found = read_poses([folder], only, irb120())
    assert found.markers == ("pose_origin", "pose_x", "pose_y", "pose_z")
    along = found.data.points[3, 1:] - found.data.points[3, 0]
    np.testing.assert_allclose(along, [[0, 0.2, 0], [-0.2, 0, 0], [0, 0, 0.2]], atol=1e-12)
    assert len(joints) == len(found.data)
    np.savetxt(path, 2.0 * poses)
    refused(folder, only, "row 0: the quaternion has length 2")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("unit: deg", "unit: degree"), "unit: expected deg, rad, m, mm or a list of .*, found 'degree'"),
        (("lengths: mm", "lengths: inch"), "lengths: expected m or mm, found 'inch'"),
        (
            ("convention: standard", "convention: old"),
            "convention: expected modified or standard, found 'old'",
        ),
        (("      - [180, 72, 0, 0]\n", ""), "5 rows for 6 joints"),
        (("[0, 290, 0, -90]", "[0, 290, 0]"), r"dh\[0\]: expected 4 values, found 3"),
        (("gravity: [0, 0, -1]", "gravity: [0, 0, 0]"), "gravity must not be zero"),
        (
            ("extra: [gain,", "extra: [magic,"),
            r"extra\[0\]: expected bending, compliance, eccentricity or gain, found 'magic'",
        ),
        (("    base:", "    bases:"), "unknown key 'bases'"),
    ],
)
def test_configurations_that_say_something_else_are_refused(tmp_path, change, message):
    """A key, a unit or a number that is not valid, with what is."""
    text = read_robot("irb120").path.read_text()
    path = tmp_path / "arm.yaml"
    assert change[0] in text
    path.write_text(text.replace(*change, 1))
    robot = read_robot(str(path))
    with pytest.raises(ConfigError, match=message):
        nominal_chain(robot, read_calibration(robot), [])
