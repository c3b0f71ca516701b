"""Recordings from text, MAT files and bags, and mistakes that can be noticed."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import io as scipy_io

from moving_arms import JOINTS, arm, recording
from stribeck.errors import ConfigError, RecordingError
from stribeck.files.robots import read_robot
from stribeck.identify.arm.config import identification_config
from stribeck.identify.arm.recordings import read_arm_recordings
from stribeck.recordings.bags.messages import JOINT_STATES, RawMessage, Topic, joint_state
from stribeck.recordings.bags.storage import write_messages

HEAD = """\
schema: 1
name: test
joints: [base, shoulder, elbow]
identification:
  protocol: {moving: 0.1}
  recording:
"""
COLUMNS = """\
    format: csv
    time: {column: 0}
    position: {columns: [1, 4]}
    velocity: {columns: [4, 7]}
    effort: {columns: [7, 10]}
"""


def form_of(tmp_path, text):
    path = tmp_path / "robot.yaml"
    path.write_text(HEAD + text)
    return identification_config(read_robot(str(path))).recording


@pytest.fixture
def run(tmp_path):
    (tmp_path / "urdf").mkdir()
    return recording(arm(tmp_path / "urdf"), seconds=1.0)


def table(run):
    return np.column_stack([run.time, run.position, run.velocity, run.effort])


def write_csv(path, columns, head="", delimiter=","):
    np.savetxt(path, columns, delimiter=delimiter, header=head, comments="", fmt="%.17g")
    return path


@pytest.mark.parametrize(
    ("head", "delimiter"),
    [("", ","), (",".join("abcdefghij"), ","), ("", " "), (";".join("abcdefghij"), ";")],
)
def test_text_in_any_of_its_forms(tmp_path, run, head, delimiter):
    """With or without a line of names, separated by commas, semicolons or blanks."""
    path = write_csv(tmp_path / "run.csv", table(run), head, delimiter)
    (found,) = read_arm_recordings([path], form_of(tmp_path, COLUMNS), JOINTS, "rotary")
    assert found.name == "run"
    for name in ("time", "position", "velocity", "effort"):
        assert np.array_equal(getattr(found, name), getattr(run, name))


def test_signals_in_files_of_their_own(tmp_path, run):
    """One run a folder, the sampling rate given, other files beside them left alone."""
    text = """\
    format: csv
    rate: 500
    position: {file: pos.csv, columns: [0, 3], unit: deg}
    effort: {file: cur.csv, columns: [0, 3], scale: [2, 3, 4]}
"""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_csv(tmp_path / name / "pos.csv", np.rad2deg(run.position))
        write_csv(tmp_path / name / "cur.csv", run.effort / [2, 3, 4])
        (tmp_path / name / "notes.txt").write_text("nothing")
    found = read_arm_recordings([tmp_path / "a", tmp_path / "b"], form_of(tmp_path, text), JOINTS, "rotary")
    assert [one.name for one in found] == ["a", "b"]
    assert np.allclose(found[1].position, run.position)
    assert np.allclose(found[1].effort, run.effort)
    assert found[0].time[1] == 0.002
    (tmp_path / "a" / "cur.csv").unlink()
    with pytest.raises(RecordingError, match=r"cur\.csv missing"):
        read_arm_recordings([tmp_path / "a"], form_of(tmp_path, text), JOINTS, "rotary")


def test_motor_side_is_brought_to_the_joints(tmp_path, run):
    """A coupled gear matrix: positions through its inverse, torques through its transpose; power is kept."""
    gears = np.array([[1000.0, 0, 0], [0, 800.0, 0], [0, 300.0, -500.0]])
    offset = np.array([0.0, 0.5, -0.25])
    motor = np.column_stack(
        [
            run.time,
            (run.position - offset) @ gears.T,
            run.velocity @ gears.T,
            run.effort @ np.linalg.inv(gears),
        ]
    )
    text = COLUMNS + f"    gears: {gears.tolist()}\n    offset: {offset.tolist()}\n"
    path = write_csv(tmp_path / "run.csv", motor)
    (found,) = read_arm_recordings([path], form_of(tmp_path, text), JOINTS, "rotary")
    assert np.allclose(found.position, run.position)
    assert np.allclose(found.effort, run.effort)
    power = [np.sum(r.velocity * r.effort, axis=1) for r in (found, run)]
    assert np.allclose(*power)
    with pytest.raises(RecordingError, match="or that of the motor"):
        read_arm_recordings([path], form_of(tmp_path, COLUMNS), JOINTS, "rotary")


def test_mat_files(tmp_path, run):
    """Variables by name, a scale that is a variable; a name that is not there is refused with those that are."""
    scipy_io.savemat(
        tmp_path / "run.mat", {"t": run.time, "q": run.position, "u": run.effort / 7.0, "g": 7.0}
    )
    text = "    format: mat\n    time: {variable: t}\n    position: {variable: q}\n    effort: {variable: u, scale: g}\n"
    (found,) = read_arm_recordings([tmp_path / "run.mat"], form_of(tmp_path, text), JOINTS, "rotary")
    assert np.allclose(found.effort, run.effort)
    assert np.allclose(found.time, run.time)
    with pytest.raises(RecordingError, match="time has 3 columns"):
        read_arm_recordings(
            [tmp_path / "run.mat"],
            form_of(tmp_path, text.replace("variable: t", "variable: q")),
            JOINTS,
            "rotary",
        )
    wrong = text.replace("variable: u", "variable: w")
    with pytest.raises(RecordingError, match="no numeric column 'w'; found: t, q, u, g"):
        read_arm_recordings([tmp_path / "run.mat"], form_of(tmp_path, wrong), JOINTS, "rotary")
    (tmp_path / "run.mat").write_bytes(b"no MAT file")
    with pytest.raises(RecordingError, match="not a MAT file"):
        read_arm_recordings([tmp_path / "run.mat"], form_of(tmp_path, text), JOINTS, "rotary")


def write_bag(path, run, names=JOINTS, effort=True):
    order = [JOINTS.index(name) for name in names]
    messages = []
    for k, time in enumerate(run.time):
        stamp = round(1e9 * (100.0 + time))
        tau = run.effort[k, order] if effort else np.full(3, np.nan)
        data = joint_state(stamp, names, run.position[k, order], run.velocity[k, order], tau)
        messages.append(RawMessage(JOINT_STATES, stamp, data))
    write_messages(path, [JOINT_STATES], messages)


def test_bags_by_joint_names(tmp_path, run):
    """Joint states in another order, by their header stamps."""
    write_bag(tmp_path / "bags" / "one", run, names=JOINTS[::-1])
    form = form_of(tmp_path, "    format: bag\n")
    (found,) = read_arm_recordings([tmp_path / "bags"], form, JOINTS, "rotary")
    assert np.allclose(found.effort, run.effort)
    assert np.allclose(found.time - found.time[0], run.time, atol=1e-6)
    with pytest.raises(RecordingError, match="no joint wrist on /joint_states; found: elbow, shoulder, base"):
        read_arm_recordings([tmp_path / "bags"], form, ("base", "shoulder", "wrist"), "rotary")


def test_bags_without_torque_are_refused(tmp_path, run):
    write_bag(tmp_path / "one", run, effort=False)
    with pytest.raises(RecordingError, match="can be identified only from torques"):
        read_arm_recordings([tmp_path / "one"], form_of(tmp_path, "    format: bag\n"), JOINTS, "rotary")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda r: replace(r, velocity=np.rad2deg(r.velocity)), r"velocity of base is 57\.3 times"),
        (lambda r: replace(r, velocity=-r.velocity), "is -1 times"),
        (lambda r: replace(r, effort=np.zeros_like(r.effort)), "all torques are zero"),
        (
            lambda r: replace(r, effort=np.where(r.effort == r.effort.max(), np.nan, r.effort)),
            "effort is missing or not finite in row",
        ),
        (lambda r: replace(r, time=r.time[::-1]), "time does not increase from row 0 to row 1"),
        (lambda r: replace(r, position=1e3 * r.position), "degrees"),
    ],
)
def test_mistakes_that_can_be_noticed(tmp_path, run, spoil, said):
    """Degrees, motor side, dead channels, clocks that go back: one line, and no fit."""
    path = write_csv(tmp_path / "run.csv", table(spoil(run)))
    with pytest.raises(RecordingError, match=said) as caught:
        read_arm_recordings([path], form_of(tmp_path, COLUMNS), JOINTS, "rotary")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("a,b\n1,x\n", "has 2 columns, but columns 1 to 3 are needed"),
        ("1,2,3\n4,5,6\n", "has 3 columns, but"),
    ],
)
def test_text_that_is_no_recording(tmp_path, content, said):
    path = tmp_path / "run.csv"
    path.write_text(content)
    with pytest.raises(RecordingError, match=said):
        read_arm_recordings([path], form_of(tmp_path, COLUMNS), JOINTS, "rotary")


def test_files_that_are_not_there(tmp_path):
    form = form_of(tmp_path, COLUMNS)
    with pytest.raises(RecordingError, match="no such file"):
        read_arm_recordings([tmp_path / "run.csv"], form, JOINTS, "rotary")
    (tmp_path / "empty").mkdir()
    with pytest.raises(RecordingError, match=r"expected \.csv or \.txt"):
        read_arm_recordings([tmp_path / "empty"], form, JOINTS, "rotary")
    (tmp_path / "run.zip").touch()
    with pytest.raises(RecordingError, match=r"run\.zip: expected \.csv or \.txt"):
        read_arm_recordings([tmp_path / "run.zip"], form, JOINTS, "rotary")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("    format: xls\n", "format: expected bag, csv, mat or npz, found 'xls'"),
        ("    format: csv\n    rate: 5\n", "position, effort missing"),
        (COLUMNS + "    rate: 100\n", "either time or rate"),
        (
            COLUMNS.replace("columns: [7, 10]", "scale: 2"),
            "effort: give column, or columns: [first, last + 1]",
        ),
        (
            COLUMNS.replace("columns: [7, 10]", "columns: [7]"),
            "effort: columns: expected [first, last + 1], or names; found [7]",
        ),
        (
            COLUMNS.replace("[7, 10]}", "[7, 10], unit: furlong}"),
            "turn or us, found 'furlong'",
        ),
        (COLUMNS + "    gears: [[1, 2], [3]]\n", "gears: expected a square matrix, as a list of rows"),
        (COLUMNS + "    gear: 3\n", "unknown key 'gear'"),
    ],
)
def test_descriptions_that_are_refused(tmp_path, text, said):
    with pytest.raises(ConfigError) as caught:
        form_of(tmp_path, text)
    assert said in str(caught.value)


BAG = """\
    format: bag
    position: {topic: /drives, names: name, values: position, unit: deg, sign: [1, -1, 1]}
    velocity: {topic: /drives, names: name, values: velocity, unit: deg/s, sign: [1, -1, 1]}
    effort: {topic: /currents, names: name, values: effort, unit: mA, scale: [2, 3, -4]}
"""


def test_units_scales_and_signs_count_for_bags_too(tmp_path, run):
    """Degrees, and currents on a topic of their own at other times than the states."""
    sign, gain = np.array([1, -1, 1]), np.array([2.0, 3.0, -4.0])
    drives, currents = Topic("/drives", JOINT_STATES.type), Topic("/currents", JOINT_STATES.type)
    messages = []
    for k, time in enumerate(run.time):
        stamp = round(1e9 * (100.0 + time))
        angles, rates = np.rad2deg(sign * run.position[k]), np.rad2deg(sign * run.velocity[k])
        messages.append(RawMessage(drives, stamp, joint_state(stamp, JOINTS, angles, rates)))
        stamp += 1_000_000
        shifted = [np.interp(time + 1e-3, run.time, run.effort[:, j]) for j in range(3)]
        data = joint_state(stamp, JOINTS, [], [], 1e3 * np.array(shifted) / gain)
        messages.append(RawMessage(currents, stamp, data))
    write_messages(tmp_path / "bag", [drives, currents], messages)
    (found,) = read_arm_recordings([tmp_path / "bag"], form_of(tmp_path, BAG), JOINTS, "rotary")
    assert np.allclose(found.position, run.position[1:])
    assert np.allclose(found.velocity, run.velocity[1:])
    off = np.abs(found.effort - run.effort[1:])  # friction jumps where a joint reverses
    assert np.quantile(off, 0.99) < 1e-3 * np.abs(run.effort).max()


def test_a_default_place_may_have_a_unit(tmp_path, run):
    """Sources that name no topic are fields of the joint states."""
    write_bag(tmp_path / "one", replace(run, position=np.rad2deg(run.position), effort=run.effort / 2.0))
    text = "    format: bag\n    position: {unit: deg}\n    effort: {scale: 2}\n"
    (found,) = read_arm_recordings([tmp_path / "one"], form_of(tmp_path, text), JOINTS, "rotary")
    assert np.allclose(found.position, run.position)
    assert np.allclose(found.effort, run.effort)
    with pytest.raises(RecordingError, match="degrees"):
        read_arm_recordings([tmp_path / "one"], form_of(tmp_path, "    format: bag\n"), JOINTS, "rotary")


def test_arm_and_gripper_may_publish_on_one_topic(tmp_path, run):
    """Messages are merged by names, also where the arm's own joints come from two drivers at other times."""
    messages = []
    for k, time in enumerate(run.time):
        for names, late in ((JOINTS[:2], 0), (JOINTS[2:], 500_000), (("gripper",), 700_000)):
            stamp = round(1e9 * time) + late
            index = [JOINTS.index(name) for name in names if name in JOINTS]
            at = time + 1e-9 * late
            state = [
                [np.interp(at, run.time, values[:, j]) for j in index] or [float(k)]
                for values in (run.position, run.velocity, run.effort)
            ]
            messages.append(RawMessage(JOINT_STATES, stamp, joint_state(stamp, names, *state)))
    write_messages(tmp_path / "bag", [JOINT_STATES], messages)
    form = form_of(tmp_path, "    format: bag\n")
    (found,) = read_arm_recordings([tmp_path / "bag"], form, JOINTS, "rotary")
    assert len(found.time) == len(run.time) - 1
    assert np.allclose(found.position, run.position[1:], atol=1e-3)
    with pytest.raises(RecordingError, match="found: base, shoulder, elbow, gripper"):
        read_arm_recordings([tmp_path / "bag"], form, ("wrist",), "rotary")


def test_two_publishers_of_one_joint_are_refused(tmp_path, run):
    """Two positions at one time cannot both be true."""
    messages = [
        RawMessage(JOINT_STATES, k, joint_state(round(1e9 * run.time[k]), JOINTS, q, [], run.effort[k]))
        for k in range(len(run.time))
        for q in (run.position[k], run.position[k] + 0.1)
    ]
    write_messages(tmp_path / "bag", [JOINT_STATES], messages)
    with pytest.raises(
        RecordingError, match=r"position of base has two values, .* do two publishers send the same joint"
    ):
        read_arm_recordings([tmp_path / "bag"], form_of(tmp_path, "    format: bag\n"), JOINTS, "rotary")


def test_gaps_of_one_signal_are_left_out_and_not_bridged(tmp_path, run):
    """Efforts that are missing for a while: no row is made of them."""
    states, drives = JOINT_STATES, Topic("/drives", JOINT_STATES.type)
    messages = []
    for k, time in enumerate(run.time):
        stamp = round(1e9 * time)
        messages.append(RawMessage(states, stamp, joint_state(stamp, JOINTS, run.position[k])))
        if not 0.4 < time < 0.7:
            messages.append(RawMessage(drives, stamp, joint_state(stamp, JOINTS, [], [], run.effort[k])))
    write_messages(tmp_path / "bag", [states, drives], messages)
    text = "    format: bag\n    effort: {topic: /drives, names: name, values: effort}\n"
    (found,) = read_arm_recordings([tmp_path / "bag"], form_of(tmp_path, text), JOINTS, "rotary")
    assert not np.any((found.time > 0.401) & (found.time < 0.699))
    assert np.any(found.time < 0.4)
    assert np.any(found.time > 0.7)


def test_a_velocity_that_is_nan_once_stays_measured_elsewhere(tmp_path, run):
    """The derivative of the position stands in for the missing sample alone."""
    velocity = run.velocity.copy()
    velocity[100, 1] = np.nan
    write_bag(tmp_path / "one", replace(run, velocity=velocity))
    (found,) = read_arm_recordings(
        [tmp_path / "one"], form_of(tmp_path, "    format: bag\n"), JOINTS, "rotary"
    )
    known = ~np.isnan(velocity)
    assert np.array_equal(found.velocity[known], velocity[known])
    assert np.isclose(found.velocity[100, 1], run.velocity[100, 1], atol=0.05)


def test_a_recording_at_rest_is_called_that(tmp_path, run):
    """Noise of position and velocity says nothing of their units."""
    rng = np.random.default_rng(0)
    still = replace(
        run,
        position=run.position[0] + 1e-4 * rng.standard_normal(run.position.shape),
        velocity=1e-3 * rng.standard_normal(run.velocity.shape),
    )
    path = write_csv(tmp_path / "run.csv", table(still))
    with pytest.raises(RecordingError, match=r"no joint moves by more than 0\.00\d+ rad"):
        read_arm_recordings([path], form_of(tmp_path, COLUMNS), JOINTS, "rotary")


def test_a_gap_is_no_wrong_unit_of_the_velocity(tmp_path, run):
    """Nothing is known of the motion in a gap, so the velocity is not compared with the positions around it."""
    later = np.where(np.arange(len(run.time)) < len(run.time) // 2, 0.0, 3.0)
    path = write_csv(tmp_path / "run.csv", table(replace(run, time=run.time + later)))
    (found,) = read_arm_recordings([path], form_of(tmp_path, COLUMNS), JOINTS, "rotary")
    assert len(found.time) == len(run.time)


def test_a_joint_at_rest_beside_one_that_moves_has_no_wrong_velocity(tmp_path, run):
    """Its noise is not compared with its velocity."""
    rng = np.random.default_rng(0)
    position, velocity = run.position.copy(), run.velocity.copy()
    position[:, 0] = 1e-3 * rng.standard_normal(len(position))
    velocity[:, 0] = 0.0
    path = write_csv(tmp_path / "run.csv", table(replace(run, position=position, velocity=velocity)))
    (found,) = read_arm_recordings([path], form_of(tmp_path, COLUMNS), JOINTS, "rotary")
    assert np.array_equal(found.velocity, velocity)


def test_columns_by_name_with_a_placeholder_for_the_joint(tmp_path, run):
    """Columns in any order; a list of names does the same."""
    names = ["t", *(f"{j}.{s}" for s in ("q", "u") for j in JOINTS[::-1])]
    path = write_csv(
        tmp_path / "run.csv",
        np.column_stack([run.time, run.position[:, ::-1], run.effort[:, ::-1]]),
        ",".join(names),
    )
    text = (
        "    format: csv\n    time: {column: t}\n    position: {column: '{joint}.q'}\n"
        "    effort: {columns: [base.u, shoulder.u, elbow.u]}\n"
    )
    (found,) = read_arm_recordings([path], form_of(tmp_path, text), JOINTS, "rotary")
    assert np.array_equal(found.position, run.position)
    assert np.array_equal(found.effort, run.effort)
