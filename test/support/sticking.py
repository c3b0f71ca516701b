"""Position servos that stick, simulated with small steps and a friction model of their own (a bristle), for tests of advice."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Joint:
    """A joint of a position servo; SI units.

    :param static, kinetic: friction at rest and in motion [N m].
    :param speed: at which friction has fallen by 63 % from static to kinetic [rad/s].
    """

    stiffness: float = 8.0
    damping: float = 0.5
    inertia: float = 0.03
    kinetic: float = 0.1
    static: float = 0.1
    speed: float = 0.02
    viscous: float = 0.05
    delay: float = 0.0


def moved(joint, goal, *, dt, load=0.0, start=0.0, every=1):
    """Positions for goals held over ``dt`` (N, n): LuGre's bristle with a stiffness far above the servo's, steps of ``dt``.

    :param load: external torque (n,) or function of position [N m].
    """
    goal = np.atleast_2d(np.asarray(goal, dtype=float).T).T
    n = goal.shape[1]
    bristle = 3000.0 * joint.kinetic
    position, velocity, deflection = np.full(n, start), np.zeros(n), np.zeros(n)
    late = round(joint.delay / dt)
    history = np.tile(position, (late + 1, 1))
    found = np.empty((len(goal[::every]), n))
    stiffness = np.broadcast_to(joint.stiffness, n)
    inner = 4
    for k in range(len(goal)):
        if k % every == 0:
            found[k // every] = position
        pull = load(position) if callable(load) else load
        motor = stiffness * (goal[k] - history[k % (late + 1)])
        for _ in range(inner):
            weight = np.exp(-np.abs(velocity / joint.speed))
            level = joint.kinetic + (joint.static - joint.kinetic) * weight
            rate = velocity - bristle * np.abs(velocity) / level * deflection
            deflection = np.clip(deflection + rate * dt / inner, -level / bristle, level / bristle)
            friction = bristle * deflection + 0.02 * rate + joint.viscous * velocity
            velocity = (
                velocity + (motor - joint.damping * velocity + pull - friction) * dt / inner / joint.inertia
            )
            position = position + velocity * dt / inner
        history[k % (late + 1)] = position
    return found
