"""What motion tells of friction: scales while a goal leads, nothing at contacts and of joints that nobody leads."""

import numpy as np
import pytest

from compensating import model
from stribeck.live.friction import FrictionModel
from stribeck.live.learning.adaptation import AdaptationSettings
from stribeck.live.learning.observer import FrictionObserver, Motion
from stribeck.model.joint_map import JointMap

DT = 0.005
T = 0.06
BASE, VISCOUS = 0.02, 0.01
JOINTS = [model(name, friction_base=BASE, friction_viscous=VISCOUS) for name in ("a", "b")]
INERTIA = np.array([0.002, 0.02])
NONE = np.zeros(2)


class Wheels:
    """Two wheels that turn without load, whatever stands between them and their servos."""

    def __init__(self, gear: np.ndarray) -> None:
        self.inertia = INERTIA * gear**2

    def mass_matrix_and_bias(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.inertia, NONE


class Driven:
    """Two joints on a sine, with friction of which the dry part is times ``dry`` and the viscous times ``viscous``."""

    def __init__(self, dry: float = 1.0, viscous: float = 1.0, maps: JointMap | None = None) -> None:
        self.map = maps or JointMap(np.ones(2), np.ones(2), np.zeros(2))
        self.dry, self.viscous = dry, viscous
        self.observer = FrictionObserver(
            FrictionModel(JOINTS), Wheels(self.map.gear), self.map, np.full(2, T), AdaptationSettings()
        )
        self.rng = np.random.default_rng(5)
        self.time = 0.0
        self.speed = NONE

    def run(
        self,
        seconds: float,
        *,
        led: bool = True,
        follows: bool = True,
        outside: float = 0.0,
        noise: float = 0.0,
    ) -> "Driven":
        """Go on; ``outside`` [N m] acts against the motion of the first joint."""
        for _ in range(round(seconds / DT)):
            self.time += DT
            before, self.speed = self.speed, 3.0 * np.sin(np.array([1.0, 1.4]) * self.time)
            sign = np.sign(self.speed)
            friction = self.dry * BASE * sign + self.viscous * VISCOUS * self.speed
            friction[0] += outside * sign[0]
            acting = INERTIA * (self.speed - before) / DT + friction
            measured = self.speed + noise * self.rng.standard_normal(2)
            flags = np.full(2, led), np.full(2, follows)
            motion = Motion(NONE, measured, sign, NONE, NONE, *flags, NONE > 0.0, measured=sign)
            if self.observer.update(
                self.map.position(NONE), self.map.velocity(measured), self.map.torque(acting), NONE, DT
            ):
                self.observer.conclude(motion)
        return self


@pytest.mark.ci
@pytest.mark.one_case_is_quick
@pytest.mark.parametrize(("dry", "viscous"), [(0.5, 0.5), (1.8, 1.8), (0.5, 1.8), (1.0, 1.0)])
def test_the_friction_that_there_is_now_is_recovered(dry: float, viscous: float) -> None:
    """At 3 rad/s within 5 %, with 5 mrad/s of noise of the velocity; and it is sure."""
    found = Driven(dry, viscous).run(20.0, noise=0.005).observer
    wanted = dry * BASE + 3.0 * viscous * VISCOUS
    np.testing.assert_allclose(
        found.scales.dry * BASE + 3.0 * found.scales.viscous * VISCOUS, wanted, rtol=0.05
    )
    assert np.all(found.certainty > 0.8)


def test_joint_maps_turn_nothing_but_the_convention() -> None:
    """A sign and a gear between robot and servo: the same scales, residual and contacts of the servo."""
    plain = Driven(0.6, 1.3).run(5.0).observer
    mapped = Driven(
        0.6, 1.3, JointMap(np.array([-1.0, 1.0]), np.array([3.0, 50.0]), np.array([0.4, 0.0]))
    ).run(5.0)
    np.testing.assert_allclose(mapped.observer.scales, plain.scales, rtol=1e-9)
    np.testing.assert_allclose(mapped.observer.torque, plain.torque, rtol=1e-6, atol=1e-12)


@pytest.mark.ci
@pytest.mark.parametrize("how", [{"led": False}, {"follows": False}])
def test_without_a_goal_that_is_followed_nothing_is_learnt(how: dict[str, bool]) -> None:
    """A hand that pushes looks like less friction, a joint that sticks like any."""
    found = Driven(0.5, 0.5).run(10.0, **how).observer
    np.testing.assert_array_equal(found.scales, 1.0)
    np.testing.assert_array_equal(found.offset, 0.0)
    np.testing.assert_array_equal(found.certainty, 0.0)


@pytest.mark.ci
def test_a_contact_is_seen_and_teaches_nothing() -> None:
    """Ten times the friction acts against one joint: a contact, nothing is learnt of it; the other learns on."""
    driven = Driven(0.9, 0.9).run(20.0)
    before = driven.observer.filter.state.copy()
    contacts = []
    for _ in range(10):
        driven.run(0.05, outside=10.0 * BASE)
        contacts.append(bool(driven.observer.contact[0]))
        assert not driven.observer.contact[1]
        assert not driven.observer.learning[0]
    assert all(contacts[4:])
    assert np.abs(driven.observer.filter.state[0] - before[0]).max() < 0.02
    driven.run(20.0)
    assert not driven.observer.contact[0]
    np.testing.assert_allclose(driven.observer.scales.dry, 0.9, atol=0.05)


def test_friction_as_identified_is_no_contact() -> None:
    """Nor what it may have changed to."""
    for scale in (0.3, 1.5):
        driven = Driven(scale, scale)
        for _ in range(100):
            driven.run(0.05)
            assert not driven.observer.contact.any(), scale


@pytest.mark.ci
def test_what_is_sure_grows_with_what_was_seen() -> None:
    """At first nothing; after motion half of the friction and more, but never more than is estimated."""
    driven = Driven()
    for part in driven.observer.surely:
        assert np.all(part <= 0.0)
    driven.run(20.0)
    sure, estimated = driven.observer.surely, driven.observer.scales
    assert np.all(sure.dry > 0.45)
    for lower, scale in zip(sure, estimated, strict=True):
        assert np.all(lower <= scale)


@pytest.mark.ci
def test_what_was_learnt_can_be_begun_with() -> None:
    """Scales come back as they were; what is not known of them is not less than before."""
    first = Driven(0.6, 1.4).run(20.0).observer
    second = Driven()
    second.observer.begin(first.learned, np.ones(2))
    np.testing.assert_allclose(second.observer.scales, first.scales)
    assert np.all(second.observer.doubtful >= first.doubtful - 1e-12)


def test_without_what_was_learnt_the_temperature_decides() -> None:
    """Warm joints begin with less, within the bounds of the scales."""
    driven = Driven()
    driven.observer.begin(None, np.array([0.7, 0.01]))
    np.testing.assert_allclose(driven.observer.scales.dry, [0.7, AdaptationSettings().scale_lower])


def test_a_restart_forgets_the_motion_not_what_was_learnt() -> None:
    """The residual begins at null, the scales stay."""
    driven = Driven(0.5, 0.5).run(10.0)
    scales = np.array(driven.observer.scales)
    assert np.abs(driven.observer.torque).max() > 0.4 * BASE
    driven.observer.restart()
    one = np.ones(2)
    motion = Motion(NONE, 9.0 * one, one, NONE, NONE, one > 0.0, one > 0.0, one < 0.0, measured=one)
    driven.observer.update(NONE, 9.0 * one, one, NONE, 0.0)
    driven.observer.conclude(motion)
    np.testing.assert_array_equal(driven.observer.torque, 0.0)
    np.testing.assert_array_equal(driven.observer.scales, scales)
