"""The batched simulation is the numpy simulation, and its derivatives are derivatives."""

from dataclasses import replace

import numpy as np
import pytest

from helpers import XL330, needs_xl330
from recovery import EROB, MX106, truth_of, virtual_runs
from stribeck.files.actuators import load_actuator
from stribeck.identify.servo.objective import equivalent_error, smooth_absolute
from stribeck.identify.servo.programs import lanes_for
from stribeck.identify.servo.rollout import Rollout
from stribeck.model.law import LAWS, law_named
from stribeck.model.log import batch_of
from stribeck.model.step import simulate
from stribeck.recordings.sources import read_recordings


def few(bench, law_name, runs=8):
    truth = truth_of(bench, law_name)
    batch = virtual_runs(bench, truth, law_name)
    logs = batch.logs[:: len(batch.logs) // runs]
    return batch_of([log.resample(0.005) for log in logs]), truth


def reference_losses(rollout, points):
    """The same losses from the numpy time step."""
    found = []
    for point in points:
        values = rollout.parameters.with_vector(rollout.parameters.from_unit(point)).values()
        motion = simulate(
            rollout.batch,
            rollout.actuator,
            rollout.law,
            values,
            reset_period=rollout.reset_period,
            integrator=rollout.integrator,
        )
        found.append(np.sum(rollout.batch.weight * smooth_absolute(motion.position - rollout.batch.position)))
    return np.array(found)


@pytest.mark.ci
@pytest.mark.parametrize(
    "law_name",
    [pytest.param(law, marks=[] if law in ("m1", "m6") else pytest.mark.slow) for law in LAWS],
)
def test_float64_rollout_is_the_numpy_simulation(law_name):
    """The compiled losses equal numpy's to rounding, for any candidate."""
    batch, truth = few(MX106, law_name, 4)
    rollout = Rollout(batch, load_actuator("mx106"), law_named(law_name), truth, dtype="float64")
    points = np.vstack(
        [truth.to_unit(truth.vector()), np.random.default_rng(1).random((3, rollout.dimension))]
    )
    # Knife-edges of sticking amplify rounding; a few ulp over 1200 steps stay far below this.
    np.testing.assert_allclose(
        rollout.losses(points), reference_losses(rollout, points), rtol=1e-7, atol=1e-12
    )


@pytest.mark.ci
def test_compiled_programs_are_those_of_their_own_runs():
    """Loads and gains are part of a compiled program: a rollout of other runs of one shape compiles its own."""
    batch, truth = few(MX106, "m1", 4)
    logs = [
        replace(log, setup=replace(log.setup, mass=1.5 * log.setup.mass, kp=0.5 * log.setup.kp))
        for log in batch.logs
    ]
    heavier = batch_of([log.resample(0.005) for log in logs])
    first = Rollout(batch, load_actuator("mx106"), law_named("m1"), truth, dtype="float64")
    point = truth.to_unit(truth.vector())[None]
    before = first.losses(point)
    other = replace(first, batch=heavier)
    np.testing.assert_allclose(other.losses(point), reference_losses(other, point), rtol=1e-7)
    assert other.losses(point) != pytest.approx(before, rel=0.01)
    assert first.losses(point) == before


def test_another_reset_period_needs_no_compilation():
    """Resets are inputs of the compiled programs."""
    batch, truth = few(MX106, "m1", 4)
    first = Rollout(batch, load_actuator("mx106"), law_named("m1"), truth, dtype="float64")
    point = truth.to_unit(truth.vector())[None]
    first.losses(point)
    spent = first.meter.compile_seconds
    short = first.with_reset_period(0.5)
    np.testing.assert_allclose(short.losses(point), reference_losses(short, point), rtol=1e-7, atol=1e-12)
    assert first.meter.compile_seconds == spent


@pytest.mark.slow
def test_programs_compiled_ahead_are_those_that_are_called():
    """After the compilation ahead no further program is compiled, and derivatives and scores are the same."""
    batch, truth = few(MX106, "m1", 4)
    plain, prepared = (
        Rollout(batch, load_actuator("mx106"), law_named("m1"), truth, dtype="float64", tangent_lanes=2)
        for _ in range(2)
    )
    point = truth.to_unit(truth.vector())[None]
    prepared.prepare(1.0)
    for found, expected in zip(prepared.normal_equations(point), plain.normal_equations(point), strict=True):
        np.testing.assert_array_equal(found, expected)
    for found, expected in zip(prepared.scores(point, 1.0), plain.scores(point, 1.0), strict=True):
        np.testing.assert_array_equal(found, expected)
    compiled = prepared._programs._found
    assert len(compiled) == 3  # with that of losses


@pytest.mark.slow
@needs_xl330
def test_float32_stays_within_a_hundredth_of_a_milliradian_on_real_runs():
    """The stated tolerance of the search's arithmetic, on the published parameters and real commands."""
    actuator, law = load_actuator("xl330"), law_named("m6")
    batch = batch_of([log.resample(0.005) for log in read_recordings(XL330, arm_mass=0.0)])
    parameters = actuator.parameters(law)
    values = actuator.published["m6"]
    unit = parameters.to_unit([values[name] for name in parameters.free_names])[None]
    rollout = Rollout(batch, actuator, law, parameters)
    assert abs(rollout.losses(unit)[0] - reference_losses(rollout, unit)[0]) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"reset_period": 0.5}, {"integrator": "paper"}, {"integrator": "bam"}])
def test_options_reach_the_compiled_simulation(options):
    """Reset period and integrator act as in numpy."""
    batch, truth = few(MX106, "m4", 4)
    rollout = Rollout(batch, load_actuator("mx106"), law_named("m4"), truth, dtype="float64", **options)
    points = np.random.default_rng(2).random((2, rollout.dimension))
    np.testing.assert_allclose(rollout.losses(points), reference_losses(rollout, points), rtol=1e-7)


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("freed", [(), ("current_limit", "command_delay")])
def test_effects_reach_the_compiled_simulation(freed):
    """Current limit, delay and supply act as in numpy, fixed or free."""
    actuator = load_actuator("xl330").with_effects(("current-limit", "delay", "supply"))
    truth = load_actuator("mx106")
    batch, _ = few(MX106, "m1", 4)
    assert truth.name == "mx106"
    parameters = actuator.parameters(law_named("m3")).with_values({"command_delay": 0.0123}).freed(freed)
    rollout = Rollout(batch, actuator, law_named("m3"), parameters, dtype="float64")
    points = np.random.default_rng(3).random((3, rollout.dimension))
    np.testing.assert_allclose(rollout.losses(points), reference_losses(rollout, points), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("bench", "law_name"), [(MX106, "m3"), (EROB, "m2")])
def test_gradient_is_that_of_finite_differences(bench, law_name):
    """Forward derivatives equal central differences of the loss, away from kinks."""
    batch, truth = few(bench, law_name, 4)
    rollout = Rollout(batch, load_actuator(bench.actuator), law_named(law_name), truth, dtype="float64")
    # Short stretches keep the loss smooth enough for differences.
    rollout = rollout.with_reset_period(0.1)
    point = np.clip(truth.to_unit(truth.vector()) + 0.02, 0.0, 1.0)
    step = 1e-6
    nudges = step * np.eye(rollout.dimension)
    differences = (rollout.losses(point + nudges) - rollout.losses(point - nudges)) / (2 * step)
    gradient = rollout.normal_equations(point[None]).gradient[0]
    np.testing.assert_allclose(gradient, differences, atol=2e-2 * np.max(np.abs(differences)))


@pytest.mark.slow
def test_scores_sum_to_the_gradient():
    """What blocks and runs contribute adds up to the derivatives of the whole loss."""
    batch, truth = few(MX106, "m4", 6)
    rollout = Rollout(batch, load_actuator("mx106"), law_named("m4"), truth, dtype="float64")
    points = np.random.default_rng(4).random((2, rollout.dimension))
    scores = rollout.scores(points, 1.0)
    assert scores.gradient.shape[:3] == (2, 6, 6)
    gradient = rollout.normal_equations(points).gradient
    np.testing.assert_allclose(scores.gradient.sum(axis=(1, 2)), gradient, rtol=1e-9, atol=1e-15)


@pytest.mark.slow
def test_measurements_of_their_own_replace_the_batch():
    """Fits of many recordings side by side see each its own positions."""
    batch, truth = few(MX106, "m1", 4)
    rollout = Rollout(batch, load_actuator("mx106"), law_named("m1"), truth, dtype="float64")
    points = np.repeat(truth.to_unit(truth.vector())[None], 3, axis=0)
    shifts = np.array([0.0, 0.01, 0.02])
    measured = batch.position[None] + shifts[:, None, None]
    measured[:, 0] = batch.position[0]  # the simulations still start at the same place
    losses = rollout.normal_equations(points, measured).loss
    np.testing.assert_allclose(equivalent_error(losses), shifts, atol=2e-5)


@pytest.mark.slow
def test_evaluations_are_counted_as_stated():
    """A candidate counts once, a derivative column as one more; padding does not count."""
    batch, truth = few(MX106, "m1", 4)
    rollout = Rollout(batch, load_actuator("mx106"), law_named("m1"), truth)
    rollout.losses(np.full((5, rollout.dimension), 0.5))
    assert rollout.meter.evaluations == 5
    rollout.normal_equations(np.full((2, rollout.dimension), 0.5))
    assert rollout.meter.evaluations == 5 + 2 * (rollout.dimension + 1)


@pytest.mark.parametrize(("runs", "lanes"), [(1, 128), (6, 64), (12, 32), (24, 16), (25, 128), (240, 128)])
def test_one_core_simulates_few_runs_and_all_cores_many(runs, lanes):
    """At most 384 simulations at a time on a processor, in candidates by 16; of more runs than that allows, as many as elsewhere."""
    assert lanes_for(runs) == lanes
