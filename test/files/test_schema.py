"""Declared formats: what is valid becomes typed values; what is not, one line that names the key."""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
from msgspec import Meta, field

from format_keys import Key, keys_of
from stribeck.errors import ConfigError, RecordingError
from stribeck.files.schema import (
    Count,
    Infinite,
    Name,
    NotNegative,
    Positive,
    Schema,
    convert,
    read_json,
    read_yaml,
)


@dataclass(frozen=True)
class Servo:
    gain: float = 1.0


class Joint(Schema):
    velocity: Positive
    margin: NotNegative = 0.0
    position: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.position is not None and self.position[0] >= self.position[1]:
            raise ValueError(f"position: {self.position[0]:g} is not below {self.position[1]:g}")


class Disc(Schema, tag_field="kind", tag="disc"):
    radius: Annotated[Positive, Meta(description="of the disc [m]")]


class Rod(Schema, tag_field="kind", tag="rod"):
    """A thin rod.

    :param length: between its
        ends [m].
    :param ends: what is at the ends.
    """

    length: float
    ends: tuple[Disc, ...] = ()


class Bodies(Schema):
    main: Disc | Rod
    more: dict[str, Disc | Rod | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Load:
    mass: float

    def __post_init__(self) -> None:
        if self.mass <= 0.0:
            raise RecordingError("a load has a mass")


class Robot(Schema):
    schema: Literal[1]
    name: Name
    units: Literal["rotary", "linear"] = "rotary"
    joints: dict[str, Joint] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    weights: float | tuple[float, ...] = 1.0
    repeats: Count = 1
    servo: Servo = Servo()
    share: Annotated[float, Meta(le=1.0)] = 0.5


GIVEN = {"schema": 1, "name": "arm"}


def test_a_valid_file_becomes_typed_values(tmp_path):
    """Whole numbers are numbers, lists are tuples, what is left out has its default."""
    path = tmp_path / "robot.yaml"
    path.write_text(
        "schema: 1\nname: arm\njoints: {one: {velocity: 3, position: [-1, 1]}}\nservo: {gain: 2}\nweights: [1, 2.5]\n"
    )
    robot = read_yaml(path, Robot)
    assert robot.joints["one"] == Joint(velocity=3.0, position=(-1.0, 1.0))
    assert isinstance(robot.joints["one"].velocity, float)
    assert (robot.weights, robot.servo, robot.units) == ((1.0, 2.5), Servo(2.0), "rotary")
    (tmp_path / "robot.json").write_text('{"schema": 1, "name": "arm"}')
    assert read_json(tmp_path / "robot.json", Robot) == Robot(schema=1, name="arm")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"schema": 1}, "robot.yaml: name missing"),
        ({}, "robot.yaml: schema, name missing"),
        ({**GIVEN, "nmae": 1}, "robot.yaml: unknown key 'nmae'; valid: schema, name, units, joints"),
        ({**GIVEN, "schema": 2}, "robot.yaml: unknown schema 2; valid in this version of stribeck: 1"),
        ({**GIVEN, "units": "turns"}, "robot.yaml: units: expected linear or rotary, found 'turns'"),
        ({**GIVEN, "name": 3}, "robot.yaml: name: expected text, found 3"),
        ({**GIVEN, "name": ""}, "robot.yaml: name: must not be empty"),
        ({**GIVEN, "order": ["a", 1]}, r"robot.yaml: order\[1\]: expected text, found 1"),
        ({**GIVEN, "order": "ab"}, "robot.yaml: order: expected a list of texts, found text 'ab'"),
        (
            {**GIVEN, "weights": "x"},
            "robot.yaml: weights: expected a number or a list of numbers, found text 'x'",
        ),
        (
            {**GIVEN, "weights": [1, float("nan")]},
            r"robot.yaml: weights\[1\]: expected a finite number, found nan",
        ),
        ({**GIVEN, "weights": 10**400}, "robot.yaml: weights: expected a finite number"),
        ({**GIVEN, "repeats": 0}, "robot.yaml: repeats: must be at least 1, found 0"),
        ({**GIVEN, "repeats": 1.5}, "robot.yaml: repeats: expected a whole number, found 1.5"),
        ({**GIVEN, "share": 2}, "robot.yaml: share: must be at most 1, found 2"),
        ({**GIVEN, "joints": [1]}, "robot.yaml: joints: expected named values, found a list"),
        (
            {**GIVEN, "joints": {1: {}}},
            "robot.yaml: joints: expected named values, found keys that are not text",
        ),
        ({**GIVEN, "joints": {"a": {}}}, "robot.yaml: joints: a: velocity missing"),
        ({**GIVEN, "joints": {"a": None}}, "robot.yaml: joints: a: expected named values, found nothing"),
        (
            {**GIVEN, "joints": {"a": {"velocity": 1}, "b": {"velocity": -1}}},
            "robot.yaml: joints: b: velocity: must be above 0, found -1",
        ),
        (
            {**GIVEN, "joints": {"a": {"velocity": True}}},
            "robot.yaml: joints: a: velocity: expected a number, found True",
        ),
        (
            {**GIVEN, "joints": {"a": {"velocity": 1, "position": [1]}}},
            "robot.yaml: joints: a: position: expected 2 values, found 1",
        ),
        (
            {**GIVEN, "joints": {"a": {"velocity": 1, "position": [2, 1]}}},
            "robot.yaml: joints: a: position: 2 is not below 1",
        ),
        ({**GIVEN, "servo": {"gian": 1}}, "robot.yaml: servo: unknown key 'gian'; valid: gain"),
        ("text", "robot.yaml: expected named values, found text 'text'"),
        (None, "robot.yaml: expected named values, found nothing"),
    ],
)
def test_what_is_not_valid_is_one_line_with_its_key(given, message):
    """The line names the file, the key, what was found and what is valid."""
    with pytest.raises(ConfigError, match=f"^{message}") as caught:
        convert(given, Robot, "robot.yaml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"main": {"radius": 1}}, "bodies.yaml: main: kind: expected disc or rod, found nothing"),
        ({"main": {"kind": "cube"}}, "bodies.yaml: main: kind: expected disc or rod, found text 'cube'"),
        ({"main": {"kind": "rod"}}, "bodies.yaml: main: length missing"),
        ({"main": {"kind": "disc", "length": 1}}, "bodies.yaml: main: radius missing"),
        ({"main": {"kind": "disc", "radius": 0}}, "bodies.yaml: main: radius: must be above 0, found 0"),
        (
            {"main": {"kind": "rod", "length": 1, "ends": [{"kind": "disc", "radius": "x"}]}},
            r"bodies.yaml: main: ends\[0\]: radius: expected a number, found text 'x'",
        ),
        (
            {"main": {"kind": "disc", "radius": 1}, "more": {"a": {"kind": "rod", "lenght": 1}}},
            "bodies.yaml: more: a: length missing",
        ),
    ],
)
def test_of_several_classes_the_tag_chooses_one(given, message):
    """Keys are checked against the class that the tag names."""
    with pytest.raises(ConfigError, match=f"^{message}"):
        convert(given, Bodies, "bodies.yaml")
    assert convert({"main": {"kind": "rod", "length": 1}}, Bodies, "").main == Rod(length=1.0)


def test_errors_of_our_own_classes_get_the_place_and_type_of_the_file():
    """A class of ``core`` may check itself."""
    with pytest.raises(ConfigError, match=r"^load\.json: a load has a mass"):
        convert({"mass": 0}, Load, "load.json")


def test_keys_are_listed_with_type_default_and_description():
    """From ``Meta`` and from docstrings, also of classes in mappings and lists."""
    keys = {key.name: key for key in keys_of(Bodies)}
    assert keys["main.radius"] == Key("main.radius", "a number above 0", "", "of the disc [m]")
    assert keys["main.length"].description == "between its ends [m]."
    assert keys["main.ends"].default == "[]"
    assert keys["more.<name>.ends[].radius"].type == "a number above 0"
    keys = {key.name: key for key in keys_of(Robot)}
    assert keys["units"] == Key("units", "linear or rotary", '"rotary"', "")
    assert keys["joints.<name>.position"].type == "a list of 2 numbers"
    assert keys["share"].type == "a number at most 1"
    assert keys["repeats"].type == "a whole number at least 1"
    assert keys["servo"].default == "see its keys"


class Bounds(Schema):
    lower: Annotated[float, Infinite] = -1.0
    speed: Annotated[float, Meta(gt=0.0), Infinite] | None = None
    repeats: int = 1


def test_infinity_is_valid_where_it_is_declared():
    """A limit may be infinite; one that is not declared so may not, nor may any be NaN or out of its bounds."""
    found = convert({"lower": -math.inf, "speed": math.inf}, Bounds, "limits.yaml")
    assert (found.lower, found.speed) == (-math.inf, math.inf)
    for value, message in ((math.nan, "finite"), (-math.inf, "above 0")):
        with pytest.raises(ConfigError, match=f"^limits.yaml: speed: .*{message}"):
            convert({"speed": value}, Bounds, "limits.yaml")


def test_whole_numbers_may_have_a_decimal_point():
    """3.0 is 3 where a whole number is expected; 3.5 is refused."""
    assert convert({"repeats": 3.0}, Bounds, "limits.yaml") == Bounds(repeats=3)
    with pytest.raises(ConfigError, match=r"repeats: expected a whole number, found 3\.5"):
        convert({"repeats": 3.5}, Bounds, "limits.yaml")
