"""The lever of the example stops at a wall that it touches, and at nothing else."""

import math

import pytest

import stribeck as sb
from stop_on_contact import WALL, Lever, files, moved


def compensator(tmp_path):
    drives, urdf = files(tmp_path)
    return sb.Compensator(drives, urdf, effort_meaning="motor", max_torque=15.0)


@pytest.mark.slow
def test_the_lever_stops_at_the_wall(tmp_path):
    """Within 100 ms, where it touched it, with a quarter of the torque and none in the end."""
    stopped = moved(compensator(tmp_path), Lever(), 18.0)
    assert 0.0 <= stopped.delay < 0.1
    assert abs(stopped.position - WALL) < 0.01
    pressed = moved(compensator(tmp_path), Lever(), 18.0, stops=False)
    assert math.isnan(pressed.position)
    assert stopped.force[0] < 0.25 * pressed.force[0]
    assert stopped.force[1] < 1.0


@pytest.mark.slow
def test_without_a_wall_it_never_stops(tmp_path):
    """With 30 % more and less friction than identified, and a mass 10 % wrong."""
    for friction, mass in ((0.7, 1.1), (1.3, 0.9)):
        found = moved(compensator(tmp_path), Lever(friction, mass, wall=math.inf), 16.0)
        assert math.isnan(found.position)
        assert found.force == (0.0, 0.0)
