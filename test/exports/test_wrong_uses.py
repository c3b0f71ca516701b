"""Wrong uses of ``stribeck export``: one clear line each, and nothing written, changed or left behind."""

import json

import pytest

from drawn_made import uncertain_drive
from helpers import published
from stribeck.cli.main import main
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import write_drive
from stribeck.model.joint import Drive
from stribeck.model.law import law_named

MJCF = '<mujoco><worldbody><body><joint name="hip" axis="0 1 0"/><geom size=".1" mass="1"/></body></worldbody></mujoco>'
URDF = '<robot name="a"><link name="b"/></robot>'
LIMITED = (
    '<robot name="a"><joint name="knee" type="revolute"><limit velocity="{}" effort="9"/></joint></robot>'
)

GIVEN = ("--kp", "400", "--supply", "7.4")

WRONG = {
    "unknown format": ("gazebo --params m4.json --output o", "unknown format 'gazebo'; valid:"),
    "no file": ("mjcf --output o.xml", "--params"),
    "no output": ("mjcf --params m4.json", "--output"),
    "no such file": ("mjcf --params none.json --output o.xml", "none.json"),
    "no parameter file": ("mjcf --params robot.xml --output o.xml", "robot.xml"),
    "no gain": ("mjcf --params m4.json --supply 7.4 --output o.xml", "give it with --kp"),
    "no supply": ("isaaclab --params m4.json --kp 400 --output o.py", "give it with --supply"),
    "no supply of the drive": (
        "isaaclab-bam --params m4.json --kp 400 --output o.py",
        "give it with --supply",
    ),
    "no robot": ("urdf --params m4.json --supply 7.4 --output o.urdf", "name it with --model"),
    "robot not used": ("bam --params m4.json --model robot.xml --output o.json", "does not use a robot file"),
    "no joint of that name": (
        "csv --params m4.json --joint ankle --model arm.urdf --output o.csv",
        "no movable joint ankle; valid: knee",
    ),
    "limit without a number": (
        "csv --params m4.json --joint knee --model wrong.urdf --output o.csv",
        "the limit of velocity must be a finite number of at least 0, found 'fast'",
    ),
    "missing robot": ("mjcf --params m4.json {} --model none.xml --output o.xml", "none.xml"),
    "onto its input": ("mjcf --params m4.json {} --model robot.xml --output robot.xml", "robot.xml"),
    "onto its parameters": ("bam --params m4.json --output m4.json", "m4.json"),
    "no such joint": ("mjcf --params m4.json {} --joint knee --model robot.xml --output o.xml", "knee"),
    "joint twice": ("c --params m4.json --joint a a --output o.h", "'a' twice"),
    "files and joints": (
        "c --params m4.json m1.json m4.json --joint a b --output o.h",
        "3 parameter files for 2 joints",
    ),
    "strict": ("mjcf --params m4.json {} --strict --output o.xml", "cannot represent"),
    "effects of bam": ("bam --params limited.json --strict --output o.json", "current-limit"),
    "wrong ending": ("isaaclab-bam --params m4.json {} --output o.txt", "a .py and a .yaml file"),
    "ending of mjlab": ("mjlab --params m4.json {} --output o.yaml", "name a .py file"),
    "servo of mjlab": (
        "mjlab --params sts.json --kp 32 --supply 12 --output o.py",
        "does not know the servo",
    ),
    "servo of the drive": (
        "isaaclab-bam --params current.json --kp 4 --supply 24 --output o.py",
        "choose the format isaaclab or mjcf",
    ),
    "delay without step": ("isaaclab-bam --params late.json {} --output o.py", "--step"),
    "recording missing": ("c --params m4.json none.bag --output o.h", "none.bag"),
    "recordings described": (
        "c --params m4.json --arm-mass 0 --output o.h",
        "--arm-mass is only for recordings",
    ),
    "draws of nothing uncertain": ("c --params limited.json --draws 3 --output o.h", "states no intervals"),
    "draws of a controller": (
        "ros2_control --params m4.json {} --draws 3 --output o.yaml",
        "cannot contain draws",
    ),
    "too many files": ("c --params m4.json --draws 20000 --output o.h", "at most 10000"),
    "seed without draws": ("c --params m4.json --seed 3 --output o.h", "--seed is for draws only"),
    "units without draws": ("c --params m4.json --same joint --output o.h", "--same is for draws only"),
    "units of one file": (
        "c --params m4.json --joint a b --draws 2 --same a b --output o.h",
        "its own parameter file",
    ),
    "unknown unit": ("c --params m4.json m1.json --draws 2 --same m4 m9 --output o.h", "'m9'; valid: m4, m1"),
    "units of two laws": ("c --params m4.json m1.json --draws 2 --same m4 m1 --output o.h", "same law"),
    "robot of another kind": (
        "urdf --params m4.json --supply 7.4 --joint hip --model robot.xml --output o.urdf",
        "robot.xml",
    ),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with parameter files and a robot."""
    (tmp_path / "robot.xml").write_text(MJCF)
    (tmp_path / "arm.urdf").write_text(LIMITED.format("2.5"))
    (tmp_path / "wrong.urdf").write_text(LIMITED.format("fast"))
    for law in ("m1", "m4"):
        write_drive(tmp_path / f"{law}.json", uncertain_drive(law))
    kept = {"kt", "R", "armature", "q_offset", *law_named("m1").parameter_names}
    values = {name: value for name, value in published("xl330", "m1").items() if name in kept}
    for name, effect, key, value in (
        ("limited", "current-limit", "current_limit", 0.9),
        ("late", "delay", "command_delay", 0.007),
    ):
        actuator = load_actuator("xl330").with_effects([effect])
        write_drive(tmp_path / f"{name}.json", Drive(actuator, law_named("m1"), {**values, key: value}))
    write_drive(tmp_path / "sts.json", Drive(load_actuator("sts3250"), law_named("m1"), values))
    current = load_actuator("erob80_50")
    write_drive(tmp_path / "current.json", Drive(current, law_named("m1"), published("erob80_50", "m1")))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_use_is_one_clear_line(folder, capsys, case):
    words, part = WRONG[case]
    before = {path: path.read_bytes() for path in folder.rglob("*")}
    given = [word for each in words.split() for word in (GIVEN if each == "{}" else (each,))]
    assert main(["export", "--format", *given]) == 1
    said = [line for line in capsys.readouterr().err.splitlines() if "warning:" not in line]
    assert len(said) == 1, said
    assert part in said[0]
    assert "Traceback" not in said[0]
    assert {path: path.read_bytes() for path in folder.rglob("*")} == before


def test_files_beside_an_export_are_no_files_of_other_programs(folder):
    """BAM reads all *.json of a folder, others all *.xml: what states the loss is called otherwise."""
    (folder / "bam").mkdir()
    assert main(["export", "--format", "bam", "--params", "m4.json", "--output", "bam/servo.json"]) == 0
    assert sorted(path.name for path in (folder / "bam").iterdir()) == ["servo.json", "servo.json.loss"]
    assert [path.name for path in (folder / "bam").glob("*.json")] == ["servo.json"]
    assert json.loads((folder / "bam" / "servo.json.loss").read_text())["format"] == "bam"
