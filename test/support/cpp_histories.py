"""Random histories of compensators: joints, settings, states, commands, telemetry and faults, from a seed."""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from compensating import XL330
from cpp_compensator import CppCompensator
from helpers import published
from stribeck.errors import ConfigError
from stribeck.files.actuators import actuator_names, load_actuator
from stribeck.live.compensator import Compensator
from stribeck.live.direction.motion import Tuning
from stribeck.live.friction import EFFORT_MEANINGS, JointModel
from stribeck.live.settings import OUTPUT_MODES, Settings, Timing
from stribeck.model.bench import Pendulum
from stribeck.model.control_laws import VoltageControl
from stribeck.model.joint_map import JointMap
from stribeck.model.law import LAWS
from stribeck.rigid.dynamics import IndependentJoints
from stribeck.rigid.rigid_body import RigidBodyModel
from stribeck.rigid.tree import KinematicTree, TreeJoint, pose_of, pseudo_inertia_of

REASONS = (
    *("not enabled", "no valid states yet", "states arrive", "no states for", "a time stamp is not a number"),
    *(
        "time does not advance",
        "a state was received after a later one",
        "time jumped back",
        "position or velocity is not a number",
    ),
    *(
        "jumps",
        "constant",
        "the firmware gain is not known",
        "effort is not a number",
        "times the stall torque",
    ),
    "or effort is impossibly large",
)
"""What tells the reasons of a doubt apart; the C++ texts hold no names and numbers."""


def reason(doubt: str | None) -> int | None:
    """Number of the reason of a doubt, ``None`` without a doubt."""
    return None if doubt is None else next(k for k, words in enumerate(REASONS) if words in doubt)


class Setup(NamedTuple):
    joints: list[JointModel]
    maps: list[JointMap]
    settings: Settings
    dynamics: Any


def arm(random: np.random.Generator, n: int) -> RigidBodyModel:
    """A random tree of revolute and prismatic joints."""
    joints = []
    for k in range(n):
        axis = random.normal(size=3)
        inertia = random.uniform(0.001, 0.02) * np.eye(3)
        joints.append(
            TreeJoint(
                f"j{k}", "prismatic" if random.random() < 0.2 else "revolute", int(random.integers(-1, k)),
                pose_of(random.normal(scale=0.2, size=3), random.normal(size=3)), axis / np.linalg.norm(axis),
                pseudo_inertia_of(random.uniform(0.1, 1.0), random.normal(scale=0.05, size=3), inertia),
            )
        )  # fmt: skip
    return RigidBodyModel(KinematicTree(tuple(joints)), armature=random.uniform(0.001, 0.02, n))


def joint_model(random: np.random.Generator, name: str) -> JointModel:
    """A published servo with a random law, also with the terms for robot joints."""
    servo = XL330
    if random.random() < 0.5:
        usable = [load_actuator(found) for found in actuator_names()]
        servo = random.choice(np.array([found for found in usable if "m1" in found.published], dtype=object))
    number = random.choice([found for found in LAWS if found in servo.published])
    law, values = LAWS[number], dict(published(servo.name, number))
    if random.random() < 0.3:
        law = law.with_terms(asymmetric=random.random() < 0.5, offset=True, ripple=name.endswith("2"))
        values |= {
            "friction_base_negative": 1.3 * values["friction_base"],
            "friction_viscous_negative": 0.7 * values["friction_viscous"],
            "torque_offset": 0.2 * values["friction_base"],
            "ripple_order": 23.0,
            "ripple_cosine": 0.1 * values["friction_base"],
            "ripple_sine": -0.2 * values["friction_base"],
        }
    if isinstance(servo.control, VoltageControl) and name.endswith(("1", "3")):
        values["torque_saturation"] = 0.3
    limit = float(random.choice([5.0, 30.0])) * (values["friction_base"] + 0.01)
    tuning = Tuning() if random.random() < 0.2 else None
    temperature = 25.0 if random.random() < 0.5 else None
    return JointModel(name, servo, law, values, limit, "", tuning, temperature)


def setup(random: np.random.Generator) -> Setup:
    """Random joints and settings, with dynamics in most cases."""
    n = int(random.integers(1, 5))
    joints = [joint_model(random, f"j{k}") for k in range(n)]
    switched_on = random.spawn(1)[0].random(n) < 0.85
    joints = [replace(joint, enabled=bool(on)) for joint, on in zip(joints, switched_on, strict=True)]
    maps = [JointMap()] * n
    if random.random() < 0.4:
        maps = [
            JointMap(random.choice([-1.0, 1.0]), random.uniform(0.5, 3.0), random.normal()) for _ in range(n)
        ]
    timing = Timing(
        ramp_time=float(random.choice([0.0, 0.2])),
        loop_delay=float(random.choice([0.0, 0.004])),
        command_timeout=float(random.choice([0.1, 0.5])),
    )
    settings = Settings(
        str(random.choice(OUTPUT_MODES, p=[0.2, 0.45, 0.25, 0.1])),
        str(random.choice(EFFORT_MEANINGS)),
        gain=float(random.choice([0.0, 0.6, 0.8])),
        timing=timing,
        slew=float(random.choice([0.0, 3.0])),
        control="impedance" if random.random() < 0.2 else "tracking",
        certain_fraction=float(random.choice([0.25, 0.9])),
    )
    kind, dynamics = random.random(), None
    if kind > 0.6:
        dynamics = arm(random, n)
    elif kind > 0.2:
        load = Pendulum(random.uniform(0.0, 0.3, n), random.uniform(0.05, 0.2, n), np.zeros(n))
        dynamics = IndependentJoints(random.uniform(0.001, 0.01, n), load, random.normal(size=n))
    try:
        Compensator(joints, maps, settings, dynamics=dynamics)
    except ConfigError:  # large friction and small inertia
        settings = replace(settings, timing=replace(timing, loop_delay=0.0), effort_meaning="none")
    return Setup(joints, maps, settings, dynamics)


class Pair:
    """A compensator in Python and its C++ counterpart, told the same; :meth:`check` compares them.

    :ivar worst: largest difference of torques so far, relative to the torque limits.
    :ivar off: states in which a single joint had no torque because it was frozen, or driven, or not enabled.
    """

    def __init__(self, made: Setup) -> None:
        self.python = Compensator(*made[:3], dynamics=made.dynamics)
        self.cpp = CppCompensator(*made[:3], dynamics=made.dynamics)
        self.names = self.python.names
        self.limit = np.array([j.max_torque * m.ratio for j, m in zip(made.joints, made.maps, strict=True)])
        self.worst, self.trusted = 0.0, 0
        self.off = np.zeros(3, dtype=np.int64)
        # A load-dependent law takes a Newton step whose slope is a difference over 1e-7 of the limit: rounding counts 1e7
        # times.
        settings, modelled = made.settings, made.settings.mode == "goal_offset" and made.dynamics is not None
        known = settings.effort_meaning != "none" or modelled
        loaded = known and self.python.model.load_dependent
        self.tolerance = 1e-8 if loaded else 1e-12

    def tell(self, method: str, *arguments: Any, **keywords: Any) -> Any:
        """The same call of both, and the comparison; returns what Python returned."""
        found = [getattr(one, method)(*arguments, **keywords) for one in (self.python, self.cpp)]
        if method == "expire":
            assert found[0] == found[1]
        self.check()
        return found[0]

    def set_gain(self, gain: float) -> bool:
        """Another gain, accepted or refused by both."""
        try:
            self.python.set_gain(gain)
            accepted = True
        except ConfigError:
            accepted = False
        assert self.cpp.set_gain(gain) == accepted
        return accepted

    def check(self) -> None:
        """Doubt, torque, and what was learnt."""
        python, cpp = self.python, self.cpp
        assert reason(python.doubt) == reason(cpp.doubt), (python.doubt, cpp.doubt)
        difference = float(np.abs((python.torque - cpp.torque) / self.limit).max())
        self.worst = max(self.worst, difference)
        self.trusted += python.doubt is None
        why, speed = cpp.off
        if python.doubt is None:
            np.testing.assert_array_equal(why > 0.0, python.joints_off)
        self.off += (why[:, None] == [1.0, 2.0, 3.0]).sum(axis=0)
        np.testing.assert_allclose(speed, python.feed_forward.speed_limit.bound, rtol=1e-12)
        assert difference <= self.tolerance, (difference, python.torque, cpp.torque)

    def compare(self, now: float) -> None:
        """What goes out, the account, and what was learnt."""
        ours, theirs = self.python.output(now), self.cpp.output(now)
        assert (ours is None) == (theirs is None)
        if ours is not None and theirs is not None:
            np.testing.assert_allclose(theirs.values, ours.values, rtol=1e-9, atol=1e-9 * self.limit.max())
        for mine, other in zip(self.python.account(), self.cpp.account(), strict=True):
            np.testing.assert_allclose(other, mine, rtol=1e-8, atol=1e-9)
        mine, other = self.python.external_torque, self.cpp.external_torque
        assert (mine is None) == (other is None)
        if mine is not None:
            np.testing.assert_allclose(other, mine, rtol=1e-8, atol=1e-9 * self.limit.max())
        if self.python.learned is not None:
            np.testing.assert_allclose(self.cpp.learned, self.python.learned, rtol=1e-8)


def history(seed: int, steps: int = 250) -> Pair:
    """Lead both through a random motion with faults, comparing them after every step."""
    random = np.random.default_rng(seed)
    made = setup(random)
    pair, n, mode = Pair(made), len(made.joints), made.settings.mode
    period = float(random.choice([0.001, 0.004, 0.01]))
    speed, phase = random.uniform(0.2, 12.0, n), random.uniform(0.0, 6.0, n)
    size = random.uniform(0.01, 0.8, n) * np.minimum(1.0, 3.0 / speed)
    faulty = random.random() < 0.7
    simulated = random.random() < 0.2
    separate = random.random() < 0.3
    noise = float(random.choice([0.0, 1e-4]))
    lost = random.random(n) < 0.2
    for name in pair.names:
        if random.random() < 0.9:
            pair.tell("on_telemetry", name, kp=float(random.choice([100.0, 400.0])))
    pair.tell("enable")
    now, stamp = 10.0, 1000.0
    for k in range(steps):
        now, stamp = now + period, stamp + period
        time = stamp if simulated else None
        swing = np.sin(speed * (stamp - 1000.0) + phase)
        rate = size * speed * np.cos(speed * (stamp - 1000.0) + phase)
        goal = np.where(lost, math.nan, size * swing)
        if k % 3 == 0 and (k // 60) % 4 != 3:
            effort = 0.01 * random.normal(size=n) if mode != "goal_offset" or k % 2 else []
            position = goal if mode != "sum" or not separate else []
            velocity = [] if random.random() < 0.5 else rate
            at = None if random.random() < 0.1 else stamp - 0.2 * period
            pair.tell("on_command", now, at, pair.names, position, velocity, effort, time)
            if separate:
                pair.tell("on_goal", now, at, pair.names, goal, rate, time)
        if k % 40 == 0:
            told = {
                "temperature": float(random.normal(30.0, 10.0)),
                "supply_voltage": float(random.uniform(0.0, 8.0)),
            }
            at = None if random.random() < 0.5 else stamp - random.uniform(-0.1, 0.2)
            pair.tell("on_telemetry", str(random.choice(pair.names)), **told, stamp=at)
        position = size * swing + noise * random.normal(size=n) + 0.002 * np.sin(40.0 * stamp)
        velocity = rate + 30.0 * noise * random.normal(size=n)
        effort = 0.02 * random.normal(size=n)
        if faulty and random.random() < 0.04:
            now, stamp = fault(random, pair, now, stamp, position, velocity, effort, time)
            continue
        given = [] if random.random() < 0.02 else velocity
        pair.tell("on_state", now, stamp, pair.names, position, given, effort, time)
        if k % 10 == 0:
            pair.compare(now)
    return pair


def fault(
    random: np.random.Generator, pair: Pair, now: float, stamp: float, position: Any, velocity: Any, effort: Any,
    time: float | None,
) -> tuple[float, float]:  # fmt: skip
    """Something that should not be; returns the times after it."""
    kind, names = int(random.integers(14)), pair.names
    wild = random.choice([math.nan, math.inf, -1e300, 1e9, 0.3])
    values = [np.array(position), np.array(velocity), np.array(effort)]
    if kind < 3:
        values[kind][random.integers(len(names))] = wild
        pair.tell("on_state", now, stamp, names, *values, time)
    elif kind == 3:
        pair.tell(
            "on_state", now, stamp + random.choice([-0.005, 0.0, -1e6, 1e9, math.nan]), names, *values, time
        )
    elif kind == 4:  # silence
        now, stamp = now + 0.1, stamp + 0.1
        pair.tell("expire", now, time)
    elif kind == 5:
        pair.tell("on_state", now + random.choice([0.0, 0.05, 0.3]), stamp, names, *values, time)
    elif kind == 6:
        pair.tell("disable")
        pair.tell("enable")
    elif kind == 7:
        pair.set_gain(float(random.choice([0.3, 0.9, 1.2, 3.0, math.nan])))
    elif kind == 8:
        at = random.choice([None, stamp - 0.5, stamp + 0.3, stamp - 1e5, math.nan])
        pair.tell("on_command", now, at, names, *values, time)
    elif kind == 9:
        pair.tell("on_state", now, stamp, names, *values, time)
        pair.tell("on_state", now, stamp, names, *values, time)
    elif kind == 10:  # a position that stands still while its velocity says otherwise
        for _ in range(12):
            now, stamp = now + 0.01, stamp + 0.01
            pair.tell("on_state", now, stamp, names, position, velocity + 1.0, effort, time and stamp)
    elif kind == 11:  # the same of one joint, while the others move
        stands = np.arange(len(names)) == random.integers(len(names))
        for k in range(12):
            now, stamp = now + 0.01, stamp + 0.01
            at, speed = position + 0.01 * k * ~stands, velocity + 1.0
            pair.tell("on_state", now, stamp, names, at, speed, effort, time and stamp)
    elif kind == 12:  # beyond any speed to which compensation may drive a joint
        for k in range(60):
            now, stamp = now + 0.01, stamp + 0.01
            pair.tell(
                "on_state",
                now,
                stamp,
                names,
                position + 0.2 * k,
                0.0 * velocity + 20.0,
                effort,
                time and stamp,
            )
    else:
        pair.tell("recall", pair.python.learned)
        pair.tell("fade", 0.5 * pair.limit, 0.01)
        pair.tell("disable")
        pair.tell("enable")
    return now, stamp
