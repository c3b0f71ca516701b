"""Poses in bags: rests are found, trackers read, and an arm calibrated as from files."""

import numpy as np
import pytest

from bags import Bag, header, joint_state, message
from simulated_arms import MARKERS, irb120, true_arm
from stribeck.errors import RecordingError
from stribeck.files.robots import read_robot
from stribeck.identify.geometry.bag_poses import read_rest_rows, rests_of
from stribeck.identify.geometry.config import read_calibration
from stribeck.identify.geometry.data import read_poses
from stribeck.session.poses import PosesFile

RATE, NOISE = 50.0, 5e-5


def point(time, values):
    position = message("geometry_msgs/Point", x=values[0], y=values[1], z=values[2])
    return message("geometry_msgs/PointStamped", header=header(time), point=position)


def visited(arm, poses, *, seed=0, rest=0.8, silent=()):
    """A bag of a visit: states with noise of the encoders, and three markers at the true places."""
    content = PosesFile(1, irb120().names, tuple(map(tuple, poses)), speed=3.0, acceleration=20.0, rest=rest)
    play, rng, bag = content.to_play("visit"), np.random.default_rng(seed), Bag()
    time = np.arange(0.0, play.duration, 1.0 / RATE)
    motion = np.stack([play.joint_goals[name](time) for name in content.joints], axis=1)
    points = arm.model.predict(motion, arm.values)
    for k, at in enumerate(1.0 + time):
        bag.add(
            at,
            "/joint_states",
            joint_state(at, list(content.joints), motion[k] + 1e-5 * rng.standard_normal(6)),
        )
        for m, name in enumerate(MARKERS):
            if name not in silent:
                bag.add(at, f"/tracker/{name}", point(at, points[k, m] + NOISE * rng.standard_normal(3)))
    return bag


def topics(folder, **changes):
    """The configuration of the IRB 120 with topics in place of files."""
    text = "\n".join(
        [
            "schema: 1",
            "name: irb120",
            "joints: [joint_1, joint_2, joint_3, joint_4, joint_5, joint_6]",
            "calibration:",
            "  data:",
            "    markers:",
            *(f"      {name}: {{topic: /tracker/{name}}}" for name in MARKERS),
            "  nominal:",
            "    lengths: mm",
            "    angles: deg",
            "    dh: [[0, 290, 0, -90], [-90, 0, 270, 0], [0, 0, 70, -90], [0, 302, 0, 90], [0, 0, 0, -90], [180, 72, 0, 0]]",
        ]
    )
    path = folder / "irb120.yaml"
    path.write_text(text + "\n")
    return path


def test_rests_are_where_nothing_moves():
    """Between two moves, without the time of settling; short stops and the moves are none."""
    time = np.arange(0.0, 5.0, 0.01)
    position = np.interp(time, [0, 1, 1.5, 3.0, 3.5, 3.7, 4.2, 5.0], [0, 0, 1, 1, 2, 2, 3, 3])[:, None]
    found = rests_of(time, position + 1e-4 * np.sin(50 * time)[:, None])
    assert len(found) == 3
    for (begin, end), (earliest, latest) in zip(found, [(0, 1), (1.5, 3.0), (4.2, 5.0)], strict=True):
        assert begin >= earliest + 0.19
        assert end <= latest + 0.02


def test_a_bag_gives_the_rows_of_files(tmp_path):
    """One row for each pose, joints within the encoders' noise, markers within the tracker's over the root of its samples."""
    arm = true_arm()
    poses = np.random.default_rng(4).uniform(-1.5, 1.5, (6, 6))
    visited(arm, poses).write(tmp_path / "bag")
    robot = read_robot(str(topics(tmp_path)))
    measured = read_poses([tmp_path / "bag"], read_calibration(robot), irb120())
    assert measured.markers == MARKERS
    np.testing.assert_allclose(measured.data.positions, poses, atol=2e-5)
    expected = arm.model.predict(poses, arm.values)
    assert np.sqrt(np.mean((measured.data.points - expected) ** 2)) < 0.5 * NOISE


def test_full_poses_and_frames(tmp_path):
    """Poses with quaternions of either sign are one pose; on /tf the frame is chosen."""
    bag = Bag()
    for k in range(60):
        at, sign = 1.0 + k / RATE, (-1.0) ** k
        bag.add(at, "/joint_states", joint_state(at, ["a"], [0.3]))
        place = message("geometry_msgs/Vector3", x=0.1, y=0.2, z=0.3)
        turn = message("geometry_msgs/Quaternion", x=0.0, y=0.0, z=0.6 * sign, w=0.8 * sign)
        transform = message("geometry_msgs/Transform", translation=place, rotation=turn)
        for child in ("tool", "other"):
            one = message(
                "geometry_msgs/TransformStamped", header=header(at), child_frame_id=child, transform=transform
            )
            bag.add(at, "/tf", message("tf2_msgs/TFMessage", transforms=[one]))
    path = bag.write(tmp_path / "bag")
    positions, (poses,) = read_rest_rows(path, ["a"], [("/tf", "tool")])
    assert positions.tolist() == [[0.3]]
    np.testing.assert_allclose(np.abs(poses[0]), [0.1, 0.2, 0.3, 0.0, 0.0, 0.6, 0.8])


@pytest.mark.parametrize(
    ("joints", "topic", "said"),
    [
        (["a", "z"], "/tracker", "no joint states contain z; found: a"),
        (["a"], "/none", r"no messages on /none; topics in the bag: /joint_states"),
        (["a"], "/tracker", "never at rest while"),
    ],
)
def test_what_a_bag_lacks_is_named(tmp_path, joints, topic, said):
    """Joints, topics, rests: one line."""
    bag = Bag()
    for k in range(100):
        at = 1.0 + k / RATE
        bag.add(at, "/joint_states", joint_state(at, ["a"], [0.5 * k / RATE]))
        bag.add(at, "/tracker", point(at, (0.0, 0.0, 0.0)))
    with pytest.raises(RecordingError, match=said):
        read_rest_rows(bag.write(tmp_path / "bag"), joints, [(topic, "")])
