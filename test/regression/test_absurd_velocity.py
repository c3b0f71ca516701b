"""One state with a velocity of -1e300 rad/s was accepted: its square overflowed, and the energy tank became NaN for good.

The torque of that joint was then zero without a doubt, in Python the tank no longer limited it after the next fault, and the
C++ compensator differed.
"""

import numpy as np
import pytest

from compensating import model
from stribeck.live.compensator import Compensator
from stribeck.live.settings import Settings, Timing
from stribeck.model.joint_map import JointMap
from stribeck.rigid.dynamics import IndependentJoints


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("absurd", [-1e300, 1e155, 1e10])
@pytest.mark.parametrize("which", ["position", "velocity"])
def test_an_absurd_state_is_rejected_and_forgotten(which: str, absurd: float) -> None:
    """It counts as a state that is not a number: the same torque afterwards, and an account of numbers."""
    found = []
    for value in (np.nan, absurd):
        settings = Settings("sum", "none", slew=0.0, timing=Timing(ramp_time=0.0))
        dynamics = IndependentJoints([0.01])
        compensator = Compensator([model(friction_base=0.05)], [JointMap()], settings, dynamics=dynamics)
        compensator.enable()
        for k in range(400):
            time = 0.002 * k
            position, velocity = np.sin(3.0 * time), 3.0 * np.cos(3.0 * time)
            compensator.on_command(time, time - 1e-4, ["a"], [position], [velocity], [0.0])
            if k == 300:
                position, velocity = (value, velocity) if which == "position" else (position, value)
            compensator.on_state(time, time, ["a"], [position], [velocity], [])
            if k == 300:
                assert compensator.doubt == "position or velocity is not a number, or is impossibly large"
                assert compensator.torque[0] == 0.0
        assert compensator.doubt is None
        assert all(np.isfinite(values).all() for values in compensator.account())
        assert np.isfinite(compensator.feed_forward.tank.share).all()
        found.append(compensator.torque.copy())
    assert found[0][0] > 0.01 or found[0][0] < -0.01
    np.testing.assert_array_equal(found[1], found[0])
