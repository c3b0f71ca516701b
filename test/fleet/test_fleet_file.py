"""The YAML file of a fleet: defaults, paths beside it, and one line for every mistake."""

import pytest

from helpers import refusal
from stribeck.fleet.file import read_fleet

OPTIONS = ("actuator", "signals", "trials", "set")
GOOD = """
output: fits
defaults: {laws: [m6, m1], trials: 500, set: {R: 3.5}, signals: table.yaml}
servos:
  - {name: knee, logdir: bags/knee, trials: 7, set: {kt: 0.4}, actuator: my.yaml}
  - {name: hip, logdir: [bags/hip, bags/knee], laws: m2, actuator: xl330}
"""


@pytest.fixture
def folder(tmp_path):
    for name in ("knee", "hip"):
        (tmp_path / "bags" / name).mkdir(parents=True)
    return tmp_path


SERVO = "{name: hip, logdir: bags/hip"


def written(folder, text):
    path = folder / "fleet.yaml"
    path.write_text(text)
    return path


def test_a_servo_has_the_defaults_but_what_it_says_itself(folder):
    """Its own options replace the defaults as a whole; laws are in their order; files lie beside the YAML."""
    fleet = read_fleet(written(folder, GOOD), OPTIONS)
    knee, hip = fleet.servos
    assert fleet.output == folder / "fits"
    assert (knee.laws, hip.laws) == (("m1", "m6"), ("m2",))
    assert knee.options == {
        "trials": 7,
        "set": {"kt": 0.4},
        "actuator": str(folder / "my.yaml"),
        "signals": str(folder / "table.yaml"),
    }
    assert hip.options["trials"] == 500
    assert hip.options["actuator"] == "xl330"
    assert hip.logdirs == (folder / "bags/hip", folder / "bags/knee")


@pytest.mark.parametrize(
    "text", [f"servos: [{SERVO}}}]", f"servos: [{SERVO}, laws: null}}]\ndefaults: {{laws: [m1]}}"]
)
def test_all_laws_without_a_word_about_them(folder, text):
    """The default of ``laws``, which ``null`` gives back."""
    fleet = read_fleet(written(folder, text), OPTIONS)
    assert fleet.servos[0].laws == ("m1", "m2", "m3", "m4", "m5", "m6")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("servos: []", ["servos", "list of servos"]),
        ("output: a", ["servos missing"]),
        (f"servo: [{SERVO}}}]", ["servos missing"]),
        (f"servos: [{SERVO}}}]\nlaws: m1", ["unknown key 'laws'", "servos, output, defaults"]),
        (
            f"servos: [{SERVO}}}]\ndefaults: {{trails: 5}}",
            ["unknown key 'trails'", "laws, actuator", "trials"],
        ),
        (f"servos: [{SERVO}, trails: 5}}]", ["servo 'hip'", "unknown key 'trails'", "trials"]),
        ("servos: [{logdir: bags/hip}]", ["servo 1", "name missing"]),
        ("servos: [{name: hip}]", ["servo 'hip'", "logdir missing"]),
        ("servos: [{name: ../hip, logdir: bags/hip}]", ["name", "letters"]),
        ("servos: [{name: Fleet.json, logdir: bags/hip}]", ["name", "summary"]),
        (f"servos: [{SERVO}}}, {SERVO}}}]", ["more than one servo is named hip"]),
        ("servos: [{name: hip, logdir: bags/hop}]", ["servo 'hip'", "bags/hop", "no such file or folder"]),
        ("servos: [{name: hip, logdir: []}]", ["servo 'hip'", "logdir"]),
        ("servos: [{name: hip, logdir: 5}]", ["servo 'hip'", "logdir", "expected text"]),
        (f"servos: [{SERVO}, laws: [m1, m7]}}]", ["servo 'hip'", "laws", "m1, m2", "m7"]),
        (f"servos: [{SERVO}, laws: []}}]", ["servo 'hip'", "laws"]),
        (f"servos: [{SERVO}, laws: [[m1]]}}]", ["servo 'hip'", "laws"]),
        (f"servos: [{SERVO}, trials: 1, trials: 2}}]", ["trials", "twice"]),
        ("- hip", ["expected named values"]),
    ],
)
def test_what_is_not_valid_is_said_in_one_line(folder, text, parts):
    """The file, the servo, what was found and what is valid."""
    path = written(folder, text)
    refusal(lambda: read_fleet(path, OPTIONS), path, *parts)
