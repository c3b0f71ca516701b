"""What the friction laws lack: candidates for missing physics, compared by their errors under conditions left out.

Each candidate adds one effect to a law, with a few parameters, and is fitted to all runs and without each condition in
turn: gains for the XL330, single runs for the STS3250. All start from the same minima of the plain law (there the effect
is absent) and from points where the effect is present. An effect belongs into the laws if the error on what was left out
falls. Two rows bound what any effect could reach: the law fitted to every run alone, and a free-form torque. The motion
``sin_sin`` repeats itself with opposite sign after pi seconds, which measures how well the joint repeats itself.

    python bench/missing_physics.py xl330 [--laws m5,m6] [--only NAME …] [--pool FILE] [--quick] [--json FILE]
"""

# ruff: noqa: D102  (methods of candidates are described in ``Effect``)

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import paths  # noqa: F401
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from stribeck.files.actuators import load_actuator
from stribeck.identify.servo.conditions import kinds_of
from stribeck.identify.servo.objective import split_runs
from stribeck.identify.servo.parallel import ParallelFits, Pool, Stage, apart
from stribeck.identify.servo.result import FitSettings
from stribeck.identify.servo.rollout import Inputs, Rollout
from stribeck.identify.servo.subset_losses import Rows
from stribeck.identify.servo.task import task_for
from stribeck.model.bench import gravity_torque, inertia
from stribeck.model.law import friction_budget, law_named
from stribeck.model.log import Log
from stribeck.model.parameters import Parameter, ParameterSet
from stribeck.model.step import Plant, PlantState, velocity_step
from stribeck.recordings.sources import read_recordings

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("STRIBECK_DATA", ROOT.parent / "shared" / "data"))
FloatArray = npt.NDArray[np.float64]
Values = Mapping[str, Any]

EFFECTS = {"xl330": "current-limit,supply", "sts3250": "supply"}
STARTS = 4
"""Minima of the plain law from which every fit starts."""

ITERATIONS = 8
REFERENCE_TEMPERATURE = 30.0


@dataclass(frozen=True)
class Effect:
    """No effect at all; candidates change single methods. ``state`` is the effect's own state, a tuple of arrays.

    :param name: name of the row.
    :param parameters: name, unit, lower and upper bound; at 0 the effect is absent.
    :param present: values with which the second half of the starts begins.
    """

    name: str = "none"
    parameters: tuple[tuple[str, str, float, float], ...] = ()
    present: Mapping[str, float] = field(default_factory=dict)
    terms: Mapping[str, bool] = field(default_factory=dict)
    states: int = 0
    prior: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def values(self, p: Values, position: Any, velocity: Any, state: Any, now: Inputs) -> Values:
        """Parameter values that depend on the state."""
        return p

    def seen(self, p: Values, position: Any, velocity: Any, state: Any) -> Any:
        """Position that the firmware measures [rad]."""
        return position

    def duty(self, p: Values, duty: Any) -> Any:
        """Duty that the bridge applies."""
        return duty

    def torque(self, p: Values, torque: Any, duty: Any, command: Any, velocity: Any) -> Any:
        """Motor torque [N m]."""
        return torque

    def external(self, p: Values, external: Any, position: Any, velocity: Any) -> Any:
        """External torque [N m]."""
        return external

    def inertia(self, p: Values, moment: Any) -> Any:
        """Moment of inertia [kg m^2]."""
        return moment

    def recorded(self, p: Values, state: PlantState) -> Any:
        """Position that the recording shows [rad]."""
        return state.position

    def next(
        self, p: Values, state: Any, before: PlantState, after: PlantState, motor: Any, now: Inputs, dt: float
    ) -> Any:
        """The effect's state after a step."""
        return state

    def step(
        self, plant: Plant, p: Values, at: PlantState, state: Any, command: Any, now: Inputs, dt: float
    ) -> tuple[PlantState, Any]:
        """One time step, as ``model.step``'s exponential one with the effect in it."""
        actuator, gains = plant.actuator, plant.gains
        middle = at.position + 0.5 * dt * at.velocity
        seen = self.seen(p, middle, at.velocity, state)
        halfway = actuator.control.next_state(gains, at.control, command.goal, seen, 0.5 * dt)
        p = self.values(p, middle, at.velocity, state, now)
        change = 0.5 * dt * at.velocity - (halfway.goal - at.control.goal)
        reach = jnp.abs(change) if plant.stiff else None

        def motor(velocity: Any) -> Any:
            output = actuator.control.output(p, gains, halfway, command.goal, seen, velocity, reach)
            duty = self.duty(p, output)
            torque = actuator.control.torque(p, duty, command, velocity)
            return self.torque(p, torque, duty, command, velocity)

        external = gravity_torque(plant.pendulum, middle, p["q_offset"])
        external = self.external(p, external, middle, at.velocity)
        mobility = 1.0 / self.inertia(p, inertia(plant.pendulum, p["armature"]))
        velocity, distance = self.moved(plant, p, mobility, at.velocity, motor, external, state, dt)
        control = actuator.control.next_state(gains, halfway, command.goal, seen, 0.5 * dt)
        after = PlantState(at.position + distance, velocity, control)
        return after, self.next(p, state, at, after, motor(velocity), now, dt)

    def moved(
        self,
        plant: Plant,
        p: Values,
        mobility: Any,
        velocity: Any,
        motor: Any,
        external: Any,
        state: Any,
        dt: float,
    ) -> tuple[Any, Any]:
        """Velocity after a step, and the distance covered."""
        return velocity_step(plant.law, mobility, p, velocity, motor, external, dt)


DRY = ("friction_base", "friction_stribeck", *(f"load_friction_{m}{s}" for m in ("motor", "external") for s in ("", "_stribeck", "_quad")))  # fmt: skip
"""Parameters of the budget at rest; multiplied together they scale dry friction."""


def scaled(p: Values, factor: Any, names: Sequence[str] = DRY) -> Values:
    """Values with some of them multiplied by a factor."""
    return {**p, **{name: p[name] * factor for name in names if name in p}}


class SupplySag(Effect):
    """The supply's own resistance R_s: I = (dV - k_t v) / (R + R_s d^2)."""

    def torque(self, p: Values, torque: Any, duty: Any, command: Any, velocity: Any) -> Any:
        return torque * p["R"] / (p["R"] + p["sag"] * duty * duty)


class BridgeDrop(Effect):
    """A constant voltage lost in the bridge against the current."""

    def torque(self, p: Values, torque: Any, duty: Any, command: Any, velocity: Any) -> Any:
        lost = command.torque_enable * p["kt"] / p["R"] * p["drop"]
        return jnp.sign(torque) * jnp.maximum(jnp.abs(torque) - lost, 0.0)


class DeadBand(Effect):
    """Duties below a threshold have no effect, larger ones lose it."""

    def duty(self, p: Values, duty: Any) -> Any:
        return jnp.sign(duty) * jnp.maximum(jnp.abs(duty) - p["dead_band"], 0.0)


class Rounding(Effect):
    """The firmware sees whole encoder steps; derivatives pass through."""

    def seen(self, p: Values, position: Any, velocity: Any, state: Any) -> Any:
        quantum = 2.0 * np.pi / 4096.0
        return position + p["rounding"] * jax.lax.stop_gradient(
            quantum * jnp.round(position / quantum) - position
        )


class Coasting(Effect):
    """A share c of a drive/coast bridge: back-EMF brakes with (1 - c) + c |d| of its strength."""

    def torque(self, p: Values, torque: Any, duty: Any, command: Any, velocity: Any) -> Any:
        lost = p["coasting"] * (1.0 - jnp.abs(duty))
        return torque + command.torque_enable * p["kt"] ** 2 / p["R"] * velocity * lost


class Saturation(Effect):
    """Iron saturation: the torque constant falls with the current."""

    def torque(self, p: Values, torque: Any, duty: Any, command: Any, velocity: Any) -> Any:
        return torque / (1.0 + p["saturation"] * jnp.abs(torque) / p["kt"])


class SamplingDelay(Effect):
    """The firmware acts on the position some time ago."""

    def seen(self, p: Values, position: Any, velocity: Any, state: Any) -> Any:
        return position - p["sampling_delay"] * velocity


class CurrentLag(Effect):
    """Motor torque follows with a time constant (current loop, inductance, filter)."""

    def values(self, p: Values, position: Any, velocity: Any, state: Any, now: Inputs) -> Values:
        return {**p, "_lag": state[0]}

    def external(self, p: Values, external: Any, position: Any, velocity: Any) -> Any:
        return external + p["_lag"]

    def next(self, p: Values, state: Any, before: Any, after: Any, motor: Any, now: Inputs, dt: float) -> Any:
        # lag = filtered - instantaneous torque, fed by changes of the instantaneous one
        decay = jnp.exp(-dt / jnp.maximum(p["current_lag"], 1e-5))
        return (decay * (state[0] - (motor - state[1])), motor)


class ReadingTime(Effect):
    """Recorded positions belong to another time than recorded goals."""

    def recorded(self, p: Values, state: PlantState) -> Any:
        return state.position + p["reading_time"] * state.velocity


class SupplyShare(Effect):
    """The motor sees the nominal supply plus a share of the measured deviation."""

    def torque(self, p: Values, torque: Any, duty: Any, command: Any, velocity: Any) -> Any:
        change = p["supply_share"] * (p["_nominal"] - command.supply_voltage)
        return torque + command.torque_enable * p["kt"] / p["R"] * duty * change

    def values(self, p: Values, position: Any, velocity: Any, state: Any, now: Inputs) -> Values:
        return {**p, "_nominal": now["nominal"]}


class FrictionByPosition(Effect):
    """Dry friction times 1 + first and second harmonics of the angle (gear ripple, eccentric gears)."""

    def values(self, p: Values, position: Any, velocity: Any, state: Any, now: Inputs) -> Values:
        factor = 1.0 + p["sin1"] * jnp.sin(position) + p["cos1"] * (jnp.cos(position) - 1.0)
        factor = factor + p["sin2"] * jnp.sin(2.0 * position) + p["cos2"] * (jnp.cos(2.0 * position) - 1.0)
        return scaled(p, jnp.maximum(factor, 0.0))


class ToothRipple(Effect):
    """Torque ripple of output gear teeth: A sin(N theta) + B cos(N theta)."""

    def external(self, p: Values, external: Any, position: Any, velocity: Any) -> Any:
        angle = self.present["teeth"] * position
        return external + p["tooth_sin"] * jnp.sin(angle) + p["tooth_cos"] * jnp.cos(angle)


class Transmission(Effect):
    """Motor torque times 1 + first harmonic of the angle (eccentric output gear)."""

    def values(self, p: Values, position: Any, velocity: Any, state: Any, now: Inputs) -> Values:
        return {
            **p,
            "_ratio": 1.0 + p["ratio_sin"] * jnp.sin(position) + p["ratio_cos"] * (jnp.cos(position) - 1.0),
        }

    def torque(self, p: Values, torque: Any, duty: Any, command: Any, velocity: Any) -> Any:
        return torque * p["_ratio"]


class FrictionTemperature(Effect):
    """All friction falls with the measured temperature by a share per kelvin."""

    def values(self, p: Values, position: Any, velocity: Any, state: Any, now: Inputs) -> Values:
        factor = jnp.exp(-p["friction_per_kelvin"] * (now["temperature"] - REFERENCE_TEMPERATURE))
        return scaled(p, factor, (*DRY, "friction_viscous"))


class MeasuredResistance(Effect):
    """Winding resistance grows with the measured temperature."""

    def values(self, p: Values, position: Any, velocity: Any, state: Any, now: Inputs) -> Values:
        return scaled(p, jnp.exp(p["R_per_kelvin"] * (now["temperature"] - REFERENCE_TEMPERATURE)), ("R",))


class Heating(Effect):
    """The winding heats up during the run: dR/dt = h I^2, R the share added."""

    def values(self, p: Values, position: Any, velocity: Any, state: Any, now: Inputs) -> Values:
        return scaled(p, 1.0 + state[0], ("R",))

    def next(self, p: Values, state: Any, before: Any, after: Any, motor: Any, now: Inputs, dt: float) -> Any:
        return (state[0] + dt * p["heating"] * (motor / p["kt"]) ** 2,)


class HeatingAndMore(Effect):
    """Winding resistance R (1 + a (T_0 - 30) + x), dx/dt = h I^2 - c x, with supply resistance R_s and measured T_0."""

    def values(self, p: Values, position: Any, velocity: Any, state: Any, now: Inputs) -> Values:
        warm = now["temperature"] - REFERENCE_TEMPERATURE
        p = scaled(p, 1.0 + state[0] + p.get("R_per_kelvin", 0.0) * warm, ("R",))
        if "friction_per_kelvin" in p:
            p = scaled(p, jnp.exp(-p["friction_per_kelvin"] * warm), (*DRY, "friction_viscous"))
        return p

    def torque(self, p: Values, torque: Any, duty: Any, command: Any, velocity: Any) -> Any:
        return torque * p["R"] / (p["R"] + p["sag"] * duty * duty) if "sag" in p else torque

    def next(self, p: Values, state: Any, before: Any, after: Any, motor: Any, now: Inputs, dt: float) -> Any:
        heat = p["heating"] * jnp.minimum((motor / p["kt"]) ** 2, 9.0)
        return (state[0] + dt * (heat - p.get("cooling", 0.0) * state[0]),)


class Warming(Effect):
    """Friction falls during the run with the energy that it has taken."""

    def values(self, p: Values, position: Any, velocity: Any, state: Any, now: Inputs) -> Values:
        return scaled(p, jnp.exp(-p["warming"] * state[0]), (*DRY, "friction_viscous"))

    def next(self, p: Values, state: Any, before: Any, after: Any, motor: Any, now: Inputs, dt: float) -> Any:
        return (state[0] + dt * jnp.abs(motor * after.velocity),)


class Drag(Effect):
    """Torque against the square of velocity (air, churning grease)."""

    def external(self, p: Values, external: Any, position: Any, velocity: Any) -> Any:
        return external - p["drag"] * velocity * jnp.abs(velocity)


class RodMass(Effect):
    """A rod of unknown mass: gravity and inertia, relative to those of the load."""

    def external(self, p: Values, external: Any, position: Any, velocity: Any) -> Any:
        return external * (1.0 + 0.5 * p["rod"])

    def inertia(self, p: Values, moment: Any) -> Any:
        return p["armature"] + (moment - p["armature"]) * (1.0 + p["rod"] / 3.0)


class Cable(Effect):
    """A spring torque of the cable or horn, proportional to the angle."""

    def external(self, p: Values, external: Any, position: Any, velocity: Any) -> Any:
        return external - p["cable"] * position


class MeshLoad(Effect):
    """Load-dependent friction sees the torques at the gear mesh, with their inertial parts: tau_m - J_m a, tau_e - J_l a."""

    def moved(
        self,
        plant: Plant,
        p: Values,
        mobility: Any,
        velocity: Any,
        motor: Any,
        external: Any,
        state: Any,
        dt: float,
    ) -> tuple[Any, Any]:
        share, acceleration = p["mesh"], state[0]
        motor_part = share * p["armature"] * acceleration
        load_part = share * (1.0 / mobility - p["armature"]) * acceleration
        return shifted_velocity_step(
            plant.law, mobility, p, velocity, motor, external, dt, motor_part, load_part
        )

    def next(self, p: Values, state: Any, before: Any, after: Any, motor: Any, now: Inputs, dt: float) -> Any:
        return (0.5 * state[0] + 0.5 * (after.velocity - before.velocity) / dt,)


def shifted_velocity_step(
    law: Any, mobility: Any, p: Values, velocity: Any, motor: Any, external: Any, dt: float, a: Any, b: Any
) -> tuple[Any, Any]:
    """``velocity_step`` whose friction sees the torques ``motor - a`` and ``external - b``; the rest is unchanged.

    The budget at the shifted torques enters as a change of Coulomb friction, constant over the step.
    """
    torque = motor(velocity)
    change = friction_budget(law, p, torque - a, external - b, velocity)[0] - friction_budget(law, p, torque, external, velocity)[0]  # fmt: skip
    changed = {**p, "friction_base": jnp.maximum(p["friction_base"] + change, -p["friction_base"] * 0.0)}
    return velocity_step(law, mobility, changed, velocity, motor, external, dt)


class Substepped(Effect):
    """Effects with fast states: explicit substeps of the whole joint."""

    substeps = 8

    def friction(self, plant: Plant, p: Values, motor: Any, external: Any, velocity: Any) -> tuple[Any, Any]:
        """Dry budget and viscous torque [N m]."""
        dry = friction_budget(plant.law, {**p, "friction_viscous": 0.0}, motor, external, velocity)[0]
        return dry, p["friction_viscous"]


class Presliding(Substepped):
    """Dahl: dry friction is F z, dz/dx = (1 - sgn(v) z)/h, so that it builds up over the distance h."""

    substeps = 6

    def step(
        self, plant: Plant, p: Values, at: PlantState, state: Any, command: Any, now: Inputs, dt: float
    ) -> tuple[PlantState, Any]:
        actuator, gains, h = plant.actuator, plant.gains, dt / self.substeps
        moment = inertia(plant.pendulum, p["armature"])
        position, velocity, z = at.position, at.velocity, state[0]
        control = actuator.control.next_state(gains, at.control, command.goal, position, dt)
        for _ in range(self.substeps):
            middle = position + 0.5 * h * velocity
            duty = actuator.control.output(p, gains, control, command.goal, middle, velocity)
            motor = actuator.control.torque(p, duty, command, velocity)
            external = gravity_torque(plant.pendulum, middle, p["q_offset"])
            dry, viscous = self.friction(plant, p, motor, external, velocity)
            slope = viscous + command.torque_enable * p["kt"] ** 2 / p["R"]
            direction = jnp.sign(velocity)
            reach = jnp.exp(-jnp.abs(h * velocity) / p["presliding"])
            z = direction + (z - direction) * jnp.where(direction == 0.0, 1.0, reach)
            force = motor + external - dry * z - viscous * velocity
            velocity = velocity + h * force / (moment + h * (slope + 0.5 * h * dry / p["presliding"]))
            position = middle + 0.5 * h * velocity
        return PlantState(position, velocity, control), (z,)


class LoadScaledLuGre(Presliding):
    """Load-scaled LuGre (google-deepmind/mujoco#3528): F z with F = K_c + mu |tau| + d tau z, tau the load."""

    def friction(self, plant: Plant, p: Values, motor: Any, external: Any, velocity: Any) -> tuple[Any, Any]:
        load = external * jnp.sign(velocity)
        return p["friction_base"] + p["mu"] * jnp.abs(external) + p["mu_difference"] * load, p[
            "friction_viscous"
        ]


class TwoMass(Substepped):
    """Motor and load joined by a spring of compliance c with play of half-width b; the encoder is on the load."""

    def step(
        self, plant: Plant, p: Values, at: PlantState, state: Any, command: Any, now: Inputs, dt: float
    ) -> tuple[PlantState, Any]:
        actuator, gains, h = plant.actuator, plant.gains, dt / self.substeps
        load = inertia(plant.pendulum, 0.0)
        reduced = load * p["armature"] / (load + p["armature"])
        stiffness = 1.0 / (p["compliance"] + 1.5 * h * h / reduced)
        damping = 0.6 * jnp.sqrt(stiffness * reduced)
        position, velocity, twist, rotor = at.position, at.velocity, state[0], state[1]
        control = actuator.control.next_state(gains, at.control, command.goal, position, dt)
        for _ in range(self.substeps):
            duty = actuator.control.output(p, gains, control, command.goal, position, velocity)
            stretch = jnp.sign(twist) * jnp.maximum(jnp.abs(twist) - p["play"], 0.0)
            touching = 1.0 - jnp.exp(-jnp.abs(stretch) / 1e-4)
            spring = stiffness * stretch + touching * damping * (rotor - velocity)
            gravity = gravity_torque(plant.pendulum, position, p["q_offset"])
            velocity = velocity + h * (spring + gravity) / load
            rotor, _ = velocity_step(
                plant.law,
                1.0 / p["armature"],
                p,
                rotor,
                lambda v: actuator.control.torque(p, duty, command, v),  # noqa: B023
                -spring,
                h,
            )
            position = position + h * velocity
            twist = twist + h * (rotor - velocity)
        return PlantState(position, velocity, control), (twist, rotor)


MONOMIALS = [(i, j, k) for i in range(4) for j in range(4) for k in range(4) if 0 < i + j + k <= 3]


class FreeForm(Effect):
    """A torque that is a polynomial of third order in angle, velocity and external torque direction: 19 coefficients."""

    def external(self, p: Values, external: Any, position: Any, velocity: Any) -> Any:
        q, v = position / 1.5, velocity / 6.0
        d = jnp.tanh(velocity / 0.2)
        extra = sum(p[f"c{i}{j}{k}"] * q**i * v**j * d**k for i, j, k in MONOMIALS)
        return external + extra


class ByRun(Effect):
    """A parameter of its own for every run: no law, but it shows what differs between runs."""

    def values(self, p: Values, position: Any, velocity: Any, state: Any, now: Inputs) -> Values:
        change = sum(p[f"r{k}"] * now["one_run"][k] for k in range(now["one_run"].shape[0]))
        which = self.name.split()[0]
        if which == "friction":
            return scaled(p, 1.0 + change, (*DRY, "friction_viscous"))
        if which == "dry":
            return scaled(p, 1.0 + change)
        if which == "q_offset":
            return {**p, "q_offset": p["q_offset"] + change}
        if which == "offset":
            return {**p, "_offset": change}
        return scaled(p, 1.0 + change, (which,))

    def external(self, p: Values, external: Any, position: Any, velocity: Any) -> Any:
        return external + p["_offset"] if "_offset" in p else external


def by_run(runs: int) -> list[Effect]:
    """One quantity that differs between runs."""
    limits = {"friction": 0.8, "dry": 0.8, "R": 0.4, "kt": 0.4, "friction_viscous": 1.0, "q_offset": 0.1, "offset": 0.1, "armature": 1.0}  # fmt: skip
    units = {"q_offset": "rad", "offset": "N m"}
    return [
        ByRun(f"{name} by run", tuple((f"r{k}", units.get(name, "1"), -limit, limit) for k in range(runs)))
        for name, limit in limits.items()
    ]


def effects(servo: str) -> list[Effect]:
    """All candidates."""
    del servo
    teeth = (23.0, 32.0, 47.0)
    return [
        Effect(),
        Effect("friction by direction", terms={"asymmetric": True}),
        Effect("offset torque", terms={"offset": True}),
        TwoMass("elasticity", (("compliance", "rad/(N m)", 0.0, 0.2), ("play", "rad", 0.0, 1e-5)), {"compliance": 0.02}, states=2),
        TwoMass("play and elasticity", (("compliance", "rad/(N m)", 0.0, 0.2), ("play", "rad", 0.0, 0.03)), {"compliance": 0.01, "play": 0.006}, states=2),
        Presliding("presliding (Dahl)", (("presliding", "rad", 1e-3, 0.3),), {"presliding": 0.03}, states=1),
        LoadScaledLuGre("load-scaled LuGre", (("presliding", "rad", 1e-3, 0.3), ("mu", "1", 0.0, 0.6), ("mu_difference", "1", -0.3, 0.3)), {"presliding": 0.02, "mu": 0.15}, states=1),
        FrictionByPosition("friction by position", tuple((n, "1", -0.6, 0.6) for n in ("sin1", "cos1", "sin2", "cos2")), {"sin1": 0.2}),
        Transmission("transmission by position", tuple((n, "1", -0.3, 0.3) for n in ("ratio_sin", "ratio_cos")), {"ratio_sin": 0.05}),
        *(ToothRipple(f"torque ripple, {n:.0f} per turn", tuple((m, "N m", -0.1, 0.1) for m in ("tooth_sin", "tooth_cos")), {"teeth": n, "tooth_sin": 0.01}) for n in teeth),
        MeasuredResistance("resistance by measured temperature", (("R_per_kelvin", "1/K", -0.05, 0.05),), {"R_per_kelvin": 0.004}),
        FrictionTemperature("friction by measured temperature", (("friction_per_kelvin", "1/K", -0.1, 0.1),), {"friction_per_kelvin": 0.01}),
        Heating("winding heats up in the run", (("heating", "1/(A^2 s)", 0.0, 0.3),), {"heating": 0.02}, states=1),
        HeatingAndMore("winding heats up and cools", (("heating", "1/(A^2 s)", 0.0, 0.6), ("cooling", "1/s", 0.0, 3.0)), {"heating": 0.03, "cooling": 0.2}, states=1),
        HeatingAndMore("winding heats, cools, starts at T", (("heating", "1/(A^2 s)", 0.0, 0.6), ("cooling", "1/s", 0.0, 3.0), ("R_per_kelvin", "1/K", -0.05, 0.05)), {"heating": 0.03, "cooling": 0.2, "R_per_kelvin": 0.004}, states=1),
        HeatingAndMore("winding heats, supply resistance", (("heating", "1/(A^2 s)", 0.0, 0.6), ("sag", "ohm", 0.0, 3.0)), {"heating": 0.03, "sag": 0.3}, states=1),
        Warming("friction falls in the run", (("warming", "1/J", -0.2, 0.2),), {"warming": 0.02}, states=1),
        SupplySag("supply resistance", (("sag", "ohm", 0.0, 3.0),), {"sag": 0.5}),
        SupplyShare("share of the measured supply", (("supply_share", "1", -1.0, 1.0),), {"supply_share": 0.5}),
        BridgeDrop("voltage drop of the bridge", (("drop", "V", 0.0, 1.5),), {"drop": 0.2}),
        DeadBand("dead band of the duty", (("dead_band", "1", 0.0, 0.1),), {"dead_band": 0.01}),
        Rounding("whole encoder steps", (("rounding", "1", 0.999, 1.0),), {"rounding": 1.0}),
        SamplingDelay("sampling delay", (("sampling_delay", "s", -0.02, 0.02),), {"sampling_delay": 0.003}),
        CurrentLag("current loop, filter", (("current_lag", "s", 0.0, 0.03),), {"current_lag": 0.003}, states=2),
        Coasting("drive/coast share", (("coasting", "1", -1.0, 1.0),), {"coasting": 0.3}),
        Saturation("saturation of the iron", (("saturation", "1/A", 0.0, 1.0),), {"saturation": 0.1}),
        Saturation("saturation by the datasheet", (("saturation", "1/A", 0.0, 1.0),), {"saturation": 0.18}, prior={"saturation": (0.18, 0.05), "kt": (0.45, 0.045)}),

        ReadingTime("time of reading", (("reading_time", "s", -0.02, 0.02),), {"reading_time": 0.003}),
        Drag("drag (velocity squared)", (("drag", "N m s^2/rad^2", 0.0, 0.01),), {"drag": 0.0005}),
        RodMass("mass of the rod", (("rod", "1", -0.2, 0.5),), {"rod": 0.1}),
        Cable("spring of the cable", (("cable", "N m/rad", -0.1, 0.1),), {"cable": 0.01}),
        MeshLoad("load friction with inertial torques", (("mesh", "1", 0.0, 1.0),), {"mesh": 1.0}, states=1),
        FreeForm("free-form torque", tuple((f"c{i}{j}{k}", "N m", -0.1, 0.1) for i, j, k in MONOMIALS), {"c100": 0.005}),
    ]  # fmt: skip


@dataclass(frozen=True, eq=False)
class ExtendedRollout(Rollout):
    """Compiled simulations with an effect."""

    effect: Effect = field(default_factory=Effect)

    @cached_property
    def _inputs(self) -> Inputs:
        inputs = dict(Rollout._inputs.func(self))  # type: ignore[attr-defined]
        time_of = self.batch.time
        temperatures = [
            np.full(len(time_of), REFERENCE_TEMPERATURE)
            if log.temperature is None
            else np.full(len(time_of), np.median(log.temperature.value))
            for log in self.batch.logs
        ]
        inputs["temperature"] = self._array(np.stack(temperatures, axis=1))
        one_run = np.eye(len(self.batch.logs))[None, :, :, None] * np.ones((len(time_of), 1, 1, 1))
        if isinstance(self.effect, ByRun):
            inputs["one_run"] = np.asarray(one_run, dtype=self.dtype)
        inputs["nominal"] = self._array(np.broadcast_to(self.batch.nominal_supply, self.batch.goal.shape))
        return inputs

    def _advance(self, unit: jax.Array) -> Callable[[Any, Inputs], tuple[Any, jax.Array]]:
        plant, values, effect = self._plant, self._values(unit), self.effect

        def advance(state: Any, now: Inputs) -> tuple[Any, jax.Array]:
            at, own = state[:3], tuple(state[3:])
            at = PlantState(
                jnp.where(now["reset"], now["position"], at[0]),
                jnp.where(now["reset"], now["velocity"], at[1]),
                at[2],
            )
            if isinstance(effect, TwoMass):
                own = (jnp.where(now["reset"], 0.0, own[0]), jnp.where(now["reset"], now["velocity"], own[1]))
            residual = effect.recorded(values, at) - now["position"]
            after, own = effect.step(plant, values, at, own, self._command(values, now), now, self.batch.dt)
            return (*after, *own), residual

        return advance

    def _initial(self, unit: jax.Array, inputs: Inputs) -> Any:
        state = self._first(inputs)
        first = jax.tree.map(lambda leaf: leaf[0], inputs)
        for _ in range(4 + self.effect.states):
            shapes, _ = jax.eval_shape(self._advance(unit), state, first)
            state = jax.tree.map(lambda leaf, shape: jnp.broadcast_to(leaf, shape.shape), state, shapes)
        return state

    def _first(self, inputs: Inputs) -> Any:
        control = self._plant.actuator.control.first_state(self._array(self.batch.goal[0]))
        start = inputs["velocity"][0]
        own = [jnp.zeros_like(start) for _ in range(self.effect.states)]
        if isinstance(self.effect, TwoMass):
            own[1] = start
        state = (inputs["position"][0], start, control, *own)
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=self.dtype), state)


def refined(fits: ParallelFits, points: FloatArray, rows: Rows, stage: Stage) -> Pool:
    """Points of the general law to which a search leads from points of the fits, with their losses."""
    ends = fits.refine(points, rows, stage)
    return Pool(fits.general(ends, rows), fits.run_losses(ends, rows))


def starts_in(fits: ParallelFits, pool: Pool, count: int) -> tuple[FloatArray, Rows]:
    """For each fit the best ``count`` points of a pool that differ."""
    starts, indices, every = [], [], fits.every
    for k in range(len(every.law)):
        _, points, _ = fits.ranked(pool, every.take(np.array([k])))
        picked = points[apart(points, count)]
        starts.append(picked)
        indices += [k] * len(picked)
    return np.concatenate(starts), every.take(np.array(indices))


@dataclass(frozen=True, eq=False)
class Study:
    """Runs of one servo with the subsets fitted: all runs, all without each condition, and every run alone."""

    servo: str
    laws: tuple[str, ...]
    dt: float = 0.005
    pool: Path | None = None
    with_effects: tuple[str, ...] = ()
    quick: bool = False

    @cached_property
    def logs(self) -> list[Log]:
        """The recordings."""
        return read_recordings(DATA / self.servo, arm_mass=0.0)

    @cached_property
    def levels(self) -> list[npt.NDArray[np.bool_]]:
        """Runs of every condition left out: gains, or single runs."""
        kind = kinds_of(self.logs)[0]
        return (
            [mask for _, mask in kind.levels]
            if kind.name == "gain"
            else list(np.eye(len(self.logs), dtype=bool))
        )

    @cached_property
    def subsets(self) -> npt.NDArray[np.bool_]:
        """All runs, and all without each condition (1 + L, R)."""
        every = np.ones(len(self.logs), dtype=bool)
        return np.stack([every, *(~mask for mask in self.levels)])

    def fits(self, effect: Effect, subsets: npt.NDArray[np.bool_] | None = None) -> ParallelFits:
        """Fits of the laws with an effect."""
        actuator = load_actuator(self.servo).with_effects(self.with_effects)
        if effect.prior:
            sheet = actuator.datasheet
            actuator = replace(actuator, datasheet=replace(sheet, prior={**sheet.prior, **effect.prior}))
        split = split_runs(self.logs)
        tasks = []
        for name in self.laws:
            law = law_named(name).with_terms(**effect.terms)
            task = task_for(split, actuator, law, FitSettings(dt=self.dt))
            added = [
                Parameter(n, unit, 0.5 * (low + high), low, high) for n, unit, low, high in effect.parameters
            ]
            parameters = ParameterSet([*task.parameters, *added])
            parameters = parameters.fixed({p.name: p.upper for p in added if p.name == "rounding"} | {p.name: 0.0 for p in added if p.name == "play" and p.upper < 1e-4})  # fmt: skip
            tasks.append(replace(task, parameters=parameters))
        general = tasks[-1]
        rollout = ExtendedRollout(
            general.batch(split.train), actuator, general.law, general.parameters, effect=effect
        )
        return ParallelFits(tasks, rollout, self.subsets if subsets is None else subsets)

    @cached_property
    def plain(self) -> tuple[ParallelFits, Pool]:
        """Fits without effects."""
        fits = self.fits(Effect())
        if self.pool is not None and self.pool.exists():
            with np.load(self.pool) as stored:
                return fits, Pool(stored["points"], stored["by_run"])
        pool = fits.fit(count=256)
        if self.pool is not None:
            np.savez(self.pool, **pool._asdict())
        return fits, pool

    def starts(self, fits: ParallelFits, effect: Effect) -> tuple[FloatArray, Rows]:
        """Minima of the plain laws with the effect absent, and with it present."""
        plain, pool = self.plain
        points, index = [], []
        every = plain.every
        for k in range(len(every.law)):
            row = every.take(np.array([k]))
            if row.subset[0] >= len(fits.subsets):
                continue
            _, candidates, _ = plain.ranked(pool, row)
            picked = candidates[:1]
            for candidate in candidates:
                if len(picked) < STARTS and np.min(np.max(np.abs(picked - candidate), axis=1)) > 0.05:
                    picked = np.concatenate([picked, candidate[None]])
            law = int(row.law[0])
            old, new = plain.tasks[law].parameters, fits.tasks[law].parameters
            for number, point in enumerate(picked):
                known = old.with_vector(old.from_unit(point[: plain.sizes[law]])).values()
                for present in (False, True):
                    if present and number >= 2:
                        continue
                    given = {**{n: 0.0 for n, _, _, _ in effect.parameters}, "torque_offset": 0.0, **known}
                    given["friction_base_negative"] = known["friction_base"]
                    given["friction_viscous_negative"] = known["friction_viscous"]
                    given |= effect.present if present else {}
                    values = np.clip([given[n] for n in new.free_names], new.lower, new.upper)
                    unit = np.zeros(fits.dimension)
                    unit[: fits.sizes[law]] = new.to_unit(values)
                    points.append(unit)
                    index.append((row.law[0], row.subset[0]))
        laws, subsets = np.array(index).T
        return np.stack(points), Rows(laws, subsets, np.zeros_like(laws))

    def errors(self, effect: Effect) -> dict[str, Any]:
        """Fitted and left-out errors of each law with the effect [rad]."""
        begin = time.perf_counter()
        fits = self.fits(effect, self.subsets[:1] if isinstance(effect, ByRun) else None)
        points, rows = self.starts(fits, effect)
        pool = refined(fits, points, rows, Stage(STARTS, ITERATIONS, 12))
        if not isinstance(effect, ByRun) and not self.quick:
            wide = fits.fit(count=64 if isinstance(effect, Substepped) else 128)
            pool = Pool(*map(np.concatenate, zip(pool, wide, strict=True)))
        starts, rows = starts_in(fits, pool, 2)
        pool = Pool(
            *map(np.concatenate, zip(pool, refined(fits, starts, rows, Stage(2, 6, 12)), strict=True))
        )
        by_run = fits.errors(pool)[:, :, 0]
        result: dict[str, Any] = {"seconds": time.perf_counter() - begin, "laws": {}}
        for k, name in enumerate(self.laws):
            masks = self.levels if by_run.shape[1] > 1 else []
            left_out = [float(np.mean(by_run[k, 1 + j][mask])) for j, mask in enumerate(masks)]
            task = fits.tasks[k]
            best = fits.best(pool, k, 0)
            values = task.parameters.with_vector(task.parameters.from_unit(best)).values()
            result["laws"][name] = {
                "fitted": float(np.mean(by_run[k, 0])),
                "fitted_by_run": by_run[k, 0].tolist(),
                "left_out": left_out,
                "mean": float(np.mean(left_out)) if left_out else None,
                "added": {n: float(values[n]) for n, *_ in effect.parameters},
            }
        return result

    def alone(self) -> dict[str, float]:
        """Mean error of each law fitted to every run alone [rad]: what its terms could reach with parameters of their own."""
        fits = self.fits(Effect(), np.eye(len(self.logs), dtype=bool))
        _, pool = self.plain
        starts, rows = starts_in(fits, pool, 4)
        pool = Pool(
            *map(np.concatenate, zip(pool, refined(fits, starts, rows, Stage(4, 15, 12)), strict=True))
        )
        by_run = fits.errors(pool)[:, :, 0]
        return {name: float(np.mean(np.diagonal(by_run[k]))) for k, name in enumerate(self.laws)}

    def mirrored(self) -> dict[str, tuple[float, float]]:
        """Half of the mean difference between ``sin_sin`` and its mirrored repetition after pi seconds [rad], by run.

        Its goal is (pi/2) sin t + sin(5 t) sin(2 t)/2, which changes its sign after pi. The first second, in which the
        motion begins, does not count. A law that is symmetric about some angle leaves at least the first figure as a
        mean error; the second is that of the goals, which arrive at other instants.
        """
        found = {}
        for log in self.logs:
            if log.trajectory != "sin_sin":
                continue
            samples = log.resample(0.005)
            when = np.arange(samples.time[0] + 1.0, samples.time[-1] - np.pi, 0.005)
            sums = [
                np.interp(when, samples.time, y) + np.interp(when + np.pi, samples.time, y)
                for y in (samples.position, samples.goal)
            ]
            found[log.name] = tuple(0.5 * float(np.mean(np.abs(s - np.median(s)))) for s in sums)
        return found


def main() -> None:
    """Print the table; write it as JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("servo", choices=sorted(EFFECTS))
    parser.add_argument("--laws", default="m6")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--json", type=Path)
    parser.add_argument(
        "--effects", help="effects of every row (default: those of the servo without saturation)"
    )
    parser.add_argument("--dt", type=float, default=0.005)
    parser.add_argument(
        "--pool", type=Path, help="file that keeps the minima of the plain laws between calls"
    )
    parser.add_argument(
        "--quick", action="store_true", help="from the minima of the plain laws alone, not over the cube"
    )
    options = parser.parse_args()
    effects_on = tuple((options.effects or EFFECTS[options.servo]).split(","))
    laws = tuple(options.laws.split(","))
    study = Study(options.servo, laws, options.dt, options.pool, effects_on, options.quick)
    table: dict[str, Any] = {"mirrored": study.mirrored(), "rows": {}}
    for name, (motion, goal) in table["mirrored"].items():
        print(
            f"{name}: repeats itself with opposite sign within {1e3 * motion:.1f} mrad (goals {1e3 * goal:.1f})"
        )
    table["alone"] = {} if options.only else study.alone()
    print(
        "every run alone: " + ", ".join(f"{k} {1e3 * v:.1f} mrad" for k, v in table["alone"].items()),
        flush=True,
    )
    for effect in [*effects(options.servo), *by_run(len(study.logs))]:
        if options.only and not any(effect.name.startswith(part) for part in options.only):
            continue
        row = table["rows"][effect.name] = study.errors(effect)
        for law, one in row["laws"].items():
            left_out = " ".join(f"{1e3 * error:6.1f}" for error in one["left_out"])
            added = " ".join(f"{n} {v:.4g}" for n, v in list(one["added"].items())[:12])
            print(f"{effect.name:38s} {law}  fitted {1e3 * one['fitted']:6.2f}  left out {left_out}  mean {1e3 * (one['mean'] or np.nan):6.2f}  {added}  ({row['seconds']:.0f} s)", flush=True)  # fmt: skip
        if options.json:
            options.json.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
