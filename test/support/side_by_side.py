"""One motion through the Python compensator and through the C++ one."""

import numpy as np

from compensating import Driven
from cpp_compensator import CppCompensator
from stribeck.live.settings import Settings, Timing
from stribeck.model.joint_map import JointMap


def torques(ours, theirs, count):
    """Torques of the joint ``ours`` in Python and of ``theirs`` in C++ at each state of a motion [N m]."""
    settings = Settings("friction_only", "none", slew=1e6, certain_fraction=1.0, timing=Timing(ramp_time=0.0))
    python, cpp = Driven([ours]), CppCompensator([theirs], [JointMap()], settings)
    cpp.on_telemetry("a", kp=200.0, supply_voltage=5.0)
    cpp.enable()
    for k in range(count):
        velocity, position = 2.0 + np.sin(0.05 * k), 0.4 + 0.01 * k
        torque = python.state(velocity, position)
        yield (
            torque,
            cpp.on_state(python.time + 0.001, python.time, ["a"], [position], [velocity], [np.nan]),
        )
