"""Does randomisation by what was identified pay? Bands of drawn simulations on runs left out, beside equal ranges of all parameters.

Of each condition left out (a gain of the XL330, a trajectory of the STS3250, runs of a robot) the drives are identified from the others. Simulations
are randomised by draws (:mod:`stribeck.exports.draws`), whose sizes are chosen from the runs that were fitted so that they contain one more run
(:mod:`stribeck.exports.draw_width`; of each joint of a robot by itself, from residuals of the fit alone), and by independent uniform factors of all parameters:
±20 %, ±50 %, and the smallest range that contains 90 % of the samples fitted. On the
runs left out: share of the samples within the middle 90 %, with the 90 % interval of a block bootstrap (0.5 s), the mean half-width, and for the uniform
factors that of the middle part that contains as many samples as the draws.

For servos, goals of a step (a boost, its duration, a final offset) are chosen by CMA-ES for the mean cost over each set of simulations and tried on the
unit that the runs left out identify: its cost above that of goals chosen on that unit itself is the regret.

    python bench/randomisation.py xl330|sts3250|go2|so101 [--law m4] [--only CONDITION …] [--fits FOLDER] [--data FOLDER] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from cmaes import CMA

import stribeck as sb
from left_out import DATA, ROBOTS, SERVOS, conditions, fitted, robot
from stribeck.evaluate.assessment import stepping_of
from stribeck.evaluate.draws import draws_of
from stribeck.exports.draws import motions_of, width_of, with_stiffness
from stribeck.exports.robot_draws import sizes_of
from stribeck.identify.robot.drives import robot_drives
from stribeck.identify.robot.identify import identify_robot
from stribeck.identify.robot.problem import lanes_of, segments_of
from stribeck.identify.robot.rollout import simulate_lanes
from stribeck.model.joint import Drive
from stribeck.model.log import Log
from stribeck.model.step import batch_for
from stribeck.model.verdict import Verdict

Array = npt.NDArray[np.float64]
DRAWS, TUNED, LEVEL, BLOCK, HALVINGS, LEVELS = 60, 24, 0.9, 0.5, 6, 12
RANGES = (0.2, 0.5)
BENCH = ("q_offset", "ratio", "limit", "bias", "delay", "tilt_x", "tilt_y")
"""Parameters that no range is applied to."""


class Case(NamedTuple):
    """A condition left out.

    :param draw, uniform: sets of parameters for an error and a share of the posterior, and for a range.
    :param width: error and share of the posterior by which ``stribeck export`` draws, of each joint of a robot.
    :param fitted, left_out: motions (T, R, S) of sets of parameters, measured positions, and which samples count, of both kinds of runs.
    """

    name: str
    draw: Callable[..., Mapping[str, Array]]
    uniform: Callable[[float], Mapping[str, Array]]
    fitted: Runs
    left_out: Runs
    width: Callable[[Case], tuple[Any, Any]]
    servo: tuple[Drive, Drive, Log] | None = None


class Runs(NamedTuple):
    """Runs that can be simulated."""

    simulate: Callable[[Mapping[str, Array]], Array]
    measured: Array
    valid: npt.NDArray[np.bool_]
    dt: float


def uniform_factors(values: Mapping[str, Array], share: float) -> dict[str, Array]:
    """All parameters (S,) times independent factors from 1 - share to 1 + share."""
    rng = np.random.default_rng(1)
    return {
        name: value if name in BENCH else value * rng.uniform(1.0 - share, 1.0 + share, DRAWS)
        for name, value in values.items()
    }


def servo_cases(name: str, law: str, given: argparse.Namespace) -> Iterator[Case]:
    """The conditions of a servo."""
    for one, kept, other in conditions(name, given.data):
        if given.only and one not in given.only:
            continue
        train, test = (sb.load(paths, arm_mass=0.0) for paths in (kept, other))
        drive = fitted(train, law, given.fits, f"{name}_{law}_without_{one}")
        own = fitted(test, law, given.fits, f"{name}_{law}_of_{one}")
        values = {key: np.full(DRAWS, value) for key, value in drive.values.items()}

        def draw(error: float, share: float = 1.0, drive: Drive = drive) -> Mapping[str, Array]:
            return draws_of(drive, DRAWS, 0, error=error, share=share)

        def uniform(share: float, values: Mapping[str, Array] = values) -> Mapping[str, Array]:
            return uniform_factors(values, share)

        runs = [servo_runs(drive, each.logs) for each in (train, test)]

        def width(case: Case, drive: Drive = drive, logs: Sequence[Log] = train.logs) -> tuple[float, float]:
            found = width_of(drive, logs)
            return found.error, found.share

        yield Case(f"{name}, {one} left out", draw, uniform, *runs, width, (drive, own, test.logs[0]))


def servo_runs(drive: Drive, logs: Sequence[Log]) -> Runs:
    """Runs of a servo."""
    stepping = stepping_of(drive)
    batch = batch_for(logs, stepping.dt, stepping.integrator)

    def simulate(drawn: Mapping[str, Array]) -> Array:
        return motions_of(drive, drawn, batch, stepping)

    return Runs(simulate, batch.position, batch.weight > 0.0, batch.dt)


def robot_cases(name: str, law: str, given: argparse.Namespace) -> Iterator[Case]:
    """Every third run of a Go2 left out, of an SO-101 every second."""
    tree, excluded, train, test = robot(name, given.data)
    fit = identify_robot(tree, train, law=law, excluded=excluded, polish=False)
    drives, problem = robot_drives(fit, Verdict()).joints, fit.problem
    base = problem.drives(fit.x, 0, len(tree.names))

    def column(drawn: Mapping[str, Array], key: str, joint: str, at: int, k: int) -> float:
        scale = drawn[f"{joint}/ratio"][k] if key in ("stiffness", "derivative") else 1.0
        values = drawn.get(f"{joint}/{key}")
        return scale * (base[key][at] if values is None or key == "stiffness" else values[k])

    def simulated(runs: Sequence[object]) -> Runs:
        segments = segments_of(runs)
        lanes = lanes_of(tree, runs, segments, problem.joints)

        def simulate(drawn: Mapping[str, Array]) -> Array:
            found = []
            for k in range(DRAWS):
                block = np.array(
                    [
                        [
                            column(drawn, key, joint, at, k)
                            for joint, at in zip(drives, problem.joints, strict=True)
                        ]
                        for key in problem.kind.names
                    ]
                )
                found.append(simulate_lanes(problem.kind, lanes, np.tile(block, (1, len(segments)))))
            return np.stack(found, axis=2).astype(float)

        position, valid = np.asarray(lanes.position, float), np.asarray(lanes.weight) > 0.0
        return Runs(simulate, position, valid, lanes.dt)

    def width(case: Case) -> tuple[Array, Array]:
        errors, shares, _ = sizes_of(list(drives.values()), problem, fit.x)
        return errors, shares

    def draw(errors: Array, shares: Array) -> Mapping[str, Array]:
        return {
            f"{joint}/{key}": values
            for k, (joint, drive) in enumerate(drives.items())
            for key, values in with_stiffness(
                drive, draws_of(drive, DRAWS, k, error=errors[k], share=shares[k], correlated=False)
            ).items()
        }

    def uniform(share: float) -> Mapping[str, Array]:
        rng, found = np.random.default_rng(1), {}
        for joint, drive in drives.items():
            for key, one in drive.estimates.items():
                still = key in BENCH and key != "ratio"
                factor = np.ones(DRAWS) if still else rng.uniform(1.0 - share, 1.0 + share, DRAWS)
                found[f"{joint}/{key}"] = one.value * factor
        return found

    yield Case(
        f"{name}, {len(test)} of {len(train) + len(test)} runs left out",
        draw,
        uniform,
        simulated(train),
        simulated(test),
        width=width,
    )


def band(ordered: Array, level: float) -> tuple[Array, Array]:
    """Ends (T, R) of the middle share ``level`` of motions (T, R, S) that are ordered by value."""
    place = (0.5 + 0.5 * level * np.array([-1.0, 1.0])) * (ordered.shape[2] - 1)
    below = np.floor(place).astype(int)
    above, rest = np.minimum(below + 1, ordered.shape[2] - 1), place - below
    low, high = (
        ordered[:, :, i] + w * (ordered[:, :, j] - ordered[:, :, i])
        for i, j, w in zip(below, above, rest, strict=True)
    )
    return low, high


def inside(motion: Array, runs: Runs, level: float = LEVEL) -> tuple[npt.NDArray[np.bool_], Array]:
    """Whether samples (T, R) are within the middle of the motions, and half-widths [rad]."""
    low, high = band(np.sort(motion, axis=2), level)
    return (runs.measured >= low) & (runs.measured <= high), 0.5 * (high - low)


def half_width_at(motion: Array, runs: Runs, coverage: float) -> float:
    """Mean half-width [rad] of the middle of motions (T, R, S) that contains as large a share of the samples; NaN if none does."""
    ordered = np.sort(motion, axis=2)
    low, high = 0.0, 1.0
    for _ in range(LEVELS):
        level = 0.5 * (low + high)
        first, last = band(ordered, level)
        hits = (runs.measured >= first) & (runs.measured <= last)
        low, high = (low, level) if np.mean(hits[runs.valid]) >= coverage else (level, high)
    first, last = band(ordered, high)
    hits = (runs.measured >= first) & (runs.measured <= last)
    return (
        float(np.mean(0.5 * (last - first)[runs.valid])) if np.mean(hits[runs.valid]) >= coverage else np.nan
    )


def smallest(sets: Callable[[float], Mapping[str, Array]], runs: Runs, low: float, high: float) -> float:
    """The smallest size with which sets of parameters contain enough of the samples."""
    for _ in range(HALVINGS):
        middle = (low * high) ** 0.5
        share = np.mean(inside(runs.simulate(sets(middle)), runs)[0][runs.valid])
        low, high = (low, middle) if share >= LEVEL else (middle, high)
    return high


def interval(hits: npt.NDArray[np.bool_], runs: Runs) -> tuple[float, float]:
    """90 % interval of the share of samples within, by a bootstrap of blocks."""
    length = max(1, round(BLOCK / runs.dt))
    blocks = [
        (
            np.sum(hits[k : k + length, r] & runs.valid[k : k + length, r]),
            np.sum(runs.valid[k : k + length, r]),
        )
        for r in range(hits.shape[1])
        for k in range(0, len(hits), length)
    ]
    counts = np.array([block for block in blocks if block[1]])
    picked = np.random.default_rng(0).integers(len(counts), size=(1000, len(counts)))
    shares = counts[picked, 0].sum(axis=1) / counts[picked, 1].sum(axis=1)
    low, high = np.quantile(shares, [0.05, 0.95])
    return float(low), float(high)


def step_goals(shapes: Array, time: Array) -> Array:
    """Goals (T, n) of a step by 1 rad: boost [rad], its duration [s] and final offset [rad] of each column (n, 3)."""
    boost, duration, offset = shapes.T
    return 1.0 + offset + boost * (time[:, None] < duration)


def cost_of(drive: Drive, log: Log, drawn: Mapping[str, Array]) -> Callable[[Array], Array]:
    """Mean distance from the end of a step [rad] over 1.5 s, of goals (n, 3) for sets of parameters: (n, S)."""
    stepping = stepping_of(drive)
    start = batch_for([log], stepping.dt, stepping.integrator)
    rows = round(1.5 / start.dt)

    def cost(shapes: Array) -> Array:
        count, time = len(shapes), start.time[:rows]
        goals = step_goals(shapes, time)
        still = np.zeros((rows, count))
        runs = replace(
            start,
            logs=start.logs * count,
            time=time,
            position=still,
            velocity=still,
            goal=goals,
            torque_enable=still + 1.0,
            supply_voltage=still + start.supply_voltage[:rows],
            temperature=still + start.temperature[:rows],
            weight=still + 1.0 / rows / count,
        )
        return np.asarray(np.mean(np.abs(motions_of(drive, drawn, runs, stepping) - 1.0), axis=0))

    return cost


def tuned(cost: Callable[[Array], Array]) -> Array:
    """Goals (3,) with the least mean cost."""
    bounds = np.array([[-0.3, 1.0], [0.0, 0.6], [-0.3, 0.6]])
    search = CMA(np.array([0.1, 0.15, 0.0]), 0.15, bounds=bounds, seed=0, population_size=12)
    best, least = np.array([0.0, 0.0, 0.0]), np.inf
    for _ in range(20):
        asked = [search.ask() for _ in range(search.population_size)]
        costs = cost(np.array(asked)).mean(axis=1)
        search.tell(list(zip(asked, costs.tolist(), strict=True)))
        if costs.min() < least:
            best, least = asked[int(costs.argmin())], float(costs.min())
    return best


def few(drawn: Mapping[str, Array]) -> dict[str, Array]:
    """Some of the sets."""
    return {name: values[:TUNED] for name, values in drawn.items()}


def judged(motion: Array, runs: Runs, coverage: float | None) -> dict[str, Any]:
    """What motions (T, R, S) contain of runs.

    :param coverage: share of the samples within draws, at which the half-width is given besides.
    """
    hits, widths = inside(motion, runs)
    found: dict[str, Any] = {
        "coverage": float(np.mean(hits[runs.valid])),
        "interval": interval(hits, runs),
        "half_width": float(np.mean(widths[runs.valid])),
    }
    if coverage is not None:
        found["half_width_at_same_coverage"] = half_width_at(motion, runs, coverage)
    return found


def together(parts: Sequence[tuple[Array, Runs]]) -> tuple[Array, Runs]:
    """Motions and runs of several conditions side by side; shorter ones end with samples that do not count."""
    rows = max(len(motion) for motion, _ in parts)

    def side_by_side(arrays: Sequence[Array]) -> Array:
        padded = [np.pad(one, [(0, rows - len(one)), *[(0, 0)] * (one.ndim - 1)]) for one in arrays]
        return np.concatenate(padded, axis=1)

    motion = side_by_side([motion for motion, _ in parts])
    measured, valid = (
        side_by_side([getattr(runs, name) for _, runs in parts]) for name in ("measured", "valid")
    )
    first = parts[0][1]
    return motion, Runs(first.simulate, measured, valid, first.dt)


def line_of(title: str, found: Mapping[str, Any]) -> str:
    """What is printed of a randomisation."""
    low, high = found["interval"]
    text = f"{title:28} {100 * found['coverage']:5.1f} % ({100 * low:.0f} to {100 * high:.0f})  ± {1e3 * found['half_width']:6.1f} mrad"
    if "half_width_at_same_coverage" in found:
        text += f", {1e3 * found['half_width_at_same_coverage']:6.1f} at the coverage of draws"
    return text + (f"  regret {100 * found['regret']:5.1f} %" if "regret" in found else "")


def regret(case: Case, drawn: Mapping[str, Array]) -> dict[str, float]:
    """Cost of goals tuned under a randomisation above that of goals tuned on the unit that the runs left out identify; nothing for robots."""
    if case.servo is None:
        return {}
    drive, own, log = case.servo
    unit = {name: np.array([value, value * (1.0 + 1e-9)]) for name, value in own.values.items()}
    on_unit = cost_of(own, log, unit)
    best = float(on_unit(tuned(on_unit)[None]).mean())
    return {"regret": float(on_unit(tuned(cost_of(drive, log, few(drawn)))[None]).mean()) / best - 1.0}


def said(sizes: Any) -> str:
    """A size in per cent, or the smallest and largest of several."""
    ends = sorted({f"{100 * size:.2g}" for size in (np.min(sizes), np.max(sizes))}, key=float)
    return " to ".join(ends)


def main() -> None:
    """Print one line for each condition and randomisation."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=(*SERVOS, *ROBOTS))
    parser.add_argument("--law", help="friction law (default: m4 of servos, m1 of robots)")
    parser.add_argument("--only", nargs="+", default=(), help="conditions of a servo (default: all)")
    parser.add_argument("--fits", type=Path, help="folder in which fits are kept")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    servo = given.name in SERVOS
    cases = servo_cases if servo else robot_cases
    rows, parts = [], defaultdict(list)
    for case in cases(given.name, given.law or ("m4" if servo else "m1"), given):
        print(case.name)
        error, part = case.width(case)
        chosen, coverage = smallest(case.uniform, case.fitted, 0.02, 0.95), None
        kinds = {
            "draws": (f"drawn, error {said(error)} %, {said(part)} %", case.draw(error, part)),
            "chosen range": (f"uniform ± {100 * chosen:.0f} %", case.uniform(chosen)),
            **{f"± {100 * one:.0f} %": (f"uniform ± {100 * one:.0f} %", case.uniform(one)) for one in RANGES},
        }
        for kind, (title, drawn) in kinds.items():
            motion = case.left_out.simulate(drawn)
            parts[kind].append((motion, case.left_out))
            found = judged(motion, case.left_out, coverage) | regret(case, drawn)
            coverage = found["coverage"] if coverage is None else coverage
            print(line_of(title, found), flush=True)
            rows.append({"case": case.name, "randomisation": title, **found})
    if len(parts["draws"]) > 1:
        print(f"{given.name}, all of these")
        coverage = None
        for kind, several in parts.items():
            found = judged(*together(several), coverage)
            coverage = found["coverage"] if coverage is None else coverage
            print(line_of(kind, found), flush=True)
            rows.append({"case": "all", "randomisation": kind, **found})
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
