"""The hand on the leader feels the wall that the follower touches, and nothing else."""

import math

import numpy as np
import pytest

from reflect_force import BEGIN, PERIOD, REFLECTED, coupled


def column(moments, name):
    return np.array([getattr(moment, name) for moment in moments])


def at(seconds):
    return round((BEGIN + seconds) / PERIOD)


@pytest.mark.slow
def test_the_hand_feels_the_wall(tmp_path):
    """Where the follower presses the wall, the hand bears 0.3 to 0.5 of its force; without reflection no more than in free motion, at a third more force."""
    felt, none = coupled(tmp_path), coupled(tmp_path, share=0.0)
    free = np.abs(column(felt, "hand")[at(0.0) : at(2.0)]).max()
    pressed, blind = felt[at(5.5)], none[at(5.5)]
    assert 0.3 * pressed.wall < -pressed.reflected < REFLECTED * pressed.wall
    assert pressed.hand > 2.0 * free
    assert blind.hand < free
    assert blind.wall > 1.3 * pressed.wall
    np.testing.assert_allclose(column(felt, "follower")[at(5.5)], 0.9, atol=0.01)


@pytest.mark.slow
def test_in_free_motion_nothing_is_reflected(tmp_path):
    """The follower follows within 10 mrad, with 20 % more friction and 5 % more mass than its files say."""
    moments = coupled(tmp_path, wall=math.inf)
    np.testing.assert_array_equal(column(moments, "reflected"), 0.0)
    apart = column(moments, "leader") - column(moments, "follower")
    assert np.abs(apart[at(0.0) :]).max() < 0.01


@pytest.mark.slow
def test_a_leader_that_is_let_go_at_the_wall_comes_to_rest(tmp_path):
    """No oscillation between leader and wall: after two seconds the leader rests, and so does the force of the wall."""
    moments = coupled(tmp_path, released=5.0, seconds=BEGIN + 10.0)
    leader, wall = (column(moments, name)[at(8.0) :] for name in ("leader", "wall"))
    assert np.ptp(leader) < 1e-3
    assert np.ptp(wall) < 0.1
    assert np.abs(column(moments, "leader")).max() < 1.2
