"""The plants of the benchmark keep the laws of mechanics and of their friction models."""

import numpy as np
import pytest

from plants.control import is_admitted, reference, spectral_radius
from plants.friction import FrictionValues, LuGre, MaxwellSlip
from plants.joints import JOINTS, Condition, Mechanics
from plants.sensing import Delay, Encoder

DT = 1e-4


def values(lanes=1, **changes):
    plain = {
        "coulomb": 10.0,
        "stiction": 13.0,
        "viscous": 5.0,
        "stribeck_velocity": 0.1,
        "presliding": 1e-3,
        "inertia": 1.0,
        "asymmetry": 0.0,
        "ripple": 0.0,
        "ripple_wave": 9.0,
        "load_share": 0.0,
    }
    return FrictionValues(**{name: np.full(lanes, value) for name, value in (plain | changes).items()})


def frictionless(**changes):
    return Mechanics([Condition("shoulder", coulomb_scale=1e-9, viscous_scale=0.0, **changes)])


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("model", [LuGre, MaxwellSlip])
@pytest.mark.parametrize("speed", [0.02, 0.1, -0.5])
def test_friction_of_steady_motion_is_g_and_viscous(model, speed):
    """After a long way at one speed, F = g(v) sign v + sigma_2 v."""
    friction = model(values())
    for _ in range(round(2.0 / DT)):
        torque = friction.torque(np.array([speed]), DT)
    expected = np.sign(speed) * (10.0 + 3.0 * np.exp(-((speed / 0.1) ** 2))) + 5.0 * speed
    assert torque[0] == pytest.approx(expected, rel=1e-3)


def test_presliding_is_a_spring():
    """Far below breakaway, LuGre's torque is sigma_0 times the deflection."""
    friction = LuGre(values())
    for _ in range(100):
        friction.torque(np.array([1e-3]), DT)  # 1e-5 rad
    held = friction.torque(np.array([0.0]), DT)
    assert held[0] == pytest.approx(10.0 / 1e-3 * 1e-5, rel=0.02)


def test_bristles_are_stable_for_any_step():
    """A step a thousand times longer than the bristles' time ends at g, not beyond."""
    friction = LuGre(values())
    friction.torque(np.array([5.0]), 1.0)
    assert abs(friction._level.stiffness[0] * friction.z[0]) <= 10.0 + 1e-9


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("law", ["lugre", "gms"])
def test_a_joint_breaks_away_at_stiction(law):
    """A torque that grows slowly moves the joint when it reaches F_s, and not before."""
    joint = JOINTS["shoulder"]
    body = Mechanics([Condition("shoulder", law=law)])
    stiction = joint.coulomb * (1.0 + joint.rise)
    torque = 8.0
    while abs(body.q[0]) < 0.006:
        torque += 1.5 * DT
        body.step(np.array([torque]), np.zeros(1), DT)
        assert torque < 1.3 * stiction
    assert torque == pytest.approx(stiction, rel=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("model", [LuGre, MaxwellSlip])
def test_friction_dissipates(model):
    """Over closed cycles of any speed friction takes energy, at rest it gives back no more than it stored."""
    rng = np.random.default_rng(0)
    lanes = 20
    friction = model(values(lanes, asymmetry=0.2, ripple=0.2))
    w, size = rng.uniform(1.0, 60.0, lanes), 10.0 ** rng.uniform(-3.0, 0.3, lanes)
    energy, least = np.zeros(lanes), np.zeros(lanes)
    for k in range(20000):
        v = size * np.sin(w * k * DT)
        friction.modulate(size / w * (1.0 - np.cos(w * k * DT)), np.zeros(lanes))
        energy += friction.torque(v, DT) * v * DT
        least = np.minimum(least, energy)
    assert (energy > 0.0).all()
    assert (least >= -1e-6).all()


@pytest.mark.slow
@pytest.mark.parametrize("drive", ["rigid", "elastic"])
def test_a_plant_without_friction_keeps_its_energy(drive):
    """Kinetic energy and, without gear damping, that of the gear stay what they were."""
    body = frictionless(drive=drive)
    body._damping = np.zeros(1)
    body.v[:], body.link_v[:] = 1.0, 1.0 if drive == "rigid" else 0.0

    def energy():
        if drive == "rigid":
            return 0.5 * body.inertia[0] * body.v[0] ** 2
        twist = body.q[0] - body.link_q[0]
        kinetic = body.motor[0] * body.v[0] ** 2 + body.link[0] * body.link_v[0] ** 2
        return 0.5 * (kinetic + body.stiffness[0] * twist**2)

    before = energy()
    for _ in range(20000):
        body.step(np.zeros(1), np.zeros(1), DT)
    assert energy() == pytest.approx(before, rel=0.01)


def test_the_link_swings_at_the_locked_frequency():
    """With the motor held the link passes zero twice per period of the frequency of the catalogue."""
    body = frictionless(drive="elastic")
    body.link_v[:] = 1.0
    signs = []
    for _ in range(10000):
        body.q[:], body.v[:] = 0.0, 0.0
        body.step(np.zeros(1), np.zeros(1), DT)
        signs.append(body.link_q[0] > 0.0)
    crossings = np.count_nonzero(np.diff(signs))
    assert crossings == pytest.approx(2.0 * JOINTS["shoulder"].locked, abs=1)


def test_backlash_transmits_nothing_inside_the_play():
    """Within half a degree the link does not feel the motor."""
    body = frictionless(drive="backlash")
    body.q[:] = np.radians(0.4)
    body.step(np.zeros(1), np.zeros(1), DT)
    assert body.gear[0] == 0.0


def test_commands_arrive_after_their_delay():
    """Each lane gets the command of its own number of samples ago."""
    line = Delay(np.array([1, 3]))
    out = [line.through(np.full(2, float(k))) for k in range(1, 7)]
    np.testing.assert_array_equal(np.array(out), [[0, 0], [1, 0], [2, 0], [3, 1], [4, 2], [5, 3]])


def test_a_differentiated_velocity_is_a_whole_number_of_counts():
    """Position in counts, velocity in counts per sample."""
    resolution = np.array([1e-3])
    encoder = Encoder(resolution, np.array([False]), 0.01, np.zeros(1))
    at, speed = encoder.read(np.array([0.0123]), np.array([9.0]), np.zeros(1))
    assert at[0] == pytest.approx(0.012)
    assert speed[0] == pytest.approx(1.2)


def test_references_are_their_own_derivatives():
    """Velocity and acceleration are those of the position, by finite differences."""
    t = np.arange(0.0, 8.0, 1e-4)
    for name in ("sine", "slow", "moves", "creep", "push"):
        path = reference(name, t)
        slope, bend = np.gradient(path.position, t), np.gradient(path.velocity, t)
        assert np.abs(slope - path.velocity).max() < 1e-3
        assert np.abs(bend - path.acceleration).max() < 0.01
        assert path.rest[-1] == 1.0


def test_fast_loops_at_low_rates_are_left_out():
    """50 rad/s with three samples of delay at 100 Hz is unstable, 8 rad/s at 1 kHz is not."""
    fast = Condition("shoulder", rate=100, delay=3, bandwidth=50.0)
    assert spectral_radius(fast, 1.0) > 1.0
    assert not is_admitted(fast)
    assert is_admitted(Condition("shoulder", rate=1000, bandwidth=8.0))
