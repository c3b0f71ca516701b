"""Contacts: what they begin with, how long they last, and that they are tried again later and later."""

import numpy as np
import pytest

from stribeck.live.learning.contact import CONTACT_TIME, LONGEST_PATIENCE, PATIENCE, Contact

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
