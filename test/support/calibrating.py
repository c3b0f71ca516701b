"""A simulated IRB 120 in a graph, with a tracker that measures reflectors on its tool."""

import threading

import numpy as np
from geometry_msgs.msg import PointStamped
from sensor_msgs.msg import JointState

from simulated_arms import MARKERS, irb120

NOISE = 5e-5
"""Standard deviation of the tracker along each axis [m]."""

MACHINE = """\
schema: 1
name: irb120
joints: [joint_1, joint_2, joint_3, joint_4, joint_5, joint_6]
calibration:
  data:
    joints: {file: measured_joints.txt, unit: deg}
    markers:
      SMR_1: {topic: /tracker/SMR_1, file: measured_SMR_1.txt, unit: mm}
      SMR_2: {topic: /tracker/SMR_2, file: measured_SMR_2.txt, unit: mm}
      SMR_3: {topic: /tracker/SMR_3, file: measured_SMR_3.txt, unit: mm}
  nominal:
    lengths: mm
    angles: deg
    dh: [[0, 290, 0, -90], [-90, 0, 270, 0], [0, 0, 70, -90], [0, 302, 0, 90], [0, 0, 0, -90], [180, 72, 0, 0]]
  extra: []
"""


class Tracker:
    """Three reflectors on the tool, measured at every state of the joints."""

    def __init__(self, graph, arm):
        self._arm, self._rng, self._lock = arm, np.random.default_rng(7), threading.Lock()
        self._out = {
            name: graph.user.create_publisher(PointStamped, f"tracker/{name}", 50) for name in MARKERS
        }
        graph.user.create_subscription(JointState, "joint_states", self._on_state, 50)
        self._count = 0

    def _on_state(self, message):
        self._count += 1
        if self._count % 5:
            return
        position = np.array(message.position)[None]
        points = self._arm.model.predict(position, self._arm.values)[0]
        for name, place in zip(MARKERS, points + NOISE * self._rng.standard_normal((3, 3)), strict=True):
            out = PointStamped(header=message.header)
            out.point.x, out.point.y, out.point.z = map(float, place)
            self._out[name].publish(out)


def session(folder, poses):
    """A session of the excitation node that visits poses."""
    joint = (
        "{position_limits: [-3, 3], limits: {velocity: 4, acceleration: 30}, bench: {mass: 1, length: 0.1, arm_mass: 0}, "
        "actuator: torque_joint}"
    )
    lines = ["joints:", *(f"  {name}: {joint}" for name in irb120().names)]
    lines += [f"plays: {{trajectories: [{poses}], gains: [1.0]}}", f"output: {folder / 'bags'}"]
    lines += ["soft_start: {speed: 3.0, acceleration: 20.0}", "supply_voltage: 24"]
    path = folder / "session.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path
