"""A search for a joint without goals that compensation drives: pushed, let go, and faster afterwards.

The claims, and the time within which a joint must rest, are derived in ``plants.release``. What was before the
present compensator breaks them within seconds::

    git worktree add /tmp/old ba336e5
    PYTHONPATH=/tmp/old/src:bench python -m plants.release
"""

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from plants.baselines import TanhMeasured
from plants.release import RATES, Robot, searched

SEARCH = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    # A joint says itself what it is; its neighbours need no shrinking.
    "phases": (Phase.explicit, Phase.generate),
    "suppress_health_check": list(HealthCheck),
}


def robots(prelude):
    found = st.builds(
        Robot,
        rate=st.sampled_from(RATES),
        delay=st.integers(1, 3),
        velocity=st.sampled_from(["measured", "difference", "own"]),
        gain=st.sampled_from([0.5, 0.8, 1.0]),
        mode=st.just("sum") if prelude else st.sampled_from(["sum", "friction_only"]),
        prelude=st.just(prelude),
    )
    return st.lists(found, min_size=4, max_size=4)


def assert_held(broken, timed, joints):
    worst = "\n".join(f"{b.claim}: {b.value:.4g} > {b.bound:.4g}: {b.robot} {b.case}" for b in broken[:3])
    assert not broken, f"{len(broken)} broken, the worst:\n{worst}"
    assert timed > 0.3 * joints, "too few joints had to be at rest in the time that was simulated"


@pytest.mark.slow
def test_no_pushed_joint_is_driven():
    """200 joints, whatever their friction from -70 to +100 % of the identified one: none gains speed or energy."""
    chosen = [Robot(500, 1, "difference", 1.0, "friction_only"), Robot(100, 3, "own", 1.0, "sum")]
    assert_held(*searched(chosen, 100, 7, seconds=4.0), 200)


@pytest.mark.slow
def test_no_joint_is_driven_after_motion_under_goals():
    """100 joints that learnt their friction, which then changed by up to 10 %."""
    chosen = [Robot(250, 2, "measured", 1.0, "sum", prelude=True)]
    assert_held(*searched(chosen, 100, 11, seconds=4.0), 100)


@pytest.mark.slow
def test_naive_compensation_is_caught():
    """0.8 of the identified friction at the measured velocity breaks every claim."""
    broken, _ = searched([Robot(500, 2)], 40, 3, lambda robot, lanes: TanhMeasured(lanes), 3.0)
    assert {b.claim for b in broken} == {"speed", "energy", "account", "rest"}


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("prelude", [False, True])
def test_no_counterexample_among_thousands(prelude):
    """13 batches of four robots of 100 joints each, with and without motion before: 10 400 joints."""

    @settings(max_examples=13, **SEARCH)
    @given(chosen=robots(prelude), seed=st.integers(0, 2**30))
    def search(chosen, seed):
        assert_held(*searched(chosen, 100, seed, seconds=6.0), 400)

    search()
