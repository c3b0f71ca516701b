"""Writes ``docs/files.md``: the keys of every YAML and JSON file, from the classes that read them.

``python docs/write_files.py`` after a change of a format; a test checks that the page is up to date.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

from format_keys import Key, keys_of
from stribeck.recordings.signals.sources import SignalSource

SEPARATE = (SignalSource,)
"""Classes that other classes contain, and whose keys have a table of their own."""

PAGE = Path(__file__).with_name("files.md")

INTRODUCTION = """# Files

The keys of every YAML and JSON file, from the classes that read them (`python docs/write_files.py` writes this page).
A key without a default is required. Unknown keys, missing keys, keys that are given twice, wrong types and numbers that
are not finite are errors that name the file and the key. Units are SI: rad, m, s, N m, N, kg, V, A; temperatures in °C.
"""

FILES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "Servo families",
        "`config/actuators/*.yaml`, `--servo FILE`. `control` has the key `kind` and those of one of the three laws.",
        (
            "stribeck.files.actuators:ActuatorFile",
            "stribeck.model.control_laws:VoltageControl",
            "stribeck.model.control_laws:CurrentControl",
            "stribeck.model.control_laws:TorqueControl",
        ),
    ),
    (
        "Drives",
        "JSON that identifications write and all else reads, see [](parameter_file.md): of a file with one joint the keys of each "
        "joint beside the values of the parameters, the block `stribeck` in it, and the keys of a file with several joints.",
        (
            "stribeck.files.drive_entry:FlatHead",
            "stribeck.files.drives:OneJointBlock",
            "stribeck.files.drives:ManyJointsFile",
        ),
    ),
    (
        "Robots",
        "`config/robots/*.yaml`, `--machine FILE`: arms and linear axes, with a section for each command. The keys of the signals "
        "are those of `SignalSource`, see [](recordings.md).",
        (
            "stribeck.files.robots:MachineFile",
            "stribeck.identify.arm.config:IdentificationConfig",
            "stribeck.excitation.section:ExcitationSection",
            "stribeck.identify.geometry.config:CalibrationConfig",
        ),
    ),
    (
        "Mechanisms",
        "`config/mechanisms/*.yaml`, of `stribeck identify mechanism`.",
        ("stribeck.identify.mechanism.model_file:MechanismFile",),
    ),
    (
        "Exciting trajectories",
        "YAML that `stribeck design trajectory` writes.",
        ("stribeck.session.excitation_file:FourierFile",),
    ),
    (
        "Constant-velocity sweeps",
        "YAML that `stribeck design sweep` writes.",
        ("stribeck.session.sweep:SweepFile",),
    ),
    (
        "Poses to visit",
        "YAML that `stribeck design poses --output FILE.yaml` writes, see [](calibration.md).",
        ("stribeck.session.poses:PosesFile",),
    ),
    (
        "Points of a motion",
        "YAML: positions of joints at equal times, from a planner or of a path of the end point. Sessions play it as a trajectory, see [](validation_2r.md).",
        ("stribeck.session.points:MotionPointsFile",),
    ),
    (
        "Servos on a bus",
        "`config/servo.yaml` and `config/record*.yaml`.",
        ("stribeck.servo.config:BusFile",),
    ),
    ("Robots to be recorded", "`config/excitation.yaml`.", ("stribeck.session.config:RobotFile",)),
    (
        "Signal tables",
        "`config/signals.yaml`, `--signals FILE`: sources of the signals in bags and tables, see [](recordings.md).",
        (
            "stribeck.recordings.signals.sources:SignalFile",
            "stribeck.recordings.signals.sources:SignalSource",
        ),
    ),
    (
        "Bench files",
        "`--bench FILE`: load, gain and servo, for recordings that do not state them, see [](recordings.md).",
        ("stribeck.recordings.bench:BenchFile",),
    ),
    (
        "Fleets",
        "`config/fleet.yaml`, of `stribeck identify fleet`. A servo and `defaults` may also contain options of `stribeck identify servo`.",
        ("stribeck.fleet.file:FleetFile", "stribeck.fleet.file:FleetEntry"),
    ),
    (
        "Priors",
        "`config/priors/*.yaml`, of `stribeck identify servo --bayes`.",
        ("stribeck.identify.posterior.knowledge:TableFile",),
    ),
    (
        "The topic /bench",
        "JSON in a std_msgs/String, with which a run begins.",
        ("stribeck.recordings.bench:BenchMessage",),
    ),
    (
        "Actuators for Isaac Lab",
        "YAML that `stribeck export --format isaaclab` writes and `stribeck import-model` reads.",
        ("stribeck.exports.isaaclab:IsaacLabFile",),
    ),
    (
        "Servo drives of Isaac Lab",
        "YAML that `export --format isaaclab-bam` writes beside the Python module, and `import-model` reads, see [](export.md).",
        ("stribeck.exports.isaaclab_bam:IsaacLabBamFile",),
    ),
    (
        "BAM recordings",
        "JSON, of `stribeck data import` and other recordings of a servo.",
        ("stribeck.recordings.bam_json:BamFile",),
    ),
    (
        "Learnt friction",
        "JSON that the compensation node keeps in its `state_file`.",
        ("stribeck.live.learning.file:LearnedFile",),
    ),
    (
        "Results of calibrations",
        "JSON that `stribeck identify geometry` writes.",
        ("stribeck.identify.geometry.result_file:CalibrationFile",),
    ),
)
"""Title, place and declaring classes (``module:class``) of every file."""


def page() -> str:
    """The text of the page."""
    parts = [INTRODUCTION]
    for title, place, classes in FILES:
        parts.append(f"## {title}\n\n{place}\n")
        for name in classes:
            module, _, kind = name.partition(":")
            declared = getattr(import_module(module), kind)
            if len(classes) > 1:
                parts.append(f"### {kind}\n\n{_first_sentence(declared)}\n")
            parts.append(_table(keys_of(declared, SEPARATE)))
    return "\n".join(parts)


def _first_sentence(kind: type) -> str:
    text = (kind.__doc__ or "").split("\n\n")[0]
    return " ".join(text.replace("``", "`").split())


def _table(keys: list[Key]) -> str:
    rows = ["| key | valid | default | meaning |", "|---|---|---|---|"]
    for key in keys:
        meaning = re.sub(r":\w+:`", "`", key.description.replace("``None``", "``none``").replace("``", "`"))
        meaning = meaning.removesuffix(".")
        cells = (f"`{key.name}`", key.type, f"`{key.default}`" if key.default else "", meaning)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
