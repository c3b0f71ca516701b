"""A servo, its load and whatever acts on them in a closed loop, simulated: what compensation is tried on."""

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from compensating import settings_with
from stribeck.files.actuators import load_actuator
from stribeck.live.compensator import Compensator
from stribeck.live.friction import JointModel, goal_offset
from stribeck.model.actuator import Actuator, motor_torque
from stribeck.model.bench import Pendulum, gravity_torque
from stribeck.model.control_laws import ControlState, Gains, ServoCommand
from stribeck.model.joint_map import JointMap
from stribeck.model.law import LAWS, FrictionLaw, friction_budget
from stribeck.model.step import Plant, PlantState, Torques, advance, torques

COUNT = 2.0 * math.pi / 4096.0
LOAD = Pendulum(0.25, 0.1, 0.0)
DT = 0.001
CYCLE = 5
"""A control cycle is 5 ms: 200 Hz."""

TRAVEL = 2
"""A state is 2 ms old when it arrives, and a goal needs as long to the servo."""

VELOCITY_STEP = 0.229 * 2.0 * math.pi / 60.0
"""An XL330 reports its velocity in steps of 0.229 rev/min, as the mean of 20 ms."""


@dataclass(frozen=True)
class Joint:
    """A position-controlled XL330 at 5 V with a pendulum on its shaft."""

    kp: float
    law: FrictionLaw = LAWS["m6"]
    values: Mapping[str, float] = field(default_factory=lambda: load_actuator("xl330").published["m6"])
    pendulum: Pendulum = LOAD
    supply: float = 5.0

    @property
    def actuator(self) -> Actuator:
        """The servo without integral and derivative part."""
        servo = load_actuator("xl330")
        return replace(servo, control=replace(servo.control, integral_gain=None, derivative_gain=None))

    @property
    def gains(self) -> Gains:
        return Gains(self.kp, 0.0, 0.0)

    def offset(self, torque: float) -> float:
        """Goal offset that makes the firmware add a torque [rad]."""
        return float(goal_offset(self.actuator, self.values, self.kp, self.supply, torque))

    def model(self) -> JointModel:
        """What a compensator knows of this joint."""
        return JointModel("joint", self.actuator, self.law, self.values, 0.3)


class Cycle(NamedTuple):
    """What a controller sees once per cycle: time [s], measured position and velocity, goal, gravity torque."""

    time: float
    position: float
    velocity: float
    goal: float
    gravity: float


class Run(NamedTuple):
    """True position at every step, measured position and friction torque at every cycle."""

    position: np.ndarray
    measured: np.ndarray
    torque: np.ndarray


Compensation = Callable[[Cycle], float]
"""Friction torque [N m] that is to be added."""


@dataclass(frozen=True)
class Push:
    """A torque from outside [N m] for some time [s]."""

    start: float = 2.0
    duration: float = 0.1
    torque: float = 0.05

    def at(self, time: float) -> float:
        return self.torque if self.start <= time < self.start + self.duration else 0.0


def follow(
    joint: Joint,
    goal_at: Callable[[float], float],
    compensation: Compensation | None = None,
    *,
    duration: float = 8.0,
    frictionless: bool = False,
    noise: int = 0,
    push: Push | None = None,
    seed: int = 0,
) -> Run:
    """Follow a trajectory with gravity compensated, and friction as well if ``compensation`` does.

    Goals are whole counts. ``noise`` counts at most, either way, are added to what is measured.
    """
    rng = np.random.default_rng(seed)
    plant = Plant(joint.actuator, joint.law, joint.pendulum, joint.gains)
    state, goal = PlantState(0.0, 0.0, ControlState(0.0, 0.0)), 0.0
    on_the_way: deque[tuple[int, float]] = deque()
    seen: deque[float] = deque(maxlen=5)
    position, measured, added = [], [], []
    for k in range(round(duration / DT)):
        if k % CYCLE == 0:
            seen.append(round(state.position / COUNT) * COUNT + COUNT * int(rng.integers(-noise, noise + 1)))
            cycle = _cycle(joint, k * DT, seen, goal_at(k * DT))
            friction = 0.0 if compensation is None else compensation(cycle)
            sent = cycle.goal + joint.offset(cycle.gravity + friction)
            on_the_way.append((k + 2 * TRAVEL, round(sent / COUNT) * COUNT))
            measured.append(cycle.position)
            added.append(friction)
        while on_the_way and on_the_way[0][0] <= k:
            goal = on_the_way.popleft()[1]
        acting, control = torques(plant, joint.values, state, ServoCommand(goal, 1.0, joint.supply), DT)
        if push is not None:
            acting = loaded(joint, state, acting.motor, acting.external + push.at(k * DT))
        if frictionless:
            acting = acting._replace(budget=(0.0, 0.0))
        position.append(state.position)
        state = advance(plant, joint.values, state, acting, control, DT)
    return Run(np.array(position), np.array(measured), np.array(added))


def loaded(joint: Joint, state: PlantState, motor: float, external: float) -> Torques:
    """Given torques with the friction that they make."""
    return Torques(motor, external, friction_budget(joint.law, joint.values, motor, external, state.velocity))


def _cycle(joint: Joint, time: float, seen: deque[float], goal: float) -> Cycle:
    slope = (seen[-1] - seen[0]) / (len(seen) * CYCLE * DT) if len(seen) > 1 else 0.0
    gravity = -float(gravity_torque(joint.pendulum, seen[-1], joint.values["q_offset"]))
    return Cycle(time, seen[-1], round(slope / VELOCITY_STEP) * VELOCITY_STEP, goal, gravity)


def compensated(joint: Joint, gain: float, **settings: Any) -> Compensation:
    """Our compensation, in the mode ``goal_offset``."""
    chosen = {"mode": "goal_offset", "effort_meaning": "motor", **settings}
    compensator = Compensator([joint.model()], [JointMap()], settings_with(gain=gain, **chosen))
    compensator.on_telemetry("joint", kp=joint.kp, supply_voltage=joint.supply)
    compensator.enable()

    def torque(cycle: Cycle) -> float:
        # The command of a cycle is made of the state before it.
        compensator.on_command(cycle.time, cycle.time, ["joint"], [cycle.goal], [], [cycle.gravity])
        stamp = cycle.time + 1e-4
        compensator.on_state(stamp, stamp, ["joint"], [cycle.position], [cycle.velocity], [math.nan])
        return float(compensator.torque[0])

    return torque


def naive(joint: Joint, gain: float) -> Compensation:
    """What is tempting: the friction of the law times the sign of the velocity."""

    def torque(cycle: Cycle) -> float:
        command = ServoCommand(cycle.goal + joint.offset(cycle.gravity), 1.0, joint.supply)
        rest = ControlState(0.0, 0.0)
        motor, _ = motor_torque(
            joint.actuator, joint.values, joint.gains, rest, command, cycle.position, cycle.velocity, DT
        )
        direction, added = float(np.sign(cycle.velocity)), 0.0
        for _ in range(5):
            budget = friction_budget(joint.law, joint.values, motor + added, -cycle.gravity, cycle.velocity)
            added = gain * direction * budget[0]
        return float(added)

    return torque


def slow_sine(time: float) -> float:
    """0.8 rad at 0.2 Hz."""
    return 0.8 * math.sin(2.0 * math.pi * 0.2 * time)


def chirp(time: float) -> float:
    """sin(t²/2)."""
    return math.sin(0.5 * time * time)


def steps(time: float) -> float:
    """Steps of 0.5 rad with holds of 1.2 s."""
    return (0.0, 0.5, 1.0, 0.5, 0.0, -0.5, 0.0)[min(int(time / 1.2), 6)]


def hold(angle: float) -> Callable[[float], float]:
    """To an angle in one second, smoothly, and stay."""

    def goal(time: float) -> float:
        u = min(time, 1.0)
        return angle * u * u * (3.0 - 2.0 * u)

    return goal


def cut(joint: Joint, goal_at: Callable[[float], float], compensation: Compensation) -> float:
    """Share of the distance to the frictionless motion that compensation takes away."""
    ideal = follow(joint, goal_at, frictionless=True).position

    def distance(run: Run) -> float:
        return float(np.sqrt(np.mean((run.position - ideal) ** 2)))

    return 1.0 - distance(follow(joint, goal_at, compensation)) / distance(follow(joint, goal_at))


def rest_counts(joint: Joint, angle: float, compensation: Compensation, seed: int = 0) -> float:
    """How far a joint at rest strays from where it settles after a push, in counts.

    It holds an angle with ± 1 count of noise in its encoder and is pushed by 50 mN·m for 100 ms. From one
    second later on it is watched for 5 s.
    """
    push = Push()
    run = follow(joint, hold(angle), compensation, duration=8.2, noise=1, push=push, seed=seed)
    watched = run.position[round((push.start + push.duration + 1.0) / DT) :]
    return float(np.max(np.abs(watched - np.median(watched))) / COUNT)


STIFFNESS, DAMPING = 1.5, 0.03
"""Of a controller of torque about its goal [N m/rad], [N m s/rad]."""


def torque_controlled(
    joint: Joint,
    goal_at: Callable[[float], float],
    compensator: Compensator | None,
    *,
    delay: float,
    duration: float = 8.0,
    push: Push | None = None,
    commands: bool = True,
) -> Run:
    """A joint driven by torque, gravity compensated, whose effort is the motor's whole torque, ``delay`` [s] old.

    The compensator hears goals if ``commands``, and its torque is added as it is.
    """
    plant = Plant(joint.actuator, joint.law, joint.pendulum, joint.gains)
    state, still, motor = PlantState(0.0, 0.0, ControlState(0.0, 0.0)), ControlState(0.0, 0.0), 0.0
    told: deque[float] = deque(
        [0.0] * (round(delay / (CYCLE * DT)) + 1), maxlen=round(delay / (CYCLE * DT)) + 1
    )
    position, added = [], []
    for k in range(round(duration / DT)):
        time = k * DT
        if k % CYCLE == 0:
            goal, friction = goal_at(time), 0.0
            if compensator is not None:
                if commands:
                    compensator.on_command(time, time, ["joint"], [goal], [], [])
                stamp = time + 1e-4
                at, speed = [state.position], [state.velocity]
                friction = float(compensator.on_state(stamp, stamp, ["joint"], at, speed, [told[0]])[0])
            own = STIFFNESS * (goal - state.position) - DAMPING * state.velocity
            motor = own - float(gravity_torque(joint.pendulum, state.position, 0.0)) + friction
            told.append(motor)
            added.append(friction)
        external = float(gravity_torque(joint.pendulum, state.position, 0.0))
        external += 0.0 if push is None else push.at(time)
        position.append(state.position)
        state = advance(plant, joint.values, state, loaded(joint, state, motor, external), still, DT)
    return Run(np.array(position), np.array(position[::CYCLE]), np.array(added))
