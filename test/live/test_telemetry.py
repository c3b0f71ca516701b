"""What is taken from telemetry: by stamps, and only where parameters leave it open. No ROS."""

import math

import pytest

from compensating import XL330, model
from helpers import write_json
from stribeck.files.cdr import Stamp
from stribeck.files.drives import read_drive
from stribeck.live.compensator import Compensator
from stribeck.live.learning.file import Identified
from stribeck.live.settings import Settings
from stribeck.live.setup import CompensatedJoint
from stribeck.live.telemetry import RateLimiter, apply_telemetry
from stribeck.model.joint_map import JointMap


def test_one_message_in_200_ms_passes() -> None:
    """The first of each period by stamps, at any rate of arrival; also after a jump back."""
    limiter = RateLimiter()
    read = [k for k in range(0, 1000, 5) if limiter.passes(Stamp(7, k * 1_000_000))]
    assert read == [0, 200, 400, 600, 800]
    assert limiter.passes(Stamp(6, 0))
    assert not limiter.passes(Stamp(6, 199_999_999))


@pytest.mark.parametrize(
    ("p_gain", "supply", "kp", "voltage"),
    [(0.0, 0.0, 300.0, 4.8), (150.0, 0.0, 200.0, 4.8), (0.0, 6.0, 300.0, 5.0)],
)
def test_what_parameters_say_telemetry_does_not_change(tmp_path, p_gain, supply, kp, voltage) -> None:
    """Gain and supply come from telemetry only where they are not set; what it does not say stays."""
    path = write_json(tmp_path / "m1.json", {**XL330.published["m1"], "model": "m1", "actuator": "xl330"})
    joint = CompensatedJoint(
        model("a"), JointMap(), read_drive(path), p_gain, supply, Identified("a", "m1", "")
    )
    compensator = Compensator([joint.model], [joint.map], Settings("goal_offset", "none"))
    compensator.on_telemetry("a", kp=200.0, supply_voltage=5.0)
    apply_telemetry(compensator, joint, {"p_gain": 300.0, "voltage": 4.8, "pwm": math.nan}, 1.0)
    apply_telemetry(compensator, joint, {"temperature": 30.0}, 1.1)
    assert (compensator.servos.kp[0], compensator.servos.supply[0]) == (kp, voltage)
