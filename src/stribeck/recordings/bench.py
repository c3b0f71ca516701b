"""Descriptions of the bench of a run: load, rod, supply, gains and servo, in ``/bench`` messages and bench files.

A bench file describes recordings that do not describe themselves, by their names:

.. code-block:: yaml

    defaults: {actuator: xl330, length: 0.1, arm_mass: 0.02, supply_voltage: 5, kp: 400}
    runs:
      "light_*": {mass: 0.1}
      "heavy_*": {mass: 0.5}
      "*_soft": {kp: 200}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import asdict

import stribeck
from stribeck import strict
from stribeck.errors import ConfigError, RecordingError, located
from stribeck.files.actuators import load_actuator
from stribeck.files.commented_yaml import check_filled_in
from stribeck.files.schema import Schema, convert
from stribeck.model.log import Setup
from stribeck.recordings.bags.storage import SUFFIXES as PACKED
from stribeck.recordings.signals.sources import SignalFile, SignalTable

SUFFIXES = (".mcap", ".db3", ".json", ".csv", ".txt", ".mat", ".npz", *PACKED)
"""Suffixes of recordings."""

SETUP_KEYS = ("mass", "length", "arm_mass", "supply_voltage", "kp", "ki", "kd")


class BenchMessage(Schema):
    """The JSON of a ``/bench`` message that begins a run.

    :param run_id: name of the run.
    :param joint: name of the joint.
    :param actuator: servo family.
    :param trajectory: name of the trajectory.
    :param mass: at the end of the rod [kg].
    :param length: of the rod [m].
    :param arm_mass: mass of the rod [kg].
    :param supply_voltage: nominal supply [V].
    :param kp, ki, kd: firmware gain.
    :param software: program that recorded the run.
    """

    run_id: str
    joint: str
    actuator: str
    mass: float
    length: float
    arm_mass: float
    supply_voltage: float
    kp: float
    trajectory: str
    ki: float = 0.0
    kd: float = 0.0
    software: str = ""


@dataclass(frozen=True)
class BenchDescription:
    """Description of a run in its ``/bench`` message."""

    run_id: str
    joint: str
    actuator: str
    trajectory: str
    setup: Setup

    def to_json(self) -> str:
        """The text of the ``/bench`` message."""
        return json.dumps(
            {
                "run_id": self.run_id,
                "joint": self.joint,
                "actuator": self.actuator,
                "trajectory": self.trajectory,
                **{key: getattr(self.setup, key) for key in SETUP_KEYS},
                "software": f"stribeck {stribeck.__version__}",
            }
        )

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any], what: str) -> BenchDescription:
        """A description from the content of a ``/bench`` message.

        :raises RecordingError: for missing, unknown or impossible values.
        """
        bench = convert(dict(data), BenchMessage, what, RecordingError)
        with located(what, RecordingError):
            setup = Setup(**{key: getattr(bench, key) for key in SETUP_KEYS})
        return cls(bench.run_id, bench.joint, bench.actuator, bench.trajectory, setup)


class BenchValues(Schema):
    """What is known of the bench of some recordings.

    :param joint: name of the joint; not needed where a recording has only one.
    :param actuator: servo family, or the path of its YAML file, relative to this file.
    :param trajectory: name of the trajectory.
    :param mass: at the end of the rod [kg].
    :param length: of the rod [m].
    :param arm_mass: mass of the rod [kg].
    :param supply_voltage: nominal supply [V].
    :param kp, ki, kd: firmware gain.
    """

    joint: str | None = None
    actuator: str | None = None
    trajectory: str | None = None
    mass: float | None = None
    length: float | None = None
    arm_mass: float | None = None
    supply_voltage: float | None = None
    kp: float | None = None
    ki: float | None = None
    kd: float | None = None


class BenchFile(Schema):
    """Descriptions of recordings.

    :param schema: version of the format.
    :param defaults: of all recordings.
    :param signals: sources of the signals in the recordings, unless ``--signals`` names a file with them.
    :param runs: by name of the bag or file, without suffix, or by a pattern with ``*`` and ``?``; of several that
        match, later ones take precedence.
    """

    schema: Literal[1] = 1
    signals: SignalFile | None = None
    defaults: BenchValues = BenchValues()
    runs: dict[str, BenchValues] = msgspec.field(default_factory=dict)


@dataclass(frozen=True)
class Benches:
    """Descriptions of recordings by their names.

    :param what: file or option that they are from, for messages.
    :param actuator: the servo's name or YAML file, where the descriptions name none.
    """

    content: BenchFile
    what: str
    actuator: str | None = None

    @classmethod
    def read(cls, path: Path, actuator: str | None = None) -> Benches:
        """Read a bench file.

        :raises ConfigError: if it is invalid, or names an invalid file of a servo.
        """
        data = strict.parse_yaml(strict.read_text(path, ConfigError), path, ConfigError)
        check_filled_in(data, path)
        content = convert(data, BenchFile, str(path))
        found = [content.defaults, *content.runs.values()]
        for name in {values.actuator for values in found} - {None}:
            with located(f"{path}: actuator", ConfigError):
                _actuator_name(str(name), path)
        return cls(content, str(path), actuator)

    @property
    def signals(self) -> SignalTable | None:
        """The sources of the signals, if the file gives them."""
        return None if self.content.signals is None else self.content.signals.table()

    def servo(self, name: str) -> str:
        """The YAML file of the servo ``name`` that these descriptions give, otherwise its name."""
        found = [self.content.defaults, *self.content.runs.values()]
        for text in {values.actuator for values in found} - {None}:
            if str(text).endswith((".yaml", ".yml")) and _actuator_name(str(text), Path(self.what)) == name:
                beside = Path(self.what).parent / Path(str(text)).expanduser()
                return str(beside if beside.is_file() else text)
        return name

    def patterns(self, recording: Path) -> list[str]:
        """The patterns that match a recording."""
        names = (recording.name, recording_name(recording), recording.as_posix())
        return [pattern for pattern in self.content.runs if any(fnmatchcase(name, pattern) for name in names)]

    def describe(self, recording: Path, joint: str | None = None) -> BenchDescription:
        """Describe a recording that does not do so itself.

        :param joint: name of the joint, if it is known; it takes precedence.
        :raises RecordingError: for a recording that no pattern matches, and values that are missing or impossible.
        """
        matching = self.patterns(recording)
        if self.content.runs and not matching:
            raise RecordingError(
                f"{self.what}: no pattern of runs matches {recording_name(recording)!r}; it has: "
                f"{', '.join(self.content.runs)}"
            )
        values: dict[str, Any] = {
            "run_id": recording_name(recording),
            "joint": "",
            "trajectory": "unknown",
        }
        for found in (self.content.defaults, *(self.content.runs[pattern] for pattern in matching)):
            values |= {key: value for key, value in asdict(found).items() if value is not None}
        values |= {} if joint is None else {"joint": joint}
        if "actuator" in values:
            values["actuator"] = _actuator_name(values["actuator"], Path(self.what))
        elif self.actuator is not None:
            values["actuator"] = _actuator_name(self.actuator, Path())
        return BenchDescription.from_mapping(values, f"{self.what}: {recording_name(recording)}")


def _actuator_name(name: str, file: Path) -> str:
    """Name of a servo, given by itself or by its YAML file beside a bench file."""
    if not name.endswith((".yaml", ".yml")):
        return name
    beside = file.parent / Path(name).expanduser()
    return load_actuator(str(beside if beside.is_file() else Path(name))).name


def recording_name(path: Path) -> str:
    """Name of a bag, file or folder without the suffix of a file."""
    name = path
    while name.suffix in SUFFIXES:
        name = name.with_suffix("")
    return name.name
