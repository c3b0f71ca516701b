"""Leave-one-gain-out check that decides whether the parameters of an effect may be identified.

A free effect parameter compensates for whatever the model lacks and then fails at gains that were not fitted. It is
accepted only if, for every gain, it lowers the error on the runs at that gain when they are left out of the fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from stribeck.errors import ConfigError
from stribeck.identify.servo.identify import identify
from stribeck.identify.servo.objective import split_runs
from stribeck.identify.servo.result import StudySettings
from stribeck.identify.servo.task import FitTask


@dataclass(frozen=True)
class LeftOutGain:
    """Errors [rad] on the runs at one gain, of models fitted to all other gains."""

    kp: float
    fixed: float
    free: float


def check_freed(
    task: FitTask,
    names: Sequence[str],
    on_figure: Callable[[LeftOutGain], None] = lambda figure: None,
    stop: Callable[[], bool] = lambda: False,
) -> list[LeftOutGain]:
    """Refuse free effect parameters unless they lower the error at every gain left out.

    :param task: fit task in which the parameters are free.
    :param names: names of the freed parameters.
    :param on_figure: called with the errors of each gain as soon as they are computed.
    :param stop: see :func:`stribeck.identify.servo.identify.identify`.
    :raises KeyboardInterrupt: if the check was interrupted.
    :raises ConfigError: if there is only one gain, or at the first gain where the error does not decrease.
    """
    logs = task.split.train
    gains = sorted({log.setup.kp for log in logs})
    listed = ", ".join(names)
    if len(gains) < 2:
        raise ConfigError(
            f"{listed} is not identified, because this must lower the error at gains left out of the fit, and "
            f"these recordings have only one gain ({gains[0]:g}): record more gains"
        )
    settings = replace(task.settings, study=StudySettings(), workers=1)
    datasheet = {
        parameter.name: parameter.value
        for parameter in task.actuator.parameters(task.law)
        if parameter.name in names
    }
    comparisons = []
    for kp in gains:
        split = split_runs(logs, validation_kp=kp)
        free = replace(task, split=split, settings=settings)
        fixed = replace(free, parameters=task.parameters.fixed(datasheet))
        errors = [_left_out_error(part, stop) for part in (fixed, free)]
        figure = LeftOutGain(kp, *errors)
        on_figure(figure)
        comparisons.append(figure)
    worse = [figure for figure in comparisons if figure.free >= figure.fixed]
    if worse:
        figures = "; ".join(
            f"gain {figure.kp:g}: {1e3 * figure.fixed:.1f} mrad fixed, {1e3 * figure.free:.1f} mrad free"
            for figure in comparisons
        )
        values = ", ".join(f"{name} = {value:g}" for name, value in datasheet.items())
        raise ConfigError(
            f"{listed} is not identified: the error at {'gain ' if len(worse) == 1 else 'gains '}{', '.join(f'{figure.kp:g}' for figure in worse)}, left out "
            f"of the fit, does not fall ({figures}). The value would compensate for another error: keep the datasheet's value ({values})"
        )
    return comparisons


def _left_out_error(task: FitTask, stop: Callable[[], bool]) -> float:
    result = identify(task, stop=stop)
    if result.search.outcome == "interrupted" or result.validation is None:
        raise KeyboardInterrupt
    return result.validation.mean
