"""Options of ``stribeck fit`` as they stand in the YAML file of a fleet."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from stribeck.cli.inputs import as_number, assignments, bench_of
from stribeck.cli.parser import fit_parser
from stribeck.errors import ConfigError
from stribeck.io.signals import load_signals

HONOURED = (
    "actuator",
    "joint",
    "signals",
    "bench",
    "arm_mass",
    "terms",
    "effects",
    "set",
    "free",
    "validation_kp",
    "validation_fraction",
    "method",
    "trials",
    "seed",
    "float64",
    "dt",
    "reset_period",
)
"""Options that a fleet may give, all of which have a part in the result."""

NOT_FOR_FLEETS = (
    "logdir",  # a servo's own
    "model",  # laws, in the file
    "workers",  # processes are shared out between fits
    "study",  # fits of a fleet start anew; those of a servo's own study are one `stribeck fit` each
    "resume",
    "load_study",
    "join",
    "batch",
    "wandb",  # runs of Weights & Biases are of fits, one by one
    "wandb_project",
    "output",
    "json",
    "progress",
    "eval",
)
"""The others."""


def fit_arguments(options: Mapping[str, Any]) -> argparse.Namespace:
    """What ``stribeck fit`` would make of these options.

    :raises ConfigError: for values that are not valid.
    """
    parser = fit_parser()
    actions = {action.dest: action for action in parser._actions}
    words = ["--logdir=."]
    for name, value in options.items():
        words += _words(actions[name], value)
    try:
        arguments = parser.parse_args(words)
    except argparse.ArgumentError as error:
        option = (error.argument_name or "").removeprefix("--").replace("-", "_")
        raise ConfigError(f"{option}: {error.message}") from None
    if arguments.signals is not None:
        load_signals(arguments.signals)
    if arguments.bench is not None:
        bench_of(arguments.bench, arguments.joint)
    for name, text in assignments(arguments.set, "set").items():
        as_number(text, f"set: {name}")
    return arguments


def _words(action: argparse.Action, value: Any) -> list[str]:
    """An option and its value as words of a command line; nothing for ``null``, which is the default."""
    option = action.option_strings[0]
    if value is None:
        return []
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise ConfigError(f"{action.dest}: expected true or false, found {value!r}")
        return [option] if value else []
    if isinstance(value, dict):
        if action.dest not in ("set", "bench"):
            raise ConfigError(f"{action.dest}: expected a value, found named values")
        value = [f"{key}={item}" for key, item in value.items()]
    items = value if isinstance(value, list) else [value]
    if any(isinstance(item, (dict, list, bool)) or item is None for item in items):
        raise ConfigError(f"{action.dest}: expected text or numbers, found {value!r}")
    texts = [str(item) for item in items]
    if isinstance(action.default, list):  # an option that is repeated
        return [f"{option}={part}" for text in texts for part in text.split(",")]
    if len(texts) > 1 and not isinstance(action.default, tuple) and action.dest != "bench":
        raise ConfigError(f"{action.dest}: expected one value, found {value!r}")
    return [f"{option}={','.join(texts)}"]
