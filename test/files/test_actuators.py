"""The servo families of config/actuators, and what their files may say."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import yaml

from helpers import REFERENCE, REPOSITORY, needs_reference, refusal
from stribeck.files.actuators import (
    ActuatorFile,
    actuator_names,
    actuator_of,
    description_of,
    load_actuator,
    read_actuator,
)
from stribeck.files.schema import convert
from stribeck.model.control_laws import CurrentControl, TorqueControl, VoltageControl
from stribeck.model.law import LAWS

FILES = sorted((REPOSITORY / "config" / "actuators").glob("*.yaml"))

SERVO = {
    "name": "own",
    "title": "A servo of one's own",
    "units": "rotary",
    "control": {"kind": "voltage", "gain": 0.1, "duty_max": 0.9},
    "supply": {"nominal": 12.0, "rated_min": 10.0, "rated_max": 14.0},
    "resolution": 0.001,
    "bounds": {"kt": [0.1, 2.0], "R": [1.0, 5.0], "armature": [0.0, 0.1], "q_offset": [-0.1, 0.1]},
}


def write(folder, content) -> str:
    """The path of a servo's file with some content."""
    path = folder / "own.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
    return str(path)


def test_every_file_is_a_servo_and_every_servo_a_file():
    """Nine families, by the names of their files."""
    assert actuator_names() == [path.stem for path in FILES]
    assert len(FILES) >= 9


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_loads_and_says_nothing_impossible(path):
    """Its name is that of the file, the supply lies in order, published values are complete and finite."""
    servo = load_actuator(path.stem)
    assert servo.name == path.stem
    assert 0.0 < servo.supply.rated_min < servo.supply.rated_max
    assert servo.supply.nominal > 0.0
    assert 0.0 < servo.resolution < 0.01
    for effect, (value, lower, upper) in servo.effects.items():
        assert lower <= value <= upper, effect
    for law, values in servo.published.items():
        motor = {key for key in servo.control.motor_parameters if key in values} | {"q_offset"}
        assert set(values) | {"q_offset"} == motor | set(LAWS[law].parameter_names)
        assert set(servo.control.required_parameters) <= set(values)
        assert all(math.isfinite(value) for value in values.values())
    for name, (lower, upper) in servo.datasheet.bounds.items():
        assert servo.bounds[name][0] <= lower < upper <= servo.bounds[name][1]


@needs_reference
def test_published_parameters_are_those_of_the_reference():
    """Every servo, law and key, to the last digit."""
    reference = json.loads(REFERENCE.read_text())["actuators"]
    compared = 0
    for name, laws in reference.items():
        servo = load_actuator({"feetech_sts3215_7_4V": "sts3215"}.get(name, name))
        for law, values in laws.items():
            numbers = {key: value for key, value in values.items() if isinstance(value, int | float)}
            assert dict(servo.published[law]) == numbers
            compared += 1
        assert set(servo.published) == set(laws)
    assert compared == 37


@pytest.mark.parametrize(
    ("name", "kind", "gain", "limit", "nominal"),
    [
        ("mx64", VoltageControl, 0.158, 0.9625, 15.0),
        ("mx106", VoltageControl, 0.158, 0.9625, 15.0),
        ("xl320", VoltageControl, 0.05048199, 1.0, 7.5),
        ("xl330", VoltageControl, 4096 / (2 * math.pi) / (256 * 885), 1.0, 5.0),
        ("sts3215", VoltageControl, 0.166, 0.97, 7.4),
        ("sts3250", VoltageControl, 0.1649, 0.97, 12.0),
        ("erob80_50", CurrentControl, 1.0, 12.0, 48.0),
        ("erob80_100", CurrentControl, 1.0, 12.0, 48.0),
        ("unitree_go1", TorqueControl, 1.0, 23.7, None),
    ],
)
def test_control_laws_are_those_of_the_documentation(name, kind, gain, limit, nominal):
    """The table of the mathematics: law, gain, limit and supply of each family."""
    servo = load_actuator(name)
    assert isinstance(servo.control, kind)
    assert servo.control.gain == pytest.approx(gain, rel=1e-12)
    limits = {"voltage": "duty_max", "current": "current_max", "torque": "torque_max"}
    assert getattr(servo.control, limits[kind.kind]) == limit
    assert nominal is None or servo.supply.nominal == nominal


def test_dampings_and_registers_are_those_of_the_documentation():
    """What only some families have."""
    dampings = [load_actuator(name).control.damping for name in ("erob80_50", "erob80_100", "unitree_go1")]
    assert dampings == [1.0, 2.0, 0.3]
    register = load_actuator("xl330").pwm_register
    assert (register.full_scale, register.bits) == (885, 16)
    assert load_actuator("xl330").supply.rated_max == 6.0


def test_a_servo_of_the_users_own_is_read_from_its_path(tmp_path):
    """A complete file is enough; what it does not say has sensible defaults."""
    servo = load_actuator(write(tmp_path, SERVO))
    assert servo.name == "own"
    assert servo.control == VoltageControl(gain=0.1, duty_max=0.9)
    assert (servo.effects, servo.published, servo.pwm_register) == ({}, {}, None)
    assert servo.parameters(LAWS["m1"]).names == (
        "kt",
        "R",
        "armature",
        "q_offset",
        "friction_base",
        "friction_viscous",
    )


def test_a_copy_of_an_included_servo_keeps_its_name(tmp_path):
    """Only content that differs needs another name."""
    copy = tmp_path / "copy.yaml"
    copy.write_bytes((REPOSITORY / "config" / "actuators" / "xl330.yaml").read_bytes())
    assert load_actuator(str(copy)) == load_actuator("xl330")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_description_of_a_servo_is_the_servo(path):
    """Through JSON and back, for every family; published parameters and active effects are not part of it."""
    servo = load_actuator(path.stem)
    text = json.dumps(description_of(servo.with_effects(servo.known_effects)), allow_nan=False)
    again = actuator_of(convert(json.loads(text), ActuatorFile, "file"), "file")
    assert again == replace(servo, published={})


def test_integers_in_a_file_are_numbers(tmp_path):
    """YAML tells 12 from 12.0, people do not."""
    servo = load_actuator(
        write(tmp_path, {**SERVO, "supply": {"nominal": 12, "rated_min": 10, "rated_max": 14}})
    )
    assert isinstance(servo.supply.nominal, float)
    assert np.isclose(servo.supply.nominal, 12.0)


def test_an_unknown_servo_is_refused_with_the_known_ones():
    """The message also says that a path would do."""
    refusal(lambda: load_actuator("ax99"), "'ax99'", *actuator_names(), "YAML")


CONTROL = SERVO["control"]


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"name": None}, ["name", "missing"]),
        ({"colour": "black"}, ["'colour'"]),
        ({"name": 3}, ["name", "expected text"]),
        ({"name": ""}, ["name", "expected a name such as"]),
        ({"name": "own.yaml"}, ["name", "'own.yaml'"]),
        ({"name": "xl330"}, ["name", "'xl330'", "Dynamixel XL330-M288", "another name"]),
        ({"units": "degrees"}, ["units", "'degrees'", "rotary", "linear"]),
        ({"resolution": "fine"}, ["resolution", "expected a number"]),
        ({"resolution": float("nan")}, ["resolution", "finite"]),
        ({"control": {"gain": 0.1}}, ["control", "kind", "voltage, current, torque"]),
        ({"control": {**CONTROL, "kind": "magic"}}, ["control", "'magic'", "voltage, current, torque"]),
        ({"control": {**CONTROL, "kind": ["voltage"]}}, ["control", "kind"]),
        ({"control": {"kind": "voltage", "gain": 0.1}}, ["control", "duty_max", "missing"]),
        ({"control": {**CONTROL, "damping": 1.0}}, ["control", "'damping'"]),
        ({"control": {**CONTROL, "bridge": "fly"}}, ["control", "bridge", "'fly'"]),
        ({"control": {**CONTROL, "gain": "0.1"}}, ["control", "gain", "expected a number"]),
        ({"control": "voltage"}, ["control", "expected named values"]),
        ({"supply": {"nominal": 12.0}}, ["supply", "rated_min", "missing"]),
        ({"bounds": {"kt": [0.1, 2.0]}}, ["bounds", "R", "missing"]),
        ({"bounds": {**SERVO["bounds"], "ratio": [0.0, 1.0]}}, ["bounds", "'ratio'"]),
        ({"bounds": {**SERVO["bounds"], "kt": [2.0, 1.0]}}, ["bounds", "kt", "not below"]),
        ({"bounds": {**SERVO["bounds"], "kt": [2.0]}}, ["bounds", "kt", "expected 2 values, found 1"]),
        ({"bounds": {**SERVO["bounds"], "kt": 2.0}}, ["bounds", "kt", "2 numbers"]),
        (
            {"effects": {"current_limit": [1.0, 0.5]}},
            ["effects", "current_limit", "expected 3 values, found 2"],
        ),
        ({"effects": {"backlash": [1.0, 0.5, 2.0]}}, ["effects", "'backlash'", "current_limit"]),
        ({"published": {"m1": {"kt": "x"}}}, ["published", "m1", "kt", "expected a number"]),
        ({"published": [1]}, ["published", "expected named values"]),
        ({"pwm_register": {"full_scale": 885}}, ["pwm_register", "bits", "missing"]),
    ],
)
def test_files_that_are_not_valid_are_refused(tmp_path, changes, parts):
    """The message names the file and the place in it."""
    content = {key: value for key, value in {**SERVO, **changes}.items() if value is not None}
    path = write(tmp_path, content)
    refusal(lambda: load_actuator(path), path, *parts)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("name: [", ["not valid YAML"]),
        ("", ["expected named values"]),
        ("- name", ["expected named values"]),
        ("name: own\nname: other\n", ["'name'", "twice"]),
        ("? [a, b]\n: 1\n", ["YAML"]),
        ("name: 2024-13-45\n", []),
        ("name: !!int abc\n", []),
        ("!!map [1, 2]\n", []),
        ("[" * 5000, []),
    ],
    ids=["cut", "empty", "list", "twice", "list as key", "date", "tagged number", "tagged list", "deep"],
)
def test_files_that_are_no_yaml_mapping_are_refused(tmp_path, text, parts):
    """Whatever YAML's own constructors stumble over."""
    path = write(tmp_path, text)
    refusal(lambda: load_actuator(path), path, *parts)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    """The message names it."""
    refusal(lambda: read_actuator(tmp_path / "none.yaml"), tmp_path / "none.yaml", "no such file")


def test_the_documented_servo_is_the_included_one(tmp_path):
    """The example of docs/actuators.md is a valid file; its gain and bounds are those computed from the data sheet."""
    text = (REPOSITORY / "docs" / "actuators.md").read_text(encoding="utf-8")
    own = read_actuator_text(tmp_path, text.partition("```yaml\n")[2].partition("```")[0])
    included = load_actuator("xm430")
    assert own.control.gain == pytest.approx(4096 / (2 * math.pi) / 128 / 885, rel=1e-4)
    assert own.control.gain == pytest.approx(included.control.gain, rel=1e-4)
    for name in ("kt", "R", "armature"):
        assert own.bounds[name] == included.bounds[name]
    for path in FILES:
        assert "docs/" not in (comment := path.read_text(encoding="utf-8")) or "docs/actuators.md" in comment


def read_actuator_text(folder, text):
    """The servo that a text describes."""
    (folder / "own.yaml").write_text(text, encoding="utf-8")
    return read_actuator(folder / "own.yaml")
