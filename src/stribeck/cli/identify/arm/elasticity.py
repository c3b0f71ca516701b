"""Prints the elasticity of the joints of an arm."""

from __future__ import annotations

from collections.abc import Mapping

from stribeck.cli.table import print_table
from stribeck.identify.arm.elasticity import Elasticity
from stribeck.model.estimate import Estimate


def print_elasticity(joints: Mapping[str, Elasticity]) -> None:
    """Print stiffness, play and errors of the twist of joints with two encoders; nothing without any."""
    if not joints:
        return
    rows, reasons = [], []
    for joint, one in joints.items():
        if one.reason:
            reasons.append(f"the stiffness of {joint} is not identifiable: {one.reason}")
        if one.found is None:
            continue
        known, play = one.found.stiffness, one.found.estimates.get("play")
        cells = [joint, "-" if known is None else f"{known.value:.4g}", _interval(known)]
        cells += [
            "-" if play is None else f"{1e3 * play.value:.3g}",
            f"{1e3 * one.found.estimates['skew'].value:.3g}",
        ]
        for name in ("train", "validation"):
            cells += [f"{1e3 * value:.3g}" for value in one.rms.get(name, ())] or ["-", "-"]
        rows.append(cells)
    if rows:
        print("elasticity, from encoders on motors and links")
        head = ["joint", "stiffness [N m/rad]", "95 % interval", "play [mrad]", "skew [ms]"]
        errors = ["twist [mrad]", "error [mrad]", "validation: twist", "error"]
        print_table([*head, *errors], rows)
    print(*reasons, sep="\n", end="\n" if reasons else "")


def _interval(known: Estimate | None) -> str:
    return "-" if known is None or known.interval is None else "{:.4g} to {:.4g}".format(*known.interval)
