"""Recordings in the BAM JSON format, and the traps of that format."""

import numpy as np
import pytest

from bags import raw_pwm
from helpers import XL330, bam_recording, needs_xl330, refusal, with_entries, write_json
from stribeck.files.actuators import load_actuator
from stribeck.model.actuator import PwmRegister
from stribeck.recordings.bam_json import read_bam_json

REGISTER = PwmRegister(full_scale=885, bits=16)


def read(folder, content, **options):
    """Read a recording with some content."""
    return read_bam_json(write_json(folder / "run.json", content), **options)


def without(key: str):
    """Entries without a key."""
    return lambda k, entry: {name: value for name, value in entry.items() if name != key}


def test_a_recording_is_read_as_it_stands(tmp_path):
    """Head, samples and which signals are held."""
    content = bam_recording()
    log = read(tmp_path, content)
    assert (log.name, log.actuator, log.trajectory) == ("run", "xl330", "sin_sin")
    setup = log.setup
    assert (setup.mass, setup.length, setup.arm_mass, setup.supply_voltage) == (0.49, 0.1, 0.02, 7.4)
    assert (setup.kp, setup.ki, setup.kd) == (200.0, 0.0, 0.0)
    columns = {"timestamp": log.position.time, "position": log.position.value, "speed": log.velocity.value}
    columns |= {"goal_position": log.goal.value, "torque_enable": log.torque_enable.value}
    columns |= {"input_volts": log.supply_voltage.value, "temp": log.temperature.value}
    for key, values in columns.items():
        assert values.tolist() == [float(entry[key]) for entry in content["entries"]]
    held = [log.position.held, log.velocity.held, log.goal.held, log.torque_enable.held, log.pwm.held]
    assert held == [False, False, True, True, True]
    assert not log.supply_voltage.held


def test_the_duty_is_unwrapped_and_never_interpolated(tmp_path):
    """65535 is -1/885 of full duty; resampled over the wrap, only duties that were told appear."""
    raw = [0, 3, 65535, 65534, 885, 64651, 1, 0]
    content = with_entries(lambda k, entry: {**entry, "load": raw[k % 8]})
    log = read(tmp_path, content)
    expected = np.array([0, 3, -1, -2, 885, -885, 1, 0]) / 885
    assert np.array_equal(log.pwm.value[:8], expected)
    assert set(log.pwm.at(np.linspace(0.0, 1.5, 4000))) <= set(expected)


@pytest.mark.parametrize("integer", [0, 1, 884, 885, 64651, 65535])
def test_the_raw_register_of_a_duty_is_the_integer_it_came_from(integer):
    """Exact inverse, wrap included."""
    signed = integer - 65536 if integer > 32767 else integer
    assert raw_pwm(signed / 885, REGISTER) == integer


def test_every_duty_of_the_register_comes_back():
    """All 1771 of them."""
    signed = np.arange(-885, 886)
    raw = raw_pwm(signed / 885, REGISTER)
    assert raw.dtype == np.int64
    assert np.array_equal(raw, signed % 65536)


def test_a_servo_without_pwm_register_tells_no_duty(tmp_path):
    """Elsewhere ``load`` is something else, and is left out rather than misread."""
    assert read(tmp_path, bam_recording(motor="mx64")).pwm is None


@pytest.mark.parametrize("key", ["load", "input_volts", "temp"])
def test_telemetry_may_be_missing(tmp_path, key):
    """What the servo did not tell is not made up."""
    log = read(tmp_path, with_entries(without(key)))
    signal = {"load": "pwm", "input_volts": "supply_voltage", "temp": "temperature"}[key]
    assert getattr(log, signal) is None


def test_a_missing_speed_is_the_slope_of_the_position(tmp_path):
    """0.4 sin(4 t) has the slope 1.6 cos(4 t), which central differences at 100 Hz miss by (4 dt)^2 / 6."""
    log = read(tmp_path, with_entries(without("speed")))
    expected = 1.6 * np.cos(4.0 * log.velocity.time)
    np.testing.assert_allclose(log.velocity.value[1:-1], expected[1:-1], atol=1.6 * 0.04**2 / 6 * 1.01)


def test_a_run_of_one_entry_without_speed_is_refused(tmp_path):
    """There is no slope of one point."""
    content = with_entries(without("speed"))
    content["entries"] = content["entries"][:1]
    refusal(lambda: read(tmp_path, content), tmp_path / "run.json")


def test_a_missing_rod_mass_is_asked_for_and_can_be_given(tmp_path):
    """Zero is a mass like any other: it is said, never assumed. What the file says goes first."""
    path = write_json(tmp_path / "run.json", bam_recording(arm_mass=None))
    refusal(lambda: read_bam_json(path), path, "arm_mass", "`arm_mass`")
    assert read_bam_json(path, arm_mass=0.0).setup.arm_mass == 0.0
    assert read_bam_json(path, arm_mass=0.03).setup.arm_mass == 0.03
    assert read(tmp_path, bam_recording(), arm_mass=0.5).setup.arm_mass == 0.02


def test_both_spellings_of_the_rod_mass_are_understood(tmp_path):
    """Two programs write this format."""
    assert read(tmp_path, bam_recording(arm_mass=None, **{"arm-mass": 0.07})).setup.arm_mass == 0.07


def test_a_resampled_recording_has_no_duty(tmp_path):
    """Files with ``dt`` hold interpolated registers, which mean nothing."""
    log = read(tmp_path, with_entries(lambda k, entry: {**entry, "load": 32767.5}, dt=0.01))
    assert log.pwm is None
    assert len(log.position.time) == 151


def test_gains_supply_and_servo_may_differ_from_the_defaults(tmp_path):
    """K_i and K_d are read; without ``vin`` the supply is the servo's; a servo can be named."""
    log = read(tmp_path, bam_recording(vin=None, ki=5, kd=7))
    assert (log.setup.supply_voltage, log.setup.ki, log.setup.kd) == (5.0, 5.0, 7.0)
    assert read(tmp_path, bam_recording(motor="XL330-M288"), actuator="xl330").actuator == "xl330"


def test_an_unknown_servo_is_refused_with_the_known_ones(tmp_path):
    """The message names the file it stands in."""
    path = write_json(tmp_path / "run.json", bam_recording(motor="ax99"))
    refusal(lambda: read_bam_json(path), path, "'ax99'", "xl330")


def test_the_damping_of_a_recording_must_be_that_of_the_servos_control_law(tmp_path):
    """A recording made with another controller is no recording of this one."""
    erob = {"motor": "erob80_50", "vin": 48}
    assert read(tmp_path, bam_recording(**erob, damping=1.0)).actuator == "erob80_50"
    path = write_json(tmp_path / "other.json", bam_recording(**erob, damping=0.5))
    refusal(lambda: read_bam_json(path), path, "0.5", "erob80_50", "1.0")
    refusal(lambda: read(tmp_path, bam_recording(damping=1.0)), "xl330")


@pytest.mark.parametrize("key", ["mass", "length", "kp", "motor", "trajectory", "entries"])
def test_every_key_of_the_head_is_needed(tmp_path, key):
    """A load or gain that was forgotten is asked for, not assumed."""
    path = write_json(tmp_path / "run.json", bam_recording(**{key: None}))
    refusal(lambda: read_bam_json(path), path, key, "missing")


@pytest.mark.parametrize("key", ["timestamp", "position", "goal_position", "torque_enable"])
def test_every_needed_key_of_an_entry_is_needed(tmp_path, key):
    """In the first entry, and in all others."""
    path = write_json(tmp_path / "run.json", with_entries(without(key)))
    refusal(lambda: read_bam_json(path), path, "entries[0]", key, "missing")
    later = with_entries(lambda k, entry: without(key)(k, entry) if k == 70 else entry)
    refusal(lambda: read_bam_json(write_json(path, later)), path, "entries[70]", key)


@needs_xl330
def test_real_recordings_tell_the_duty_of_the_firmware():
    """The duty at low gain is what the control law says, to the 1.5 % of the servo's YAML file."""
    log = read_bam_json(XL330 / "kp100_sin_time_square.json", arm_mass=0.0)
    gain = load_actuator("xl330").control.gain
    predicted = gain * log.setup.kp * (log.goal.value - log.position.value)
    # The duty is told one cycle of the loop after it was computed: only slow stretches compare.
    slow = np.abs(np.gradient(log.goal.value, log.goal.time)) < 1.0
    ratio = np.sum(log.pwm.value[slow] * predicted[slow]) / np.sum(predicted[slow] ** 2)
    assert ratio == pytest.approx(0.99, abs=0.03)
