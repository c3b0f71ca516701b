"""Symbolic CasADi functions of one time step, with sparse derivatives."""

from __future__ import annotations

from typing import Any

import casadi
import numpy as np

from stribeck.identify.mechanism import rotation
from stribeck.identify.mechanism.dynamics import BodyState, MultibodyDynamics
from stribeck.identify.mechanism.mechanism import UNMOVED, Mechanism, Physical
from stribeck.identify.mechanism.step_motion import StepMotion
from stribeck.identify.mechanism.vectors import ZERO
from stribeck.model.arrays import Array


class SparseFunction:
    """A CasADi function with sparse matrix output, evaluated at many points at once."""

    def __init__(self, name: str, inputs: list[Any], output: Any) -> None:
        sparsity = output.sparsity()
        self.shape = output.shape
        self.rows = np.array(sparsity.row(), int)
        self.columns = np.array(sparsity.get_col(), int)
        self.function = casadi.Function(name, inputs, [casadi.densify(casadi.vertcat(*output.nonzeros()))])
        self.many: dict[int, Any] = {}

    def __call__(self, *arguments: Array) -> Array:
        """Dense matrices (N, rows, columns) for arguments (N, size)."""
        count = len(arguments[0])
        result = np.zeros((count, *self.shape))
        if len(self.rows):
            if count not in self.many:
                self.many[count] = self.function.map(count).buffer()
            buffer, evaluate = self.many[count]
            # The rows here are CasADi's columns, with the same memory layout.
            columns = [np.ascontiguousarray(a, np.float64) for a in arguments]
            values = np.empty((count, len(self.rows)))
            for k, argument in enumerate(columns):
                if argument.size:
                    buffer.set_arg(k, argument.reshape(-1).data)
            buffer.set_res(0, values.reshape(-1).data)
            evaluate()
            result[:, self.rows, self.columns] = values
        return result


class StepFunctions:
    r"""Functions of a state (q, v), the next velocity V, parameters and inputs, and their derivatives.

    The increments are a (12 nb) for the state and w (6 nb) for the next velocity; derivatives are evaluated at a = 0, w = 0.

    - ``signals``, ``signal_jacobian``: sensor signals at positions s between the state and the next one; by (a, w, χ).
    - ``gaps``: residual of the constraint equations at reactions λ and inputs u.
    - ``balance_jacobian``: of momentum balance and constraint equations; by (a, w, χ, λ).
    - ``carry_jacobian``: of the next configuration; by (a, w).
    - ``holding``, ``motion``: Jacobians G and B of the movable joints.
    - ``violation``, ``violation_jacobian``: g and Gv; by (a, χ).
    """

    def __init__(self, mechanism: Mechanism, dynamics: MultibodyDynamics, step: float) -> None:
        self.mechanism, self.dynamics, self.step = mechanism, dynamics, step
        self.bodies = len(mechanism.bodies)
        self.half = 6 * self.bodies
        self._build()

    def _build(self) -> None:
        nb, d = self.bodies, 2 * self.half
        q, v, reached = (casadi.SX.sym(n, k * nb) for n, k in (("q", 7), ("v", 6), ("V", 6)))
        a, w = casadi.SX.sym("a", d), casadi.SX.sym("w", self.half)
        chi = casadi.SX.sym("chi", sum(p.free for p in self.mechanism.parameters))
        voltage = casadi.SX.sym("u", self.mechanism.inputs)
        place = casadi.SX.sym("s", len(self.mechanism.sensors))
        reaction = casadi.SX.sym("l", len(self.dynamics.layout.translation))
        free = iter(casadi.vertsplit(chi))
        values = [next(free) if p.free else p.value for p in self.mechanism.parameters]
        physical = self.mechanism.symbolic(values)
        zero = [casadi.DM.zeros(d), casadi.DM.zeros(self.half)]

        def still(expression: Any) -> Any:
            return casadi.substitute([expression], [a, w], zero)[0]

        here = self._moved(q, v, a)
        arrived = [[self.step * rate for rate in row] for row in _rows(reached + w, 6)]
        there = BodyState(
            [rotation.moved(p, i) for p, i in zip(here.q, arrived, strict=True)], _rows(reached + w, 6)
        )
        signals = casadi.vertcat(*self._signals(physical, here, there, place, values))
        observed = [q, v, reached, chi, place]
        self.signals = SparseFunction("signals", observed, still(signals))
        by = casadi.vertcat(a, w, chi)
        self.signal_jacobian = SparseFunction(
            "signal_jacobian", observed, still(casadi.jacobian(signals, by))
        )
        reactions = _rows(reaction, reaction.shape[0])
        impulses, gaps = self.dynamics.impulses(physical, here, [there.v], reactions, voltage, self.step)
        stepped = [q, v, reached, chi, reaction, voltage]
        self.gaps = SparseFunction("gaps", stepped, still(casadi.vertcat(*gaps[0])))
        balance = casadi.vertcat(*impulses[0], *gaps[0])
        full = casadi.vertcat(by, reaction)
        self.balance_jacobian = SparseFunction("balance", stepped, still(casadi.jacobian(balance, full)))
        was = [_rows(casadi.substitute([casadi.vertcat(*p)], [a, w], zero)[0], 7)[0] for p in there.q]
        carried = [rotation.difference(new, old) for new, old in zip(there.q, was, strict=True)]
        moved = casadi.vertcat(*(number for row in carried for number in row))
        self.carry_jacobian = SparseFunction(
            "carry", [q, v, reached], still(casadi.jacobian(moved, casadi.vertcat(a, w)))
        )
        pose = self.dynamics.layout.pose(physical, here.q)
        held, moving = self._motion(pose)
        self.holding = SparseFunction("holding", [q, chi], still(held))
        self.motion = SparseFunction("motion", [q, chi], still(moving))
        rates = casadi.vertcat(*self.dynamics.layout.rates(pose, here.v)[0])
        violation = casadi.vertcat(*self.dynamics.layout.deviation(pose), rates)
        self.violation = SparseFunction("violation", [q, v, chi], still(violation))
        self.violation_jacobian = SparseFunction(
            "violation_jacobian", [q, v, chi], still(casadi.jacobian(violation, casadi.vertcat(a, chi)))
        )

    def _motion(self, pose: Any) -> tuple[Any, Any]:
        """G, and B of the movable joints."""
        speeds = casadi.SX.sym("speeds", self.half)
        held, moving = self.dynamics.layout.rates(pose, _rows(speeds, 6))
        movable = [j for j, joint in enumerate(self.mechanism.joints) if joint.kind not in UNMOVED]
        along = casadi.vertcat(*(moving[j] for j in movable))
        return casadi.jacobian(casadi.vertcat(*held), speeds), casadi.jacobian(along, speeds)

    def _moved(self, q: Any, v: Any, by: Any) -> BodyState:
        """A state after an increment, as nested lists of symbols."""
        places = [rotation.moved(p, i) for p, i in zip(_rows(q, 7), _rows(by[: self.half], 6), strict=True)]
        return BodyState(places, _rows(v + by[self.half :], 6))

    def _signals(
        self, physical: Physical, here: BodyState, there: BodyState, place: Any, chi: Any
    ) -> list[Any]:
        """Sensor signals at positions between two states; ``chi``: values of all parameters."""
        predicted, step = [], StepMotion(self.dynamics, physical, here, there, self.step)
        for k, sensor in enumerate(self.mechanism.sensors):
            motion = step.at(place[k] - physical.lag[k] / self.step)
            if sensor.formula is not None:
                value = sensor.formula.value(chi, motion.ask)
            else:
                value = motion.ask(
                    "position" if sensor.quantity == "position" else "rate", sensor.joint, ZERO
                )
            predicted.append(sensor.sign * value + physical.offset[k])
        return predicted


def _rows(values: Any, width: int) -> list[list[Any]]:
    """Reshape a column of symbols into rows."""
    return [[values[i + k] for k in range(width)] for i in range(0, values.shape[0], width)]
