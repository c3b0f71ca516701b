"""``stribeck demo``: recording, fit and compensation on emulated servos, through ROS 2 nodes."""

from __future__ import annotations

from pathlib import Path

from stribeck.cli.options import Seed, declared, option


@declared
class DemoOptions:
    """Options: output folder and the seed of the fit."""

    output: Path = option("folder for the results (default: stribeck-demo)", Path("stribeck-demo"), "DIR")
    json: Path | None = option("JSON summary for scripts")
    seed: Seed = option("random seed (default: 0)", 0)
