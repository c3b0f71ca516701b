"""Contacts: what they begin with, how long they last, and that they are tried again later and later."""

import numpy as np
import pytest

from stribeck.live.learning.contact import CONTACT_TIME, LONGEST_PATIENCE, PATIENCE, STOP_TIME, Contact

YES, NO = np.array([True]), np.array([False])
ON, BACK = np.array([1.0]), np.array([-1.0])
DT = 0.01


def touched(contact: Contact, seconds: float, beyond=NO, held=NO, led=YES, follows=NO, path=ON) -> float:
    """Share of the contact after so long."""
    for _ in range(round(seconds / DT)):
        contact.update(beyond, held, led, follows, path, DT)
    return float(contact.share[0])


def test_a_contact_takes_the_torque_within_some_time_constants() -> None:
    """After one step, as a first-order filter has it; after five time constants all but 1 %."""
    contact = Contact(1)
    assert touched(contact, DT, beyond=YES) == pytest.approx(DT / CONTACT_TIME)
    assert touched(contact, 5.0 * CONTACT_TIME, beyond=YES) > 0.99


def test_it_stays_while_nothing_changes() -> None:
    """Also without a torque beyond friction: that torque is what went."""
    contact = Contact(1)
    touched(contact, 0.3, beyond=YES)
    assert touched(contact, 10.0) > 0.99


@pytest.mark.parametrize("change", [{"follows": YES}, {"path": BACK}])
def test_it_ends_as_the_joint_moves_on_or_its_goal_turns_back(change: dict) -> None:
    """Either way the torque comes back as fast as it went."""
    contact = Contact(1)
    touched(contact, 0.3, beyond=YES)
    assert touched(contact, 0.3, **change) < 0.01


def test_without_a_leading_goal_or_with_motion_nothing_begins() -> None:
    """A joint that moves meets nothing that holds it."""
    assert touched(Contact(1), 1.0, beyond=YES, led=NO) == 0.0
    assert touched(Contact(1), 1.0, beyond=YES, follows=YES) == 0.0


def test_what_friction_could_hold_is_tried_again_each_time_later() -> None:
    """0.5, 1, 2, ... s, 30 at most; motion makes it 0.5 s again."""
    contact, waits = Contact(1), []
    for _ in range(9):
        touched(contact, 0.3, beyond=YES)
        count = 0
        while contact._touched[0]:
            contact.update(NO, YES, YES, NO, ON, DT)
            count += 1
        waits.append(count * DT)
    expected = [min(PATIENCE * 2.0**k, LONGEST_PATIENCE) for k in range(9)]
    np.testing.assert_allclose(waits, expected, atol=2.0 * DT)
    touched(contact, DT, follows=YES)
    touched(contact, 0.3, beyond=YES)
    assert touched(contact, PATIENCE + 5.0 * CONTACT_TIME + 0.1, held=YES) < 0.05


@pytest.mark.parametrize("signs", [{"met": YES}, {"beyond": YES}])
def test_as_its_goal_comes_to_rest_a_contact_takes_the_torque_at_once(signs: dict) -> None:
    """Also without a leading goal; nothing is tried again at rest, and the torque is back with the goal's motion."""
    contact = Contact(1)
    given = {"beyond": NO, "held": NO, "led": NO, "follows": NO, "path": ON, "dt": DT, "rests": YES}
    contact.update(**given | {"led": YES, "follows": YES, "rests": NO})
    contact.update(**given | signs)
    assert contact.share[0] == 0.0  # a goal that turns back rests in passing
    contact.update(**given | signs)
    assert contact.share[0] == 1.0
    for _ in range(round(2.0 * LONGEST_PATIENCE / DT)):
        contact.update(**given | {"held": YES})
    assert contact.share[0] == pytest.approx(1.0)
    for _ in range(round(5.0 * CONTACT_TIME / DT)):
        contact.update(**given | {"led": YES, "follows": YES, "rests": NO})
    assert contact.share[0] < 0.01


def test_a_push_long_after_its_goal_came_to_rest_is_no_obstacle_on_the_way() -> None:
    """Nor is one against a joint that moves with its goal."""
    contact = Contact(1)
    given = {"beyond": NO, "held": NO, "led": NO, "follows": NO, "path": ON, "dt": DT, "rests": YES}
    contact.update(**given | {"led": YES, "follows": YES, "rests": NO})
    for _ in range(round(STOP_TIME / DT) + 1):
        contact.update(**given)
    contact.update(**given | {"met": YES})
    assert contact.share[0] == 0.0
    contact = Contact(1)
    contact.update(**given | {"led": YES, "follows": YES, "rests": NO})
    contact.update(**given | {"met": YES, "follows": YES})
    assert contact.share[0] == 0.0
