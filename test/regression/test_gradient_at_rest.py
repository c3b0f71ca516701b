"""A joint at rest at its goal, to rounding: in single precision the derivatives of the step were NaN."""

import jax
import jax.numpy as jnp
import pytest

from stribeck.model.law import LAWS
from stribeck.model.step import velocity_step


@pytest.mark.ci
@pytest.mark.parametrize("net", [0.0, 1e-30, 1e-22, 1e-12])
def test_derivatives_of_a_step_from_rest_are_finite(net):
    """The fit of a robot whose run starts at rest, without load, ended in a traceback."""

    def moved(friction):
        p = {"friction_viscous": 0.1, "friction_base": friction, "torque_offset": 0.0}
        motor = lambda v: jnp.float32(net) * friction / 0.2 - 0.0 * v  # noqa: E731
        return velocity_step(LAWS["m1"], 40.0, p, jnp.float32(0.0), motor, jnp.float32(net), 0.005)

    assert all(jnp.isfinite(slope) for slope in jax.jacfwd(moved)(jnp.float32(0.0)))
    assert all(jnp.isfinite(slope) for slope in jax.jacfwd(moved)(jnp.float32(0.2)))
