"""Logs fits as Weights & Biases runs (``--wandb``).

Environment variables of the library set where a run is stored (``WANDB_MODE=offline``, ``WANDB_DIR``, ``WANDB_ENTITY``,
…). An error of the library is printed as one warning, and the fit continues.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stribeck.cli.identify.servo.options import IdentifyServoOptions
from stribeck.cli.inputs import warn
from stribeck.errors import MissingDependencyError
from stribeck.files.drives import write_drive
from stribeck.identify.servo.drive import fitted_drive
from stribeck.identify.servo.result import FitResult
from stribeck.identify.servo.trials import shown


class Tracker:
    """A run of Weights & Biases.

    :param config: options of the fit.
    """

    def __init__(self, project: str, name: str, config: Mapping[str, Any]) -> None:
        self._run: Any = None
        with self._harmless():
            import wandb

            settings = wandb.Settings(console="off", silent=True)
            self._run = wandb.init(
                project=project, name=name, config=dict(config), job_type="fit", settings=settings
            )

    def log(self, result: FitResult) -> None:
        """Log the best point so far."""
        if self._run is None:
            return
        with self._harmless():
            self._run.log(_figures(result), step=result.search.evaluations)

    def finish(self, result: FitResult) -> None:
        """Log the result, and save the parameter file."""
        self.log(result)
        if self._run is None:
            return
        with self._harmless():
            self._run.summary.update(result.summary())
            # Files in a run's folder belong to the run and are uploaded with it.
            write_drive(Path(self._run.dir) / f"{result.law.name}.json", fitted_drive(result))

    def close(self) -> None:
        """End the run, whether complete or not."""
        if self._run is not None:
            with self._harmless():
                self._run.finish()

    @contextmanager
    def _harmless(self) -> Iterator[None]:
        """Turn an exception into a warning, and disable the run."""
        try:
            yield
        except Exception as error:
            self._run = None
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            warn(f"Weights & Biases: {reason}; the fit continues without it")


@contextmanager
def tracked(options: IdentifyServoOptions, law: str) -> Iterator[Tracker | None]:
    """The run of one law, if ``--wandb`` is given."""
    if not options.wandb:
        yield None
        return
    tracker = Tracker(options.wandb_project, law, config_of(options, law))
    try:
        yield tracker
    finally:
        tracker.close()


def check_tracking(options: IdentifyServoOptions) -> None:
    """Raise :class:`MissingDependencyError` if ``--wandb`` is given without the library."""
    if not options.wandb:
        return
    # The library reads this on import; otherwise it sends error reports to its developers even in offline mode.
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    try:
        importlib.import_module("wandb")
    except ModuleNotFoundError:
        raise MissingDependencyError("--wandb needs wandb: pip install 'stribeck[wandb]'") from None


def config_of(options: IdentifyServoOptions, law: str) -> dict[str, Any]:
    """The options to log: paths as text, the law by name, without passwords."""
    config = {name: _plain(value) for name, value in vars(options).items()}
    urls = {name: shown(config[name]) for name in ("study", "load_study") if config[name] is not None}
    return {**config, **urls, "law": law}


def _plain(value: Any) -> Any:
    """Paths as text, also in a list of them."""
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, Path) else value


def _figures(result: FitResult) -> dict[str, float]:
    figures = {"evaluations": float(result.search.evaluations), "train_mae": result.train.mean}
    if result.validation is not None:
        figures["validation_mae"] = result.validation.mean
    values = result.parameters.values()
    return figures | {f"parameters/{name}": float(value) for name, value in values.items()}
