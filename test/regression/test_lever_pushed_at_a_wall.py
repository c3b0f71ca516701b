"""A lever whose goal stops as it meets a wall is not pushed on, by the compensation in Python and in C++."""

import math

import numpy as np
import pytest

import stop_on_contact as example
import stribeck as sb
from cpp_compensator import CppCompensator
from stribeck.model.joint_map import JointMap

HOLDS = {
    "where it is": lambda q, goal: q,
    "at its goal": lambda q, goal: goal,
    "ahead": lambda q, goal: q + 0.005,
}
"""Where the goal of the lever stops."""

STAYS = 1.0
"""How long the goal rests before it moves away from the wall [s]."""


class Both:
    """The compensator of the API; the one in C++ hears what its engine hears."""

    def __init__(self, folder):
        self.api = sb.Compensator(*example.files(folder), effort_meaning="motor", max_torque=15.0)
        engine = self.api._engine
        dynamics = self.api._dynamics
        self.cpp = CppCompensator(engine.model.joints, [JointMap()], engine.settings, dynamics)
        self.cpp.enable()
        self.difference = 0.0

    def torque(self, time, q, v, effort, goal, rate):
        """Torque of the Python one."""
        found = self.api.torque([q], [v], effort=[effort], q_goal=[goal], qd_goal=[rate], t=time)
        self.cpp.on_command(time, time, None, [goal], [rate], [math.nan])
        self.cpp.expire(time)
        other = self.cpp.on_state(time, time, None, [q], [v], [effort])
        self.difference = max(self.difference, float(np.abs(other - found).max()))
        return float(found[0])


@pytest.mark.ci
@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("hold", HOLDS)
def test_a_lever_whose_goal_stops_at_a_wall_is_not_pushed_on(tmp_path, monkeypatch, hold):
    """No torque from 20 ms after the stop on, a force below 1.5 N m in the end, and the torque is back as the goal moves away.

    What happened: a contact began with moving goals only. With a goal that stopped ahead of the lever, the torque of its arrival, 3 to 4.7 N m,
    pressed it on for good, and friction kept the wall pressed by as much; where the goal stopped behind it, the path reversed, by luck.
    """
    monkeypatch.setattr(example, "LEARNING", 5.0)
    loop, lever, stop, held, after, back = Both(tmp_path), example.Lever(), math.nan, 0.0, [], []
    inertia = example.ROTOR + example.MASS * example.LENGTH**2
    effort = 0.0
    for k in range(6000):
        time, q, v = example.PERIOD * k, lever.position, lever.velocity
        goal, rate, bend = example.wanted(time)
        if time > stop:
            away = max(time - stop - STAYS, 0.0)
            goal, rate, bend = held - 0.2 * away, -0.2 * (away > 0.0), 0.0
            if away > 0.3:
                break
        friction = loop.torque(time, q, v, effort, goal, rate)
        if time > stop + 0.02:
            (after if time < stop + STAYS else back).append((friction, lever.force))
        if math.isnan(stop) and time > example.LEARNING and loop.api.external_torque.contact.any():
            stop, held = time, HOLDS[hold](q, goal)
        weight = example.MASS * 9.81 * example.LENGTH * math.sin(q)
        effort = inertia * (bend + 225.0 * (goal - q) + 30.0 * (rate - v)) + weight + friction
        lever.advance(effort)
    pushed, forces = np.array(after).T
    assert len(after) > 400
    assert (pushed == 0.0).all()
    assert forces[-1] < 1.5
    assert np.array(back)[-1, 0] < -2.0
    assert loop.difference <= 1e-12 * 15.0
