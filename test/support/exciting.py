"""What tests of servo and excitation nodes share: configurations, robots that others drive, processes."""

import json
from pathlib import Path
from typing import Any

PATIENT = {"state_timeout": 5.0, "command_timeout": 2.5, "silence_timeout": 2.0, "watchdog": 2.5}
"""A machine that is busy with other tests may stand still for a while."""

BENCH = {"mass": 0.1, "length": 0.1, "arm_mass": 0.02}
LIMITS = {"velocity": 20.0, "acceleration": 300.0, "following_error": 4.0}
"""Goals move on for as long as states are late and not yet too old: by up to the range of positions."""


def record_yaml(
    path: Path,
    port: str,
    count: int = 1,
    *,
    trajectories: tuple[str, ...] = ("sin_sin",),
    gains: tuple[float, ...] = (400,),
    joint: dict[str, Any] | None = None,
    **top: Any,
) -> Path:
    """A file as ``stribeck record`` and the nodes take it: XL330s as j1, j2, … on benches, at 100 Hz."""
    joints = {
        f"j{k + 1}": {
            "id": k + 1,
            "model": "xl330",
            "position_limits": [-1.9, 1.9],
            "limits": LIMITS,
            "bench": BENCH,
            **(joint or {}),
        }
        for k in range(count)
    }
    content = {
        "port": port,
        "baud_rate": 1000000,
        "rate": 100,
        **PATIENT,
        "joints": joints,
        "plays": {"trajectories": list(trajectories), "gains": list(gains)},
        "output": str(path.parent / "bags"),
        **top,
    }
    path.write_text(json.dumps(content))
    return path


def robot_yaml(path: Path, count: int = 1, *, joint: dict[str, Any] | None = None, **top: Any) -> Path:
    """A file for a robot whose joints others drive: no bus, no servos."""
    joints = {
        f"j{k + 1}": {
            "actuator": "xl330",
            "position_limits": [-1.9, 1.9],
            "limits": LIMITS,
            "bench": BENCH,
            **(joint or {}),
        }
        for k in range(count)
    }
    content = {
        "rate": 100,
        "joints": joints,
        "plays": {"trajectories": ["sin_sin"], "gains": [400]},
        "output": str(path.parent / "bags"),
        "supply_voltage": 5.0,
        **top,
    }
    path.write_text(json.dumps(content))
    return path
