"""The verbs of the command line; only the requested one is imported.

Each verb is a module with ``run(options)``, whose annotation is the dataclass that declares the options
(:mod:`stribeck.cli.options`), or a folder with the modules ``options`` and ``run``. Options import no JAX, SciPy or
matplotlib; ``run`` is imported when it is called.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, get_type_hints

import stribeck
from stribeck.cli.options import add_arguments, options_of

VERBS = {
    "emulate": ("emulate", "emulated servos behind a pseudo-terminal"),
    "record": ("record", "play trajectories on servos on a serial bus, and record them"),
    "import": (
        "import_recordings",
        "convert bags of other robots, tables and BAM JSON to bags that describe themselves",
    ),
    "fit": ("fit", "identify a friction law from recordings"),
    "fit-all": ("fit_all", "fit many servos and laws, in processes or on a Dask cluster"),
    "evaluate": ("evaluate", "compute the errors of parameter files on recordings"),
    "suggest": ("suggest", "rank runs that could be recorded next by what they would tell"),
    "plot": ("plot", "draw measured and simulated motion"),
    "diagram": ("diagram", "draw drive/backdrive diagrams"),
    "report": ("report", "write an HTML report that assesses parameter files on recordings"),
    "compensate": ("compensate", "compute the friction torque for a recorded motion"),
    "export": (
        "export",
        "export identified servos to simulators, firmware and tables, with the error it costs",
    ),
    "import-params": (
        "import_params",
        "read the parameters of a servo from BAM, MJCF, Isaac Lab or URDF files",
    ),
    "excite": ("excite", "design the most informative trajectory of a robot arm within its limits"),
    "sweep": ("sweep", "write a constant-velocity programme of one joint, for friction over velocity"),
    "setup-robot": (
        "setup_robot",
        "write the file of a robot arm, or of a servo on a bench, from recordings",
    ),
    "identify-arm": ("identify_arm", "identify inertial parameters and joint friction of a robot arm"),
    "identify-joint": (
        "identify_joint",
        "identify the friction of one joint from tables of motion and torque",
    ),
    "identify-robot": ("identify_robot", "identify the drives of a whole robot from goals and positions"),
    "identify-transmission": (
        "identify_transmission",
        "identify stiffness and hysteresis of transmissions from motor and link encoders",
    ),
    "calibrate": ("calibrate", "calibrate the geometry of an arm from measured poses"),
    "posterior": (
        "posterior",
        "sample the posterior of an arm or a servo from prior knowledge and few measurements",
    ),
    "estimate": ("estimate", "estimate the parameters of a mechanism from its recorded motion"),
    "doctor": ("doctor", "check computer, installation and ROS graph, and say what mends each fault"),
    "demo": ("demo", "record, identify and compensate emulated servos through ROS 2 nodes"),
}
"""Module and help text of each verb."""


def build_parser(verbs: Collection[str] = tuple(VERBS)) -> argparse.ArgumentParser:
    """Create the command-line parser.

    :param verbs: verbs whose options are declared; the others have only a help text.
    """
    parser = argparse.ArgumentParser(
        prog="stribeck",
        description="Identify the friction of robot joints from recordings.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"stribeck {stribeck.__version__}")
    subparsers = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, (_, text) in VERBS.items():
        description = text[0].upper() + text[1:] + "."
        verb = subparsers.add_parser(name, help=text, description=description, allow_abbrev=False)
        if name in verbs:
            kind = options_class(name)
            add_arguments(verb, kind)
            verb.set_defaults(run=partial(_run, name), kind=kind)
    return parser


def options_class(verb: str) -> type[Any]:
    """The dataclass that declares the options of a verb."""
    module = _part(verb, "options")
    kind: type[Any] = getattr(module, "DECLARED", None) or get_type_hints(module.run)["options"]
    return kind


def _part(verb: str, part: str) -> ModuleType:
    """The module ``options`` or ``run`` of a verb's folder, or its only module."""
    module = import_module(f"stribeck.cli.{VERBS[verb][0]}")
    return import_module(f"{module.__name__}.{part}") if hasattr(module, "__path__") else module


def _run(verb: str, options: Any) -> int:
    code: int = _part(verb, "run").run(options)
    return code


def parse(argv: Sequence[str]) -> tuple[str, Any, Callable[[], int]]:
    """Parse a command line; returns the verb, its options, and a function that runs it.

    Wrong usage exits the program with code 2.
    """
    words = [_with_dashes(word) for word in argv]
    verb = next((word for word in words if not word.startswith("-")), "")
    arguments = build_parser([verb]).parse_args(words)
    options = options_of(arguments.kind, arguments)
    return arguments.verb, options, partial(arguments.run, options)


def _with_dashes(word: str) -> str:
    """Replace underscores in an option name, which users of the BAM tools know, by dashes."""
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value if word.startswith("--") else word
