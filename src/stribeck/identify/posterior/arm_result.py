"""The posterior of an arm as inertials for a URDF and as drives, of its mean and of single draws.

Torques are linear in the inertials, rotor inertias and friction, so those of the mean parameters are the mean torques. The means
of consistent inertials are consistent, because pseudo-inertias that are positive definite form a convex cone (Wensing, Kim,
Slotine 2018).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from stribeck.errors import ConfigError
from stribeck.files.drives import Drives, MachineParameters
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.files.versions import versions
from stribeck.identify.arm.model import INERTIALS
from stribeck.identify.arm.regressor import friction_law
from stribeck.identify.common.judging import Evidence, Misfit, judge, misfits_of
from stribeck.identify.common.solver_status import SolverStatus
from stribeck.identify.posterior.arm import ArmDraws
from stribeck.identify.posterior.likelihood import FRICTION, TorquePosterior
from stribeck.model.actuator import JointUnits
from stribeck.model.arrays import Array
from stribeck.model.estimate import Estimate, fixed
from stribeck.model.joint import CorrelationMatrix, Drive
from stribeck.model.provenance import ModelErrors, Provenance, Runs, SearchRecord
from stribeck.model.verdict import Verdict

QUANTITIES = ("armature", *FRICTION)
"""Parameters of a drive, in the order of the draws."""


@dataclass(frozen=True)
class ArmOrigin:
    """What a posterior was sampled from.

    :param machine: name of the arm.
    :param prior: name of the prior of the links.
    :param sampler: name of the sampler.
    :param seed: of the random numbers.
    :param train: relative error of the mean torque on fitted recordings: of all joints, and of each.
    :param validation: the same on recordings that were not used.
    :param runs, others: names of these recordings.
    """

    machine: str
    prior: str
    sampler: str
    seed: int
    train: tuple[float, tuple[float, ...]]
    validation: tuple[float, tuple[float, ...]] | None
    runs: tuple[str, ...]
    others: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ArmParameters:
    """Draws of all parameters in which the torques of an arm are linear.

    :param draws: of a posterior of recorded torques.
    :raises ConfigError: for draws without friction.
    """

    draws: ArmDraws

    def __post_init__(self) -> None:
        if not isinstance(self.draws.posterior, TorquePosterior):
            raise ConfigError(
                "these draws contain no friction, which drives need: give recordings with torques instead of inertias"
            )

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints."""
        assert isinstance(self.draws.posterior, TorquePosterior)  # noqa: S101 - checked on creation
        return self.draws.posterior.machine.joints

    def inertials(self, draw: int | None = None) -> Array:
        """Standard inertial parameters (n, 10) of a draw, or the mean."""
        row = self.draws.linear.mean(axis=0) if draw is None else self.draws.linear[draw]
        return np.asarray(row[: INERTIALS * len(self.joints)].reshape(-1, INERTIALS))

    @cached_property
    def drives(self) -> Array:
        """Draws of the parameters of drives (K, n, 4), in the order of :data:`QUANTITIES`."""
        n = len(self.joints)
        return self.draws.linear[:, INERTIALS * n : (INERTIALS + len(QUANTITIES)) * n].reshape(
            -1, n, len(QUANTITIES)
        )

    def picked(self, count: int, seed: int) -> list[int]:
        """Indices of random draws, none twice."""
        number = len(self.draws.linear)
        chosen = np.random.default_rng(seed).choice(number, min(count, number), replace=False)
        return [int(k) for k in chosen]

    def drawn(self, draw: int, units: Mapping[str, JointUnits]) -> Drives:
        """The drives of one draw, without intervals."""
        joints = {
            joint: _drive(dict(zip(QUANTITIES, self.drives[draw, k].tolist(), strict=True)), units[joint], {})
            for k, joint in enumerate(self.joints)
        }
        return Drives(joints)


def arm_drives(
    parameters: ArmParameters,
    estimates: Mapping[str, Estimate],
    units: Mapping[str, JointUnits],
    origin: ArmOrigin,
    converged: bool,
) -> Drives:
    """Means, intervals and correlations of the drives of all joints, and estimates of the links.

    :param estimates: of all parameters by their names in :meth:`ArmDraws.named`.
    :param units: of each joint.
    :param converged: whether the chains agree.
    """
    mean = parameters.drives.mean(axis=0)
    found, of_drives = {}, set()
    stated_of: dict[str, dict[str, Estimate]] = {}
    for joint in parameters.joints:
        names = [f"J_{joint}", *(f"{name}_{joint}" for name in FRICTION)]
        of_drives |= set(names)
        stated_of[joint] = {name: estimates[given] for name, given in zip(QUANTITIES, names, strict=True)}
    verdict = _verdict(stated_of, origin, converged)
    for k, joint in enumerate(parameters.joints):
        validation = None if origin.validation is None else origin.validation[1][k]
        values = dict(zip(QUANTITIES, mean[k].tolist(), strict=True))
        more: dict[str, Any] = {
            "correlation": _correlation(parameters.drives[:, k]),
            "loss": ModelErrors("relative error of torque", "1", origin.train[1][k], validation),
            "verdict": verdict.of(joint),
        }
        found[joint] = _drive(values, units[joint], stated_of[joint], **more)
    others = {name: one for name, one in estimates.items() if name not in of_drives}
    return Drives(found, MachineParameters(origin.machine, others), verdict, _provenance(origin, converged))


def _drive(
    values: Mapping[str, float], units: JointUnits, stated: Mapping[str, Estimate], **known: Any
) -> Drive:
    named = {name: stated.get(name, fixed(value, "")) for name, value in values.items()}
    return torque_drive(torque_actuator(units), friction_law("symmetric"), named, **known)


def _correlation(draws: Array) -> CorrelationMatrix:
    """Correlation of the parameters of a joint from draws (K, 4)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        matrix: Array = np.nan_to_num(np.asarray(np.corrcoef(draws.T)))
    np.fill_diagonal(matrix, 1.0)
    rows = np.clip(matrix, -1.0, 1.0).tolist()
    return CorrelationMatrix(QUANTITIES, tuple(tuple(row) for row in rows))


def _verdict(stated: Mapping[str, Mapping[str, Estimate]], origin: ArmOrigin, converged: bool) -> Verdict:
    misfits: list[Misfit] = []
    for part, held_out in ((origin.train, False), (origin.validation, True)):
        if part is not None:
            by_joint = dict(zip(stated, part[1], strict=True))
            misfits += misfits_of(part[0], by_joint, held_out=held_out)
    status = SolverStatus.CONVERGED if converged else SolverStatus.LIMIT
    return judge(Evidence("torque", tuple(misfits), stated, status=status))


def _provenance(origin: ArmOrigin, converged: bool) -> Provenance:
    return Provenance(
        runs=Runs("as given", origin.runs, origin.others),
        search=SearchRecord(
            method="posterior mean",
            seed=origin.seed,
            outcome="converged" if converged else "budget spent",
            settings={"prior": origin.prior, "sampler": origin.sampler},
        ),
        versions=versions("numpy", "jax", "blackjax", "pin"),
    )


def band_of(torques: Array, confidence: float = 0.9) -> tuple[Array, Array]:
    """Lower and upper end (M, n) [N m or N] of drawn torques (K, M, n): what the parameters leave open.

    :param confidence: share of the draws between the ends.
    """
    lower, upper = np.quantile(torques, (0.5 - 0.5 * confidence, 0.5 + 0.5 * confidence), axis=0)
    return np.asarray(lower), np.asarray(upper)
