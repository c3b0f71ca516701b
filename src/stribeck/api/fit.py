"""A fit: what an identification found, fresh or from a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stribeck.api.machines import Sources, quantity_of
from stribeck.api.recordings import Given, PathLike, Recordings, as_recordings, paths_of
from stribeck.api.table import ByJoint, html_of, rows_of, text_of
from stribeck.errors import ConfigError, MissingDependencyError
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import Drives, read_drives, write_drives
from stribeck.files.torque_drives import ACTUATORS
from stribeck.model.arrays import Array
from stribeck.model.estimate import Estimate
from stribeck.model.joint import Drive
from stribeck.model.law import friction_budget
from stribeck.model.log import Log
from stribeck.model.verdict import Verdict

if TYPE_CHECKING:
    import pandas

    from stribeck.api.prediction import MachinePrediction, Prediction


def _in_order(drive: Drive) -> dict[str, Estimate]:
    """The estimates of a drive in the order of its model, whatever that of the file."""
    usual = [name for name in drive.actuator.parameters(drive.law).names if name in drive.estimates]
    return {name: drive.estimates[name] for name in dict.fromkeys((*usual, *drive.estimates))}


class Fit:
    """What an identification found. Printed, it is one table: value ± half of the 95 % interval, unit, status, verdict.

    :ivar drives: actuator and friction law by joint, of a mechanism by joint with a motor; the name may be empty if there is one.
    :ivar estimates: by joint and parameter; parameters of no joint under the empty name.
    :ivar verdict: whether the result may be used, with reasons; ``None`` if nothing states it.
    :ivar runs: the recordings, of a fresh fit.
    :ivar result: what the engine returned, of a fresh fit; not part of the stable interface.
    """

    def __init__(
        self,
        content: Drives,
        *,
        runs: Recordings | None = None,
        result: Any = None,
        title: str = "",
        where: str = "",
        write: Callable[[Path], None] | None = None,
        sources: Sources | None = None,
    ) -> None:
        self.drives: Mapping[str, Drive] = content.joints
        whole = {"": content.machine.estimates} if content.machine.estimates else {}
        of_joints = {name: _in_order(drive) for name, drive in content.joints.items()}
        self.estimates: ByJoint = {**of_joints, **whole}
        verdicts = [drive.verdict for drive in content.joints.values() if drive.verdict is not None]
        alone = verdicts[0] if len(content.joints) == 1 and verdicts else None
        self.verdict: Verdict | None = content.verdict or alone
        self.runs, self.result = runs, result
        self.title, self._where = title or self._usual_title(), where
        self._content, self._sources = content, sources or Sources()
        self._write = write or (lambda path: write_drives(path, content))

    def _usual_title(self) -> str:
        laws = ", ".join(dict.fromkeys(drive.law.title for drive in self.drives.values()))
        servos = ", ".join(dict.fromkeys(drive.actuator.title for drive in self.drives.values()))
        return f"{servos}: {laws}" if laws else self._content.machine.name

    def __repr__(self) -> str:
        return text_of(self.title, self.estimates, self.verdict)

    def _repr_html_(self) -> str:
        return html_of(self.title, self.estimates, self.verdict)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints."""
        return tuple(self.drives)

    @property
    def parameters(self) -> dict[str, float]:
        """Values of the parameters of a fit of one joint, by name, in SI units.

        :raises ConfigError: if it has several.
        """
        return {name: one.value for name, one in self._parameters_of_one("parameters").items()}

    @property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """95 % intervals of a fit of one joint, by name.

        :raises ConfigError: if it has several joints.
        """
        found = self._parameters_of_one("intervals")
        return {name: one.interval for name, one in found.items() if one.interval is not None}

    def _parameters_of_one(self, what: str) -> Mapping[str, Estimate]:
        if len(self.estimates) == 1:
            return next(iter(self.estimates.values()))
        raise self._several(what)

    def _several(self, what: str) -> ConfigError:
        names = ", ".join(self.joints)
        return ConfigError(f"{what} belong to one joint, but this fit has {names}: choose one with fit[NAME]")

    def __getitem__(self, joint: str) -> Fit:
        """The fit of one joint.

        :raises ConfigError: for a name that it does not have.
        """
        if joint not in self.joints:
            raise ConfigError(f"no joint {joint!r}; valid: {', '.join(self.joints) or 'none'}")
        drive = self.drives[joint]
        one = Drives({joint: drive}, provenance=drive.provenance)
        return Fit(one, runs=self.runs, result=self.result, where=self._where)

    def to_dataframe(self) -> pandas.DataFrame:
        """A pandas data frame with a row for each parameter: joint, parameter, value, lower, upper, unit, status, reason.

        :raises MissingDependencyError: without pandas.
        """
        try:
            import pandas
        except ModuleNotFoundError:
            raise MissingDependencyError(
                "data frames need pandas: pip install 'stribeck[notebook]'"
            ) from None
        return pandas.DataFrame(rows_of(self.estimates)).set_index(["joint", "parameter"])

    def save(self, path: PathLike) -> Path:
        """Write the file that :func:`stribeck.read`, the compensation and the exports read; returns its path.

        :raises OutputError: if it cannot be written.
        """
        self._write(Path(path))
        return Path(path)

    def drive(self, what: str = "this") -> Drive:
        """The drive of a fit of one joint.

        :param what: needs it, for messages.
        :raises ConfigError: for a fit of several joints, or without drives.
        """
        if len(self.drives) == 1:
            return next(iter(self.drives.values()))
        if self.drives:
            raise self._several(what)
        raise ConfigError(
            f"{what} need the actuator and the law of a joint, but a fit of {self.title} contains neither"
        )

    def friction(
        self,
        velocity: npt.ArrayLike,
        motor_torque: npt.ArrayLike = 0.0,
        external_torque: npt.ArrayLike = 0.0,
        position: npt.ArrayLike | None = None,
    ) -> Array:
        r"""Torque of friction against motion [N m], not negative; the torque on the joint has the sign opposite to the velocity.

        It is the budget :math:`\tau_f^{m+}` for velocities above zero and :math:`\tau_f^{m-}` below
        (:func:`stribeck.model.law.friction_budget`). At zero it is the breakaway torque in positive direction.

        :param velocity: of the joint [rad/s].
        :param motor_torque, external_torque: at the output shaft [N m], both positive in the direction of positive velocity.
        :param position: of the joint [rad], for laws that depend on it.
        :returns: of the shape to which the arguments broadcast.
        :raises ConfigError: for a law that depends on the position, without one.
        """
        drive = self.drive("friction torques")
        arrays = [np.asarray(one, dtype=float) for one in (velocity, motor_torque, external_torque)]
        if position is None and "position" in drive.law.budget_inputs:
            raise ConfigError(
                f"the friction law {drive.law.title} depends on the position: give the position"
            )
        arrays.append(np.asarray(0.0 if position is None else position, dtype=float))
        v, motor, external, at = np.broadcast_arrays(*arrays)
        positive, negative = friction_budget(drive.law, drive.values, motor, external, v, at)
        return np.asarray(np.where(v < 0.0, negative, positive))

    def draw(self, count: int, seed: int = 0, *, model_error: bool = False) -> dict[str, Array]:
        """Random parameters as uncertain as the fit left them, correlated and within bounds; for randomised simulation.

        :param count: number of sets.
        :param seed: the same seed gives the same sets.
        :param model_error: widen them until the spread of simulated motions is that of the band of the fit, which contains the error of the
            model (:mod:`stribeck.exports.draws`), in the recordings of the fit, or on bench trajectories where it was read from a file; of a robot: as wide
            as its file states, so that simulations contain 90 % of one more run.
        :returns: values by parameter (count,); those that are known exactly are constant.
        :raises ConfigError: for a fit of several joints, or without drives; with ``model_error`` also for one that states none.
        """
        drive = self.drive("draws")
        if not model_error:
            from stribeck.evaluate.draws import draws_of

            return draws_of(drive, count, seed)
        from stribeck.exports.draws import width_of

        width = width_of(drive, self.runs.logs if self.runs and not drive.of_robot else ())
        return width.drawn(drive, count, seed)

    def predict(
        self, run: Given | Log, *, model: PathLike | None = None, machine: str | None = None
    ) -> Prediction | list[MachinePrediction]:
        """Predict recordings, without fitting anything.

        Of a servo: its motion in one run, from goals and first sample. Of an arm: torques of its joints, from their motion. Of a robot:
        positions of its joints, from their goals. Recordings of arms and robots may be many, and there is a prediction for each.

        :param run: a run, or recordings; of a servo with one run.
        :param model: URDF of an arm, or URDF or MJCF of a robot; by default that of a fresh fit, or the one that the arm's file names.
        :param machine: an arm by name, or its YAML file; by default that of a fresh fit, or ``machine.yaml`` beside the file of the fit.
        :raises ConfigError: for several runs or runs of another servo, a missing model or machine, and fits of something else.
        :raises RecordingError: for recordings that cannot be used.
        """
        from stribeck.api.prediction import machine_predictions, predicted
        from stribeck.api.servo_notes import check_actuators

        if quantity_of(self._content) is not None:
            if isinstance(run, Log):
                raise ConfigError(
                    "this fit describes all joints of an arm or a robot: predict with the whole fit, not with one joint of it"
                )
            own = self._sources
            sources = own._replace(
                model=own.model if model is None else Path(model), machine=machine or own.machine
            )
            paths = paths_of(as_recordings(run))
            return machine_predictions(self._content, self._where, paths, sources)
        drive = self.drive("predictions")
        if not isinstance(run, Log):
            runs = as_recordings(run)
            if len(runs) != 1:
                raise ConfigError(
                    f"a prediction needs one run, found {len(runs)}: choose one, for example runs[0]"
                )
            run = runs[0]
        check_actuators([run], [(self._where or "the fit", drive)])
        return predicted(drive, run, self._where)

    def report(self, path: PathLike, runs: Given | None = None) -> Path:
        """Write an HTML report, and return its path.

        Of a servo with recordings: errors, residuals, friction and verdict on them. Of everything else: verdicts, friction over speed with
        its band, and parameters of all joints.

        :param path: ends with ``.html``.
        :param runs: recordings of a servo; by default those of the fit, which a file does not hold.
        :raises OutputError: for another ending, or a file that cannot be written.
        """
        from stribeck.api.reporting import write_drives_report, write_report

        given = self.runs if runs is None else as_recordings(runs)
        servo = len(self.drives) == 1 and self.drive("reports").actuator.name not in ACTUATORS.values()
        if given is None or not servo:
            return write_drives_report(Path(path), Path(self._where or self.title), self._content)
        drive = self.drive("reports")
        label = Path(self._where).stem if self._where else drive.law.name.upper()
        return write_report(Path(path), [(label, Path(self._where or label), drive)], given.logs)


def read(path: PathLike, servo: str | None = None) -> Fit:
    """Read a saved fit: the file of drives of a servo, a joint, an arm, a robot or a mechanism.

    :param servo: its name or YAML file, for files that neither describe it nor name an installed one.
    :returns: a fit that behaves like the fresh one, but for recordings, which files do not hold.
    :raises ParameterFileError: for a file that is missing or damaged.
    """
    path = Path(path)
    drives = read_drives(path, None if servo is None else load_actuator(servo))
    return Fit(drives, title="" if drives.joints else drives.machine.name, where=str(path))
