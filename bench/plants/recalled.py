r"""Joints whose learnt friction is recalled, and whose goals repeat their own position: what compensation may add.

They are pushed and let go as those of :mod:`plants.release`. Two kinds are drawn. Joints whose friction is at least the
guaranteed fraction of the identified one: compensation adds no more energy than friction takes and the tank's initial
content :math:`E_0`, nor does the energy of a joint grow by more than that. Joints with less friction: they stay below
the speed

.. math:: \sqrt{\max(v_b^2,\ v_0^2 + \tfrac34 v_b^2)}

after a release at :math:`v_0`, with :math:`v_b` of :class:`stribeck.live.learning.energy.SpeedLimit`, and who gets there is
compensated no longer, with a reason.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from plants.baselines import Lanes, Method, Nominal, Sample, joint_models
from plants.friction import FloatArray
from plants.release import (
    GROWTH,
    RATES,
    SPRING,
    Found,
    Pushed,
    Robot,
    bristle_energy,
    drawn,
    simulated,
)
from stribeck.live.compensator import Compensator
from stribeck.live.learning.observer import Learned
from stribeck.live.settings import Settings, Timing
from stribeck.model.joint_map import JointMap

STROKE = 1.5
r"""Distance along which the friction at rest, identified, takes :math:`E_0` [rad]."""

ENDING = 2.0
r"""Compensation that drives a joint ends at so many :math:`E_0` of kinetic energy..."""

SPEEDS = (2.0, 10.0)
"""... but at these speeds at the earliest and the latest [rad/s]."""

REACTION = 0.06
"""Within so long of passing that speed compensation has ended, delays apart [s]."""

Goals = Literal["none", "own", "late"]


@dataclass(frozen=True)
class Case:
    """What the joints of one compensator have in common beside their robot.

    :param goals: none, the position measured last, or that of some states before.
    :param model: whether inertia and gravity are known, so that friction is learnt.
    :param scale: recalled scales, from and to [1].
    :param certain_fraction: the fraction of the identified friction that is said to be guaranteed.
    :param friction: the true one per identified one, from and to [1].
    """

    robot: Robot
    goals: Goals
    model: bool
    scale: tuple[float, float]
    certain_fraction: float
    friction: tuple[float, float]

    @property
    def guaranteed(self) -> bool:
        """Whether friction is what it is said to be at least."""
        return self.friction[0] >= self.certain_fraction


class Recalling(Method):
    """Stribeck's Compensator that recalls scales of an earlier run and is told nothing but where the joints are."""

    def __init__(self, lanes: Lanes, case: Case, seed: int) -> None:
        super().__init__(lanes)
        self._case = case
        self._model = Nominal() if case.model else None
        if self._model is not None:
            self._model.inertia, self._model.bias = lanes.inertia, self._zero
        delay = float(np.median(lanes.delay))
        settings = Settings(
            "sum",
            "none",
            gain=case.robot.gain,
            certain_fraction=case.certain_fraction,
            timing=Timing(loop_delay=delay),
        )
        maps = [JointMap()] * len(lanes)
        self.compensator = Compensator(joint_models(lanes), maps, settings, dynamics=self._model)
        rng = np.random.default_rng(seed)
        rows = zip(
            *rng.uniform(*case.scale, (2, len(lanes))), *rng.uniform(0.0, 0.3, (2, len(lanes))), strict=True
        )
        self.compensator.recall([Learned(*map(float, row)) for row in rows])
        self.compensator.enable()
        self._before: deque[FloatArray] = deque(maxlen=1 if case.goals == "own" else 4)

    def update(self, sample: Sample) -> FloatArray:
        """Torque to add [N m]."""
        ours, now = self.compensator, sample.time
        if self._model is not None:
            self._model.take(sample)
        ours.on_command(now, now - 1e-6, ours.names, (), (), sample.effort)
        self._before.append(sample.position)
        if self._case.goals != "none":
            ours.on_goal(now, now - 1e-6, ours.names, self._before[0], ())
        speed = () if self._case.robot.velocity == "own" else sample.velocity
        return ours.on_state(now, now, ours.names, sample.position, speed, ())


KINDS: tuple[tuple[Goals, bool], ...] = (
    *(("none", True), ("own", True), ("late", True)),
    *(("none", False), ("own", False)),
)
"""Goals, and whether a model is known, in turn."""


def drawn_cases(seed: int, count: int, *, guaranteed: bool) -> list[Case]:
    """So many compensators at random."""
    rng = np.random.default_rng(seed)
    found = []
    for n in range(count):
        robot = Robot(
            int(rng.choice(RATES)),
            int(rng.integers(1, 4)),
            str(rng.choice(["measured", "difference", "own"])),  # type: ignore[arg-type]
            float(rng.choice([0.5, 0.8, 1.0])),
        )
        low = float(rng.choice([0.25, 0.8, 1.5, 1.5]))
        goals, model = KINDS[n % len(KINDS)]
        sure = 0.25 if guaranteed or rng.random() < 0.3 else float(rng.uniform(0.3, 1.0))
        friction = (0.25, 2.0) if guaranteed else (0.05, 0.8 * sure)
        found.append(Case(robot, goals, model, (low, low + 0.7), sure, friction))
    return found


def pushed(case: Case, count: int, seed: int) -> list[Pushed]:
    """Joints of a case, pushed as those of :mod:`plants.release`, with friction as the case says."""
    rng = np.random.default_rng(seed)
    low, high = case.friction
    found = []
    for one in drawn(case.robot, count, seed):
        upper = float(rng.choice([min(2.0 * low, high), high]))
        dry, viscous = rng.uniform(low, upper, 2).tolist()
        lean = one.least / one.condition.coulomb_scale, one.least_viscous / one.condition.viscous_scale
        condition = replace(one.condition, coulomb_scale=dry / lean[0], viscous_scale=viscous / lean[1])
        found.append(replace(one, condition=condition))
    return found


@dataclass(frozen=True)
class Broken:
    """One joint that broke a claim.

    :param value: what it did, where ``bound`` is the most that it may do.
    """

    case: Case
    joint: Pushed
    claim: Literal["account", "energy", "speed", "reason"]
    value: float
    bound: float


def content(joint: Pushed) -> float:
    r""":math:`E_0` [J]: of the friction at rest, in its stronger direction where its asymmetry is known."""
    c, data = joint.condition, joint.condition.data
    return float(STROKE * data.coulomb * ((1.0 + abs(c.asymmetry) * joint.lean_known) + data.rise))


def speed_bound(joint: Pushed, released: float) -> float:
    """The speed below which a joint stays that was let go at another [rad/s]."""
    alone = np.clip(np.sqrt(2.0 * ENDING * content(joint) / joint.condition.data.inertia), *SPEEDS)
    return float(np.sqrt(max(alone**2, released**2 + 0.75 * alone**2)))


def searched(
    cases: list[Case], joints: int, seed: int, seconds: float = 5.0
) -> tuple[list[Broken], dict[str, int]]:
    """What so many joints of each case broke, the worst first, and how often what was tried."""
    groups = [(case.robot, pushed(case, joints, seed + n)) for n, case in enumerate(cases)]
    methods: list[Recalling] = []

    def factory(robot: Robot, lanes: Lanes) -> Method:
        methods.append(Recalling(lanes, cases[len(methods)], seed + len(methods)))
        return methods[-1]

    found = simulated(groups, factory, seconds)
    off = np.concatenate([method.compensator.joints_off for method in methods])
    every = [case for case in cases for _ in range(joints)]
    broken: list[Broken] = []
    tried = {"joints": len(every), "ended": int(off.sum()), "grew": 0}
    tried["reasons"] = sum(len(method.compensator.off_reasons) for method in methods)
    for n, (case, joint) in enumerate(zip(every, found.cases, strict=True)):
        checks = _kept(case, joint, found, n) if case.guaranteed else _bounded(joint, found, n, bool(off[n]))
        tried["grew"] += int(
            found.gained[1, :, n].max() > found.gained[0, :, n].max() + 0.01 * content(joint)
        )
        broken += [Broken(case, joint, what, own, most) for what, own, most in checks if not own <= most]
    return sorted(broken, key=lambda b: b.bound - b.value), tried


def _kept(case: Case, joint: Pushed, found: Found, n: int) -> list[tuple[Any, float, float]]:
    """Claims for joints with enough friction. Without a goal, what is recalled adds nothing at all."""
    bristles = bristle_energy(joint)
    most = content(joint) if case.goals != "none" else 0.0
    checks = [("account", float(found.put_in[1, n]), float(found.dissipated[1, n]) + bristles + most)]
    for j in np.flatnonzero(np.isfinite(found.energy[1, :, n])):
        plain, own = found.gained[:, j, n]
        limit = plain + 2.0 * GROWTH * found.energy[1, j, n] + bristles + most
        checks.append(("energy", float(own), float(limit)))
    return checks


def _bounded(joint: Pushed, found: Found, n: int, off: bool) -> list[tuple[Any, float, float]]:
    """Claims for joints with less friction than is guaranteed; of those on a gear, which swing, the energy says it."""
    if joint.condition.drive != "rigid":
        return []
    data = joint.condition.data
    spring = SPRING * np.sqrt(2.0 * bristle_energy(joint) / data.inertia)
    checks: list[tuple[Any, float, float]] = []
    for j in np.flatnonzero(np.isfinite(found.energy[1, :, n])):
        bound = speed_bound(joint, float(found.speed[1, j, n]))
        # Until it ends, all friction that was identified may drive the joint on.
        late = REACTION + (joint.condition.delay + 2) / joint.condition.rate
        most = (data.coulomb * (1.0 + data.rise) + data.viscous * bound) / data.inertia
        checks.append(("speed", float(found.faster[1, j, n]), bound + late * most + spring))
    return checks
