"""Zero-torque mode in C++ (guiding.hpp): the torques of live/zero_torque.py, through all that can happen."""

import ctypes

import numpy as np
import pytest

from compensating import model, settings_with
from cpp_compensator import SOURCES, built, pointer, row
from stribeck.live.compensator import Compensator
from stribeck.live.guiding import HOLD_BANDWIDTH
from stribeck.live.samples import State
from stribeck.live.zero_torque import GuidingSettings, ZeroTorque
from stribeck.model.joint_map import JointMap

STEP, JOINTS = 0.002, 3


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guiding")
    return ctypes.CDLL(str(built(SOURCES / "guiding.cpp", folder / "guiding.so", "-O1", "-fPIC", "-shared")))


class Pendulums:
    """Joints without coupling."""

    def __init__(self, random):
        self.inertia, self.weight, self.offset = random.uniform(0.01, 0.1, (3, JOINTS))

    def mass_matrix_and_bias(self, q, v):
        return self.inertia, self.weight * np.sin(q + self.offset)


def made(library, random):
    """The mode in Python and in C++, alike."""
    settings = settings_with(mode="friction_only", effort_meaning="none", ramp_time=0.3, state_timeout=0.04)
    joints = [model(name) for name in "abc"]
    compensator = Compensator(joints, [JointMap(ratio=2.0)] * JOINTS, settings)
    dynamics = Pendulums(random)
    python = ZeroTorque(compensator, dynamics, GuidingSettings(0.8, 0.15, 60.0))
    guiding = python._guiding
    kept = [
        row(values)
        for values in (
            dynamics.inertia, dynamics.weight, dynamics.offset, guiding._level, guiding.limit, guiding._fastest,
            [0.15, 0.3, HOLD_BANDWIDTH, 60.0, 0.04],
        )
    ]  # fmt: skip
    library.configured(JOINTS, *map(pointer, kept))
    return python


def compared(library, python, now, state, temperature):
    """One torque of both; returns that of Python."""
    out = np.empty(2 * JOINTS)
    parts = (None, None) if state is None else (row(state.joint_position), row(state.joint_velocity))
    stamp = 0.0 if state is None else state.stamp
    heat = row(temperature)
    on = library.updated(
        ctypes.c_double(now), pointer(parts[0]), pointer(parts[1]), ctypes.c_double(stamp), pointer(heat), pointer(out)
    )  # fmt: skip
    found = python.carried(now, state, temperature)
    np.testing.assert_allclose(out[:JOINTS], found, rtol=1e-12, atol=1e-14)
    assert bool(on) == python.on
    np.testing.assert_array_equal(out[JOINTS:] > 0.0, python._guiding.holding)
    return found


@pytest.mark.ci
@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("end", ["left", "hot", "lost"])
def test_torques_are_those_of_python_to_the_last_digit(library, end):
    """Begins, is moved by hands, loses some states, and ends in each way; both agree to 1e-12, also on when it is off."""
    for seed in range(8):
        random = np.random.default_rng(seed)
        python = made(library, random)
        python.begin(1.0)
        library.begun(ctypes.c_double(1.0))
        q, time, biggest = random.normal(size=JOINTS), 1.0, 0.0
        for step in range(1200):
            time += STEP * random.choice([1.0, 1.0, 1.0, 3.0])
            moves = (step // 150) % 2 == 1 and step < 900
            v = random.normal(size=JOINTS) * moves + 1e-3 * random.normal(size=JOINTS)
            q = q + STEP * v
            state = None if step % 97 == 13 or (end == "lost" and step > 900) else State(time, q, v, q, v)
            heat = np.full(JOINTS, np.nan if step < 10 else 61.0 if end == "hot" and step > 900 else 40.0)
            if end == "left" and step == 900:
                python.release("left")
                library.released()
            biggest = max(biggest, float(np.abs(compared(library, python, time, state, heat)).max()))
        assert not python.on
        assert biggest > 0.01


def test_the_state_at_which_the_mode_ends_has_no_torque(library):
    """Left while a joint creeps: damped to the last state, and nothing at the one at which all rest."""
    made(library, np.random.default_rng(1))
    library.begun(ctypes.c_double(1.0))
    library.released()
    out, found, v = np.empty(2 * JOINTS), [], np.full(JOINTS, 0.01)
    for step in range(400):
        time = 1.0 + STEP * step
        q, heat = row(step * STEP * v), row(np.full(JOINTS, 40.0))
        on = library.updated(
            ctypes.c_double(time), pointer(q), pointer(row(v)), ctypes.c_double(time), pointer(heat), pointer(out)
        )  # fmt: skip
        found.append((on, out[:JOINTS].copy()))
    states = [on for on, _ in found]
    end = states.index(0)
    assert np.abs(found[end - 1][1]).min() > 1e-3
    np.testing.assert_array_equal([torque for _, torque in found[end:]], 0.0)
