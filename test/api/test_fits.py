"""Fits: tables, files, draws, friction, and what they refuse."""

import json
from dataclasses import replace

import matplotlib
import numpy as np
import pytest

import stribeck as sb
import stribeck.exports.draws
from api_made import HALF, VALUES, drive_made, file_of_joints
from drawn_made import uncertain_drive
from helpers import REPOSITORY
from stribeck.evaluate.draws import draws_of, uncertain_of
from stribeck.files.drives import Drives
from stribeck.model.terms.term import Term
from stribeck.model.verdict import Reason, Verdict

BAGS = REPOSITORY / "bags" / "xl330_simulated"


@pytest.fixture(scope="module")
def runs():
    return sb.load(BAGS)


def test_a_saved_fit_is_the_fit(tmp_path):
    """Values, intervals, verdict and the printed table survive the file; one saved again has the same content."""
    fresh = sb.Fit(Drives({"": drive_made()}))
    path = fresh.save(tmp_path / "p.json")
    read = sb.read(str(path))
    assert read.parameters == fresh.parameters == VALUES
    assert read.intervals == fresh.intervals
    assert repr(read) == repr(fresh)
    again = read.save(tmp_path / "again.json")
    assert json.loads(again.read_text()) == json.loads(path.read_text())


def test_the_table_says_value_interval_unit_status_and_verdict():
    text = repr(sb.Fit(Drives({"": drive_made()})))
    row = next(line.split() for line in text.splitlines() if line.startswith("friction_base"))
    assert row[:3] == ["friction_base", "0.01", "0.008"]
    assert text.splitlines()[-1] == "verdict: usable"
    html = sb.Fit(Drives({"<b>": drive_made()}))._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<td>friction_base</td>" in html


def test_a_data_frame_has_a_row_for_each_parameter():
    frame = sb.Fit(Drives({"a": drive_made(), "b": drive_made(kt=0.5)})).to_dataframe()
    assert frame.loc[("b", "kt"), "value"] == 0.5
    assert frame.loc[("a", "R"), "lower"] == pytest.approx(VALUES["R"] - HALF["R"])
    assert len(frame) == 2 * len(VALUES)


def test_several_joints_are_taken_one_by_one(tmp_path):
    fit = sb.read(file_of_joints(tmp_path / "p.json", "shoulder", "elbow"))
    assert fit.joints == ("shoulder", "elbow")
    assert fit["elbow"].parameters == VALUES
    with pytest.raises(sb.StribeckError, match=r"shoulder, elbow: choose one with fit\[NAME\]"):
        fit.draw(3)
    with pytest.raises(sb.StribeckError, match="no joint 'wrist'; valid: shoulder, elbow"):
        fit["wrist"]
    one = fit["elbow"].save(tmp_path / "one.json")
    assert sb.read(one).parameters == VALUES


def test_the_verdict_of_all_joints_is_stated():
    doubt = Verdict((Reason("key", "doubtful", "why"),))
    fit = sb.Fit(Drives({"a": drive_made(), "b": drive_made()}, verdict=doubt))
    assert fit.verdict.use == "doubtful"
    assert repr(fit).endswith("verdict: doubtful\n  doubtful: why")


def test_draws_are_as_wide_as_the_intervals_and_correlated():
    """Mean, standard deviation and correlation of many draws are those that the file states; others are constant."""
    drawn = draws_of(drive_made(), 20_000, seed=1)
    assert np.std(drawn["kt"]) == pytest.approx(HALF["kt"] / 1.96, rel=0.03)
    assert np.mean(drawn["kt"]) == pytest.approx(VALUES["kt"], abs=3e-4)
    assert np.corrcoef(drawn["kt"], drawn["R"])[0, 1] == pytest.approx(0.9, abs=0.01)
    assert np.all(drawn["armature"] == VALUES["armature"])
    same = draws_of(drive_made(), 20_000, seed=1)
    assert all(np.array_equal(drawn[name], same[name]) for name in drawn)
    assert not np.array_equal(draws_of(drive_made(), 20_000, seed=2)["kt"], drawn["kt"])


def test_draws_stay_within_bounds_without_heaps_at_them():
    """Of a friction near zero half the normal draws are negative: none of those returned is, and none is exactly zero."""
    drive = drive_made(friction_base=0.001)
    drawn = draws_of(drive, 4000, seed=0)["friction_base"]
    known = uncertain_of(drive)
    k = known.names.index("friction_base")
    assert known.lower[k] == 0.0
    assert np.all(drawn > 0.0)
    assert np.all(drawn < known.upper[k])


def test_draws_are_right_where_hardly_any_normal_one_is_within_bounds():
    """A mean at the corner of two correlated bounds, far in the tail: mean and spread are those of the cut-off distribution."""
    from stribeck.evaluate.draws import Uncertain, _gibbs, _within

    mean, covariance = np.zeros(2), np.array([[1.0, 0.5], [0.5, 1.0]])
    lower, upper = np.full(2, 0.5), np.full(2, 3.0)
    known = Uncertain(("a", "b"), mean, covariance, lower, upper)
    exact = _within(known, 40_000, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    start = np.clip(rng.multivariate_normal(mean, covariance, 40_000), lower, upper)
    moved = _gibbs(known, start, rng)
    assert moved.mean(axis=0) == pytest.approx(exact.mean(axis=0), abs=0.02)
    assert np.cov(moved.T) == pytest.approx(np.cov(exact.T), abs=0.02)


def test_no_draws_are_refused():
    with pytest.raises(sb.StribeckError, match="at least one draw, found 0"):
        sb.Fit(Drives({"": drive_made()})).draw(0)


def test_friction_is_the_budget_of_the_law_and_broadcasts():
    fit = sb.Fit(Drives({"": drive_made()}))
    found = fit.friction(np.array([[-2.0], [0.0], [2.0]]), np.zeros(4))
    assert found.shape == (3, 4)
    assert found[:, 0] == pytest.approx([0.02, 0.01, 0.02])


def test_friction_over_the_position_needs_the_position():
    """Of any term of the budget, whatever it is called; the offset over the position is no friction and needs none."""
    drive = drive_made()
    detent = Term("detent", "a detent", "dry", (), lambda x, xp: 0.5 * xp.abs(x.position))
    notched = replace(drive, law=replace(drive.law, terms=(*drive.law.terms, detent)))
    with pytest.raises(sb.StribeckError, match="depends on the position: give the position"):
        sb.Fit(Drives({"": notched})).friction(1.0)
    plain = sb.Fit(Drives({"": drive})).friction(1.0)
    assert sb.Fit(Drives({"": notched})).friction(1.0, position=0.2) == pytest.approx(plain + 0.1)
    wave = {"ripple_order": 4.0, "ripple_cosine": 0.01, "ripple_sine": 0.0}
    rippled = replace(drive, law=drive.law.with_terms(ripple=True), values={**drive.values, **wave})
    assert sb.Fit(Drives({"": rippled})).friction(1.0) == plain


def test_a_prediction_has_motion_band_and_picture(runs, tmp_path):
    fit = sb.Fit(Drives({"": drive_made()}), runs=runs)
    prediction = fit.predict(runs[0])
    assert prediction.time.shape == prediction.position.shape == prediction.band.shape
    assert np.all(np.isnan(prediction.band)), "no prediction is stated"
    assert np.isnan(prediction.coverage)
    assert 0.0 < prediction.error < 0.5
    matplotlib.use("Agg")
    axes = prediction.plot()
    assert [line.get_label().split(",")[0] for line in axes.lines] == ["goal", "measured", "predicted"]
    assert axes.get_xlabel() == "time [s]"
    assert prediction.plot(axes) is axes
    matplotlib.pyplot.close(axes.figure)


def test_a_prediction_is_of_one_run_of_the_same_servo(runs):
    fit = sb.Fit(Drives({"": drive_made()}))
    with pytest.raises(sb.StribeckError, match=r"needs one run, found 36: choose one, for example runs\[0\]"):
        fit.predict(runs)
    assert fit.predict(runs[:1]).name == runs[0].name


def test_a_report_is_on_recordings_or_on_the_file_alone(runs, tmp_path):
    fit = sb.read(file_of_joints(tmp_path / "p.json"))
    assert "Friction against motion, without load" in fit.report(tmp_path / "r.html").read_text()
    with pytest.raises(sb.StribeckError, match=r"a name that ends in \.html"):
        fit.report(tmp_path / "r.pdf", runs)
    page = fit.report(tmp_path / "r.html", runs[:2]).read_text()
    assert runs[0].name in page


def test_files_of_mechanisms_are_read(tmp_path):
    """Estimates of the whole; what needs a drive says that there is none; saving copies the file."""
    path = tmp_path / "m.json"
    path.write_text(
        '{"schema": 1, "kind": "mechanism", "model": "furuta", "parameters": '
        '{"mass": {"value": 0.2, "unit": "kg", "status": "fixed"}}}'
    )
    fit = sb.read(path)
    assert fit.parameters == {"mass": 0.2}
    assert fit.joints == ()
    with pytest.raises(sb.StribeckError, match="need the actuator and the law"):
        fit.draw(3)
    assert sb.read(fit.save(tmp_path / "copy.json")).estimates == fit.estimates


def test_a_file_that_is_no_fit_is_one_line(tmp_path):
    (tmp_path / "x.json").write_text("[1]")
    for name in ("x.json", "missing.json"):
        with pytest.raises(sb.StribeckError, match=name) as error:
            sb.read(tmp_path / name)
        assert "\n" not in str(error.value)


def test_draws_with_the_error_of_the_model_are_wider(monkeypatch):
    """As exports are: friction and motor torque vary as much as the file says that the model errs; a file that says nothing is refused."""
    monkeypatch.setattr(stribeck.exports.draws, "TRIALS", 16)
    drive = uncertain_drive("m1", share=0.002)
    fit = sb.Fit(Drives({"": drive}))
    own, wide = fit.draw(200), fit.draw(200, model_error=True)
    assert np.std(wide["R"]) > 3.0 * np.std(own["R"])
    np.testing.assert_array_equal(wide["armature"], own["armature"])
    with pytest.raises(sb.StribeckError, match="states no model error"):
        sb.Fit(Drives({"": drive_made()})).draw(3, model_error=True)
