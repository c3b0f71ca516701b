"""Options of the commands, declared as fields of frozen dataclasses.

The annotation of a field defines how its text is parsed; :func:`option` sets help, default and metavar:

.. code-block:: python

    @declared
    class PlotOptions:
        output: Path = option("folder for the pictures", metavar="DIR")
        step: TimeStep = option("time step", 0.005, "S")
        json: Path | None = option("summary for scripts")

``bool`` declares a flag, ``tuple[X, ...]`` takes several words, and ``Annotated[X, parse]`` is parsed by ``parse``. What may be
``None`` is so unless it is given; a path is shown as FILE in the help, a whole number as N.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import partial
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from stribeck.errors import ConfigError
from stribeck.model.step import Integrator

Options = TypeVar("Options")
Number = TypeVar("Number", int, float)


def option(
    text: str,
    default: Any = MISSING,
    metavar: str | None = None,
    *,
    group: str | None = None,
    choices: Sequence[str] | None = None,
    positional: bool = False,
    repeated: bool = False,
    hidden: bool = False,
    constant: tuple[str, str, str] | None = None,
) -> Any:
    """A field that declares a command-line option; without a default it is required.

    :param text: help.
    :param group: heading in the help.
    :param repeated: whether the option may be given several times, with one value each.
    :param hidden: not shown in help: for programs that know the published program's options.
    :param constant: an additional flag that sets this option to a fixed value: the flag, the value, and its help.
    """
    metadata = {
        "help": text,
        "metavar": metavar,
        "group": group,
        "choices": None if choices is None else tuple(choices),
        "positional": positional,
        "repeated": repeated,
        "hidden": hidden,
        "constant": constant,
    }
    return field(default=default, metadata=metadata)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(option,))
def declared(kind: type[Options]) -> type[Options]:
    """Make a frozen dataclass of declared options, of which flags are off and those that may be ``None`` are so by default."""
    hints = get_type_hints(kind)
    for name, entry in vars(kind).items():
        if isinstance(entry, Field) and entry.default is MISSING:
            if hints[name] is bool:
                entry.default = False
            elif type(None) in get_args(hints[name]):
                entry.default = None
    return dataclass(frozen=True, kw_only=True)(kind)


def group(title: str) -> Callable[..., Any]:
    """A variant of :func:`option` whose options appear under a heading of the help."""
    return partial(option, group=title)


@dataclass(frozen=True)
class Syntax:
    """How the text of an option is parsed.

    :param parse: one word to a value; ``None`` for a flag.
    :param several: whether the value is a tuple of parsed words.
    :param choices: the valid words, if the annotation lists them.
    """

    parse: Callable[[str], Any] | None
    several: bool = False
    choices: tuple[str, ...] | None = None


def syntax_of(annotation: Any) -> Syntax:
    """How values of an annotated field are parsed; see the module's docstring."""
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(part for part in get_args(annotation) if part is not type(None))
    if get_origin(annotation) is Annotated:
        return Syntax(get_args(annotation)[1])
    if get_origin(annotation) is Literal:
        return Syntax(str, choices=get_args(annotation))
    if get_origin(annotation) is tuple:
        return Syntax(syntax_of(get_args(annotation)[0]).parse, several=True)
    return Syntax(None if annotation is bool else PLAIN.get(annotation, annotation))


def add_arguments(
    parser: argparse.ArgumentParser, kind: type[Any], essential: Collection[str] | None = None
) -> None:
    """Add the options of a dataclass to a parser.

    :param essential: the options that help shows; ``None``: all that are not hidden.
    """
    hints = get_type_hints(kind, include_extras=True)
    groups: dict[str | None, Any] = {None: parser}
    for entry in sorted(fields(kind), key=lambda entry: not entry.metadata["positional"]):
        title = entry.metadata["group"]
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        shown = not entry.metadata["hidden"] and (essential is None or entry.name in essential)
        _add_argument(
            groups[title], entry, syntax_of(hints[entry.name]), shown or entry.metadata["positional"]
        )


def _add_argument(target: Any, entry: Field[Any], syntax: Syntax, shown: bool) -> None:
    meta = entry.metadata
    word = entry.name if meta["positional"] else word_of(entry.name)
    text = meta["help"].replace("%", "%%") if shown else argparse.SUPPRESS
    if syntax.parse is None:
        target.add_argument(word, action="store_true", help=text)
        return
    choices = meta["choices"] or syntax.choices
    metavar = meta["metavar"] or METAVARS.get(syntax.parse.__name__)
    more: dict[str, Any] = {"metavar": metavar, "choices": choices, "help": text}
    if meta["repeated"]:
        more |= {"action": "append", "default": []}
    else:
        more |= (
            {"nargs": "+" if entry.default is MISSING or not meta["positional"] else "*"}
            if syntax.several
            else {}
        )
        more |= {} if entry.default is MISSING else {"default": entry.default}
    if entry.default is MISSING and not meta["positional"]:
        more["required"] = True
    target.add_argument(word, type=syntax.parse, **more)
    if meta["constant"] is not None:
        flag, value, about = meta["constant"]
        about = about if shown else argparse.SUPPRESS
        target.add_argument(flag, dest=entry.name, action="store_const", const=value, help=about)


METAVARS = {"Path": "FILE", "int": "N"}
"""What stands for a value in the help, by the name of its parser."""


def word_of(name: str) -> str:
    """The option of a field."""
    return f"--{name.replace('_', '-')}"


OPTIONS_OF_ARGUMENTS = {
    "fixed": ("set",),
    "file_kp": ("kp",),
    "file_joint": ("joint",),
    "file_motor": ("motor",),
}
"""Options that have another name than the argument of the API."""


def spelled(text: str, kind: type[Any]) -> str:
    """A message whose arguments in backticks are written as options, where a command has them: `bench` becomes --bench."""
    names = {entry.name for entry in fields(kind) if not entry.metadata["positional"]}

    def option_of(found: re.Match[str]) -> str:
        possible = (found[1], *OPTIONS_OF_ARGUMENTS.get(found[1], ()))
        name = next((one for one in possible if one in names), None)
        return found[0] if name is None else word_of(name)

    return re.sub(r"`([a-z_]+)`", option_of, text)


def options_of(kind: type[Options], arguments: argparse.Namespace) -> Options:
    """Create the options of a command from parsed arguments."""
    values = {entry.name: getattr(arguments, entry.name) for entry in fields(kind)}  # type: ignore[arg-type]
    return kind(
        **{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    )


def options_from(kind: type[Options], content: Mapping[str, Any], **more: Any) -> Options:
    """Create the options of a command from YAML values; ``null`` selects the default.

    :param more: values of other options, which are not parsed.
    :raises ConfigError: for an invalid value.
    """
    hints = get_type_hints(kind, include_extras=True)
    entries = {entry.name: entry for entry in fields(kind)}  # type: ignore[arg-type]
    parsed = {
        name: _parsed(entries[name], syntax_of(hints[name]), value)
        for name, value in content.items()
        if value is not None
    }
    return kind(**parsed, **more)


def _parsed(entry: Field[Any], syntax: Syntax, value: Any) -> Any:
    """Parse the value of one option as if given on the command line."""
    name, repeated = entry.name, entry.metadata["repeated"]
    if syntax.parse is None:
        if not isinstance(value, bool):
            raise ConfigError(f"{name}: expected true or false, found {value!r}")
        return value
    pairs = entry.metadata["metavar"] in PAIRS
    if isinstance(value, dict):
        if not pairs:
            raise ConfigError(f"{name}: expected a value, found named values")
        value = [f"{key}={item}" for key, item in value.items()]
    items = value if isinstance(value, list) else [value]
    if any(isinstance(item, dict | list | bool) or item is None for item in items):
        raise ConfigError(f"{name}: expected text or numbers, found {value!r}")
    words = [str(item) for item in items]
    if repeated:
        return tuple(syntax.parse(part) for word in words for part in word.split(","))
    if len(words) > 1 and not isinstance(entry.default, tuple) and not pairs:
        raise ConfigError(f"{name}: expected one value, found {value!r}")
    return _parsed_word(entry, syntax, ",".join(words))


def _parsed_word(entry: Field[Any], syntax: Syntax, word: str) -> Any:
    parse = syntax.parse or str
    try:
        value = parse(word)
    except argparse.ArgumentTypeError as error:
        raise ConfigError(f"{entry.name}: {error}") from None
    except ValueError:
        raise ConfigError(f"{entry.name}: invalid {parse.__name__} value: {word!r}") from None
    choices = entry.metadata["choices"] or syntax.choices
    if choices and value not in choices:
        raise ConfigError(f"{entry.name}: invalid choice: {word!r} (choose from {', '.join(choices)})")
    return value


PAIRS = ("NAME=VALUE", "KEY=VALUE,…")
"""Metavars of options that YAML may give as a mapping."""


def checked(
    kind: Callable[[str], Number], valid: Callable[[Number], bool], rule: str
) -> Callable[[str], Number]:
    """Create a parser of numbers that refuses values for which ``valid`` is false.

    :param rule: description of valid numbers.
    """

    def parse(text: str) -> Number:
        value = _number(kind, text)
        if not valid(value):
            raise argparse.ArgumentTypeError(f"{rule}, found {text}")
        return value

    parse.__name__ = "int" if kind is int else "float"
    return parse


def _number(kind: Callable[[str], Number], text: str) -> Number:
    """One number of a text.

    :raises argparse.ArgumentTypeError: if it is none.
    """
    try:
        return kind(text)
    except ValueError:
        whole = "a whole number" if kind is int else "a number"
        raise argparse.ArgumentTypeError(f"expected {whole}, found {text!r}") from None


PLAIN: dict[Any, Callable[[str], Any]] = {
    float: checked(float, lambda _: True, ""),
    int: checked(int, lambda _: True, ""),
}
"""How a number without limits is parsed."""

finite = checked(float, math.isfinite, "must be finite")
celsius = checked(float, lambda t: -40.0 <= t <= 150.0, "must be between -40 and 150 °C")
positive = checked(float, lambda x: 0.0 < x < math.inf, "must be positive")
zero_or_more = checked(float, lambda x: 0.0 <= x < math.inf, "must be zero or positive")
time_step = checked(float, lambda dt: 1e-5 <= dt <= 0.05, "must be between 1e-5 and 0.05 s")
seed = checked(int, lambda n: 0 <= n < 2**31, f"must be between 0 and {2**31 - 1}")
count = checked(int, lambda n: n >= 1, "must be at least 1")
whole = checked(int, lambda n: n >= 0, "must not be negative")
harmonics = checked(int, lambda n: 2 <= n <= 50, "must be between 2 and 50")
# Of a trajectory: no joint of an arm moves noticeably within a shorter period.
period = checked(float, lambda t: 0.5 <= t <= 3600.0, "must be between 0.5 and 3600 s")


def row_range(text: str) -> tuple[int, int]:
    """Parse rows ``A:B``, from A up to but not including B."""
    first, _, last = text.partition(":")
    rows = _number(int, first or "0"), _number(int, last)
    if not 0 <= rows[0] < rows[1]:
        raise argparse.ArgumentTypeError(f"must be A:B with 0 <= A < B, found {text}")
    return rows


def fraction(text: str) -> float:
    """Parse a number from 0 to below 1, as a decimal or as a fraction: ``0.25``, ``1/4``."""
    above, _, below = text.partition("/")
    value = _number(float, above) / (_number(float, below or "1") or math.nan)
    if not 0.0 <= value < 1.0:
        raise argparse.ArgumentTypeError(f"must be at least 0 and less than 1, found {text}")
    return value


def numbers(text: str) -> tuple[float, ...]:
    """Parse non-negative numbers separated by commas."""
    return tuple(zero_or_more(part) for part in text.split(","))


def assigned(text: str) -> dict[str, float]:
    """Parse comma-separated named numbers: ``mass=0.1,length=0.2``."""
    values = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals:
            raise argparse.ArgumentTypeError(f"expected NAME=VALUE, found {part!r}")
        values[name.strip()] = _number(float, value)
    return values


def one_or_assigned(text: str) -> float | dict[str, float]:
    """Parse one positive number, or positive numbers by name: ``0.5`` or ``shoulder=50,elbow=20``."""
    if "=" not in text:
        return positive(text)
    return {name: positive(str(value)) for name, value in assigned(text).items()}


def choices_of(valid: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """Create a parser of comma-separated lists of valid words."""

    def parse(text: str) -> tuple[str, ...]:
        words = tuple(part.strip() for part in text.split(",") if part.strip())
        unknown = [word for word in words if word not in valid]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown {', '.join(unknown)}; valid: {', '.join(valid)}")
        return words

    return parse


Positive = Annotated[float, positive]
NotNegative = Annotated[float, zero_or_more]
TimeStep = Annotated[float, time_step]
Seed = Annotated[int, seed]
Count = Annotated[int, count]
Numbers = Annotated[tuple[float, ...], numbers]


_recordings = group("recordings")
_simulation = group("simulation")


@declared
class RecordingOptions:
    """Options that select the recordings of a servo."""

    recordings: tuple[Path, ...] = option(
        "bags or BAM JSON recordings, or folders of them", metavar="RECORDING", positional=True
    )
    joint: str | None = _recordings(
        "joint to read from bags with several joints; * reads all of them as one servo"
    )
    signals: Path | None = _recordings(
        "YAML table that maps signals to topics, for bags of other robots", metavar="YAML"
    )
    bench: str | None = _recordings(
        "description of a bag without /bench: mass=KG,length=M,arm_mass=KG,kp=GAIN,…", metavar="KEY=VALUE,…"
    )
    arm_mass: NotNegative | None = _recordings("rod mass, for JSON recordings without one", metavar="KG")


@declared
class StepOptions:
    """Step and resets of the simulation of recorded runs; defaults are the values used for the fit."""

    step: TimeStep | None = _simulation(
        "time step (default: 0.005, or as in the parameter file)", metavar="S"
    )
    reset_period: Positive | None = _simulation(
        "reset simulations to the measured state with this period", metavar="S"
    )


@declared
class SimulationOptions(StepOptions):
    """Options of the simulation of recorded runs, with its integrator."""

    integrator: Integrator | None = _simulation(
        "time stepping (default: exponential, or as in the parameter file; others reproduce published figures)"
    )


@declared
class ParameterFileOptions:
    """Options that select parameter files."""

    params: tuple[Path, ...] = option("parameter files")
    servo: str | None = option(
        "YAML file of the servo, for files without a description of it (older ones, other programs)"
    )
