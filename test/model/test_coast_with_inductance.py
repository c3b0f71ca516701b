"""A drive/coast bridge with inductance: its mean torque is that of the integrated circuit, and both limits are known laws."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from stribeck.cli.main import main
from stribeck.errors import ConfigError
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive, write_drive
from stribeck.files.folders import shared_directory
from stribeck.model.control_laws import ServoCommand, VoltageControl
from stribeck.model.joint import Drive
from stribeck.model.law import law_named

MOTOR = {"kt": 2.0, "R": 4.0, "armature": 1e-3}
SUPPLY, PERIOD = 10.0, 1e-4
ON = ServoCommand(0.0, 1.0, SUPPLY)


def coasting(inductance, period=PERIOD):
    """A bridge whose winding has an inductance [H]."""
    return VoltageControl(gain=0.1, duty_max=1.0, bridge="coast", inductance=inductance, pwm_period=period)


def integrated(inductance, duty, velocity, steps=4000, periods=60):
    """Mean torque of the last period of the circuit, by its differential equation in small steps."""
    turn, share = (1.0 if duty >= 0.0 else -1.0), abs(duty)
    emf, current, total = turn * MOTOR["kt"] * velocity, 0.0, 0.0
    dt = PERIOD / steps
    on = round(share * steps)
    for _ in range(periods):
        total = 0.0
        for k in range(steps):
            if k < on:
                voltage = SUPPLY
            elif current > 0.0:
                voltage = -SUPPLY
            else:
                break
            # Exact over a step of constant voltage.
            end = (voltage - emf) / MOTOR["R"]
            factor = np.exp(-dt * MOTOR["R"] / inductance)
            after = end + (current - end) * factor
            if k >= on and after < 0.0:
                after = 0.0
            total += 0.5 * (current + after) * dt
            current = after
    return turn * MOTOR["kt"] * total / PERIOD


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("duty", [0.1, 0.3, 0.6, 0.9, -0.5])
@pytest.mark.parametrize("velocity", [0.0, 1.5, -2.0])
@pytest.mark.parametrize("inductance", [2e-5, 2e-4, 2e-3])
def test_the_mean_torque_is_that_of_the_circuit(duty, velocity, inductance):
    """L/R from a twentieth of the period to five periods: within 0.2 % of the largest torque."""
    wanted = integrated(inductance, duty, velocity)
    found = coasting(inductance).torque(MOTOR, duty, ON, velocity)
    assert found == pytest.approx(wanted, abs=2e-3 * MOTOR["kt"] * SUPPLY / MOTOR["R"])


@pytest.mark.parametrize("duty", [0.0, 0.2, -0.7, 1.0])
def test_both_limits_are_known_laws(duty):
    """A tiny inductance is the law without one; a large one drives with the mean of +V and -V."""
    for velocity in (0.0, 2.0, -3.0):
        plain = VoltageControl(gain=0.1, duty_max=1.0, bridge="coast")
        assert coasting(1e-12).torque(MOTOR, duty, ON, velocity) == pytest.approx(
            plain.torque(MOTOR, duty, ON, velocity), abs=1e-6
        )
    if abs(duty) > 0.6:
        turn = np.sign(duty)
        mean = turn * (2.0 * abs(duty) - 1.0) * SUPPLY
        found = coasting(1.0).torque(MOTOR, duty, ON, 0.5)
        assert found == pytest.approx(MOTOR["kt"] * (mean - MOTOR["kt"] * 0.5) / MOTOR["R"], rel=1e-9)


def test_the_formula_is_that_of_jax_and_its_values_are_finite_everywhere():
    """Also beyond the speed at which the motor generates more than the supply."""
    control = coasting(2e-4)
    duty, velocity = (part.ravel() for part in np.meshgrid(np.linspace(-1, 1, 21), np.linspace(-12, 12, 25)))
    found = control.torque(MOTOR, duty, ON, velocity)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(
        np.asarray(control.torque(MOTOR, jnp.asarray(duty), ON, jnp.asarray(velocity))),
        found,
        atol=1e-5,
    )
    np.testing.assert_allclose(control.torque(MOTOR, -duty, ON, -velocity), -found, atol=1e-12)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("bridge: coast\n  inductance: 1.0e-4", "state both, or none"),
        ("bridge: brake\n  inductance: 1.0e-4\n  pwm_period: 1.0e-4", "no influence on the mean current"),
        ("bridge: coast\n  inductance: -1.0e-4\n  pwm_period: 1.0e-4", "must be positive, found -0.0001 H"),
    ],
)
def test_files_that_contradict_themselves_are_refused(tmp_path, lines, said):
    """One line says what is missing, or has no meaning; a file with both is read."""
    source = shared_directory("config") / "actuators" / "xl330.yaml"
    text = source.read_text().replace("name: xl330", "name: own")
    (tmp_path / "own.yaml").write_text(text.replace("bridge: brake", lines))
    with pytest.raises(ConfigError, match=said):
        load_actuator(str(tmp_path / "own.yaml"))
    (tmp_path / "good.yaml").write_text(
        text.replace("bridge: brake", "bridge: coast\n  inductance: 1.0e-4\n  pwm_period: 1.0e-4")
    )
    assert load_actuator(str(tmp_path / "good.yaml")).control.inductance == 1e-4


def test_a_file_of_drives_keeps_it_and_formats_without_it_say_so(tmp_path, capsys):
    """Written and read it is the same; C and the C++ controller name what they lack."""
    servo = load_actuator("xl330")
    control = replace(servo.control, bridge="coast", inductance=1e-4, pwm_period=5e-5)
    values = {**servo.published["m1"], "q_offset": 0.0}
    path = tmp_path / "drive.json"
    write_drive(path, Drive(replace(servo, control=control), law_named("m1"), values))
    assert read_drive(path).actuator.control == control
    for form in ("c", "ros2_control"):
        words = [
            "export",
            "--params",
            path,
            "--format",
            form,
            "--joint",
            "hip",
            "--kp",
            400,
            "--supply",
            5,
            "--output",
            tmp_path / form,
        ]
        assert main([str(word) for word in words]) == 1
        assert "does not support the inductance of a drive/coast bridge" in capsys.readouterr().err
