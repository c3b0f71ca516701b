from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechanisms import hanging
from stribeck.files.actuators import load_actuator
from stribeck.identify.mechanism.dynamics import MultibodyDynamics
from stribeck.identify.mechanism.model_file import read_model
from stribeck.model.bench import Pendulum
from stribeck.model.control_laws import Gains
from stribeck.model.law import law_named
from stribeck.model.step import Plant, Torques, advance
from stribeck.model.step import PlantState as CoreState


def core_angles(h, steps, start, coulomb, viscous, armature, mass, length):
    """The pendulum bench with law M1 and no motor torque, in small steps of core's."""
    from stribeck.model.bench import gravity_torque

    law = law_named("m1")
    actuator = load_actuator("xl330")
    plant = Plant(actuator, law, Pendulum(mass, length, 0.0), Gains(0.0, 0.0, 0.0))
    p = {"friction_base": coulomb, "friction_viscous": viscous, "armature": armature, "q_offset": 0.0}
    state = CoreState(start, 0.0, actuator.control.first_state(np.float64(start)))
    found = []
    for _ in range(steps):
        found.append(state.position)
        external = gravity_torque(plant.pendulum, state.position, 0.0)
        budget = coulomb + viscous * abs(state.velocity)
        state = advance(plant, p, state, Torques(0.0, external, (budget, budget)), state.control, h)
    return np.array(found)


@pytest.mark.slow
def test_pendulum_with_coulomb_and_viscous_friction_is_that_of_core():
    """The M1 pendulum of both modules agrees within 1.1 rad/s times the step, over three cycles."""
    with jax.enable_x64():
        at = read_model("pendulum").mechanism
        at = replace(at, regularization=replace(at.regularization, slip=1e-4, length=0.1))
        values = at.parameters.values()
        apart = []
        for h in (0.002, 0.001, 0.0005):
            steps = int(2.0 / h)
            dynamics = MultibodyDynamics(at)
            physical = at.physical(at.values())
            run = jax.jit(
                lambda s, d=dynamics, p=physical, n=steps, t=h: d.simulate(p, s, jnp.zeros((n, 0)), t)
            )
            q = run(hanging(dynamics, physical, 1.2)).q
            mine = 2.0 * np.arctan2(np.asarray(q[:, 0, 4]), np.asarray(q[:, 0, 3]))
            theirs = core_angles(
                h, steps, 1.2, values["coulomb"], values["viscous"], values["inertia"], 0.5, 0.1
            )
            apart.append(np.abs(mine - theirs).max() / h)
    assert max(apart) < 1.1
    assert np.ptp(mine) > 1.0
