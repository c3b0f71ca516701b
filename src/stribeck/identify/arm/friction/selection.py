r"""Selection of friction terms by cross-validation, before the full problem is solved.

The law is replaced by terms whose coefficients enter the torques linearly (friction that decays as
:math:`e^{-|\dot q|/v_0}`, friction proportional to the torque of the links), and a quadratic prior keeps inertials
near the URDF. Every candidate is scored on held-out blocks of time, because neighbouring samples are correlated. A
term is added if it lowers the error on held-out blocks by a share of :data:`WORTHWHILE`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse

from stribeck.identify.arm.config import Protocol
from stribeck.identify.arm.motion import ProcessedMotion, time_blocks
from stribeck.identify.arm.regressor import Machine
from stribeck.identify.arm.signals import convolution, direction, linear_presliding
from stribeck.identify.common.correlation import correlation_time
from stribeck.model.arrays import Array, Indices
from stribeck.model.law import LAWS, FrictionLaw, friction_columns, optional_parts
from stribeck.model.terms import FRICTION_PARAMETERS
from stribeck.model.terms.term import Conditions

BLOCKS = 5
WORTHWHILE = 0.005
"""Smallest relative decrease of the held-out error for which a term is added."""

SLOW_ONLY = ("presliding", "stribeck")
"""What shows at speeds below those of moving rows, and is not tried where joints stick and slip, as no other rows are fitted."""

PRESLIDING = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3)
"""Candidate presliding lengths [rad or m]."""

STRIBECK = (0.03, 0.1, 0.2, 0.4)
"""Candidate Stribeck velocities, relative to the largest velocity."""

PRIORS = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Candidate prior standard deviations of inertials about the URDF, relative to the size of a link."""

DELAY_STEP = 0.05
"""Step between candidate delays, in periods of the torques' cut-off frequency."""

DELAYED = 0.01
"""Smallest relative decrease of the error for a delay: friction that is not modelled yet looks like a small one."""

PROMPT = 1.0
"""Samples by which torques may be later than the states that they cause: both are read in the same cycle, or in the next one."""

RIDGE = 1e-3
"""Prior precision of friction terms relative to the noise: just enough against exact collinearity."""


@dataclass(frozen=True)
class ModelChoice:
    """The terms of the full model.

    :param law: friction law of the joints.
    :param delay: delay of recorded states relative to torques [s].
    :param presliding: presliding length [rad or m], ``None`` for friction that reverses at once.
    :param stribeck: first guess of the Stribeck velocity, relative to the largest velocity of an element.
    :param prior: standard deviation of inertials about the URDF, relative to the size of a link.
    :param correlated: number of rows that carry the information of one independent row.
    """

    law: FrictionLaw
    delay: float = 0.0
    presliding: float | None = None
    stribeck: float = 0.2
    prior: float = 0.3
    correlated: float = 1.0


class _Chosen(NamedTuple):
    """A choice, its error, and the error after each step relative to the error before it."""

    choice: ModelChoice
    error: float
    steps: dict[str, float]


@dataclass(frozen=True)
class PreparedRun:
    """A run prepared for predictions.

    :param regressor: regressor of the inertials at fine times (N, n, 10 n).
    :param filtered: the same after the torque filter, at the rows (M, n, 10 n).
    :param speed: largest velocity of each element (E,).
    :param smoothing: the torque filter, from fine times to the rows; ``None`` for none.
    """

    motion: ProcessedMotion
    regressor: Array
    filtered: Array
    speed: Array
    smoothing: sparse.csr_array | None

    def at_rows(self, fine: Array) -> Array:
        """Apply the torque filter to signals at fine times (N, k); result at the rows (M, k)."""
        return fine[self.motion.pick] if self.smoothing is None else np.asarray(self.smoothing @ fine)

    def developed(self, machine: Machine, length: float | None, rest: float) -> Array:
        """Developed share of each element's friction at fine times, (N, E)."""
        fine = self.motion.fine
        if length is None:
            return direction(fine.velocity @ machine.weights.T, rest)
        return linear_presliding(fine.position @ machine.weights.T, length)


def prepare(machine: Machine, motion: ProcessedMotion) -> PreparedRun:
    """Prepare a run for predictions."""
    regressor = machine.regressor(motion.fine)
    flat = regressor.reshape(len(regressor), regressor.shape[1] * regressor.shape[2])
    smoothing = None
    if motion.kernel is not None:
        smoothing = convolution(motion.kernel, len(regressor), motion.pick)
    rows = flat[motion.pick] if smoothing is None else smoothing @ flat
    speed = np.abs(motion.fine.velocity @ machine.weights.T).max(axis=0)
    return PreparedRun(motion, regressor, rows.reshape(len(rows), *regressor.shape[1:]), speed, smoothing)


def sizes(inertials: Array) -> Array:
    """Typical size of the inertial parameters of links (n, 10): m, m·0.1 m, m·(0.14 m)², with m at least 0.1 kg."""
    mass = np.maximum(inertials.reshape(-1, 10)[:, 0], 0.1)
    return np.asarray(mass[:, None] * np.array([1.0, *[0.1] * 3, *[0.02] * 6]))


@dataclass(frozen=True)
class _RigidRows:
    """The rigid-body part of one joint's moving rows in one block of time, divided by the joint's noise.

    :param rows: indices (R,); links: indices of the inertials that act on the joint (s,).
    :param columns, torque: (R, s) and (R,); gram, slope: their products.
    """

    rows: Indices
    links: Indices
    columns: Array
    torque: Array
    gram: Array
    slope: Array


class FrictionSelection:
    """Cross-validation of candidate models.

    :param motions: function that returns the runs processed with a given delay.
    :param reference: inertial parameters (10 n,) for computing loads.
    :param inertia: rotor inertia of each element (E,), likewise.
    :param noise: standard deviation of the residuals of each joint (n,).
    """

    def __init__(
        self,
        machine: Machine,
        motions: Callable[[float], Sequence[ProcessedMotion]],
        protocol: Protocol,
        reference: Array,
        inertia: Array,
        noise: Array,
    ) -> None:
        self._machine, self._protocol, self._motions = machine, protocol, motions
        self._reference, self._inertia, self._noise = reference, inertia, noise
        self._prepared: dict[float, list[PreparedRun]] = {}
        self._blocks: dict[float, list[list[list[_RigidRows]]]] = {}

    def prepared(self, delay: float) -> list[PreparedRun]:
        """The runs processed with a delay."""
        if delay not in self._prepared:
            self._prepared[delay] = [prepare(self._machine, motion) for motion in self._motions(delay)]
        return self._prepared[delay]

    def choose(
        self, tell: Callable[[str], None] = lambda step: None, terms: Sequence[str] = ()
    ) -> tuple[ModelChoice, dict[str, float]]:
        """The selected model, and the error after each step relative to the error before it.

        :param tell: called with the name of each step.
        :param terms: names of terms that every candidate has.
        """
        first = ModelChoice(LAWS["m1"].with_terms(offset=True, **dict.fromkeys(terms, True)))
        first = replace(first, correlated=self._correlation(first))
        ways: dict[str, Callable[[ModelChoice], list[ModelChoice]]] = {
            "prior": self._priors,
            "asymmetric": _asymmetric,
            "delay": self._delays,
            "presliding": _presliding,
            "stribeck": _stribeck,
            "load": lambda c: [replace(c, law=c.law.with_load())],
        }
        if any(run.motion.sticking for run in self.prepared(first.delay)):
            ways = {name: way for name, way in ways.items() if name not in SLOW_ONLY}

        def along(steps: Sequence[str], found: _Chosen) -> _Chosen:
            for name in steps:
                if (way := ways.get(name.split()[0])) is not None:
                    tell(name)
                    found = self._step(name, way, found)
            return found

        start = self.error(first)
        begun = along(("prior", "asymmetric"), _Chosen(first, start, {}))
        found = along(("delay", "presliding"), begun)
        if self._impossible(found.choice.delay) and "presliding" in ways:
            found = min(found, along(("presliding", "delay"), begun), key=lambda one: one.error)
        # A large effect of the load hides smaller ones before it is there.
        again = [f"{name} again" for name in ("stribeck", "delay", "asymmetric", "presliding", "prior")]
        found = along(("stribeck", "load", *again), found)
        return found.choice, {**found.steps, "all": found.error / start}

    def _step(
        self, name: str, candidates: Callable[[ModelChoice], list[ModelChoice]], before: _Chosen
    ) -> _Chosen:
        """The best candidate, where it lowers the error enough."""
        choice, best = before.choice, before.error
        errors = {other: self.error(other) for other in candidates(choice)}
        candidate = min(errors, key=lambda other: errors[other], default=choice)
        dropped = choice.delay != 0.0 and candidate.delay == 0.0
        if errors and (dropped or errors[candidate] < best * (1.0 - WORTHWHILE)):
            choice, best = candidate, errors[candidate]
        self._prepared = {d: p for d, p in self._prepared.items() if d == choice.delay}
        self._blocks = {d: b for d, b in self._blocks.items() if d == choice.delay}
        return _Chosen(choice, best, {**before.steps, name: best / before.error})

    def _impossible(self, delay: float) -> bool:
        """Whether states come before their torques by more than sampling explains: torques are late, or friction at reversals is."""
        rows = max(run.motion.pick.step / run.motion.fine.rate for run in self.prepared(delay))
        return delay < -PROMPT * float(rows) / self._protocol.every

    def error(self, choice: ModelChoice) -> float:
        """Root mean square of the residuals divided by the noise, on held-out blocks of time.

        A block is held out of all runs at once, since runs may repeat each other.
        """
        grams = self._grams(choice)
        centre, precision = self._prior(choice, len(grams[0][1]))
        whole, pull = sum_of(part[0] for part in grams), sum_of(part[1] for part in grams)
        squares: float = 0.0
        rows = 0
        for fold in (grams[k::BLOCKS] for k in range(BLOCKS)):
            gram, slope = sum_of(part[0] for part in fold), sum_of(part[1] for part in fold)
            values = centre + _solved(whole - gram, pull - slope - (whole - gram) @ centre, precision)
            squares += sum(part[2] for part in fold) + float(values @ gram @ values - 2.0 * values @ slope)
            rows += sum(part[3] for part in fold)
        return float(np.sqrt(max(squares, 0.0) / max(rows, 1)))

    def solution(self, choice: ModelChoice) -> tuple[Array, dict[str, Array]]:
        """Inertials (10 n,) and friction terms of the elements by name (E,), fitted to all rows."""
        grams = self._grams(choice)
        centre, precision = self._prior(choice, len(grams[0][1]))
        gram, slope = sum_of(part[0] for part in grams), sum_of(part[1] for part in grams)
        values = centre + _solved(gram, slope - gram @ centre, precision)
        size = len(self._machine.inertials)
        names = linear_names(choice.law)
        elements = len(self._machine.elements)
        return values[:size], {
            name: values[size + k * elements : size + (k + 1) * elements] for k, name in enumerate(names)
        }

    # -- candidates

    def _priors(self, choice: ModelChoice) -> list[ModelChoice]:
        return [] if self._machine.arm is None else [replace(choice, prior=prior) for prior in PRIORS]

    def _delays(self, choice: ModelChoice) -> list[ModelChoice]:
        """The choice with the best delay; with none, if that is hardly worse."""
        if self._protocol.effort_filter is None:
            return []
        step = DELAY_STEP / self._protocol.effort_filter.cutoff
        errors = {0: self.error(replace(choice, delay=0.0))}
        stride, centre = 4, 0
        while stride:
            for k in (centre - stride, centre + stride):
                if k not in errors:
                    errors[k] = self.error(replace(choice, delay=k * step))
            best = min(errors, key=lambda k: errors[k])
            if best == centre or abs(best) >= 40:
                stride //= 2
            centre = best
        clear = errors[centre] < errors[0] * (1.0 - DELAYED)
        return [replace(choice, delay=(centre + _vertex(errors, centre)) * step if clear else 0.0)]

    # -- linear algebra

    def _friction(self, choice: ModelChoice, run: PreparedRun) -> Array:
        """Friction terms of the elements at the rows (M, terms, E)."""
        machine, fine = self._machine, run.motion.fine
        z = run.developed(machine, choice.presliding, self._protocol.rest)
        velocity, acceleration = fine.velocity @ machine.weights.T, fine.acceleration @ machine.weights.T
        load = np.zeros_like(velocity)
        load[:, : len(machine.joints)] = 2.0 * run.regressor @ self._reference
        load[:, : len(machine.joints)] += (acceleration * self._inertia)[:, : len(machine.joints)]
        joints = np.arange(len(machine.elements)) < len(machine.joints)
        columns = self._columns(choice, run, z, velocity, load)
        columns["armature"] = acceleration
        for name in offsets_of(choice.law):
            columns[name] = columns[name] * joints
        names = linear_names(choice.law)
        rows = run.at_rows(np.concatenate([columns[name] for name in names], axis=1))
        return rows.reshape(len(rows), len(names), -1)

    def _columns(
        self, choice: ModelChoice, run: PreparedRun, z: Array, velocity: Array, load: Array
    ) -> dict[str, Array]:
        """Columns of the law's coefficients, with the first guess of its other parameters."""
        position = run.motion.fine.position @ self._machine.weights.T
        x = Conditions(velocity, np.abs(velocity), load, 0.0, position)
        fastest = np.max([one.speed for one in self.prepared(choice.delay)], axis=0)
        return friction_columns(linear_law(choice.law), first_shapes(choice, fastest), z, x)

    def _grams(self, choice: ModelChoice) -> list[tuple[Array, Array, float, int]]:
        """Normal equations of each block of time: Gram matrix, slope, square of the torques, rows."""
        machine = self._machine
        size, terms, elements = len(machine.inertials), len(linear_names(choice.law)), len(machine.elements)
        places_of = size + np.arange(terms * elements).reshape(terms, elements)
        grams = []
        for run, blocks in zip(self.prepared(choice.delay), self._rigid(choice.delay), strict=True):
            friction = self._friction(choice, run)
            for block in blocks:
                gram = np.zeros((size + places_of.size,) * 2)
                slope, square, count = np.zeros(len(gram)), 0.0, 0
                for j, part in enumerate(block):
                    acting = np.flatnonzero(machine.weights[:, j])
                    columns = friction[part.rows][:, :, acting] * machine.weights[acting, j]
                    columns = columns.reshape(len(part.rows), terms * len(acting)) / self._noise[j]
                    places = places_of[:, acting].ravel()
                    cross = part.columns.T @ columns
                    gram[np.ix_(part.links, part.links)] += part.gram
                    gram[np.ix_(part.links, places)] += cross
                    gram[np.ix_(places, part.links)] += cross.T
                    gram[np.ix_(places, places)] += columns.T @ columns
                    slope[part.links] += part.slope
                    slope[places] += columns.T @ part.torque
                    square += float(part.torque @ part.torque)
                    count += len(part.rows)
                grams.append((gram, slope, square, count))
        return grams

    def _rigid(self, delay: float) -> list[list[list[_RigidRows]]]:
        """The rigid-body part of each run, block of time and joint; depends on the delay only."""
        if delay not in self._blocks:
            self._blocks[delay] = [
                [
                    [self._rigid_rows(run, block, j) for j in range(len(self._machine.joints))]
                    for block in blocks
                ]
                for run in self.prepared(delay)
                for blocks in [time_blocks(run.motion, BLOCKS)]
            ]
        return self._blocks[delay]

    def _rigid_rows(self, run: PreparedRun, block: Indices, joint: int) -> _RigidRows:
        rows = block[run.motion.moving[block, joint]]
        links = np.flatnonzero(run.regressor[:, joint].any(axis=0))
        columns = run.filtered[rows, joint][:, links] / self._noise[joint]
        torque = run.motion.torque[rows, joint] / self._noise[joint]
        return _RigidRows(rows, links, columns, torque, columns.T @ columns, columns.T @ torque)

    def _prior(self, choice: ModelChoice, parameters: int) -> tuple[Array, Array]:
        """Mean and precision of the prior of all parameters (p,)."""
        inertials = self._machine.inertials
        centre = np.concatenate([inertials, np.zeros(parameters - len(inertials))])
        spread = choice.prior * sizes(inertials).ravel() if len(inertials) else np.zeros(0)
        return centre, np.concatenate(
            [choice.correlated / spread**2, np.full(parameters - len(inertials), RIDGE)]
        )

    def _correlation(self, choice: ModelChoice) -> float:
        """Number of rows that carry the information of one independent row, from the residuals of a plain fit."""
        inertials, terms = self.solution(choice)
        values = np.concatenate([inertials, *terms.values()])
        times = []
        friction = values[len(self._machine.inertials) :].reshape(-1, len(self._machine.elements))
        for run in self.prepared(choice.delay):
            rows = np.einsum("mte,te->me", self._friction(choice, run), friction) @ self._machine.weights
            residual = run.motion.torque - run.filtered @ inertials - rows
            times += [correlation_time([column]) for column in residual.T]
        return float(np.median(times))


def linear_law(law: FrictionLaw) -> FrictionLaw:
    """The terms that are compared: all but those that depend on the load and fade, which data hardly tell from others."""
    return replace(law, terms=tuple(t for t in law.terms if not (t.kind == "fading" and t.loaded)))


def linear_names(law: FrictionLaw) -> tuple[str, ...]:
    """Rotor inertia and the coefficients of the compared terms."""
    names = linear_law(law).parameter_names
    return (
        "armature",
        *(n for n in names if FRICTION_PARAMETERS[n].free and not FRICTION_PARAMETERS[n].shape),
    )


def offsets_of(law: FrictionLaw) -> tuple[str, ...]:
    """Names of the torques beside motor and external torque, which couplings do not have."""
    return tuple(name for term in law.of_kind("offset") for name in term.names)


def first_shapes(choice: ModelChoice, speed: Any) -> dict[str, Any]:
    """First guess of the parameters to which the budget is not proportional.

    :param speed: largest velocity of an element.
    """
    shapes = {name: one.shape for name, one in FRICTION_PARAMETERS.items() if one.shape is not None}
    return {
        name: one.mean * choice.stribeck * speed if one.of_speed else one.mean for name, one in shapes.items()
    }


def _vertex(errors: Mapping[int, float], centre: int) -> float:
    """Minimum of the parabola through the squared errors at ``centre`` and its neighbours, relative to ``centre``."""
    left, middle, right = (errors.get(centre + k, np.inf) ** 2 for k in (-1, 0, 1))
    bend = left - 2.0 * middle + right
    return round(float(0.5 * (left - right) / bend), 3) if 0.0 < bend < np.inf else 0.0


def _asymmetric(choice: ModelChoice) -> list[ModelChoice]:
    law = choice.law
    kept = {term.name: True for term in law.terms if term.name in optional_parts()}
    return (
        []
        if "asymmetric" in law.optional_terms
        else [replace(choice, law=law.with_terms(**kept, asymmetric=True))]
    )


def _presliding(choice: ModelChoice) -> list[ModelChoice]:
    return [] if choice.presliding is not None else [replace(choice, presliding=n) for n in PRESLIDING]


def _stribeck(choice: ModelChoice) -> list[ModelChoice]:
    if choice.law.weight is not None:
        return []
    return [replace(choice, law=choice.law.with_stribeck(), stribeck=share) for share in STRIBECK]


def sum_of(parts: Iterable[Array]) -> Array:
    """Sum of arrays of the same shape."""
    return np.asarray(np.sum(list(parts), axis=0))


def _solved(gram: Array, slope: Array, precision: Array) -> Array:
    matrix = gram + np.diag(precision)
    scale = 1.0 / np.sqrt(np.diag(matrix))
    factor = linalg.cho_factor(matrix * np.outer(scale, scale) + 1e-12 * np.eye(len(scale)))
    return np.asarray(scale * linalg.cho_solve(factor, scale * slope))
