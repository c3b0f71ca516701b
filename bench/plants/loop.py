"""Many runs at once: every condition under every method, closed loop, one lane each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from plants.baselines import Lanes, Method, Sample
from plants.control import gains, hand_schedule, reference
from plants.friction import FloatArray
from plants.joints import Condition, Mechanics
from plants.measure import Measures
from plants.sensing import Delay, Encoder

INNER = 1e-4
"""Inner step [s]."""

SLOW = 10
"""Inner steps between updates of gravity, ripple and load of the friction."""

LOAD_ON, LOAD_OFF = 3.5, 5.0
"""When the external load acts [s]."""

HAND_LAG = {"hand": 0.02, "coast": 0.01, "hold": 0.003}
"""Deflection of the hand's spring that moves the joint against its identified Coulomb friction [rad]; damping ratio 0.8."""

WALL_BANDWIDTH = 100.0
"""Frequency of the joint on the wall [rad/s]; damping ratio 0.3."""

WALL_AT, PRESSED = 0.3, 0.3
"""Where the wall stands [rad]; share of the torque limit that presses a joint to a wall or pulls at a held one."""

Factories = Mapping[str, Callable[[Lanes], Method]]


def _array(values: object) -> FloatArray:
    return np.array(list(values), dtype=np.float64)  # type: ignore[call-overload]


def nominal(conditions: list[Condition]) -> Lanes:
    """What is known of the plants beforehand."""
    joints = [c.data for c in conditions]
    lean = _array(c.asymmetry for c in conditions)
    coulomb, viscous = _array(j.coulomb for j in joints), _array(j.viscous for j in joints)
    return Lanes(
        inertia=_array(j.inertia for j in joints),
        coulomb=(coulomb * (1.0 + lean), coulomb * (1.0 - lean)),
        rise=_array(j.coulomb * j.rise for j in joints),
        stribeck_velocity=_array(j.stribeck_velocity for j in joints),
        viscous=(viscous * (1.0 + lean), viscous * (1.0 - lean)),
        torque_limit=_array(j.torque_limit for j in joints),
        dt=1.0 / conditions[0].rate,
        delay=_array(c.delay / c.rate for c in conditions),
        resolution=_array(2.0 * np.pi / 2.0**c.bits for c in conditions),
        mode=tuple(c.control for c in conditions),
        bandwidth=_array(0.0 if c.control == "zero" else c.bandwidth for c in conditions),
    )


class ClosedLoop:
    """One simulation of conditions that share a sample rate, under all methods.

    :param methods: by name; the first must add nothing.
    :param inner: inner step [s].
    """

    def __init__(
        self, conditions: list[Condition], methods: Factories, seconds: float, inner: float = INNER
    ) -> None:
        self.names, self.seconds, self.inner = tuple(methods), seconds, inner
        lanes = [(c.law == "gms", m, n) for m in range(len(methods)) for n, c in enumerate(conditions)]
        lanes.sort()  # Maxwell slip last
        self.own = np.array([n for _, _, n in lanes])
        self.where = np.zeros((len(methods), len(conditions)), dtype=np.int64)
        for place, (_, m, n) in enumerate(lanes):
            self.where[m, n] = place
        self.every = [conditions[n] for n in self.own]
        self.conditions = conditions
        self.known = nominal(conditions)
        self.methods = [factory(self.known) for factory in methods.values()]
        self.dt = 1.0 / conditions[0].rate
        self.kp, self.kd, self.feed = (_array(column) for column in zip(*map(gains, self.every), strict=True))
        self._set_paths()
        self._set_loads()

    def _set_paths(self) -> None:
        times: FloatArray = np.arange(round(self.seconds / self.dt), dtype=np.float64) * self.dt
        names = sorted({c.reference for c in self.conditions if c.control != "zero"})
        paths = [reference(name, times) for name in names or ["rest"]]
        self.times = times
        self._stack = np.stack([np.stack([p.position, p.velocity, p.acceleration, p.rest]) for p in paths])
        self._which = np.array([names.index(c.reference) if c.control != "zero" else 0 for c in self.every])
        # Joints that are left without goals later follow one kind of path before.
        opening = reference("sine", times)
        self._opening = np.stack([opening.position, opening.velocity, opening.acceleration, opening.rest])
        limit = _array(c.data.torque_limit for c in self.every)
        contact = np.array([c.contact for c in self.every])
        reach = PRESSED * limit / np.maximum(self.kp, 1e-9)
        self._scale = np.where(contact == "wall", WALL_AT + reach, np.where(contact == "hold", reach, 1.0))
        self.goalless = np.array([c.control == "zero" for c in self.every])
        self.prelude = float(max(c.prelude for c in self.every))

    def _set_loads(self) -> None:
        every = self.every
        inertia = _array(c.data.inertia for c in every)
        self.limit = _array(c.data.torque_limit for c in every)
        self.gravity = _array(c.data.gravity * (c.gravity_error is not None) for c in every)
        self.gravity_known = _array(
            c.data.gravity * (1.0 + c.gravity_error) if c.gravity_error is not None else 0.0 for c in every
        )
        self.load = _array(c.load_step * c.data.torque_limit for c in every)
        kinds = {
            c.reference if c.control == "zero" else "hold"
            for c in every
            if c.control == "zero" or c.contact == "hold"
        }
        if len(kinds) > 1:
            raise ValueError(f"one schedule of the hand at a time, found {', '.join(sorted(kinds))}")
        self.schedule = next(iter(kinds), "")
        inner: FloatArray = np.arange(round(self.seconds / self.inner), dtype=np.float64) * self.inner
        self.hand = hand_schedule(self.schedule, inner - self.prelude)
        gripped = _array(c.control == "zero" or c.contact == "hold" for c in every)
        coulomb = _array(c.data.coulomb for c in every)
        self.hand_k = gripped * coulomb / HAND_LAG.get(self.schedule, 1.0)
        self.hand_d = 1.6 * np.sqrt(self.hand_k * inertia)
        self.stroke = _array(0.8 * c.hand_speed for c in every)
        walled = _array(c.contact == "wall" for c in every)
        self.wall_k, self.wall_d = (
            walled * inertia * WALL_BANDWIDTH**2,
            walled * 0.6 * inertia * WALL_BANDWIDTH,
        )
        self.touches = bool(self.schedule) or bool(walled.any())

    def run(self) -> dict[str, FloatArray]:
        """Every figure by name, (methods, conditions)."""
        every, count = self.every, len(self.every)
        body, measures = Mechanics(every), Measures(count)
        resolution = _array(2.0 * np.pi / 2.0**c.bits for c in every)
        encoder = Encoder(resolution, np.array([c.measured_velocity for c in every]), self.dt, body.q)
        # The whole torque and our part of it go through the same delay.
        delays = np.array([c.delay for c in every])
        line, line_added = Delay(delays), Delay(delays)
        rng = np.random.default_rng(2)
        inner = round(self.dt / self.inner)
        origin, force, step = body.link_q, np.zeros(count), 0
        held = False
        added = np.zeros(count)
        for now in range(len(self.times)):
            time = float(self.times[now])
            noise = rng.standard_normal(len(self.conditions))[self.own]
            at, speed = encoder.read(body.q, body.v, noise)
            goal, rate, bend, rest = self._stack[self._which, :, now].T
            goalless = self.goalless
            if time < self.prelude:
                goal, rate, bend, rest = np.where(
                    goalless, self._opening[:, now, None], (goal, rate, bend, rest)
                )
                goalless = np.zeros_like(goalless)
            goal, rate, bend = self._scale * goal, self._scale * rate, self._scale * bend
            gravity = self.gravity_known * np.sin(at)
            effort = self.feed * bend + self.kp * (goal - at) + self.kd * (rate - speed)
            effort = np.clip(np.where(goalless, 0.0, effort) + gravity, -self.limit, self.limit)
            blank = np.where(goalless, np.nan, 0.0)
            sample = (at, speed, goal + blank, rate + blank, bend + blank, effort)
            for places, method in zip(self.where, self.methods, strict=True):
                seen = [part[places] for part in sample]
                seen += [self.known.inertia * seen[1], -gravity[places], self.known.inertia]
                added[places] = method.update(Sample(time, *seen))
            loaded = LOAD_ON <= time < LOAD_OFF
            self._measure(measures, time, goal - body.q, at, rest > 0.0, added)
            total = np.clip(effort + added, -self.limit, self.limit)
            measures.lasts(time, total - effort)
            torque, ours = line.through(total), line_added.through(total - effort)
            constant = self.load * loaded
            for part in range(inner):
                if part % SLOW == 0:
                    body.friction.modulate(body.q, body.gear)
                    slow = constant - self.gravity * np.sin(body.link_q)
                external = slow
                if self.touches:
                    if self.hand.grips[step] and not held:
                        origin = body.link_q.copy()
                    held = bool(self.hand.grips[step])
                    force = self._force(body, origin, step, held)
                    external = slow + force
                before = body.v
                friction = body.step(torque, external, self.inner)
                if time >= self.prelude:
                    measures.put_in += ours * before * self.inner
                    measures.dissipated += friction * before * self.inner
                step += 1
            if self.touches:
                measures.touch(time, force)
                measures.free(held, body.mean_velocity)
        figures = measures.finished(resolution)
        return {name: values[self.where] for name, values in figures.items()}

    def _force(self, body: Mechanics, origin: FloatArray, step: int, held: bool) -> FloatArray:
        """Torque of hand and wall on the link [N m]."""
        deep = body.link_q - WALL_AT
        push = self.wall_k * deep + self.wall_d * body.link_v
        force = -np.where(deep > 0.0, np.maximum(push, 0.0), 0.0)
        if held:
            goal = origin + self.stroke * self.hand.path[step]
            rate = self.stroke * self.hand.slope[step]
            force += self.hand_k * (goal - body.link_q) + self.hand_d * (rate - body.link_v)
        return force

    def _measure(
        self,
        measures: Measures,
        time: float,
        error: FloatArray,
        at: FloatArray,
        resting: FloatArray,
        added: FloatArray,
    ) -> None:
        changing = min(abs(time - LOAD_ON), abs(time - LOAD_OFF)) < self.dt
        quiet = np.logical_and(resting, ~((self.load != 0.0) & changing))
        measures.track(time, self.dt, error, at, quiet, added)
