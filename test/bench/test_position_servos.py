"""Position servos whose goals act 80 to 140 ms late: never worse than without compensation, a quarter of the error of holding."""

import pytest

from position_servos import measured
from stribeck.errors import ConfigError
from stribeck.files.actuators import load_actuator
from stribeck.live.compensator import Compensator
from stribeck.live.friction import JointModel
from stribeck.live.settings import Settings, Timing
from stribeck.model.joint_map import JointMap
from stribeck.model.law import law_named


@pytest.mark.parametrize("declared", [False, True])
def test_no_servo_is_worse_off_whatever_its_friction(declared):
    """Friction 0.3 to 2 times that of the file, damping ratios from 0.1, at 50 Hz: with the latency given or not."""
    found = measured(declared, (50,))
    assert found["worst tracking"] < 1.0
    assert found["worst holding"] < 1.0
    assert found["holding, right friction"] <= 0.3


@pytest.mark.slow
@pytest.mark.parametrize("declared", [False, True])
def test_no_servo_is_worse_off_at_any_rate(declared):
    """The same at 50, 100 and 200 Hz."""
    found = measured(declared)
    assert max(found["worst tracking"], found["worst holding"]) < 1.0
    assert found["holding, right friction"] <= 0.3


def test_a_long_latency_is_refused_only_where_velocities_are_fed_back():
    """140 ms with a viscous friction of 5 rad/s: goals may be offset, efforts may not be sent."""
    values = {"ratio": 1.0, "armature": 0.004, "friction_base": 0.08, "friction_viscous": 0.04}
    joint = JointModel("j", load_actuator("torque_joint"), law_named("m1"), values, 1.0)
    with pytest.raises(ConfigError, match="shorten the delay"):
        Compensator([joint], [JointMap()], Settings("sum", "none", timing=Timing(loop_delay=0.14)))
    ours = Compensator([joint], [JointMap()], Settings("goal_offset", "none", timing=Timing(loop_delay=0.14)))
    assert ours.feed_forward.by_goal.all()
