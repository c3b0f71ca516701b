"""The controller of controllers/src itself, compiled against stand-ins for ROS: its ends, its switches and its faults.

The stand-ins run in one thread, so a race is not tested here: the time of the activation, which the thread of the goal topic read
while an activation wrote it, is no member of the controller any more; stamps of goals are compared in the update.
"""

import numpy as np
import pytest

from controller_stand_in import COULOMB, VISCOUS, Controller
from cpp_controller import Arm

NAN = np.nan
PERIOD = 1e-3
FRICTION = 0.8 * (COULOMB + VISCOUS)
OFFSETS = {"output_mode": "goal_offset", "friction.a.p_gain": 10.0, "friction.b.p_gain": 10.0}


class Driven:
    """Joint a moves at 1 rad/s and joint b at 0.5 rad/s as their goals do, under efforts of 2 and -1 N m."""

    def __init__(self, parameters=None, description="", chained=True):
        self.controller = Controller(parameters, description)
        assert not self.controller.problem
        self.controller.chain(chained)
        self.controller.activate()
        self.position, self.velocity = np.array([0.2, 0.1]), np.array([1.0, 0.5])

    def run(self, count, reference=(2.0, -1.0), shown=0.0, **update):
        """Commands after each update, (count, 2); without a reference nothing is written to those of the controller.

        :param shown: what the measured positions differ from the true ones [rad].
        """
        found = []
        for _ in range(count):
            self.position = self.position + PERIOD * self.velocity
            if reference is not None:
                self.controller.refer(np.array(reference), self.velocity)
            found.append(self.controller.update(self.position + shown, self.velocity, **update))
        return np.array(found)


# -- when the controller stops


@pytest.mark.slow
def test_no_effort_remains_when_the_controller_stops_in_motion():
    """Nor after the next activation, until a controller writes a reference; it was the last reference, for good."""
    driven = Driven()
    np.testing.assert_allclose(driven.run(200)[-1], [2.0 + FRICTION, -1.0 + 0.8 * 0.45])
    driven.controller.deactivate()
    np.testing.assert_array_equal(driven.controller.commands, 0.0)
    driven.controller.activate()
    np.testing.assert_array_equal(driven.run(20, None), 0.0)
    assert driven.run(1)[0, 0] >= 2.0


@pytest.mark.slow
def test_the_zero_of_a_controller_that_stopped_counts_over_a_restart():
    """A trajectory controller writes zero when it stops; then ours is restarted, as it is not led any more. NaN replaced the zero."""
    driven = Driven()
    driven.run(200)
    driven.controller.refer(0.0)
    driven.controller.deactivate()
    driven.controller.chain(False)
    driven.controller.activate()
    np.testing.assert_array_equal(driven.run(20, None), 0.0)


def test_a_position_controlled_joint_stays_where_it_is():
    driven = Driven(OFFSETS)
    driven.run(200, (0.5, 0.3))
    driven.controller.deactivate()
    np.testing.assert_allclose(driven.controller.commands, driven.position, rtol=1e-15)


# -- references of the topic


def test_a_message_of_before_an_activation_is_not_replayed():
    """Neither one that was used, nor one that came in chained mode, when the controller leaves it."""
    driven = Driven(chained=False)
    driven.controller.tell_reference([2.0, -1.0])
    assert driven.run(3, None)[-1, 0] >= 2.0
    driven.controller.restart()
    np.testing.assert_array_equal(driven.run(20, None), 0.0)
    led = Driven()
    led.run(100)
    led.controller.tell_reference([3.0, 3.0])
    led.controller.deactivate()
    led.controller.chain(False)
    led.controller.activate()
    np.testing.assert_array_equal(led.run(20, None), 0.0)


def test_a_message_times_out():
    """After reference_timeout of 0.1 s without another one the efforts are zero."""
    driven = Driven(chained=False)
    driven.controller.tell_reference([2.0, -1.0])
    found = driven.run(200, None)
    assert np.all(found[1:100, 0] >= 2.0)
    np.testing.assert_array_equal(found[103:], 0.0)


# -- on and off


def test_a_disabled_controller_stays_disabled():
    """What ~/enable asked for last counts after a restart and after another configuration."""
    driven = Driven()
    driven.run(200)
    driven.controller.enable(False)
    np.testing.assert_array_equal(driven.run(20)[-1], [2.0, -1.0])
    driven.controller.restart()
    np.testing.assert_array_equal(driven.run(200)[-1], [2.0, -1.0])
    driven.controller.deactivate()
    driven.controller.configure()
    driven.controller.activate()
    np.testing.assert_array_equal(driven.run(200)[-1], [2.0, -1.0])
    driven.controller.enable(True)
    assert driven.run(200)[-1, 0] == pytest.approx(2.0 + FRICTION)


# -- references of single joints


def test_a_goal_without_reference_freezes_no_other_joint():
    """A ramp of 1 rad/s: the other joint froze for 100 ms, and then jumped by 88 mrad."""
    driven = Driven(OFFSETS)
    driven.velocity = np.array([1.0, 0.0])
    found = []
    for k in range(400):
        lost = NAN if 200 <= k < 350 else 0.1
        found.append(driven.run(1, (driven.position[0] + 2e-3, lost))[0])
    steps = np.diff(np.array(found), axis=0)[195:]
    np.testing.assert_allclose(steps[:, 0], 1e-3, atol=1e-9)
    np.testing.assert_array_equal(steps[:, 1], 0.0)
    assert found[300][0] - driven.position[0] > -0.1 + 0.02, "with friction"


def test_a_reference_that_is_locked_once_costs_no_friction():
    """Another thread has its lock at the moment: the last one counts for a cycle, friction included, and then none."""
    driven = Driven()
    sound = driven.run(200)[-1]
    driven.controller.lock_reference(0, True)
    np.testing.assert_allclose(driven.run(1)[0], sound)
    assert driven.run(1)[0, 0] == 0.0
    driven.controller.lock_reference(0, False)
    assert driven.run(1)[0, 0] >= 2.0


@pytest.mark.parametrize("which", range(4))
def test_a_state_that_is_locked_once_costs_no_friction(which):
    """A position or a velocity: it goes on as before."""
    driven = Driven()
    sound = driven.run(200)[-1]
    driven.controller.lock_state(which, True)
    np.testing.assert_allclose(driven.run(1)[0], sound)
    driven.controller.lock_state(which, False)
    np.testing.assert_allclose(driven.run(2), [sound, sound])


# -- gain


def test_the_gain_may_be_set_at_any_time_within_one_bound():
    """As a parameter, which nothing read again, and on ~/gain, which took 2.0."""
    driven = Driven()
    driven.run(200)
    for gain in (0.4, 1.2):
        assert driven.controller.set_gain(gain)
        assert driven.run(200)[-1, 0] == pytest.approx(2.0 + gain * (COULOMB + VISCOUS))
    for gain in (2.0, 1.4, -0.1, NAN):
        assert not driven.controller.set_gain(gain)
        driven.controller.tell_gain(gain)
        assert driven.run(200)[-1, 0] == pytest.approx(2.0 + 1.2 * (COULOMB + VISCOUS))
    driven.controller.tell_gain(0.6)
    assert driven.run(200)[-1, 0] == pytest.approx(2.0 + 0.6 * (COULOMB + VISCOUS))


def test_no_gain_of_the_topic_keeps_a_joint_moving_at_a_goal_at_rest():
    """Under a soft controller, 20 mrad from its goal: at 2.0 it still moves with 2.3 rad/s in the third second."""
    goals = {"goal_interfaces": ["position", "velocity"], "adapt": False}
    controller, arm = Controller(goals), Arm(2, inertia=0.05, coulomb=COULOMB, viscous=VISCOUS)
    controller.activate()
    controller.tell_gain(2.0)
    arm.position = np.array([0.02, 0.0])
    speeds = []
    for _ in range(3000):
        controller.refer(-4.0 * arm.position - 0.1 * arm.velocity)
        arm.move(controller.update(arm.position, arm.velocity))
        speeds.append(abs(arm.velocity[0]))
    assert max(speeds[2000:]) == 0.0


# -- what cannot work does not configure


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"output_mode": "goal_offset"}, "friction.a.p_gain above 0"),
        ({**OFFSETS, "friction.b.p_gain": 0.0}, "friction.b.p_gain above 0"),
        ({**OFFSETS, "friction.a.servo": "voltage", "friction.a.kt": 1.0}, "friction.a.R above 0"),
        (
            {**OFFSETS, "friction.a.servo": "voltage", "friction.a.kt": 1.0, "friction.a.R": 2.0},
            "friction.a.supply_voltage above 0",
        ),
        ({"friction.a.friction_base": -0.1}, "joint a: friction_base must be zero or positive, found -0.1"),
        ({"gain": 2.0}, "gain: expected 0 to 1.3"),
        (
            {**OFFSETS, "friction.b.position_min": 0.5, "friction.b.position_max": -0.5},
            "joint b: its limits contradict each other",
        ),
    ],
)
def test_what_cannot_work_does_not_configure(changes, part):
    """One line that names the parameter."""
    problem = Controller(changes).problem
    assert part in problem
    assert "\n" not in problem


def test_commands_stay_within_the_limits_of_parameters_and_description():
    """Efforts of a, 2.2 N m in the description, and of b, 0.9 N m in a parameter; a position of a, 0.25 rad."""
    driven = Driven({"friction.b.effort_limit": 0.9}, "a 2.2 -3 3")
    np.testing.assert_allclose(driven.run(200, (2.0, 0.8))[-1], [2.2, 0.9])
    offset = Driven(OFFSETS, "a 2.2 -3 0.25")
    np.testing.assert_array_equal(offset.run(200, (0.3, 0.1))[-1][0], 0.25)


# -- faults


@pytest.mark.parametrize("step", [10.0, -10.0, 0.1])
def test_the_torque_stays_when_the_ros_time_is_set(step):
    """Periods count as time: a step of more than 40 ms ended the torque."""
    driven = Driven()
    sound = driven.run(200)[-1]
    np.testing.assert_allclose(driven.run(1, clock_step=step)[0], sound)
    np.testing.assert_allclose(driven.run(1)[0], sound)


@pytest.mark.parametrize("ends", ["fault", "disabled", "missing goal"])
def test_friction_fades_instead_of_stepping(ends):
    """At most 50 torque limits per second, by default: in 20 ms from the limit to zero."""
    offset = ends == "missing goal"
    driven = Driven({"friction.a.max_torque": 1.0, **(OFFSETS if offset else {})})
    driven.velocity = np.array([1.0, 0.0])
    reference = (0.5, 0.1) if offset else (2.0, -1.0)
    full = driven.run(300, reference)[-1, 0] - reference[0]
    assert full * (10.0 if offset else 1.0) > 0.3
    if ends == "disabled":
        driven.controller.enable(False)
    shown = np.array([NAN, 0.0]) if ends == "fault" else 0.0
    found = driven.run(30, (NAN, 0.1) if offset else reference, shown)[:, 0] - reference[0]
    falls = -np.diff(found, prepend=full) * (10.0 if offset else 1.0)
    assert np.max(falls) <= 50.0 * PERIOD + 1e-9
    assert found[-1] == 0.0


def test_one_bad_joint_costs_the_other_no_friction():
    """A position that is not a number on joint a: of joint b not a bit changes."""
    driven, sound = Driven(), Driven()
    for one in (driven, sound):
        one.run(200)
    expected, found = sound.run(100), driven.run(100, shown=np.array([NAN, 0.0]))
    np.testing.assert_array_equal(found[:, 1], expected[:, 1])
    assert found[-1, 0] == 2.0


def test_a_joint_that_is_not_enabled_has_no_friction_torque_and_the_other_keeps_its_own():
    """`friction.b.enabled: false`: the reference of b passes unchanged, of a not a bit changes, and the fault of b is `not enabled`."""
    sound, one = Driven(), Driven({"friction.b.enabled": False})
    expected, found = sound.run(200), one.run(200)
    np.testing.assert_array_equal(found[:, 1], -1.0)
    np.testing.assert_array_equal(found[:, 0], expected[:, 0])
    assert one.controller.faults.tolist() == [0, 1]


def test_a_joint_can_be_switched_off_and_on_by_a_change_of_drives():
    """`~/exchange` after `friction.b.enabled` was set: within two ramp times, no faster than its slew limit."""
    driven = Driven({"ramp_time": 0.2})
    full = driven.run(400)[-1]
    for enabled, end in ((False, [full[0], -1.0]), (True, full)):
        driven.controller.switch("friction.b.enabled", enabled)
        assert driven.controller.exchange() == "they take over"
        found = driven.run(500)
        np.testing.assert_allclose(found[-1], end)
        assert np.max(np.abs(np.diff(found[:, 1]))) < 0.01


def test_updates_ask_for_no_memory():
    """Not while the state is published for the first time, nor while faults begin and end."""
    driven = Driven()
    for shown in (0.0, NAN, 0.0):
        driven.run(150, shown=shown)
        driven.run(50, (NAN, -1.0))
    assert driven.controller.allocated == 0


# -- a moving arm


def stops(controller):
    controller.deactivate()


def restarts(controller):
    controller.restart()


def locks(controller):
    controller.lock_reference(0, True)
    controller.lock_reference(1, True)


def leaves_nothing(controller):
    controller.refer(NAN)


def ends_chain(controller):
    controller.refer(0.0)
    controller.deactivate()
    controller.chain(False)
    controller.activate()


@pytest.mark.parametrize(
    "event", [stops, restarts, locks, leaves_nothing, ends_chain], ids=lambda event: event.__name__
)
def test_no_effort_is_kept_in_motion(event):
    """Joints under PD, whose controller ends in motion, and ours with it or not: zero within two cycles, and the arm rests."""
    controller, arm = Controller(), Arm(2, inertia=0.05, coulomb=COULOMB, viscous=VISCOUS)
    controller.activate()
    time = 0.0

    def cycle(led):
        nonlocal time
        time += PERIOD
        goal, rate = 0.5 * (1.0 - np.cos(2.0 * time)), np.sin(2.0 * time)
        if led:
            controller.refer(20.0 * (goal - arm.position) + 2.0 * (rate - arm.velocity), rate)
        found = (
            controller.commands
            if event is stops and not led
            else controller.update(arm.position, arm.velocity)
        )
        arm.move(found)
        return found

    for _ in range(700):
        before = cycle(led=True)
    assert np.all(before > 0.3)
    assert np.all(arm.velocity > 0.5)
    event(controller)
    after = np.array([cycle(led=False) for _ in range(500)])
    np.testing.assert_array_equal(after[2:], 0.0)
    np.testing.assert_array_equal(arm.velocity, 0.0)
