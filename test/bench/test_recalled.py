"""A search for a joint that compensation drives with friction it only recalls, or with goals that repeat its position.

The claims are those of ``plants.recalled``. What was before the present compensator breaks a third of them.
"""

import pytest

from plants.recalled import drawn_cases, searched


def assert_claims(guaranteed, seed, cases, joints):
    broken, tried = searched(drawn_cases(seed, cases, guaranteed=guaranteed), joints, seed, seconds=4.0)
    worst = "\n".join(f"{b.claim}: {b.value:.4g} > {b.bound:.4g}: {b.case} {b.joint}" for b in broken[:3])
    assert not broken, f"{len(broken)} broken, the worst:\n{worst}"
    assert tried["reasons"] == tried["ended"], "an end without a reason"
    if guaranteed:
        assert tried["grew"] > 0, "no tank was drawn from"
        assert tried["ended"] == 0, "compensation ended although there is enough friction"
    else:
        assert tried["ended"] > 0.2 * tried["joints"], "too few joints were driven"


@pytest.mark.slow
def test_recalled_friction_adds_no_more_than_the_tank_holds():
    """300 joints with at least the guaranteed friction: net energy at most E_0 at goals that repeat the position, 0 without."""
    assert_claims(True, 7, 5, 60)


@pytest.mark.slow
def test_joints_with_less_than_the_guaranteed_friction_stay_slow():
    """200 joints with down to a twentieth of it, or with a fraction said that they do not have."""
    assert_claims(False, 7, 5, 40)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed", range(100, 110))
@pytest.mark.parametrize("guaranteed", [True, False])
def test_no_counterexample_among_ten_thousand(guaranteed, seed):
    """Ten compensators of 100 joints each; with ten seeds 10 000 joints for either claim."""
    assert_claims(guaranteed, seed, 10, 100)
