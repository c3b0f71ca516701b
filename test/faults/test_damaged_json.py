"""JSON recordings that are cut off, in other units, or no run: one clear line each that names the file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import bam_recording, refusal, with_entries, write_json
from stribeck.recordings.bam_json import read_bam_json


def refused(folder: Path, content: Any, *parts: object) -> str:
    """A recording with this content is refused; the message names the file and says all of ``parts``."""
    path = folder / "run.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return refusal(lambda: read_bam_json(path), path, *parts)


def entry(number: int, **changes: Any) -> dict[str, Any]:
    """The recording with one entry changed."""
    return with_entries(lambda k, values: {**values, **changes} if k == number else values)


def scaled(**factors: float) -> dict[str, Any]:
    """The recording with some columns in other units."""
    return with_entries(
        lambda k, values: {**values, **{key: factor * values[key] for key, factor in factors.items()}}
    )


def test_what_is_damaged_below_can_be_read_when_whole(tmp_path):
    """The damage is what is refused, not the recording."""
    assert read_bam_json(write_json(tmp_path / "run.json", bam_recording())).duration == pytest.approx(1.5)


@pytest.mark.parametrize("share", [0.0, 0.0005, 0.01, 0.1, 0.5, 0.9, 0.99, 0.9999])
def test_a_recording_cut_off_anywhere_is_refused(tmp_path, share):
    """A full disk or a lost power supply: half a recording is not taken for a whole one."""
    text = json.dumps(bam_recording())
    refused(tmp_path, text[: int(share * len(text))], "not valid JSON")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[]", ["expected named values"]),
        ("null", ["expected named values", "nothing"]),
        ('"text"', ["expected named values"]),
        ("[" * 100000, ["nested too deeply"]),
        ('{"a": ' * 100000, ["nested too deeply"]),
        ("\ufeff[]", ["expected named values"]),
    ],
    ids=["list", "null", "text", "deep list", "deep mapping", "byte order mark"],
)
def test_json_that_is_no_recording_is_refused(tmp_path, text, parts):
    """A list, nothing, a text, a trap for parsers; a byte order mark before it is not what is named."""
    refused(tmp_path, text, *parts)


def test_files_that_are_no_text_are_refused(tmp_path):
    """Bytes, a folder, nothing at all."""
    (tmp_path / "bytes.json").write_bytes(bytes(range(256)))
    (tmp_path / "folder.json").mkdir()
    for name, part in (
        ("bytes.json", "not a text file"),
        ("folder.json", "folder"),
        ("none.json", "no such file"),
    ):
        refusal(lambda name=name: read_bam_json(tmp_path / name), tmp_path / name, part)


@pytest.mark.parametrize(
    "key", ["timestamp", "position", "speed", "goal_position", "load", "input_volts", "temp"]
)
@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_numbers_that_are_none_are_refused(tmp_path, key, text):
    """In every column; 1e400 is JSON, but infinite for a float."""
    content = json.dumps(entry(60, **{key: 98765.5}))
    refused(tmp_path, content.replace("98765.5", text))


@pytest.mark.parametrize("key", ["timestamp", "position", "load"])
@pytest.mark.parametrize("digits", [400, 5000])
def test_integers_beyond_a_float_are_refused(tmp_path, key, digits):
    """JSON has no largest integer; Python's own errors about them must not surface."""
    content = json.dumps(entry(60, **{key: 98765.5}))
    refused(tmp_path, content.replace("98765.5", "1" + "0" * digits))


@pytest.mark.parametrize("value", ["0.1", None, True, [0.1], {}])
def test_samples_that_are_no_numbers_are_refused(tmp_path, value):
    """The message says which entry and key."""
    refused(tmp_path, entry(60, position=value), "entries[60]", "position", "expected a number")


@pytest.mark.parametrize("value", [2, 0.5, "true", None, []])
def test_torque_flags_are_true_or_false(tmp_path, value):
    """A flag in between is an interpolated one."""
    refused(tmp_path, entry(60, torque_enable=value), "entries[60]", "torque_enable")


@pytest.mark.parametrize("earlier", [59, 58, 0])
def test_time_that_does_not_increase_is_refused(tmp_path, earlier):
    """The same time again, or an earlier one; the message says where."""
    time = bam_recording()["entries"][earlier]["timestamp"]
    refused(tmp_path, entry(60, timestamp=time), "time does not increase", "sample 59", "sample 60")


@pytest.mark.parametrize("duration", [0.0, 0.5, 0.99])
def test_a_run_shorter_than_a_second_is_refused(tmp_path, duration):
    """The message says how long it lasts, and how long it has to."""
    content = bam_recording()
    content["entries"] = content["entries"][: round(duration * 100) + 1]
    refused(tmp_path, content, "'run'", f"{duration:.3f} s", "1 s")


@pytest.mark.parametrize("entries", [[], {}, None, "many", 3])
def test_a_recording_without_entries_is_refused(tmp_path, entries):
    """An empty list, or no list."""
    part = "no entries" if entries == [] else "entries: expected a list"
    refused(tmp_path, {**bam_recording(), "entries": entries}, part)


@pytest.mark.parametrize("first", [[], 3, None, {}, {"position": 0.0}])
def test_entries_that_are_no_samples_are_refused(tmp_path, first):
    """The first entry tells the keys."""
    refused(tmp_path, {**bam_recording(), "entries": [first]}, "entries[0]")


@pytest.mark.parametrize("other", [[], 3, None, {}])
def test_entries_that_differ_are_refused(tmp_path, other):
    """A later entry has the keys of the first."""
    content = bam_recording()
    content["entries"][7] = other
    refused(tmp_path, content, "entries[7]")


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"mass": "0.5"}, ["mass", "expected a number"]),
        ({"mass": -0.5}, ["mass", "-0.5"]),
        ({"mass": True}, ["mass", "expected a number"]),
        ({"length": 0}, ["length", "positive"]),
        ({"kp": []}, ["kp", "expected a number"]),
        ({"vin": 0}, ["supply_voltage", "positive"]),
        ({"arm_mass": -1e-3}, ["arm_mass"]),
        ({"motor": 330}, ["motor", "expected text"]),
        ({"trajectory": 1}, ["trajectory", "expected text"]),
        ({"weight": 1}, ["'weight'", "mass"]),
        ({"arm_mass": None, "mass": 0.5}, ["arm_mass", "`arm_mass`"]),
    ],
)
def test_heads_that_are_not_what_the_format_allows_are_refused(tmp_path, changes, parts):
    """Wrong kinds, impossible values, unknown keys, no rod mass."""
    refused(tmp_path, bam_recording(**changes), *parts)


@pytest.mark.parametrize(
    "content",
    [
        bam_recording(arm_mass=None),
        bam_recording(mass="0.5"),
        bam_recording(trajectory=1),
        bam_recording(mass=-0.5),
        entry(60, load=-1),
        entry(60, position="0.1"),
    ],
    ids=["no rod mass", "mass", "trajectory", "negative mass", "load", "position"],
)
def test_a_message_names_the_file_once(tmp_path, content):
    """Twice would make a line of two, and says nothing more."""
    message = refused(tmp_path, content)
    assert message.count(str(tmp_path / "run.json")) == 1, message


@pytest.mark.parametrize(
    "motor", ["\x00.yaml", "\ud800.yaml", "x" * 5000 + ".yaml", "none.yaml", "a\nb"], ids=range(5)
)
def test_names_of_servos_that_no_file_can_have_are_refused(tmp_path, motor):
    """What the operating system says of such a path must not surface."""
    refused(tmp_path, bam_recording(motor=motor))


def test_a_key_that_stands_twice_is_refused(tmp_path):
    """Which one should count?"""
    refused(tmp_path, '{"mass": 1, ' + json.dumps(bam_recording())[1:], "'mass'", "twice")


def test_an_unknown_key_of_an_entry_is_refused(tmp_path):
    """A column that nothing reads would be lost silently."""
    refused(tmp_path, with_entries(lambda k, values: {**values, "current": 0.1}), "entries[0]", "'current'")


DEGREES = 180.0 / np.pi


@pytest.mark.parametrize(
    ("factors", "parts"),
    [
        ({"position": DEGREES, "goal_position": DEGREES, "speed": DEGREES}, ["degrees"]),
        ({"position": DEGREES, "speed": DEGREES}, ["position", "degrees"]),
        ({"goal_position": DEGREES}, ["goal_position", "degrees"]),
        ({"timestamp": 1000.0}, ["milliseconds"]),
        ({"timestamp": 1e6}, ["milliseconds"]),
        ({"input_volts": 10.0}, ["input_volts", "73", "tenths"]),
        ({"speed": 60.0 / (2.0 * np.pi)}, ["speed", "rev/min"]),
        ({"speed": 60.0 / (2.0 * np.pi) / 0.229}, ["speed", "counts"]),
        ({"speed": -1.0}, ["speed"]),
        ({"position": 1 / 2000}, ["position", "goal_position"]),
        ({"position": 1 / 2000, "goal_position": 1 / 2000}, []),
    ],
)
def test_other_units_are_noticed(tmp_path, factors, parts):
    """Degrees, milliseconds, decivolts, rev/min, raw counts, a speed of the wrong sign.

    Position and goal in turns of thousands, so small that they might be rest, are noticed by nothing: they must then
    simply be read.
    """
    if parts:
        refused(tmp_path, scaled(**factors), *parts)
    else:
        assert read_bam_json(write_json(tmp_path / "run.json", scaled(**factors))).duration == pytest.approx(
            1.5
        )


def test_a_servo_that_stands_still_has_no_wrong_speed(tmp_path):
    """Without motion the speed says nothing about its unit."""
    still = with_entries(lambda k, values: {**values, "position": 0.1, "speed": 0.02 * (k % 2)})
    assert read_bam_json(write_json(tmp_path / "run.json", still)).name == "run"


@pytest.mark.parametrize("load", [-1, -885, 65536, 100000])
def test_a_load_that_is_no_unsigned_register_is_refused(tmp_path, load):
    """The wrap trap: somebody unwrapped it already, or it is another register."""
    refused(tmp_path, entry(60, load=load), "load", "16-bit")


@pytest.mark.parametrize("load", [32767.5, 0.25, 65535.0 / 2])
def test_a_load_that_was_resampled_is_refused(tmp_path, load):
    """The mean of 2 and 65534 is no duty; the raw recording is asked for."""
    refused(tmp_path, entry(60, load=load), "load", "resampled", "original recording")


@pytest.mark.parametrize(("load", "reached"), [(886, 886), (30000, 30000), (65536 - 886, 886)])
def test_a_load_beyond_full_duty_is_refused(tmp_path, load, reached):
    """On both sides of the wrap; that is not the PWM register."""
    refused(tmp_path, entry(60, load=load), "load", reached, "885")
