"""Options of ``stribeck posterior``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from stribeck.cli.options import choices_of, count, numbers, positive, seed
from stribeck.core.actuator import EFFECTS
from stribeck.core.friction import LAWS

PRIORS = ("diffuse", "informed", "empirical", "cad")
SAMPLERS = ("nuts", "metropolis")


class Kind:
    """Options of one kind of machine, kept with their defaults, so that the other kind can refuse them."""

    def __init__(self, parser: argparse.ArgumentParser, title: str) -> None:
        self._group = parser.add_argument_group(title)
        self.defaults: dict[str, Any] = {}

    def add_argument(self, name: str, **options: Any) -> None:
        """Like argparse's."""
        action = self._group.add_argument(name, **options)
        self.defaults[action.dest] = action.default


def posterior(parser: argparse.ArgumentParser) -> None:
    """Options of ``stribeck posterior``."""
    arm = Kind(parser, "an arm")
    arm.add_argument("--config", metavar="ROBOT", help="a robot of config/robots by name, or its YAML file")
    arm.add_argument(
        "--urdf", type=Path, metavar="FILE", help="its URDF, where the one of the YAML is not found"
    )
    arm.add_argument(
        "--prior", choices=PRIORS, default="cad", help="what is known before (default: cad, the URDF)"
    )
    arm.add_argument("--table", type=Path, metavar="YAML", help="links of other robots (default: ours)")
    arm.add_argument(
        "--total-mass",
        type=positive,
        metavar="KG",
        help="by the datasheet, base included (default: the URDF's)",
    )
    arm.add_argument("--reach", type=positive, metavar="M", help="(default: all links of the URDF in a row)")
    arm.add_argument(
        "--rotors",
        type=numbers,
        metavar="LIST",
        help="inertias of the rotors on the joints' side [kg m^2]; needed without recordings and by priors other than cad",
    )
    arm.add_argument(
        "--data", type=Path, nargs="+", default=[], metavar="PATH", help="recorded torques; none: zero-shot"
    )
    arm.add_argument(
        "--inertias",
        type=Path,
        metavar="CSV",
        help="measured inertias: a pose [rad], the axis (from 1), the inertia [kg m^2]",
    )
    arm.add_argument(
        "--test",
        type=Path,
        nargs="+",
        default=[],
        metavar="PATH",
        help="recorded torques to predict, not to learn from",
    )
    arm.add_argument(
        "--seconds",
        type=numbers,
        metavar="LIST",
        help="learn from so many first seconds of --data, and predict the rest beside weighted least squares",
    )
    arm.add_argument("--sampler", choices=SAMPLERS, default="nuts", help="(default: nuts)")
    servo = Kind(parser, "a servo")
    servo.add_argument("--logdir", type=Path, metavar="BAGS", help="folder with bags or BAM JSON recordings")
    servo.add_argument("--joint", help="the joint to use, of bags with several")
    servo.add_argument("--signals", type=Path, metavar="YAML", help="table of signals to topics")
    servo.add_argument("--bench", metavar="KEY=VALUE,…", help="describe a bag without /bench")
    servo.add_argument(
        "--arm-mass", type=float, metavar="KG", help="rod mass for JSON recordings that give none"
    )
    servo.add_argument("--actuator", help="servo by name, or a YAML file (default: the recordings')")
    servo.add_argument("--model", default="m3", choices=tuple(LAWS), type=str.lower, help="(default: m3)")
    servo.add_argument(
        "--effects", type=choices_of(EFFECTS), default=(), metavar="LIST", help=f"{','.join(EFFECTS)}"
    )
    servo.add_argument(
        "--free", action="append", default=[], metavar="NAME", help="sample an effect's parameter too"
    )
    servo.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="keep a parameter at a value"
    )
    servo.add_argument(
        "--validation-kp", type=positive, metavar="K", help="hold out the runs of this gain, and predict them"
    )
    parser.set_defaults(options_of={"config": arm.defaults, "logdir": servo.defaults})
    sampling = parser.add_argument_group("sampling")
    sampling.add_argument(
        "--independent",
        action="store_true",
        help="draw beside it what counting every sample as independent would say: far too narrow intervals",
    )
    sampling.add_argument(
        "--draws", type=count, default=600, metavar="N", help="of each chain at most (default: 600)"
    )
    sampling.add_argument(
        "--effective", type=count, metavar="N", help="stop once every parameter has so many effective samples"
    )
    sampling.add_argument("--seed", type=seed, default=0, metavar="N", help="(default: 0)")
    output = parser.add_argument_group("output")
    output.add_argument(
        "--output", type=Path, metavar="FILE", help="of a servo: parameter file with intervals"
    )
    output.add_argument("--netcdf", type=Path, metavar="FILE", help="all draws, for ArviZ")
    output.add_argument("--json", type=Path, metavar="FILE", help="summary for scripts")
    output.add_argument("--plots", type=Path, metavar="DIR", help="folder for pictures")
    output.add_argument("--quiet", action="store_true", help="no progress")
