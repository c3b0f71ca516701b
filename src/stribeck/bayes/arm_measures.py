"""How near draws of an arm are to a nominal model and to measurements, by the seed's measures (seed 003, table II)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stribeck.bayes.arm import ArmDraws
from stribeck.bayes.likelihood import TorquePosterior
from stribeck.bayes.measures import cosine_similarity, mae, mechanical_cosine, mechanical_mae, rmse
from stribeck.bayes.network import Mechanical, mechanical_of
from stribeck.dynamics.base_parameters import BaseParameters
from stribeck.dynamics.inertia import consistency
from stribeck.dynamics.model import INERTIALS, ArmModel
from stribeck.dynamics.motion import ProcessedMotion
from stribeck.dynamics.regressor import Machine, design
from stribeck.errors import ConfigError

Array = npt.NDArray[np.float64]

MOST = 400
"""Draws that torques are predicted with, at most."""


@dataclass(frozen=True, eq=False)
class Nominal:
    """What a URDF says: mechanical parameters of the links, and standard parameters with motor inertias (11 n,)."""

    links: Mechanical
    standard: Array


def nominal_of(arm: ArmModel, rotors: Array | None) -> Nominal | None:
    """The URDF as a model to compare with; ``None`` if it has no possible links, or rotors are not known."""
    if rotors is None or not np.all(consistency(arm.inertials.reshape(-1, INERTIALS)) > 0.0):
        return None
    return Nominal(mechanical_of(arm, rotors), np.concatenate([arm.inertials, rotors]))


def measures(
    draws: ArmDraws, base: BaseParameters, nominal: Nominal | None, measured: Array | None
) -> dict[str, float]:
    """MAE [%] and cosine similarity of the means of mechanical and base parameters against a nominal model, RMSE [%] of the
    mean inertias of the axes against measured ones (N,); what cannot be compared is left out.
    """
    found: dict[str, float] = {}
    if nominal is not None:
        means = base.projection @ draws.standard.mean(axis=(0, 1)), base.projection @ nominal.standard
        found |= {
            "mechanical_mae": mechanical_mae(draws.mean, nominal.links)["all"],
            "mechanical_cosine": mechanical_cosine(draws.mean, nominal.links),
            "base_mae": mae(*means),
            "base_cosine": cosine_similarity(*means),
        }
    if measured is not None:
        if isinstance(draws.posterior, TorquePosterior):
            raise ConfigError("a posterior of torques has no measured inertias")
        found["inertia_rmse"] = rmse(draws.inertias(draws.posterior.regressor).mean(axis=(0, 1)), measured)
    return found


def torques_of(draws: ArmDraws, machine: Machine, motion: ProcessedMotion, rest: float) -> Array:
    """Torques of a motion, of at most :data:`MOST` draws (K, M, n) [N m]; without friction where the draws know none.

    :raises ConfigError: for a machine without a URDF.
    """
    if isinstance(draws.posterior, TorquePosterior):
        return draws.torques(motion, rest, MOST)
    if machine.arm is None:
        raise ConfigError("torques of links need a URDF")
    found = design(machine, motion.states, rest)
    names = (*machine.arm.parameter_names, *(f"{machine.inertia_name}_{joint}" for joint in machine.joints))
    columns = found.columns[..., [found.names.index(name) for name in names]]
    flat = draws.standard.reshape(-1, draws.standard.shape[-1])
    picked = flat[:: max(1, len(flat) // MOST)]
    return np.asarray(np.einsum("mjp,sp->smj", columns, picked))
