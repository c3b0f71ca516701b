r"""Rival compensations and the adapter to ours, all with one interface.

A method sees what a controller's process sees: measured position and velocity, the goal, the controller's
own torque, and what a nominal model says. It returns the torque to add, (L,) [N m].
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from plants.friction import FloatArray
from stribeck.files.actuators import load_actuator
from stribeck.live.compensator import Compensator
from stribeck.live.friction import JointModel
from stribeck.live.settings import Settings, Timing
from stribeck.model.joint_map import JointMap
from stribeck.model.law import law_named


class Sample(NamedTuple):
    r"""One cycle of a controller; all (L,) but the time.

    :param goal_position: NaN, like velocity and acceleration, where there is no goal.
    :param effort: the controller's torque of this cycle, its gravity in it, without friction compensation.
    :param momentum: p of the nominal model, :math:`\hat J v` or :math:`\hat M(q)v` [N m s].
    :param known: h of the nominal model, :math:`\dot p = \tau + h + \tau_{friction} + \tau_{contact}`:
        gravity, :math:`-\hat g(q)`, and in an arm :math:`\hat C^T v` [N m].
    :param inertia: of the nominal model [kg m²]: (L,), or of arms :math:`\hat M(q)`, (arms, 6, 6).
    """

    time: float
    position: FloatArray
    velocity: FloatArray
    goal_position: FloatArray
    goal_velocity: FloatArray
    goal_acceleration: FloatArray
    effort: FloatArray
    momentum: FloatArray
    known: FloatArray
    inertia: FloatArray


@dataclass(frozen=True)
class Lanes:
    r"""What is known of the joints beforehand, (L,), all nominal: as identified.

    :param inertia: of motor and link together [kg m²].
    :param coulomb: Coulomb friction in positive and negative direction [N m].
    :param rise: stiction beyond it [N m].
    :param stribeck_velocity: of :math:`F_s e^{-(v/v_s)^2}` [rad/s].
    :param viscous: in positive and negative direction [N m s/rad].
    :param dt: sample time [s].
    :param delay: from command to actuation [s].
    :param resolution: one count of the encoder [rad].
    :param mode: per lane ``pd``, ``impedance`` or ``zero`` (no goal).
    :param bandwidth: of the controller [rad/s], 0 without one.
    """

    inertia: FloatArray
    coulomb: tuple[FloatArray, FloatArray]
    rise: FloatArray
    stribeck_velocity: FloatArray
    viscous: tuple[FloatArray, FloatArray]
    torque_limit: FloatArray
    dt: float
    delay: FloatArray
    resolution: FloatArray
    mode: tuple[str, ...]
    bandwidth: FloatArray

    def __len__(self) -> int:
        return len(self.inertia)


class Method:
    """A compensation of all lanes. This one adds nothing."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self._zero: FloatArray = np.zeros(len(lanes))

    def update(self, sample: Sample) -> FloatArray:
        """Torque to add [N m]."""
        return self._zero


def coulomb_viscous(lanes: Lanes, velocity: FloatArray, width: float) -> FloatArray:
    r""":math:`F_c\tanh(v/w) + F_v v` with the values of the direction [N m]."""
    positive = velocity > 0.0
    dry = np.where(positive, *lanes.coulomb)
    return dry * np.tanh(velocity / width) + np.where(positive, *lanes.viscous) * velocity


class TanhMeasured(Method):
    r"""0.8 of Coulomb and viscous friction at the measured velocity."""

    gain, width = 0.8, 0.05

    def update(self, sample: Sample) -> FloatArray:
        """Torque to add [N m]."""
        return self.gain * coulomb_viscous(self.lanes, sample.velocity, self.width)


class TanhDesired(TanhMeasured):
    r"""0.8 of Coulomb and viscous friction at the desired velocity; without a goal at the measured one."""

    def update(self, sample: Sample) -> FloatArray:
        """Torque to add [N m]."""
        desired = np.where(np.isfinite(sample.goal_velocity), sample.goal_velocity, sample.velocity)
        return self.gain * coulomb_viscous(self.lanes, desired, self.width)


class MomentumObserver(Method):
    r"""Generalised momentum observer: :math:`r = K(p - \int(\tau + h + r)\,dt)`, and -r is added.

    Textbook: r tends to what the model lacks, friction and contact alike. De Luca, Albu-Schäffer, Haddadin,
    Hirzinger 2006, doi 10.1109/IROS.2006.282053. K = 20 rad/s.
    """

    rate = 20.0

    def __init__(self, lanes: Lanes) -> None:
        super().__init__(lanes)
        self._integral: FloatArray | None = None
        self._residual = self._zero
        self._added = self._zero

    def update(self, sample: Sample) -> FloatArray:
        """Torque to add [N m]."""
        limit = self.lanes.torque_limit
        if self._integral is None:
            self._integral = sample.momentum
        self._residual = self.rate * (sample.momentum - self._integral)
        self._added = np.clip(-self._residual, -limit, limit)
        total = np.clip(sample.effort + self._added, -limit, limit)
        self._integral = self._integral + (total + sample.known + self._residual) * self.lanes.dt
        return self._added


class Nominal:
    """The nominal model as Stribeck's compensation asks for it: what came with the last sample."""

    def __init__(self) -> None:
        self.inertia: FloatArray = np.empty(0)
        self.bias: FloatArray = np.empty(0)

    def take(self, sample: Sample) -> None:
        """The model at a sample."""
        self.inertia, self.bias = sample.inertia, -sample.known
        if self.inertia.ndim == 3:
            blocks, size = len(self.inertia), self.inertia.shape[1]
            whole = np.zeros((blocks, size, blocks, size))
            whole[np.arange(blocks), :, np.arange(blocks), :] = self.inertia
            self.inertia = whole.reshape(blocks * size, blocks * size)

    def mass_matrix_and_bias(self, q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """M, or its diagonal, and h."""
        return self.inertia, self.bias


class Ours(Method):
    """Stribeck's Compensator behind a controller of efforts: one for all lanes, as one robot with so many joints.

    :param goals: whether it is told the goals beside the efforts.
    :param velocities: whether it sees the velocities; else it takes the slope of the positions.
    :param model: whether it knows inertia and gravity of the joints.
    """

    def __init__(
        self,
        lanes: Lanes,
        *,
        gain: float = 0.8,
        goals: bool = True,
        velocities: bool = True,
        model: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__(lanes)
        delay = float(np.median(lanes.delay))
        chosen = Settings("sum", "none", gain=gain, timing=Timing(loop_delay=delay), **settings)
        self._goals, self._velocities = goals, velocities
        self._model = Nominal() if model else None
        if self._model is not None:
            self._model.inertia, self._model.bias = lanes.inertia, self._zero
        maps = [JointMap()] * len(lanes)
        self.compensator = Compensator(joint_models(lanes), maps, chosen, dynamics=self._model)
        self._names = self.compensator.names
        self.compensator.enable()

    def update(self, sample: Sample) -> FloatArray:
        """Torque to add [N m]."""
        ours, now = self.compensator, sample.time
        if self._model is not None:
            self._model.take(sample)
        ours.on_command(now, now - 1e-6, self._names, (), (), sample.effort)
        if self._goals:
            ours.on_goal(now, now - 1e-6, self._names, sample.goal_position, sample.goal_velocity)
        speed = sample.velocity if self._velocities else ()
        return ours.on_state(now, now, self._names, sample.position, speed, ())


class Graph(Ours):
    """Stribeck's Compensator as nodes of a graph feed it.

    States and goals are stamped with the time of the controller's cycle. The goal of a cycle arrives after its state, by a
    varying part of a cycle and now and then by a whole one more, with every ``goal_every``-th cycle. Nobody knows the
    resolution of the encoder.

    :param model_error: relative error of inertia and gravity in the model.
    :param noise: half-width of the noise in goals, in counts of the encoder [1].
    """

    resolution = 1e-6
    """What a joint driven by torque is said to resolve [rad]."""

    late = 0.1
    """Share of goals that arrive a cycle later than usual [1]."""

    def __init__(
        self,
        lanes: Lanes,
        *,
        goal_every: int = 1,
        model_error: float = 0.0,
        noise: float = 0.0,
        **options: Any,
    ) -> None:
        unknown = np.full(len(lanes), self.resolution)
        super().__init__(replace(lanes, resolution=unknown), **options)
        self._goal_every, self._scale = goal_every, 1.0 + model_error
        self._noise = noise * lanes.resolution
        self._rng = np.random.default_rng(3)
        self._under_way: deque[tuple[float, Sample]] = deque()
        self._cycle, self._arrived = 0, -np.inf

    def update(self, sample: Sample) -> FloatArray:
        """Torque to add [N m]."""
        ours, names, dt = self.compensator, self._names, self.lanes.dt
        if self._model is not None:
            self._model.take(
                sample._replace(known=self._scale * sample.known, inertia=self._scale * sample.inertia)
            )
        arrival = max(sample.time + 0.3 * dt * self._rng.random(), self._arrived)
        while self._under_way and self._under_way[0][0] <= arrival:
            at, wish = self._under_way.popleft()
            ours.on_goal(at, wish.time, names, wish.goal_position, wish.goal_velocity)
        ours.on_command(arrival, sample.time - 1e-6, names, (), (), sample.effort)
        speed = sample.velocity if self._velocities else ()
        torque = ours.on_state(arrival, sample.time, names, sample.position, speed, ())
        if self._goals and self._cycle % self._goal_every == 0:
            wait = 0.3 + 0.6 * self._rng.random() + (self._rng.random() < self.late)
            last = self._under_way[-1][0] if self._under_way else arrival
            goal = sample.goal_position
            if self._noise.any():
                goal = goal + self._noise * self._rng.uniform(-1.0, 1.0, len(goal))
            wish = sample._replace(goal_position=goal)
            self._under_way.append((max(sample.time + wait * dt, last), wish))
        self._cycle, self._arrived = self._cycle + 1, arrival
        return torque


def joint_models(lanes: Lanes) -> list[JointModel]:
    """Law M2, asymmetric, with the nominal values."""
    law = law_named("m2").with_terms(asymmetric=True)
    actuator = load_actuator("torque_joint")
    return [
        JointModel(
            f"j{k}",
            replace(actuator, resolution=float(lanes.resolution[k])),
            law,
            {
                "ratio": 1.0,
                "armature": float(lanes.inertia[k]),
                "q_offset": 0.0,
                "friction_base": float(lanes.coulomb[0][k]),
                "friction_base_negative": float(lanes.coulomb[1][k]),
                "friction_stribeck": float(lanes.rise[k]),
                "dtheta_stribeck": float(lanes.stribeck_velocity[k]),
                "alpha": 2.0,
                "friction_viscous": float(lanes.viscous[0][k]),
                "friction_viscous_negative": float(lanes.viscous[1][k]),
            },
            float(lanes.torque_limit[k]),
        )
        for k in range(len(lanes))
    ]


METHODS: dict[str, Callable[[Lanes], Method]] = {
    "none": Method,
    "tanh": TanhMeasured,
    "tanh_desired": TanhDesired,
    "momentum": MomentumObserver,
    "ours": Ours,
    "ours_static": partial(Ours, model=False),
    "ours_efforts": partial(Ours, goals=False),
    "ours_graph": Graph,
    "ours_graph_wrong": partial(Graph, model_error=0.2),
    "ours_graph_static": partial(Graph, model=False),
    "ours_graph_slow": partial(Graph, model=False, goal_every=3),
    "ours_graph_efforts": partial(Graph, goals=False),
    "ours_noisy": partial(Graph, noise=0.5),
    "ours_noisy_static": partial(Graph, model=False, noise=0.5),
}
"""Every method by name. Add further adapters here."""

OURS = tuple(name for name in METHODS if name.startswith("ours"))
"""Those that are Stribeck's."""
