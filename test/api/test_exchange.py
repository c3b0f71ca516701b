"""Another file of drives taken over while the robot moves, and the former one again."""

import numpy as np
import pytest

import stribeck as sb
from api_made import drive_made, file_of_joints
from stribeck.files.drives import Drives, write_drives

STEP = 0.002


def driven(loop, begin, seconds, change=None):
    """Torques along a slow motion with goals; ``change`` is called after a third of the time."""
    torques = []
    count = round(seconds / STEP)
    for k in range(count):
        t = begin + STEP * k
        q = 0.5 * t
        if change is not None and k == count // 3:
            change()
        torques.append(float(loop.torque([q], [0.5], q_goal=[q + 0.02], qd_goal=[0.5], t=t)[0]))
    return np.array(torques)


@pytest.fixture
def paths(tmp_path):
    """Two files of the same joint, the other with three times the Coulomb friction."""
    one = file_of_joints(tmp_path / "one.json", "elbow")
    other = tmp_path / "other.json"
    write_drives(other, Drives({"elbow": drive_made(friction_base=0.03)}))
    return one, other


def test_the_torque_of_another_file_is_taken_over_without_a_step_and_given_back(paths):
    """Between samples no more than a ramp over the ramp time allows; afterwards what the other file alone gives, then the first again."""
    one, other = paths
    loop, alone = (sb.Compensator(path, adapt=False) for path in (one, other))
    found = driven(loop, 0.0, 6.0, lambda: loop.exchange(other))
    expected = driven(alone, 0.0, 6.0)
    largest = np.abs(expected).max()
    later = found[500:]
    assert np.abs(np.diff(later)).max() < 1.5 * STEP / 0.5 * largest
    assert later.max() == pytest.approx(expected[-1])
    assert found[-1] == pytest.approx(expected[-1])
    first = found[900]
    assert first < 0.6 * found[-1]
    back = driven(loop, 6.0, 6.0, loop.revert)
    assert back[-1] == pytest.approx(first)
    assert np.abs(np.diff(back)).max() < 1.5 * STEP / 0.5 * largest


def test_a_file_that_cannot_be_taken_over_changes_nothing(paths, tmp_path):
    """Missing, of another joint, or never taken over: one line, and the torque goes on."""
    loop = sb.Compensator(paths[0], adapt=False)
    before = driven(loop, 0.0, 2.0)
    with pytest.raises(sb.StribeckError):
        loop.exchange(tmp_path / "nothing.json")
    two = file_of_joints(tmp_path / "two.json", "shoulder", "wrist")
    with pytest.raises(sb.StribeckError, match="elbow"):
        loop.exchange(two)
    with pytest.raises(sb.StribeckError, match="no previous file"):
        loop.revert()
    after = driven(loop, 2.0, 0.1)
    np.testing.assert_allclose(after, before[-1])


@pytest.mark.ci
def test_goals_of_servos_are_taken_over_without_a_step(paths):
    """The offset of a position servo goes over as its torque does."""
    one, other = paths
    loop, found = sb.Compensator(one, p_gain=400, adapt=False), []
    for k in range(2500):
        t = 0.002 * k
        if k == 1000:
            loop.exchange(other)
        found.append(float(loop.goal([0.2 * t], [0.2 * t + 0.01], t)[0]) - 0.2 * t)
    steps = np.abs(np.diff(found[600:]))
    assert found[-1] > found[900] > 0.01
    assert steps.max() < 3.0 * (found[-1] - found[900]) * 0.002 / 0.5
