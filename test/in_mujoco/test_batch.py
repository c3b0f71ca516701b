"""The controller on MJX gives the motion of the one in MuJoCo, for each simulation of a batch."""

import numpy as np
import pytest
from pendulums import mujoco, parameters_of

from stribeck.errors import ConfigError
from stribeck.mujoco import Controller, Servo

jax = pytest.importorskip("jax")
batch = pytest.importorskip("stribeck.mujoco.batch")

# An equality and a joint with friction of its own come before the servos' joints, in another order than theirs.
MODEL = """
<mujoco>
  <option timestep="0.005" iterations="10"><flag contact="disable"/></option>
  <worldbody>
    <body pos="0 5 0"><joint name="free" type="slide" frictionloss="0.2"/><geom size="0.1" mass="1"/></body>
    <body>
      <joint name="shoulder" axis="0 1 0"/><geom size="0.02" mass="0.05" pos="0 0 -0.05"/>
      <body pos="0 0 -0.08"><joint name="elbow" axis="0 1 0"/><geom size="0.02" mass="0.05" pos="0 0 -0.05"/></body>
    </body>
  </worldbody>
  <equality><joint joint1="free" active="true"/></equality>
</mujoco>
"""
STEPS = 300


def servos():
    """Different laws, a firmware slower than the steps, a supply that sags, friction that differs by direction."""
    law = parameters_of("xl330", "m4").law.with_terms(asymmetric=True)
    terms = {"friction_base_negative": 0.02, "friction_viscous_negative": 0.0}
    return {
        "elbow": Servo(parameters_of("xl330", law, terms), 400.0, supply_voltage=5.0, period=0.01),
        "shoulder": Servo(parameters_of("xl330", "m6"), 800.0, supply_voltage=6.0, supply_resistance=1.0),
    }


def in_mujoco(goals, enable):
    model = mujoco.MjModel.from_xml_string(MODEL)
    controller, data = Controller(model, servos()), mujoco.MjData(model)
    found = np.empty((STEPS, model.nq))
    for k in range(STEPS):
        found[k] = data.qpos
        controller.update(data, goals[k], enable[k])
        mujoco.mj_step(model, data)
    return found


@pytest.mark.slow
def test_a_batch_moves_as_single_simulations_do():
    """Two simulations of two joints; the second one's torque goes off half way. In float32: to 0.2 mrad."""
    mjx = batch.mjx
    model = mujoco.MjModel.from_xml_string(MODEL)
    controller = batch.BatchController(model, servos())
    at_rest = mujoco.MjData(model)
    mujoco.mj_forward(model, at_rest)
    data = mjx.put_data(model, at_rest, impl="jax")
    time = 0.005 * np.arange(STEPS)[:, None]
    goals = np.stack([np.sin(time * [2.0, 3.0]), 0.5 - np.cos(time * [3.0, 1.0])])
    enable = np.ones_like(goals)
    enable[1, STEPS // 2 :, 1] = 0.0

    def motion(goals, enable):
        memory = controller.start(data, goals[0], enable[0])

        def step(state, command):
            return controller.step(*state, *command), state[0].qpos

        return jax.lax.scan(step, (data, memory), (goals, enable))[1]

    found = jax.jit(jax.vmap(motion))(goals, enable)
    for one, goal, flags in zip(found, goals, enable, strict=True):
        expected = in_mujoco(goal, flags)
        np.testing.assert_allclose(one, expected, atol=2e-4)
        assert np.all(np.ptp(expected[:, 1:], axis=0) > 0.3)


def test_models_are_refused_as_by_the_controller():
    """The same line."""
    with pytest.raises(ConfigError, match="no joint 'wrist'; it has: free, shoulder, elbow"):
        batch.BatchController(mujoco.MjModel.from_xml_string(MODEL), {"wrist": servos()["elbow"]})
