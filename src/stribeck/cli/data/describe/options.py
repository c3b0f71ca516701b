"""``stribeck data describe``: the file of an arm, or of a servo on a bench, from recordings, with what each value was guessed from."""

from __future__ import annotations

from pathlib import Path

from stribeck.cli.options import declared, option


@declared
class DescribeOptions:
    """Options: the URDF of an arm or the name of a servo, recordings, and the file to write."""

    model: Path | None = option("URDF of the arm; omit it for recordings of a servo on a pendulum bench")
    recordings: tuple[Path, ...] = option(
        "bags with joint states, .csv, .txt, .mat and .npz files, or folders of them",
        metavar="RECORDING",
        positional=True,
    )
    servo: str | None = option("the servo's name or YAML file, for recordings of a servo")
    joint: str | None = option("joint of the servo, for bags in which several joints move")
    plot: Path | None = option("picture to write: histogram of the intervals between samples")
    output: Path | None = option("file to write (default: machine.yaml for an arm, bench.yaml for a servo)")
