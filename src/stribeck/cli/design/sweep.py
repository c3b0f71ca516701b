"""``stribeck design sweep``: writes a constant-velocity programme of one joint, for `stribeck record` and the excitation node."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np

from stribeck.cli.exit_codes import DONE
from stribeck.cli.inputs import check_outputs
from stribeck.cli.options import Count, Positive, assigned, declared, group, option
from stribeck.errors import ConfigError
from stribeck.rigid.urdf import robot_element
from stribeck.session.sweep import spaced_speeds, sweep_of

_joint, _motion = group("joint"), group("motion")

WITHIN = 0.9
"""Share of the limits of a URDF that a programme uses."""


@declared
class SweepOptions:
    """Options: the joint, its limits, how it moves, and the file."""

    joint: str = _joint("the joint that moves", metavar="NAME")
    model: Path | None = _joint("URDF with the limits of the joint, of which nine tenths are used")
    lower: float | None = _joint("lower end of the travel [rad] (default: as in the URDF)", metavar="RAD")
    upper: float | None = _joint("upper end of the travel [rad] (default: as in the URDF)", metavar="RAD")
    velocity: Positive | None = _joint("largest speed [rad/s] (default: as in the URDF)", metavar="RAD/S")
    acceleration: Positive = _motion("acceleration of the ramps [rad/s²] (default: 5)", 5.0, "RAD/S2")
    count: Count = _motion("number of speeds, spaced geometrically (default: 8)", 8)
    places: Count = _motion(
        "number of parts of the travel in which slow sweeps are repeated, at different gravity loads (default: 3)",
        3,
    )
    set: Annotated[dict[str, float], assigned] | None = _motion(
        "positions of the other joints [rad]", metavar="JOINT=RAD"
    )
    output: Path = option("file to write (default: sweep.yaml)", Path("sweep.yaml"))


def run(options: SweepOptions) -> int:
    """Write the programme and say how to play it."""
    check_outputs([options.output], [options.model])
    if options.output.suffix not in (".yaml", ".yml"):
        raise ConfigError(
            f"--output {options.output}: the file name must end in .yaml, so that `record` can read it"
        )
    lower, upper, velocity = _limits(options)
    sweep = sweep_of(
        {
            "joint": options.joint,
            "range": (lower, upper),
            "speeds": spaced_speeds(velocity, options.count),
            "acceleration": options.acceleration,
            "places": options.places,
            "others": options.set or {},
        }
    )
    play = sweep.to_play(options.output.stem)
    sweep.write(options.output)
    largest = max(abs(end) for end in sweep.range)
    print(
        f"{options.output}: {len(sweep.legs())} sweeps of {options.joint} at {len(sweep.played)} speeds from {sweep.played[0]:.3g} to "
        f"{sweep.played[-1]:.3g} rad/s, {play.duration:.0f} s, within {largest:.3g} rad"
    )
    if left := [f"{v:.3g}" for v in sweep.speeds if v not in sweep.played]:
        print(f"omitted, because the travel is too short: {', '.join(left)} rad/s")
    print(
        f"to execute it, enter `plays: {{trajectories: [{options.output}], gains: […]}}` in the file of "
        "`stribeck record` or of the excitation node; then run `stribeck identify joint BAG`"
    )
    return DONE


def _limits(options: SweepOptions) -> tuple[float, float, float]:
    """Lower and upper end and largest speed: those given, else of the URDF."""
    own = {"lower": np.nan, "upper": np.nan, "velocity": np.nan}
    if options.model is not None:
        own |= joint_limits(options.model, options.joint)
    margin = 0.5 * (1.0 - WITHIN) * (own["upper"] - own["lower"])
    usual = {
        "lower": own["lower"] + margin,
        "upper": own["upper"] - margin,
        "velocity": WITHIN * own["velocity"],
    }
    found = {name: usual[name] if (given := getattr(options, name)) is None else float(given) for name in own}
    missing = [f"--{name}" for name, value in found.items() if not np.isfinite(value)]
    if found["velocity"] <= 0.0:
        missing.append("--velocity")
    if missing:
        raise ConfigError(
            f"{', '.join(missing)} missing: give {'them' if len(missing) > 1 else 'it'}, or a --model that states limits of {options.joint}"
        )
    return found["lower"], found["upper"], found["velocity"]


def joint_limits(urdf: Path, name: str) -> dict[str, float]:
    """Ends of the travel and largest velocity of a joint of a URDF, as far as it states them.

    :raises ConfigError: for a joint that the URDF does not have.
    """
    joints = {joint.get("name"): joint for joint in robot_element(urdf).findall("joint")}
    if name not in joints:
        raise ConfigError(f"{urdf} has no joint {name!r}; it has {', '.join(str(one) for one in joints)}")
    limit = joints[name].find("limit")
    stated = {} if limit is None else limit.attrib
    return {key: float(stated[key]) for key in ("lower", "upper", "velocity") if key in stated}
