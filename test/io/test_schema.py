"""Declared formats: what is valid becomes typed values; what is not, one line that names the key."""

from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
from msgspec import Meta, field

from stribeck.errors import ConfigError
from stribeck.io.schema import Count, Name, NotNegative, Positive, Schema, convert, read_json, read_yaml


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
        ({**GIVEN, "schema": 2}, "robot.yaml: schema: expected 1, found 2"),
        ({**GIVEN, "units": "turns"}, "robot.yaml: units: expected linear or rotary, found 'turns'"),
        ({**GIVEN, "name": 3}, "robot.yaml: name: expected text, found 3"),
        ({**GIVEN, "name": ""}, "robot.yaml: name: must not be empty"),
        ({**GIVEN, "order": ["a", 1]}, r"robot.yaml: order\[1\]: expected text, found 1"),
        ({**GIVEN, "order": "ab"}, "robot.yaml: order: expected a list, found text 'ab'"),
        ({**GIVEN, "weights": "x"}, "robot.yaml: weights: expected a number or a list, found text 'x'"),
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
