"""Many simulations of an XL330 with a pendulum at once, on MJX: what a learner trains against.

    python examples/mujoco/batch.py [--count 1024] [--seconds 2]

Each simulation has a goal of its own. Prints how many steps were made in a second, and how widely static friction
spreads the positions around their goals.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from stribeck.files.actuators import load_actuator
from stribeck.model.joint import Drive
from stribeck.model.law import law_named
from stribeck.mujoco import Servo
from stribeck.mujoco.batch import BatchController, mjx

PENDULUM = """
<mujoco model="pendulum">
  <option timestep="0.004" iterations="4" ls_iterations="4"><flag contact="disable" eulerdamp="disable"/></option>
  <worldbody>
    <body>
      <joint name="joint" axis="0 1 0"/>
      <geom type="sphere" pos="0 0 -0.1" size="0.02" mass="0.1"/>
    </body>
  </worldbody>
</mujoco>
"""


def main() -> None:
    """Simulate a batch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1024, help="simulations at once")
    parser.add_argument("--seconds", type=float, default=2.0)
    arguments = parser.parse_args()
    actuator = load_actuator("xl330")
    parameters = Drive(actuator, law_named("m6"), actuator.published["m6"])
    model = mujoco.MjModel.from_xml_string(PENDULUM)
    servos = BatchController(model, {"joint": Servo(parameters, kp=400.0, supply_voltage=5.0)})
    steps = round(arguments.seconds / model.opt.timestep)
    at_rest = mujoco.MjData(model)
    mujoco.mj_forward(
        model, at_rest
    )  # on the CPU, since all begin alike; else mjx.forward in each simulation
    start = mjx.put_data(model, at_rest, impl="jax")

    def simulation(goal: jax.Array) -> jax.Array:
        """The last position of one simulation [rad]."""
        memory = servos.start(start, goal)
        state, _ = jax.lax.scan(lambda now, _: (servos.step(*now, goal), None), (start, memory), length=steps)
        return state[0].qpos[0]

    goals = jnp.asarray(np.random.default_rng(0).uniform(-1.5, 1.5, (arguments.count, 1)))
    simulations = jax.jit(jax.vmap(simulation)).lower(goals).compile()
    begin = time.perf_counter()
    positions = np.asarray(simulations(goals))
    rate = arguments.count * steps / (time.perf_counter() - begin)
    errors = 1e3 * (positions - np.asarray(goals)[:, 0])
    print(
        f"{arguments.count} simulations of {steps} steps on {jax.devices()[0].device_kind}: {rate:.3g} steps/s"
    )
    print(
        f"position behind the goal: {np.mean(np.abs(errors)):.1f} mrad, at most {np.max(np.abs(errors)):.1f} mrad"
    )


if __name__ == "__main__":
    main()
