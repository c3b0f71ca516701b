"""A controller's effort of 1e308 N m made the learnt friction NaN for good, and the torque zero without a doubt."""

import numpy as np

from compensating import model
from stribeck.live.compensator import Compensator
from stribeck.live.settings import Settings, Timing
from stribeck.model.joint_map import JointMap
from stribeck.rigid.dynamics import IndependentJoints


def test_learnt_friction_stays_finite_after_an_absurd_effort():
    """The observer starts anew; scales and certainty remain numbers, and learning goes on."""
    names = ["a", "b"]
    joints = [model(name, "m1", friction_base=1e-3, friction_viscous=0.0) for name in names]
    compensator = Compensator(
        joints,
        [JointMap()] * 2,
        Settings("sum", "none", timing=Timing(ramp_time=0.0)),
        dynamics=IndependentJoints([0.01, 0.01]),
    )
    compensator.enable()
    for k in range(700):
        time = 0.002 * k
        goal, rate = [np.sin(3.0 * time)] * 2, [3.0 * np.cos(3.0 * time)] * 2
        effort = -0.09 * np.sin(3.0 * time) + 1e-3 * np.sign(rate[0]) - compensator.torque
        effort[1] = 1e308 if k == 520 else effort[1]
        compensator.on_command(time, time - 1e-4, names, goal, rate, effort)
        compensator.on_state(time, time, names, goal, rate, [])
    assert compensator.doubt is None
    for values in compensator.account():
        assert np.isfinite(values).all()
    assert np.isfinite(compensator.learned).all()
    assert (compensator.account().certainty > 0.0).all()
