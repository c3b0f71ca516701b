"""Commands that cannot work: the documented exit code, and one line on stderr that names the cause."""

import re

import numpy as np
import pytest

from helpers import REPOSITORY
from moving_arms import saved_arm
from recovery import truth_of, virtual_logs
from small_studies import TINY
from stribeck.cli.main import main
from stribeck.recordings.bags.bag import write_bag
from virtual import Encoder

BAG = REPOSITORY / "bags" / "xl330_simulated" / "m0.1_l0.1"
FIT = ["fit", "--actuator", "xl330", "--model", "m1", "--logdir", "BAG", "--trials", "10"]
ARM = ["identify-arm", "--quiet", "--config", "robot.yaml", "--data"]
EVALUATE = ["evaluate", "--logdir", "BAG", "--params"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with an arm, and files that are empty, damaged, of another kind or in other units."""
    place = tmp_path_factory.mktemp("misuse")
    saved_arm(place)
    (place / "empty").mkdir()
    for name, text in {
        "empty.csv": "", "text.csv": "hello\nworld\n", "head.csv": "t,q\n", "broken.yaml": "{a: [}", "list.json": "[]",
        "sdf.urdf": "<sdf/>", "twice.yaml": "name: a\nname: b\n", "number.yaml": "3", "nan.json": '{"schema": NaN}',
        "newer.json": '{"schema": 99}', "lone.yaml": "topics: []", "run.npy": "x",
    }.items():  # fmt: skip
        (place / name).write_text(text)
    (place / "bytes.json").write_bytes(bytes(range(256)))
    urdf = (place / "arm.urdf").read_text()
    (place / "cut.urdf").write_text(urdf[:300])
    grams = re.sub(r'mass value="([0-9.]+)"', lambda found: f'mass value="{1e3 * float(found[1])}"', urdf)
    (place / "grams.urdf").write_text(grams)
    (place / "alien.urdf").write_text(urdf.replace("shoulder", "hip"))
    for name, (old, new) in URDFS.items():
        assert old in urdf
        (place / f"{name}.urdf").write_text(urdf.replace(old, new))
    (place / "loop").symlink_to("loop")
    (place / "plain.yaml").write_text(
        "schema: 1\nname: arm\nurdf: arm.urdf\njoints: [base, shoulder, elbow]\n"
    )
    table = np.loadtxt(place / "train.csv", delimiter=",")
    for name, change in TABLES.items():
        changed = table.copy()
        np.savetxt(
            place / f"{name}.csv", out if (out := change(changed)) is not None else changed, delimiter=","
        )
    return place


def swapped(table):
    table[50:60, 0] = table[50:60, 0][::-1]


def at_rest(table):
    table[:, 1:] = table[0, 1:]


def scaled(columns, factor):
    def change(table):
        table[:, columns] *= factor

    return change


def put(row, column, value):
    def change(table):
        table[row, column] = value

    return change


TABLES = {
    "nan": put(100, 2, np.nan),
    "infinite": put(100, 8, np.inf),
    "degrees": scaled(slice(1, 4), 57.3),
    "degrees_and_rates": scaled(slice(1, 7), 57.3),
    "milliseconds": scaled(0, 1000.0),
    "huge": scaled(slice(7, 10), 1e6),
    "backwards": swapped,
    "rest": at_rest,
    "short": lambda table: table[:5],
    "narrow": lambda table: table[:, :1],
    "without_effort": lambda table: table[:, :-1],
    "repeated": lambda table: np.repeat(table, 2, axis=0),
    "constant": put(slice(None), slice(7, 10), 5.0),
}
"""Ways to spoil the table of a run: time, three positions, velocities and efforts."""

URDFS = {
    "no_mass": ('mass value="4.0"', 'mass value="4,0"'),
    "nan_mass": ('mass value="4.0"', 'mass value="nan"'),
    "negative": ('mass value="4.0"', 'mass value="-4"'),
    "two_parents": ('child link="lower"', 'child link="upper"'),
    "circle": ('parent link="world"', 'parent link="lower"'),
    "one_name": ('joint name="elbow"', 'joint name="shoulder"'),
    "childless": ('<child link="lower"/>', ""),
    "two_numbers": ('xyz="0.3 0 0"', 'xyz="0.3 0"'),
    "no_axis": ('axis xyz="0 1 0"', 'axis xyz="0 0 0"'),
    "crossed": ('lower="-3" upper="3"', 'lower="3" upper="-3"'),
}
"""Ways to spoil a URDF: a text and what stands in its place."""

CASES = [
    # files that are missing, empty, or of another kind
    (["fit", "--actuator", "xl330", "--logdir", "nowhere"], "nowhere: no such file or folder"),
    (["fit", "--actuator", "xl330", "--logdir", "empty"], "empty contains no recordings; valid: bags"),
    (["fit", "--actuator", "xl330", "--logdir", "text.csv"], "text.csv is a table: name its columns"),
    ([*FIT, "--output", "empty"], "empty is a folder; name a file"),
    ([*EVALUATE, "list.json"], "list.json: expected named values, found a list"),
    ([*EVALUATE, "bytes.json"], "bytes.json is not a text file"),
    ([*EVALUATE, "empty.csv"], "empty.csv is not valid JSON (damaged or cut off?)"),
    ([*EVALUATE, "nan.json"], "nan.json"),
    ([*EVALUATE, "newer.json"], "newer.json"),
    ([*EVALUATE, "nowhere.json"], "nowhere.json: no such file"),
    ([*EVALUATE, "loop"], "loop"),
    (["fit", "--logdir", "loop"], "loop"),
    (
        ["fit", "--logdir", "lone.yaml"],
        "lone.yaml is not a recording that can be read; valid: folder of a bag",
    ),
    (["fit", "--logdir", "run.npy"], "run.npy is not a recording that can be read"),
    (
        ["compensate", "--params", "a.json", "--states", "BAG", "--node", "left"],
        "--node is the name of a node",
    ),
    (["plot", "--logdir", "BAG", "--params", "list.json", "--sim", "--output", "p"], "found a list"),
    (
        ["report", "--params", "list.json", "--logdir", "BAG", "--output", "empty"],
        "reports are HTML files",
    ),
    (["compensate", "--params", "list.json", "--states", "BAG"], "found a list"),
    (["import", "text.csv", "--output", "bags"], "text.csv is a table: name its columns"),
    (["import", "list.json", "--output", "bags"], "found a list"),
    (["import", "bytes.json", "--output", "bags"], "bytes.json is not a text file"),
    (["import", "nowhere.json", "--output", "bags"], "nowhere.json: no such file or folder"),
    (["fit-all", "broken.yaml"], "broken.yaml is not valid YAML"),
    (["fit-all", "twice.yaml"], "key 'name' occurs twice"),
    (["fit-all", "number.yaml"], "number.yaml: expected named values"),
    (["fit-all", "nowhere.yaml"], "nowhere.yaml: no such file"),
    (["record", "--config", "broken.yaml"], "broken.yaml is not valid YAML"),
    (["posterior", "--actuator", "xl330", "--logdir", "empty"], "empty contains no recordings"),
    (["calibrate", "--config", "irb120", "--data", "empty"], "no file measured_joints.txt"),
    (["estimate", "--model", "nothing", "--data", "text.csv"], "nothing"),
    (["estimate", "--model", "furuta_lund", "--data", "text.csv"], "text.csv"),
    # names that do not exist
    (["fit", "--actuator", "xl331", "--logdir", "BAG"], "unknown actuator 'xl331'; valid: ax12, "),
    (["fit", "--actuator", "broken.yaml", "--logdir", "BAG"], "broken.yaml is not valid YAML"),
    (
        ["fit", "--actuator", "mx106", "--model", "m1", "--logdir", "BAG"],
        "are of the servo 'xl330', not of 'mx106'",
    ),
    ([*FIT, "--set", "friction_bse=1"], "unknown parameter 'friction_bse'; valid: kt, R, armature"),
    ([*FIT, "--set", "kt=abc"], "--set kt: expected a number, found 'abc'"),
    (
        [*FIT, "--validation-kp", "77"],
        "no run has gain 77, which is to be held out; gains of the runs: 200, 400, 800",
    ),
    (["excite", "--config", "pandaa", "--output", "x.yaml"], "unknown robot 'pandaa'; valid: emps"),
    (["excite", "--output", "x.yaml"], "no robot: give --model FILE, or --machine"),
    (["identify-arm", "--config", "train.csv", "--data", "train.csv"], "unknown robot 'train.csv'"),
    # robots
    (["excite", "--urdf", "cut.urdf", "--output", "x.yaml"], "cut.urdf is not a URDF: unclosed token"),
    (["excite", "--urdf", "sdf.urdf", "--output", "x.yaml"], "its root is <sdf>, expected <robot>"),
    (["excite", "--urdf", "train.csv", "--output", "x.yaml"], "train.csv is not a URDF"),
    (["setup-robot", "--urdf", "cut.urdf", "--data", "BAG", "--output", "m.yaml"], "cut.urdf is not a URDF"),
    (
        ["setup-robot", "--urdf", "arm.urdf", "--data", "empty", "--output", "m.yaml"],
        "no recordings in empty",
    ),
    (["setup-robot", "--urdf", "arm.urdf", "--data", "BAG", "--output", "m.yaml"], "(base, shoulder, elbow)"),
    (["identify-arm", "--urdf", "arm.urdf", "--data", "BAG"], "with joints joint"),
    ([*ARM, "train.csv", "--urdf", "alien.urdf"], "shoulder"),
    ([*ARM, "train.csv", "--urdf", "grams.urdf"], "masses in the URDF in grams?"),
    (["identify-arm", "--config", "broken.yaml", "--data", "train.csv"], "broken.yaml is not valid YAML"),
    *[
        (["excite", "--urdf", f"{name}.urdf", "--output", "x.yaml"], f"{name}.urdf: {cause}")
        for name, cause in {
            "no_mass": "link upper: mass: expected a finite number [kg], found '4,0'",
            "nan_mass": "link upper: mass: expected a finite number [kg], found 'nan'",
            "negative": "link upper: the mass must not be negative, found -4 kg",
            "two_parents": "link upper has two parent joints, shoulder and elbow",
            "circle": "joint base is part of a loop",
            "one_name": "joint shoulder occurs twice",
            "childless": "joint elbow: no child link",
            "two_numbers": "joint elbow: origin xyz: expected 3 finite numbers [m], found '0.3 0'",
            "no_axis": "joint shoulder: the axis is zero",
            "crossed": "the lower limit of base, shoulder, elbow is above the upper one",
        }.items()
    ],
    ([*ARM, "train.csv", "--urdf", "circle.urdf"], "joint base is part of a loop"),
    (
        ["identify-arm", "--config", "plain.yaml", "--data", "train.csv"],
        "no section 'identification'; it has none",
    ),
    # recordings of an arm
    ([*ARM, "constant.csv"], "the torques are the same in all rows"),
    ([*ARM, "nan.csv"], "position is missing or not finite in row 100"),
    ([*ARM, "infinite.csv"], "effort is missing or not finite in row 100"),
    ([*ARM, "degrees.csv"], "degrees (set unit: deg)"),
    ([*ARM, "degrees_and_rates.csv"], "degrees (set unit: deg)"),
    ([*ARM, "milliseconds.csv"], "is the time in milliseconds?"),
    ([*ARM, "huge.csv"], "arm.urdf allows 60: is it in N mm, or a current"),
    ([*ARM, "backwards.csv"], "time does not increase from row 50 to row 51"),
    ([*ARM, "repeated.csv"], "time does not increase from row 0 to row 1"),
    ([*ARM, "rest.csv"], "no joint moves"),
    ([*ARM, "short.csv"], "too few"),
    ([*ARM, "narrow.csv"], "narrow.csv has 1 columns, but columns 1 to 3 are needed"),
    ([*ARM, "without_effort.csv"], "has 9 columns, but columns 7 to 9 are needed"),
    ([*ARM, "text.csv"], "text.csv has no numeric column"),
    ([*ARM, "empty.csv"], "empty.csv is empty"),
    ([*ARM, "head.csv"], "head.csv has no rows of data"),
    ([*ARM, "empty"], "no recordings in empty"),
    ([*ARM, "nowhere"], "nowhere: no such file"),
]

WRONG_USAGE = [
    (["fit", "--actuator", "xl330", "--model", "m7", "--logdir", "BAG"], "invalid choice: 'm7'"),
    ([*FIT[:-1], "0"], "--trials: must be at least 1, found 0"),
    ([*FIT[:-1], "-5"], "--trials: must be at least 1, found -5"),
    ([*FIT[:-1], "many"], "--trials"),
    ([*FIT, "--effects", "magic"], "unknown magic; valid: current-limit, supply, delay"),
    ([*FIT, "--arm-mass", "-1"], "must be zero or positive, found -1"),
    (["excite", "--urdf", "arm.urdf", "--duration", "1e-3"], "must be between 0.5 and 3600 s, found 1e-3"),
    ([*FIT, "--no-such-option"], "unrecognized arguments: --no-such-option"),
    (
        ["diagram", "--params", "a.json", "--max-torque", "-1", "--output", "d.png"],
        "must be positive, found -1",
    ),
    (["compensate", "--params", "a.json", "--states", "BAG", "--max-torque", "nan"], "found nan"),
    (
        ["excite", "--urdf", "arm.urdf", "--output", "x.yaml", "--seconds", "nan"],
        "must be positive, found nan",
    ),
    (["emulate", "--servo", "xl999", "--link", "port"], "invalid choice: 'xl999'"),
    (["identify", "srvo"], "did you mean servo?"),
]


def words_of(words):
    return [str(BAG) if word == "BAG" else word for word in words]


@pytest.mark.parametrize(("words", "message"), CASES, ids=[" ".join(words) for words, _ in CASES])
def test_an_error_is_one_line_that_names_its_cause(words, message, place, monkeypatch, capsys):
    """Exit code 1, no traceback, and no file appears or changes."""
    monkeypatch.chdir(place)
    before = {path: path.lstat().st_mtime_ns for path in place.rglob("*")}
    assert main(words_of(words)) == 1
    lines = capsys.readouterr().err.strip().splitlines()
    errors = [line for line in lines if not line.startswith("stribeck: warning:")]
    assert len(errors) == 1, lines
    assert message in errors[0]
    assert {path: path.lstat().st_mtime_ns for path in place.rglob("*")} == before


@pytest.mark.parametrize(("words", "message"), WRONG_USAGE, ids=[" ".join(words) for words, _ in WRONG_USAGE])
def test_wrong_usage_is_one_line_with_the_place_of_help(words, message, place, monkeypatch, capsys):
    """Exit code 1, as for other bad input: 2 is what --strict says about a result."""
    monkeypatch.chdir(place)
    assert main(words_of(words)) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert "(help: stribeck" in line or "(stribeck alone shows all commands)" in line


def test_names_with_blanks_and_other_letters(place, tmp_path, monkeypatch, capsys):
    """Folders and files may be called anything that a file system allows."""
    monkeypatch.chdir(tmp_path)
    logs = virtual_logs(TINY, truth_of(TINY, "m1"), "m1", Encoder(0.0015))
    write_bag(tmp_path / "Gelenk – größer & 2" / "erste fahrt", logs)
    result = tmp_path / "é è" / "m1.json"
    words = ["--logdir", "Gelenk – größer & 2", "--trials", "200", "--quiet", "--output", str(result)]
    words += ["--integrator", "paper", "--dt", "0.005"]  # compiles fastest
    assert main(["fit", "--actuator", "mx106", "--model", "m1", *words]) == 0
    assert main(["evaluate", "--params", str(result), "--logdir", "Gelenk – größer & 2"]) == 0
    assert "mean of all runs" in capsys.readouterr().out
