"""What ``stribeck identify arm --bayes --output`` writes: the posterior for robots, simulators and the next identification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stribeck.cli.compensation_file import COMPENSATION, write_compensation_of_arm
from stribeck.cli.identify.bayes.arm_study import ArmStudy
from stribeck.files.drives import write_drives
from stribeck.files.folders import write_atomically
from stribeck.identify.arm.motion import ProcessedMotion
from stribeck.identify.arm.recordings import ArmRecording
from stribeck.identify.arm.residuals import scores
from stribeck.identify.arm.urdf import urdf_with_inertials
from stribeck.identify.posterior.arm import ArmDraws, ArmOrigin, ArmParameters, arm_drives, band_of
from stribeck.identify.posterior.measures import mean_torque, torques_of
from stribeck.model.estimate import Estimate
from stribeck.model.verdict import Verdict

DRAWS = 20
"""Number of draws that are written as URDFs with their drives."""

BAND = 0.9
"""Share of the draws within the band of the torque."""

TORQUES = "torque.csv"


@dataclass(frozen=True, eq=False)
class ArmAnswer:
    """A posterior of recorded torques, and the motions of its recordings.

    :param estimates: of all parameters by name.
    :param converged: whether the chains agree.
    :param others: motions that were not used.
    :param runs: the recordings themselves.
    """

    draws: ArmDraws
    estimates: dict[str, Estimate]
    converged: bool
    fitted: Sequence[ProcessedMotion]
    others: Sequence[ProcessedMotion]
    runs: Sequence[ArmRecording]


def write_files(folder: Path, study: ArmStudy, answer: ArmAnswer) -> tuple[list[Path], Verdict]:
    """Write the URDF and drives of the mean, some draws of both, torques with bands, and the parameters of the compensation.

    :returns: the paths, and the verdict.
    """
    parameters, name = ArmParameters(answer.draws), study.robot.name
    units = study.machine.units(study.robot.units)
    drives = arm_drives(parameters, answer.estimates, units, _origin(study, answer), answer.converged)
    verdict = drives.verdict or Verdict()
    urdf, file, compensation = folder / f"{name}.urdf", folder / f"{name}.json", folder / COMPENSATION
    write_atomically(urdf, urdf_with_inertials(study.arm.path, study.arm.joints, parameters.inertials()))
    write_drives(file, drives)
    digits = len(str(DRAWS))
    for number, draw in enumerate(parameters.picked(DRAWS, study.options.seed), 1):
        beside = folder / "draws" / f"{name}_{number:0{digits}d}"
        text = urdf_with_inertials(study.arm.path, study.arm.joints, parameters.inertials(draw))
        write_atomically(beside.with_suffix(".urdf"), text)
        write_drives(beside.with_suffix(".json"), parameters.drawn(draw, units))
    motions = answer.others or answer.fitted
    write_atomically(folder / TORQUES, _torques(study, answer.draws, motions[0]))
    of_arm = study.robot, study.machine, answer.runs
    write_compensation_of_arm(
        compensation, file, urdf, *of_arm, verdict=verdict, command="identify arm --bayes"
    )
    return [urdf, file, folder / "draws", folder / TORQUES, compensation], verdict


def _origin(study: ArmStudy, answer: ArmAnswer) -> ArmOrigin:
    rest = study.config.protocol.rest

    def errors(motions: Sequence[ProcessedMotion]) -> tuple[float, tuple[float, ...]]:
        means = [mean_torque(answer.draws, study.machine, motion, rest) for motion in motions]
        moving = scores(motions, means)["moving"]
        numbers = [np.nan if one is None else float(one) for one in (moving["all"], *moving["per_joint"])]
        return numbers[0], tuple(numbers[1:])

    options = study.options
    return ArmOrigin(
        study.robot.name,
        options.prior,
        options.sampler,
        options.seed,
        errors(answer.fitted),
        errors(answer.others) if answer.others else None,
        tuple(motion.name for motion in answer.fitted),
        tuple(motion.name for motion in answer.others),
    )


def _torques(study: ArmStudy, draws: ArmDraws, motion: ProcessedMotion) -> str:
    """A table: time, and of each joint the measured torque, the mean of the draws, and the ends of their band."""
    given = draws, study.machine, motion, study.config.protocol.rest
    columns = [motion.torque, mean_torque(*given), *band_of(torques_of(*given), BAND)]
    names = ["time"]
    for joint in study.arm.joints:
        names += [f"{joint}_measured", f"{joint}_mean", f"{joint}_lower", f"{joint}_upper"]
    table = np.stack(columns, axis=-1).reshape(len(motion.time), -1)
    rows = (
        ",".join(f"{x:.8g}" for x in (t, *row)) for t, row in zip(motion.time, table.tolist(), strict=True)
    )
    return "\n".join([",".join(names), *rows]) + "\n"
