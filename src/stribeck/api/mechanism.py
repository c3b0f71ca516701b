"""Estimation of the parameters of a mechanism from its motion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from tqdm.auto import tqdm

from stribeck.api.fit import Fit
from stribeck.api.recordings import Given, PathLike, as_recordings, paths_of, warn
from stribeck.identify.mechanism.drives import mechanism_drives, values_to_start
from stribeck.identify.mechanism.estimation import MechanismEstimate, MechanismEstimator, Simulator
from stribeck.identify.mechanism.model_file import MechanismModel, read_model
from stribeck.identify.mechanism.problem import GridRun
from stribeck.identify.mechanism.recordings import on_grid, read_mechanism_recordings
from stribeck.identify.mechanism.verdict import judge_mechanism


def mechanism_model(
    name: str,
    step: float | None = None,
    ratio: float | None = None,
    start: Path | None = None,
    fixed: Mapping[str, float] | None = None,
) -> MechanismModel:
    """The model of a mechanism with other settings.

    :param name: of a shipped mechanism, or its YAML file.
    :param step: time step [s].
    :param ratio: weight of the dynamics relative to the samples.
    :param start: file of an earlier estimation with the values to start from.
    :param fixed: known values of parameters.
    """
    model = read_model(name)
    settings, mechanism = model.settings, model.mechanism
    if step is not None:
        settings = replace(settings, step=step)
    if ratio is not None:
        settings = replace(settings, ratio=ratio)
    if start is not None:
        values = values_to_start(start, mechanism.name, mechanism.parameters)
        mechanism = replace(mechanism, parameters=mechanism.parameters.with_values(values))
    if fixed:
        mechanism = replace(mechanism, parameters=mechanism.parameters.fixed(fixed))
    return replace(model, settings=settings, mechanism=mechanism)


def grid_runs(paths: tuple[Path, ...], model: MechanismModel, note: Callable[[str], None]) -> list[GridRun]:
    """Recordings of a mechanism on the time grid of its model; none for no paths."""
    step = model.settings.step
    return [on_grid(run, model.mechanism, step) for run in read_mechanism_recordings(paths, model, note)]


def estimated(estimator: MechanismEstimator, shown: bool, note: Callable[[str], None]) -> MechanismEstimate:
    """The estimate, after a note if the search did not converge.

    :param shown: whether iterations are shown.
    """
    with tqdm(desc="iterations", unit="", disable=not shown, leave=False) as bar:

        def show(ratio: float, cost: float) -> None:
            bar.set_postfix_str(f"ratio {ratio:g}, cost {cost:.4g}")
            bar.update()

        estimation = estimator.estimate(show)
    if not estimation.solution.converged:
        words = estimation.solution.status.words
        note(f"the search {words}: try other initial values or a smaller ratio")
    return estimation


def identify_mechanism(
    runs: Given,
    mechanism: str,
    *,
    validate: Given | None = None,
    step: float | None = None,
    ratio: float | None = None,
    start: PathLike | None = None,
    fixed: Mapping[str, float] | None = None,
    progress: bool = True,
) -> Fit:
    """Estimate the parameters of a mechanism from its recorded motion.

    :param runs: CSV, MAT, NPZ, bags, or folders of them.
    :param mechanism: a mechanism by name, for example ``furuta_motor``, or its YAML file.
    :param validate: runs that are predicted only.
    :param step: time step [s]; by default that of the mechanism.
    :param ratio: weight of the dynamics relative to the samples; by default that of the mechanism.
    :param start: file of an earlier estimation with the values to start from.
    :param fixed: known values by parameter.
    :param progress: show the iterations.
    :raises RecordingError: for recordings that cannot be used.
    :raises ConfigError: for arguments that are not valid.
    """
    given = as_recordings(runs)
    model = mechanism_model(mechanism, step, ratio, None if start is None else Path(start), fixed)
    fitted = grid_runs(paths_of(given), model, warn)
    estimator = MechanismEstimator(model.mechanism, fitted, model.settings.step, model.settings.ratio)
    estimation = estimated(estimator, progress, warn)
    others = grid_runs(paths_of(validate), model, warn)
    simulator = Simulator(
        estimation.mechanism, model.settings.step, max(len(one.path) for one in [*fitted, *others])
    )
    errors = [
        {run.name: simulator.errors(run, estimation.solution.point.chi) for run in part}
        for part in (fitted, others)
    ]
    content = mechanism_drives(
        model, estimation, judge_mechanism(estimation, *errors), [run.name for run in fitted]
    )
    return Fit(content, runs=given, result=estimation, title=model.title)
