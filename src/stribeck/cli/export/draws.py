"""Draws of ``stribeck export``: what is asked for, and the values that the format holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from stribeck.cli.export.options import ExportOptions
from stribeck.errors import ConfigError
from stribeck.evaluate.assessment import Stepping
from stribeck.exports.draws import (
    Width,
    check_uncertain,
    drawn_as_held,
    scatter_of,
    width_for,
    width_of_recorded,
    width_of_robot,
    with_stiffness,
)
from stribeck.exports.registry import Format
from stribeck.exports.variants import Sets, check_format
from stribeck.model.joint import Drive
from stribeck.model.log import Batch

BESIDE_LAW = {"delay": "delay", "bias": "bias of the goal", "backlash": "backlash"}
"""What is identified of a robot's joint beside actuator and law, and no format holds, in words."""


class Judged(NamedTuple):
    """A parameter file with its runs, as recorded and as the source law moves, and what the format holds of it.

    :param runs: ``None`` for a joint of a robot, of which no bench is known.
    """

    path: Path
    source: Drive
    runs: tuple[Batch, Batch] | None
    stepping: Stepping
    held: Drive


class Drawn(NamedTuple):
    """Draws of a file, and how wide they are."""

    sets: Sets
    width: Width


def check_draws(form: Format, options: ExportOptions) -> None:
    """Raise :class:`ConfigError` for options of draws without draws, and formats without them."""
    if options.draws is not None:
        check_format(form, options.draws)
    elif options.same or options.seed:
        raise ConfigError(
            f"{'--same' if options.same else '--seed'} is for draws only: give their number with --draws, or remove the option"
        )


def check_units(options: ExportOptions, joints: Mapping[str, tuple[Path, Drive]]) -> None:
    """Check that drives to draw from are uncertain, and joints with equal drives have files of their own.

    :raises ConfigError: otherwise.
    """
    if options.draws is None:
        return
    for path, drive in joints.values():
        check_uncertain(drive, path)
    unknown = [name for name in options.same if name not in joints]
    if unknown:
        raise ConfigError(
            f"--same needs names of exported joints, found {unknown[0]!r}; valid: {', '.join(joints)}"
        )
    if options.same:
        own = {id(joints[name][1]) for name in options.same}
        if len(own) < max(2, len(options.same)):
            raise ConfigError(
                "--same needs at least two joints, each with its own parameter file: give the files with --params"
            )
        scatter_of([joints[name][1] for name in options.same])  # refuses servos that differ


def drawn_of(
    judged: Sequence[Judged], joints: Mapping[str, Drive], options: ExportOptions, count: int
) -> list[Drawn]:
    """Draws of each file."""
    units = [joints[name] for name in options.same]
    means, scatters = scatter_of(units) if units else ({}, {})
    found = []
    for k, one in enumerate(judged):
        seed = options.seed if k == 0 else (options.seed, k)
        width = _width(one, recorded=bool(options.recordings))
        further = any(one.source is unit for unit in units)
        centre = replace(one.source, values={**one.source.values, **means}) if further else one.source
        between = scatters if further else None
        drawn = width.drawn(centre, count, seed, between)
        drawn = with_stiffness(centre, drawn)
        beside = {name: drawn[name] for name in BESIDE_LAW if name in drawn}
        if one.runs is None:
            held = {name: drawn[name] for name in one.held.values if name in drawn and name != "q_offset"}
        else:
            held = drawn_as_held(one.source, one.held, drawn, one.runs[1], one.stepping)
        found.append(Drawn(Sets(held, beside), width))
    return found


def _width(one: Judged, *, recorded: bool) -> Width:
    if one.runs is None:
        return width_of_robot(one.source)
    measured, of_source = one.runs
    if recorded:
        return width_of_recorded(one.source, measured, one.stepping)
    return width_for(one.source, of_source, one.stepping)
