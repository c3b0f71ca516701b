"""Live compensation: zero at once in every doubt, limits always, the same torque however it is played."""

import math

import numpy as np
import pytest

from compensating import M1, NAN, STEP, XL330, Driven, model
from stribeck.live.settings import OUTPUT_MODES, Settings
from stribeck.model.actuator import motor_torque
from stribeck.model.control_laws import ControlState, Gains
from stribeck.model.control_laws import ServoCommand as FirmwareCommand
from stribeck.model.joint_map import JointMap
from stribeck.model.law import LAWS

# -- the torque itself


def test_a_moving_joint_gets_its_share_of_the_friction() -> None:
    """Gain times K_v|v| + K_c of law M1, in the direction of motion, by hand."""
    driven = Driven(gain=0.8)
    driven.settled()
    coulomb, viscous = 0.01283272036582759, 0.003661672282824312
    assert driven.state(2.0)[0] == pytest.approx(0.8 * (coulomb + 2.0 * viscous), rel=1e-12)
    turned = [float(driven.state(-2.0)[0]) for _ in range(12)]
    assert turned == sorted(turned, reverse=True), "friction turns round along the presliding length"
    assert turned[-1] == pytest.approx(-0.8 * (coulomb + 2.0 * viscous), rel=1e-12)
    assert driven.state(0.0)[0] == 0.0


def test_saturation_slew_and_ramp() -> None:
    """The limit binds, the torque changes by slew · dt at most, and grows with time after a start."""
    driven = Driven([model(friction_base=5.0, armature=1.0)], slew=2.0)
    torques = [float(driven.state()[0]) for _ in range(60)]
    np.testing.assert_allclose(np.diff(torques[:31]), 2.0 * STEP, rtol=1e-9)
    assert torques[0] == 0.0
    assert torques[-1] == 0.3
    driven.state(-1.0)  # back where it was: nothing has turned round yet
    assert driven.state(-1.0)[0] == pytest.approx(0.3 - 2.0 * STEP)
    ramped = Driven(ramp_time=0.5)
    torques = [float(ramped.state()[0]) for _ in range(150)]
    full = torques[-1]
    np.testing.assert_allclose(torques[:101], full * STEP / 0.5 * np.arange(101), rtol=1e-9)
    assert torques[101:] == [full] * 49


def test_the_default_slew_limit_reaches_full_torque_in_20_ms() -> None:
    """50 times the limit per second, each joint its own."""
    heavy = {"friction_base": 5.0, "armature": 1.0}
    joints = [model("a", limit=0.1, **heavy), model("b", limit=0.4, **heavy)]
    driven = Driven(joints, slew=0.0)
    driven.state()
    for k in range(1, 5):
        np.testing.assert_allclose(driven.state(), np.array([0.1, 0.4]) * min(1.0, 50 * k * STEP))


def test_without_commands_the_gain_is_one_at_most() -> None:
    """What overcompensates is admitted only where a command tells motion that is wanted."""
    driven = Driven(gain=1.5)
    capped = float(driven.settled()[0])
    for _ in range(5):
        driven.command([1.0])
        driven.state()
    assert driven.torque[0] == pytest.approx(1.5 * capped)
    assert capped == pytest.approx(M1["friction_base"] + M1["friction_viscous"])


@pytest.mark.parametrize("mode", OUTPUT_MODES)
@pytest.mark.parametrize("gain", [0.4, 0.8, 1.0, 1.5])
def test_without_goals_a_quarter_of_the_friction_is_cancelled_by_default(mode: str, gain: float) -> None:
    """min(gain, 1)/4 of the identified friction: passive as long as there is a quarter of it; nothing at rest."""
    driven = Driven(mode=mode, gain=gain, certain_fraction=Settings("sum", "none").certain_fraction)
    for _ in range(10):
        driven.command(effort=[0.02])
        torque = driven.state(2.0)
    friction = M1["friction_base"] + 2.0 * M1["friction_viscous"]
    assert torque[0] == pytest.approx(0.25 * min(gain, 1.0) * friction)
    assert driven.state(0.0)[0] == 0.0


def test_intention_moves_a_joint_at_rest() -> None:
    """An error far beyond the dead-band at once; nothing within it."""
    for goal, sign in ((0.2, 1.0), (-0.2, -1.0), (0.004, 0.0)):
        driven = Driven()
        driven.state(0.0)
        driven.command([goal])
        assert driven.state(0.0)[0] == pytest.approx(sign * 0.8 * M1["friction_base"])


@pytest.mark.parametrize("kind", ["goals", "goals with velocities", "velocities"])
def test_goals_that_move_turn_friction_round_along_their_own_path(kind: str) -> None:
    """1 - exp(-s/l) of the friction after a path s, presliding length l; within a dead-band of the goal, at rest.

    Goals move by 1 mrad each state: whether velocities are told or not, and with velocities alone.
    """
    driven = Driven()
    length = 2.0 * XL330.resolution
    driven.state(0.0)
    for k in range(1, 41):
        goal, rate = [1e-3 * k], [1e-3 / STEP]
        driven.command(
            [NAN] if kind == "velocities" else goal,
            velocity=[] if kind == "goals" else rate,
        )
        torque = driven.state(0.0, position=1e-3 * k)  # where it should be
        turned = 1.0 - math.exp(-(k - (kind == "goals")) * 1e-3 / length)
        if kind != "goals" or k > 20:  # the slope of the goals is filtered
            assert torque[0] == pytest.approx(turned * 0.8 * M1["friction_base"], rel=1e-3)


def test_without_velocities_the_slope_of_the_positions_counts() -> None:
    """An empty field; after a few filter times the torque is that of the velocity."""
    told, untold = Driven(), Driven()
    for k in range(60):
        told.state(2.0)
        untold.state([], position=2.0 * STEP * k)
    np.testing.assert_allclose(untold.torque, told.torque, rtol=1e-5)


@pytest.mark.parametrize("law", list(LAWS))
def test_joint_maps_turn_nothing_but_the_convention(law: str) -> None:
    """The same motion of the servo, seen through a sign, a ratio and an offset, gives the same servo torque."""
    mounted = JointMap(-1.0, 3.0, 0.7)
    plain = Driven([model("a", law)], mode="goal_offset", effort_meaning="motor")
    mapped = Driven([model("a", law)], maps=[mounted], mode="goal_offset", effort_meaning="motor")
    for k in range(50):
        t = k * STEP
        goal, at, speed, own = 0.5 * math.sin(4 * t), 0.5 * math.sin(4 * t - 0.1), 2 * math.cos(4 * t), 0.02
        plain.command([goal], [own])
        mapped.command([mounted.position(goal)], [mounted.torque(own)])
        plain.state(speed, at)
        mapped.state(mounted.velocity(speed), mounted.position(at))
        np.testing.assert_allclose(mounted.servo_torque(mapped.torque), plain.torque, atol=1e-12)
        one, other = plain.output(), mapped.output()
        assert one is not None
        assert other is not None
        np.testing.assert_allclose(mounted.servo_position(other.values), one.values, atol=1e-12)
    assert np.abs(plain.torque).max() > 0.005


def test_several_joints_are_as_one_by_one_in_any_order() -> None:
    """Laws, limits, maps and the order in messages mix nothing up."""
    joints = [model(f"j{k}", law, 0.05 + 0.1 * k) for k, law in enumerate(("m6", "m1", "m3", "m6"))]
    maps = [JointMap(sign, 1.0 + k, 0.1 * k) for k, sign in enumerate((1.0, -1.0, 1.0, -1.0))]
    together = Driven(joints, maps=maps, effort_meaning="motor", ramp_time=0.3, slew=0.0)
    alone = [
        Driven([j], maps=[m], effort_meaning="motor", ramp_time=0.3, slew=0.0)
        for j, m in zip(joints, maps, strict=True)
    ]
    rng = np.random.default_rng(1)
    rates = np.array([3.0, 4.0, 5.0, 6.0])
    for k in range(40):
        order, phase = rng.permutation(4), STEP * k * rates
        at, speed, effort = np.sin(phase), rates * np.cos(phase), rng.uniform(-0.2, 0.2, 4)
        together.time += STEP
        names = [f"j{k}" for k in order]
        found = together.send(together.time, speed[order], at[order], effort[order], names)
        for k, single in enumerate(alone):
            single.state(speed[k], at[k], effort[k])
            np.testing.assert_allclose(found[k], single.torque[0], rtol=1e-12, atol=1e-15)


# -- what the load is


def test_effort_is_the_motors_the_links_or_nothing() -> None:
    """M3 by hand: motor |2τ + τ_ff|, link |τ_m - τ_e| = |2τ_l + τ_ff|, and none: no load."""
    values = {"friction_base": 0.01, "friction_viscous": 0.0, "load_friction_base": 0.2}
    joints = [model("a", "m3", **values)]
    solved = 0.8 * (0.01 + 0.2 * 2.0 * 0.05) / (1.0 - 0.8 * 0.2)
    for meaning in ("motor", "link"):
        driven = Driven(joints, effort_meaning=meaning)
        # The measured motor torque holds our own share; the link's load does not.
        for _ in range(400):
            driven.state(effort=0.05 + (driven.torque[0] if meaning == "motor" else 0.0))
        assert driven.torque[0] == pytest.approx(solved, rel=1e-6), meaning
    driven = Driven(joints, effort_meaning="none")
    driven.settled()
    assert driven.state(effort=123.0)[0] == pytest.approx(0.8 * 0.01)


def test_in_sum_the_commanded_effort_is_the_load() -> None:
    """No measured effort is needed: the torque is that of the controller's own command."""
    joints = [model("a", "m3", friction_base=0.0, friction_viscous=0.0, load_friction_base=0.2)]
    driven = Driven(joints, mode="sum", effort_meaning="motor")
    for _ in range(3):
        driven.state()
        driven.command(effort=[0.05])
    assert driven.state()[0] == pytest.approx(0.8 * 0.2 * 0.1 / (1.0 - 0.16))
    output = driven.output()
    assert output is not None
    assert output.values[0] == 0.05 + driven.torque[0]


def test_in_goal_offset_the_firmwares_torque_is_the_load() -> None:
    """Goal, own feed-forward, gain and supply say what the motor does without us."""
    joints = [model("a", "m3", friction_base=0.0, friction_viscous=0.0, load_friction_base=0.2)]
    driven = Driven(joints, mode="goal_offset", effort_meaning="motor")
    for _ in range(3):
        driven.state()
        driven.command([0.1], [0.02])
    driven.state()
    p = joints[0].values
    command, rest = FirmwareCommand(0.1, 1.0, 5.0), ControlState(0.0, 0.0)
    at = float(driven.position[0])
    motor, _ = motor_torque(XL330, p, Gains(200.0, 0.0, 0.0), rest, command, at, 1.0, 0.0)
    assert driven.torque[0] == pytest.approx(0.8 * 0.2 * 2.0 * abs(motor + 0.02) / (1.0 - 0.16))


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("effort", [1e9, -1e9, 1e300, NAN, math.inf])
@pytest.mark.parametrize("meaning", ["motor", "link"])
def test_an_effort_that_cannot_be_gives_zero_and_leaves_no_trace(meaning: str, effort: float) -> None:
    """One such state: zero at once; later the torque is what it would have been."""
    driven, undisturbed = (Driven([model("a", "m6")], effort_meaning=meaning) for _ in range(2))
    for _ in range(5):
        driven.state(effort=0.05)
        undisturbed.state(effort=0.05)
    assert driven.state(effort=effort)[0] == 0.0
    assert driven.doubt is not None
    assert "effort" in driven.doubt
    for _ in range(400):
        driven.state(effort=0.05)
        undisturbed.state(effort=0.05)
    assert driven.doubt is None
    np.testing.assert_allclose(driven.torque, undisturbed.torque, rtol=1e-6)


# -- when it gives a torque


def test_unknown_joints_may_be_ignored() -> None:
    """With other_joints: ignore, those that have no parameter file are somebody else's."""
    driven = Driven(other_joints="ignore")
    driven.settled()
    driven.time += STEP
    further = float(driven.position[0]) + STEP
    torque = driven.send(driven.time, [NAN, 1.0, 1.0], [0.0, further, 0.0], 0.0, ["x", "a", "y"])
    assert driven.doubt is None
    assert torque[0] > 0.0


def test_nothing_comes_out_before_it_is_enabled() -> None:
    """States before that are not even looked at."""
    driven = Driven()
    driven.compensator.disable()
    for _ in range(5):
        np.testing.assert_array_equal(driven.state(), 0.0)
    assert driven.doubt == "not enabled"
    assert not driven.compensator.expire(driven.time + 10.0)
    driven.compensator.enable()
    assert driven.doubt == "no valid states yet"
    assert driven.settled()[0] > 0.0


def test_states_are_stale_from_the_timeout_on_and_said_once() -> None:
    """By arrival, to the end of the timeout; the fall is told once."""
    driven = Driven(state_timeout=0.04)
    driven.settled()
    arrival = driven.time + 0.001
    assert not driven.compensator.expire(arrival + 0.039)
    assert driven.torque[0] > 0.0
    assert driven.compensator.expire(arrival + 0.041)
    assert driven.torque[0] == 0.0
    assert not driven.compensator.expire(arrival + 1.0)


def test_the_laws_time_is_that_of_the_stamps() -> None:
    """Played four times as fast, or all at once, a recording gives the same torque to the last bit."""
    rng = np.random.default_rng(2)
    stamps = 50.0 + np.cumsum(rng.uniform(0.004, 0.006, 300))
    speed = np.sin(4.0 * stamps)
    found = []
    for rate in (1.0, 4.0, math.inf):
        driven = Driven(
            [model("a", "m6")], mode="goal_offset", effort_meaning="motor", ramp_time=0.3, slew=0.0
        )
        torques = []
        for k, stamp in enumerate(stamps):
            now = 7.0 + (stamp - 50.0) / rate
            if k % 20 == 0 and k < 200:
                driven.compensator.on_command(now, stamp, ["a"], [0.2 * speed[k]], [], [])
            torques.append(
                driven.compensator.on_state(now, stamp, ["a"], [0.1 * speed[k]], [speed[k]], [0.0])
            )
        found.append(np.array(torques))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert np.abs(found[0]).max() > 0.01


def test_a_loop_gives_the_same_torque_every_time() -> None:
    """A recording in a loop: where time jumps back one zero, and from there on as from the beginning."""
    driven = Driven([model("a", "m3")], effort_meaning="motor", ramp_time=0.3, slew=0.0, adapt=False)
    loops = []
    for _ in range(3):
        torques = []
        for k in range(200):
            stamp = 50.0 + STEP * k
            driven.compensator.on_command(0.0, stamp, ["a"], [0.3 * math.sin(4 * k * STEP)], [], [])
            position, effort = 0.3 * math.sin(4 * k * STEP - 0.2), 0.05 * math.cos(k * STEP)
            torques.append(float(driven.send(stamp, [], position, effort)[0]))
        loops.append(torques)
    assert loops[0][0] == 0.0
    assert loops[0] == loops[1] == loops[2]
    assert max(np.abs(loops[0])) > 0.005


def test_a_state_sees_the_commands_stamped_before_it() -> None:
    """Not those stamped at the same time or later, in whatever order both arrive; without stamps by arrival."""
    driven = Driven()
    driven.settled()
    now = driven.time

    def torque_with(*commands: tuple[float | None, float]) -> float:
        fresh = Driven()
        fresh.settled()
        for stamp, goal in commands:
            fresh.compensator.on_command(now + STEP, stamp, ["a"], [goal], [], [])
        return float(np.sign(fresh.state(0.0)[0]))

    assert torque_with() == 0.0
    assert torque_with((now + STEP, 1.0)) == torque_with((now + 9.0, 1.0)) == 0.0
    assert torque_with((now, 1.0), (now + STEP, -1.0)) == 1.0
    assert torque_with((now, 1.0), (now + 0.001, -1.0)) == -1.0
    assert (
        torque_with((now + 0.002, 1.0), (now, -1.0)) == -1.0
    )  # time jumped back: the later one is of the past
    assert torque_with((None, 1.0)) == 1.0


@pytest.mark.parametrize("count", [1, 100])
def test_states_may_be_later_than_commands(count: int) -> None:
    """At 1 kHz of commands and states 100 ms old, the command of that time still counts."""
    driven = Driven(command_timeout=0.2)
    driven.settled()
    for k in range(count):
        driven.command([1.0], dt=0.001 * (k + 1))
    assert driven.state(0.0)[0] > 0.0


def test_stale_commands_intend_nothing() -> None:
    """By their stamps, and by their arrival where they have none."""
    driven = Driven(command_timeout=0.1)
    driven.settled()
    driven.command([1.0])
    for _ in range(19):
        assert driven.state(0.0)[0] > 0.0
    for _ in range(5):
        driven.state(0.0)
    assert driven.torque[0] == 0.0
    driven.compensator.on_command(driven.time, None, None, [1.0], [], [])
    assert driven.state(0.0)[0] > 0.0
    for _ in range(22):
        driven.state(0.0)
    assert driven.torque[0] == 0.0


@pytest.mark.parametrize(
    ("names", "position"), [(["b"], [1.0]), (["a", "a"], [1.0, 1.0]), ([], []), (["a"], [NAN])]
)
def test_commands_that_say_nothing_of_the_joint_count_for_nothing(
    names: list[str], position: list[float]
) -> None:
    """Missing, doubled, or no number: no intention, nothing to pass on, and no doubt."""
    driven = Driven(mode="goal_offset")
    driven.settled()
    driven.compensator.on_command(driven.time, driven.time, names, position, [], [])
    assert driven.state(0.0)[0] == 0.0
    assert driven.doubt is None
    assert driven.output() is None
