r"""One time step of a joint with friction, and the simulation of complete runs.

:math:`\ddot\theta = (\tau_m + \tau_e + \tau_0 + \tau_f) / J`; friction may stop a motion within a
step, never reverse it. Source: Duclusaud et al., Algorithm 1.

Four integrators:

``exponential`` (default)
    half of the motion, :math:`\theta \leftarrow \theta + \dot\theta\Delta t/2`; the velocity step at this position, in
    which torques that grow with velocity (back-EMF, viscous friction, derivative gain) are integrated by an exponential
    and stops and reversals happen at their own instants (:func:`velocity_step`); the other half of the motion. It is of
    second order. A command is its mean over the step; with stiff control, so is the firmware's limited output.
    Sources: Strang, "On the construction and comparison of difference schemes", SIAM J. Numer. Anal. 5, 1968,
    10.1137/0705041; Hochbruck and Ostermann, "Exponential integrators", Acta Numerica 19, 2010,
    10.1017/S0962492910000048.
``semi-implicit``
    :math:`\dot\theta \leftarrow \dot\theta + \ddot\theta\Delta t`, then
    :math:`\theta \leftarrow \theta + \dot\theta_{new}\Delta t`.
``paper``
    :math:`\theta \leftarrow \theta + \dot\theta_{old}\Delta t + \frac12\ddot\theta\Delta t^2`.
``bam``
    :math:`\theta \leftarrow \theta + \dot\theta_{new}\Delta t + \frac12\ddot\theta\Delta t^2`, the
    step of the paper's published program.

The last three take the torques at the beginning of the step and are of first order; they are for comparisons with
published figures. A frictionless pendulum of 0.1 m released at 1.5 rad has, after 6 s at 5 ms, 2.07 times its energy with
``paper`` and 0.30 times with ``bam``; ``semi-implicit`` stays within 2.2 %, the default within 0.05 % (released at
0.1 rad: 4.36, 0.23, 2.5 %, 0.07 %). Against the motion at 5/64 ms, the mean error at 5 ms of an XL330 with law M6 at gains
100 to 16383 is 3.9 mrad with ``semi-implicit`` and 0.11 mrad with the default, of an MX-106 5.0 and 0.16 mrad, of an
STS3215 6.9 and 0.53 mrad, of an eRob80:100 2.9 and 0.06 mrad.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from stribeck.errors import check_valid
from stribeck.model.actuator import Actuator, motor_torque
from stribeck.model.arrays import Array
from stribeck.model.bench import Pendulum, gravity_torque, inertia
from stribeck.model.control_laws import ControlState, Gains, ServoCommand
from stribeck.model.law import (
    FrictionLaw,
    friction_budget,
    friction_torque,
    stopping_torque,
    viscous_slope,
    with_offset,
)
from stribeck.model.log import Batch, Log, batch_of
from stribeck.model.namespace import array_namespace
from stribeck.model.temperature import at_temperature
from stribeck.model.terms.stribeck import stribeck_slope, stribeck_weight
from stribeck.model.terms.term import Values
from stribeck.model.trace.straight_line import compiled_function

Integrator = Literal["exponential", "semi-implicit", "paper", "bam"]
INTEGRATORS: tuple[Integrator, ...] = ("exponential", "semi-implicit", "paper", "bam")

CROSSING = 0.01
"""Below this change of the output in a step, relative to its limit [s/rad], its value in the middle is close to the mean."""

STILL = 1e-15
"""Change of velocity in a step [rad/s] below which a joint rests; its square must not underflow in a derivative."""


@dataclass(frozen=True)
class Plant:
    """The simulated system: servo, friction law, load and gains; arrays for several runs.

    :param stiff: whether the firmware's output crosses its limits within a step (:func:`crosses_limits`).
    """

    actuator: Actuator
    law: FrictionLaw
    pendulum: Pendulum
    gains: Gains
    integrator: Integrator = "exponential"
    stiff: bool = True

    def __post_init__(self) -> None:
        check_valid(self.integrator, INTEGRATORS, "unknown integrator")


class PlantState(NamedTuple):
    """Position [rad] and velocity [rad/s] of a joint, and state of the firmware."""

    position: Any
    velocity: Any
    control: ControlState


class Torques(NamedTuple):
    """Torques on a joint during one step [N m]; friction as the budget against ± motion."""

    motor: Any
    external: Any
    budget: tuple[Any, Any]


def torques(
    plant: Plant, p: Values, state: PlantState, command: ServoCommand, dt: float
) -> tuple[Torques, ControlState]:
    """Motor and external torque and the friction budget in ``state``, and the firmware's next state."""
    position, velocity, control = state
    motor, control = motor_torque(plant.actuator, p, plant.gains, control, command, position, velocity, dt)
    external = gravity_torque(plant.pendulum, position, p["q_offset"])
    budget = friction_budget(plant.law, p, motor, external, velocity, position)
    return Torques(motor, external, budget), control


def step(plant: Plant, p: Values, state: PlantState, command: ServoCommand, dt: float) -> PlantState:
    r"""The state one time step later.

    :param p: parameter values by name, floats or arrays that broadcast with the state.
    :param command: the command valid at the beginning of the step.
    :param dt: :math:`\Delta t` [s].
    """
    p = at_temperature(p, command.temperature)
    if plant.integrator == "exponential":
        return _exponential_step(plant, p, state, command, dt)
    acting, control = torques(plant, p, state, command, dt)
    return advance(plant, p, state, acting, control, dt)


def _exponential_step(
    plant: Plant, p: Values, state: PlantState, command: ServoCommand, dt: float
) -> PlantState:
    """Half of the motion, the velocity step at the middle position, the other half of the motion."""
    actuator, gains = plant.actuator, plant.gains
    travel = 0.5 * dt * state.velocity
    middle = state.position + travel
    halfway = actuator.control.next_state(gains, state.control, command.goal, middle, 0.5 * dt)
    error = travel - (halfway.goal - state.control.goal)
    reach = array_namespace(error).abs(error) if plant.stiff else None

    def motor(velocity: Any) -> Any:
        output = actuator.control.output(p, gains, halfway, command.goal, middle, velocity, reach)
        return actuator.control.torque(p, output, command, velocity)

    external = gravity_torque(plant.pendulum, middle, p["q_offset"])
    mobility = 1.0 / inertia(plant.pendulum, p["armature"])
    velocity, distance = velocity_step(plant.law, mobility, p, state.velocity, motor, external, dt, middle)
    control = actuator.control.next_state(gains, halfway, command.goal, middle, 0.5 * dt)
    return PlantState(state.position + distance, velocity, control)


def velocity_step(
    law: FrictionLaw,
    mobility: Any,
    p: Values,
    velocity: Any,
    motor: Callable[[Any], Any],
    external: Any,
    dt: float,
    position: Any = 0.0,
) -> tuple[Any, Any]:
    r"""Velocity after a step at a fixed position, and the distance covered, with stops and reversals inside the step.

    Exponential midpoint rule with :math:`\lambda = (c + K_v)/J`, c and :math:`K_v` the slopes of motor torque and viscous friction:
    :math:`v_{1/2} = v_0 + \frac{h}{2}\varphi(\frac{\lambda h}{2}) a(v_0)`,
    :math:`v_1 = v_0 + h\varphi(\lambda h)\,(a(v_{1/2}) + \lambda (v_{1/2} - v_0))`, exact for torques that are linear in
    velocity and of second order otherwise. A joint that stops after the time :math:`h v_0 / (v_0 - v_1)` stays at rest
    for the remaining time if friction can hold it; otherwise it starts again, against the friction of the new direction.

    :param mobility: 1/J [1/(kg m²)].
    :param velocity: :math:`v_0` [rad/s].
    :param motor: motor torque [N m] as a function of velocity [rad/s].
    :param external: external torque [N m].
    :param dt: h [s].
    :param position: of the step [rad], for laws that depend on it.
    :returns: velocity [rad/s] and distance [rad].
    """
    xp = array_namespace(velocity, external, *p.values())
    outer, direction, rate, stretch, weight, acceleration = _moving(
        law, mobility, p, velocity, motor, external, dt, position
    )
    decay = 1.0 / stretch
    halfway = velocity + 0.25 * dt * (1.0 + decay) * acceleration(velocity, weight)
    halfway = xp.where(halfway * direction < 0.0, 0.0, halfway)
    if law.weight is not None:
        scale, exponent = (p[name] for name in law.weight.names)
        slope = stribeck_slope(velocity, scale, exponent, weight)
        weight = xp.clip(weight + slope * (xp.abs(halfway) - xp.abs(velocity)), 0.0, 1.0)
    mean = acceleration(halfway, weight) + rate * (halfway - velocity)
    stretched = velocity * stretch + dt * mean
    # Divisions come last: XLA computes a quotient once, and other results again for each one that needs them.
    slowed = stretched / stretch

    stops = slowed * direction <= 0.0
    change = velocity - slowed
    resting = xp.abs(change) < STILL
    until = xp.where(resting, 0.0, dt * velocity / xp.where(resting, 1.0, change))
    left = dt - until
    braked = 1.0 - (1.0 - decay) / dt * left
    still = 0.0 * velocity
    torque = motor(still)
    net = torque + outer
    friction = friction_torque(-net, friction_budget(law, p, torque, external, still, position, weight=1.0))
    restarted = xp.where(friction == -net, 0.0, left * braked * mobility * (net + friction))
    after = xp.where(stops, restarted * stretch, stretched) / stretch
    distance = xp.where(stops, 0.5 * (velocity * until + after * left), 0.5 * dt * (velocity + after))
    return after, distance


def _moving(
    law: FrictionLaw,
    mobility: Any,
    p: Values,
    velocity: Any,
    motor: Callable[[Any], Any],
    external: Any,
    dt: float,
    position: Any,
) -> tuple[Any, Any, Any, Any, Any, Callable[[Any, Any], Any]]:
    r"""Of a moving joint: torques besides motor and friction [N m], sign of the velocity, :math:`\lambda`, :math:`1/\varphi(\lambda h)`,
    Stribeck weight, and the acceleration as a function of velocity and weight.
    """
    xp = array_namespace(velocity, external, *p.values())
    outer = with_offset(law, p, external, position)
    direction = xp.sign(velocity)
    weight = 0.0 if law.weight is None else stribeck_weight(velocity, *(p[name] for name in law.weight.names))

    def acceleration(v: Any, weight: Any) -> Any:
        torque = motor(v)
        positive, negative = friction_budget(law, p, torque, external, v, position, weight=weight)
        against = positive if positive is negative else xp.where(direction > 0.0, positive, negative)
        return (torque + outer - direction * against) * mobility

    damping = xp.maximum(0.5 * (motor(velocity - 1.0) - motor(velocity + 1.0)), 0.0)
    rate = (damping + viscous_slope(law, p, xp.abs(velocity))) * mobility
    return outer, direction, rate, _stretch(dt * rate), weight, acceleration


def mean_velocity(
    law: FrictionLaw,
    mobility: Any,
    p: Values,
    velocity: Any,
    motor: Callable[[Any], Any],
    external: Any,
    dt: float,
    position: Any = 0.0,
) -> Any:
    r"""Mean velocity over a step, for simulators whose torques are constant within a step.

    :math:`\bar v = v_0 + h\,a(v_0)\,\frac{1 - \varphi(\lambda h)}{\lambda h}`, with the arguments of :func:`velocity_step`; 0 at
    rest and where the joint stops. With the torques at :math:`\bar v` the step is :math:`v_1 = v_0 + h\varphi(\lambda h) a(v_0)`,
    exact for torques that are linear in velocity, and cannot overshoot.

    :returns: [rad/s].
    """
    xp = array_namespace(velocity, external, *p.values())
    _, direction, rate, stretch, weight, acceleration = _moving(
        law, mobility, p, velocity, motor, external, dt, position
    )
    mean = velocity + dt / stretch * (0.5 + dt * rate / 12.0) * acceleration(velocity, weight)
    return xp.where(mean * direction <= 0.0, 0.0, mean)


def _stretch(z: Any) -> Any:
    r""":math:`1/\varphi(z)`, with :math:`\varphi(z) = (1 - e^{-z})/z` to the order of :math:`z^3`, positive for all z.

    A moving joint never crosses zero by damping alone, because :math:`z\varphi(z) < 1`.
    """
    return 1.0 + z * (0.5 + z / 12.0)


def advance(
    plant: Plant, p: Values, state: PlantState, acting: Torques, control: ControlState, dt: float
) -> PlantState:
    r"""The state one time step later, under given torques.

    :param acting: motor and external torque and the friction budget during the step.
    :param control: the firmware's state after the step.

    When :math:`\tau_{stop}` lies within the budget, the new velocity is *set* to 0. Otherwise it is
    :math:`\Delta t/J\,(\tau_f - \tau_{stop})`, which equals
    :math:`\dot\theta + \ddot\theta\Delta t` and cannot change its sign by rounding.
    """
    position, velocity, _ = state
    xp = array_namespace(position, velocity, acting.motor, *p.values())
    net = with_offset(plant.law, p, acting.motor + acting.external, position)
    moment = inertia(plant.pendulum, p["armature"])
    stop = stopping_torque(velocity, net, moment, dt)
    friction = friction_torque(stop, acting.budget)
    sticks = friction == stop
    new_velocity = xp.where(sticks, 0.0, (friction - stop) * (dt / moment))
    if plant.integrator in ("exponential", "semi-implicit"):
        new_position = position + new_velocity * dt
    else:
        mean = velocity if plant.integrator == "paper" else new_velocity
        new_position = position + mean * dt + 0.5 * dt * (new_velocity - velocity)
    return PlantState(new_position, new_velocity, control)


def delayed(signal: Any, index: Any, delay: Any, dt: float) -> Any:
    r"""A held signal with a delay: :math:`c(t_k - \delta)` [unit of the signal].

    :param signal: samples (T, …) on a grid of ``dt``.
    :param index: k.
    :param delay: :math:`\delta \ge 0` [s], a number or an array that broadcasts with a sample.

    Values between samples are interpolated linearly, so that the result is differentiable in the delay;
    before the first sample the first one holds.
    """
    xp = array_namespace(signal, index, delay)
    steps = delay / dt
    whole = xp.floor(steps)
    share = steps - whole
    newer = xp.maximum(index - whole.astype(int), 0)
    older = xp.maximum(newer - 1, 0)
    if xp.ndim(delay) == 0:
        return (1.0 - share) * signal[newer] + share * signal[older]
    lanes = xp.arange(signal.shape[1]).reshape(-1, 1)
    return (1.0 - share) * signal[newer, lanes] + share * signal[older, lanes]


class Simulation(NamedTuple):
    """Simulated motion of many runs, (T, R): positions [rad] and velocities [rad/s]; torques [N m] if they were asked for."""

    position: Array
    velocity: Array
    motor_torque: Array | None = None
    external_torque: Array | None = None


def batch_for(logs: Sequence[Log], dt: float, integrator: Integrator) -> Batch:
    """Runs on a grid of ``dt`` [s], with their commands as an integrator takes them.

    The step ``exponential`` uses the mean of a command over the step, the others its value at the beginning.
    """
    mean = integrator == "exponential"
    return batch_of([log.resample(dt, mean_commands=mean) for log in logs])


def plant_of(
    batch: Batch, actuator: Actuator, law: FrictionLaw, integrator: Integrator = "exponential"
) -> Plant:
    """The plant of a batch of runs: their loads and gains with a servo and a law.

    Firmware terms whose gain is zero in every run are left out.
    """
    actuator = actuator.with_used_terms(batch.gains)
    stiff = crosses_limits(actuator, batch.gains, batch.dt)
    return Plant(actuator, law, batch.pendulum, batch.gains, integrator, stiff)


def crosses_limits(actuator: Actuator, gains: Gains, dt: float) -> bool:
    """Whether a joint at 1 rad/s changes the firmware's output by more than :data:`CROSSING` of its limit in a step."""
    control = actuator.control
    step = np.max(gains.kp) * control.gain * dt
    return control.clips_output and bool(step > CROSSING * control.output_max)


def simulate(
    batch: Batch,
    actuator: Actuator,
    law: FrictionLaw,
    p: Values,
    *,
    integrator: Integrator = "exponential",
    reset_period: float | None = None,
    with_torques: bool = False,
) -> Simulation:
    """Simulate all runs of a batch at once, in numpy and float64.

    A simulation starts at the first sample with the measured position and velocity. Step k uses the
    command that is valid at t_k. With ``reset_period`` [s], position and velocity are reset to the measurement
    once per period; the state of the firmware is kept.

    :param with_torques: also return the torques of motor and load at the beginning of each step.
    """
    plant = plant_of(batch, actuator, law, integrator)
    supply = batch.supply(actuator.uses_measured_supply)
    resets = batch.reset_indices(reset_period)
    delay = p.get("command_delay")
    following = _compiled_step(plant, p, batch.dt, with_torques)
    position, velocity = batch.position[0], batch.velocity[0]
    ramped, integral = plant.actuator.control.first_state(batch.goal[0])
    positions, velocities = np.empty_like(batch.position), np.empty_like(batch.velocity)
    acting = np.empty((2, *batch.position.shape)) if with_torques else None
    for k in range(len(batch.time)):
        if k in resets:
            position, velocity = batch.position[k], batch.velocity[k]
        positions[k], velocities[k] = position, velocity
        goal, enable = batch.goal[k], batch.torque_enable[k]
        if delay is not None:
            goal = delayed(batch.goal, k, np.float64(delay), batch.dt)
            enable = delayed(batch.torque_enable, k, np.float64(delay), batch.dt)
        position, velocity, ramped, integral, *found = following(
            position, velocity, ramped, integral, goal, enable, supply[k], batch.temperature[k]
        )
        if acting is not None:
            acting[:, k] = found
    return Simulation(positions, velocities, *(() if acting is None else acting))


def _compiled_step(plant: Plant, p: Values, dt: float, with_torques: bool) -> Callable[..., tuple[Any, ...]]:
    """:func:`step` as a function of position, velocity, both variables of the firmware and the command."""
    load, gains = plant.pendulum._asdict(), plant.gains._asdict()

    def formula(constants: Mapping[str, Any], variables: Sequence[Any]) -> Sequence[Any]:
        def given(names: Iterable[str]) -> dict[str, Any]:
            return {name: constants[f"given_{name}"] for name in names}

        position, velocity, ramped, integral, *command = variables
        traced = replace(plant, pendulum=Pendulum(**given(load)), gains=Gains(**given(gains)))
        state, orders = PlantState(position, velocity, ControlState(ramped, integral)), ServoCommand(*command)
        values = given(p)
        after = step(traced, values, state, orders, dt)
        results = [after.position, after.velocity, *after.control]
        if with_torques:
            results += torques(traced, at_temperature(values, orders.temperature), state, orders, dt)[0][:2]
        return results

    fixed = {f"given_{name}": value for name, value in {**load, **gains, **p}.items()}
    names = ("position", "velocity", "ramped", "integral", *ServoCommand._fields)
    return compiled_function(formula, fixed, names)
