"""The C++ compensator of controllers/, compiled with the machine's g++ and called through ctypes."""

import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from helpers import REPOSITORY
from stribeck.live.compensator import Compensator
from stribeck.live.learning.adaptation import AdaptationSettings
from stribeck.live.learning.observer import Learned
from stribeck.live.outputs import Account, Output
from stribeck.live.settings import OUTPUT_MODES
from stribeck.model.control_laws import CurrentControl, VoltageControl
from stribeck.model.terms import FRICTION_PARAMETERS, TERMS
from stribeck.rigid.dynamics import IndependentJoints
from stribeck.rigid.rigid_body import RigidBodyModel

HEADERS = REPOSITORY / "controllers" / "include"
SOURCES = REPOSITORY / "test" / "controllers"
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wno-sign-conversion", "-Werror")
FLAGS = ("-std=c++17", "-ffp-contract=off", *WARNINGS, f"-I{HEADERS}")
MEANINGS = ("motor", "link", "none")


def compiler():
    """The machine's g++; the test is skipped without one."""
    found = shutil.which(os.environ.get("CXX", "g++"))
    if found is None:
        pytest.skip("no C++ compiler here: apt install g++")
    return found


def built(source, target, *flags):
    """Compile a source file; returns the target."""
    done = subprocess.run(
        [compiler(), *FLAGS, *flags, str(source), "-o", str(target)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return target


def library(joints=16):
    """The functions of binding.cpp for so many joints, or those of the library that ``$STRIBECK_BINDING`` names."""
    return loaded(joints)


@functools.cache
def loaded(joints):
    given = os.environ.get("STRIBECK_BINDING")
    if given is None:
        folder = Path(tempfile.mkdtemp(prefix="stribeck_binding_"))
        flags = ("-O1", "-fPIC", "-shared", f"-DSTRIBECK_MAX_JOINTS={joints}")
        try:
            built(SOURCES / "binding.cpp", folder / "binding.so", *flags)
            found = ctypes.CDLL(str(folder / "binding.so"))
        finally:
            shutil.rmtree(folder)
    else:
        found = ctypes.CDLL(given)
    found.created.restype = ctypes.c_void_p
    found.configured.restype = found.torques.restype = ctypes.c_char_p
    found.code_text.restype = found.limits_problem.restype = ctypes.c_char_p
    found.output_checked.restype = ctypes.c_char_p
    found.final_command.restype = found.largest_gain.restype = ctypes.c_double
    return found


def row(values):
    """An array of doubles, to be kept as long as its pointer is used."""
    return np.ascontiguousarray(values, dtype=np.float64)


def pointer(array):
    return None if array is None else array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def law_row(law):
    return [sum(1 << place for place, term in enumerate(TERMS.values()) if term in law.terms)]


def value_row(values):
    return [values.get(name, one.value) for name, one in FRICTION_PARAMETERS.items()]


def joint_row(joint, joint_map, tuning):
    """A joint as in binding.cpp: law, servo, limits, coordinates, tuning and whether it is enabled."""
    control, values, nan = joint.actuator.control, joint.values, np.nan
    supply = joint.actuator.supply
    if isinstance(control, VoltageControl):
        law = (0, control.gain, 0.0, control.duty_max)
    elif isinstance(control, CurrentControl):
        law = (1, control.gain, control.damping, control.current_max)
    else:
        law = (2, control.gain, control.damping, control.torque_max)
    servo = (
        *(*law, getattr(control, "bridge", "brake") == "coast"),
        *(values.get(key, nan) for key in ("kt", "R", "current_limit")),
        *(values.get("torque_saturation", 0.0), values.get("ratio", 1.0), supply.nominal, supply.rated_max),
    )
    known = nan if joint.temperature is None else joint.temperature
    limits = (values.get("armature", 0.0), joint.max_torque, joint.actuator.resolution, known)
    place = (joint_map.sign, joint_map.ratio, joint_map.offset)
    return [*law_row(joint.law), *value_row(values), *servo, *limits, *place, *tuning, joint.enabled]


def settings_row(settings):
    """Settings as in binding.cpp."""
    adaptation = settings.adaptation
    names = [*AdaptationSettings.__dataclass_fields__]
    order = ("scale_lower", "scale_upper", "offset_limit", "prior", "together", "drift", "wander", "noise")
    assert set(names) == set(order)
    return [
        OUTPUT_MODES.index(settings.mode),
        MEANINGS.index(settings.effort_meaning),
        settings.control != "tracking",
        settings.adapt,
        *(
            settings.gain,
            settings.timing.state_timeout,
            settings.timing.command_timeout,
            settings.timing.ramp_time,
            settings.slew,
        ),
        *(
            settings.certain_fraction,
            settings.timing.loop_delay,
            settings.timing.state_lag,
            settings.learned_gain,
        ),
        *(getattr(adaptation, name) for name in order),
    ]


def dynamics_rows(dynamics):
    """Kind, table and gravity of the dynamics as in binding.cpp."""
    if dynamics is None:
        return 0, None, None
    if isinstance(dynamics, GivenDynamics):
        return 3, row(np.concatenate([dynamics.mass.ravel(), dynamics.bias])), None
    if isinstance(dynamics, IndependentJoints):
        offset = np.zeros(len(dynamics)) + dynamics.q_offset
        _, largest = dynamics.mass_matrix_and_bias(0.5 * np.pi - offset, 0.0 * offset)
        return 1, row(np.stack([dynamics._diagonal, largest, offset], axis=1)), None
    assert isinstance(dynamics, RigidBodyModel)
    rows = [
        [
            joint.parent,
            joint.kind == "prismatic",
            *joint.placement.ravel(),
            *joint.axis,
            *joint.pseudo_inertia.ravel(),
            armature,
        ]
        for joint, armature in zip(dynamics.tree.joints, dynamics.armature, strict=True)
    ]
    return 2, row(rows), row(dynamics.gravity_vector)


class GivenDynamics(NamedTuple):
    """Mass matrix (n, n) [kg m²] and bias torques (n,) [N m] that the caller computes."""

    mass: Any
    bias: Any

    def mass_matrix_and_bias(self, q, v):
        return self.mass, self.bias


class CppCompensator:
    """The C++ counterpart of a :class:`Compensator`, with its methods; states hold all joints in their order."""

    def __init__(
        self, joints, maps, settings, dynamics=None, unchecked=False, capacity=16, isolate_joints=False
    ):
        self._library = library(capacity)
        self._handle = ctypes.c_void_p(self._library.created())
        self.names = [joint.name for joint in joints]
        n = self._n = len(joints)
        checked = (
            replace(settings, gain=0.0) if unchecked else settings
        )  # leaves the check of the gain to the C++
        base = Compensator(joints, maps, checked, dynamics=dynamics).feed_forward._base
        fields = (
            "deadband",
            "error_width",
            "command_velocity",
            "moving_velocity",
            "overshoot_fraction",
            "presliding",
        )
        tunings = np.stack([getattr(base, name) for name in fields], axis=1)
        table = row([joint_row(j, m, t) for j, m, t in zip(joints, maps, tunings, strict=True)])
        chosen = row(settings_row(settings))
        self._library.isolated(self._handle, isolate_joints)
        self.kind, self._dynamics, gravity = dynamics_rows(dynamics)
        problem = self._library.configured(
            self._handle,
            n,
            pointer(table),
            pointer(chosen),
            self.kind,
            pointer(self._dynamics),
            pointer(gravity),
        )
        assert not problem, problem.decode()
        self.torque, self.doubt = np.zeros(n), "not enabled"
        self._look()

    def __del__(self):
        self._library.destroyed(self._handle)

    def _look(self):
        torque = np.empty(self._n)
        text = self._library.torques(self._handle, pointer(torque)).decode()
        self.torque, self.doubt = torque, text or None
        return torque

    @staticmethod
    def stepped(robots, now, effort, goal, position, velocity, dynamics):
        """One cycle of robots of the same size, as the benchmark's adapter leads them: torques, and how many are in doubt.

        :param goal: positions and velocities, or None.
        :param velocity: None without.
        :param dynamics: mass matrices and bias torques, or None.
        """
        handles = (ctypes.c_void_p * len(robots))(*(robot._handle.value for robot in robots))
        kept = [
            None if part is None else row(part)
            for part in (effort, *(goal or (None, None)), position, velocity, *(dynamics or (None, None)))
        ]
        torque, first = np.empty(np.shape(position)), robots[0]
        doubts = first._library.stepped(
            len(robots), handles, first._n, ctypes.c_double(now), *map(pointer, kept), pointer(torque)
        )
        return torque, doubts

    def _fields(self, *fields):
        return [row(field) if field is not None and len(field) else None for field in fields]

    def _number(self, value):
        return None if value is None else row([value])

    def enable(self):
        self._library.enabled(self._handle)
        self._look()

    def disable(self):
        self._library.disabled(self._handle)
        self._look()

    def set_gain(self, gain):
        return bool(self._library.gain_set(self._handle, ctypes.c_double(gain)))

    def on_telemetry(self, joint, *, kp=np.nan, supply_voltage=np.nan, temperature=np.nan, stamp=None):
        if joint in self.names:
            numbers = (kp, supply_voltage, temperature, np.nan if stamp is None else stamp)
            self._library.told(self._handle, self.names.index(joint), *map(ctypes.c_double, numbers))

    def _commanded(self, goal, arrival, stamp, now, *fields):
        kept = self._fields(*fields)
        at, time = self._number(stamp), self._number(now)
        self._library.commanded(
            self._handle, goal, ctypes.c_double(arrival), pointer(at), *map(pointer, kept), pointer(time)
        )

    def on_command(self, arrival, stamp, names, position, velocity, effort, now=None):
        self._commanded(0, arrival, stamp, now, position, velocity, effort)

    def on_goal(self, arrival, stamp, names, position, velocity, now=None):
        self._commanded(1, arrival, stamp, now, position, velocity, None)

    def on_state(self, arrival, stamp, names, position, velocity, effort, now=None):
        kept, time = self._fields(position, velocity, effort), self._number(now)
        self._library.measured(
            self._handle, *map(ctypes.c_double, (arrival, stamp)), *map(pointer, kept), pointer(time)
        )
        return self._look()

    def expire(self, now, time=None):
        at = self._number(time)
        found = bool(self._library.expired(self._handle, ctypes.c_double(now), pointer(at)))
        self._look()
        return found

    def fade(self, torque, dt):
        given = row(torque)
        self._library.faded(self._handle, pointer(given), ctypes.c_double(dt))
        return self._look()

    def output(self, now):
        values = np.empty(self._n)
        found = self._library.outputs(self._handle, ctypes.c_double(now), pointer(values))
        return Output(values, self.torque) if found else None

    @property
    def external_torque(self):
        rows = np.empty((3, self._n))
        return rows if self._library.separated(self._handle, pointer(rows)) else None

    @property
    def goal_delay(self):
        """Measured delays of the goals, and half-widths [s]."""
        rows = np.empty((2, self._n))
        self._library.goal_delays(self._handle, pointer(rows))
        return rows

    def account(self):
        rows = np.empty((6, self._n))
        self._library.accounted(self._handle, pointer(rows))
        return Account(*rows)

    @property
    def off(self):
        """Why single joints have no torque, 0 if they have, and the speeds at which compensation ends."""
        rows = np.empty((2, self._n))
        self._library.offs(self._handle, *map(pointer, rows))
        return rows

    @property
    def joints_off(self):
        """Which joints have no torque, (n,), because they are frozen, drive themselves or are not enabled."""
        return self.off[0] != 0.0

    @property
    def learned(self):
        rows = np.empty((self._n, 4))
        learns = self._library.learnt(self._handle, pointer(rows))
        return tuple(Learned(*found) for found in rows.tolist()) if learns else None

    def recall(self, learned):
        rows = None if learned is None else row(learned)
        self._library.recalled(self._handle, pointer(rows))

    def mass_matrix_and_bias(self, q, v):
        """Of the dynamics with which it was made."""
        mass, bias = np.empty((self._n, self._n)), np.empty(self._n)
        at, speed = row(q), row(v)
        self._library.evaluated(
            self._handle, self.kind, pointer(at), pointer(speed), pointer(mass), pointer(bias)
        )
        return mass, bias
