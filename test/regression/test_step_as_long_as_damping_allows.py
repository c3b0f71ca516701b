"""The MJCF check refused a time step that it had chosen itself: quotients were rounded up with a tolerance, steps compared without."""

import numpy as np
import pytest

pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install '.[mujoco]'")
from pendulums import parameters_of

from stribeck.errors import ConfigError
from stribeck.evaluate.assessment import Stepping
from stribeck.exports.mjcf import simulated
from stribeck.exports.mjcf_joint import ROUNDING, exported
from stribeck.exports.runs import batch_of_source, bench_runs
from stribeck.model.joint import Drive, Servo

M1 = parameters_of("xl330", "m1")


def test_a_step_that_exceeds_the_longest_by_rounding_is_taken():
    """A rotor so light that damping stops it in a tenth of a row, but for half the tolerance."""
    logs = bench_runs(M1, 400.0, 5.0)
    _, source = batch_of_source(M1, logs, Stepping(0.005))
    plain = exported(Servo(M1, 400.0, supply_voltage=5.0))
    longest = source.dt / (10.0 + 0.5 * ROUNDING)
    values = {**M1.values, "armature": plain.armature * longest / plain.longest_step()}
    servo = Servo(Drive(M1.actuator, M1.law, values), 400.0, supply_voltage=5.0)
    assert exported(servo).longest_step() < source.dt / 10.0
    assert np.isfinite(simulated(servo, source, Stepping(0.005))).all()
    exported(servo).check_timestep(source.dt / 10.0, "joint")
    with pytest.raises(ConfigError, match="a time step of"):
        exported(servo).check_timestep(source.dt / 10.0 * (1.0 + 2.0 * ROUNDING), "joint")
