r"""A simulated arm under inverse-dynamics control, with known parameters to test identification against.

.. math::

    M(q)\ddot q + h(q, \dot q) = \tau_m + \tau_0 + \tau_f, \qquad
    \tau_m = \hat M(q)\big(\ddot q_d + K_p(q_d - q) + K_d(\dot q_d - \dot q)\big) + \hat h(q, \dot q)

M holds the inertia of the rotors too. Forward dynamics by the articulated body algorithm (Featherstone), friction
:math:`\tau_f` by the laws of :mod:`stribeck.model.law`: a joint that can stop within a step does, and stays at
rest while its budget lasts. Torques are held for one step :math:`\Delta t`:

.. math::

    \dot q_{k+1/2} = \dot q_{k-1/2} + \Delta t\,\ddot q_k, \quad q_{k+1} = q_k + \Delta t\,\dot q_{k+1/2}, \quad
    \dot q_k \approx \dot q_{k-1/2} + \tfrac12\Delta t\,\ddot q_{k-1}

which is semi-implicit Euler with its velocities taken for what they are, those between the samples. Central
differences of the simulated positions are therefore the accelerations that the torques of the same row made, to
second order: identification sees no delay of half a step.

Source: Maestro 2025, "Simulated Robot", with the feedback inside of the inertia matrix as there;
Duclusaud et al., Algorithm 1, for the friction within a step, here for coupled joints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pinocchio as pin
from scipy import signal

from stribeck.errors import ConfigError
from stribeck.identify.arm.model import ArmModel
from stribeck.identify.arm.recordings import ArmRecording
from stribeck.model.law import FrictionLaw, friction_budget, friction_torque, with_offset

Array = npt.NDArray[np.float64]
Desired = Callable[[Array], tuple[Array, Array, Array]]
"""Positions, velocities and accelerations (N, n) at times (N,) [s]."""

SWEEPS = 200
"""Largest number of passes over the joints that solve for the friction of coupled joints."""

TOLERANCE = 1e-12
"""Tolerance of friction torques, as a share of the largest budget."""

LOAD_ROUNDS = 20
"""Largest number of iterations between the load of the transmission and a budget that depends on it."""

LOAD_TOLERANCE = 1e-8
"""Relative change of accelerations that ends these iterations."""


@dataclass(frozen=True)
class SimulatedArm:
    """The truth: rigid arm, rotors, friction.

    :param arm: rigid body model.
    :param armature: inertia of the rotors (n,) [kg m^2]; none if left out.
    :param law: friction law of all joints, ``None`` for no friction.
    :param friction: parameters of the law by name, each one number or one for each joint (n,).
    :raises ConfigError: for arrays of another length, or parameters that the law lacks or does not know.
    """

    arm: ArmModel
    armature: Array | None = None
    law: FrictionLaw | None = None
    friction: Mapping[str, Array | float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        wanted = () if self.law is None else self.law.parameter_names
        if set(wanted) != set(self.friction):
            raise ConfigError(
                f"friction parameters {', '.join(sorted(self.friction)) or 'none'}; the law needs "
                f"{', '.join(sorted(wanted)) or 'none'}"
            )
        given = {"armature": self.armature, **self.friction}
        for name, value in given.items():
            if value is not None and np.shape(value) not in ((), (len(self.arm),)):
                raise ConfigError(f"{name}: expected {len(self.arm)} numbers, found shape {np.shape(value)}")

    @property
    def rotors(self) -> Array:
        """Inertia of the rotors (n,) [kg m^2]."""
        return np.zeros(len(self.arm)) + (0.0 if self.armature is None else self.armature)


@dataclass(frozen=True)
class Control:
    """Inverse-dynamics control; see the module.

    :param arm: what the controller takes the arm for; the true one if left out.
    :param kp: of positions [1/s^2].
    :param kd: of velocities [1/s].
    """

    arm: ArmModel | None = None
    kp: float = 400.0
    kd: float = 40.0


@dataclass(frozen=True)
class SensorNoise:
    r"""Normal noise of the sensors.

    :param torque: standard deviation of each torque sensor, one number or (n,) [N m].
    :param correlation: :math:`\phi` of first-order autoregressive torque noise,
        :math:`e_k = \phi e_{k-1} + \sqrt{1-\phi^2}\,w_k`; 0 is white.
    :param position: standard deviation of the encoders, white, one number or (n,) [rad].
    """

    torque: Array | float = 0.0
    correlation: float = 0.0
    position: Array | float = 0.0


@dataclass(frozen=True)
class SimulatedRun:
    """Simulated motion without noise, each (N, n) but the time.

    :param time: (N,) [s].
    :param torque: of the motors [N m].
    :param friction: friction torque, against the motion [N m].
    :param desired: desired positions [rad].
    """

    joints: tuple[str, ...]
    time: Array
    position: Array
    velocity: Array
    acceleration: Array
    torque: Array
    friction: Array
    desired: Array

    def measured(self, name: str, noise: SensorNoise | None = None, seed: int = 0) -> ArmRecording:
        """The run as sensors record it: positions and torques.

        :param noise: none if left out.
        :param seed: of the noise; positions and torques have generators of their own.
        """
        noise = noise or SensorNoise()
        encoders, sensors = np.random.default_rng(seed).spawn(2)
        shape = self.position.shape
        return ArmRecording(
            name=name,
            joints=self.joints,
            time=self.time,
            position=self.position + np.asarray(noise.position) * encoders.normal(size=shape),
            velocity=None,
            effort=self.torque + np.asarray(noise.torque) * autoregressive(sensors, shape, noise.correlation),
        )


def autoregressive(rng: np.random.Generator, shape: tuple[int, int], coefficient: float) -> Array:
    """Stationary first-order autoregressive noise of variance one along the first axis.

    :raises ConfigError: for a coefficient that is not between -1 and 1.
    """
    if not -1.0 < coefficient < 1.0:
        raise ConfigError(f"autoregressive noise needs a coefficient between -1 and 1, found {coefficient:g}")
    white = rng.normal(size=shape)
    white[1:] *= np.sqrt(1.0 - coefficient**2)
    return np.asarray(signal.lfilter([1.0], [1.0, -coefficient], white, axis=0))


def simulate_tracking(
    plant: SimulatedArm,
    desired: Desired,
    duration: float,
    *,
    rate: float = 1000.0,
    control: Control | None = None,
) -> SimulatedRun:
    """Simulate the arm following a desired motion, starting on it.

    :param duration: [s].
    :param rate: steps in a second; torques are computed and held at it [Hz].
    :raises ConfigError: for a motion of other joints, or an arm that runs away from it.
    """
    control = control or Control()
    time = np.arange(round(duration * rate) + 1) / rate
    goal = desired(time)
    if any(part.shape != (len(time), len(plant.arm)) for part in goal):
        raise ConfigError(
            f"the desired motion has shapes {[part.shape for part in goal]}; expected {(len(time), len(plant.arm))}"
        )
    believed = _Rigid(control.arm or plant.arm, plant.rotors)

    def torque(k: int, position: Array, velocity: Array) -> Array:
        feedback = control.kp * (goal[0][k] - position) + control.kd * (goal[1][k] - velocity)
        return believed.torque(position, velocity, goal[2][k] + feedback)

    run = simulate(plant, torque, goal[0][0], goal[1][0], len(time), 1.0 / rate, goal[2][0])
    return SimulatedRun(plant.arm.joints, time, *run, desired=goal[0])


def simulate(
    plant: SimulatedArm,
    torque: Callable[[int, Array, Array], Array],
    position: Array,
    velocity: Array,
    steps: int,
    dt: float,
    acceleration: Array | None = None,
) -> tuple[Array, Array, Array, Array, Array]:
    """Positions, velocities, accelerations, motor and friction torques, (steps, n) each.

    :param torque: of the motors, of the step's number, position and velocity [N m].
    :param position, velocity: at the start (n,).
    :param dt: [s].
    :param acceleration: about the start (n,), zero if left out.
    :raises ConfigError: if the arm runs away.
    """
    body = _Body(plant)
    found = np.empty((5, steps, len(plant.arm)))
    acceleration = np.zeros(len(plant.arm)) if acceleration is None else acceleration
    between = velocity - 0.5 * dt * acceleration
    for k in range(steps):
        velocity = between + 0.5 * dt * acceleration
        motor = torque(k, position, velocity)
        after, friction = body.step(position, velocity, between, motor, acceleration, dt)
        acceleration = (after - between) / dt
        found[:, k] = position, velocity, acceleration, motor, friction
        between = after
        position = position + dt * between
        if not np.all(np.abs(between) < 1e6):
            raise ConfigError(
                f"the simulated arm runs away after {k * dt:.3g} s: lower the gains or the step {dt:g} s"
            )
    return found[0], found[1], found[2], found[3], found[4]


class _Rigid:
    """A rigid arm with rotors, for one state at a time."""

    def __init__(self, arm: ArmModel, rotors: Array) -> None:
        self.arm, self.model = arm, arm.model.copy()
        self.model.armature = arm.tangent(rotors)
        self.data = self.model.createData()
        joints = np.arange(len(arm), dtype=np.float64)
        self._order = np.argsort(arm.tangent(joints))
        self._plain = self.model.nq == len(arm) and np.array_equal(self._order, joints)

    def torque(self, position: Array, velocity: Array, acceleration: Array) -> Array:
        """Inverse dynamics (n,) [N m]."""
        state = self._state(position, velocity, acceleration)
        return np.asarray(pin.rnea(self.model, self.data, *state)[self._order])

    def acceleration(self, position: Array, velocity: Array, torque: Array) -> Array:
        """Forward dynamics (n,) [rad/s^2]."""
        state = self._state(position, velocity, torque)
        return np.asarray(pin.aba(self.model, self.data, *state)[self._order])

    def mobility(self, position: Array) -> Array:
        """Inverse of the inertia matrix (n, n) [1/(kg m^2)]."""
        found = pin.computeMinverse(self.model, self.data, *self._state(position))
        return np.asarray(found[np.ix_(self._order, self._order)])

    def _state(self, position: Array, *rates: Array) -> tuple[Array, ...]:
        """Configuration and rates in Pinocchio's order."""
        if self._plain:
            return (position, *rates)
        return (self.arm.configuration(position), *map(self.arm.tangent, rates))


class _Body:
    """Steps of a simulated arm; each starts from the friction of the step before."""

    def __init__(self, plant: SimulatedArm) -> None:
        self.plant, self.rigid = plant, _Rigid(plant.arm, plant.rotors)
        self._share = np.zeros(len(plant.arm))

    def step(
        self, position: Array, velocity: Array, between: Array, motor: Array, acceleration: Array, dt: float
    ) -> tuple[Array, Array]:
        """Velocity after the step and friction torque, (n,) each.

        :param between: velocity before the step.
        :param acceleration: of the step before, where loads are reckoned from.
        """
        law = self.plant.law
        if law is None:
            return between + dt * self.rigid.acceleration(position, velocity, motor), np.zeros_like(motor)
        net = with_offset(law, self.plant.friction, motor)
        free = between + dt * self.rigid.acceleration(position, velocity, net)
        mobility = dt * self.rigid.mobility(position)
        for _ in range(max(law.rounds(LOAD_ROUNDS), 1)):
            budget = self._budget(law, position, velocity, motor, acceleration)
            after, friction = self._coupled(free, mobility, budget)
            guess, acceleration = acceleration, (after - between) / dt
            if np.abs(acceleration - guess).max() <= LOAD_TOLERANCE * (1.0 + np.abs(acceleration).max()):
                break
        return after, friction

    def _budget(
        self, law: FrictionLaw, position: Array, velocity: Array, motor: Array, acceleration: Array
    ) -> tuple[Array, Array]:
        """Friction budget against ± motion (n,); the transmission carries what the links ask for."""
        external = np.zeros_like(motor)
        if "external" in law.inputs:
            whole = self.rigid.torque(position, velocity, acceleration)
            external = self.plant.rotors * acceleration - whole
        positive, negative = friction_budget(law, self.plant.friction, motor, external, velocity)
        return np.asarray(positive), np.asarray(negative)

    def _coupled(self, free: Array, mobility: Array, budget: tuple[Array, Array]) -> tuple[Array, Array]:
        """Velocity after the step and friction (n,): each joint stops, or its budget is used up.

        Gauss-Seidel over the joints, which converges for a positive definite mobility (a convex problem in a box).

        :param free: velocity after a step without friction (n,).
        :param mobility: velocity by torque, times the step (n, n).
        """
        diagonal = np.diag(mobility)
        friction = np.where(self._share < 0.0, self._share * budget[0], self._share * budget[1])
        after = free + mobility @ friction
        clipped = friction_torque(friction - after / diagonal, budget)
        if not np.array_equal(clipped, friction):
            friction, after = _gauss_seidel(free, mobility, budget, clipped)
        sticks = (friction > -budget[0]) & (friction < budget[1])
        size = np.where(friction < 0.0, budget[0], budget[1])
        self._share = np.divide(friction, size, out=np.zeros_like(friction), where=size > 0.0)
        return np.where(sticks, 0.0, after), friction


def _gauss_seidel(
    free: Array, mobility: Array, budget: tuple[Array, Array], friction: Array
) -> tuple[Array, Array]:
    friction = friction.copy()
    after = free + mobility @ friction
    least = TOLERANCE * max(float(np.max(budget)), 1e-300)
    for _ in range(SWEEPS):
        largest = 0.0
        for j in range(len(friction)):
            stop = friction[j] - after[j] / mobility[j, j]
            change = min(max(stop, -budget[0][j]), budget[1][j]) - friction[j]
            friction[j] += change
            after += mobility[:, j] * change
            largest = max(largest, abs(change))
        if largest <= least:
            break
    return _at_rest(free, mobility, budget, friction)


def _at_rest(
    free: Array, mobility: Array, budget: tuple[Array, Array], friction: Array
) -> tuple[Array, Array]:
    """The joints within their budgets stand still exactly, where that asks for no more than the budgets."""
    sticks = (friction > -budget[0]) & (friction < budget[1])
    if sticks.any():
        exact = friction.copy()
        rest = free[sticks] + mobility[np.ix_(sticks, ~sticks)] @ friction[~sticks]
        exact[sticks] = -np.linalg.solve(mobility[np.ix_(sticks, sticks)], rest)
        if np.all((exact >= -budget[0]) & (exact <= budget[1])):
            friction = exact
    return friction, free + mobility @ friction
