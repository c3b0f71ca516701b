"""Simulation of all runs for all candidates in one compiled call.

Each pair of run and candidate is one lane of an array that is scanned over time; candidates are contiguous in memory.
The time step is that of ``core`` on jax.numpy arrays. In float32 a run's mean error differs by less than 0.01 mrad from
``model.simulate`` in float64.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from stribeck.identify.common.minimise import NormalEquations
from stribeck.identify.servo.objective import (
    smooth_absolute,
    smooth_absolute_curvature,
    smooth_absolute_weight,
)
from stribeck.identify.servo.programs import (
    LANES,
    TANGENT_LANES,
    Program,
    Programs,
    batches,
    joined,
    side_by_side,
)
from stribeck.model.actuator import Actuator
from stribeck.model.arrays import Array
from stribeck.model.bench import Pendulum
from stribeck.model.control_laws import Gains, ServoCommand
from stribeck.model.law import FrictionLaw
from stribeck.model.log import Batch
from stribeck.model.parameters import ParameterSet
from stribeck.model.step import Integrator, Plant, PlantState, Simulation, delayed, plant_of, simulate, step

Inputs = dict[str, Any]

OPTIMISATION: dict[str, Any] = {"xla_backend_optimization_level": 1, "xla_cpu_prefer_vector_width": 512}
"""Options of the compiler: at this level it takes a fifth less time, and the programs run as fast; processors with wide
registers use them."""

CHUNK = 50
"""Time steps between accumulations of the normal equations; bounds the memory for derivatives."""


class Scores(NamedTuple):
    """Contributions of each block of each run to the derivatives of the loss at S points.

    :param gradient: (S, B, R, n); sums to the gradient of the loss.
    :param curvature: (S, B, R, n, n); sums to its Gauss-Newton Hessian.
    """

    gradient: Array
    curvature: Array


@dataclass
class Meter:
    """Cost of the evaluations so far.

    :param evaluations: simulations of all runs; a derivative column counts as one.
    """

    evaluations: int = 0
    compile_seconds: float = 0.0
    simulation_seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class Rollout:
    """Compiled simulations of a batch of runs, as functions of the free parameters in the unit cube.

    :param actuator: the servo, with its effects.
    :param parameters: free parameters, and the values of the others.
    :param reset_period: interval at which the state is reset to the measurement [s].
    :param dtype: floating-point type of the compiled calls.
    :param integrator: integration scheme of the time step.
    :param lanes: candidates per compiled call.
    :param tangent_lanes: points per compiled call with derivatives.
    """

    batch: Batch
    actuator: Actuator
    law: FrictionLaw
    parameters: ParameterSet
    reset_period: float | None = None
    dtype: Literal["float32", "float64"] = "float32"
    integrator: Integrator = "exponential"
    lanes: int = LANES
    tangent_lanes: int = TANGENT_LANES
    meter: Meter = field(default_factory=Meter)
    # Compiled programs contain this rollout's loads, gains, law and fixed values, so dataclasses.replace clears them.
    _programs: Programs = field(default_factory=Programs, init=False)

    @property
    def dimension(self) -> int:
        """Number of free parameters n."""
        return len(self.parameters.free)

    def with_reset_period(self, reset_period: float | None) -> Rollout:
        """The same simulations with another reset period, sharing the compiled programs."""
        return self._sharing(replace(self, reset_period=reset_period))  # resets are inputs of the programs

    def with_own_meter(self) -> Rollout:
        """The same simulations, sharing the compiled programs, with costs counted from zero."""
        return self._sharing(replace(self, meter=Meter()))

    def _sharing(self, same: Rollout) -> Rollout:
        object.__setattr__(same, "_programs", self._programs)
        return same

    def losses(self, unit: npt.ArrayLike) -> Array:
        """Loss of each candidate (C, n), shape (C,); infinite if a simulation diverges.

        Candidates are evaluated ``lanes`` at a time. The last batch is padded with its last candidate; padding does not
        count as evaluations.
        """
        losses = np.sum(self.run_losses(unit), axis=1)
        return np.where(np.isfinite(losses), losses, np.inf)

    def run_losses(self, unit: npt.ArrayLike) -> Array:
        """Contribution of each run to the losses of candidates (C, n), shape (C, R); not finite if it diverges."""
        return self._by_run(unit)[0]

    def run_errors(self, unit: npt.ArrayLike) -> Array:
        """Mean absolute error of each run [rad] of candidates (C, n), shape (C, R); not finite if it diverges."""
        return self._by_run(unit)[1] * len(self.batch.logs)

    def _by_run(self, unit: npt.ArrayLike) -> tuple[Array, Array]:
        """Contributions of the runs to losses and mean absolute errors (C, R)."""
        points = np.asarray(unit, dtype=np.float64)
        given = [(batch, self._inputs) for batch in batches(points, self.lanes)]
        results = self._call(self._run_losses, given)
        self.meter.evaluations += len(points)
        losses, errors = joined(results, len(points))
        return losses.T, errors.T

    def normal_equations(self, unit: npt.ArrayLike, measured: npt.ArrayLike | None = None) -> NormalEquations:
        """Loss, gradient and Gauss-Newton matrix at points (S, n): sums of those of the runs."""
        loss, gradient, hessian = self.run_equations(unit, measured)
        return NormalEquations(np.sum(loss, axis=1), np.sum(gradient, axis=1), np.sum(hessian, axis=1))

    def run_equations(self, unit: npt.ArrayLike, measured: npt.ArrayLike | None = None) -> NormalEquations:
        """Contributions of the runs to the normal equations at points (S, n), by forward-mode differentiation.

        Points are evaluated ``tangent_lanes`` at a time, padded like candidates.

        :param measured: measured positions for each point (S, T, R) [rad] in place of the batch's; for parallel fits to
            many recordings of the same commands.
        """
        points = np.asarray(unit, dtype=np.float64)
        given = self._with_own(points, measured, self.tangent_lanes)
        batch_results = self._call(self._run_equations, given)
        self.meter.evaluations += len(points) * (self.dimension + 1)
        loss, gradient, hessian = joined(batch_results, len(points))
        return NormalEquations(loss.T, np.transpose(gradient, (2, 1, 0)), np.transpose(hessian, (3, 2, 0, 1)))

    def scores(
        self, unit: npt.ArrayLike, block_length: float, measured: npt.ArrayLike | None = None
    ) -> Scores:
        """Contributions of blocks of ``block_length`` [s] to the derivatives at points (S, n).

        :param measured: see :meth:`normal_equations`.
        """
        points = np.asarray(unit, dtype=np.float64)
        steps = self.batch.block_steps(block_length)
        given = self._with_own(points, measured, min(self.tangent_lanes, len(points)))
        batch_results = self._call(self._scores, given, steps)
        self.meter.evaluations += len(points) * (self.dimension + 1)
        gradient, curvature = joined(batch_results, len(points))
        # The scan returns (B, n, R, S) and (B, n, n, R, S).
        return Scores(np.transpose(gradient, (3, 0, 2, 1)), np.transpose(curvature, (4, 0, 3, 1, 2)))

    def motion(self, unit: Array, batch: Batch | None = None) -> Simulation:
        """Motion at a point (n,), simulated in float64; of the same runs on another grid, if one is given."""
        return simulate(
            self.batch if batch is None else batch,
            self.actuator,
            self.law,
            self.parameters.with_vector(self.parameters.from_unit(unit)).values(),
            integrator=self.integrator,
            reset_period=self.reset_period,
        )

    def _with_own(
        self, points: Array, measured: npt.ArrayLike | None, lanes: int
    ) -> Iterator[tuple[Array, Inputs]]:
        """Batches of points with the measured positions of their own."""
        own = None if measured is None else np.asarray(measured, dtype=self.dtype)
        for begin, batch in zip(range(0, len(points), lanes), batches(points, lanes), strict=True):
            inputs = self._inputs
            if own is not None:
                part = next(batches(own[begin : begin + lanes], lanes))
                inputs = {**inputs, "position": np.ascontiguousarray(np.moveaxis(part, 0, 2))}
            yield batch, inputs

    def prepare(self, block_length: float | None = None) -> None:
        """Compile ahead what searches by derivatives need, and :meth:`scores` of one point in blocks of a length [s]."""
        programs: list[tuple[Callable[..., Any], int, tuple[int, ...]]] = [
            (self._run_losses, self.lanes, ()),
            (self._run_equations, self.tangent_lanes, ()),
        ]
        if block_length is not None:
            programs.append((self._scores, 1, (self.batch.block_steps(block_length),)))
        for function, lanes, static in programs:
            points = self._as_lanes(np.zeros((lanes, self.dimension)))
            self._programs.ahead(*self._compilation(function, points, self._inputs, *static))

    def _call(
        self, function: Callable[..., Any], given: Iterable[tuple[Array, Inputs]], *static: int
    ) -> list[Any]:
        """Call the compiled form of a function of (n, C) values for each batch, several at a time, and measure its time."""
        calls = [(self._as_lanes(points), inputs) for points, inputs in given]
        key, compiled = self._compilation(function, *calls[0], *static)
        known, begin = key in self._programs, time.perf_counter()
        program = self._programs.get(key, compiled)
        called = time.perf_counter()

        def result(one: tuple[npt.NDArray[Any], Inputs]) -> Any:
            with jax.enable_x64(self.dtype == "float64"):
                return jax.block_until_ready(program(*one))  # type: ignore[no-untyped-call]

        results = side_by_side(result, calls)
        self.meter.compile_seconds += 0.0 if known else called - begin
        self.meter.simulation_seconds += time.perf_counter() - called
        return results

    def _as_lanes(self, points: Array) -> npt.NDArray[Any]:
        """Points (C, n) as values (n, C)."""
        return np.ascontiguousarray(points.T, dtype=self.dtype)

    def _compilation(
        self, function: Callable[..., Any], lanes: npt.NDArray[Any], inputs: Inputs, *static: int
    ) -> tuple[Hashable, Callable[[], Program]]:
        """Key of the compiled form of a function of (n, C) values, and what compiles it."""

        def compiled() -> Program:
            with jax.enable_x64(self.dtype == "float64"):
                traced = jax.jit(lambda unit, given: function(unit, given, *static))
                return traced.lower(lanes, inputs).compile(OPTIMISATION)

        return (function.__name__, lanes.shape, inputs["position"].shape, static), compiled

    def _array(self, values: npt.ArrayLike) -> npt.NDArray[Any]:
        """Per-run values (…, R) as lanes (…, R, 1)."""
        return np.ascontiguousarray(np.asarray(values)[..., None], dtype=self.dtype)

    @cached_property
    def _inputs(self) -> Inputs:
        """Inputs of the compiled functions on JAX's device, time first."""
        batch = self.batch
        resets = np.zeros(len(batch.time), dtype=bool)
        resets[list(batch.reset_indices(self.reset_period))] = True
        inputs = {
            "index": np.arange(len(batch.time), dtype=np.int32),
            "reset": resets,
            "position": self._array(batch.position),
            "velocity": self._array(batch.velocity),
            "weight": self._array(batch.weight),
        }
        if "command_delay" not in self.parameters:
            inputs["goal"] = self._array(batch.goal)
            inputs["torque_enable"] = self._array(batch.torque_enable)
        if self.actuator.uses_measured_supply:
            inputs["supply_voltage"] = self._array(batch.supply_voltage)
        if self.actuator.temperature_parameters:
            inputs["temperature"] = self._array(batch.temperature)
        # Transferred once, not at every call. They must be concrete even if first requested by a traced function.
        with jax.ensure_compile_time_eval(), jax.enable_x64(self.dtype == "float64"):
            return cast(Inputs, jax.device_put(inputs))

    # The following functions are traced: arrays are (R, C), candidates last; `unit` is (n, C).

    def _values(self, unit: jax.Array) -> dict[str, Any]:
        lower, width = self.parameters.lower, self.parameters.upper - self.parameters.lower
        values: dict[str, Any] = {
            parameter.name: jnp.asarray(parameter.value, dtype=self.dtype)
            for parameter in self.parameters
            if not parameter.free
        }
        for i, name in enumerate(self.parameters.free_names):
            values[name] = lower[i].astype(self.dtype) + width[i].astype(self.dtype) * unit[i][None, :]
        return values

    @cached_property
    def _plant(self) -> Plant:
        plant = plant_of(self.batch, self.actuator, self.law, self.integrator)
        return replace(
            plant,
            pendulum=Pendulum(*map(self._array, plant.pendulum)),
            gains=Gains(*map(self._array, plant.gains)),
        )

    def _command(self, values: dict[str, Any], now: Inputs) -> ServoCommand:
        supply = now.get("supply_voltage", self._array(self.batch.nominal_supply))
        if "goal" in now:
            return ServoCommand(now["goal"], now["torque_enable"], supply, now.get("temperature"))
        delay = values["command_delay"]
        goal, enable = (
            delayed(jnp.asarray(signal, dtype=self.dtype), now["index"], delay, self.batch.dt)
            for signal in (self.batch.goal, self.batch.torque_enable)
        )
        if jnp.ndim(delay) == 0:
            goal, enable = goal[:, None], enable[:, None]
        return ServoCommand(goal, enable, supply, now.get("temperature"))

    def _advance(self, unit: jax.Array) -> Callable[[PlantState, Inputs], tuple[PlantState, jax.Array]]:
        """One time step as a scan body: maps state and inputs to next state and residual."""
        plant, values = self._plant, self._values(unit)

        def advance(state: PlantState, now: Inputs) -> tuple[PlantState, jax.Array]:
            state = PlantState(
                jnp.where(now["reset"], now["position"], state.position),
                jnp.where(now["reset"], now["velocity"], state.velocity),
                state.control,
            )
            residual = state.position - now["position"]
            return step(plant, values, state, self._command(values, now), self.batch.dt), residual

        return advance

    def _initial(self, unit: jax.Array, inputs: Inputs) -> PlantState:
        """The first state, broadcast to the shapes that a step returns."""
        control = self._plant.actuator.control.first_state(self._array(self.batch.goal[0]))
        state = PlantState(inputs["position"][0], inputs["velocity"][0], control)
        state = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=self.dtype), state)
        first = jax.tree.map(lambda leaf: leaf[0], inputs)
        for _ in state:  # each step broadcasts at least one component of the state
            shapes, _ = jax.eval_shape(self._advance(unit), state, first)
            state = jax.tree.map(lambda leaf, shape: jnp.broadcast_to(leaf, shape.shape), state, shapes)
        return cast(PlantState, state)

    def mean_squares(self, unit: jax.Array, measured: jax.Array | None = None) -> jax.Array:
        """Mean squared error of each run [rad^2], (R, C), of candidates (n, C); traceable by the caller.

        :param measured: measured positions for each candidate (T, R, C) [rad] in place of the batch's.
        """
        inputs = self._inputs if measured is None else {**self._inputs, "position": measured}
        return self._sums(unit, inputs, jnp.square)[0] * len(self.batch.logs)

    def _run_losses(self, unit: jax.Array, inputs: Inputs) -> tuple[jax.Array, ...]:
        return self._sums(unit, inputs, smooth_absolute, jnp.abs)

    def _sums(
        self, unit: jax.Array, inputs: Inputs, *measures: Callable[[jax.Array], jax.Array]
    ) -> tuple[jax.Array, ...]:
        """Weighted sums over time of measures of the residual, (R, C) each."""
        advance = self._advance(unit)

        def body(carry: tuple[PlantState, tuple[jax.Array, ...]], now: Inputs) -> tuple[Any, None]:
            state, totals = carry
            state, residual = advance(state, now)
            added = (now["weight"] * measure(residual) for measure in measures)
            return (state, tuple(map(jnp.add, totals, added))), None

        state = self._initial(unit, inputs)
        none = tuple(jnp.zeros_like(state[0]) for _ in measures)
        (_, totals), _ = jax.lax.scan(body, (state, none), inputs)
        return totals

    def _with_tangents(self, unit: jax.Array) -> Callable[..., Any]:
        """Function that steps through inputs and returns states and derivatives along each unit direction (n, …)."""
        directions = jnp.broadcast_to(
            jnp.eye(self.dimension, dtype=self.dtype)[:, :, None], (self.dimension, *unit.shape)
        )

        def stretch(carry: tuple[PlantState, PlantState], inputs: Inputs) -> tuple[Any, Any]:
            state, tangents = carry

            def rollout(state: PlantState, point: jax.Array) -> tuple[PlantState, jax.Array]:
                return jax.lax.scan(self._advance(point), state, inputs)

            def along(tangent: PlantState, direction: jax.Array) -> Any:
                return jax.jvp(rollout, (state, unit), (tangent, direction))

            (state, residual), (tangents, jacobian) = jax.vmap(along, out_axes=(None, 0))(
                tangents, directions
            )
            return (state, tangents), (residual, jacobian)

        return stretch

    def _initial_with_tangents(self, unit: jax.Array, inputs: Inputs) -> tuple[PlantState, PlantState]:
        state = self._initial(unit, inputs)
        tangents = jax.tree.map(lambda leaf: jnp.zeros((self.dimension, *leaf.shape), leaf.dtype), state)
        return state, tangents

    def _run_equations(self, unit: jax.Array, inputs: Inputs) -> tuple[jax.Array, ...]:
        stretch = self._with_tangents(unit)

        def accumulate(carry: Any, now: Inputs) -> tuple[Any, None]:
            states, loss, gradient, hessian = carry
            states, (residual, jacobian) = stretch(states, now)
            weighted = jacobian * (now["weight"] * smooth_absolute_weight(residual))
            loss = loss + jnp.sum(now["weight"] * smooth_absolute(residual), axis=0)
            gradient = gradient + jnp.sum(weighted * residual, axis=1)
            hessian = hessian + jnp.einsum("itrs,jtrs->ijrs", weighted, jacobian)
            return (states, loss, gradient, hessian), None

        states = self._initial_with_tangents(unit, inputs)
        n, zero = len(unit), jnp.zeros_like(states[0][0])
        sums = (zero, jnp.broadcast_to(zero, (n, *zero.shape)), jnp.broadcast_to(zero, (n, n, *zero.shape)))
        carry, _ = _scan_in_stretches(accumulate, (states, *sums), inputs, CHUNK)
        return tuple(carry[1:])

    def _scores(self, unit: jax.Array, inputs: Inputs, steps: int) -> tuple[jax.Array, jax.Array]:
        stretch = self._with_tangents(unit)

        def block(states: Any, now: Inputs) -> tuple[Any, Any]:
            states, (residual, jacobian) = stretch(states, now)
            slope = now["weight"] * smooth_absolute_weight(residual) * residual
            bend = now["weight"] * smooth_absolute_curvature(residual)
            return states, (
                jnp.einsum("itrs,trs->irs", jacobian, slope),
                jnp.einsum("itrs,jtrs->ijrs", jacobian * bend, jacobian),
            )

        _, found = _scan_in_stretches(block, self._initial_with_tangents(unit, inputs), inputs, steps)
        gradient, curvature = found
        return gradient, curvature


def _scan_in_stretches(
    body: Callable[[Any, Inputs], tuple[Any, Any]], carry: Any, inputs: Inputs, steps: int
) -> tuple[Any, Any]:
    """Scan over stretches of ``steps`` steps; the last one is filled up with its last row, without weight."""
    rest = -len(inputs["index"]) % steps

    def stretches(leaf: jax.Array) -> jax.Array:
        filled = jnp.concatenate([leaf, jnp.repeat(leaf[-1:], rest, axis=0)])
        return filled.reshape(-1, steps, *leaf.shape[1:])

    cut = {name: stretches(leaf) for name, leaf in inputs.items()}
    if rest:
        cut["weight"] = cut["weight"].at[-1, steps - rest :].set(0.0)
    return jax.lax.scan(body, carry, cut)
