"""What a compensator gives out in each mode, and settings that it refuses."""

import math
from typing import Any

import numpy as np
import pytest

from compensating import M1, NAN, STEP, XL330, Driven, model
from helpers import refusal
from stribeck.files.actuators import load_actuator
from stribeck.live.compensator import Compensator
from stribeck.live.friction import JointModel, goal_offset
from stribeck.live.settings import Settings, Timing
from stribeck.model.actuator import motor_torque
from stribeck.model.control_laws import ControlState, Gains
from stribeck.model.control_laws import ServoCommand as FirmwareCommand
from stribeck.model.joint_map import JointMap
from stribeck.model.law import LAWS

# -- outputs


def test_what_goes_out_in_each_mode() -> None:
    """Friction, command plus friction, offset goal, current: by hand, for one state."""
    friction = 0.8 * (M1["friction_base"] + M1["friction_viscous"])
    offset = goal_offset(XL330, M1, 200.0, 5.0, friction + 0.02)
    expected = {
        "friction_only": friction,
        "sum": 0.02 + friction,
        "goal_offset": 0.4 + offset,
        "current": friction / M1["kt"],
    }
    for mode, value in expected.items():
        driven = Driven(mode=mode)
        for _ in range(3):
            driven.state()
            driven.command([0.4], [0.02])
        driven.state()
        output = driven.output()
        assert output is not None
        assert output.values[0] == pytest.approx(value, rel=1e-9), mode
        assert output.friction[0] == pytest.approx(friction, rel=1e-9), mode


def test_the_offset_makes_the_firmware_give_the_torque() -> None:
    """What the servo's law makes of the goal that goes out is its torque for the goal that came in, plus friction."""
    driven = Driven(mode="goal_offset")
    for _ in range(3):
        driven.state()
        driven.command([0.05])
    torque = driven.state()
    output = driven.output()
    assert output is not None

    def motor(goal: float) -> float:
        command, rest = FirmwareCommand(goal, 1.0, 5.0), ControlState(0.0, 0.0)
        return float(motor_torque(XL330, M1, Gains(200.0, 0.0, 0.0), rest, command, 0.0, 1.0, 0.0)[0])

    assert motor(float(output.values[0])) - motor(0.05) == pytest.approx(float(torque[0]), rel=1e-9)


@pytest.mark.parametrize("mode", ["sum", "goal_offset"])
def test_without_a_fresh_finite_command_nothing_goes_out(mode: str) -> None:
    """Never a zero in its place: before the first, when stale, when not a number."""
    driven = Driven(mode=mode, command_timeout=0.1)
    driven.settled()
    assert driven.output() is None
    driven.command([0.5], [0.01])
    driven.state()
    assert driven.output() is not None
    assert driven.compensator.output(driven.time + 0.2) is None
    for value in (NAN, math.inf):
        driven.command([value], [value])
        assert driven.output() is None
    driven.command([], [])
    assert driven.output() is None


def test_without_friction_torque_a_goal_passes_unchanged() -> None:
    """In doubt, to the last bit."""
    driven = Driven(mode="goal_offset")
    driven.settled()
    driven.command([0.123456789])
    driven.state(NAN)
    output = driven.output()
    assert output is not None
    assert output.values[0] == 0.123456789


def test_without_a_firmware_gain_goals_pass_unchanged() -> None:
    """No gain known, or a gain of zero: a doubt, said with what to do."""
    for kp in (NAN, 0.0):
        compensator = Compensator(
            [model()], [JointMap()], Settings("goal_offset", "none", timing=Timing(ramp_time=0.0))
        )
        compensator.on_telemetry("a", kp=kp)
        compensator.enable()
        for k in range(5):
            compensator.on_command(k * STEP, k * STEP, ["a"], [0.5], [], [0.01])
            compensator.on_state(k * STEP, k * STEP + 0.001, ["a"], [0.0], [1.0], [])
        assert compensator.doubt is not None
        assert "firmware gain is not known" in compensator.doubt
        output = compensator.output(0.02)
        assert output is not None
        assert (output.values[0], output.friction[0]) == (0.5, 0.0)


def test_absurd_telemetry_changes_nothing() -> None:
    """NaN, infinities, negative gains, no supply, unknown joints."""
    driven = Driven(mode="goal_offset")
    for kp, supply in ((NAN, NAN), (math.inf, math.inf), (-1.0, 0.0), (-math.inf, -5.0)):
        driven.compensator.on_telemetry("a", kp=kp, supply_voltage=supply)
        driven.compensator.on_telemetry("nobody", kp=1.0, supply_voltage=1.0)
    assert (driven.compensator.servos.kp[0], driven.compensator.servos.supply[0]) == (200.0, 5.0)


def test_a_gain_next_to_nothing_gives_no_goal() -> None:
    """The offset would be infinite: nothing goes out, rather than that."""
    driven = Driven(mode="goal_offset")
    driven.compensator.on_telemetry("a", kp=1e-308)
    for _ in range(3):
        driven.state()
        driven.command([0.5])
    assert driven.state()[0] > 0.0
    assert driven.output() is None


def test_telemetry_counts_by_its_stamp() -> None:
    """For the states that are stamped 0.1 s later, whenever it arrives between; at once while not enabled."""
    driven = Driven(mode="goal_offset")
    driven.settled()
    driven.compensator.on_telemetry("a", kp=300.0, stamp=driven.time)
    for _ in range(20):
        driven.state()
        assert driven.compensator.servos.kp[0] == 200.0
    driven.state()
    driven.state()
    assert driven.compensator.servos.kp[0] == 300.0
    driven.compensator.disable()
    driven.compensator.on_telemetry("a", kp=400.0, stamp=driven.time + 5.0)
    assert driven.compensator.servos.kp[0] == 400.0


@pytest.mark.parametrize("own", [1e9, -1e308, 1e308])
@pytest.mark.parametrize("mode", ["sum", "goal_offset"])
def test_absurd_commands_leave_everything_finite(mode: str, own: float) -> None:
    """The controller's effort is passed on in sum; an offset stays what the motor can."""
    driven = Driven([model("a", "m6")], mode=mode, effort_meaning="motor", maps=[JointMap(1.0, 0.5)])
    for _ in range(4):
        driven.state(effort=0.0)
        driven.command([0.1], [own])
        assert np.isfinite(driven.torque).all()
        output = driven.output()
        assert output is not None
        assert np.isfinite(output.values).all()
        assert mode == "sum" or abs(output.values[0]) < 10.0


# -- settings


def test_the_gain_can_change_while_it_runs() -> None:
    """From the next state on; one that feeds on itself is refused, and the old one stays."""
    driven = Driven([model("a", "m6")], effort_meaning="motor")
    driven.state(effort=0.0)
    first = driven.state(effort=0.0)[0]
    driven.compensator.set_gain(0.4)
    for _ in range(5):
        driven.state(effort=driven.torque[0])
    assert 0.4 * first < driven.torque[0] < 0.5 * first
    driven = Driven([model("a", "m3", load_friction_base=0.61)], effort_meaning="motor")
    refusal(lambda: driven.compensator.set_gain(1.5), "to be stable", "below 1.48")
    assert driven.compensator.gain == 0.8


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"mode": "both"}, "unknown output mode 'both'; valid: friction_only"),
        ({"effort_meaning": ""}, "effort_meaning must be one of motor, link, none, found ''"),
        ({"state_timeout": 0.0}, "state_timeout must be in (0, 10] s"),
        ({"command_timeout": 11.0}, "command_timeout"),
        ({"ramp_time": -1.0}, "ramp_time"),
        ({"slew": math.inf}, "slew"),
        ({"gain": 3.0}, "gain must be between 0 and 2"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes: dict[str, Any], part: str) -> None:
    """With what is valid."""
    refusal(lambda: Driven(**changes), part)


def test_joints_that_cannot_be_are_refused() -> None:
    """None at all, one twice, a law that feeds on itself, a current of a motor without torque constant."""
    settings = Settings("friction_only", "motor")
    refusal(lambda: Compensator([], [], settings), "no joints")
    twice = [model("a"), model("a")]
    refusal(lambda: Compensator(twice, [JointMap()] * 2, settings), "must differ", "a, a")
    eager = model("a", "m3", load_friction_base=1.2)
    refusal(lambda: Compensator([eager], [JointMap()], settings), "'a'", "to be stable")
    go1 = load_actuator("unitree_go1")
    values = {"ratio": 1.0, "armature": 0.01, "friction_base": 0.1, "friction_viscous": 0.1}
    torque_controlled = JointModel("hip", go1, LAWS["m1"], values, 5.0)
    current = Settings("current", "none")
    refusal(lambda: Compensator([torque_controlled], [JointMap()], current), "'hip'", "no torque constant")
