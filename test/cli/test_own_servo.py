"""A servo of the user's own: from its YAML file to a fit, its errors and its compensation, without that file beside them."""

import json
import re

import numpy as np
import pytest
import yaml

from bags import Bag, joint_state
from helpers import REPOSITORY
from recovery import Bench, truth_of, virtual_logs
from stribeck.cli.main import main
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive
from stribeck.model.control_laws import Gains
from stribeck.model.electrics import duty_ratio
from virtual import Encoder

BENCH = Bench("mx106", (1.0,), 0.15, 0.05, (16.0,), 12.0)
DESCRIPTION = "mass=1.0,length=0.15,arm_mass=0.05,kp=16,supply_voltage=12"
STEP = 2.0 * np.pi / 4096.0


@pytest.fixture
def own(tmp_path):
    """The file of a servo with a name that no installation has."""
    content = yaml.safe_load((REPOSITORY / "config" / "actuators" / "mx106.yaml").read_text())
    content |= {"name": "own", "title": "A servo of one's own", "published": {}}
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    """A run of a simulated servo as another program records it: without ``/bench``."""
    log = virtual_logs(BENCH, truth_of(BENCH, "m1"), "m1", Encoder(STEP, STEP))[1]
    made = Bag()
    for time, position, velocity, goal in zip(
        log.position.time, log.position.value, log.velocity.value, log.goal.value, strict=True
    ):
        made.add(1.0 + time, "/joint_states", joint_state(1.0 + time, ["joint"], position, velocity))
        made.add(1.0 + time, "/joint_commands", joint_state(1.0 + time, ["joint"], goal))
    return made.write(tmp_path_factory.mktemp("foreign") / "run")


def said(capsys):
    """The line with which the command just run was refused."""
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "warning" not in line]
    return line


@pytest.mark.slow
def test_a_servo_of_ones_own_needs_its_file_only_for_the_fit(own, bag, tmp_path, capsys):
    """What happened: --bench actuator=own.yaml made the recordings those of 'own.yaml', which --actuator own.yaml was not;
    and every other verb called the fitted servo unknown. What must happen: the parameter file describes the servo."""
    signals = tmp_path / "signals.yaml"
    signals.write_text(
        "position: {topic: /joint_states, names: name, values: position}\n"
        "velocity: {topic: /joint_states, names: name, values: velocity}\n"
        "goal: {topic: /joint_commands, names: name, values: position}\n"
        "torque_enable: {constant: 1}\n"
    )
    recordings = ["--logdir", str(bag), "--signals", str(signals)]
    params = tmp_path / "m1.json"
    fit = ["fit", "--model", "m1", *recordings, "--trials", "200", "--quiet", "--actuator", str(own)]
    fit += ["--integrator", "paper", "--dt", "0.005"]  # compiles fastest
    for bench in (f"actuator={own},{DESCRIPTION}", f"actuator=own,{DESCRIPTION}", DESCRIPTION):
        assert main([*fit, "--bench", bench, "--output", str(params)]) == 0, bench
    own.unlink()
    file = read_drive(params)
    assert (file.actuator.name, file.actuator.title) == ("own", "A servo of one's own")
    described = [*recordings, "--bench", f"actuator=own,{DESCRIPTION}"]
    assert main(["evaluate", "--params", str(params), *described]) == 0
    assert main(["compensate", "--states", str(bag), "--params", str(params)]) == 0
    capsys.readouterr()
    assert (
        main(["evaluate", "--params", str(params), *recordings, "--bench", f"actuator=mx106,{DESCRIPTION}"])
        == 1
    )
    assert "belongs to the servo 'own', but the recordings are of 'mx106'" in said(capsys)
    assert main(["fit", "--model", "m1", *described]) == 1
    assert re.search("are of the servo 'own', which is unknown; valid: .* --servo", said(capsys))


def test_the_name_of_an_included_servo_is_not_for_another(own, bag, capsys):
    """One line, before anything is read."""
    own.write_text(own.read_text().replace("name: own", "name: mx106"))
    words = ["fit", "--logdir", str(bag), "--actuator", str(own), "--bench", DESCRIPTION]
    assert main(words) == 1
    assert re.search("is the name of the included servo Dynamixel MX-106.* another name", said(capsys))


def test_a_servo_without_a_datasheet_needs_a_limit(own, bag, tmp_path, capsys):
    """What happened: "the datasheet of torque_joint gives no stall torque". What must happen: a way out for both users."""
    values = load_actuator("mx106").published["m1"]
    params = tmp_path / "joint.json"
    joint = {key: value for key, value in values.items() if key not in ("kt", "R")} | {"ratio": 1.0}
    params.write_text(json.dumps({**joint, "model": "m1", "actuator": "torque_joint"}))
    words = ["compensate", "--states", str(bag), "--params", str(params)]
    assert main(words) == 1
    line = said(capsys)
    assert all(part in line for part in ("'joint'", "joint.max_torque [N m]", "--max-torque"))
    assert main([*words, "--max-torque", "2"]) == 0


def with_duty(log, gain):
    """The run with the duty that a servo with another gain would report."""
    duty = np.clip(gain * log.setup.kp * (log.goal.value - log.position.value), -1.0, 1.0)
    return type(log)(**{**vars(log), "pwm": type(log.goal)(log.goal.time, duty, held=True)})


def test_a_reported_duty_gives_the_gain_of_the_firmware(tmp_path):
    """Half of the described gain is a ratio of a half; without reports or with other gains nothing is compared."""
    log = virtual_logs(BENCH, truth_of(BENCH, "m1"), "m1", Encoder(0.0))[1]
    control = load_actuator("mx106").control
    assert duty_ratio(with_duty(log, 0.5 * control.gain), control) == pytest.approx(0.5, rel=1e-6)
    assert duty_ratio(log, control) is None
    held = with_duty(log, control.gain)
    with_integral = type(log)(**{**vars(held), "setup": type(log.setup)(**{**vars(log.setup), "ki": 1.0})})
    assert duty_ratio(with_integral, control) is None


def test_gains_that_a_control_law_lacks_are_named():
    """Only those that are not zero, and only where the law has no term for them."""
    damiao, mx106 = load_actuator("dm_j4310"), load_actuator("mx106")
    assert damiao.lacks_gains(Gains(20.0, 0.5, 1.0)) == ("ki",)
    assert mx106.lacks_gains(Gains(20.0, 0.5, 1.0)) == ()
    assert load_actuator("sts3215").lacks_gains(Gains(20.0, np.array([0.0, 0.0]), np.array([0.0, 1.0]))) == (
        "kd",
    )
