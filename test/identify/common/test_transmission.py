"""Stiffness and backlash of transmissions in simulations of two masses that know nothing of the package."""

import numpy as np
import pytest

from elastic_joint import ElasticJoint, record
from stribeck.identify.common.encoder_runs import EncoderRun, resolution_of
from stribeck.identify.common.transmission import identify_transmission

SEEDS = range(6)


def identified(joint: ElasticJoint, seeds=SEEDS):
    """The transmission by each of several runs of 20 s."""
    runs, inertia = record(joint, seeds), np.array([joint.motor_inertia])
    return [
        identify_transmission(
            [EncoderRun("run", 0.004, runs.motor[:, [k]], runs.link[:, [k]], runs.torque[:, [k]], inertia)], 0
        )
        for k in range(len(list(seeds)))
    ]


def covered(found, joint: ElasticJoint) -> int:
    """How many intervals of the compliance contain the true one."""
    ends = [one.estimates["compliance"].interval for one in found]
    return sum(end is not None and end[0] <= 1e6 / joint.stiffness <= end[1] for end in ends)


@pytest.mark.slow
def test_stiffness_is_within_its_interval():
    """Two masses with LuGre friction, encoders of 17 bits, noise of torque, and a link that is read 1 ms early."""
    joint = ElasticJoint()
    found = identified(joint)
    assert covered(found, joint) >= 5
    stiffness = [one.stiffness.value for one in found if one.stiffness is not None]
    assert len(stiffness) >= 4
    assert np.median(stiffness) == pytest.approx(2e4, rel=0.03)
    assert np.median([one.estimates["skew"].value for one in found]) == pytest.approx(1e-3, rel=0.1)


@pytest.mark.slow
def test_a_rigid_joint_is_not_identifiable():
    """Its reason says so, and the lower end is far above the stiffness of any transmission of this size."""
    for one in identified(ElasticJoint(stiffness=None)):
        assert one.stiffness is None
        assert one.reason
        assert one.at_least == 0.0 or one.at_least > 1e6


@pytest.mark.slow
def test_backlash_is_found_and_does_not_soften_the_transmission():
    """Play of 1 mrad beside 1.2 mrad of elastic twist: without it, the stiffness would be 15 % too small."""
    joint = ElasticJoint(play=1e-3)
    found = identified(joint, range(16))
    assert covered(found, joint) >= 14
    known = [one for one in found if one.stiffness is not None]
    assert len(known) >= 8
    assert np.median([one.stiffness.value for one in known]) == pytest.approx(2e4, rel=0.03)
    assert np.median([one.estimates["backlash"].value for one in known]) == pytest.approx(1e-3, rel=0.05)


@pytest.mark.slow
def test_stiff_and_soft_joints_are_covered():
    """Sixteen runs each: the intervals of at least fourteen contain the true compliance."""
    for joint in (ElasticJoint(), ElasticJoint(stiffness=1e5)):
        assert covered(identified(joint, range(16)), joint) >= 14


def test_rounding_is_no_step_of_an_encoder():
    """The resolution of counts in rad is a count, also after a conversion that rounds."""
    counts = np.round(1e4 * np.sin(np.linspace(0.0, 6.0, 500)))
    step = 2.0 * np.pi / 2**17
    noisy = counts * step * (1.0 + 1e-16 * np.random.default_rng(0).standard_normal(500))
    assert resolution_of(noisy) == pytest.approx(step, rel=1e-6)
    assert resolution_of(np.zeros(5)) == np.inf
