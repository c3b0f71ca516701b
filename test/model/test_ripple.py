"""Torque ripple: a torque that repeats with the angle, in the law, live in Python and C++, and in C."""

import ctypes
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from compensating import Driven, model
from cpp_compensator import compiler
from helpers import REPOSITORY
from recovery import MX106, Bench
from side_by_side import torques
from stribeck.cli.main import main
from stribeck.exports.c_header import write
from stribeck.exports.task import ExportTask, JointServo, Servo
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive, write_drive
from stribeck.live.friction import cancelling_torque
from stribeck.model.joint import Drive
from stribeck.model.law import LAWS, friction_columns, offset_torque
from stribeck.model.terms.term import Conditions
from stribeck.recordings.bags.bag import write_bag
from virtual import Encoder, record

LAW = LAWS["m1"].with_terms(ripple=True, second_ripple=True)
WAVES = {
    "ripple_order": 14.0, "ripple_cosine": 0.02, "ripple_sine": -0.01,
    "second_ripple_order": 8.0, "second_ripple_cosine": 0.0, "second_ripple_sine": 0.005,
}  # fmt: skip


def test_the_torque_is_what_the_equation_gives_by_hand():
    """a cos nθ + b sin nθ of both waves, periodic in each turn."""
    angle = np.array([0.0, np.pi / 28.0, 0.3])
    expected = [
        0.02,
        -0.01 + 0.005 * np.sin(8.0 * np.pi / 28.0),
        0.02 * np.cos(4.2) - 0.01 * np.sin(4.2) + 0.005 * np.sin(2.4),
    ]
    np.testing.assert_allclose(offset_torque(LAW, WAVES, angle), expected, atol=1e-15)
    np.testing.assert_allclose(offset_torque(LAW, WAVES, angle + 2.0 * np.pi), expected, atol=1e-15)


def test_a_wave_of_order_zero_is_an_offset_torque():
    """The special case."""
    constant = WAVES | {"ripple_order": 0.0, "second_ripple_sine": 0.0}
    offset = LAWS["m1"].with_terms(offset=True)
    found = offset_torque(LAW, constant, np.linspace(-3.0, 3.0, 7))
    np.testing.assert_array_equal(found, offset_torque(offset, {"torque_offset": 0.02}))


def test_the_columns_of_a_regressor_are_cosine_and_sine():
    """With the sign of a torque that the motor need not provide; the order is no coefficient."""
    angle = np.linspace(-1.0, 1.0, 9)
    x = Conditions(np.ones(9), np.ones(9), np.zeros(9), np.zeros(9), angle)
    columns = friction_columns(LAW, WAVES, np.ones(9), x)
    assert list(columns)[2:] == ["ripple_cosine", "ripple_sine", "second_ripple_cosine", "second_ripple_sine"]
    np.testing.assert_allclose(columns["ripple_cosine"], -np.cos(14.0 * angle))
    np.testing.assert_allclose(columns["second_ripple_sine"], -np.sin(8.0 * angle))


def rippled():
    """The model of a joint with both waves."""
    return replace(model("a", **WAVES), law=LAW)


def test_the_ripple_is_cancelled_at_the_angle_where_it_is():
    """The feed-forward torque less that without ripple is minus the ripple."""
    with_ripple, without = Driven([rippled()], gain=1.0), Driven(gain=1.0)
    for k in range(300):
        velocity, angle = 2.0 + np.sin(0.05 * k), 0.4 + 0.01 * k
        ours, plain = (one.state(velocity, angle)[0] for one in (with_ripple, without))
    assert ours - plain == pytest.approx(-offset_torque(LAW, WAVES, angle), abs=1e-9)
    assert abs(ours - plain) > 1e-3


def test_python_and_cpp_agree_on_the_torque():
    """At every update of a motion, 1e-12; a learning controller is compared in test/controllers."""
    for ours, cpp in torques(rippled(), rippled(), 300):
        np.testing.assert_allclose(ours, cpp, rtol=1e-12, atol=1e-15)


def test_the_c_header_has_it(tmp_path):
    """Cancelling and friction torque with both waves; the file comes back from disk."""
    actuator = load_actuator("xl330")
    values = {"q_offset": 0.0, **actuator.published["m1"], **WAVES}
    write_drive(tmp_path / "p.json", Drive(actuator, LAW, values))
    drive = read_drive(tmp_path / "p.json")
    assert drive.law == LAW
    for target, content in write(
        ExportTask((JointServo("a", Servo(drive, 100.0)),), tmp_path / "a.h")
    ).files.items():
        target.write_text(content)
    text = f'#include "{tmp_path}/a.h"\n' + "\n".join(
        f'extern "C" double {name}(double x) {{ return a_{call}; }}'
        for name, call in (
            ("cancelling", "cancelling_torque(0.5, 0.1, -0.2, 1.5, x)"),
            ("friction", "friction_torque(0.1, -0.2, 0.0, x, 0.01, 0.002)"),
        )
    )
    (tmp_path / "a.cpp").write_text(text)
    flags = ["-std=c++17", "-Wall", "-Wno-unused-function", "-Werror", "-shared", "-fPIC"]
    subprocess.run([compiler(), *flags, tmp_path / "a.cpp", "-o", tmp_path / "a.so"], check=True)
    functions = ctypes.CDLL(str(tmp_path / "a.so"))
    for name in ("cancelling", "friction"):
        getattr(functions, name).restype = ctypes.c_double
        getattr(functions, name).argtypes = [ctypes.c_double]
    for angle in (0.0, 0.3, -2.0):
        wanted = cancelling_torque(LAW, values, 0.5, 1.5, 0.1, -0.2, position=angle)
        assert functions.cancelling(angle) == pytest.approx(wanted, abs=1e-12)
        base = values["friction_base"]
        holding = np.clip(0.1 - offset_torque(LAW, values, angle), -base, base)
        assert functions.friction(angle) == pytest.approx(holding, abs=1e-12)


@pytest.mark.slow
def test_a_servo_needs_the_order(capsys):
    """It is not searched: one line says how to state it."""
    bags = str(REPOSITORY / "bags" / "xl330_simulated")
    assert main(["identify", "servo", bags, "--servo", "xl330", "--law", "m1", "--terms", "ripple"]) == 1
    assert "ripple_order, which is not searched: fix it to a value [1]" in capsys.readouterr().err


@pytest.mark.slow
def test_the_ripple_of_a_servo_is_identified(tmp_path):
    """Recordings of a simulated servo with cogging: both coefficients within their intervals and 2 %."""
    servo, law = load_actuator("mx106"), LAWS["m1"].with_terms(ripple=True)
    truth = {"ripple_order": 12.0, "ripple_cosine": 0.05, "ripple_sine": -0.03}
    values = {"q_offset": 0.0, **servo.published["m1"], **truth}
    bench = Bench("mx106", (0.5, 1.5), 0.15, 0.05, (8.0, 32.0), MX106.supply_voltage)
    encoder = Encoder(2.0 * np.pi / 4096.0)
    runs = record(servo, law, values, list(bench.plays()), encoder, np.random.default_rng(0))
    write_bag(tmp_path / "bags", runs)
    words = f"identify servo {tmp_path}/bags --servo mx106 --law m1 --terms ripple --set ripple_order=12"
    assert main([*words.split(), "--trials", "3000", "--quiet", "--output", f"{tmp_path}/p.json"]) == 0
    found = read_drive(tmp_path / "p.json").stated
    for name in ("ripple_cosine", "ripple_sine"):
        assert found[name].value == pytest.approx(truth[name], rel=0.02)
        assert found[name].interval[0] < truth[name] < found[name].interval[1]
