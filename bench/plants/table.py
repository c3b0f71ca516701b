"""Figures to tables: what every method did, against no compensation of the same condition."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from plants.baselines import OURS
from plants.conditions import SCALES
from plants.friction import FloatArray
from plants.joints import Condition
from plants.measure import AT_REST

HUNTS = 3.0
"""Oscillation at rest beyond so many counts, and half as much again as without compensation, is hunting."""

NEAR_BEST = 1.2
"""Within so much of the best baseline a method counts as good."""

GROWS = 1.05
"""A joint that becomes so much faster than it was let go, and than without compensation, gains energy."""

NO_WORSE = 1.02
"""Errors beyond so much of those without compensation are worse."""

BETWEEN = (0.1, 0.3, 0.7, 1.4, 2.01)
"""Ends of the ranges of true friction per identified one in a row."""

LEAST_SCALE = 0.3
"""From this part of the identified friction on no run may be worse than without compensation [1]."""

Row = dict[str, Any]


def label(condition: Any) -> str:
    """A condition in a few words: what differs from the standard."""
    single = isinstance(condition, Condition)
    plain = Condition(condition.joint) if single else type(condition)()
    parts = [condition.joint] if single else []
    for name, value in vars(condition).items():
        if value != getattr(plain, name) or name in ("rate", "bandwidth"):
            parts.append(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}")
    return " ".join(parts)


def true_scale(condition: Condition) -> float:
    """True dry friction per identified one."""
    return condition.coulomb_scale


def _mean(values: FloatArray) -> float:
    """Mean, NaN of nothing."""
    return float(values.mean()) if values.size else float("nan")


def hunts(counts: FloatArray) -> Any:
    """Whether runs oscillate at rest, (methods, conditions), by their counts, whole but for rounding; the first method is none."""
    return (counts > HUNTS + 0.01) & (counts > 1.5 * counts[0])


def tracking_rows(
    names: Sequence[str], conditions: list[Condition], found: dict[str, FloatArray]
) -> list[Row]:
    """A row per method for joints that follow a path."""
    ratio = found["rms"] / found["rms"][0]
    worst = found["worst"] / found["worst"][0]
    hunting = hunts(found["counts"])
    baselines = [m for m, name in enumerate(names) if name not in OURS]
    # The best rival of a cell must not hunt there; none never does.
    best = np.where(hunting, np.inf, ratio)[baselines].min(axis=0)
    any_best = ratio[baselines].min(axis=0)
    forward = ratio[[m for m in baselines if names[m] != "momentum"]].min(axis=0)
    scales = np.array([true_scale(c) for c in conditions])
    stiff = np.array([c.control == "pd" for c in conditions])
    # Elsewhere another torque than friction is wrong, which no compensation of friction can know.
    friction_alone = np.array([not c.gravity_error and not c.load_step for c in conditions])
    rows = []
    for m, name in enumerate(names):
        row: Row = {"method": name}
        for scale in SCALES:
            row[f"x{scale:g}"] = _mean(ratio[m][scales == scale])
        for scale in SCALES:
            row[f"pd x{scale:g}"] = _mean(ratio[m][(scales == scale) & stiff & friction_alone])
        row["soft"] = _mean(ratio[m][~stiff & friction_alone])
        at = int(ratio[m].argmax())
        row |= {
            "all": float(ratio[m].mean()),
            "median": float(np.median(ratio[m])),
            "transient": float(worst[m].mean()),
            "worst transient": float(worst[m].max()),
            "hunts": int(hunting[m].sum()),
            "worse": int((ratio[m] > 1.05).sum()),
            "near best": float((ratio[m] <= NEAR_BEST * any_best).mean()),
            "near best quiet": float(((ratio[m] <= NEAR_BEST * best) & ~hunting[m]).mean()),
            "near best forward": float((ratio[m] <= NEAR_BEST * forward).mean()),
            "worst": float(ratio[m, at]),
            "worst cell": label(conditions[at]),
        }
        rows.append(row)
    return rows


def wide_rows(names: Sequence[str], conditions: list[Condition], found: dict[str, FloatArray]) -> list[Row]:
    """A row per method for joints with friction of any size: errors by its size, runs that hunt, and the worst runs."""
    ratio, hunting = found["rms"] / found["rms"][0], hunts(found["counts"])
    scales = np.array([min(c.coulomb_scale, c.viscous_scale) for c in conditions])
    within = scales >= LEAST_SCALE
    rows = []
    for m, name in enumerate(names):
        row: Row = {"method": name}
        for low, high in pairwise(BETWEEN):
            row[f"x{low:g} to {high:g}"] = _mean(ratio[m][(scales >= low) & (scales < high)])
        at = int(np.where(within, ratio[m], 0.0).argmax())
        row |= {
            "hunts": int(hunting[m].sum()),
            "worse": int((ratio[m][within] > NO_WORSE).sum()),
            "worst below": float(np.max(ratio[m][~within], initial=0.0)),
            "worst": float(ratio[m, at]),
            "worst cell": label(conditions[at]),
        }
        rows.append(row)
    return rows


def free_rows(names: Sequence[str], conditions: list[Condition], found: dict[str, FloatArray]) -> list[Row]:
    """A row per method for joints without goal: force of the hand, energy, and what happens after release."""
    scales = np.array([true_scale(c) for c in conditions])
    force = found["force"] / found["force"][0]
    energy = found["energy_in"] / np.maximum(found["energy_out"], 1e-9)
    rows = []
    for m, name in enumerate(names):
        row: Row = {"method": name}
        for scale in sorted(set(scales)):
            row[f"force x{scale:g}"] = _mean(force[m][scales == scale])
        at = int(found["growth"][m].argmax())
        row |= {
            "energy": float(energy[m].mean()),
            "most energy": float(energy[m].max()),
            "speed grew": int((found["growth"][m] > GROWS * np.maximum(found["growth"][0], 1.0)).sum()),
            "moves at end": int((found["final_speed"][m] > AT_REST).sum()),
            "largest growth": float(found["growth"][m, at]),
            "worst cell": label(conditions[at]),
        }
        rows.append(row)
    return rows


def contact_rows(
    names: Sequence[str], conditions: list[Condition], found: dict[str, FloatArray]
) -> list[Row]:
    """A row per method for joints in contact, all per torque limit.

    ``own``: torque of the compensation that lasts; ``added``: lasting force beyond that without compensation. A joint
    that is held stands elsewhere than without compensation, where it may never have moved: there ``own`` is what counts.
    """
    limit = np.array([c.data.torque_limit for c in conditions])
    share = (found["late"] - found["late"][0]) / limit
    own = found["own_late"] / limit
    held = any(c.contact == "hold" for c in conditions)
    peak = (found["peak"] - found["peak"][0]) / limit
    hunting = hunts(found["counts"])
    rows = []
    for m, name in enumerate(names):
        at = int((own if held else share)[m].argmax())
        force = {"added mean": float(share[m].mean()), "added max": float(share[m].max())}
        rows.append(
            {
                "method": name,
                "own mean": float(own[m].mean()),
                "own max": float(own[m].max()),
                **({} if held else force),
                "peak mean": float(peak[m].mean()),
                "peak max": float(peak[m].max()),
                "hunts": int(hunting[m].sum()),
                "worst cell": label(conditions[at]),
            }
        )
    return rows


def arm_rows(names: Sequence[str], conditions: list[Any], found: dict[str, FloatArray]) -> list[Row]:
    """A row per method for the arm: errors are means over its joints of their ratios; an arm hunts if a joint does."""
    ratio = (found["rms"] / found["rms"][0]).mean(axis=2)
    worst = (found["worst"] / found["worst"][0]).max(axis=2)
    hunting = hunts(found["counts"])
    scales = np.array([c.scale for c in conditions])
    controls = np.array([c.control for c in conditions])
    rows = []
    for m, name in enumerate(names):
        row: Row = {"method": name}
        for scale in sorted(set(scales)):
            row[f"x{scale:g}"] = _mean(ratio[m][scales == scale])
        for control in sorted(set(controls)):
            row[control] = _mean(ratio[m][controls == control])
        at = int(ratio[m].argmax())
        row |= {
            "all": float(ratio[m].mean()),
            "worst transient": float(worst[m].max()),
            "arms that hunt": int(hunting[m].any(axis=1).sum()),
            "joints that hunt": int(hunting[m].sum()),
            "worst": float(ratio[m, at]),
            "worst cell": label(conditions[at]),
        }
        rows.append(row)
    return rows


ROWS = {
    "arm": arm_rows,
    "tracking": tracking_rows,
    "wide": wide_rows,
    "light": wide_rows,
    "disturbed": tracking_rows,
    "hand": free_rows,
    "guided": free_rows,
    "coast": free_rows,
    "released": free_rows,
    "wall": contact_rows,
    "hold": contact_rows,
}
"""How a part becomes rows."""


def printed(title: str, rows: list[Row]) -> str:
    """Rows as text in columns."""
    names = list(rows[0])
    cells = [names] + [[_text(row[name]) for name in names] for row in rows]
    widths = [max(len(line[k]) for line in cells) for k in range(len(names))]
    lines = [
        "  ".join(
            cell.ljust(width) if k in (0, len(names) - 1) else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]
    return "\n".join([title, *lines])


def _text(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
