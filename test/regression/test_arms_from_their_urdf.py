"""What `bench/own_robots.py` found on arms of which only the URDF is known."""

import numpy as np
import pytest

from moving_arms import JOINTS, NEAR, arm, low_pass, protocol, recording, urdf
from stribeck.excitation import contacts
from stribeck.identify.arm import consistent
from stribeck.identify.arm.friction.selection import _vertex
from stribeck.identify.arm.inertia import consistency
from stribeck.identify.arm.model import load_arm
from stribeck.identify.arm.motion import motion_of
from stribeck.identify.arm.regressor import machine_of
from stribeck.identify.arm.survey.spectra import bandwidth_of
from stribeck.identify.common.solver_status import SolverStatus

FILTERED = protocol(position_filter=low_pass(20.0), effort_filter=low_pass(20.0), every=10)


def test_slow_motion_under_gravity_is_not_filtered_torque(tmp_path):
    """What happened: gravity dwarfs friction above the motion's bandwidth, which passed for a filter: cut-off 4.5 Hz (panda)."""
    path = urdf(tmp_path)
    text = path.read_text().replace('mass value="4.0"', 'mass value="40.0"')
    path.write_text(
        text.replace('mass value="2.0"', 'mass value="20.0"')
    )  # gravity of 400 N m, friction of 2 N m
    run = recording(load_arm(path, JOINTS), noise=0.3)
    assert np.isinf(bandwidth_of([run], 500.0).torque).all()


def test_ipopt_at_its_limit_gives_its_point(tmp_path, monkeypatch):
    """What happened: a CasADi assertion in the message and no result. What must happen: a consistent arm, status "limit"."""
    run = recording(arm(tmp_path), noise=0.1, seconds=4.0)
    machine = machine_of(JOINTS, load_arm(urdf(tmp_path, mass=2.6), JOINTS), {})
    monkeypatch.setattr(consistent, "MOST", 3)
    fit = consistent.fit_consistent(machine, [motion_of(run, FILTERED)], FILTERED, NEAR, np.ones(3))
    assert fit.status is SolverStatus.LIMIT
    assert (consistency(fit.inertials) > 0.0).all()


@pytest.mark.parametrize("shift", [-0.4, 0.0, 0.3])
def test_a_delay_lies_between_the_steps_of_its_search(shift):
    """Squared errors on a parabola have their minimum found exactly; a missing neighbour leaves the step."""
    errors = {k: np.sqrt(1.0 + 0.1 * (k - 5 - shift) ** 2) for k in (4, 5, 6)}
    assert _vertex(errors, 5) == pytest.approx(shift, abs=1e-3)
    assert _vertex({5: 1.0}, 5) == 0.0


def test_bodies_that_touch_in_the_middle_and_mostly_touch_by_design(monkeypatch):
    """A pair that collides at half of the positions is kept apart unless it also collides in the middle of the ranges."""
    mostly = np.arange(10) < 6
    found = {frozenset("ab"): mostly, frozenset("cd"): ~mostly, frozenset("ef"): mostly[::-1]}
    monkeypatch.setattr(contacts, "contacts", lambda *_: found)
    assert contacts.always_touching(None, (), (), np.zeros((10, 1))) == {frozenset("ab")}
