"""An arm with its prior and its measurements, as the options of ``stribeck identify arm --bayes`` select them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from stribeck.cli.identify.bayes.options import ArmBayesOptions
from stribeck.cli.identify.bayes.print import SamplerProgress
from stribeck.files.robots import RobotConfig
from stribeck.identify.arm.base_parameters import BaseParameters
from stribeck.identify.arm.config import IdentificationConfig, identification_config
from stribeck.identify.arm.least_squares import fit_rows
from stribeck.identify.arm.model import ArmModel
from stribeck.identify.arm.motion import ProcessedMotion, motion_of, segments
from stribeck.identify.arm.recordings import ArmRecording, read_arm_recordings
from stribeck.identify.arm.regressor import Machine, machine_of
from stribeck.identify.posterior.arm import ArmDraws, Posterior, infer
from stribeck.identify.posterior.likelihood import (
    InertiaPosterior,
    TorquePosterior,
    read_inertias,
    torque_posterior,
)
from stribeck.identify.posterior.network import inertia_base, inertia_regressor, link_frames
from stribeck.identify.posterior.prior import ArmPrior
from stribeck.model.arrays import Array

POSES = 30
"""Number of random poses at which inertias are predicted if none were measured."""


@dataclass(frozen=True, eq=False)
class ArmStudy:
    """An arm with its prior and its measurements, as selected by the options."""

    options: ArmBayesOptions
    robot: RobotConfig
    arm: ArmModel
    prior: ArmPrior
    rotors: Array | None

    @cached_property
    def config(self) -> IdentificationConfig:
        """Configuration for reading recordings of the arm."""
        return identification_config(self.robot)

    @cached_property
    def machine(self) -> Machine:
        """Joints and couplings."""
        return machine_of(self.arm.joints, self.arm, self.config.couplings)

    @cached_property
    def base(self) -> BaseParameters:
        """Base parameters that determine the axes' inertias."""
        return inertia_base(self.arm)

    def runs(self, paths: Sequence[Path]) -> list[ArmRecording]:
        """Read recordings."""
        return read_arm_recordings(paths, self.config.recording, self.machine.joints, self.robot.units)

    def motions(self, paths: Sequence[Path]) -> list[ProcessedMotion]:
        """Read recordings, cut them at gaps, and filter them with the identification protocol."""
        protocol = self.config.protocol
        return [motion_of(part, protocol) for run in self.runs(paths) for part in segments(run, protocol)]

    def torques(self, *, discrepancy: bool) -> TorquePosterior:
        """The posterior given recorded torques."""
        protocol = self.config.protocol
        return torque_posterior(
            self.prior,
            link_frames(self.arm),
            self.machine,
            self.motions(self.options.recordings),
            protocol.rest,
            lambda motion: fit_rows(motion, protocol),
            discrepancy=discrepancy,
            rotors_known=self.rotors is not None,
        )

    def inertias(self) -> tuple[InertiaPosterior, Array | None]:
        """The posterior given inertias, and the measured inertias if any."""
        frames, path = link_frames(self.arm), self.options.inertias
        if path is None:
            rng = np.random.default_rng(self.options.seed)
            poses = rng.uniform(-np.pi, np.pi, (POSES, len(self.arm)))
            rows = inertia_regressor(self.arm, poses)
            return InertiaPosterior(self.prior, frames, rows.reshape(-1, rows.shape[-1])), None
        poses, axes, measured = read_inertias(path, len(self.arm))
        rows = inertia_regressor(self.arm, poses)[np.arange(len(poses)), axes]
        return InertiaPosterior(self.prior, frames, rows), measured

    def infer(self, posterior: Posterior, measured: Array | None) -> ArmDraws:
        """Sample a posterior while showing progress."""
        options = self.options
        watch = SamplerProgress(
            options.quiet, lambda x: ArmDraws(posterior, x).named(self.arm.joints)[1], options.effective
        )
        return infer(
            posterior,
            measured,
            options.draws,
            options.seed + 1,
            sampler=options.sampler,
            progress=watch,
            enough=watch.enough,
        )
