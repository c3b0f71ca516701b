r"""A hanging arm of two links with a servo and its friction in each joint.

Joint 1 carries link 1, joint 2 sits at its end; both axes are horizontal and parallel. The angle :math:`q_1` is from
straight down, :math:`q_2` from the direction of link 1, positive is counter-clockwise. With masses :math:`m_i`, centres
of mass at :math:`c_i` from the joint, inertias :math:`I_i` about them, armatures :math:`J_i` and the length
:math:`l_1`,

.. math::

    M(q)\ddot q = \tau_m + \tau_e + \tau_f, \qquad \tau_e = -h(q, \dot q)

    M_{22} &= I_2 + m_2 c_2^2, \qquad M_{12} = M_{22} + m_2 l_1 c_2\cos q_2

    M_{11} &= I_1 + m_1 c_1^2 + m_2 l_1^2 + M_{22} + 2 m_2 l_1 c_2\cos q_2

    h_1 &= -m_2 l_1 c_2\sin q_2\,(2\dot q_1\dot q_2 + \dot q_2^2)
        + g\,((m_1 c_1 + m_2 l_1)\sin q_1 + m_2 c_2\sin(q_1 + q_2))

    h_2 &= m_2 l_1 c_2\sin q_2\,\dot q_1^2 + g\,m_2 c_2\sin(q_1 + q_2)

and :math:`J_i` added to :math:`M_{ii}`. Load-dependent friction sees :math:`\tau_e`, gravity and velocity products, as
in the MuJoCo simulation of Duclusaud et al. (§IV-E; they take it from the step before, here it is that of the step). For
one joint that is the gravity torque of the bench on which its law was identified.

**Friction of coupled joints.** A step without friction ends with velocities :math:`v`; a friction torque changes them
by :math:`A\tau_f`, :math:`A = \Delta t\,M^{-1}`. Friction is the torque within the budgets for which each joint either
rests after the step, or uses its whole budget against the motion. This is the minimum of
:math:`\tfrac12\tau_f^T A\tau_f + v^T\tau_f` in a box, which is strictly convex and has one solution. Given the friction
of the other joint, that of one is the scalar rule of :mod:`stribeck.model.law`,
:math:`\tau_1 = clip(-(v_1 + A_{12}\tau_2)/A_{11})`, with the inertia :math:`\Delta t/A_{11}` that the joint has while the
other one is free. Put into the second joint's velocity,

.. math::

    \varphi(\tau_2) = v_2 + A_{22}\tau_2 + A_{12}\,clip(-(v_1 + A_{12}\tau_2)/A_{11}, [-b_1^+, b_1^-])

rises strictly and is the median of three straight lines: joint 1 at either end of its budget, or at rest. The root of a
median of rising functions is the median of their roots, so the solution needs no iteration.

Source: Duclusaud et al., Algorithm 1 and §IV-E, for coupled joints; Spong, Hutchinson, Vidyasagar, "Robot Modeling and
Control", ch. 7, for the arm.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from stribeck.errors import ConfigError
from stribeck.model.actuator import Actuator, motor_torque
from stribeck.model.bench import STANDARD_GRAVITY
from stribeck.model.control_laws import Gains, ServoCommand
from stribeck.model.law import FrictionLaw, friction_budget, friction_torque, stopping_torque
from stribeck.model.namespace import array_namespace
from stribeck.model.step import PlantState, Torques
from stribeck.model.terms.term import Values

Array = npt.NDArray[np.float64]
Pair = tuple[Any, Any]
"""One value for each joint: numbers, or arrays of many arms side by side."""


class Link(NamedTuple):
    """A rigid link.

    :param mass: [kg].
    :param length: to the next joint or the end point [m].
    :param center: distance of the centre of mass from the joint, along the link [m].
    :param inertia: about the centre of mass, around the joint's direction [kg m²].
    """

    mass: float
    length: float
    center: float
    inertia: float


@dataclass(frozen=True)
class Servo:
    """What drives a joint.

    :param law: its friction law.
    :param values: parameters by name, with ``armature``; a mounting offset of a bench has no meaning here.
    :param gains: of the firmware, arrays for many arms side by side.
    """

    actuator: Actuator
    law: FrictionLaw
    values: Values
    gains: Gains


@dataclass(frozen=True)
class TwoLinkArm:
    """Two links and their servos, from the base outwards."""

    links: tuple[Link, Link]
    servos: tuple[Servo, Servo]


Joints = tuple[PlantState, PlantState]
"""State of both joints."""


def inertia_matrix(links: tuple[Link, Link], armature: Pair, position: Pair) -> tuple[Any, Any, Any]:
    """:math:`M_{11}, M_{12}, M_{22}` with the armatures [kg m²]; see the module."""
    one, two = links
    xp = array_namespace(*position)
    own = two.inertia + two.mass * two.center**2
    coupling = two.mass * one.length * two.center * xp.cos(position[1])
    first = one.inertia + one.mass * one.center**2 + two.mass * one.length**2
    return first + own + 2.0 * coupling + armature[0], own + coupling, own + armature[1]


def external_torques(links: tuple[Link, Link], position: Pair, velocity: Pair) -> Pair:
    r""":math:`\tau_e = -h(q, \dot q)` of gravity and velocity products [N m]; see the module."""
    one, two = links
    xp = array_namespace(*position, *velocity)
    product = two.mass * one.length * two.center * xp.sin(position[1])
    tip = STANDARD_GRAVITY * two.mass * two.center * xp.sin(position[0] + position[1])
    root = STANDARD_GRAVITY * (one.mass * one.center + two.mass * one.length) * xp.sin(position[0])
    turning = product * (2.0 * velocity[0] * velocity[1] + velocity[1] ** 2)
    return turning - root - tip, -product * velocity[0] ** 2 - tip


def end_point(links: tuple[Link, Link], position: Pair) -> Pair:
    """Sideways and upwards position of the end point from joint 1 [m]."""
    xp = array_namespace(*position)
    first, second = position[0], position[0] + position[1]
    return (
        links[0].length * xp.sin(first) + links[1].length * xp.sin(second),
        -links[0].length * xp.cos(first) - links[1].length * xp.cos(second),
    )


def joint_angles(links: tuple[Link, Link], x: Array, z: Array) -> tuple[Array, Array]:
    r"""Joint positions at which the end point is at (x, z), with :math:`0 < q_2 < \pi` [rad].

    :raises ConfigError: for points out of reach.
    """
    first, second = links[0].length, links[1].length
    cosine = (x**2 + z**2 - first**2 - second**2) / (2.0 * first * second)
    if np.any(np.abs(cosine) >= 1.0):
        k = int(np.argmax(np.abs(cosine)))
        raise ConfigError(
            f"the point ({np.ravel(x)[k]:g}, {np.ravel(z)[k]:g}) m is out of reach of links of {first:g} and {second:g} m"
        )
    bend = np.arccos(cosine)
    return np.arctan2(x, -z) - np.arctan2(second * np.sin(bend), first + second * np.cos(bend)), bend


def energy(links: tuple[Link, Link], armature: Pair, position: Pair, velocity: Pair) -> Any:
    """Kinetic and potential energy [J], zero for the arm at rest with both links level."""
    first, coupling, second = inertia_matrix(links, armature, position)
    kinetic = (
        0.5 * (first * velocity[0] ** 2 + second * velocity[1] ** 2) + coupling * velocity[0] * velocity[1]
    )
    xp = array_namespace(*position)
    lever = links[0].mass * links[0].center + links[1].mass * links[0].length
    height = lever * xp.cos(position[0]) + links[1].mass * links[1].center * xp.cos(position[0] + position[1])
    return kinetic - STANDARD_GRAVITY * height


def coupled_friction(
    free: Pair, mobility: tuple[Any, Any, Any], budgets: tuple[Pair, Pair], dt: float
) -> tuple[Pair, Pair]:
    """Velocities after a step and friction torques of both joints; see the module.

    :param free: velocities :math:`v` after a step without friction [rad/s].
    :param mobility: :math:`A_{11}, A_{12}, A_{22}` [rad/(s N m)], positive definite.
    :param budgets: of each joint against positive and negative motion [N m].

    A joint that rests has the velocity 0 exactly, and none turns round by rounding.
    """
    one, cross, two = mobility
    xp = array_namespace(*free, *mobility)
    ends = [-(free[1] + cross * end) / two for end in (-budgets[0][0], budgets[0][1])]
    resting = -(free[1] - cross * free[0] / one) / (two - cross * cross / one)
    low, high = xp.minimum(*ends), xp.maximum(*ends)
    median = xp.maximum(low, xp.minimum(high, resting))
    second = friction_torque(median, budgets[1])
    found = []
    other = second
    for alone, moved, budget in ((free[0], one, budgets[0]), (free[1], two, budgets[1])):
        stop = stopping_torque(alone + cross * other, 0.0, dt / moved, dt)
        other = friction_torque(stop, budget)
        found.append((xp.where(other == stop, 0.0, moved * (other - stop)), other))
    return (found[0][0], found[1][0]), (found[0][1], found[1][1])


def step(
    arm: TwoLinkArm, state: Joints, commands: tuple[ServoCommand, ServoCommand], dt: float
) -> tuple[Joints, Pair]:
    """The state one step of semi-implicit Euler later, and the friction torques of the step [N m].

    :param commands: what the firmware of each servo acts on.
    :param dt: [s].
    """
    position = (state[0].position, state[1].position)
    velocity = (state[0].velocity, state[1].velocity)
    external = external_torques(arm.links, position, velocity)
    acting = [_torques(*parts, dt) for parts in zip(arm.servos, state, commands, external, strict=True)]
    net = [
        torques.motor + torques.external + servo.values.get("torque_offset", 0.0)
        for (torques, _), servo in zip(acting, arm.servos, strict=True)
    ]
    armature = (arm.servos[0].values["armature"], arm.servos[1].values["armature"])
    first, coupling, second = inertia_matrix(arm.links, armature, position)
    share = dt / (first * second - coupling * coupling)
    mobility = (share * second, -share * coupling, share * first)
    free = (
        velocity[0] + mobility[0] * net[0] + mobility[1] * net[1],
        velocity[1] + mobility[1] * net[0] + mobility[2] * net[1],
    )
    after, friction = coupled_friction(free, mobility, (acting[0][0].budget, acting[1][0].budget), dt)
    moved = [
        PlantState(q + v * dt, v, acting[j][1]) for j, (q, v) in enumerate(zip(position, after, strict=True))
    ]
    return (moved[0], moved[1]), friction


def _torques(
    servo: Servo, state: PlantState, command: ServoCommand, external: Any, dt: float
) -> tuple[Torques, Any]:
    """Torques on one joint, and the firmware's next state."""
    motor, control = motor_torque(
        servo.actuator, servo.values, servo.gains, state.control, command, state.position, state.velocity, dt
    )
    budget = friction_budget(servo.law, servo.values, motor, external, state.velocity)
    return Torques(motor, external, budget), control


class Motion(NamedTuple):
    """Sampled motion of many arms, (N, 2, L): positions [rad] and velocities [rad/s]."""

    position: Array
    velocity: Array


def simulate(
    arm: TwoLinkArm,
    start: Motion,
    goals: Array,
    period: float,
    substeps: int,
    supplies: Array | None = None,
) -> Motion:
    """Motion of arms side by side at their samples, in float64.

    :param start: state at the first sample, (2, L) each.
    :param goals: goal positions (N, 2, L) [rad], each held from its sample to the next.
    :param period: between samples [s].
    :param substeps: steps of the simulation in a period.
    :param supplies: of both servos (N, 2, L) [V]; by default nominal.
    :raises ConfigError: for an arm that does not stay finite.
    """
    servos = tuple(_plain(servo) for servo in arm.servos)
    arm = TwoLinkArm(arm.links, (servos[0], servos[1]))
    if supplies is None:
        nominal = np.array([servo.actuator.supply.nominal for servo in servos])
        supplies = np.broadcast_to(nominal[:, None], goals.shape)
    with jax.enable_x64(True):
        position, velocity = _rollout(arm, period / substeps, substeps)(*start, goals, supplies)
        found = Motion(np.asarray(position), np.asarray(velocity))
    if not np.all(np.isfinite(found.position)):
        raise ConfigError(
            f"the simulated arm does not stay finite with steps of {period / substeps:g} s: take smaller ones"
        )
    return found


def _plain(servo: Servo) -> Servo:
    """The servo without the terms of a firmware whose gains are zero."""
    return Servo(servo.actuator.with_used_terms(servo.gains), servo.law, servo.values, servo.gains)


def _rollout(arm: TwoLinkArm, dt: float, substeps: int) -> Any:
    """Compiled function of start position and velocity (2, L), goals and supplies (N, 2, L): samples (N, 2, L) each."""

    def sample(state: Joints, given: Any) -> tuple[Joints, Any]:
        goal, supply = given
        commands = (ServoCommand(goal[0], 1.0, supply[0]), ServoCommand(goal[1], 1.0, supply[1]))
        now = jnp.stack([s.position for s in state]), jnp.stack([s.velocity for s in state])
        after = jax.lax.fori_loop(0, substeps, lambda _, s: step(arm, s, commands, dt)[0], state)
        return after, now

    @jax.jit
    def rollout(position: Any, velocity: Any, goals: Any, supplies: Any) -> Any:
        state = tuple(
            jax.tree.map(
                partial(jnp.asarray, dtype=jnp.float64),
                PlantState(position[j], velocity[j], arm.servos[j].actuator.control.first_state(goals[0, j])),
            )
            for j in (0, 1)
        )
        return jax.lax.scan(sample, state, (goals, supplies))[1]

    return rollout
