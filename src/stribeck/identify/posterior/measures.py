r"""Quality of sampled arm parameters beside a nominal model and measurements (Reiners et al. 2025, eqs. 15–17, table II)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stribeck.errors import ConfigError
from stribeck.identify.arm.base_parameters import BaseParameters
from stribeck.identify.arm.inertia import consistency
from stribeck.identify.arm.model import INERTIALS, ArmModel
from stribeck.identify.arm.motion import ProcessedMotion
from stribeck.identify.arm.regressor import Machine, design
from stribeck.identify.posterior.arm import ArmDraws
from stribeck.identify.posterior.diagnostics import LEVELS
from stribeck.identify.posterior.likelihood import InertiaPosterior, TorquePosterior
from stribeck.identify.posterior.network import Mechanical, mechanical_of
from stribeck.model.arrays import Array

BINS = 60
"""Number of histogram bins for the total variation distance."""


def mae(found: Array, true: Array) -> float:
    r"""Mean absolute error :math:`\overline{|A - B|}/\overline{|B|}` [%]."""
    return float(100.0 * np.mean(np.abs(found - true)) / np.mean(np.abs(true)))


def cosine_similarity(found: Array, true: Array) -> float:
    r""":math:`\langle A, B\rangle / (\|A\| \|B\|)`, in [-1, 1]."""
    return float(found.ravel() @ true.ravel() / (np.linalg.norm(found) * np.linalg.norm(true)))


def rmse(found: Array, measured: Array) -> float:
    """Root mean square error relative to the measured values [%]."""
    return float(100.0 * np.sqrt(np.mean(((found - measured) / measured) ** 2)))


def total_variation(one: Array, other: Array) -> float:
    r"""Total variation distance :math:`\frac12\sum|p - q|` of two sets of draws from histograms with common bins, in [0, 1]."""
    edges = np.histogram_bin_edges(np.concatenate([one, other]), BINS)
    p, q = (np.histogram(draws, edges)[0] / len(draws) for draws in (one, other))
    return float(0.5 * np.sum(np.abs(p - q)))


def within(draws: Array, true: Array) -> tuple[int, int]:
    """Number of values (P,) that lie within the 95 % intervals of draws (S, P), and P."""
    low, high = np.quantile(draws, LEVELS, axis=0)
    return int(np.sum((true >= low) & (true <= high))), len(true)


def mechanical_mae(found: Mechanical, true: Mechanical) -> float:
    """Mean of the MAE of masses, centres of mass, inertias and motor inertias [%], without kinds whose true values are all zero."""
    pairs = [(a, b) for a, b in zip(found, true, strict=True) if np.any(b)]
    return float(np.mean([mae(np.asarray(a), np.asarray(b)) for a, b in pairs]))


def mechanical_cosine(found: Mechanical, true: Mechanical) -> float:
    """Mean cosine similarity of the four kinds, without those that are all zero."""
    pairs = [(a, b) for a, b in zip(found, true, strict=True) if np.any(a) and np.any(b)]
    return float(np.mean([cosine_similarity(np.asarray(a), np.asarray(b)) for a, b in pairs]))


MOST = 400
"""Maximum number of draws whose torques are computed one by one."""


@dataclass(frozen=True, eq=False)
class Nominal:
    """Parameters of a URDF: mechanical, and standard inertial ones with motor inertias (11 n,)."""

    links: Mechanical
    standard: Array


def nominal_of(arm: ArmModel, rotors: Array | None) -> Nominal | None:
    """Reference parameters from the URDF; ``None`` without ``rotors`` or if its inertias are physically inconsistent."""
    if rotors is None or not np.all(consistency(arm.inertials.reshape(-1, INERTIALS)) > 0.0):
        return None
    return Nominal(mechanical_of(arm, rotors), np.concatenate([arm.inertials, rotors]))


def measures(
    draws: ArmDraws, base: BaseParameters, nominal: Nominal | None, measured: Array | None
) -> dict[str, float]:
    """Errors of the posterior means: MAE [%] and cosine similarity of mechanical and base parameters relative to the
    nominal ones, and RMSE [%] of axis inertias relative to the measured ones (N,), where available.
    """
    compared: dict[str, float] = {}
    if nominal is not None:
        means = base.projection @ draws.standard.mean(axis=(0, 1)), base.projection @ nominal.standard
        compared |= {
            "mechanical_mae": mechanical_mae(draws.mean, nominal.links),
            "mechanical_cosine": mechanical_cosine(draws.mean, nominal.links),
            "base_mae": mae(*means),
            "base_cosine": cosine_similarity(*means),
        }
    if measured is not None:
        if isinstance(draws.posterior, TorquePosterior):
            raise ConfigError("a posterior of torques contains no measured inertias")
        compared["inertia_rmse"] = rmse(draws.inertias(draws.posterior.regressor).mean(axis=(0, 1)), measured)
    return compared


def predictive_counts(
    draws: ArmDraws, base: BaseParameters, nominal: Nominal | None, measured: Array | None
) -> dict[str, tuple[int, int]]:
    """How many of the nominal mechanical and base parameters, and of the measured axis inertias (N,), lie within the 95 % intervals
    of the draws, and how many there are (Reiners et al. 2025, §III-B, C).

    Predictions of measured inertias include their noise.
    """
    counts: dict[str, tuple[int, int]] = {}
    if nominal is not None:
        flat = draws.standard.reshape(-1, draws.standard.shape[-1])
        table = np.asarray(draws.links.table).reshape(len(flat), -1)
        counts["mechanical_parameters"] = within(table, np.asarray(nominal.links.table).ravel())
        counts["base_parameters"] = within(flat @ base.projection.T, base.projection @ nominal.standard)
    if measured is not None and isinstance(draws.posterior, InertiaPosterior):
        x = draws.x.reshape(-1, draws.x.shape[-1])
        counts["inertias"] = within(draws.posterior.simulate(x, np.random.default_rng(0)), measured)
    return counts


def torques_of(draws: ArmDraws, machine: Machine, motion: ProcessedMotion, rest: float) -> Array:
    """Torques (K, M, n) [N m] of a motion for at most :data:`MOST` draws, including friction if sampled.

    :raises ConfigError: for a machine without a URDF.
    """
    columns, parameters = _linear_model(draws, machine, motion, rest)
    picked = parameters[:: -(-len(parameters) // MOST)]
    return np.asarray(np.einsum("mjp,sp->smj", columns, picked))


def mean_torque(draws: ArmDraws, machine: Machine, motion: ProcessedMotion, rest: float) -> Array:
    """Mean torque (M, n) [N m] of a motion over all draws: that of the mean parameters, in which torques are linear.

    :raises ConfigError: for a machine without a URDF.
    """
    columns, parameters = _linear_model(draws, machine, motion, rest)
    return np.asarray(columns @ parameters.mean(axis=0))


def _linear_model(
    draws: ArmDraws, machine: Machine, motion: ProcessedMotion, rest: float
) -> tuple[Array, Array]:
    """Regressor (M, n, p) of a motion, and the parameters (K, p) of all draws."""
    designed = design(machine, motion.states, rest)
    if isinstance(draws.posterior, TorquePosterior):
        return designed.columns, draws.linear
    if machine.arm is None:
        raise ConfigError("the torques of links need a URDF: give one")
    names = (*machine.arm.parameter_names, *(f"{machine.inertia_name}_{joint}" for joint in machine.joints))
    columns = designed.columns[..., [designed.names.index(name) for name in names]]
    return columns, draws.standard.reshape(-1, draws.standard.shape[-1])
