"""What simulates recorded runs: our own steps, or MuJoCo."""

from __future__ import annotations

from typing import cast

from stribeck.evaluate.assessment import Simulator
from stribeck.model.step import Integrator


def engine_of(integrator: str | None) -> tuple[Integrator | None, Simulator | None]:
    """The integrator of the grid, and the simulator if it is not ours."""
    if integrator != "mujoco":
        return cast(Integrator | None, integrator), None
    from stribeck.mujoco.bench import simulate_in_mujoco

    return "exponential", simulate_in_mujoco
