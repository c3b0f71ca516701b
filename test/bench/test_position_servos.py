"""Position servos whose goals act 80 to 140 ms late: never worse than without compensation, a quarter of the error of holding."""

import pytest

from position_servos import Load, measured
from stribeck.errors import ConfigError
from stribeck.files.actuators import load_actuator
from stribeck.live.compensator import Compensator
from stribeck.live.friction import JointModel
from stribeck.live.settings import Settings, Timing
from stribeck.model.joint_map import JointMap
from stribeck.model.law import law_named


@pytest.mark.slow
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
    assert ours.feed_forward.delay.by_goal.all()


@pytest.mark.slow
@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("model", [0.8, 1.2])
def test_no_loaded_servo_is_worse_off_with_a_wrong_model(declared, model):
    """With weight and load-dependent friction, at 50 Hz, against the same weight alone, the model 20 % too light or too heavy."""
    found = measured(declared, (50,), Load(model=model))
    assert max(found["worst tracking"], found["worst holding"]) < 1.0


@pytest.mark.slow
def test_a_modelled_weight_takes_a_quarter_of_the_error_left():
    """With the right model and friction; without the model's loads 0.61 of the error of holding remain."""
    assert measured(True, (50,), Load())["holding, right friction"] <= 0.46
    assert measured(True, (50,), Load(told=False))["holding, right friction"] >= 0.6


@pytest.mark.slow
@pytest.mark.parametrize("declared", [False, True])
def test_no_loaded_servo_is_worse_off_at_any_rate(declared):
    """Right model and 20 % wrong ones at 100 and 200 Hz."""
    for model in (0.8, 1.0, 1.2):
        found = measured(declared, (100, 200), Load(model=model))
        assert max(found["worst tracking"], found["worst holding"]) < 1.0
