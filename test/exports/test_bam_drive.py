"""The servo drive of Isaac Lab, Newton and mjlab: what is written moves as the source law does with the same step."""

import ast
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

import bam_kernels
from bam_made import DRIVE, servo_of, written
from helpers import STS3250, XL330, needs_sts3250, needs_xl330, refusal
from stribeck.cli.main import main
from stribeck.evaluate.assessment import Stepping
from stribeck.exports.bam_drive import QUADRATIC_IN_BOTH_DIRECTIONS, drive_motion, law_of_drive
from stribeck.exports.isaaclab_bam import SETTINGS
from stribeck.exports.loss import difference
from stribeck.exports.projection import lost, missing_terms
from stribeck.exports.registry import FORMATS
from stribeck.exports.runs import batch_of_source, bench_runs
from stribeck.exports.task import ExportTask, JointServo
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive, write_drive
from stribeck.model.control_laws import Gains
from stribeck.model.joint import Drive, Servo
from stribeck.model.law import LAWS, friction_budget, law_named
from stribeck.recordings.sources import read_recordings


def apart(one: np.ndarray, other: np.ndarray) -> float:
    """Largest difference of position [mrad]."""
    return 1e3 * float(np.max(np.abs(one - other)))


@pytest.mark.one_case_is_quick
@needs_xl330
@pytest.mark.parametrize("law", ["m1", "m2", "m3", "m4", "m5"])
@pytest.mark.parametrize("more", [{}, {"current_limit": 0.9}])
def test_the_written_drive_moves_as_the_law_with_the_same_step(tmp_path, law, more):
    """Over the 12 runs of an XL330: to 0.01 mrad, at the drive's usual step; the law itself is Stribeck's."""
    file = servo_of(law, **more)
    _, runs = batch_of_source(file, read_recordings(XL330, arm_mass=0.0), Stepping(0.005))
    servo = Servo(file, 400.0, supply_voltage=7.4)
    own = drive_motion(servo, runs, 0.005)
    drive = written(tmp_path, file)
    theirs = bam_kernels.motion(drive, runs, 0.005, file.values["q_offset"], None)
    assert apart(own, theirs[: len(own)]) < 0.01
    assert drive["motor"]["model"] == {"m3": "m5", "m4": "m5"}.get(law, law)
    assert 0.1 < 1e3 * difference(own, runs.position, runs.weight).mean < 5.0  # the step itself


@pytest.mark.one_case_is_quick
@needs_sts3250
@pytest.mark.parametrize("ramp", [None, 5.0], ids=["no ramp", "ramp"])
@pytest.mark.parametrize("law", ["m1", "m2", "m3", "m4", "m5"])
def test_the_same_over_the_runs_of_an_sts3250(tmp_path, law, ramp):
    """As it is, and with a firmware that ramps its goals, which the sender of goals has to do then."""
    file = servo_of(law, "sts3250")
    control = replace(file.actuator.control, goal_speed=ramp)
    file = replace(
        file, actuator=replace(file.actuator, name="ramped", control=control) if ramp else file.actuator
    )
    _, runs = batch_of_source(file, read_recordings(STS3250, arm_mass=0.0), Stepping(0.005))
    own = drive_motion(Servo(file, 32.0, supply_voltage=12.0), runs, 0.005)
    drive = written(tmp_path, file, 32.0, 12.0)
    theirs = bam_kernels.motion(drive, runs, 0.005, file.values["q_offset"], ramp)
    assert apart(own, theirs[: len(own)]) < 0.01
    named = ("the speed limit of the firmware's goal (the sender of goals must keep it)",)
    assert lost(file, DRIVE) == (named if ramp else ())


def test_the_drives_quadratic_term_counts_in_both_directions(tmp_path):
    """M6: the budget of the drive is the kernel's, above the paper's where motor and load act in one direction alone."""
    file = servo_of("m6")
    rng = np.random.default_rng(0)
    velocity, motor, external = rng.uniform(-1.0, 1.0, (3, 2000))
    law = law_of_drive(file.law)
    ours = friction_budget(law, {**file.values, "friction_viscous": 0.0}, motor, external, velocity)[0]
    theirs = bam_kernels.budget(written(tmp_path, file)["motor"], velocity, motor, external)
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-15)
    paper = friction_budget(file.law, {**file.values, "friction_viscous": 0.0}, motor, external, velocity)[0]
    opposed = motor * external < 0.0
    np.testing.assert_allclose(ours[opposed], paper[opposed], rtol=0.0, atol=1e-15)
    assert np.all(ours[~opposed] > paper[~opposed])
    assert missing_terms(file, DRIVE) == (
        f"the quadratic load term (instead: {QUADRATIC_IN_BOTH_DIRECTIONS.title})",
    )


def test_what_the_drive_has_no_place_for_is_named():
    """Asymmetry, offset, saturation, derivative gain; strict exports refuse them."""
    file = servo_of("m4")
    law = file.law.with_terms(asymmetric=True, offset=True)
    more = {
        "friction_base_negative": 0.02,
        "friction_viscous_negative": 0.01,
        "torque_offset": 0.01,
        "torque_saturation": 0.18,
    }
    rich = Drive(file.actuator.with_effects(["saturation"]), law, {**file.values, **more})
    words = " ".join(lost(rich, DRIVE, Gains(400.0, 0.0, 5.0)))
    for word in ("direction", "offset", "saturation", "derivative gain"):
        assert word in words
    assert lost(file, DRIVE) == ()


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("law", LAWS)
def test_it_comes_back(tmp_path, law):
    """Every law by import-params, M3 and M4 as M5 with the same motion; current limit and delay too."""
    file = servo_of(law, current_limit=0.9, command_delay=0.01)
    written(tmp_path, file, timestep=0.005)
    words = [
        str(tmp_path / "out.yaml"),
        "--format",
        "isaaclab-bam",
        "--actuator",
        "xl330",
        "--output",
        str(tmp_path / "back.json"),
    ]
    assert main(["import-params", *words]) == 0
    back = read_drive(tmp_path / "back.json")
    assert back.values["current_limit"] == 0.9
    assert back.values["command_delay"] == pytest.approx(0.01)
    runs = batch_of_source(file, bench_runs(file, 400.0, 7.4), Stepping(0.005))[1]
    moved = Stepping(0.005).motion(
        replace(back, values={**back.values, "q_offset": file.values["q_offset"]}), runs
    )
    assert apart(moved.position, runs.position) < 0.01


def test_a_delay_needs_the_step_that_it_is_counted_in(tmp_path):
    """Rounded to whole steps, which the remark says; without a step there is no number to write."""
    file = servo_of("m1", command_delay=0.007)
    assert written(tmp_path, file, timestep=0.002)["min_delay"] == 4  # 3.5, rounded to even
    refusal(lambda: written(tmp_path, file), "7 ms", "`step`")


@pytest.mark.parametrize(("name", "law"), [("erob80_50", "m4"), ("unitree_go1", "m1")])
def test_servos_without_a_bridge_are_refused(tmp_path, name, law):
    """One line that says what the drive has, and where to go instead."""
    actuator = load_actuator(name)
    values = dict.fromkeys((*actuator.control.required_parameters, *law_named(law).parameter_names), 0.1)
    task = ExportTask(
        (JointServo("a", Servo(Drive(actuator, law_named(law), {**values, "R": 1.0}), 1.0)),),
        tmp_path / "out.py",
    )
    refusal(lambda: DRIVE.write(task), "joint 'a'", name, "isaaclab")


def test_python_and_yaml_have_the_same_numbers(tmp_path):
    """The module is Python that calls BamActuatorCfg and BamMotorCfg with keywords."""
    drive = written(tmp_path, servo_of("m5"))
    tree = ast.parse((tmp_path / "out.py").read_text())
    calls = {
        node.func.id: {word.arg: word.value for word in node.keywords}
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    }
    motor = {name: ast.literal_eval(value) for name, value in calls["BamMotorCfg"].items()}
    assert motor == drive["motor"]
    assert {name: ast.literal_eval(calls["BamActuatorCfg"][name]) for name in SETTINGS} == {
        name: drive[name] for name in SETTINGS
    }
    assert ast.literal_eval(calls["BamActuatorCfg"]["joint_names_expr"]) == ["elbow"]


def test_mjlab_gets_a_module_and_a_file_for_each_joint(tmp_path):
    """The files are those of the BAM program; gain and supply stand in the module."""
    joints = tuple(
        JointServo(name, Servo(servo_of("m4"), 400.0, supply_voltage=7.4)) for name in ("hip", "2 knee")
    )
    found = FORMATS["mjlab"].write(ExportTask(joints, tmp_path / "legs.py")).files
    assert [path.name for path in found] == ["legs.py", "legs_hip.json", "legs__2_knee.json"]
    text = found[tmp_path / "legs.py"]
    assert json.loads(found[tmp_path / "legs_hip.json"])["model"] == "m4"
    ast.parse(text)
    assert text.count("BamActuatorCfg(") == 2
    assert "kp_fw=400.0" in text
    assert "vin=7.4" in text
    refusal(
        lambda: FORMATS["mjlab"].write(
            ExportTask((JointServo("a", Servo(servo_of("m4", "sts3250"), 32.0)),), tmp_path / "a.py")
        ),
        "does not know the servo 'sts3250'",
    )


def test_a_usd_layer_has_an_actuator_prim(tmp_path):
    """Names, kinds and values of the schema; armature and damping on the joint."""
    usd = pytest.importorskip("pxr.Usd", reason="usd-core is not installed: pip install '.[export]'")
    robot = tmp_path / "robot.usda"
    joint = 'def PhysicsRevoluteJoint "elbow"\n{\n}'
    robot.write_text(f'#usda 1.0\n(\ndefaultPrim = "arm"\n)\ndef Xform "arm"\n{{\n{joint}\n}}\n')
    file = servo_of("m4")
    task = ExportTask(
        (JointServo("elbow", Servo(file, 400.0, supply_voltage=7.4)),), tmp_path / "out.usda", robot
    )
    (tmp_path / "out.usda").write_text(FORMATS["usd-bam"].write(task).files[tmp_path / "out.usda"])
    stage = usd.Stage.Open(str(tmp_path / "out.usda"))
    prim = stage.GetPrimAtPath("/arm/elbow_actuator")
    assert prim.GetTypeName() == "NewtonActuator"
    assert "NewtonBamDriveAPI" in prim.GetMetadata("apiSchemas").GetAddedOrExplicitItems()
    assert [str(path) for path in prim.GetRelationship("newton:targets").GetTargets()] == ["/arm/elbow"]
    values = {one.GetName().removeprefix("newton:"): one.Get() for one in prim.GetAttributes()}
    assert values["loadFrictionMotor"] == pytest.approx(file.values["load_friction_base"], rel=1e-6)
    assert values["loadFrictionExternalStribeck"] == pytest.approx(
        file.values["load_friction_stribeck"], rel=1e-6
    )
    assert (values["stribeck"], values["loadDependent"], values["quadratic"]) == (1, 1, 0)
    assert values["kpFw"] == 400.0
    elbow = stage.GetPrimAtPath("/arm/elbow")
    assert np.degrees(elbow.GetAttribute("newton:damping").Get()) == pytest.approx(
        file.values["friction_viscous"], rel=1e-6
    )
    assert elbow.GetAttribute("newton:armature").Get() == pytest.approx(file.values["armature"], rel=1e-6)


@pytest.mark.skipif(bam_kernels.ISAACLAB is None, reason="no checkout of Isaac Lab: set STRIBECK_ISAACLAB")
def test_names_and_kinds_are_those_of_isaac_lab(tmp_path):
    """Read from the class definitions of a checkout, without running them."""
    source = Path(bam_kernels.ISAACLAB) / "source/isaaclab/isaaclab/actuators"
    motor = bam_kernels.class_fields(source / "actuator_bam_cfg.py", "BamMotorCfg")
    own = bam_kernels.class_fields(source / "actuator_bam_cfg.py", "BamActuatorCfg")
    base = bam_kernels.class_fields(source / "actuator_base_cfg.py", "ActuatorBaseCfg")
    drive = written(tmp_path, servo_of("m6"))
    kinds = {name: "str" if name == "model" else "float" for name in drive["motor"]}
    assert {name: motor[name] for name in kinds if name != "model"} == {
        n: k for n, k in kinds.items() if n != "model"
    }
    assert all(f"'{model}'" in motor["model"] for model in ("m1", "m2", "m5", "m6"))
    assert set(SETTINGS) <= own.keys() | base.keys()
    assert {own[name] for name in ("min_delay", "max_delay")} == {"int"}


@pytest.mark.skipif(bam_kernels.BAM is None, reason="no checkout of the BAM program: set STRIBECK_BAM")
def test_names_are_those_of_the_bam_program():
    """The fields that the module for mjlab sets."""
    fields = bam_kernels.class_fields(Path(bam_kernels.BAM) / "bam/mjlab.py", "BamActuatorCfg")
    assert {"json_path", "kp_fw", "vin"} <= fields.keys()


def test_m6_states_what_the_other_quadratic_term_costs(tmp_path, capsys):
    """Less than 1 mrad here, so the file has the source's own parameters; the loss file names the term."""
    source = servo_of("m6")
    write_drive(tmp_path / "m6.json", source)
    words = ["--to", "isaaclab-bam", "--params", str(tmp_path / "m6.json"), "--kp", "400", "--supply", "7.4"]
    assert main(["export", *words, "--output", str(tmp_path / "out.yaml")]) == 0
    said = json.loads((tmp_path / "out.yaml.loss").read_text())["joints"][0]
    assert said["from_source"]["mean"] < 1e-3
    assert said["with_the_engines_step"]["mean"] < 5e-3
    assert "quadratic" in said["lost"][0]
    motor = yaml.safe_load((tmp_path / "out.yaml").read_text())["drives"]["joint"]["motor"]
    assert motor["load_friction_motor_quad"] == source.values["load_friction_motor_quad"]
    assert "engine's own explicit step" in capsys.readouterr().out
