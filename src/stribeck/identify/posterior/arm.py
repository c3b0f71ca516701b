"""An arm's parameters, sampled from the prior (zero-shot) or the posterior (Reiners et al. 2025, §II-D), as inertials and as drives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from stribeck.errors import ConfigError, check_valid
from stribeck.files.drives import Drives, MachineParameters
from stribeck.files.torque_drives import torque_actuator, torque_drive
from stribeck.files.versions import versions
from stribeck.identify.arm.model import INERTIALS
from stribeck.identify.arm.regressor import friction_law
from stribeck.identify.common.judging import Evidence, Misfit, judge, misfits_of
from stribeck.identify.common.solver_status import SolverStatus
from stribeck.identify.posterior import metropolis, nuts
from stribeck.identify.posterior.likelihood import FRICTION, InertiaPosterior, TorquePosterior
from stribeck.identify.posterior.network import LINK_NAMES, Mechanical, moments, to_standard
from stribeck.identify.posterior.sampling import Enough, Progress, silent
from stribeck.model.actuator import JointUnits
from stribeck.model.arrays import Array
from stribeck.model.estimate import Estimate, fixed
from stribeck.model.joint import CorrelationMatrix, Drive
from stribeck.model.provenance import ModelErrors, Provenance, Runs, SearchRecord
from stribeck.model.verdict import Verdict

Posterior = InertiaPosterior | TorquePosterior

SAMPLERS = ("nuts", "metropolis")

GROUPS = 4
"""Number of groups of draws from a prior, in place of chains."""

CHAINS = 8
"""Number of chains of the no-U-turn sampler."""


@dataclass(frozen=True, eq=False)
class ArmDraws:
    """Draws of an arm's parameters from its prior or its posterior.

    :param x: coordinates (C, S, d).
    """

    posterior: Posterior
    x: Array
    divergences: int = 0

    @cached_property
    def links(self) -> Mechanical:
        """Mechanical parameters, (C, S, n, …) each."""
        prior = self.posterior.prior
        with jax.enable_x64():
            parts = prior.mechanical(self.x[..., : prior.dimension])
        return Mechanical(*(np.asarray(part) for part in parts))

    @property
    def mean(self) -> Mechanical:
        """Means of the mechanical parameters."""
        return Mechanical(*(part.mean(axis=(0, 1)) for part in self.links))

    @cached_property
    def standard(self) -> Array:
        """Standard inertial parameters and motor inertias (C, S, 11 n)."""
        with jax.enable_x64():
            return np.asarray(moments(self.links)) @ to_standard(self.posterior.frames).T

    def named(self, joints: Sequence[str]) -> tuple[tuple[str, ...], Array]:
        """Names and values (C, S, P) of all mechanical parameters, then friction or the noise c."""
        names = [f"{name}_{joint}" for joint in joints for name in LINK_NAMES]
        with jax.enable_x64():
            table = np.asarray(self.links.table)
            if isinstance(self.posterior, TorquePosterior):
                names += list(self.posterior.friction_names)
                rest = np.asarray(self.posterior.friction(self.x))
            else:
                names += ["c"]
                rest = np.asarray(self.posterior.noise(self.x))[..., None]
        return tuple(names), np.concatenate([table.reshape(*table.shape[:-2], -1), rest], axis=-1)

    def inertias(self, regressor: Array) -> Array:
        """Axis inertias (C, S, R) [kg m²] for the rows of a regressor (R, 11 n)."""
        return self.standard @ regressor.T

    @cached_property
    def linear(self) -> Array:
        """Parameters (K, p) of all draws, in the order of :func:`~stribeck.identify.arm.regressor.design`.

        :raises ConfigError: for draws without friction.
        """
        if not isinstance(self.posterior, TorquePosterior):
            raise ConfigError(
                "these draws contain no friction, which torques need: sample the posterior of recorded torques"
            )
        flat = self.x.reshape(-1, self.x.shape[-1])
        with jax.enable_x64():
            return np.asarray(self.posterior.linear(flat))


def zero_shot(posterior: Posterior, count: int, seed: int) -> ArmDraws:
    """Independent draws from the prior, in :data:`GROUPS` groups."""
    with jax.enable_x64():
        x = posterior.draw(np.random.default_rng(seed), count)
    return ArmDraws(posterior, x.reshape(GROUPS, -1, x.shape[-1]))


def infer(
    posterior: Posterior,
    measured: Array | None,
    draws: int,
    seed: int,
    *,
    sampler: str = "nuts",
    chains: int = CHAINS,
    progress: Progress = silent,
    enough: Enough | None = None,
) -> ArmDraws:
    """Sample the posterior.

    :param measured: inertias (N,) [kg m²]; ``None`` for torques, which are part of the posterior.
    :param draws: number of draws per chain.
    :raises ConfigError: for a sampler that is not in :data:`SAMPLERS`.
    """
    check_valid(sampler, SAMPLERS, "unknown sampler")
    if isinstance(posterior, InertiaPosterior):
        if measured is None:
            raise ConfigError("a posterior of inertias needs measured inertias: give them")
        target = posterior.target(measured)
    else:
        target = posterior.target()
    rng = np.random.default_rng(seed)
    with jax.enable_x64():
        if sampler == "nuts":
            start = posterior.draw(rng, chains)[None]
            drawn = nuts.sample(target, start, draws, seed, progress=progress, enough=enough)
        else:
            chains = max(chains, metropolis.POPULATION)
            start = posterior.draw(rng, chains)[None]
            batched = metropolis.batched(target, chains)
            drawn = metropolis.sample(batched, start, draws, seed, progress=progress, enough=enough)
    return ArmDraws(posterior, drawn.x[0], int(drawn.divergences[0]))


def unit_of(name: str) -> str:
    """Unit of a parameter of :meth:`ArmDraws.named`."""
    units = {"m": "kg", "r": "m", "I": "kg m²", "J": "kg m²", "c": "1"}
    return "N m s/rad" if name.startswith("friction_viscous") else units.get(name[0], "N m")


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
    """Draws of all parameters in which the torques of an arm are linear, so that those of the mean parameters are the mean torques.

    The means of consistent inertials are consistent, because pseudo-inertias that are positive definite form a convex cone (Wensing, Kim,
    Slotine 2018).

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
    names = {joint: [f"{name}_{joint}" for name in ("J", *FRICTION)] for joint in parameters.joints}
    stated_of = {
        joint: dict(zip(QUANTITIES, (estimates[name] for name in given), strict=True))
        for joint, given in names.items()
    }
    found = {}
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
    others = {
        name: one for name, one in estimates.items() if not any(name in given for given in names.values())
    }
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
