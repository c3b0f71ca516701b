"""Parameter files: what is written comes back, and what no servo can have is refused."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers import PUBLISHED, refusal, write_json
from stribeck.errors import OutputError
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive, write_drive
from stribeck.model.estimate import Estimate, at_bound, fixed
from stribeck.model.joint import CorrelationMatrix, Drive
from stribeck.model.law import LAWS
from stribeck.model.provenance import ModelErrors, Provenance, Runs, SearchRecord, SimulationSettings, Spread
from stribeck.model.verdict import Reason, Verdict

XL330 = load_actuator("xl330")


def flat(law: str = "m6", **changes: Any) -> dict[str, Any]:
    """The published parameters of the XL330 as other programs write them; ``None`` leaves a key out."""
    content = {**XL330.published[law], "model": law, "actuator": "xl330", **changes}
    return {key: value for key, value in content.items() if value is not None}


WRITTEN = Drive(
    XL330,
    LAWS["m6"],
    XL330.published["m6"],
    stated={
        "kt": Estimate(0.36, "N m/A", "determined", (0.35, 0.37)),
        "friction_base": at_bound(0.0, "N m", "lower"),
        "q_offset": fixed(0.0, "rad"),
        "delay": Estimate(0.004, "s", "not determined", reason="its interval is as wide as before the data"),
    },
    bounds={"kt": (0.1, 3.0), "friction_base": (0.0, 0.2)},
    correlation=CorrelationMatrix(("kt", "R"), ((1.0, 0.9), (0.9, 1.0))),
    temperatures=Spread(mean=30.0, min=25.0, max=33.0),
    statements=("One load only: load-dependent terms are barely told apart from constant ones.",),
    verdict=Verdict((Reason("at_bound", "doubtful", "friction_base at its lower bound"),)),
    loss=ModelErrors("smooth_absolute", "rad", 0.0214),
    provenance=Provenance(
        Runs("gain 400 held out", ("a", "b"), fingerprint="sha256:00"),
        SimulationSettings(0.005, "semi-implicit"),
        SearchRecord("hybrid", 3, 12345, status="converged"),
        supply_voltage=Spread(min=7.1, max=7.4),
        versions={"stribeck": "0.1.0", "numpy": "2.0"},
    ),
)
"""A drive of which all is known."""

EARLIER: dict[str, Any] = {
    "schema": 1,
    "units": {"kt": "N m/A", "friction_base": "N m"},
    "bounds": {"kt": [0.1, 3.0], "friction_base": [0.0, 0.2]},
    "fixed": ["q_offset"],
    "intervals": {"kt": [0.35, 0.37]},
    "confidence": 0.95,
    "not_determined": {"alpha": "only its sum with others is seen"},
    "at_bounds": {"friction_base": "lower"},
    "statements": ["One load only: load-dependent terms are barely told apart from constant ones."],
    "loss": {"name": "smooth_absolute", "train_mae": 0.0214, "validation_mae": None},
    "split": {"rule": "gain 400 held out"},
    "simulation": {"dt": 0.005, "integrator": "semi-implicit"},
    "effects": [],
    "supply_voltage": {"min": 7.1, "max": 7.4},
    "temperature": None,
    "data": {"fingerprint": "sha256:00", "runs": 12},
    "search": {"method": "hybrid", "seed": 3, "evaluations": 12345, "status": "converged", "trials": 99},
    "versions": {"stribeck": "0.1.0", "numpy": "2.0"},
}
"""The block of schema 1."""


def read(folder: Path, content: Any) -> Drive:
    """Read a parameter file with some content."""
    return read_drive(write_json(folder / "m.json", content))


def refused(folder: Path, content: Any, *parts: object) -> None:
    """A file with this content is refused; the message names it and says all of ``parts``."""
    path = folder / "m.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    refusal(lambda: read_drive(path), path, *parts)


@pytest.mark.parametrize(("name", "law"), PUBLISHED)
def test_files_of_other_programs_are_read(tmp_path, name, law):
    """Flat keys with model and actuator, as the published parameters come; capitals do not matter."""
    servo = load_actuator(name)
    found = read(tmp_path, {**servo.published[law], "model": law.upper(), "actuator": name})
    assert found.values == {"q_offset": 0.0, **servo.published[law]}
    assert (found.law, found.actuator, found.provenance) == (LAWS[law], servo, None)


@pytest.mark.parametrize("drive", [Drive(XL330, LAWS["m6"], {}), WRITTEN])
@pytest.mark.parametrize("law", LAWS)
def test_what_is_written_comes_back(tmp_path, law, drive):
    """Values to the last bit, and the block as it was."""
    content = replace(drive, law=LAWS[law], values=XL330.published[law])
    write_drive(tmp_path / "m.json", content)
    assert read_drive(tmp_path / "m.json") == content


def test_the_flat_keys_stay_what_other_programs_read(tmp_path):
    """Plain numbers at the top, one block beside them, and a version in it."""
    write_drive(tmp_path / "m.json", WRITTEN)
    found = json.loads((tmp_path / "m.json").read_text())
    assert found.pop("stribeck")["schema"] == 3
    assert found == flat("m6")


def test_the_terms_of_robot_joints_come_back(tmp_path):
    """Their keys alone switch them on."""
    law = LAWS["m2"].with_terms(asymmetric=True, offset=True)
    added = {"friction_base_negative": 0.01, "friction_viscous_negative": 0.0, "torque_offset": -0.02}
    content = Drive(XL330, law, {**XL330.published["m2"], **added})
    write_drive(tmp_path / "m.json", content)
    assert read_drive(tmp_path / "m.json") == content


def test_effects_that_are_on_come_back_with_their_parameters(tmp_path):
    """A file fitted with a current limit is simulated with it."""
    servo = XL330.with_effects(["current-limit", "supply", "delay"])
    values = {**XL330.published["m6"], "current_limit": 1.75, "command_delay": 0.004}
    content = Drive(servo, LAWS["m6"], values)
    write_drive(tmp_path / "m.json", content)
    assert read_drive(tmp_path / "m.json") == content


def test_an_effects_parameter_without_the_effect_is_refused(tmp_path):
    """A number that nothing reads would be silently lost; so would an effect without its number."""
    refused(tmp_path, flat(current_limit=1.75), "'current_limit'")
    block = {**EARLIER, "effects": ["current-limit"]}
    refused(tmp_path, flat(stribeck=block), "current_limit", "missing")


def test_a_servo_of_the_users_own_can_be_handed_in(tmp_path):
    """For a file that names one which this installation does not have."""
    own = replace(XL330, name="own")
    path = write_json(tmp_path / "m.json", flat(actuator="own"))
    assert read_drive(path, own).actuator is own
    refused(tmp_path, flat(actuator="own"), "'own'", "xl330")


OWN = replace(XL330, name="own", title="A servo of one's own", published={})


def test_a_file_describes_its_servo(tmp_path):
    """No other file is needed beside it; effects are those that were on."""
    servo = OWN.with_effects(["supply"])
    content = replace(WRITTEN, actuator=servo)
    write_drive(tmp_path / "m.json", content)
    assert read_drive(tmp_path / "m.json") == content
    assert read_drive(tmp_path / "m.json", OWN) == content


def test_a_description_outlives_the_included_file(tmp_path):
    """The values hold for the control law that they were identified with, whatever an update of the program includes."""
    before = replace(XL330, control=replace(XL330.control, gain=0.5 * XL330.control.gain))
    write_drive(tmp_path / "m.json", replace(WRITTEN, actuator=before))
    assert read_drive(tmp_path / "m.json").actuator.control == before.control


def test_a_description_that_contradicts_is_refused(tmp_path):
    """The name at the top, the servo that is handed in, a control law that does not exist."""
    path = tmp_path / "m.json"
    write_drive(path, replace(WRITTEN, actuator=OWN))
    other = replace(OWN, control=replace(OWN.control, duty_max=0.5))
    refusal(lambda: read_drive(path, other), path, "a control law of 'own' that differs", "remove `servo`")
    whole = json.loads(path.read_text())
    refused(tmp_path, {**whole, "actuator": "xl330"}, "'xl330'", "'own' in the block stribeck")
    whole["stribeck"]["actuator"]["control"]["kind"] = "magic"
    refused(tmp_path, whole, "stribeck: actuator: control", "'magic'")


def test_a_missing_mounting_offset_is_zero(tmp_path):
    """A robot's joint has none; it is the only value that may be missing."""
    assert read(tmp_path, flat(q_offset=None)).values["q_offset"] == 0.0


@pytest.mark.parametrize("key", [key for key in flat() if key != "q_offset"])
def test_every_other_key_is_needed(tmp_path, key):
    """A file with a missing friction term is not a file without friction."""
    refused(tmp_path, flat(**{key: None}), key, "missing")


def test_a_servo_published_without_resistance_needs_none(tmp_path):
    """The eRob80 1:100 was; a servo driven by voltage needs it."""
    servo = load_actuator("erob80_100")
    values = {key: value for key, value in servo.published["m1"].items() if key != "R"}
    assert "R" not in read(tmp_path, {**values, "model": "m1", "actuator": "erob80_100"}).values


@pytest.mark.parametrize(
    "key", ["frction_base", "load_friction_base", "friction_base_positive", "Kt", "note"]
)
def test_unknown_keys_are_refused(tmp_path, key):
    """Also those of another law: they would be lost silently."""
    refused(tmp_path, flat("m6", **{key: 0.1}), repr(key), "friction_base")


@pytest.mark.parametrize(
    "key", [key for key in flat() if key not in ("model", "actuator", "q_offset", "friction_stribeck")]
)
def test_negative_values_are_refused(tmp_path, key):
    """Nothing but offsets and the Stribeck term has a sign."""
    refused(tmp_path, flat(**{key: -1e-9}), key)


def test_offsets_may_have_either_sign(tmp_path):
    """They are angles and torques in a direction."""
    assert read(tmp_path, flat(q_offset=-0.05)).values["q_offset"] == -0.05
    assert read(tmp_path, flat(torque_offset=-0.05)).values["torque_offset"] == -0.05


@pytest.mark.parametrize(
    ("text", "part"), [("NaN", "NaN"), ("Infinity", "Infinity"), ("-Infinity", "-Infinity")]
)
@pytest.mark.parametrize("key", ["kt", "friction_base", "q_offset"])
def test_numbers_that_are_none_are_refused(tmp_path, key, text, part):
    """Neither JSON nor physics has them."""
    refused(tmp_path, json.dumps(flat(**{key: 12345.678})).replace("12345.678", text), part)


@pytest.mark.parametrize("text", ["1e400", "-1e400", "1" + "0" * 400])
def test_numbers_beyond_a_float_are_refused(tmp_path, text):
    """They become infinite without a word in many readers."""
    refused(
        tmp_path,
        json.dumps(flat(friction_base=12345.678)).replace("12345.678", text),
        "friction_base",
        "finite",
    )


def test_an_integer_of_thousands_of_digits_is_refused(tmp_path):
    """Python refuses to convert it at all, which must not surface as an error of Python's."""
    refused(tmp_path, json.dumps(flat(friction_base=12345.678)).replace("12345.678", "1" + "0" * 5000))


@pytest.mark.parametrize("value", ["0.1", "", None, True, [0.1], {"value": 0.1}])
@pytest.mark.parametrize("key", ["kt", "friction_base"])
def test_values_that_are_no_numbers_are_refused(tmp_path, key, value):
    """Text that looks like a number is text."""
    refused(tmp_path, {**flat(), key: value}, key, "expected a number")


@pytest.mark.parametrize(
    ("key", "value", "part"),
    [
        ("kt", 0.0, "positive"),
        ("R", 0.0, "positive"),
        ("alpha", 0.0, "positive"),
        ("dtheta_stribeck", 0.0, "positive"),
        ("kt", 1e7, "too large to be possible"),
        ("armature", 2e6, "too large to be possible"),
        ("q_offset", 12.0, "degrees"),
        ("q_offset", -3.2, "degrees"),
    ],
)
def test_values_that_no_servo_can_have_are_refused(tmp_path, key, value, part):
    """They would divide by zero, or are in other units."""
    refused(tmp_path, flat(**{key: value}), key, part)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kt", 50.0),
        ("R", 0.01),
        ("friction_base", 30.0),
        ("dtheta_stribeck", 12.0),
        ("alpha", 0.2),
        ("armature", 0.0),
    ],
)
def test_search_bounds_do_not_bind_what_is_read(tmp_path, key, value):
    """Bounds are where a search looks, not where servos end."""
    assert read(tmp_path, flat(**{key: value})).values[key] == value


@pytest.mark.parametrize(
    ("key", "value"), [("model", "m7"), ("model", 6), ("actuator", "ax99"), ("actuator", 3)]
)
def test_laws_and_servos_that_are_not_known_are_refused(tmp_path, key, value):
    """The message shows what was found."""
    refused(
        tmp_path, flat(**{key: value}), repr(value) if isinstance(value, str) else f"{key}: expected text"
    )


def test_a_key_that_stands_twice_is_refused(tmp_path):
    """Which one should count?"""
    refused(tmp_path, json.dumps(flat())[:-1] + ', "kt": 0.5}', "'kt'", "twice")


def test_a_file_cut_off_anywhere_is_refused(tmp_path):
    """At every fifth character of a file with its block."""
    write_drive(tmp_path / "whole.json", replace(WRITTEN, law=LAWS["m1"], values=XL330.published["m1"]))
    whole = (tmp_path / "whole.json").read_text().rstrip()
    for length in range(0, len(whole), 5):
        refused(tmp_path, whole[:length], "not valid JSON")


@pytest.mark.parametrize("content", [[], "text", 3, None, [flat()]])
def test_json_that_is_no_parameter_file_is_refused(tmp_path, content):
    """A list, a text, a number."""
    refused(tmp_path, json.dumps(content), "expected named values")


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"schema": 2}, ["schema 2", "Update"]),
        ({"schema": None}, ["schema None"]),
        ({"schema": "1"}, ["schema '1'"]),
        ({"colour": "red"}, ["'colour'"]),
        ({"fixed": "q_offset"}, ["fixed", "list"]),
        ({"effects": ["magic"]}, ["'magic'"]),
        ({"bounds": {"kt": [1.0]}}, ["bounds: kt", "expected 2 values, found 1"]),
        ({"bounds": {"kt": [2.0, 1.0]}}, ["bounds", "kt", "above"]),
        ({"intervals": {"kt": ["a", 1.0]}}, ["intervals", "kt", "expected a number"]),
        ({"confidence": "high"}, ["confidence", "expected a number"]),
        ({"units": ["rad"]}, ["units", "expected named values"]),
        ({"units": {"kt": None}}, ["units: kt", "expected text"]),
        ({"versions": {"jax": 0.1}}, ["versions: jax", "expected text"]),
        ({"split": {"train": "run"}}, ["split: train", "expected a list"]),
        ({"data": {"digests": {"run": 1}}}, ["digests: run", "expected text"]),
        ({"loss": {"train_mae": "small"}}, ["loss: train", "expected a number"]),
        ({"supply_voltage": {"min": "5 V"}}, ["min", "expected a number"]),
        ({"simulation": {"dt": "5 ms"}}, ["dt", "expected a number"]),
        ({"simulation": {"dt": 0.005, "reset_period": -1}}, ["reset_period: must be above 0, found -1"]),
        ({"temperature": 30}, ["temperature", "expected named values"]),
        ({"temperature": {"min": 20, "max": 40, "mean": "warm"}}, ["temperature: mean", "expected a number"]),
    ],
)
def test_a_block_that_is_not_what_this_version_writes_is_refused(tmp_path, changes, parts):
    """A wrong schema, unknown keys, wrong kinds."""
    refused(tmp_path, flat(stribeck={**EARLIER, **changes}), *parts)


@pytest.mark.parametrize("key", [name for name in EARLIER if name != "schema"])
def test_every_key_of_the_block_is_needed(tmp_path, key):
    """Results without their meaning are not half a result."""
    block = {name: value for name, value in EARLIER.items() if name != key}
    refused(tmp_path, flat(stribeck=block), key, "missing")


@pytest.mark.parametrize(
    ("block", "temperature"),
    [
        ({"mean": 33.5, "min": 28.0, "max": 35.0}, 33.5),
        ({"min": 28.0, "max": 35.0}, 31.5),  # as the first files had it
        (None, None),
    ],
)
def test_the_temperature_of_the_fit_is_read_from_old_and_new_files(tmp_path, block, temperature):
    """The mean, without one the middle, ``None`` where nobody measured; a file without block has none."""
    old = read(tmp_path, flat(stribeck={**EARLIER, "temperature": block}))
    write_drive(tmp_path / "m.json", old)
    assert read_drive(tmp_path / "m.json") == old
    assert old.temperature == temperature
    assert read(tmp_path, flat()).temperature is None


def test_files_that_are_none_are_refused(tmp_path):
    """Missing, a folder, or no text."""
    refusal(lambda: read_drive(tmp_path / "none.json"), tmp_path / "none.json", "no such file")
    refusal(lambda: read_drive(tmp_path), tmp_path, "folder")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    refusal(lambda: read_drive(tmp_path / "binary.json"), tmp_path / "binary.json", "not a text file")


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    """The disk is full at the worst moment: the old file is whole, and no remains lie beside it."""
    path = tmp_path / "m.json"
    write_drive(path, Drive(XL330, LAWS["m1"], XL330.published["m1"]))
    before = path.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    for function in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, function, full)
            new = Drive(XL330, LAWS["m2"], XL330.published["m2"])
            with pytest.raises(OutputError, match="No space left on device"):
                write_drive(path, new)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]


def test_friction_that_grows_with_velocity_has_a_negative_stribeck_term(tmp_path):
    """It is read as long as the budget at rest is none the less positive, for each direction."""
    values = flat("m2", friction_base=0.03, friction_stribeck=-0.02)
    assert read(tmp_path, values).values["friction_stribeck"] == -0.02
    both = {**values, "friction_base_negative": 0.03, "friction_viscous_negative": 0.01}
    for key, value in (("friction_stribeck", -0.04), ("friction_base_negative", 0.01)):
        refused(tmp_path, {**both, key: value}, "friction at rest", "must not be negative")
