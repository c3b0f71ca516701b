"""Files held against recordings: which runs were fitted, what is known, which law is best."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from helpers import refusal
from recovery import truth_of
from reporting import BENCH, assessed, file_of, logs_of, provenance_of, stated_of, values_of
from stribeck.evaluate.judgement import carries_over, compare, judge
from stribeck.evaluate.trends import trend
from stribeck.files.drives import read_drive, write_drive
from stribeck.identify.servo.incumbent import Incumbent
from stribeck.identify.servo.uncertainty import Uncertainty, equally_good, with_minima
from stribeck.model.estimate import at_bound, estimate_of, fixed
from stribeck.model.log import Series


@pytest.fixture(scope="module")
def logs():
    return logs_of("m3")[:8]


def test_runs_are_known_by_their_content_not_their_names(logs):
    """Renamed recordings keep their role, others by the same name have none of a fit."""
    told = provenance_of(logs[:4], logs[4:6])
    renamed = [replace(log, name=f"renamed {k}") for k, log in enumerate(logs)]
    (one,) = assessed({"m3": file_of("m3", told)}, renamed).files
    assert list(one.roles.values()) == ["fitted"] * 4 + ["held out"] * 2 + ["not in the fit"] * 2
    assert one.same_data
    swapped = [replace(log, name=other.name) for log, other in zip(logs[6:], logs[:2], strict=True)]
    (one,) = assessed({"m3": file_of("m3", told)}, swapped).files
    assert set(one.roles.values()) == {"not in the fit"}
    assert one.same_data is False


def test_older_files_are_matched_by_names_if_the_digest_of_all_agrees(logs):
    """They have no digest of each run; with other content under the same names nothing is claimed."""
    told = provenance_of(logs[:4], logs[4:6])
    old = replace(told, runs=replace(told.runs, digests={}))
    (one,) = assessed({"m3": file_of("m3", old)}, logs).files
    assert (one.matched, one.same_data) == ("name", True)
    assert list(one.roles.values()) == ["fitted"] * 4 + ["held out"] * 2 + ["not in the fit"] * 2
    other = [replace(log, setup=replace(log.setup, mass=log.setup.mass + 0.1)) for log in logs]
    (one,) = assessed({"m3": file_of("m3", old)}, other).files
    assert (one.matched, one.same_data, set(one.roles.values())) == ("nothing", False, {"not stated"})


def test_a_file_with_values_alone_determines_nothing(logs):
    """As other programs write them."""
    (one,) = assessed({"m3": file_of("m3", None)}, logs[:2]).files
    assert {known.standing for known in one.known} == {"not stated"}
    assert set(one.roles.values()) == {"not stated"}


def test_a_parameter_without_interval_or_at_a_bound_is_not_determined(logs):
    """Whatever else the file says."""
    stated = stated_of("m3")
    stated |= {
        "q_offset": fixed(0.0, "rad"),
        "R": at_bound(stated["R"].value, "ohm", "upper"),
        "kt": estimate_of(stated["kt"].value, "N m/A", None),
    }
    (one,) = assessed({"m3": file_of("m3", provenance_of(logs), stated=stated)}, logs).files
    standing = {known.name: known.standing for known in one.known}
    assert standing.pop("kt") == "not determined"
    assert standing.pop("R") == "at a bound"
    assert standing.pop("q_offset") == "fixed"
    assert set(standing.values()) == {"determined"}


def test_two_fits_of_a_law_that_are_as_good_take_back_each_others_certainty(logs):
    """Without a Stribeck term its exponent is without effect; a fit that is worse takes back nothing."""
    told = provenance_of(logs)
    faded = {**values_of("m3"), "friction_stribeck": 0.0, "load_friction_stribeck": 0.0}
    near = file_of("m4", told, values={**faded, "alpha": 7.0})
    far = file_of("m4", told, values={**faded, "kt": 1.5 * faded["kt"]})
    one, two, _ = assessed(
        {"a": file_of("m4", told, values={**faded, "alpha": 2.0}), "b": near, "c": far}, logs
    ).files
    for found in (one, two):
        (taken,) = found.standing("not determined")
        assert taken.name == "alpha"
        assert "the same error" in taken.why


@pytest.mark.parametrize(("other", "standing"), [(2.5, "loosely determined"), (7.0, "not determined")])
def test_a_loosely_determined_value_stays_so_while_fits_as_good_agree_on_it(logs, other, standing):
    """Half the spread of the values, 0.25 or 2.5, against half of the value, 1."""
    faded = {**values_of("m3"), "friction_stribeck": 0.0, "load_friction_stribeck": 0.0}
    loose = estimate_of(2.0, "1", (1.5, 2.5), bounds=(0.0, 10.0))
    stated = {**stated_of("m4"), "alpha": loose}
    told = provenance_of(logs)
    files = {
        "a": file_of("m4", told, values={**faded, "alpha": 2.0}, stated=stated),
        "b": file_of("m4", told, values={**faded, "alpha": other}),
    }
    one = assessed(files, logs).files[0]
    assert {known.name: known.standing for known in one.known}["alpha"] == standing


def test_values_that_leave_all_bounds_are_refused_in_one_line(logs):
    """A motor constant in other units."""
    file = file_of("m3", None, values={"kt": 1e200, "R": 1e-200})
    refusal(lambda: assessed({"wild": file}, logs[:1]), "wild.json", "SI units")


def test_laws_are_judged_on_runs_that_no_fit_has_seen(logs):
    """The law that made the recordings wins there; without such runs the fitted ones count."""
    files = {law: file_of(law, provenance_of(logs[:5], logs[5:])) for law in ("m1", "m3")}
    found = judge(assessed(files, logs))
    assert (found.basis, found.best, found.simplest) == ("held out", "m3", "m3")
    assert found.runs == tuple(log.name for log in logs[5:])
    everywhere = {law: file_of(law, provenance_of(logs)) for law in ("m1", "m3")}
    assert judge(assessed(everywhere, logs)).basis == "fitted"
    mixed = {"m1": file_of("m1", None), "m3": everywhere["m3"]}
    assert judge(assessed(mixed, logs)).basis == "all"


def test_a_simpler_law_that_does_as_well_is_named(logs):
    """M4 with its Stribeck terms at zero is M3."""
    none = {"friction_stribeck": 0.0, "load_friction_stribeck": 0.0, **values_of("m3")}
    files = {
        "m4": file_of("m4", provenance_of(logs), values=none),
        "m3": file_of("m3", provenance_of(logs)),
    }
    found = judge(assessed(files, logs))
    assert found.simplest == "m3"
    assert {other.outcome for other in found.comparisons} == {"as good"}


def test_a_comparison_by_hand():
    """Differences 1, 2, 3: mean 2, standard error 1/sqrt(3), t of two degrees of freedom 4.3027."""
    best = np.array([10.0, 10.0, 10.0])
    found = compare("other", np.array([11.0, 12.0, 13.0]), best)
    assert found.more == pytest.approx(2.0)
    assert found.interval == pytest.approx((2.0 - 4.302653 / 3**0.5, 2.0 + 4.302653 / 3**0.5))
    assert found.outcome == "undecided"
    assert compare("other", np.array([11.9, 12.0, 12.1]), best).outcome == "worse"
    assert compare("other", best + 0.4, best).outcome == "as good"
    assert compare("other", best[:2] + 5.0, best[:2]).interval is None


def test_what_carries_over_is_a_ratio_of_means(logs):
    """Mean error of held-out runs over that of fitted ones; nothing without either."""
    (one,) = assessed({"m1": file_of("m1", provenance_of(logs[:5], logs[5:]))}, logs).files
    errors = list(one.runs.values())
    by_hand = np.mean([run.error for run in errors[5:]]) / np.mean([run.error for run in errors[:5]])
    assert carries_over(one) == pytest.approx(by_hand)
    (one,) = assessed({"m1": file_of("m1", provenance_of(logs))}, logs).files
    assert carries_over(one) is None


def test_a_trend_is_the_median_of_each_bin():
    """A residual that is its own abscissa, with holes."""
    x = np.linspace(-1.0, 1.0, 2401)
    found = trend(np.where(np.arange(2401) % 7 == 0, np.nan, x), 3.0 * x)
    assert found.median == pytest.approx(3.0 * found.centre, abs=0.02)
    assert np.all((found.low < found.median) & (found.median < found.high))
    assert len(trend(np.full(5, 1.0), np.full(5, 1.0)).centre) == 0
    assert len(trend(np.full(100, 31.0), np.arange(100.0)).centre) == 1


def test_a_gap_of_the_measurement_is_no_residual(logs):
    """Samples that were not measured are left out of errors and lines."""
    log = logs[0]
    kept = (log.position.time < 2.0) | (log.position.time > 3.0)
    holed = replace(log, position=Series(log.position.time[kept], log.position.value[kept], held=False))
    (one,) = assessed({"m3": file_of("m3", None)}, [holed]).files
    run = one.runs[log.name]
    missing = np.isnan(run.residual)
    assert 150 < missing.sum() < 220
    assert run.error == pytest.approx(np.mean(np.abs(run.residual[~missing])))


def test_minima_as_good_as_the_best_take_back_narrow_intervals():
    """One within 1 % of the best loss that lies elsewhere; one that is worse, and the best one again, do not count."""
    parameters = truth_of(BENCH, "m1")
    best = np.full(len(parameters.free), 0.5)
    elsewhere, worse = best.copy(), np.full_like(best, 0.9)
    elsewhere[0] = 0.7
    incumbent = Incumbent(1000, lambda: 1, loss=0.01, unit=best)
    incumbent.settle([best, elsewhere, worse], [0.01, 0.01005, 0.0102])
    minima = equally_good(parameters, best, incumbent)
    assert [list(minimum.values.values()) for minimum in minima] == [
        pytest.approx(list(parameters.from_unit(point))) for point in (best, elsewhere)
    ]
    name = parameters.free_names[0]
    sure = Uncertainty({name: estimate_of(1.0, "1", (0.99, 1.01))}, (), "runs")
    found = with_minima(sure, parameters, minima)
    assert set(found.not_determined) == {name}
    assert "minima" in found.statements[0]
    assert with_minima(sure, parameters, minima[:1]) == sure


def test_what_a_fit_adds_to_its_file_comes_back_and_is_checked(tmp_path, logs):
    """Correlation, minima and convergence; a matrix that does not fit its names is refused."""
    path = tmp_path / "m3.json"
    content = file_of("m3", provenance_of(logs))
    write_drive(path, content)
    assert read_drive(path) == content
    for key, value, part in (
        ("correlation", {"names": ["kt"], "matrix": [[1.0], [1.0]]}, "1 rows"),
        ("correlation", {"names": ["kt"], "matrix": [[2.0]]}, "between -1 and 1"),
        ("minima", [{"error": 1.0}], "values missing"),
        ("minima", {}, "expected a list"),
        ("convergence", [[1.0, 2.0, 3.0]], "expected 2 values"),
    ):
        data = json.loads(path.read_text())
        block = data["stribeck"]
        (block if key == "correlation" else block["provenance"]["search"])[key] = value
        damaged = tmp_path / "damaged.json"
        damaged.write_text(json.dumps(data))
        assert part in refusal(partial(read_drive, damaged), key)


def test_temperatures_are_read_where_the_servo_tells_them(logs):
    """A run without temperature adds nothing to that trend; no run with one leaves no trend."""
    silent = [replace(log, temperature=None) for log in logs]
    (one,) = assessed({"m3": file_of("m3", None)}, silent).files
    assert set(one.trends) == {"velocity", "position"}
    (one,) = assessed({"m3": file_of("m3", None)}, [logs[0], silent[1]]).files
    assert set(one.trends) == {"velocity", "position", "temperature"}
