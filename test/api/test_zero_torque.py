"""Zero-torque mode: a hand guides a lever that bears its own weight and part of its friction."""

import math

import numpy as np
import pytest

import stribeck as sb
from stop_on_contact import COULOMB, LENGTH, MASS, PERIOD, ROTOR, VISCOUS, files

HAND, DAMPING = 400.0, 20.0
"""Stiffness and damping of the hand [N m/rad, N m s/rad]."""

START = 0.7
"""Where the lever is at first [rad]."""


class Lever:
    """A lever with true friction per identified friction and true mass per that of the URDF."""

    def __init__(self, friction=1.0, mass=1.0, position=START):
        self.q, self.v, self.friction, self.mass = position, 0.0, friction, mass * MASS
        self.inertia = ROTOR + self.mass * LENGTH**2

    def advance(self, torque, push=0.0):
        dt = PERIOD / 10
        for _ in range(10):
            weight = self.mass * 9.81 * LENGTH * math.sin(self.q)
            free = self.v + (torque + push - weight) / self.inertia * dt
            free /= 1.0 + self.friction * VISCOUS / self.inertia * dt
            self.v = math.copysign(max(abs(free) - self.friction * COULOMB / self.inertia * dt, 0.0), free)
            self.q += self.v * dt


def compensator(tmp_path, **settings):
    drives, urdf = files(tmp_path)
    return sb.Compensator(drives, urdf, effort_meaning="motor", max_torque=15.0, **settings)


def guided(loop, lever, seconds, begin=0.0, hand=None, zero=True):
    """Positions and torques of the hand; ``hand`` gives its position [rad]. Without ``zero`` gravity alone is compensated."""
    torque, positions, forces = MASS * 9.81 * LENGTH * math.sin(lever.q), [], []
    for k in range(round(seconds / PERIOD)):
        time = begin + PERIOD * k
        bears = MASS * 9.81 * LENGTH * math.sin(lever.q)
        mode = float(loop.zero_torque([lever.q], [lever.v], effort=[torque], t=time)[0]) if zero else bears
        push = 0.0
        if hand is not None:
            goal, later = hand(time - begin), hand(time - begin + PERIOD)
            push = HAND * (goal - lever.q) + DAMPING * ((later - goal) / PERIOD - lever.v)
        lever.advance(torque, push)
        torque = mode
        positions.append(lever.q)
        forces.append(push)
    return np.array(positions), np.array(forces)


@pytest.mark.ci
@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("mass", [0.9, 1.0, 1.1])
@pytest.mark.parametrize("friction", [0.0, 1.0])
def test_nothing_drops_at_the_start_and_nothing_drifts(tmp_path, mass, friction):
    """With 10 % more or less weight than the URDF says, with and without friction: 5 mrad in the first second, 1 mrad in ten more."""
    loop, lever = compensator(tmp_path), Lever(friction, mass)
    positions, _ = guided(loop, lever, 11.0)
    assert np.abs(positions[:500] - START).max() < 0.005
    assert np.abs(positions[500:] - positions[500]).max() < 0.001
    heavy = mass != 1.0 and friction == 0.0
    assert loop.holding == (("lever",) if heavy else ())


@pytest.mark.slow
def test_a_hand_guides_with_less_force(tmp_path):
    """Before learning at most 0.85 of the force under gravity compensation, after motions with goals half of it, with 5 % less weight."""
    hand = lambda t: START + 0.25 * (1.0 - math.cos(1.5 * max(t - 1.0, 0.0)))  # noqa: E731

    def force(loop, zero=True, begin=0.0):
        _, forces = guided(loop, Lever(mass=0.95), 9.0, begin, hand, zero)
        return np.sqrt(np.mean(forces[1000:] ** 2))

    plain = force(None, zero=False)
    loop = compensator(tmp_path)
    assert force(loop) < 0.85 * plain
    lever, torque = Lever(mass=0.95, position=0.0), 0.0
    loop.restart()
    for k in range(5000):
        time, w = 20.0 + PERIOD * k, 2.5
        goal, rate = 0.5 * math.sin(w * (time - 20.0)), 0.5 * w * math.cos(w * (time - 20.0))
        friction = loop.torque([lever.q], [lever.v], effort=[torque], q_goal=[goal], qd_goal=[rate], t=time)
        torque = 100.0 * (goal - lever.q) + 15.0 * (rate - lever.v) + float(friction[0])
        torque += MASS * 9.81 * LENGTH * math.sin(lever.q)
        lever.advance(torque)
    loop.restart()
    assert force(loop, begin=40.0) < 0.5 * plain


def test_a_fast_hand_is_braked(tmp_path):
    """Let go at three times the fastest speed: below that speed within a third of a second."""
    loop, lever = compensator(tmp_path, ramp_time=0.0), Lever(friction=0.3)
    guided(loop, lever, 0.2)
    lever.v = 3.0
    guided(loop, lever, 0.3, 0.2)
    assert abs(lever.v) < 1.0


def test_states_that_are_lost_leave_the_weight_for_a_while(tmp_path):
    """No drop at once: the torque of the last pose, which ends within the ramp time; then the mode says why and has to be begun again."""
    loop, lever = compensator(tmp_path), Lever()
    guided(loop, lever, 1.0)
    weight = MASS * 9.81 * LENGTH * math.sin(lever.q)
    assert loop.zero_torque([math.nan], [0.0], effort=[weight], t=1.0) == pytest.approx([weight], rel=1e-3)
    assert loop.doubt is not None
    assert not loop.zero_torque_ended
    assert loop.zero_torque([math.nan], [0.0], effort=[weight], t=2.0) == pytest.approx([0.0])
    assert loop.zero_torque_ended == "no valid states for 1002 ms"
    assert loop.zero_torque([lever.q], [0.0], effort=[0.0], t=2.1) == pytest.approx([0.0])
    loop.restart()
    assert loop.zero_torque([lever.q], [0.0], effort=[0.0], t=2.2) == pytest.approx([weight], rel=1e-3)


@pytest.mark.slow
def test_a_released_lever_sinks_slowly(tmp_path):
    """Without friction: below the speed at which the damping bears the weight."""
    loop, lever = compensator(tmp_path), Lever(friction=0.0)
    guided(loop, lever, 1.0)
    loop.release()
    positions, _ = guided(loop, lever, 3.0, 1.0)
    speed = np.abs(np.diff(positions)).max() / PERIOD
    assert 0.1 < speed < 1.05 * MASS * 9.81 * LENGTH / (2.0 * 25.0 * lever.inertia)


def test_a_weight_has_to_be_known(tmp_path):
    """One line says what is missing."""
    drives, _ = files(tmp_path)
    with pytest.raises(sb.StribeckError, match="give its `urdf`"):
        sb.Compensator(drives, max_torque=5.0).zero_torque([0.0], [0.0], t=0.0)
