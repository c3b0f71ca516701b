"""Draws in a format: each draw as a variant of the export, or all draws as one table of the format's own fields."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stribeck.errors import ConfigError
from stribeck.exports.draws import held_draw
from stribeck.exports.registry import Format
from stribeck.exports.task import ExportTask
from stribeck.model.arrays import Array
from stribeck.model.joint import Servo


class Sets(NamedTuple):
    """Draws of a joint: values (N,) by parameter.

    :param values: of what a format holds.
    :param beside: of what it does not hold.
    """

    values: Mapping[str, Array]
    beside: Mapping[str, Array]


MOST_FILES = 10_000
"""Variants of an export at most."""


def check_format(form: Format, count: int) -> None:
    """Raise :class:`ConfigError` for formats without draws, and for more files than a folder should have."""
    if form.draws is None:
        raise ConfigError(
            f"the format {form.name} is not for simulation, so it cannot contain draws: remove the option `draws`"
        )
    if form.draws == "files" and count > MOST_FILES:
        raise ConfigError(
            f"{form.name} writes a file for each draw, at most {MOST_FILES}, found {count}: choose fewer `draws`, or isaaclab-bam, which writes one table"
        )


def table_path(output: Path) -> Path:
    """The table beside an export; its name ends so that programs that read all files of a kind leave it alone."""
    return output.with_name(f"{output.name}.draws.npz")


def variants(form: Format, task: ExportTask, drawn: Sequence[Sets], count: int) -> dict[Path, str | bytes]:
    """The content of the files of all draws: variants ``STEM_0000`` and following, where the format has them, and the table.

    The table has also what no format holds: the delay and the bias of the goal of a robot's joint.

    :param drawn: for each joint of the task.
    :raises ConfigError: for values that the format refuses.
    """
    files: dict[Path, str | bytes] = {}
    columns: dict[str, list[float]] = {}
    digits = max(4, len(str(count - 1)))
    for k in range(count):
        joints = tuple(
            one._replace(servo=_drawn_servo(one.servo, sets, k))
            for one, sets in zip(task.joints, drawn, strict=True)
        )
        if form.draws == "files":
            name = f"{task.output.stem}_{k:0{digits}d}{task.output.suffix}"
            files.update(form.write(replace(task, joints=joints, output=task.output.with_name(name))).files)
            continue
        for one in joints:
            for field, value in form.module_of().fields(one, task.timestep).items():
                columns.setdefault(f"{one.joint}/{field}", []).append(value)
    table = {name: np.array(values) for name, values in columns.items()}
    for one, sets in zip(task.joints, drawn, strict=True):
        own = {**sets.values, **sets.beside} if form.draws == "files" else sets.beside
        table |= {f"{one.joint}/{name}": values for name, values in own.items()}
    return {**files, table_path(task.output): _npz(table)}


def _drawn_servo(servo: Servo, sets: Sets, k: int) -> Servo:
    """A servo with the values of a draw; the scale of a motor's torque is also that of the derivative part of its command."""
    held, kd = held_draw(servo.parameters, sets.values, k), servo.kd
    if kd and "ratio" in sets.values:
        kd *= held.values["ratio"] / servo.parameters.values["ratio"]
    return replace(servo, parameters=held, kd=kd)


def _npz(table: Mapping[str, Array]) -> bytes:
    held, arrays = io.BytesIO(), dict[str, Any](table)
    np.savez(held, **arrays)
    return held.getvalue()
