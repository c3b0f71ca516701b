"""Recordings of whole robots in other formats, and impossible ones: episodes, trajectories, controller states, other robots."""

from types import SimpleNamespace

import numpy as np
import pytest

from stribeck.cli.main import main
from stribeck.errors import RecordingError
from stribeck.files.goal_messages import FORWARD_COMMAND, TRAJECTORY, controller_goals, forward_goals
from stribeck.identify.robot.recordings import read_runs
from stribeck.identify.robot.tree import load_tree
from stribeck.recordings.bags.messages import JOINT_COMMANDS, JOINT_STATES, Topic, contract_types, joint_state
from stribeck.recordings.bags.recorder import BagRecorder
from stribeck.recordings.tables.readers import read_table
from swinging_leg import goals, recorded, write_model

TRAJECTORIES = Topic("/arm/joint_trajectory", TRAJECTORY)


@pytest.fixture(scope="module")
def leg(tmp_path_factory):
    """Model, and a run as npz."""
    folder = tmp_path_factory.mktemp("leg")
    return write_model(folder), recorded(folder, "run", 0.3)


def moved(content):
    """Arrays of two episodes of 4 s with goals 20 ms ahead of positions."""
    wanted = goals(800, 0.0)
    time = np.tile(np.arange(800) * 0.005, 2)
    position = np.tile(np.roll(wanted, 4, axis=0), (2, 1))
    episode = np.repeat([0, 1], 800)
    return {"timestamp": time, "observation.state": position, "action": np.tile(wanted, (2, 1))} | {
        "episode_index": episode,
        **content,
    }


def test_episodes_of_a_data_set_are_runs(leg, tmp_path):
    """Of LeRobot's columns, in degrees."""
    pyarrow = pytest.importorskip("pyarrow", reason="PyArrow is not installed")
    from pyarrow import parquet

    content = moved({})
    columns = {
        name: pyarrow.array((np.degrees(values) if values.ndim == 2 else values).tolist())
        for name, values in content.items()
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "file-000.parquet")
    runs = read_runs([tmp_path], load_tree(leg[0]), degrees=True)
    assert [run.name for run in runs] == ["file-000-episode-0", "file-000-episode-1"]
    np.testing.assert_allclose(runs[1].position, content["observation.state"][800:], atol=1e-12)


def test_episodes_in_one_npz_are_runs(leg, tmp_path):
    """The same columns without Parquet."""
    np.savez(tmp_path / "file.npz", **moved({}))
    assert [len(run.goal) for run in read_runs([tmp_path], load_tree(leg[0]))] == [800, 800]


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch, leg, capsys):
    """One line."""
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    path = tmp_path / "file.parquet"
    path.write_bytes(b"PAR1")
    assert main(["identify-robot", "--model", str(leg[0]), "--data", str(path)]) == 1
    assert "pip install 'stribeck[lerobot]'" in capsys.readouterr().err


def trajectory(stamp, points):
    """A JointTrajectory of hip and knee: (seconds, positions) for each point."""
    types = contract_types().types
    time, duration = types["builtin_interfaces/msg/Time"], types["builtin_interfaces/msg/Duration"]
    empty = np.zeros(0)
    listed = [
        types["trajectory_msgs/msg/JointTrajectoryPoint"](
            positions=np.array(positions),
            velocities=empty,
            accelerations=empty,
            effort=empty,
            time_from_start=duration(sec=int(after), nanosec=int(1e9 * (after % 1.0))),
        )
        for after, positions in points
    ]
    header = types["std_msgs/msg/Header"](stamp=time(sec=stamp // 10**9, nanosec=stamp % 10**9), frame_id="")
    message = types[TRAJECTORY](header=header, joint_names=["hip", "knee"], points=listed)
    return bytes(contract_types().serialize_cdr(message, TRAJECTORY))


def test_goals_of_trajectories_move_linearly_and_are_replaced(tmp_path):
    """From 0 to 1 rad in 2 s; after 1 s a second trajectory turns back from there."""
    with BagRecorder(tmp_path / "bag", (JOINT_STATES, TRAJECTORIES)) as recorder:
        first = trajectory(10**9, [(0.0, [0.0, 0.5]), (2.0, [1.0, 0.5])])
        recorder.write(TRAJECTORIES.name, first, 10**9)
        recorder.write(TRAJECTORIES.name, trajectory(2 * 10**9, [(1.0, [0.0, 0.5])]), 2 * 10**9)
        for k in range(300):
            stamp = 10**9 + k * 10**7 + 3 * 10**6
            recorder.write(JOINT_STATES.name, joint_state(stamp, ["hip", "knee"], [0.0, 0.5]), stamp)
    table = read_table(tmp_path / "bag")
    time, hip = table.arrays["time"], table.arrays["hip/position_command"]
    seen = np.isfinite(hip)
    wanted = np.interp(time[seen], [1.0, 2.0, 3.0], [0.0, 0.5, 0.0])
    np.testing.assert_allclose(hip[seen], wanted, atol=0.006)
    assert np.count_nonzero(seen) > 190


def array(values):
    """A Float64MultiArray."""
    types = contract_types().types
    layout = types["std_msgs/msg/MultiArrayLayout"](dim=[], data_offset=0)
    message = types[FORWARD_COMMAND](layout=layout, data=np.array(values))
    return bytes(contract_types().serialize_cdr(message, FORWARD_COMMAND))


def forwarded(folder, topics):
    """A bag of 4 s with joint states in the order knee, hip and arrays by topic, one every 20 ms, 1 ms before a state.

    It begins with a command of efforts in the order hip, knee.
    """
    wanted = goals(800, 0.3)
    arrays = {name: Topic(name, FORWARD_COMMAND) for name in topics}
    with BagRecorder(folder / "bag", (JOINT_STATES, JOINT_COMMANDS, *arrays.values())) as recorder:
        begin = joint_state(10**9 - 10**6, ["hip", "knee"], [], effort=[0.1, 0.2])
        recorder.write(JOINT_COMMANDS.name, begin, 10**9 - 2 * 10**6)
        for k in range(800):
            stamp = 10**9 + k * 5 * 10**6
            for name, values in topics.items() if k % 4 == 0 else ():
                recorder.write(name, array(values(wanted[k])), stamp - 10**6)
            position = wanted[max(k - 4, 0), ::-1]
            recorder.write(JOINT_STATES.name, joint_state(stamp, ["knee", "hip"], position.copy()), stamp)
    return folder / "bag", wanted[::4].repeat(4, axis=0)


def test_goals_of_a_forward_controller_take_the_names_of_the_joint_states(leg, tmp_path):
    """Arrays without names, beside those of velocities; held until the next one."""
    topics = {
        "/forward_position_controller/commands": lambda goal: goal[::-1],
        "/forward_velocity_controller/commands": lambda goal: 0.0 * goal,
        "/diagnosis": lambda goal: [1.0, 2.0],
    }
    bag, wanted = forwarded(tmp_path, topics)
    (run,) = read_runs([bag], load_tree(leg[0]))
    np.testing.assert_allclose(run.goal, wanted[: len(run.goal)], atol=1e-12)


def test_joints_of_a_forward_controller_can_be_given(leg, tmp_path):
    """Where its order is not that of the joint states; names that the model does not have are refused."""
    bag, wanted = forwarded(tmp_path, {"/arm/commands": lambda goal: goal})
    (run,) = read_runs([bag], load_tree(leg[0]), goal_joints=("hip", "knee"))
    np.testing.assert_allclose(run.goal, wanted[: len(run.goal)], atol=1e-12)
    with pytest.raises(RecordingError, match="has no joint ankle"):
        read_runs([bag], load_tree(leg[0]), goal_joints=("hip", "ankle"))


def test_arrays_of_other_lengths_or_of_several_controllers_are_no_goals():
    """Two topics that could be meant, or three values for two joints: none is taken."""
    rows = [(0.0, [0.1, 0.2])]
    assert forward_goals({"/a/commands": rows, "/b/commands": rows}, ["hip", "knee"]) == []
    assert forward_goals({"/a/commands": [(0.0, [0.1, 0.2, 0.3])]}, ["hip", "knee"]) == []
    assert forward_goals({"/a/commands": rows}, ["hip", "knee"]) == [(0.0, {"hip": 0.1, "knee": 0.2})]


def swapped(content):
    """The columns in another order; only the goals, as if another file's."""
    return content | {"des_dof_pos": content["des_dof_pos"][:, ::-1]}


def joined(content):
    """Two runs in one file, with times that go on; the second begins elsewhere."""
    position, goal = content["dof_pos"], content["des_dof_pos"]
    return content | {"dof_pos": np.concatenate([position[:700], position[:500:-1] + 0.4])[: len(goal)]}


def unrelated(content):
    """Goals of another robot, with the same number of joints."""
    time = content["time"]
    return content | {
        "des_dof_pos": 0.4 * np.stack([np.sign(np.sin(9.1 * time)), np.sin(7.7 * time)], axis=1)
    }


def limp(content):
    """Torque off from the middle on: the leg hangs."""
    position = content["dof_pos"].copy()
    position[800:] = [0.0, -0.6]
    return content | {"dof_pos": position}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (swapped, "it follows the goal of knee: the columns must be in the order hip, knee"),
        (unrelated, "does not follow its goal"),
        (joined, "does the file contain two runs?"),
        (limp, "its torque is off"),
    ],
)
def test_runs_that_cannot_be_used_are_named_and_refused(leg, tmp_path, capsys, change, words):
    """Goals of another robot or order, joined runs, torque off: the run is left out with its reason, in one line."""
    model, run = leg
    with np.load(run) as content:
        np.savez(tmp_path / "odd.npz", **change(dict(content)))
    assert (
        main(["identify-robot", "--model", str(model), "--data", str(tmp_path / "odd.npz"), "--quiet"]) == 1
    )
    error = capsys.readouterr().err.strip()
    assert words in error
    assert "\n" not in error


def test_a_model_without_a_recorded_joint_is_refused(leg, tmp_path, capsys):
    """Its joints and theirs are counted."""
    model, run = leg
    text = model.read_text()
    cut = text[: text.index('<body name="shank"')] + "</body></body></worldbody></mujoco>"
    (tmp_path / "short.xml").write_text(cut)
    assert main(["identify-robot", "--model", str(tmp_path / "short.xml"), "--data", str(run)]) == 1
    assert "contains 2 joints, but short.xml has 1: hip" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--degrees"], "all positions are within"),
        (["--exclude", "hip,knee"], "are excluded: leave at least one"),
    ],
)
def test_degrees_of_radians_and_no_joint_at_all_are_refused(leg, capsys, options, words):
    """What happened: tracebacks from the solver and from JAX."""
    model, run = leg
    assert main(["identify-robot", "--model", str(model), "--data", str(run), "--quiet", *options]) == 1
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("field", ["reference", "desired"])
def test_goals_of_controller_states_are_read(field):
    """Of both generations of the message."""
    stamp = SimpleNamespace(sec=3, nanosec=500_000_000)
    state = SimpleNamespace(
        header=SimpleNamespace(stamp=stamp),
        joint_names=["hip", "knee"],
        **{field: SimpleNamespace(positions=[0.1, 0.2])},
    )
    assert controller_goals(state) == (3.5, {"hip": 0.1, "knee": 0.2})
