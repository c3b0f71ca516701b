"""Figures in the diagnostics of the compensation node."""

from __future__ import annotations

from typing import Any

import numpy as np

from stribeck.live.compensator import Compensator
from stribeck.live.outputs import fading
from stribeck.live.supervision import EnableState
from stribeck.model.arrays import Array


def figures_of(compensator: Compensator, enabling: EnableState, states: int, gap: str) -> dict[str, Any]:
    """What the compensator does, by name.

    :param states: how many were taken.
    :param gap: why nothing is learnt; empty if something is.
    """
    account = compensator.account()
    figures: dict[str, Any] = {
        "states": states,
        "enabled": compensator.enabled,
        "gain": compensator.gain,
        "automatic returns": f"{enabling.returned} of {enabling.returns}",
        "states merged": compensator.merger.merged,
        "states of other joints": compensator.merger.foreign,
    }
    for k, name in enumerate(compensator.names):
        figures[f"torque/{name}"] = float(compensator.torque[k])
        figures[f"scale/{name}"] = f"{account.dry[k]:.3f} dry, {account.viscous[k]:.3f} viscous"
        figures[f"certainty/{name}"] = float(account.certainty[k])
        figures[f"contact/{name}"] = float(account.contact[k])
        figures[f"energy/{name}"] = float(account.energy[k])
    if (latency := compensator.loads.latency) is not None:
        for k, name in enumerate(compensator.names):
            delay, width = latency.delay[k], latency.half_width[k]
            told = (
                "not measured" if np.isnan(delay) else f"{1e3 * delay:.0f} ms ± {1e3 * width:.0f} ms measured"
            )
            used = 1e3 * compensator.feed_forward.delay.lag[k]
            figures[f"goal delay/{name}"] = f"{told}, {used:.0f} ms used"
    if gap:
        figures["learning"] = f"nothing: {gap}"
    if compensator.settings.effort_meaning == "none" and compensator.model.load_dependent:
        modelled = compensator.loads.modelled
        figures["load terms"] = "from the weight of the model" if modelled else "zero: effort_meaning is none"
    return figures


def fading_of(compensator: Compensator) -> str:
    """A warning that names joints whose torque fades; empty without one."""
    energy = compensator.account().energy
    names = [name for name, share in zip(compensator.names, energy, strict=True) if share < 1.0]
    return fading(names) if names else ""


def latency(durations: Array) -> dict[str, float]:
    """Percentiles of the processing times [µs], none without samples.

    :param durations: [s].
    """
    if not durations.size:
        return {}
    p50, p99, longest = np.percentile(1e6 * durations, [50, 99, 100])
    return {"p50_us": float(p50), "p99_us": float(p99), "max_us": float(longest)}
