"""The types that carry a recording to a torque: how many there are, and how much each holds."""

import re
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, get_type_hints

import pytest

from helpers import REPOSITORY
from stribeck.model.law import FrictionLaw

PAGE = REPOSITORY / "docs" / "architecture.md"
MOST_FIELDS = 12


def listed(title: str) -> list[type]:
    """The types in the table below a line of the page."""
    _, _, rest = PAGE.read_text().partition(f"{title}\n\n")
    table = rest.split("\n\n")[0]
    names = re.findall(r"^\| `([\w.]+)\.(\w+)` \|", table, flags=re.MULTILINE)
    return [getattr(import_module(f"stribeck.{module}"), name) for module, name in names]


def names_of(kind: type) -> list[str]:
    """Names of the fields of a type."""
    if is_dataclass(kind):
        return [field.name for field in fields(kind)]
    return list(kind._fields) if hasattr(kind, "_fields") else []


@pytest.mark.parametrize(("way", "most", "least"), [("Of a servo:", 16, 12), ("Of an arm:", 12, 10)])
def test_the_way_from_a_recording_to_a_torque_is_short(way, most, least):
    """The main types are few, each of at most twelve fields, none of which is typed as `dict`, `object` or `Any`."""
    found = listed(way)
    assert least <= len(set(found)) == len(found) <= most
    for kind in found:
        assert 1 <= len(names_of(kind)) <= MOST_FIELDS, kind
        hints = get_type_hints(kind, vars(import_module(kind.__module__)))
        untyped = [name for name in names_of(kind) if hints[name] in (dict, object, Any)]
        assert not untyped, f"{kind}: {untyped}"


def test_settings_beside_the_way_are_as_small():
    """What fits and compensators are told."""
    for name in ("identify.servo.result.FitSettings", "live.settings.Settings", "live.settings.Timing"):
        module, _, kind = name.rpartition(".")
        assert len(names_of(getattr(import_module(f"stribeck.{module}"), kind))) <= MOST_FIELDS


def test_no_flag_of_a_law_can_be_read_outside_the_model():
    """A law answers with what follows from its terms; a property that is true or false would be asked for elsewhere."""
    flags = [
        name
        for name, value in vars(FrictionLaw).items()
        if not name.startswith("_")
        and get_type_hints(getattr(value, "func", getattr(value, "fget", None)) or value).get("return")
        is bool
    ]
    assert not flags
