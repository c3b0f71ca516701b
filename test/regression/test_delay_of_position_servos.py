"""A stated delay of position servos whose gain is in their file."""

import stribeck as sb
from stribeck.files.drives import Drives, write_drives
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.model.estimate import fixed
from stribeck.model.law import law_named


def test_a_delay_that_torques_refuse_is_taken_for_goals(tmp_path):
    """What happened: `loop_delay` of 0.1 s was refused before the first goal, as for torques. What must happen: goals are offset."""
    values = {"friction_base": 0.1, "friction_viscous": 0.7, "stiffness": 8.0, "armature": 0.04}
    estimates = {name: fixed(value, "") for name, value in values.items()}
    drive = torque_drive(torque_actuator("rotary", largest=1.9, resolution=1e-3), law_named("m1"), estimates)
    write_drives(tmp_path / "robot.json", Drives({"j1": drive}))
    one = sb.Compensator(tmp_path / "robot.json", loop_delay=0.1)
    sent = [one.goal([0.0], [0.05 + 0.002 * k], 0.01 * k)[0] for k in range(100)]
    assert sent[-1] > 0.05 + 0.002 * 99 + 0.5 * 0.8 * 0.1 / 8.0
