"""What ``stribeck replay`` prints and writes about a recorded motion."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stribeck.cli.table import print_table
from stribeck.evaluate.replay import Replay
from stribeck.live.compensator import Compensator
from stribeck.live.feedforward import LARGEST_LEARNED, SAFETY
from stribeck.live.setup import CompensatedJoint

SCHEMA = 1


def summary_of(
    result: Replay, compensator: Compensator, joints: Sequence[CompensatedJoint]
) -> dict[str, Any]:
    """The content of the ``--json`` file: torques in N m, times in s after the first state."""
    # Messages that differ only in the duration are counted together.
    doubts = Counter(re.sub(r"\d+ ms", "some ms", doubt) for doubt in result.doubts if doubt is not None)
    return {
        "schema": SCHEMA,
        "states": len(result.stamps),
        "mode": compensator.settings.mode,
        "effort_meaning": compensator.settings.effort_meaning,
        "gain": compensator.gain,
        "largest_gain": _largest_gain(result, compensator),
        "joints": [_of_joint(result, k, joint) for k, joint in enumerate(joints)],
        "learned": None
        if compensator.learned is None
        else {
            joint.model.name: scale._asdict()
            for joint, scale in zip(joints, compensator.learned, strict=True)
        },
        "learned_status": None if compensator.learned is None else _statuses(result, compensator),
        "warnings": [
            {"time": _seconds(result, warned.stamp), "text": warned.text} for warned in result.warnings
        ],
        "zero_torque": dict(doubts),
    }


def _of_joint(result: Replay, k: int, joint: CompensatedJoint) -> dict[str, Any]:
    torque, off = result.torque[:, k], result.off[:, k]
    on = np.flatnonzero(~off)
    since = 0 if not len(on) else int(on[-1]) + 1
    shares = [math.nan, math.nan]
    if result.cancelled is not None:
        shares = [float(part[k]) for part in (result.cancelled.measured, result.cancelled.identified)]
    measured, identified = (None if math.isnan(share) else share for share in shares)
    return {
        "joint": joint.model.name,
        "params": joint.model.source,
        "model": joint.model.law.name,
        "rms": float(np.sqrt(np.mean(torque**2))),
        "largest": float(np.max(np.abs(torque))),
        "of_measured": measured,
        "of_identified": identified,
        "enabled": joint.model.enabled,
        "off_from": _seconds(result, int(result.stamps[since])) if off[-1] else None,
    }


def _seconds(result: Replay, stamp: int) -> float:
    return 1e-9 * (stamp - int(result.stamps[0]))


def _largest_gain(result: Replay, compensator: Compensator) -> float:
    """The gain that learning may reach."""
    gain = compensator.gain
    learns = result.cancelled is not None
    return max(gain, min(compensator.settings.learned_gain, LARGEST_LEARNED * gain)) if learns else gain


def _statuses(result: Replay, compensator: Compensator) -> dict[str, dict[str, str]]:
    """Of each scale of each joint: learnt, not learnt, or at a bound."""
    settings = compensator.settings.adaptation
    bounds = {settings.scale_lower: "at its lower bound", settings.scale_upper: "at its upper bound"}
    taught = (
        [False] * len(compensator.names) if result.cancelled is None else result.cancelled.learned.tolist()
    )
    return {
        name: {
            part: bounds.get(getattr(scale, part), "learnt") if learns else "not learnt"
            for part in ("dry", "viscous")
        }
        for name, scale, learns in zip(compensator.names, compensator.learned or (), taught, strict=True)
    }


def print_replay(summary: Mapping[str, Any]) -> None:
    """Print the summary: warnings with their times, what was learnt, and last the table of the joints."""
    for warned in summary["warnings"]:
        print(f"at {warned['time']:.2f} s: {warned['text']}")
    for joint, scale in (summary["learned"] or {}).items():
        print(f"{joint}: {_learned(scale, summary['learned_status'][joint])}")
    print(f"{summary['states']} states, gain {summary['gain']:g}, mode {summary['mode']}")
    for reason, count in summary["zero_torque"].items():
        print(f"friction torque zero for {count} of them: {reason}")
    if summary["learned"] is not None:
        print(_words_on_gain(summary))
    rows = [
        [
            entry["joint"],
            entry["params"],
            entry["model"],
            _state(entry),
            f"{entry['rms']:.4g}",
            f"{entry['largest']:.4g}",
            *("-" if entry[key] is None else f"{100.0 * entry[key]:.0f}" for key in SHARES),
        ]
        for entry in summary["joints"]
    ]
    header = ["joint", "parameter file", "law", "torque", "rms [N m]", "largest [N m]", *SHARES.values()]
    print_table(header, rows, left=4)


SHARES = {"of_identified": "of identified [%]", "of_measured": "of measured [%]"}


def _words_on_gain(summary: Mapping[str, Any]) -> str:
    reached = summary["largest_gain"]
    return (
        f"share of the friction that is cancelled: up to {reached:g} with a goal, as learning raises the gain by at most {LARGEST_LEARNED:g} times, "
        f"to at most learned_gain; up to {SAFETY * min(reached, 1.0):.3g} of the friction certainly present without a goal"
    )


def _state(entry: Mapping[str, Any]) -> str:
    if not entry["enabled"]:
        return "not enabled"
    return "on" if entry["off_from"] is None else f"off from {entry['off_from']:.2f} s"


def _learned(scale: Mapping[str, float], status: Mapping[str, str]) -> str:
    """The learnt scales in words."""
    if set(status.values()) == {"not learnt"}:
        return "friction not learnt, as identified"
    parts = []
    for part in ("dry", "viscous"):
        words = f"{part} friction {scale[part]:.2f}"
        bound = status[part]
        deviation = scale[f"deviation_{part}"]
        parts.append(f"{words} ± {deviation:.2f}" if bound == "learnt" else f"{words} ({bound})")
    return f"{', '.join(parts)} times the identified value (± one standard deviation)"
