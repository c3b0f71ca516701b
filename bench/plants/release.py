r"""Joints without goals that are pushed and let go: what a compensation must never do, and where it did.

A joint is let go with energy E. From then on friction only takes, so E must fall, whatever a passive compensation
adds: it may hold up a joint, not drive it. :func:`simulated` lets joints go with and without a compensation
side by side, :func:`judged` says which of them broke what.

The time to rest. Let friction be at least :math:`F + b|v|`, and the compensation at most
:math:`k F + k b|v|`, k < 1. Then :math:`J\dot v \le -(1-k)(F + b v)`, so from :math:`v_0` a joint rests after

.. math:: T \le \frac{J}{(1-k)\,b}\ln\!\Big(1 + \frac{b\,v_0}{F}\Big) \le \frac{J\,v_0}{(1-k)\,F}.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from plants.baselines import Lanes, Method, Ours, Sample, joint_models
from plants.control import gains, is_admitted, reference
from plants.friction import FloatArray
from plants.joints import BACKLASH, JOINTS, Condition, Mechanics
from plants.loop import nominal
from plants.sensing import Delay, Encoder
from stribeck.live.compensator import Compensator
from stribeck.live.settings import Settings
from stribeck.model.joint_map import JointMap

BoolArray = npt.NDArray[np.bool_]

STEP = 2e-4
"""Inner step [s]."""

LOOK = 5
"""Inner steps between two looks at energies and speeds, and updates of hands and ripple."""

PRELUDE = 3.0
"""So long joints that follow goals first do so [s]."""

PUSHING = 2.4
"""Pushes begin and end within so long after that [s]."""

REST = 0.02
"""A joint slower than this rests [rad/s]."""

GRIP = 40.0
"""Rate with which a hand brings a joint to its speed [1/s]."""

RATES = (100, 250, 500, 1000)

LEAST = 0.3
"""Friction is at least so many times that identified, in every direction and position."""

MOST = 2.0
"""... and at most so many times, its asymmetry and ripple apart."""

SURE = 0.25
"""Of the friction identified, the share that compensation takes for sure."""

GROWTH = 0.02
"""Speed may grow by so much of the speed at release, beyond what it does without compensation."""

Velocity = Literal["measured", "difference", "own"]


@dataclass(frozen=True)
class Robot:
    """What the joints of one compensator have in common.

    :param velocity: ``measured`` with noise, ``difference`` of positions, or ``own``: none is told.
    :param mode: output mode.
    :param prelude: whether the joints follow goals first.
    """

    rate: int = 500
    delay: int = 1
    velocity: Velocity = "measured"
    gain: float = 1.0
    mode: Literal["sum", "friction_only"] = "sum"
    prelude: bool = False


@dataclass(frozen=True)
class Push:
    """A hand brings a joint to a speed [rad/s] and lets go; times from the start, or the end of the prelude [s]."""

    begin: float
    end: float
    speed: float


@dataclass(frozen=True)
class Pushed:
    """One joint and what is done to it.

    :param lean_known: whether the asymmetry of its friction was identified.
    :param drift: after the prelude, friction is so many times what it was.
    :param seed: of the noise of its velocity.
    """

    condition: Condition
    pushes: tuple[Push, ...]
    lean_known: bool = False
    drift: float = 1.0
    seed: int = 0

    @property
    def least(self) -> float:
        """Least dry friction per identified one, over directions and positions."""
        c = self.condition
        lean = (1.0 - abs(c.asymmetry)) / (1.0 + abs(c.asymmetry) * self.lean_known)
        return c.coulomb_scale * lean * (1.0 - c.ripple)

    @property
    def least_viscous(self) -> float:
        """The same of viscous friction."""
        c = self.condition
        return c.viscous_scale * (1.0 - abs(c.asymmetry)) / (1.0 + abs(c.asymmetry) * self.lean_known)


Factory = Callable[[Robot, Lanes], Method]


class StatesOnly(Method):
    """Stribeck's Compensator that is told nothing but states, and knows no inertia.

    Its interface is as old as the Compensator: this runs with earlier versions of it too.
    """

    def __init__(self, lanes: Lanes, gain: float, velocities: bool) -> None:
        super().__init__(lanes)
        self._velocities = velocities
        models = joint_models(lanes)
        settings = Settings("friction_only", "none", gain=gain)
        self.compensator = Compensator(models, [JointMap()] * len(lanes), settings)
        self.compensator.enable()

    def update(self, sample: Sample) -> FloatArray:
        """Torque to add [N m]."""
        speed = sample.velocity if self._velocities else ()
        names, now = self.compensator.names, sample.time
        return self.compensator.on_state(now, now, names, sample.position, speed, ())


def ours(robot: Robot, lanes: Lanes) -> Method:
    """The present compensator of a robot."""
    told = robot.velocity != "own"
    if robot.mode == "friction_only":
        return StatesOnly(lanes, robot.gain, told)
    return Ours(lanes, gain=robot.gain, velocities=told)


# -- what is drawn


def drawn(robot: Robot, count: int, seed: int) -> list[Pushed]:
    """So many joints of a robot, at random."""
    rng = np.random.default_rng(seed)
    return [_one(robot, rng) for _ in range(count)]


def _one(robot: Robot, rng: np.random.Generator) -> Pushed:
    known = bool(rng.random() < 0.5)
    asymmetry = float(rng.choice([0.0, rng.uniform(-0.15, 0.15)]))
    ripple = float(rng.choice([0.0, rng.uniform(0.0, 0.2)]))
    lean = (1.0 - abs(asymmetry)) / (1.0 + abs(asymmetry) * known)
    # Half of the joints have little friction: there compensation comes nearest to it.
    most = float(rng.choice([0.5, MOST]))
    dry, viscous = (float(rng.uniform(LEAST, most)) for _ in range(2))
    condition = Condition(
        str(rng.choice(list(JOINTS))),
        drive=str(rng.choice(["rigid", "rigid", "elastic", "backlash"])),  # type: ignore[arg-type]
        law=str(rng.choice(["lugre", "gms"])),  # type: ignore[arg-type]
        coulomb_scale=min(dry / (lean * (1.0 - ripple)), MOST),
        viscous_scale=min(viscous / lean, MOST),
        asymmetry=asymmetry,
        ripple=ripple,
        bits=int(rng.choice([12, 14, 17])),
        measured_velocity=robot.velocity == "measured",
        rate=robot.rate,
        delay=robot.delay,
        control="zero",
        prelude=PRELUDE * robot.prelude,
        bandwidth=0.0,
    )
    if robot.prelude:
        condition = _led(condition)
    cuts = np.sort(rng.uniform(0.1, PUSHING, 2 * int(rng.integers(1, 4))))
    cuts = cuts if (cuts[1::2] - cuts[::2]).max() > 0.05 else np.array([0.5, 1.0])
    pushes = tuple(
        Push(float(begin), float(end), float(rng.choice([-1.0, 1.0]) * rng.uniform(0.1, 2.5)))
        for begin, end in zip(cuts[::2], cuts[1::2], strict=True)
        if end - begin > 0.05
    )
    drift = float(rng.uniform(0.9, 1.1)) if robot.prelude else 1.0
    return Pushed(condition, pushes, known, drift, int(rng.integers(2**31)))


def _led(condition: Condition) -> Condition:
    """With the fastest controller that is admitted, and an encoder that is fine enough for any."""
    for bits in (condition.bits, 14, 17):
        for bandwidth in (15.0, 8.0, 5.0):
            found = replace(condition, bandwidth=bandwidth, bits=bits)
            if is_admitted(replace(found, control="pd")):
                return found
    return replace(condition, bandwidth=3.0, bits=17)


# -- what happens


@dataclass(frozen=True)
class Found:
    """What became of every joint, without (0) and with (1) compensation: (2, joints), or (2, releases, joints).

    :param energy: of the plant at a release [J], NaN where there was none; the first release is the prelude's end.
    :param speed: of motor or link, the larger, at a release [rad/s].
    :param gained: most by which the energy rose afterwards above its least until then [J].
    :param faster: the same of the speed [rad/s].
    :param rested: since the last release, after this time the joint remained slower than :data:`REST` [s].
    :param left: from the last release to the end [s].
    :param put_in: energy from compensation [J], since the end of the prelude.
    :param dissipated: energy that friction took [J].
    """

    cases: list[Pushed]
    energy: FloatArray
    speed: FloatArray
    gained: FloatArray
    faster: FloatArray
    rested: FloatArray
    left: FloatArray
    put_in: FloatArray
    dissipated: FloatArray


class _Cell:
    """Joints of one robot in the simulation, with and without compensation."""

    def __init__(
        self, robot: Robot, cases: list[Pushed], places: npt.NDArray[np.int64], method: Method
    ) -> None:
        self.robot, self.places, self.method = robot, places, method
        self.every = round(1.0 / (robot.rate * STEP))
        self.dt = 1.0 / robot.rate
        count, conditions = len(cases), [case.condition for case in cases]
        self.plain = places[0]
        self.resolution = np.array([2.0 * np.pi / 2.0**c.bits for c in conditions] * 2)
        measured = np.full(2 * count, robot.velocity == "measured")
        self.encoder = Encoder(self.resolution, measured, self.dt, np.zeros(2 * count))
        delays = np.full(2 * count, robot.delay)
        self.line, self.added = Delay(delays), Delay(delays)
        self.limit = np.array([c.data.torque_limit for c in conditions] * 2)
        self.inertia = np.array([c.data.inertia for c in conditions] * 2)
        columns = zip(*(gains(c) if c.bandwidth else (0.0, 0.0, 0.0) for c in conditions), strict=True)
        self.kp, self.kd, self.feed = (np.array(column * 2) for column in columns)
        self.noises = [np.random.default_rng(case.seed) for case in cases]
        self.noise: FloatArray = np.zeros((0, 2 * count))
        self.now = 0

    def sample(self, body: Mechanics, path: Any, time: float) -> tuple[FloatArray, FloatArray]:
        """Torque of the motors and what of it is compensation, that come into force now."""
        where = self.places.ravel()
        noise = self._noise()
        at, speed = self.encoder.read(body.q[where], body.v[where], noise)
        led = self.robot.prelude and time < PRELUDE
        if led:
            goal, rate, bend = path
            effort = self.feed * bend + self.kp * (goal - at) + self.kd * (rate - speed)
            effort = np.clip(effort, -self.limit, self.limit)
        else:
            goal = rate = bend = np.nan
            effort = np.zeros_like(at)
        own = slice(len(at) // 2, None)
        blank = np.zeros_like(at[own])
        sample = Sample(
            time,
            at[own],
            speed[own],
            blank + goal,
            blank + rate,
            blank + bend,
            effort[own],
            self.inertia[own] * speed[own],
            blank,
            self.inertia[own],
        )
        added = np.concatenate([blank, self.method.update(sample)])
        total = np.clip(effort + added, -self.limit, self.limit)
        self.now += 1
        return self.line.through(total), self.added.through(total - effort)

    def _noise(self) -> FloatArray:
        row = self.now % 1000
        if row == 0:
            drawn_ = np.stack([rng.standard_normal(1000) for rng in self.noises], axis=1)
            self.noise = np.concatenate([drawn_, drawn_], axis=1)
        return np.asarray(self.noise[row])


def simulated(groups: list[tuple[Robot, list[Pushed]]], factory: Factory, seconds: float) -> Found:
    """Robots side by side for so long after their preludes [s]; those with a prelude must not be mixed with others."""
    cases = [case for _, own in groups for case in own]
    preludes = {robot.prelude for robot, _ in groups}
    if len(preludes) > 1:
        raise ValueError("robots with and without a prelude: simulate them apart")
    start = PRELUDE * preludes.pop()
    count = len(cases)
    order = sorted(range(2 * count), key=lambda n: cases[n % count].condition.law == "gms")
    places = np.argsort(order).reshape(2, count)
    body = Mechanics([cases[n % count].condition for n in order])
    cells, begin = [], 0
    for robot, own in groups:
        conditions = [case.condition for case in own]
        known = nominal(
            [
                c if case.lean_known else replace(c, asymmetry=0.0)
                for c, case in zip(conditions, own, strict=True)
            ]
        )
        cells.append(_Cell(robot, own, places[:, begin : begin + len(own)], factory(robot, known)))
        begin += len(own)
    whole = round((start + seconds) / STEP)
    times: FloatArray = np.arange(whole, dtype=np.float64) * STEP
    path = reference("sine", times)
    held_at, speeds = _hands(cases, whole // LOOK + 1, start)
    watch = _Watch(body, [cases[n % count] for n in order], start)
    torque, added, external = (np.zeros(2 * count) for _ in range(3))
    who = np.array([n % count for n in order])
    for k in range(whole):
        time = k * STEP
        for cell in cells:
            if k % cell.every == 0:
                where = cell.places.ravel()
                now = (path.position[k], path.velocity[k], path.acceleration[k])
                torque[where], added[where] = cell.sample(body, now, time)
        if k % LOOK == 0:
            look = k // LOOK
            if start and look == round(start / (STEP * LOOK)):
                body.friction.drift(np.array([cases[n].drift for n in who]))
            body.friction.modulate(body.q, body.gear)
            watch.look(time, held_at[look][who], body)
            target = speeds[look][who]
            pushed = np.isfinite(target)
        external = np.where(pushed, GRIP * body.inertia * (target - body.link_v), 0.0)
        before = body.v
        friction = body.step(torque, external, STEP)
        if time >= start:
            watch.put_in += added * before * STEP
            watch.dissipated += friction * before * STEP
    return watch.found(cases, places, seconds + start)


def _hands(cases: list[Pushed], looks: int, start: float) -> tuple[BoolArray, FloatArray]:
    """Whether a joint is not free, and the speed to which a hand brings it, NaN without one, (looks, joints)."""
    held = np.zeros((looks, len(cases)), dtype=np.bool_)
    speeds = np.full((looks, len(cases)), np.nan)
    per = 1.0 / (STEP * LOOK)
    for n, case in enumerate(cases):
        if start:  # until the last command under goals is through
            held[: round((start + (case.condition.delay + 1) / case.condition.rate) * per), n] = True
        for push in case.pushes:
            a, b = round((start + push.begin) * per), round((start + push.end) * per)
            held[a:b, n], speeds[a:b, n] = True, push.speed
    return held, speeds


class _Watch:
    """Energies and speeds since every release."""

    def __init__(self, body: Mechanics, every: list[Pushed], start: float) -> None:
        lanes, releases = len(every), 2 + max(len(case.pushes) for case in every)
        shape = (releases, lanes)
        self.lanes = np.arange(lanes)
        self.energy, self.speed = np.full(shape, np.nan), np.full(shape, np.nan)
        self.gained, self.faster = np.zeros(shape), np.zeros(shape)
        self.put_in, self.dissipated = np.zeros(lanes), np.zeros(lanes)
        self.number = np.zeros(lanes, dtype=np.int64)
        self.free = np.zeros(lanes, dtype=np.bool_)
        self.least, self.slowest = np.zeros(lanes), np.zeros(lanes)
        self.released, self.moved = np.zeros(lanes), np.zeros(lanes)

    def look(self, time: float, held: BoolArray, body: Mechanics) -> None:
        """Take in the plant as it is."""
        if time == 0.0:
            self.free = np.zeros_like(held)
            self._held = held
        speed = np.maximum(np.abs(body.v), np.abs(body.link_v))
        energy = self.energy_of(body)
        lets_go = self._held & ~held
        self._held = held
        if lets_go.any():
            at = (self.number[lets_go], self.lanes[lets_go])
            self.energy[at], self.speed[at] = energy[lets_go], speed[lets_go]
            self.least[lets_go], self.slowest[lets_go] = energy[lets_go], speed[lets_go]
            self.released[lets_go] = self.moved[lets_go] = time
            self.free |= lets_go
        grips = held & self.free
        self.number[grips] += 1
        self.free &= ~held
        self.least = np.minimum(self.least, energy)
        self.slowest = np.minimum(self.slowest, speed)
        at = (self.number, self.lanes)
        self.gained[at] = np.where(
            self.free, np.maximum(self.gained[at], energy - self.least), self.gained[at]
        )
        self.faster[at] = np.where(
            self.free, np.maximum(self.faster[at], speed - self.slowest), self.faster[at]
        )
        self.moved = np.where(speed > REST, time, self.moved)

    @staticmethod
    def energy_of(body: Mechanics) -> FloatArray:
        """Kinetic energy and that of the gear [J]; velocities belong to half a step before the positions."""
        twist = body.q - body.link_q - 0.5 * STEP * (body.v - body.link_v)
        twist = twist - np.clip(twist, -body.half_play, body.half_play)
        kinetic = body.motor * body.v**2 + body.link * body.link_v**2
        both = kinetic + body.stiffness * twist**2
        return np.asarray(0.5 * np.where(body.two, both, body.inertia * body.v**2))

    def found(self, cases: list[Pushed], places: npt.NDArray[np.int64], end: float) -> Found:
        """All of it, joint by joint."""

        def apart(values: FloatArray) -> FloatArray:
            return np.asarray(np.moveaxis(values[..., places], -2, 0))

        return Found(
            cases,
            apart(self.energy),
            apart(self.speed),
            apart(self.gained),
            apart(self.faster),
            apart(self.moved - self.released),
            apart(end - self.released),
            apart(self.put_in),
            apart(self.dissipated),
        )


# -- what is claimed


SAFETY = 0.85
"""After motion under goals compensation takes at most so much of the friction that it has learnt."""

SPRING = 0.46
r"""The spring of the presliding, 0.7 of critically damped, gives back so much of :math:`F_s/\sqrt{\sigma_0 J}` [1]."""

AWAY = 0.3
"""A joint has come to rest so much after the friction alone would have it at the latest [s]."""


@dataclass(frozen=True)
class Broken:
    """One joint that broke a claim.

    :param claim: which one.
    :param value: what it did, where ``bound`` is the most that it may do.
    """

    robot: Robot
    case: Pushed
    claim: Literal["speed", "energy", "rest", "account"]
    value: float
    bound: float


def time_to_rest(robot: Robot, case: Pushed, speed: float) -> float:
    """Within so long a rigid joint rests from a speed [rad/s], twice the time that is derived above [s]."""
    joint = case.condition.data
    dry, viscous = case.least * case.drift, case.least_viscous * case.drift
    most = SURE * min(robot.gain, 1.0)
    k = max(most / dry, most / viscous)
    if robot.prelude:
        k = max(k, SAFETY / case.drift)
    force, slope = dry * joint.coulomb, viscous * joint.viscous
    return float(2.0 * joint.inertia / ((1.0 - k) * slope) * np.log1p(slope * speed / force) + AWAY)


def bristle_energy(case: Pushed) -> float:
    r"""What friction gives back at most, :math:`F_s^2/2\sigma_0` where it is largest [J]."""
    c, joint = case.condition, case.condition.data
    most = case.drift * (1.0 + joint.rise) * (1.0 + abs(c.asymmetry)) * (1.0 + c.ripple)
    return 0.5 * c.coulomb_scale * joint.coulomb * joint.presliding * most**2


def judged(groups: list[tuple[Robot, list[Pushed]]], found: Found) -> tuple[list[Broken], int]:
    """What was broken, the worst first; and how many joints had to be at rest within the run."""
    broken: list[Broken] = []
    robots = [robot for robot, own in groups for _ in own]
    timed = 0
    for n, (robot, case) in enumerate(zip(robots, found.cases, strict=True)):
        joint = case.condition.data
        bristles = bristle_energy(case)
        spring = SPRING * np.sqrt(2.0 * bristles / joint.inertia)
        checks: list[tuple[Any, float, float]] = []
        for j in np.flatnonzero(np.isfinite(found.energy[1, :, n])):
            plain, own = found.gained[:, j, n]
            if case.condition.drive == "rigid":
                slow, fast = found.faster[:, j, n]
                checks.append(("speed", float(fast), slow + GROWTH * found.speed[1, j, n] + spring))
            limit = plain + 2.0 * GROWTH * found.energy[1, j, n] + bristles
            checks.append(("energy", float(own), float(limit)))
            last = j
        longest = time_to_rest(robot, case, float(found.speed[1, last, n]))
        if case.condition.drive != "rigid":  # a link swings on its gear, where nothing brakes it but the gear
            longest += float(found.rested[0, n])
        if case.condition.drive == "backlash":  # and floats in its play
            longest += BACKLASH / REST
        if longest < found.left[1, n]:
            timed += 1
            checks.append(("rest", float(found.rested[1, n]), longest))
        checks.append(("account", float(found.put_in[1, n]), float(found.dissipated[1, n]) + bristles))
        broken += [Broken(robot, case, what, own, most) for what, own, most in checks if not own <= most]
    return sorted(broken, key=lambda b: b.bound - b.value), timed


def searched(
    robots: list[Robot], joints: int, seed: int, factory: Factory = ours, seconds: float = 6.0
) -> tuple[list[Broken], int]:
    """:func:`judged` joints of some robots, drawn from a seed."""
    groups = [(robot, drawn(robot, joints, seed + n)) for n, robot in enumerate(robots)]
    return judged(groups, simulated(groups, factory, seconds))


if __name__ == "__main__":
    robots_ = [Robot(500, 1, "measured", 0.8, "friction_only"), Robot(100, 2, "own", 0.8, "friction_only")]
    broken_, _ = searched(robots_, 50, 0, seconds=4.0)
    for one in broken_[:5]:
        print(f"{one.claim}: {one.value:.3g}, at most {one.bound:.3g}: {one.case}")
    print(f"{len(broken_)} claims broken by 100 joints")
