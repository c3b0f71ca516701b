"""States in doubt: no torque at once, the ramp afterwards; states that say nothing change nothing."""

import math

import numpy as np
import pytest

from compensating import NAN, STEP, XL330, Driven, model
from stribeck.live.friction import goal_offset
from stribeck.live.settings import OUTPUT_MODES

DOUBTS = {
    "NaN position": (lambda d: d.state(position=NAN), "not a number"),
    "NaN velocity": (lambda d: d.state(NAN), "not a number"),
    "infinite velocity": (lambda d: d.state(math.inf), "not a number"),
    "velocity of one joint only": (lambda d: d.state([1.0]), "not a number"),
    "positions missing": (lambda d: d.state(position=[]), "not a number"),
    "back": (lambda d: d.send(d.time - 3.0), "jumped back"),
    "stamp of NaN": (lambda d: d.send(NAN), "stamp"),
    "half twice": (lambda d: d.send(d.time, names=["a"]), "was received twice"),
    "half back": (lambda d: d.send(d.time - 3.0, names=["a"]), "jumped back"),
    "half of NaN": (lambda d: d.send(NAN, names=["a"]), "stamp"),
    "half for long": (lambda d: d.send(d.time + 0.045, names=["a"]), "joint b: no states for 45 ms"),
    "half doubled": (lambda d: d.send(d.time + STEP, names=["a", "a"]), "joint a twice"),
    "half unknown": (lambda d: d.send(d.time + STEP, names=["a", "c"]), "unknown joint c"),
    "unknown joint": (lambda d: d.send(d.time + STEP, names=["a", "b", "c"]), "unknown joint c"),
    "doubled joint": (lambda d: d.send(d.time + STEP, names=["a", "b", "a"]), "joint a twice"),
    "gap": (lambda d: d.state(dt=0.045), "no states for 45 ms"),
    "stale": (lambda d: d.compensator.expire(d.time + 0.042), "no states for 41 ms"),
    "disabled": (lambda d: d.compensator.disable("told to"), "told to"),
    "absurd velocity": (lambda d: d.state(-1e308), "impossibly large"),
}


@pytest.mark.parametrize("mode", OUTPUT_MODES)
@pytest.mark.parametrize("what", DOUBTS)
def test_every_doubt_gives_zero_at_once(what: str, mode: str) -> None:
    """Past the slew limit, with the reason; the controller's own command passes on unchanged."""
    action, reason = DOUBTS[what]
    driven = Driven([model("a"), model("b", "m2")], mode=mode, slew=0.5, ramp_time=0.1)
    for _ in range(40):
        driven.command([0.5, 0.6], [0.01, 0.02])
        driven.state()
    assert np.all(driven.torque > 0.005)
    action(driven)
    assert driven.doubt is not None
    assert reason in driven.doubt
    np.testing.assert_array_equal(driven.torque, 0.0)
    output = driven.output()
    assert output is not None
    np.testing.assert_array_equal(output.friction, 0.0)
    if mode == "sum":
        np.testing.assert_array_equal(output.values, [0.01, 0.02])
    elif mode == "goal_offset":
        own = [
            goal_offset(XL330, joint.values, 200.0, 5.0, 0.01 * (k + 1))
            for k, joint in enumerate(driven.joints)
        ]
        np.testing.assert_allclose(output.values, np.array([0.5, 0.6]) + own, rtol=1e-12)
    else:
        np.testing.assert_array_equal(output.values, 0.0)


@pytest.mark.parametrize("what", [name for name in DOUBTS if name not in ("disabled", "absurd velocity")])
def test_after_a_doubt_it_comes_back_with_the_ramp(what: str) -> None:
    """The first good state starts the ramp anew, wherever the doubt came from."""
    driven = Driven([model("a"), model("b", "m2")], ramp_time=0.1, slew=0.0)
    for _ in range(40):
        full = driven.state()
    DOUBTS[what][0](driven)
    if what == "back":
        driven.time -= 3.0
    elif what.endswith(("unknown joint", "doubled joint")):
        driven.time += STEP
    for k in range(1, 30):
        torque = driven.state()
        assert np.all(torque <= full * min(1.0, k * STEP / 0.1) * (1.0 + 1e-9))
    np.testing.assert_allclose(torque, full, rtol=1e-9)
    assert driven.doubt is None


BRIDGED = {
    "twice": (lambda d: d.send(d.time), "was received twice"),
    "out of order": (lambda d: d.send(d.time - 0.004), "received after a later one"),
    "late": (
        lambda d: d.compensator.on_state(d.time + 0.15, d.time + STEP, d.names, [0, 0], [0, 0], []),
        "late",
    ),
    "a jump": (lambda d: d.send(d.time + STEP, position=d.position + 0.2), "a jumps by 0.2"),
}


@pytest.mark.parametrize("what", BRIDGED)
def test_one_state_that_says_nothing_changes_nothing(what: str) -> None:
    """Afterwards the torque is to the last bits what it would have been without that state; no doubt, no ramp."""
    driven, undisturbed = (Driven([model("a"), model("b", "m2")], state_timeout=0.2) for _ in range(2))
    for k in range(40):
        before = driven.state(math.sin(0.1 * k))
        undisturbed.state(math.sin(0.1 * k))
    np.testing.assert_array_equal(BRIDGED[what][0](driven), before)
    assert driven.doubt is None
    for k in range(40, 60):
        driven.state(math.sin(0.1 * k))
        np.testing.assert_array_equal(driven.torque, undisturbed.state(math.sin(0.1 * k)))


@pytest.mark.parametrize("what", ["twice", "out of order", "a jump"])
def test_states_that_say_nothing_bridge_no_more_than_the_timeout(what: str) -> None:
    """State after state of that kind: the torque stays for the time-out after the last good one, and is then zero."""
    driven = Driven([model("a"), model("b", "m2")])
    before = driven.settled()
    _, reason = BRIDGED[what]
    order = driven.names, driven.position + (0.2 if what == "a jump" else 0.0), [1.0, 1.0], []
    said = []
    for k in range(1, 12):
        stamp = {"twice": driven.time, "out of order": driven.time - 0.004}.get(what, driven.time + k * STEP)
        found = driven.compensator.on_state(driven.time + k * STEP + 0.001, stamp, *order)
        if driven.doubt is None:
            np.testing.assert_array_equal(found, before)
        else:
            np.testing.assert_array_equal(found, 0.0)
            said.append((k, driven.doubt))
    assert said[0][0] in (8, 9)  # 40 ms
    assert reason in said[0][1]
    # A joint that stays where it jumped to is there.
    assert len(said) == 1 if what == "a jump" else said[-1][0] == 11


def test_numbers_that_leave_no_direction_are_a_doubt() -> None:
    """A goal infinitely far ahead and a commanded velocity infinitely fast away from it."""
    driven = Driven()
    driven.settled()
    driven.command([1.7e308], velocity=[-1.7e308])
    assert driven.state(0.0)[0] == 0.0
    assert driven.doubt == "position, velocity or effort is impossibly large"
