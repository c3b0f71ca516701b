"""Six emulated STS3215 of an SO-101 on a bus in simulated time, in place of the arm at /dev/ttyACM0.

    python examples/position_servo/emulated_so101.py --link arm

The arm is MuJoCo's, with 1° of play in each joint, 100 ms from goals to motors, and friction that rises with load and varies with
position (`bench/plants/servo_arm.py`). Its links weigh up to 10 % more or less than `config/robots/so101.urdf` says. It ends with Ctrl-C.
"""

import argparse
import math
import signal
import sys
import threading
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "bench"))

from plants.friction import FrictionValues  # noqa: E402
from plants.servo_arm import MotorValues, ServoArm  # noqa: E402
from stribeck.emulator.device import EmulatedServo  # noqa: E402
from stribeck.emulator.joint import published_parameters  # noqa: E402
from stribeck.emulator.simulated import SimulationServer  # noqa: E402
from stribeck.files.actuators import load_actuator  # noqa: E402

JOINTS = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")
BACKLASH, LATENCY = math.radians(1.0), 0.1
MASS_SCALE = np.array([1.0, 1.1, 0.9, 1.1, 0.9, 1.1])
"""Of the links, so that the weight of the arm is not that of the model by a common factor."""

FOLDED = np.array([0.0, -1.6, 1.6, 0.5, 0.0, 0.0])
"""Where it lies when it is switched on [rad]."""


def friction() -> FrictionValues:
    """Dry friction as recorded dead bands of an SO-101 have it: more in lift and elbow; 15 % ripple, 5 % asymmetry."""
    coulomb = np.array([0.08, 0.2, 0.22, 0.12, 0.11, 0.08])
    one = np.ones_like(coulomb)
    return FrictionValues(
        coulomb=coulomb, stiction=1.2 * coulomb, viscous=0.03 * one, stribeck_velocity=0.1 * one, presliding=2e-3 * one,
        inertia=0.028 * one, asymmetry=0.05 * one, ripple=0.15 * one, ripple_wave=40.0 * one, load_share=0.1 * one,
    )  # fmt: skip


def emulated_arm(seed: int = 0) -> tuple[list[EmulatedServo], ServoArm]:
    """Servos with IDs 1 to 6, and the arm that they drive."""
    values, control = published_parameters("sts3215").values, load_actuator("sts3215").control
    servos = [
        EmulatedServo("sts3215", servo_id=k + 1, rng=np.random.default_rng((seed, k)))
        for k in range(len(JOINTS))
    ]
    motor = MotorValues(
        values["kt"], values["R"], values["armature"], control.gain, control.goal_speed or math.inf
    )
    arm = ServoArm(
        HERE.parents[1] / "config" / "robots" / "so101.urdf", JOINTS, servos, motor, friction(),
        backlash=BACKLASH, latency=LATENCY, mass_scale=MASS_SCALE, at=FOLDED,
    )  # fmt: skip
    return servos, arm


def main() -> None:
    """Serve the bus until a signal comes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--link", type=Path, required=True, help="the port, for `stribeck record --port`")
    parser.add_argument("--seed", type=int, default=0, help="of the encoders' noise")
    given = parser.parse_args()
    servos, _ = emulated_arm(given.seed)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with SimulationServer(given.link, servos) as server:
        print(f"An SO-101 with {len(servos)} {servos[0].model.title}: {given.link}", flush=True)
        server.serve(ended.is_set)


if __name__ == "__main__":
    main()
