"""Files of drives of mechanisms, and those of earlier versions."""

import json

import pytest

from mechanisms import BLOCK, mechanism
from stribeck.errors import ParameterFileError
from stribeck.files.drives import Drives, MachineParameters, read_drives, write_drives
from stribeck.identify.mechanism.drives import values_to_start
from stribeck.model.estimate import at_bound, estimate_of

PARAMETERS = mechanism(BLOCK).parameters
FIRST = {"schema": 1, "kind": "mechanism", "model": "block", "provenance": {"data": ["run.csv"]}}


def written(path, **entry):
    path.write_text(json.dumps(FIRST | {"parameters": {"friction": {"value": 5.0, "unit": "N"} | entry}}))
    return path


@pytest.mark.parametrize(
    "estimate",
    [
        estimate_of(5.0, "N", (4.9, 5.1), bounds=(0.0, 100.0)),
        estimate_of(5.0, "N", (1.0, 9.0), bounds=(0.0, 100.0)),
        estimate_of(5.0, "N", None),
        at_bound(0.0, "N", "lower"),
    ],
)
def test_estimates_come_back_from_a_file(tmp_path, estimate):
    """Value, unit, interval, status and reason; a mechanism without a motor has no drive."""
    path = tmp_path / "P.json"
    content = Drives({}, MachineParameters("block", {"friction": estimate}))
    write_drives(path, content)
    assert read_drives(path) == content
    assert values_to_start(path, "block", PARAMETERS) == {"friction": estimate.value}


@pytest.mark.parametrize(
    ("entry", "status"),
    [
        ({"interval": [4.9, 5.1], "identifiable": True}, "determined"),
        ({"identifiable": False}, "not determined"),
        ({}, "fixed"),
    ],
)
def test_files_of_the_first_form_are_read(tmp_path, entry, status):
    """They say ``identifiable`` of estimated parameters, and nothing of fixed ones."""
    path = written(tmp_path / "P.json", **entry)
    assert values_to_start(path, "block", PARAMETERS) == {"friction": 5.0}
    assert read_drives(path).machine.estimates["friction"].status == status


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"unit": "N m"}, "unit 'N m', but the model has 'N'"),
        ({"value": "much"}, "value: expected a number"),
        ({"status": "vague"}, "status"),
        ({"colour": "red"}, "unknown key 'colour'"),
    ],
)
def test_entries_that_are_not_valid_are_refused(tmp_path, entry, said):
    """One line that names the file and the key."""
    with pytest.raises(ParameterFileError, match=said) as error:
        values_to_start(written(tmp_path / "P.json", **entry), "block", PARAMETERS)
    assert "P.json" in str(error.value)


def test_a_file_of_another_mechanism_is_refused(tmp_path):
    """Both names are in the message."""
    with pytest.raises(
        ParameterFileError, match="belongs to the mechanism 'block', not to the mechanism 'furuta'"
    ):
        values_to_start(written(tmp_path / "P.json"), "furuta", PARAMETERS)
