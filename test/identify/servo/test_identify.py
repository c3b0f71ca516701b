"""From recordings to a law: recovery, statements, splits and refusals."""

import json
from dataclasses import replace

import numpy as np
import pytest

from helpers import XL330, needs_xl330
from recovery import MX106, Bench, truth_of, virtual_logs
from stribeck.errors import ConfigError, RecordingError
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive, write_drive
from stribeck.files.schema import convert
from stribeck.identify.common.solver_status import SolverStatus
from stribeck.identify.servo.drive import fitted_drive
from stribeck.identify.servo.identify import errors_of, identify, snapshot
from stribeck.identify.servo.objective import split_runs
from stribeck.identify.servo.result import FitSettings
from stribeck.identify.servo.selection import check_freed
from stribeck.identify.servo.task import task_for
from stribeck.model.estimate import Estimate
from stribeck.model.law import law_named
from stribeck.model.log import Series
from stribeck.model.provenance import Spread
from stribeck.recordings.sources import read_recordings
from virtual import Encoder, record

STEP = 2.0 * np.pi / 4096.0
SMALL = Bench("mx106", (0.5, 1.5), 0.15, 0.05, (8.0, 32.0), 15.0)


@pytest.fixture(scope="module")
def logs():
    return virtual_logs(SMALL, truth_of(SMALL, "m3"), "m3", Encoder(STEP, STEP))


@pytest.fixture(scope="module")
def some(logs):
    """The runs at one gain: what is fitted to them is compiled once, for other files, too."""
    return [log for log in logs if log.setup.kp == 8]


@pytest.fixture(scope="module")
def servo():
    return load_actuator("mx106")


@pytest.mark.slow
def test_known_parameters_come_back_from_a_search_without_hints(logs, servo):
    """Law M3 from 16 noisy simulated runs: within 1 % of the truth, and the search knows it is done."""
    result = identify(task_for(split_runs(logs), servo, law_named("m3"), FitSettings(trials=30_000)))
    truth = truth_of(SMALL, "m3")
    for name, value in result.parameters.values().items():
        scale = max(abs(truth[name].value), 0.05 * (truth[name].upper - truth[name].lower))
        assert abs(value - truth[name].value) < 0.01 * scale, name
    assert result.search.outcome == "converged"
    # White noise of one step has a mean absolute value of 0.8 steps; rounding adds a little.
    assert result.train.mean < 1.0 * STEP
    assert set(result.uncertainty.intervals) == set(truth.free_names)


@pytest.mark.slow
def test_one_load_does_not_tell_constant_from_load_dependent_friction(logs, servo):
    """Both kinds of terms are not determined, and the statement says what to record."""
    one_load = [log for log in logs if log.setup.mass == 0.5]
    result = identify(task_for(split_runs(one_load), servo, law_named("m3"), FitSettings(trials=6_000)))
    assert {"friction_base", "load_friction_base"} <= set(result.uncertainty.not_determined)
    assert not {"friction_base", "load_friction_base"} & set(result.uncertainty.intervals)
    assert any(
        "the same load" in statement and "not determined" in statement
        for statement in result.uncertainty.statements
    )


@pytest.mark.slow
def test_a_parameter_file_says_all_that_the_result_knows(logs, servo, tmp_path):
    """The file round-trips and carries intervals, split, data, seed and versions."""
    settings = FitSettings(trials=1_000, seed=5, refine=False)
    result = identify(task_for(split_runs(logs, validation_kp=32), servo, law_named("m1"), settings))
    write_drive(tmp_path / "m1.json", fitted_drive(result))
    file = read_drive(tmp_path / "m1.json")
    assert file.values == result.parameters.values()
    block = file.provenance
    assert block.search.seed == 5
    assert block.runs.rule == "gain 32 held out"
    assert len(block.runs.validation) == len(result.validation.by_run) == 8
    assert block.runs.fingerprint.startswith("sha256:")
    assert file.intervals == result.uncertainty.intervals
    assert block.supply_voltage == Spread(nominal=15.0)
    assert file.stated == result.estimates
    assert file.estimates.keys() == file.values.keys()
    assert block.search.status == result.search.status
    summary = json.loads(json.dumps(result.summary(), allow_nan=False))
    assert convert(summary["estimates"], dict[str, Estimate], "summary") == result.estimates
    assert SolverStatus(summary["status"]) is result.search.status
    lists = {name: list(pair) for name, pair in file.intervals.items()}
    assert summary["intervals"] == lists, "keys that scripts use stay"
    train = [log for log in logs if log.setup.kp != 32]
    again = errors_of(train, file.actuator, file.law, file.values, result.settings)
    assert again.mean == pytest.approx(result.train.mean, rel=1e-12)


@pytest.mark.slow
def test_the_file_says_how_warm_the_servo_was(logs, servo, tmp_path):
    """Mean over the means of the fitted runs that tell it, and extremes; runs held out do not count."""

    def warmed(log, begin, end):
        time = log.position.time
        return replace(log, temperature=Series(time, np.linspace(begin, end, len(time)), held=False))

    train = [log for log in logs if log.setup.kp == 8]
    held_out = [warmed(log, 90.0, 90.0) for log in logs if log.setup.kp != 8]
    told = [warmed(train[0], 30.0, 34.0), warmed(train[1], 38.0, 42.0), *train[2:]]
    split = split_runs([*told, *held_out], validation_kp=32)
    result = identify(task_for(split, servo, law_named("m1"), FitSettings(trials=200, refine=False)))
    write_drive(tmp_path / "m1.json", fitted_drive(result))
    file = read_drive(tmp_path / "m1.json")
    assert file.temperatures == Spread(mean=36.0, min=30.0, max=42.0)
    assert file.temperature == pytest.approx(36.0)


@pytest.mark.slow
def test_a_fixed_parameter_keeps_its_value(logs, servo):
    """--set values hold, even outside the search bounds, and are told apart from identified ones."""
    task = task_for(split_runs(logs), servo, law_named("m1"), FitSettings(trials=1_000), fixed={"kt": 5.0})
    result = identify(task)
    assert result.parameters["kt"].value == 5.0
    assert fitted_drive(result).stated["kt"].status == "fixed"
    assert "kt" not in result.uncertainty.intervals


@pytest.mark.slow
def test_one_seed_gives_one_result(logs, servo):
    """The same seed gives the same parameters to the last bit."""
    task = task_for(split_runs(logs), servo, law_named("m1"), FitSettings(trials=2_000, seed=3))
    assert identify(task).parameters.values() == identify(task).parameters.values()


@pytest.mark.slow
def test_asymmetric_friction_is_told_from_symmetric(servo):
    """A joint with more friction one way comes back as such."""
    law = law_named("m1").with_terms(asymmetric=True)
    truth = {
        **truth_of(SMALL, "m1").values(),
        "friction_base_negative": 0.16,
        "friction_viscous_negative": 0.08,
    }
    runs = record(servo, law, truth, list(SMALL.plays()), Encoder(STEP, STEP), np.random.default_rng(0))
    result = identify(task_for(split_runs(runs), servo, law, FitSettings(trials=30_000)))
    for name in ("friction_base", "friction_base_negative", "friction_viscous", "friction_viscous_negative"):
        assert result.parameters[name].value == pytest.approx(truth[name], rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("trials", [1, 700])
def test_even_a_tiny_budget_gives_a_result(some, servo, trials):
    """Fewer trials than one batch still end with a point, not with an error."""
    result = identify(task_for(split_runs(some), servo, law_named("m1"), FitSettings(trials=trials)))
    assert np.isfinite(result.train.mean)


@pytest.mark.slow
def test_an_interrupt_keeps_the_best_point(some, servo):
    """Ctrl-C in the middle of a search gives a result that says so, without intervals."""

    def interrupt(incumbent):
        if incumbent.unit is not None and len(incumbent.history) > 2:
            raise KeyboardInterrupt

    task = task_for(split_runs(some), servo, law_named("m1"), FitSettings(trials=20_000))
    result = identify(task, interrupt)
    assert result.search.outcome == "interrupted"
    assert result.uncertainty is None
    assert "not finished" in result.summary()["statements"][0]


@pytest.mark.slow
def test_a_snapshot_is_a_whole_parameter_file(logs, servo):
    """The best-so-far file can be read like any other."""
    found = []
    task = task_for(split_runs(logs[:4]), servo, law_named("m1"), FitSettings(trials=3_000))
    identify(
        task,
        lambda incumbent: (
            found.append(snapshot(task, incumbent, 0.0)) if incumbent.unit is not None else None
        ),
    )
    assert found[0].search.outcome == "running"
    assert found[-1].train.mean <= found[0].train.mean


def test_parts_that_do_not_go_together_are_refused(logs, servo):
    """Every wrong combination is one clear error before anything is simulated."""
    law, split, settings = law_named("m1"), split_runs(logs), FitSettings()
    with pytest.raises(ConfigError, match="unknown parameter 'ktt'; valid: kt, R"):
        task_for(split, servo, law, settings, fixed={"ktt": 1.0})
    with pytest.raises(Exception, match="fixed: kt must be positive"):
        task_for(split, servo, law, settings, fixed={"kt": -1.0})
    with pytest.raises(ConfigError, match="valid here: current_limit, command_delay, torque_saturation"):
        task_for(split, servo, law, settings, freed=["kt"])
    with pytest.raises(ConfigError, match="all parameters are fixed"):
        task_for(split, servo, law, settings, fixed=servo.parameters(law).values())
    with pytest.raises(ConfigError, match="the recordings are of the servo 'mx106'"):
        task_for(split, load_actuator("xl330"), law, settings)
    mixed = [logs[0], replace(logs[1], actuator="xl330")]
    with pytest.raises(RecordingError, match="different actuators"):
        task_for(split_runs(mixed), servo, law, settings)


def test_splits():
    """One gain, a share, or nothing held out; impossible wishes are refused with what there is."""
    logs = virtual_logs(SMALL, truth_of(SMALL, "m1"), "m1", Encoder(0.0))
    by_gain = split_runs(logs, validation_kp=8)
    assert {log.setup.kp for log in by_gain.validation} == {8.0}
    assert {log.setup.kp for log in by_gain.train} == {32.0}
    share = split_runs(logs, validation_fraction=0.25, seed=1)
    assert (len(share.train), len(share.validation)) == (12, 4)
    assert share.validation == split_runs(logs, validation_fraction=0.25, seed=1).validation
    with pytest.raises(ConfigError, match=r"no run has gain 99, .* gains of the runs: 8, 32"):
        split_runs(logs, validation_kp=99)
    with pytest.raises(ConfigError, match="exclude each other"):
        split_runs(logs, validation_kp=8, validation_fraction=0.5)
    for share in (0.0, 1.0, -1.0, 1e-9):
        with pytest.raises(ConfigError):
            split_runs(logs, validation_fraction=share)


def test_freeing_an_effect_needs_more_than_one_gain():
    """Leave-one-gain-out means nothing with one gain."""
    actuator = load_actuator("mx106").with_effects(["delay"])
    one_gain = [
        log for log in virtual_logs(MX106, truth_of(MX106, "m1"), "m1", Encoder(0.0)) if log.setup.kp == 8
    ]
    task = task_for(split_runs(one_gain), actuator, law_named("m1"), FitSettings(), freed=["command_delay"])
    with pytest.raises(ConfigError, match="have only one gain"):
        check_freed(task, ["command_delay"])


@pytest.mark.slow
def test_a_real_delay_may_be_freed_and_a_missing_one_is_refused(servo):
    """A delay that is there lowers the error at every gain left out; free where there is none, it does not."""
    law, actuator = law_named("m1"), servo.with_effects(["delay"])
    truth = truth_of(SMALL, "m1").values()
    plays = list(SMALL.plays())
    settings = FitSettings(trials=4_000)
    late = record(
        actuator, law, {**truth, "command_delay": 0.02}, plays, Encoder(STEP, STEP), np.random.default_rng(0)
    )
    task = task_for(split_runs(late), actuator, law, settings, freed=["command_delay"])
    figures = check_freed(task, ["command_delay"])
    assert all(figure.free < figure.fixed for figure in figures)


@needs_xl330
@pytest.mark.slow
def test_a_free_current_limit_is_refused_on_the_real_recordings():
    """It lowers the training error and raises the error at gains left out."""
    actuator = load_actuator("xl330").with_effects(["current-limit", "supply"])
    logs = read_recordings(XL330, arm_mass=0.0)
    task = task_for(
        split_runs(logs), actuator, law_named("m6"), FitSettings(trials=10_000), freed=["current_limit"]
    )
    with pytest.raises(ConfigError, match=r"not identified: .*gain 400: .* mrad fixed, .* mrad free"):
        check_freed(task, ["current_limit"])


@needs_xl330
@pytest.mark.slow
@pytest.mark.parametrize(
    ("law_name", "most"), [("m1", 48.2), ("m2", 48.2), ("m3", 29.2), ("m4", 23.3), ("m5", 21.7), ("m6", 21.6)]
)
def test_real_recordings_are_fitted_whatever_the_seed(law_name, most):
    """Every seed reaches the error of a well-converged search [mrad]; M2 contains M1."""
    logs = read_recordings(XL330, arm_mass=0.0)
    for seed in range(5):
        settings = FitSettings(trials=20_000, seed=seed)
        result = identify(task_for(split_runs(logs), load_actuator("xl330"), law_named(law_name), settings))
        assert 1e3 * result.train.mean <= most, seed


@needs_xl330
@pytest.mark.slow
def test_with_effects_the_fit_extrapolates_to_a_higher_gain():
    """Fitted on gains 100 and 200, the error on 400 stays at most 50 mrad."""
    actuator = load_actuator("xl330").with_effects(["current-limit", "supply"])
    split = split_runs(read_recordings(XL330, arm_mass=0.0), validation_kp=400)
    result = identify(task_for(split, actuator, law_named("m6"), FitSettings()))
    assert 1e3 * result.validation.mean <= 50.0


@needs_xl330
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("law_name", "effects", "error"),
    [("m6", (), 20.9), ("m4", ("saturation",), 15.9)],
)
def test_the_search_ends_at_the_same_error_from_every_seed(law_name, effects, error, seed):
    """The real XL330 with its current limit and supply: converged, within 0.1 mrad of these errors [mrad]."""
    servo = load_actuator("xl330").with_effects(("current-limit", "supply", *effects))
    logs = read_recordings(XL330, arm_mass=0.0)
    result = identify(task_for(split_runs(logs), servo, law_named(law_name), FitSettings(seed=seed)))
    assert result.search.outcome == "converged"
    assert abs(1e3 * result.train.mean - error) < 0.1
