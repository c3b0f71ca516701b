"""External torque of a joint whose file has viscous friction only.

Noise and errors of the model are known as fractions of the friction at rest. Without any, band and threshold were 0 and every torque was a
contact: wrist 3 of a recorded UR10, whose friction at rest is at its lower bound, zero, was 345 thresholds beyond.
"""

import numpy as np

from stribeck.files.actuators import load_actuator
from stribeck.live.compensator import Compensator
from stribeck.live.friction import JointModel
from stribeck.live.settings import Settings
from stribeck.model.bench import Pendulum
from stribeck.model.joint_map import JointMap
from stribeck.model.law import law_named
from stribeck.rigid.dynamics import IndependentJoints

NAMES = ("dry", "smooth")


def test_it_has_no_band_and_is_no_contact():
    """Beside a joint with friction at rest, whose band is finite; both are pushed with 5 N m."""
    zero, inertia = np.zeros(2), np.full(2, 0.1)
    joints = [
        JointModel(name, load_actuator("torque_joint"), law_named("m1"), {"ratio": 1.0, "armature": 0.1, "friction_base": base, "friction_viscous": 0.5}, 10.0)
        for name, base in zip(NAMES, (1.0, 0.0), strict=True)
    ]  # fmt: skip
    dynamics = IndependentJoints(inertia, Pendulum(zero, zero, zero), zero)
    compensator = Compensator(joints, [JointMap()] * 2, Settings("friction_only", "motor"), dynamics=dynamics)
    compensator.enable()
    for k in range(100):
        time, speed = 1.0 + 0.002 * k, np.full(2, 1.0)
        compensator.on_state(time, time, NAMES, 0.002 * k * speed, speed, np.full(2, -5.0))
    external = compensator.external_torque
    assert external is not None
    assert np.isfinite(external.torque).all()
    assert external.torque[1] > 4.0
    assert np.isfinite(external.threshold[0])
    assert np.isinf([external.band[1], external.threshold[1]]).all()
    assert external.contact.tolist() == [True, False]
