"""One verdict for all engines: what each piece of evidence leads to."""

import math

import pytest

from stribeck.identify.common.judging import Evidence, Misfit, Sizes, interval_reason, judge, misfits_of
from stribeck.identify.common.solver_status import SolverStatus
from stribeck.model.estimate import at_bound, estimate_of, fixed
from stribeck.model.verdict import Reason

KNOWN, LOOSE, UNKNOWN = (estimate_of(1.0, "N m", (1.0 - half, 1.0 + half)) for half in (0.01, 0.2, 2.0))


def judged(*misfits, **given):
    return judge(Evidence("torque", misfits or (Misfit(0.05),), **given))


def found(verdict):
    return [(one.key, one.use, one.joint) for one in verdict.reasons]


@pytest.mark.parametrize(
    ("error", "use"),
    [
        (0.0, "usable"),
        (0.2, "usable"),
        (0.21, "doubtful"),
        (0.5, "doubtful"),
        (0.51, "unusable"),
        (math.nan, "unusable"),
    ],
)
def test_an_error_is_judged_by_its_share(error, use):
    """From a fifth doubtful, from a half unusable, as is an error that is not a number."""
    assert judged(Misfit(error)).use == use


def test_each_joint_and_recording_has_its_own_reasons():
    """A joint that is not explained spoils neither the others nor the recordings; one at rest has no error."""
    misfits = misfits_of(0.1, {"a": 0.1, "b": 0.95, "c": math.nan}, {"x": 0.1, "y": 0.6})
    verdict = judged(*misfits, estimates={name: {"friction_base": KNOWN} for name in "abc"})
    assert found(verdict) == [("large_error", "unusable", "b"), ("large_error", "doubtful", "")]
    assert verdict.use == "doubtful"
    assert [verdict.of(name).use for name in "abc"] == ["doubtful", "unusable", "doubtful"]
    assert [verdict.of_file(name).use for name in "xy"] == ["usable", "doubtful"]
    assert misfits_of(0.1, {"a": 0.1}, {"x": 0.1}) == (Misfit(0.1),), (
        "one joint in one recording is the whole"
    )


def test_friction_that_is_another_one_in_recordings_held_out_is_named():
    """Per joint only where the error matters: four times nothing is nothing."""
    fitted = misfits_of(0.02, {"a": 0.01, "b": 0.02})
    others = misfits_of(0.1, {"a": 0.04, "b": 0.15}, held_out=True)
    verdict = judged(*fitted, *others)
    assert found(verdict) == [
        ("does_not_carry_over", "doubtful", ""),
        ("does_not_carry_over", "doubtful", "b"),
    ]
    assert "b, recordings held out: 7.5 times" in verdict.reasons[1].text


def test_the_interval_of_the_friction_decides_where_it_is_known():
    """Coulomb friction and a Stribeck term that are not determined by themselves are no reason; a wide interval of their sum is one."""
    apart = {"": {"friction_base": UNKNOWN, "friction_viscous": UNKNOWN}}
    assert not judged(estimates=apart, widths={"": 0.5}).reasons
    known = {"elbow": {"friction_base": KNOWN}, "wrist": {"friction_base": KNOWN}}
    verdict = judged(estimates=known, widths={"elbow": 0.12, "wrist": 0.62})
    assert found(verdict) == [("friction_unknown", "doubtful", "wrist")]
    assert "known to ± 62 % only" in verdict.reasons[0].text
    assert "not known:" in judged(estimates=known, widths={"elbow": float("inf")}).reasons[0].text


def test_friction_that_is_not_determined_is_a_reason():
    """Without any interval: unusable; with wide ones, or none of dry friction: doubtful, unless it is determined
    only together with another term; in a mechanism doubtful."""
    nothing = {"friction_base": UNKNOWN, "friction_viscous": UNKNOWN}
    assert found(judged(estimates={"": nothing})) == [("friction_unknown", "doubtful", "")]
    still = {name: estimate_of(1.0, "N m", None) for name in nothing}
    assert found(judged(estimates={"": still})) == [("friction_unknown", "unusable", "")]
    viscous = {**nothing, "friction_viscous": LOOSE}
    assert found(judged(estimates={"": viscous})) == [("friction_unknown", "doubtful", "")]
    assert not judged(estimates={"": viscous}, together=frozenset({"friction_base"})).reasons
    assert not judged(estimates={"": {**viscous, "friction_stribeck": KNOWN}}).reasons
    large = at_bound(1.0, "N m", "upper")
    assert found(judged(estimates={"": {**nothing, "friction_base": large}})) == [
        ("at_bound", "doubtful", "")
    ]
    unknown = judged(estimates={"": {"arm_coulomb": UNKNOWN}}, friction=frozenset({"arm_coulomb"}))
    assert found(unknown) == [("friction_unknown", "doubtful", "")]


def test_parameters_at_a_bound_are_reasons_unless_they_are_terms_that_may_be_absent():
    """Of friction the upper bound alone counts."""
    estimates = {"armature": at_bound(0.0, "kg m^2", "lower"), "friction_base": KNOWN}
    assert found(judged(estimates={"knee": estimates})) == [("at_bound", "doubtful", "knee")]
    absent = {
        "friction_viscous": at_bound(0.0, "N m s/rad", "lower"),
        "friction_base": KNOWN,
        "ratio": fixed(1.0, "1"),
    }
    assert not judged(estimates={"": absent}).reasons


def test_sizes_that_cannot_be_are_reasons():
    """Dry friction above all torque; a rotor inertia of 146 kg m², unless the links have more."""
    assert found(judged(sizes={"a": Sizes(2.0, 1.0)})) == [("implausible", "unusable", "a")]
    assert not judged(sizes={"a": Sizes(0.5, 1.0, 1.0)}).reasons
    assert found(judged(sizes={"a": Sizes(0.5, 1.0, 146.0)})) == [("implausible", "doubtful", "a")]
    assert not judged(sizes={"a": Sizes(0.5, 1.0, 146.0, link=300.0)}).reasons


def test_intervals_without_a_width_are_a_reason():
    """Those at bounds have none either; exact fits may have such intervals."""
    exact = estimate_of(1.0, "N m", (1.0, 1.0))
    estimates = {"": {"friction_base": exact, "friction_viscous": at_bound(0.0, "N m s/rad", "lower")}}
    assert found(judged(estimates=estimates)) == [("zero_intervals", "unusable", "")]
    assert not judged(Misfit(1e-9), estimates=estimates).reasons


def test_searches_that_did_not_converge_are_reasons():
    """At a kink only where an engine does not expect them; what an engine alone can see comes first."""
    assert not judged(status=SolverStatus.CONVERGED).reasons
    assert not judged(status=SolverStatus.KINK).reasons
    assert judged(status=SolverStatus.KINK, kinks=False).use == "doubtful"
    assert judged(status=SolverStatus.LIMIT).use == "doubtful"
    assert judged(status=SolverStatus.DIVERGED).use == "unusable"
    own = Reason("effort_sign", "unusable", "against gravity")
    assert judged(status=SolverStatus.LIMIT, more=(own,)).reasons[0] == own


def test_intervals_of_width_zero_are_a_reason_unless_the_fit_is_exact():
    """One interval that is not zero is enough."""
    assert [reason.key for reason in interval_reason([1.0, 0.0], [0.0, 0.0], 0.1)] == ["zero_intervals"]
    assert not interval_reason([1.0, 0.0], [0.0, 0.1], 0.1)
    assert not interval_reason([1.0, 2.0], [0.0, 0.0], 1e-9)
