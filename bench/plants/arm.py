r"""An arm of six joints like a UR5, with a model that is wrong, and its controllers.

.. math:: (M(q) + B)\ddot q + C(q, \dot q)\dot q + g(q) = \tau - F

M, C, g are those of ur5_robot.urdf of example-robot-data by Pinocchio. M and the torques of motion and
gravity are renewed every millisecond; in between friction and velocity go on at the inner step. Friction,
rotor inertia and limits are of the size of a UR5's, not measured on one.

The controller's model: masses and rotational inertias of the links are wrong by the shares of :data:`WRONG`, centres of
mass and rotors are right.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from plants.baselines import Lanes, Sample
from plants.control import swing
from plants.friction import FloatArray, FrictionValues, LuGre
from plants.loop import INNER, Factories
from plants.measure import Measures
from plants.sensing import Delay, Encoder

JOINTS = 6
COULOMB = np.array([10.0, 14.0, 9.0, 3.0, 2.5, 2.2])
"""[N m]."""
RISE = 0.25
VISCOUS = 0.9 * COULOMB
"""[N m s/rad]."""
STRIBECK_VELOCITY, PRESLIDING = 0.08, 1e-3
ROTOR = np.array([1.2, 1.2, 1.0, 0.15, 0.15, 0.15])
"""B, of the motors at the joints [kg m²]."""
LIMIT = np.array([150.0, 150.0, 150.0, 28.0, 28.0, 28.0])
"""[N m]."""
HOME = np.array([0.0, -1.2, 1.4, -0.6, 0.8, 0.0])
WRONG = np.array([0.2, -0.2, 0.2, -0.2, 0.2, -0.2])
"""Share by which the controller's mass and rotational inertia of each link, base to wrist, is wrong."""
BITS, RATE = 17, 500
MOVING = ((0.7, 3.4), (4.2, 6.7))
"""The arm moves between these times [s], and rests before, between and after."""


@dataclass(frozen=True)
class ArmCondition:
    """One run of the arm.

    :param scale: true friction per identified friction.
    :param control: ``computed`` torque, or joint ``impedance`` with gravity.
    :param bandwidth: [rad/s].
    :param delay: [samples].
    :param motion: seed of the motion.
    """

    scale: float = 1.0
    control: str = "computed"
    bandwidth: float = 10.0
    delay: int = 1
    motion: int = 0
    rate: int = RATE
    gravity_error: float = 0.0


CONTROLS = (("computed", 8.0), ("computed", 15.0), ("impedance", 6.0))


def arms(quick: bool = False) -> list[ArmCondition]:
    """The runs."""
    motions = 1 if quick else 2
    return [
        ArmCondition(scale, control, bandwidth, delay, motion)
        for motion in range(motions)
        for control, bandwidth in CONTROLS
        for delay in (1, 2)
        for scale in (1.0, 0.6, 1.4)
    ]


def ur5(wrong: bool = False) -> Any:
    """Pinocchio's model, without rotors; with the controller's inertials if ``wrong``.

    :raises FileNotFoundError: without the package example-robot-data.
    """
    below = "cmeel.prefix/share/example-robot-data/robots/ur_description/urdf/ur5_robot.urdf"
    files = [Path(folder) / below for folder in sys.path if (Path(folder) / below).is_file()]
    if not files:
        raise FileNotFoundError("ur5_robot.urdf not found: pip install example-robot-data")
    model = pin.buildModelFromUrdf(str(files[0]))
    if wrong:
        for k, share in enumerate(WRONG):
            body = model.inertias[k + 1]
            factor = 1.0 + float(share)
            model.inertias[k + 1] = pin.Inertia(factor * body.mass, body.lever, factor * body.inertia)
    return model


def mass_matrix(model: Any, data: Any, q: FloatArray) -> FloatArray:
    """M + B [kg m²]."""
    upper = np.triu(pin.crba(model, data, q))
    return np.asarray(upper + np.triu(upper, 1).T + np.diag(ROTOR))


def motion(seed: int, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Position, velocity, acceleration (T, 6): sums of three sines, eased in and out of every rest."""
    rng = np.random.default_rng(100 + seed)
    total = [np.zeros((len(t), JOINTS)) for _ in range(3)]
    for begin, end in MOVING:
        for joint in range(JOINTS):
            for frequency in (0.3, 0.6, 0.9):
                amplitude = float(rng.uniform(-0.12, 0.12) / frequency**0.7) * (1.0 if joint < 3 else 1.5)
                for out, part in zip(total, swing(t, amplitude, frequency, begin, end), strict=True):
                    out[:, joint] += part
    total[0] += HOME
    return total[0], total[1], total[2]


class ArmClosedLoop:
    """One simulation of arms under all methods; lanes are the joints, arm by arm."""

    def __init__(self, conditions: list[ArmCondition], methods: Factories, seconds: float) -> None:
        self.conditions, self.count = conditions, len(methods) * len(conditions)
        self.every = [c for _ in methods for c in conditions]
        self.true, self.wrong = ur5(), ur5(wrong=True)
        self.data, self.wrong_data = self.true.createData(), self.wrong.createData()
        self.dt = 1.0 / RATE
        self.times: FloatArray = np.arange(round(seconds / self.dt), dtype=np.float64) * self.dt
        self.home = np.diag(mass_matrix(self.wrong, self.wrong_data, HOME)).copy()
        known = self._lanes()
        self.methods = [factory(known) for factory in methods.values()]
        self.limit = np.tile(LIMIT, self.count)

    def _lanes(self) -> Lanes:
        arms_, lanes = len(self.conditions), len(self.conditions) * JOINTS
        coulomb, viscous = np.tile(COULOMB, arms_), np.tile(VISCOUS, arms_)
        return Lanes(
            inertia=np.tile(self.home, arms_),
            coulomb=(coulomb, coulomb),
            rise=RISE * coulomb,
            stribeck_velocity=np.full(lanes, STRIBECK_VELOCITY),
            viscous=(viscous, viscous),
            torque_limit=np.tile(LIMIT, arms_),
            dt=self.dt,
            delay=np.repeat([c.delay * self.dt for c in self.conditions], JOINTS),
            resolution=np.full(lanes, 2.0 * np.pi / 2.0**BITS),
            mode=tuple(
                "pd" if c.control == "computed" else "impedance"
                for c in self.conditions
                for _ in range(JOINTS)
            ),
            bandwidth=np.repeat([c.bandwidth for c in self.conditions], JOINTS),
        )

    def _friction(self) -> LuGre:
        scale = np.repeat([c.scale for c in self.every], JOINTS)
        coulomb = np.tile(COULOMB, self.count) * scale
        zero = np.zeros_like(coulomb)
        free = 1.0 / np.diag(np.linalg.inv(mass_matrix(self.true, self.data, HOME)))
        return LuGre(
            FrictionValues(
                coulomb=coulomb,
                stiction=(1.0 + RISE) * coulomb,
                viscous=np.tile(VISCOUS, self.count) * scale,
                stribeck_velocity=np.full_like(coulomb, STRIBECK_VELOCITY),
                presliding=np.full_like(coulomb, PRESLIDING),
                inertia=np.tile(free, self.count),
                asymmetry=zero,
                ripple=zero,
                ripple_wave=zero,
                load_share=zero,
            )
        )

    def _controlled(
        self, goal: FloatArray, rate: FloatArray, bend: FloatArray, q: FloatArray, v: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Torque of the controllers, momentum and known torques of their model, (arms, 6) each."""
        effort, momentum, known = np.empty_like(q), np.empty_like(q), np.empty_like(q)
        masses = np.empty((self.count, JOINTS, JOINTS))
        model, data = self.wrong, self.wrong_data
        for k, c in enumerate(self.every):
            mass = mass_matrix(model, data, q[k])
            coriolis = pin.computeCoriolisMatrix(model, data, q[k], v[k])
            gravity = pin.computeGeneralizedGravity(self.true, self.data, q[k])
            error, slope, w = goal[k] - q[k], rate[k] - v[k], c.bandwidth
            pull = w * w * error + 2.0 * w * slope
            gravity = (1.0 + c.gravity_error) * gravity
            if c.control == "computed":
                effort[k] = mass @ (bend[k] + pull) + coriolis @ v[k] + gravity
            else:
                effort[k] = self.home * pull + mass @ bend[k] + coriolis @ v[k] + gravity
            masses[k] = mass
            momentum[k], known[k] = mass @ v[k], coriolis.T @ v[k] - gravity
        self.masses = masses
        return effort, momentum, known

    def run(self) -> dict[str, FloatArray]:
        """Every figure by name, (methods, conditions, 6)."""
        lanes, shape = self.count * JOINTS, (self.count, JOINTS)
        paths = {c.motion: motion(c.motion, self.times) for c in self.every}
        goals = [np.stack([paths[c.motion][part] for c in self.every], axis=1) for part in range(3)]
        q = goals[0][0].ravel().copy()
        v = np.zeros(lanes)
        resolution = np.full(lanes, 2.0 * np.pi / 2.0**BITS)
        encoder = Encoder(resolution, np.zeros(lanes, dtype=np.bool_), self.dt, q)
        delays = np.repeat([c.delay for c in self.every], JOINTS)
        line, line_added = Delay(delays), Delay(delays)
        friction, measures = self._friction(), Measures(lanes)
        own = np.split(np.arange(lanes), len(self.methods))
        added, none = np.zeros(lanes), np.zeros(lanes)
        for now, time in enumerate(self.times):
            at, speed = encoder.read(q, v, none)
            goal, rate, bend = (part[now] for part in goals)
            effort, momentum, known = (
                part.ravel()
                for part in self._controlled(goal, rate, bend, at.reshape(shape), speed.reshape(shape))
            )
            effort = np.clip(effort, -self.limit, self.limit)
            seen = (at, speed, goal.ravel(), rate.ravel(), bend.ravel(), effort, momentum, known)
            for places, method in zip(own, self.methods, strict=True):
                blocks = self.masses[places[0] // JOINTS : places[-1] // JOINTS + 1]
                own_part = [*(part[places] for part in seen), blocks]
                sample = Sample(float(time), *own_part)
                added[places] = method.update(sample)
            resting = (rate.ravel() == 0.0) & (bend.ravel() == 0.0)
            measures.track(float(time), self.dt, goal.ravel() - q, at, resting, added)
            total = np.clip(effort + added, -self.limit, self.limit)
            torque, ours = line.through(total), line_added.through(total - effort)
            q, v = self._moved(friction, measures, q, v, torque, ours)
        figures = measures.finished(resolution)
        whole = (len(self.methods), len(self.conditions), JOINTS)
        return {name: values.reshape(whole) for name, values in figures.items()}

    def _moved(
        self,
        friction: LuGre,
        measures: Measures,
        q: FloatArray,
        v: FloatArray,
        torque: FloatArray,
        ours: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Positions and velocities one sample later."""
        shape = (self.count, JOINTS)
        mass, bias = np.empty((self.count, JOINTS, JOINTS)), np.empty(shape)
        slow = round(1e-3 / INNER)
        for _ in range(round(self.dt / 1e-3)):
            for k, (at, speed) in enumerate(zip(q.reshape(shape), v.reshape(shape), strict=True)):
                mass[k] = mass_matrix(self.true, self.data, at)
                bias[k] = pin.nonLinearEffects(self.true, self.data, at, speed)
            inverse = np.linalg.inv(mass)
            known = (torque - bias.ravel()) * INNER
            for _ in range(slow):
                opposed = friction.torque(v, INNER) * INNER
                measures.put_in += ours * v * INNER
                measures.dissipated += opposed * v
                push = (known - opposed).reshape(shape)
                v = v + (inverse @ push[:, :, None]).ravel()
                q = q + v * INNER
        return q, v
