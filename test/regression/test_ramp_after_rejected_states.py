"""The ramp after rejected states.

What happened: after torque had gone to zero, states that jumped were skipped without moving the time of the last
state; the first accepted one then raised the torque as if the ramp had begun before them.
What must happen: the ramp begins with the last rejected state.
"""

from compensating import model
from stribeck.live.compensator import Compensator
from stribeck.live.settings import Settings, Timing
from stribeck.model.joint_map import JointMap

RAMP = 0.2


def test_the_ramp_begins_with_the_last_rejected_state() -> None:
    settings = Settings("friction_only", "none", slew=1e9, timing=Timing(ramp_time=RAMP))
    compensator = Compensator([model("a", "m1", 1.0, friction_base=0.1)], (JointMap(),), settings)
    compensator.enable()

    def send(stamp: float, position: float, velocity: float) -> float:
        return float(compensator.on_state(stamp, stamp, ("a",), [position], [velocity], [])[0])

    for k in range(101):
        full = send(1.0 + 0.01 * k, 0.01 * k, 1.0)
    assert full > 0.01
    for k in range(1, 21):
        stands = send(2.0 + 0.01 * k, 1.0, 1.0)
    assert stands == 0.0
    send(2.23, 9.0, 1.0)
    assert compensator.doubt == "a jumps by 8 rad in 30 ms"
    assert 0.0 < send(2.235, 1.035, 1.0) <= 1.001 * full * 0.005 / RAMP
    assert compensator.doubt is None
