"""What happened to torques of the live compensator, one defect a test; the first line of each says what must happen."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compensating import settings_with
from helpers import published
from stribeck.errors import ConfigError
from stribeck.files.actuators import load_actuator
from stribeck.live.caution import cautious_values
from stribeck.live.compensator import Compensator
from stribeck.live.direction.motion import Tuning
from stribeck.live.friction import JointModel
from stribeck.live.settings import Settings, Timing
from stribeck.model.estimate import Estimate
from stribeck.model.joint import Drive
from stribeck.model.joint_map import JointMap
from stribeck.model.law import LAWS, FrictionLaw, friction_budget

XL330 = load_actuator("xl330")
M1 = published("xl330", "m1")
STEP = 0.005
CLOCK = 1000.0
"""Stamps lie so far behind arrivals [s]."""


class Live:
    """One joint of law M1, told what a robot and its controller say; arrivals on a clock of their own."""

    def __init__(self, ratio: float = 1.0, **settings: Any) -> None:
        chosen = {"mode": "friction_only", "effort_meaning": "none", "ramp_time": 0.0, **settings}
        joint = JointModel("a", XL330, LAWS["m1"], M1, 0.3)
        self.compensator = Compensator([joint], [JointMap(1.0, ratio)], settings_with(**chosen))
        self.compensator.enable()
        self.time, self.position = 10.0, 0.0

    def state(
        self, velocity: float, position: float | None = None, late: float = 0.0, dt: float = STEP
    ) -> float:
        """The torque at a state; positions follow from the velocities, arrivals from the stamps."""
        self.time += dt
        self.position = self.position + velocity * dt if position is None else position
        return self.send(self.time, velocity, self.position, late)

    def send(self, stamp: float, velocity: float, position: float, late: float = 0.0) -> float:
        arrival = stamp + CLOCK + late
        return float(self.compensator.on_state(arrival, stamp, ["a"], [position], [velocity], [0.0])[0])

    def command(
        self,
        position: Sequence[float] = (),
        velocity: Sequence[float] = (),
        effort: Sequence[float] = (),
        age: float = 0.0,
    ) -> None:
        """A command that arrives 1 ms after the last state, stamped ``age`` before that."""
        now = self.time + 0.001
        self.compensator.on_command(now + CLOCK, now - age, ["a"], position, velocity, effort)

    @property
    def doubt(self) -> str | None:
        return self.compensator.doubt


def friction(velocity: float) -> float:
    """Identified friction at a speed [N m]."""
    return M1["friction_base"] + M1["friction_viscous"] * abs(velocity)


@pytest.mark.parametrize("speed", [0.02, 0.05, 0.1])
def test_sum_hears_goals_beside_its_efforts(speed: float) -> None:
    """At least 70 % of the friction of a slow motion is cancelled.

    What happened: commands of the mode ``sum`` hold efforts without a goal, so 1, 6 and 21 % were cancelled
    at 0.02, 0.05 and 0.1 rad/s.
    """
    live = Live(mode="sum")
    for k in range(200):
        goal, now = speed * STEP * k, live.time + 0.001
        live.command(effort=[0.02])
        if hasattr(live.compensator, "on_goal"):
            live.compensator.on_goal(now + CLOCK, now, ["a"], [goal], [speed])
        torque = live.state(speed)
    assert torque >= 0.7 * friction(speed)
    assert torque <= friction(speed)


def turns(k: int, speed: float) -> bool:
    """Whether 2 sin(k/20) rad/s has changed sign so lately that the friction still turns round."""
    return abs(speed) < 0.5 and 2.0 * math.sin(0.05 * (k - 5)) * speed <= 0.0


@pytest.mark.parametrize("mode", ["sum", "friction_only", "current"])
@pytest.mark.parametrize("gain", [0.8, 1.5, 2.0])
def test_without_a_goal_a_command_lifts_no_cap(mode: str, gain: float) -> None:
    """Never more than a quarter of the friction, whatever the gain, and along the motion but for its turns.

    What happened: any command, of an effort without a goal, lifted the cap of the gain at 1: 1.5 times the friction
    was added at gain 1.5, and a joint that was pushed once went on by itself.
    """
    live = Live(mode=mode, gain=gain)
    for k in range(100):
        live.command(effort=[0.02])
        speed = 2.0 * math.sin(0.05 * k)
        torque = live.state(speed)
        assert torque * speed >= 0.0 or turns(k, speed)
        assert abs(torque) <= 0.25 * friction(speed) * (1.0 + 1e-12)


def test_a_position_that_stands_still_while_its_velocity_moves_is_a_doubt() -> None:
    """Zero after 0.1 s at most, and said.

    What happened: a driver that had lost its bus repeated the last state with fresh stamps; the joint stood, and
    friction torque for 1 rad/s went on for as long as the driver did.
    """
    live = Live()
    for _ in range(20):
        live.state(1.0)
    stands = live.position
    for k in range(200):
        torque = live.state(1.0, stands)
        if k * STEP > 0.1:
            assert torque == 0.0
            assert live.doubt is not None
            assert "has been constant" in live.doubt


def test_a_joint_that_stands_at_its_stop_is_no_doubt() -> None:
    """Positions that stand with velocities within their noise are a joint at rest."""
    live = Live()
    for k in range(200):
        live.state(0.02 * math.sin(1.3 * k), 0.5)
        assert live.doubt is None


def test_states_that_are_seconds_late_are_a_doubt() -> None:
    """Zero within the state timeout, with the figure.

    What happened: states that waited 2 s in a queue counted as fresh, as only their arrival was looked at.
    """
    live = Live(state_timeout=0.04)
    for _ in range(100):
        live.state(1.0)
    for k in range(1, 40):
        # All of them arrive, 5 ms apart, with stamps of 2 s ago.
        live.time += STEP
        torque = live.send(live.time, 1.0, live.position + STEP * k, late=2.0)
        if k * STEP > 0.04 + 1e-9:
            assert torque == 0.0
            assert live.doubt is not None
            assert "with a delay of 2.00 s" in live.doubt


@pytest.mark.parametrize("mode", ["sum", "goal_offset"])
def test_a_command_of_long_ago_is_not_passed_on(mode: str) -> None:
    """Nothing goes out for a command stamped 5 s before it came.

    What happened: it arrived just now, so it was passed on as fresh.
    """
    live = Live(mode=mode)
    live.compensator.on_telemetry("a", kp=200.0, supply_voltage=5.0)
    for _ in range(20):
        live.state(0.0)
    live.command([0.3], effort=[0.1], age=5.0)
    live.state(0.0)
    assert live.compensator.output(live.time + CLOCK + 0.002) is None
    live.command([0.3], effort=[0.1])
    live.state(0.0)
    assert live.compensator.output(live.time + CLOCK + 0.002) is not None


@pytest.mark.parametrize("difference", [0.3, -0.3])
def test_clocks_that_differ_are_recognised_and_said(difference: float) -> None:
    """The intention works with commands of a clock 0.3 s behind or ahead, and the figure is said.

    What happened: commands counted for the states stamped after them: 0.3 s behind they were always stale, 0.3 s ahead
    they counted 0.3 s late or never.
    """
    live = Live(adapt=False)
    for _ in range(60):
        live.command([live.position + 0.2], age=difference)
        torque = live.state(0.0)
    assert torque == pytest.approx(0.8 * M1["friction_base"])
    for _ in range(10):
        live.command([live.position - 0.2], age=difference)
        torque = live.state(0.0)
    assert torque == pytest.approx(-0.8 * M1["friction_base"])
    assert live.compensator.notice is not None
    assert "0.300 s" in live.compensator.notice
    assert ("behind" if difference > 0.0 else "ahead of") in live.compensator.notice


LOST = {
    "twice": lambda live: live.send(live.time, 1.0, live.position),
    "late": lambda live: live.send(live.time - 0.5 * STEP, 1.0, live.position - 0.5 * STEP),
}


@pytest.mark.parametrize("what", LOST)
def test_one_state_that_says_nothing_does_not_stop_the_torque(what: str) -> None:
    """The torque stays within what the slew limit lets it change, and nothing is in doubt.

    What happened: a message that came twice or late took all torque away at once, with half a second of ramp after
    it: a jolt for a cause that was none.
    """
    live = Live(slew=1.0)
    for _ in range(50):
        before = live.state(1.0)
    assert before > 0.0
    found = LOST[what](live)
    assert abs(found - before) <= 1.0 * STEP
    assert live.doubt is None
    for _ in range(10):
        after = live.state(1.0)
        assert after == pytest.approx(before, abs=1e-9)
        assert live.doubt is None


def test_one_spike_of_a_position_does_not_turn_the_torque_round() -> None:
    """A joint at rest that its goal draws forward: a position far beyond the goal for one state changes nothing.

    What happened: one wrong bit, and the whole friction pushed backwards for a state.
    """
    live = Live()
    for _ in range(20):
        live.command([0.3])
        before = live.state(0.0)
    assert before == pytest.approx(0.8 * M1["friction_base"])
    live.command([0.3])
    assert live.state(0.0, 1.0) == before
    assert live.doubt is None
    live.command([0.3])
    assert live.state(0.0, 0.0) == pytest.approx(before)


def test_a_joint_behind_a_gear_is_tuned_in_its_own_coordinates() -> None:
    """Rest, errors and motion of a joint behind a gear of 100 are judged in the joint's radians.

    What happened: the servo's 0.3 rad/s of full motion were 0.003 rad/s of the joint, less than the noise of any
    velocity, and ``overshoot_fraction`` could not be set at all.
    """
    told, looser = (Live(ratio=100.0, tuning=Tuning(moving_velocity=v)) for v in (0.3, 0.003))
    for _ in range(20):
        still, moving = (live.state(0.003) for live in (told, looser))
    assert abs(still) < 0.01 * moving
    assert moving == pytest.approx(100.0 * 0.25 * 0.8 * friction(0.3))
    # Half a degree of error is nothing for one and all for the other.
    for width, share in ((10.0, 0.0), (0.001, 1.0)):
        live = Live(ratio=100.0, tuning=Tuning(deadband=0.001, error_width=width), ramp_time=0.0)
        for _ in range(20):
            live.command([0.0087])
            torque = live.state(0.0)
        assert torque == pytest.approx(
            share * 100.0 * 0.8 * M1["friction_base"], abs=0.01 * 100.0 * M1["friction_base"]
        )


def test_by_default_a_gear_changes_nothing_for_the_servo() -> None:
    """The same motion of the servo gives the same torque of it, through any gear: the encoder is the servo's."""
    found = []
    for ratio in (1.0, 100.0):
        live = Live(ratio=ratio)
        for _ in range(20):
            torque = live.state(0.2 / ratio)
        found.append(torque / ratio)
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def stated(values: dict[str, float], intervals: dict[str, tuple[float, float]]) -> dict[str, Estimate]:
    """Estimates with these intervals."""
    return {name: Estimate(values[name], "", "determined", pair) for name, pair in intervals.items()}


@st.composite
def files(draw: st.DrawFn) -> Drive:
    """Any law with any terms, Stribeck terms of either sign, intervals of any width."""
    law: FrictionLaw = LAWS[draw(st.sampled_from(list(LAWS)))]
    law = law.with_terms(asymmetric=draw(st.booleans()), offset=draw(st.booleans()))
    values = {name: draw(st.floats(0.0, 0.3)) for name in law.parameter_names}
    if law.weight is not None:
        values |= {"dtheta_stribeck": 0.3, "alpha": draw(st.floats(0.5, 2.0))}
        bases = [values[name] for name in ("friction_base", "friction_base_negative") if name in values]
        values["friction_stribeck"] = draw(st.floats(-1.0, 1.0)) * min(bases)
    if law.of_kind("offset"):
        values["torque_offset"] = 0.0
    intervals = {
        name: (value - width, value + draw(st.floats(0.0, 0.5)))
        for name, value in values.items()
        if (width := draw(st.floats(0.0, 0.5))) > 0.01
    } or {"friction_base": (0.0, 0.1)}
    return Drive(XL330, law, values, stated(values, intervals))


def test_cautious_friction_opposes_motion() -> None:
    """The budget at a low quantile is not negative at any speed, by hand for one law.

    What happened: Coulomb friction 0.05 was lowered to 0.01 while the negative Stribeck term -0.03 stayed: at rest a
    torque of 0.02 N m pushed the joint away from its goal.
    """
    law = LAWS["m2"]
    values = {
        "friction_base": 0.05,
        "friction_stribeck": -0.03,
        "friction_viscous": 0.01,
        "dtheta_stribeck": 0.3,
        "alpha": 1.0,
    }
    file = Drive(XL330, law, values, stated(values, {"friction_base": (0.01, 0.09)}))
    cautious = cautious_values(file, 0.025)
    assert cautious["friction_base"] == pytest.approx(0.01)
    assert cautious["friction_stribeck"] == pytest.approx(-0.006)
    speed = np.linspace(0.0, 5.0, 501)
    lowered, whole = (friction_budget(law, p, 0.0, 0.0, speed)[0] for p in (cautious, values))
    assert np.all(lowered >= 0.0)
    assert np.all(lowered <= whole)


torques = st.floats(-1.0, 1.0)


@settings(deadline=None)
@given(files(), st.floats(0.001, 0.499), torques, torques)
def test_cautious_friction_lies_between_none_and_that_identified(
    file: Drive, quantile: float, motor: float, external: float
) -> None:
    """At all speeds and loads, in both directions, for all laws."""
    cautious = cautious_values(file, quantile)
    speed = np.concatenate([[0.0], np.geomspace(1e-4, 10.0, 60)])
    lowered = friction_budget(file.law, cautious, motor, external, speed)
    whole = friction_budget(file.law, file.values, motor, external, speed)
    for less, more in zip(lowered, whole, strict=True):
        assert np.all(less >= -1e-12)
        assert np.all(less <= more + 1e-12)


def test_a_warmer_joint_is_given_less_until_something_is_learnt() -> None:
    """1 % less per kelvin above the temperature of the identification, the half at most; a colder one as identified.

    What happened: a warmer joint, whose friction is lower than identified, was given all of it; only a warning told.
    """
    torques = []
    for temperature in (30.0, 10.0, 60.0, 130.0):
        joint = JointModel("a", XL330, LAWS["m1"], M1, 0.3, temperature=30.0)
        chosen = Settings("friction_only", "none", timing=Timing(ramp_time=0.0))
        compensator = Compensator([joint], [JointMap()], chosen)
        compensator.on_telemetry("a", temperature=temperature)
        compensator.enable()
        for k in range(100):
            now = 10.0 + STEP * k
            compensator.on_command(now, now - 0.001, ["a"], [now], [1.0], [])
            torque = compensator.on_state(now, now, ["a"], [now], [1.0], [])
        torques.append(float(torque[0]))
    full = 0.8 * friction(1.0)
    np.testing.assert_allclose(torques, [full, full, 0.7 * full, 0.5 * full], rtol=1e-9)


def test_a_delay_that_would_keep_a_free_joint_going_is_refused() -> None:
    """One line with bandwidth, delay and inertia; half of it passes."""
    joint = JointModel("a", XL330, LAWS["m1"], {**M1, "armature": 0.001}, 0.3)
    limit = 0.001 / M1["friction_viscous"]
    with pytest.raises(ConfigError, match="might not come to rest") as refused:
        Compensator(
            [joint], [JointMap()], Settings("friction_only", "none", timing=Timing(loop_delay=1.1 * limit))
        )
    assert f"{1100.0 * limit:g} ms" in str(refused.value)
    assert "\n" not in str(refused.value)
    Compensator(
        [joint], [JointMap()], Settings("friction_only", "none", timing=Timing(loop_delay=0.5 * limit))
    )
