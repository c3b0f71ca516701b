"""Predicted motion of a servo, and of the joints of arms and robots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stribeck.api.machines import Sources, predict_machine
from stribeck.api.recordings import warn
from stribeck.evaluate.assessment import Recordings as Resampled
from stribeck.evaluate.assessment import simulated, stepping_of
from stribeck.files.drives import Drives
from stribeck.identify.common.machine_motion import JointErrors, MachineMotion, errors_of
from stribeck.identify.servo.prediction import COVERAGE, averaged, half_widths
from stribeck.model.arrays import Array
from stribeck.model.joint import Drive
from stribeck.model.log import Log

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Prediction:
    """Motion of a servo as a fit predicts it from the goals of a run, simulated from its first sample.

    :ivar name: of the run.
    :ivar time: since the start of the run (T,) [s].
    :ivar position: predicted (T,) [rad], the weighted mean of the fits in the file.
    :ivar band: half-width of the 90 % band around it (T,) [rad], NaN if the file of the fit states no prediction.
    :ivar measured: measured position (T,) [rad], NaN in gaps.
    :ivar goal: goal position (T,) [rad].
    :ivar error: mean absolute error [rad].
    """

    name: str
    time: Array
    position: Array
    band: Array
    measured: Array
    goal: Array
    error: float

    @property
    def coverage(self) -> float:
        """Share of the measured samples within the band; NaN without a band."""
        valid = np.isfinite(self.measured) & np.isfinite(self.band)
        if not valid.any():
            return float("nan")
        return float(np.mean(np.abs(self.measured - self.position)[valid] <= self.band[valid]))

    def plot(self, ax: Any = None) -> Axes:
        """Draw goal, measured and predicted position and the band; returns the matplotlib axes.

        :param ax: axes to draw into; by default new ones.
        """
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=(8.0, 3.5), layout="constrained")
        ax.plot(self.time, self.goal, color="0.7", linewidth=1.0, label="goal")
        ax.plot(self.time, self.measured, color="black", linewidth=1.2, label="measured")
        text = f"predicted, mean error {1e3 * self.error:.1f} mrad"
        (line,) = ax.plot(self.time, self.position, linewidth=1.2, label=text)
        if np.all(np.isfinite(self.band)):
            low, high = self.position - self.band, self.position + self.band
            label = f"{100 * COVERAGE:g} % band, {100 * self.coverage:.0f} % of the samples within it"
            ax.fill_between(self.time, low, high, color=line.get_color(), alpha=0.2, linewidth=0, label=label)
        ax.set(xlabel="time [s]", ylabel="position [rad]", title=self.name)
        ax.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
        axes: Axes = ax
        return axes


def predicted(drive: Drive, run: Log, where: str) -> Prediction:
    """The motion of a drive in a run, with the simulation settings of its fit: the mean of all fits in its file.

    :param where: file of the drive, for messages.
    :raises ParameterFileError: if the simulation diverges.
    """
    stepping = stepping_of(drive)
    batch, motion = simulated(Path(where or "fit"), drive, Resampled([run]), stepping)
    position = averaged(drive, batch, stepping.integrator, stepping.reset_period, motion.position).mean
    band = half_widths(drive, batch, stepping.integrator, stepping.reset_period)
    measured = np.where(batch.weight > 0.0, batch.position, np.nan)
    error = float(batch.mean_absolute_errors(position)[0])
    at, half, seen, goal = (np.asarray(part[:, 0]) for part in (position, band, measured, batch.goal))
    return Prediction(run.name, np.asarray(batch.time), at, half, seen, goal, error)


@dataclass(frozen=True, eq=False)
class MachinePrediction(MachineMotion):
    """A recording of an arm or a robot, predicted by a fit: see :class:`~stribeck.identify.common.machine_motion.MachineMotion`.

    :ivar errors: by joint: ``rms``, ``relative`` (of torques) and ``unit``.
    """

    @property
    def errors(self) -> dict[str, JointErrors]:
        """Errors by joint over the rows that count."""
        return errors_of([self])

    def plot(self) -> Figure:
        """Draw measured and predicted values of all joints; returns the matplotlib figure."""
        from stribeck.report.arm_figures import draw_machine_motion

        return draw_machine_motion(self)


def machine_predictions(
    content: Drives, where: str, paths: Sequence[Path], sources: Sources
) -> list[MachinePrediction]:
    """Predictions of recordings of an arm or a robot.

    :param where: file of the fit, empty for a fresh one.
    """
    place = Path(where) if where else None
    found = predict_machine(content, place, paths, sources, warn)
    return [MachinePrediction(**vars(motion)) for motion in found]
