"""Verdicts on fits of an arm whose recordings or URDF have one fault each."""

import re
from dataclasses import replace

import numpy as np
import pytest

from moving_arms import JOINTS, NEAR, arm, low_pass, motion, protocol, recording, urdf
from stribeck.errors import RecordingError
from stribeck.identify.arm.config import IdentificationConfig, RecordingFormat
from stribeck.identify.arm.friction.element_torque import Element, elements_of, friction_part
from stribeck.identify.arm.friction.selection import prepare
from stribeck.identify.arm.friction.width import friction_widths
from stribeck.identify.arm.identify import Identification
from stribeck.identify.arm.model import load_arm
from stribeck.identify.arm.plausibility import check_torques
from stribeck.identify.arm.recordings import ArmRecording
from stribeck.identify.arm.regressor import machine_of
from stribeck.identify.arm.verdict import judge_filters, judge_fits

CONFIG = IdentificationConfig(
    RecordingFormat("bag"),
    protocol(every=10, position_filter=low_pass(50.0), effort_filter=low_pass(50.0)),
)


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """A recording of the true arm, and a URDF whose last link is too heavy by 30 %."""
    folder = tmp_path_factory.mktemp("arm")
    run = recording(arm(folder), noise=0.1, seconds=6.0)
    return run, urdf(folder, mass=2.6)


def fitted(run, path):
    """The identification, and its fits by name."""
    given = load_arm(path, JOINTS)
    work = Identification(machine_of(JOINTS, given, {}), CONFIG, [run])
    return work, {name: work.fit(name) for name in ("ols", "full")}


def judged(run, path):
    """The verdict, by key."""
    work, fits = fitted(run, path)
    verdict = judge_fits(fits, work.motions()["train"], CONFIG.neighbourhood, "rotary")
    return verdict, {reason.key: reason.text for reason in verdict.reasons}


def scaled(run, *factors):
    return replace(run, effort=run.effort * np.array(factors))


@pytest.mark.slow
def test_a_sound_recording_gives_no_reason(clean):
    """Although the URDF is wrong by a third."""
    verdict, reasons = judged(*clean)
    assert verdict.use == "usable"
    assert not reasons


@pytest.mark.slow
def test_widths_of_the_friction_are_those_of_its_draws(clean):
    """Half-width over all moving rows, against the spread of friction for 4000 draws from the fit's normal distribution."""
    work, fits = fitted(*clean)
    fit, (motion,) = fits["full"].fit, work.motions()["train"]
    widths = friction_widths(fit, [motion])
    assert list(widths) == list(JOINTS)
    run = prepare(fit.machine, motion)
    developed = run.developed(fit.machine, fit.choice.presliding, fit.rest)
    elements = elements_of(fit.machine.weights, motion.fine, developed, run.regressor @ fit.inertials.ravel())
    rng = np.random.default_rng(0)
    for k, joint in enumerate(JOINTS):
        rows = np.flatnonzero(motion.moving[:, k])[::20]
        element = Element(*(np.asarray(part)[motion.pick][rows] for part in elements[k]))
        draws = rng.multivariate_normal(fit.parameters[k], fit.covariances[k], 4000)
        drawn = np.array([friction_part(fit.laws[k], one, element) for one in draws])
        mean = friction_part(fit.laws[k], fit.parameters[k], element)
        spread = 1.96 * np.sqrt(np.mean(drawn.var(axis=0)) / np.mean(mean**2))
        assert widths[joint] == pytest.approx(spread, rel=0.1), joint


def test_an_effort_against_gravity_is_named(clean):
    """One joint whose effort has the other sign."""
    run, path = clean
    verdict, reasons = judged(scaled(run, 1.0, 1.0, -1.0), path)
    assert verdict.use == "unusable"
    assert "the effort of elbow has the opposite sign to gravity" in reasons["effort_sign"]
    assert "full fits worse than ols" in reasons["worse_than_ols"]


@pytest.mark.slow
def test_currents_taken_for_torques_are_noticed(clean):
    """So are rotor inertias of zero, which follow from it; the intervals of what is not at its bound keep a width."""
    run, path = clean
    small = scaled(run, 0.12, 0.12, 0.12)
    verdict, reasons = judged(small, path)
    assert verdict.use == "unusable"
    assert "a current, or a torque of the motor" in reasons["effort_unit"]
    assert {"worse_than_ols", "no_rotor_inertia"} <= set(reasons)
    assert "zero_intervals" not in reasons
    estimates = fitted(small, path)[1]["full"].estimates("rotary")
    intervals = [one.interval for one in estimates.values() if one.side is None and one.interval is not None]
    assert len(intervals) > len(JOINTS)
    assert all(high > low for low, high in intervals), estimates


@pytest.mark.slow
def test_what_is_found_at_one_joint_leaves_the_others_usable(clean):
    """An effort fifteen times too large at the elbow: one reason about its size, and each reason with its joint."""
    run, path = clean
    work, fits = fitted(scaled(run, 1.0, 1.0, 15.0), path)
    verdict = judge_fits(fits, work.motions()["train"], CONFIG.neighbourhood, "rotary")
    sizes = [one for one in verdict.reasons if one.key in ("effort_unit", "effort_check")]
    assert [one.joint for one in sizes] == ["elbow"], verdict.reasons
    assert "--payload identify" in sizes[0].text
    assert not any(one.key.startswith("effort") for one in verdict.of("base").reasons)


@pytest.mark.parametrize(("units", "bound"), [("linear", "1 N"), ("rotary", "1 N m")])
def test_reasons_have_the_units_of_a_machine_without_urdf(units, bound):
    """Coulomb friction at the end of its search [N] of an axis that slides, and the same torque [N m] of one that turns."""
    time, position, velocity, acceleration = motion(4.0, 1)
    effort = 0.3 * acceleration + 2.0 * velocity + 3.0 * np.sign(velocity)
    run = ArmRecording("run", ("axis",), time, position, velocity, effort)
    work = Identification(machine_of(("axis",), None, {}), CONFIG, [run])
    scored = work.fit("full")
    (parameters,), (bounds,) = scored.fit.parameters, scored.fit.bounds
    k = list(scored.fit.values("axis")).index("friction_base")
    bounds, parameters = bounds.copy(), parameters.copy()
    bounds[k], parameters[k] = (0.0, 1.0), 1.0
    fit = replace(scored.fit, parameters=(parameters,), bounds=(bounds,))
    verdict = judge_fits({"full": replace(scored, fit=fit)}, work.motions()["train"], NEAR, units)
    (reason,) = (one for one in verdict.reasons if one.key == "at_bound")
    assert f"friction_base at its upper bound {bound}: " in reason.text


@pytest.mark.slow
def test_a_rotor_inertia_of_zero_concerns_its_joint(clean):
    """Not the verdicts on the other joints."""
    run, path = clean
    work, fits = fitted(run, path)
    scored = fits["full"]
    parameters = [values.copy() for values in scored.fit.parameters]
    parameters[2][0] = 0.0
    fits["full"] = replace(scored, fit=replace(scored.fit, parameters=tuple(parameters)))
    verdict = judge_fits(fits, work.motions()["train"], CONFIG.neighbourhood, "rotary")
    assert [(one.key, one.joint) for one in verdict.reasons] == [("no_rotor_inertia", JOINTS[2])]
    assert verdict.of(JOINTS[0]).use == "usable"
    assert verdict.of(JOINTS[2]).use == "doubtful"


@pytest.mark.slow
def test_efforts_of_another_machine_are_not_explained(clean):
    """Most of the torque remains."""
    run, path = clean
    noise = np.random.default_rng(0).normal(0.0, 20.0, run.effort.shape)
    verdict, reasons = judged(replace(run, effort=noise), path)
    assert verdict.use == "unusable"
    assert "more than 50 %" in reasons["large_error"]


@pytest.mark.slow
@pytest.mark.parametrize(("mass", "key"), [("2600", "grams"), ("40", "far_from_urdf")])
def test_a_link_that_leaves_its_urdf_is_named(clean, tmp_path, mass, key):
    """A mass in grams, and one that is ten times too large."""
    run, path = clean
    text = path.read_text().replace('mass value="2.6"', f'mass value="{mass}"')
    (tmp_path / "arm.urdf").write_text(text)
    verdict, reasons = judged(run, tmp_path / "arm.urdf")
    assert verdict.use == "unusable"
    assert "elbow" in reasons[key]


def test_a_urdf_in_grams_is_refused(clean, tmp_path):
    """Before any fit, in one line that says so."""
    run, path = clean
    grams = re.sub(r'mass value="([\d.]+)"', lambda m: f'mass value="{1e3 * float(m[1])}"', path.read_text())
    (tmp_path / "arm.urdf").write_text(grams)
    given = load_arm(tmp_path / "arm.urdf", JOINTS)
    work = Identification(machine_of(JOINTS, given, {}), CONFIG, [run])
    with pytest.raises(RecordingError, match="masses in the URDF in grams"):
        check_torques(work.motions()["train"], given)


def test_differences_of_unfiltered_positions_are_doubted(clean):
    """`protocol: {moving: 0.05}` alone: 16-bit positions give accelerations that are mostly noise, measured velocities do not."""
    run, _ = clean
    quantum = 2.0 * np.pi / 65536
    coarse = replace(run, position=quantum * np.round(run.position / quantum), velocity=None)
    (reason,) = judge_filters([coarse], protocol())
    assert reason.key == "unfiltered"
    assert "position_filter" in reason.text
    assert not judge_filters([coarse], CONFIG.protocol)
    assert not judge_filters([run], protocol())
    assert not judge_filters([replace(run, velocity=None)], protocol())
