"""Both ends of the C++ controller of controllers/ (chain.hpp) around the C++ compensator, on virtual time."""

import ctypes
from dataclasses import replace

import numpy as np

from compensating import settings_with
from cpp_compensator import CppCompensator, joint_row, library, pointer, row
from stribeck.files.actuators import load_actuator
from stribeck.live.friction import JointModel
from stribeck.model.joint_map import JointMap
from stribeck.model.law import LAWS
from stribeck.rigid.dynamics import IndependentJoints

PERIOD = 1e-3
TORQUE_JOINT = replace(load_actuator("torque_joint"), resolution=1e-4)
NO_REFERENCE, LIMITED, ZERO_TORQUE_ENDED = 64, 65, 66


def joint(name="a", limit=3.0, **values):
    """A torque-controlled joint with law M1: 0.4 N m Coulomb, 0.1 N m s/rad viscous friction."""
    given = {"friction_base": 0.4, "friction_viscous": 0.1, "armature": 0.0, "ratio": 1.0, **values}
    return JointModel(name, TORQUE_JOINT, LAWS["m1"], given, limit)


def uncoupled(*inertia):
    """Dynamics of joints with these inertias [kg m²]."""
    return IndependentJoints(np.array(inertia))


class Commands(tuple):
    """Commands to write, friction torques in them, and fault codes, (n,) each."""

    command = property(lambda self: self[0])
    friction = property(lambda self: self[1])
    fault = property(lambda self: self[2])


class CppController(CppCompensator):
    """The C++ controller without ROS: the compensator with isolated joints between the ends of a chain.

    :param limit: largest efforts [N m], or smallest and largest positions [rad].
    """

    def __init__(self, joints, settings, limit=(-np.inf, np.inf), dynamics=None, period=PERIOD):
        super().__init__(joints, [JointMap()] * len(joints), settings, dynamics, isolate_joints=True)
        bounds = [row(np.full(len(joints), bound)) for bound in limit]
        self._library.staged(self._handle, settings.mode == "sum", *map(pointer, bounds))
        self.time, self.period = 0.0, period
        self.position = np.linspace(0.2, 0.1, len(joints))

    def enable(self):
        self._library.stage_switched(self._handle, 1)

    def disable(self):
        self._library.stage_switched(self._handle, 0)

    def restart(self):
        """As a deactivation and the next activation do."""
        self._library.stage_restarted(self._handle)
        super().disable()
        super().enable()

    def update(self, reference, position, velocity, goal=None, goal_velocity=None, locked=None, dt=None):
        """One update; goals are NaN where not given."""
        dt = self.period if dt is None else dt
        self.time += dt
        n, nan = self._n, np.full(self._n, np.nan)
        kept = [
            row(np.broadcast_to(values, n))
            for values in (reference, np.zeros(n) if locked is None else locked, position)
        ]
        speed = None if velocity is None else row(np.broadcast_to(velocity, n))
        goals = [
            row(nan if values is None else np.broadcast_to(values, n)) for values in (goal, goal_velocity)
        ]
        out = np.empty(3 * n)
        self._library.stage_updated(
            self._handle, *map(ctypes.c_double, (self.time, dt)), *map(pointer, kept), pointer(speed), None,
            *map(pointer, goals), pointer(out),
        )  # fmt: skip
        self._look()
        return Commands(out.reshape(3, n))

    def exchange(self, other, ramp_time):
        """Hand over to the compensator of another controller, or back without one; returns whether that is possible."""
        handle = None if other is None else other._handle
        return bool(self._library.stage_exchanged(self._handle, handle, ctypes.c_double(ramp_time)))

    def final_command(self, k, position):
        return self._library.final_command(self._handle, k, ctypes.c_double(position))

    @property
    def largest_gain(self):
        return self._library.largest_gain(self._handle)

    @property
    def dry_scales(self):
        out = np.empty(self._n)
        self._library.learning(self._handle, pointer(out))
        return out

    def limits_problem(self, k):
        return self._library.limits_problem(self._handle, k).decode()


class TopicReferences:
    """References of a topic, as the controller takes them: a step is 0 nothing, 1 write, 2 expire."""

    def __init__(self, timeout, count=0):
        self._library = library()
        self._handle = ctypes.c_void_p(self._library.created())
        self.restart(timeout, count)

    def __del__(self):
        self._library.destroyed(self._handle)

    def restart(self, timeout, count):
        self._library.topic_restarted(self._handle, ctypes.c_double(timeout), count)

    def advance(self, count, dt):
        return self._library.topic_advanced(self._handle, count, ctypes.c_double(dt))


def last_reads(values, locked, change):
    """What LastRead gives for values in succession, where some cannot be read."""
    given, out = row(values), np.empty(len(values))
    library().last_reads(
        len(values), pointer(given), pointer(row(locked)), ctypes.c_double(change), pointer(out)
    )
    return out


def output_problem(model, mode, kp, supply=12.0):
    """Why a joint cannot be compensated in an output mode."""
    handle = ctypes.c_void_p(library().created())
    given = row(joint_row(model, JointMap(), np.zeros(6)))
    numbers = ctypes.c_double(kp), ctypes.c_double(supply)
    found = library().output_checked(handle, pointer(given), mode, *numbers).decode()
    library().destroyed(handle)
    return found


class Arm:
    """Joints with inertia and Coulomb and viscous friction that stick, in steps of 0.25 ms."""

    def __init__(self, n=1, inertia=0.05, coulomb=0.4, viscous=0.1):
        self.inertia, self.coulomb, self.viscous = inertia, coulomb, viscous
        self.position, self.velocity = np.zeros(n), np.zeros(n)

    def move(self, effort, period=PERIOD):
        steps = max(1, round(period / 2.5e-4))
        dt = period / steps
        for _ in range(steps):
            pushed = (self.velocity + effort / self.inertia * dt) / (1.0 + self.viscous / self.inertia * dt)
            self.velocity = np.sign(pushed) * np.maximum(
                0.0, np.abs(pushed) - self.coulomb / self.inertia * dt
            )
            self.position = self.position + self.velocity * dt


def default_settings(**changes):
    return settings_with(
        **{"mode": "sum", "effort_meaning": "none", "ramp_time": 0.0, "loop_delay": PERIOD, **changes}
    )
