"""``stribeck export``: what is written, what it costs, and what is refused."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
import yaml

from helpers import PUBLISHED, XL330, needs_xl330, published, write_json
from stribeck.cli.main import main
from stribeck.evaluate.assessment import stepping_of
from stribeck.exports.projection import missing_terms, plain, rest_remark
from stribeck.exports.registry import FORMATS
from stribeck.exports.runs import batch_of_source, bench_runs
from stribeck.exports.task import ExportTask, JointServo
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive, write_drive
from stribeck.model.joint import Drive, Servo
from stribeck.model.law import friction_budget, law_named


def params(folder, law="m6", servo="xl330", **more):
    """A parameter file of published values."""
    path = folder / f"{servo}_{law}.json"
    terms = {"asymmetric": "friction_base_negative" in more, "offset": "torque_offset" in more}
    values = {**published(servo, law), **more}
    if "R" not in load_actuator(servo).published[law]:
        del values["R"]
    effects = ("saturation",) if "torque_saturation" in more else ()
    actuator = load_actuator(servo).with_effects(effects)
    law_used = law_named(law).with_terms(**terms)
    write_drive(path, Drive(actuator, law_used, values))
    return path


def export(folder, form, *words, output="out"):
    """The exit code of one export; the file is ``folder / output``."""
    return main(["export", "--to", form, "--output", str(folder / output), *map(str, words)])


def loss(folder, output="out"):
    """What the file beside the export says about its first joint."""
    return json.loads((folder / f"{output}.loss").read_text())["joints"][0]


def test_the_list_explains_every_format(capsys):
    """Without any other option."""
    assert main(["export", "--to", "list"]) == 0
    said = capsys.readouterr().out
    assert all(f"\n{name} " in said for name in FORMATS)


@pytest.mark.parametrize(("servo", "law"), PUBLISHED)
def test_bam_files_come_back_bit_by_bit(tmp_path, servo, law):
    """All laws of all published servos, and nothing but the keys of the format."""
    source, target = read_drive(params(tmp_path, law, servo)), tmp_path / "out"
    (text,) = FORMATS["bam"].write(ExportTask((JointServo("a", Servo(source, 1.0)),), target)).files.values()
    target.write_text(text)
    assert "stribeck" not in json.loads(text)
    found = read_drive(target)
    assert (found.values, found.law, found.actuator) == (source.values, source.law, source.actuator)


def test_the_table_is_the_law(tmp_path):
    """Every row is a state and its budget; velocities and loads of both signs."""
    source = params(tmp_path)
    assert export(tmp_path, "csv", "--params", source, "--joint", "a", "b") == 0
    head, *rows = list(csv.reader((tmp_path / "out").read_text().splitlines()))
    assert head[0] == "joint"
    assert {row[0] for row in rows} == {"a", "b"}
    velocity, motor, external, positive, negative = np.array([row[1:] for row in rows], dtype=float).T
    file = read_drive(source)
    wanted = friction_budget(file.law, file.values, motor, external, velocity)
    np.testing.assert_allclose([positive, negative], wanted, rtol=1e-7, atol=1e-9)
    assert velocity.min() == -velocity.max()
    assert motor.min() == -motor.max()


def test_the_table_has_positions_only_where_friction_depends_on_them(tmp_path):
    """A ripple is a torque beside friction: the table is that without it; with the term `position` it has 25 positions."""
    drive = read_drive(params(tmp_path, "m1"))
    wave = {"ripple_order": 4.0, "ripple_cosine": 0.01, "ripple_sine": 0.0}
    curve = {"friction_slope": 0.01, "friction_curve": 0.0, "friction_centre": 0.0, "friction_reach": 1.0}
    tables = []
    for more, terms in (({}, {}), (wave, {"ripple": True}), (curve, {"position": True})):
        one = replace(drive, law=drive.law.with_terms(**terms), values={**drive.values, **more})
        task = ExportTask((JointServo("a", Servo(one, 1.0)),), tmp_path / "out")
        (text,) = FORMATS["csv"].write(task).files.values()
        tables.append(text.splitlines())
    plain, rippled, curved = tables
    assert rippled == plain
    assert curved[0].startswith("joint,position [rad],velocity")
    assert len(curved) - 1 == 25 * (len(plain) - 1)


def test_the_table_covers_the_limits_of_the_urdf(tmp_path, capsys):
    """Its velocity and effort; without one, ranges that are not known are stated, and the law is called unchanged."""
    values = {"friction_base": 8.0, "friction_viscous": 1.0, "ratio": 1.0, "armature": 0.1, "q_offset": 0.0}
    source = write_json(tmp_path / "arm.json", {**values, "model": "m1", "actuator": "torque_joint"})
    robot = tmp_path / "arm.urdf"
    robot.write_text(
        '<robot name="arm"><link name="base"/><link name="upper"/><joint name="elbow" type="revolute"><parent link="base"/>'
        '<child link="upper"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="2.5" effort="150"/></joint></robot>'
    )
    options = ["--params", source, "--joint", "elbow"]
    assert export(tmp_path, "csv", *options, "--model", robot) == 0
    rows = list(csv.reader((tmp_path / "out").read_text().splitlines()))[1:]
    velocity, motor, _, positive, _ = np.array([row[1:] for row in rows], dtype=float).T
    assert (velocity.max(), motor.max(), positive.max()) == (2.5, 150.0, 10.5)
    printed = capsys.readouterr()
    assert "limits of the joints are not known" not in printed.err
    assert "elbow: the identified law, unchanged; lost: nothing" in printed.out
    assert export(tmp_path, "csv", *options) == 0
    printed = capsys.readouterr()
    assert (
        "the table covers elbow ±10 rad/s, ±1000 N m: beyond the recorded motion it is extrapolated"
        in printed.err
    )


def test_joints_have_the_names_of_their_files(tmp_path):
    """One file for each joint; the header has the functions of both."""
    files = [params(tmp_path, "m1"), params(tmp_path, "m4")]
    assert export(tmp_path, "c", "--params", *files) == 0
    text = (tmp_path / "out").read_text()
    assert "xl330_m1_friction_budget" in text
    assert "xl330_m4_friction_budget" in text
    entries = json.loads((tmp_path / "out.loss").read_text())["joints"]
    assert [entry["params"] for entry in entries] == [str(file) for file in files]
    assert [entry["from_source"] for entry in entries] == [{"mean": 0.0, "worst": 0.0}] * 2


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("vrml", ["unknown format 'vrml'", "bam", "--format list"]),
        ("c --joint a a", ["'a' twice"]),
        ("c --joint a --params P P", ["2 parameter files for 1 joints"]),
        ("c --model arm.xml", ["remove --model arm.xml"]),
        ("c --output .", ["folder"]),
        ("c --output P", ["is also an input"]),
        ("c --output P/out.h", ["xl330_m6.json"]),
        ("c --params absent.json", ["absent.json"]),
        ("c --params .", ["folder"]),
        ("c --actuator mx64", ["belongs to the servo 'xl330', but --servo is 'mx64'"]),
        ("c --actuator none", ["none"]),
        ("c --logdir absent", ["absent"]),
        ("c --kp 0", ["--kp"]),
        ("c --kp nan", ["--kp"]),
        ("c --supply -5", ["--supply"]),
        ("c --timestep 0", ["--step"]),
        ("c --bench mass=1", ["--bench is only for recordings: name recordings"]),
        ("c --arm-mass 0", ["--arm-mass is only for recordings: name recordings"]),
        ("bam --joint a b", ["one servo", "found 2 (a, b)"]),
        ("onnx --joint a b", ["contains one joint, found 2"]),
        ("mjcf --strict --kp 400 --supply 5", ["mjcf cannot represent", "Stribeck", "load"]),
        ("mjcf --plain --supply 5", ["gain of the firmware", "--kp"]),
        ("mjcf --plain --kp 400", ["supply voltage", "states none", "--supply"]),
        ("isaaclab --plain --kp 400", ["supply voltage", "--supply"]),
        ("isaaclab --plain --kp 400 --supply 5", ["a .py and a .yaml file"]),
        ("genesis --plain --kp 400", ["supply voltage", "--supply"]),
        ("ros2_control --kp 400", ["supply voltage", "--supply"]),
        ("urdf --plain --supply 5", ["writes into a robot file", "--model"]),
        ("usd --plain --kp 400 --supply 5 --model absent.usda", ["absent.usda"]),
        ("isaaclab-bam --kp 400", ["supply voltage", "--supply"]),
        ("isaaclab-bam --supply 5", ["gain of the firmware", "--kp"]),
        ("isaaclab-bam --kp 400 --supply 5", ["isaaclab-bam writes a .py and a .yaml file"]),
        (
            "isaaclab-bam --strict --kp 400 --supply 5 --output x.py",
            ["cannot represent the quadratic load term"],
        ),
        ("isaaclab-bam --kp 400 --kd -1 --supply 5", ["--kd"]),
        ("usd-bam --kp 400 --supply 5", ["writes into a robot file", "--model"]),
        ("mjlab --kp 400 --supply 5", ["name a .py file"]),
        ("mjlab --kp 400", ["supply voltage", "--supply"]),
    ],
)
def test_what_cannot_be_exported_ends_in_one_line(tmp_path, monkeypatch, capsys, words, parts):
    """An error in one line, and nothing is written."""
    source = params(tmp_path)
    monkeypatch.chdir(tmp_path)
    given = [word.replace("P", str(source)) if word[0] == "P" else word for word in words.split()]
    rest = [] if "--params" in given else ["--params", str(source)]
    rest += [] if "--output" in given else ["--output", "out"]
    before = source.read_bytes()
    assert main(["export", "--to", *given, *rest]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[-1].startswith("stribeck")
    assert all(part in said[-1] for part in parts), said
    assert [path.name for path in tmp_path.iterdir()] == [source.name]
    assert source.read_bytes() == before


def test_inputs_are_not_written_over(tmp_path, capsys):
    """The parameter file as output."""
    source = params(tmp_path)
    before = source.read_bytes()
    assert export(tmp_path, "bam", "--params", source, output=source.name) == 1
    assert "is also an input" in capsys.readouterr().err
    assert source.read_bytes() == before


def test_plain_leaves_terms_out(tmp_path, capsys):
    """With the terms that are lost by name, and the error that this costs."""
    source = params(tmp_path, "m2")
    assert export(tmp_path, "mjcf", "--params", source, "--plain", "--kp", "400", "--supply", "5") == 0
    found = loss(tmp_path)
    assert found["lost"] == ["the Stribeck effect (friction that falls with speed)"]
    assert found["from_source"]["mean"] > 1e-3
    assert "lost: the Stribeck effect" in capsys.readouterr().out
    friction = f'frictionloss="{published("xl330", "m2")["friction_base"]:.15g}"'
    assert friction in (tmp_path / "out").read_text()


SATURATION = {"torque_saturation": 0.18}
"""Of an XL330 by its datasheet [1/A]."""


@pytest.mark.parametrize("form", FORMATS)
def test_iron_saturation_is_held_or_said_to_be_lost(tmp_path, form):
    """Formats with friction alone, or with all numbers of the motor, keep the law; the others name what they lack."""
    source = read_drive(params(tmp_path, "m1", **SATURATION))
    missing = "the effect saturation" in missing_terms(source, FORMATS[form])
    assert missing == (form not in ("c", "ros2_control", "onnx", "csv"))
    held = plain(source, FORMATS[form])
    assert ("torque_saturation" in held.values) != missing
    assert missing or (held.values, held.actuator) == (source.values, source.actuator)


def test_friction_at_rest_that_gets_lost_is_told(tmp_path):
    """Moving runs do not show that a joint no longer holds itself; half of the friction is still enough."""
    source, form = read_drive(params(tmp_path, "m2")), FORMATS["mjcf"]
    whole = source.values["friction_base"] + source.values["friction_stribeck"]
    held = [
        replace(source, law=law_named("m1"), values={**source.values, "friction_base": share * whole})
        for share in (0.4, 0.6)
    ]
    assert f"{0.4 * whole:.3g} in the export" in rest_remark(source, held[0], form)
    assert rest_remark(source, held[1], form) is None
    assert rest_remark(source, held[0], FORMATS["drake"]) is None


@pytest.mark.parametrize("law", ["m1", "m6"])
def test_one_bench_run_is_a_rest_that_half_of_the_friction_does_not_hold(tmp_path, law):
    """What happened: a projection of an M6 over moving runs had no Coulomb friction, and a joint sank under its weight."""
    source = read_drive(params(tmp_path, law))
    rests = [log for log in bench_runs(source, 400.0, 5.0) if log.trajectory == "rest"]
    weaker = replace(source, law=law_named("m1"), values=published("xl330", "m1") | source.values)
    base = 0.5 * friction_budget(source.law, source.values, 0.0, 0.0, 0.0)[0]
    weaker = plain(replace(weaker, values=weaker.values | {"friction_base": base}), FORMATS["mjcf"])
    moved = [
        np.ptp(batch_of_source(file, rests, stepping_of(source))[1].position, axis=0)
        for file in (source, weaker)
    ]
    assert np.all(moved[0] == 0.0)
    assert np.all(moved[1] > 0.004)


def test_ros_parameters_hold_the_saturation(tmp_path):
    """The controller gets it, and the error of the export is zero."""
    source = params(tmp_path, "m1", **SATURATION)
    assert export(tmp_path, "ros2_control", "--params", source, "--kp", "400", "--supply", "5") == 0
    found = yaml.safe_load((tmp_path / "out").read_text())["friction_compensation"]["ros__parameters"]
    assert found["friction"]["joint"]["torque_saturation"] == SATURATION["torque_saturation"]
    assert loss(tmp_path)["from_source"] == {"mean": 0.0, "worst": 0.0}


@pytest.mark.slow
def test_a_projection_makes_up_for_iron_saturation(tmp_path, capsys):
    """Without it a servo is too strong near stall; fitted motor constants take a third of the error away, and the loss is named."""
    source = params(tmp_path, "m1", **SATURATION)
    errors = {}
    for name, more in (("projected", []), ("plain", ["--plain"])):
        assert (
            export(tmp_path, "mjcf", "--params", source, "--kp", "400", "--supply", "5", *more, output=name)
            == 0
        )
        assert "lost: the effect saturation" in capsys.readouterr().out
        errors[name] = loss(tmp_path, name)["from_source"]["mean"]
    assert errors["projected"] < 0.67 * errors["plain"]


@pytest.mark.slow
@pytest.mark.timeout(900)
@needs_xl330
def test_a_projected_law_moves_as_one_fitted_directly(tmp_path):
    """M6 on the real runs as M1, in MuJoCo and in Isaac Lab: at most 1.10 of M1's own error, and 15 % better than plain."""
    recordings = ["--logdir", str(XL330), "--arm-mass", "0"]
    for law in ("m1", "m6"):
        words = ["--model", law, "--actuator", "xl330", "--output", str(tmp_path / f"{law}.json")]
        assert main(["fit", *words, *recordings]) == 0
    for form in ("mjcf", "isaaclab"):
        errors = {}
        for name, law, more in [("direct", "m1", []), ("projected", "m6", []), ("plain", "m6", ["--plain"])]:
            words = ["--params", tmp_path / f"{law}.json", *recordings, "--kp", "400", *more]
            assert export(tmp_path, form, *words, output=f"{name}.yaml") == 0
            errors[name] = loss(tmp_path, f"{name}.yaml")["from_measurement"]["mean"]
        assert errors["projected"] < 1.10 * errors["direct"]
        assert errors["projected"] < 0.85 * errors["plain"]
