"""What a format holds comes back by ``stribeck import-params``; nothing else in a robot file changes."""

import json

import numpy as np
import pytest

from helpers import XL330, needs_xl330, published, refusal
from stribeck.cli.main import main
from stribeck.exports.affine import affine, as_torque_control
from stribeck.exports.registry import FORMATS
from stribeck.exports.runs import bench_runs
from stribeck.exports.task import ExportTask, JointServo
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive, write_drive
from stribeck.model.joint import Drive, Servo
from stribeck.model.law import LAWS, friction_budget, law_named
from stribeck.model.step import batch_for, simulate
from stribeck.rigid.urdf import read_urdf

URDF = """<?xml version="1.0"?>
<robot name="two"> <!-- an arm -->
  <link name="base"/><link name="a"/><link name="b"/>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="a"/>
    <limit lower="-1" upper="1" effort='9' velocity="9"/> <!-- by hand -->
  </joint>
  <joint name="elbow" type="continuous">
    <parent link="a"/><child link="b"/>
    <dynamics damping="7"/>
  </joint>
</robot>
"""

SDF = """<sdf version="1.9"><model name="m"><link name="a"/>
  <joint name="shoulder" type="revolute"><parent>world</parent><child>a</child>
    <axis><xyz>0 0 1</xyz><limit><lower>-1</lower><upper>1</upper></limit><dynamics/></axis></joint></model></sdf>
"""


def servo_of(name="xl330", kp=400.0, **more) -> Servo:
    """The published law M1 of a servo."""
    values = {**published(name, "m1"), "q_offset": 0.0, **more}
    if "R" not in load_actuator(name).published["m1"]:
        del values["R"]
    effects = ["current-limit"] if "current_limit" in more else []
    return Servo(Drive(load_actuator(name).with_effects(effects), law_named("m1"), values), kp)


def written(folder, form, *joints, model=None, output="out.yaml") -> None:
    """Write an export of a format to a folder."""
    task = ExportTask(tuple(JointServo(*one) for one in joints), folder / output, model)
    for path, content in FORMATS[form].write(task).files.items():
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def imported(folder, form, *words, file="out.yaml", servo="xl330") -> Drive:
    """The parameters that ``import-params`` reads."""
    arguments = [
        str(folder / file),
        "--format",
        form,
        "--actuator",
        servo,
        "--output",
        str(folder / "back.json"),
    ]
    assert main(["import-params", *arguments, *map(str, words)]) == 0
    return read_drive(folder / "back.json")


@pytest.mark.parametrize("more", [{}, {"current_limit": 0.9}])
@pytest.mark.parametrize("form", ["isaaclab", "mjcf"])
def test_a_voltage_servo_comes_back(tmp_path, form, more):
    """Motor, armature, friction, gain and limits of the second of two joints."""
    if form == "mjcf":
        mujoco = pytest.importorskip("mujoco")
        if not hasattr(mujoco.MjsActuator, "set_to_dcmotor"):
            pytest.skip("this MuJoCo has no dcmotor")
    if form == "isaaclab" and more:
        pytest.skip("its effort limit is not told from the saturation")
    servo = servo_of(**more)
    written(tmp_path, form, ("other", servo_of(kp=100.0)), ("elbow", servo))
    found = imported(
        tmp_path,
        form,
        "--joint",
        "elbow",
        "--kp",
        400,
        *(["--supply", servo.voltage] if form == "isaaclab" else []),
    )
    assert found.values == pytest.approx(servo.parameters.values, rel=1e-12)
    assert found.actuator.control == servo.parameters.actuator.control
    assert found.law == servo.parameters.law


def test_a_torque_controlled_joint_comes_back_as_its_controller(tmp_path):
    """An eRob80: the exported position controller moves as the servo does below its voltage limit."""
    servo = servo_of("erob80_100", 50.0)
    written(tmp_path, "isaaclab", ("elbow", servo))
    found = imported(tmp_path, "isaaclab", "--kp", 50, servo="erob80_100")
    batch = batch_for(bench_runs(servo.parameters, 50.0, 48.0), 0.005, "exponential")
    one, other = (simulate(batch, file.actuator, file.law, file.values) for file in (servo.parameters, found))
    assert np.max(np.mean(np.abs(one.position - other.position), axis=0)) < 1e-6
    assert found.actuator.control == as_torque_control(servo).actuator.control


def test_a_urdf_keeps_everything_else(tmp_path):
    """Comments, order and limits of position; friction comes back bit by bit, with the motor of another file."""
    model = tmp_path / "arm.urdf"
    model.write_text(URDF)
    servo = servo_of()
    p, motor = servo.parameters.values, affine(servo)
    written(tmp_path, "urdf", ("shoulder", servo), ("elbow", servo), model=model)
    friction = f'damping="{p["friction_viscous"]!r}" friction="{p["friction_base"]!r}"'
    limits = f'effort="{motor.force!r}" velocity="{motor.speed!r}"'
    wanted = URDF.replace("effort='9' velocity=\"9\"/>", f"{limits}/>\n    <dynamics {friction}/>")
    wanted = wanted.replace('<dynamics damping="7"/>', f"<dynamics {friction}/>\n    <limit {limits}/>")
    assert (tmp_path / "out.yaml").read_text() == wanted
    write_drive(tmp_path / "m1.json", servo.parameters)
    found = imported(tmp_path, "urdf", "--joint", "elbow", "--motor", tmp_path / "m1.json")
    assert found.values == p


def test_an_sdf_gets_friction_and_limits(tmp_path):
    """Empty and missing elements are filled."""
    model = tmp_path / "arm.sdf"
    model.write_text(SDF)
    servo = servo_of()
    p, motor = servo.parameters.values, affine(servo)
    written(tmp_path, "sdf", ("shoulder", servo), model=model)
    text = (tmp_path / "out.yaml").read_text()
    friction = f"<damping>{p['friction_viscous']!r}</damping><friction>{p['friction_base']!r}</friction>"
    limits = f"<effort>{motor.force!r}</effort><velocity>{motor.speed!r}</velocity>"
    wanted = SDF.replace("<dynamics/>", f"<dynamics>{friction}</dynamics>").replace(
        "</upper>", f"</upper>{limits}"
    )
    assert text == wanted


def test_drake_gets_the_rotor(tmp_path):
    """A transmission for a joint without one; an existing one is changed."""
    model = tmp_path / "arm.urdf"
    model.write_text(URDF)
    servo = servo_of()
    written(tmp_path, "drake", ("shoulder", servo), ("elbow", servo), model=model)
    assert set(read_urdf(tmp_path / "out.yaml").movable) == {"shoulder", "elbow"}
    inertia = f'<drake:rotor_inertia value="{servo.parameters.values["armature"]!r}"/>'
    assert (tmp_path / "out.yaml").read_text().count(inertia) == 2
    written(tmp_path, "drake", ("shoulder", servo), model=tmp_path / "out.yaml", output="again.urdf")
    assert (tmp_path / "again.urdf").read_text().count(inertia) == 2


@pytest.mark.parametrize(
    ("form", "text", "joint", "parts"),
    [
        ("urdf", URDF, "wrist", ["no joint named 'wrist'", "shoulder, elbow"]),
        ("urdf", URDF.replace('"elbow"', '"shoulder"'), "shoulder", ["2 joints named 'shoulder'"]),
        (
            "urdf",
            URDF.replace("<limit", "<!-- <limit").replace('velocity="9"/>', "-->"),
            "shoulder",
            ["no <limit>"],
        ),
        ("urdf", URDF.replace('"revolute"', '"prismatic"'), "shoulder", ["is prismatic", "rotary"]),
        ("urdf", "<robot", "shoulder", ["is not XML"]),
        ("urdf", SDF, "shoulder", ["its root is <sdf>", "expected <robot>"]),
        ("urdf", '<!DOCTYPE x [<!ENTITY a "b">]><robot/>', "shoulder", ["DOCTYPE"]),
        ("sdf", SDF.replace("<axis>", "<!--").replace("</axis>", "-->"), "shoulder", ["no <axis>"]),
    ],
)
def test_robots_that_do_not_fit_are_refused(tmp_path, form, text, joint, parts):
    """One line each."""
    (tmp_path / "arm").write_text(text)
    refusal(lambda: written(tmp_path, form, (joint, servo_of()), model=tmp_path / "arm"), *parts)


@pytest.mark.parametrize(
    ("form", "content", "words", "part"),
    [
        ("vrml", "", [], "unknown format 'vrml'"),
        ("isaaclab", "schema: 2", [], "schema"),
        ("isaaclab", "GOOD", ["--supply", "5"], "--kp"),
        ("isaaclab", "GOOD", ["--kp", "400"], "--supply"),
        ("isaaclab", "GOOD", ["--joint", "x"], "no joint 'x'; it has: elbow"),
        ("urdf", URDF, [], "--motor"),
        ("bam", "{}", [], "model"),
    ],
)
def test_files_that_cannot_be_imported_end_in_one_line(tmp_path, capsys, form, content, words, part):
    """Exit code 1, and nothing is written."""
    path = tmp_path / "out.yaml"
    path.write_text(content)
    if content == "GOOD":
        written(tmp_path, "isaaclab", ("elbow", servo_of()))
    arguments = [str(path), "--format", form, "--actuator", "xl330", "--output", str(tmp_path / "back.json")]
    assert main(["import-params", *arguments, *words]) == 1
    said = capsys.readouterr().err
    assert part in said
    assert said.count("\n") == 1
    assert not (tmp_path / "back.json").exists()


def test_genesis_and_ros_files_hold_the_numbers(tmp_path):
    """The Python function sets what the affine law says; the node's file names the parameter file."""
    servo = servo_of()
    motor = affine(servo)
    written(tmp_path, "genesis", ("elbow", servo), output="joints.py")
    module = {}
    exec((tmp_path / "joints.py").read_text(), module)  # noqa: S102
    calls = {}

    class Entity:
        def get_joint(self, name):
            return type("Joint", (), {"dofs_idx_local": [3]})

        def __getattr__(self, name):
            return lambda *values: calls.update({name: values})

    module["apply"](Entity())
    assert calls["set_dofs_kp"] == ([motor.stiffness], [3])
    assert calls["set_dofs_force_range"] == ([-motor.force], [motor.force], [3])
    assert calls["set_dofs_frictionloss"] == ([servo.parameters.values["friction_base"]], [3])


def test_a_usd_layer_overrides_the_joint_alone(tmp_path):
    """Drive and friction in USD's units, read back through the composed stage."""
    usd = pytest.importorskip("pxr.Usd", reason="usd-core is not installed: pip install '.[export]'")
    physics = pytest.importorskip("pxr.UsdPhysics")
    robot = tmp_path / "robot.usda"
    joint = 'def PhysicsRevoluteJoint "elbow"\n{\nfloat physics:upperLimit = 90\n}'
    robot.write_text(f'#usda 1.0\n(\ndefaultPrim = "arm"\n)\ndef Xform "arm"\n{{\n{joint}\n}}\n')
    servo = servo_of()
    motor, p = affine(servo), servo.parameters.values
    written(tmp_path, "usd", ("elbow", servo), model=robot, output="servo.usda")
    stage = usd.Stage.Open(str(tmp_path / "servo.usda"))
    prim = stage.GetPrimAtPath("/arm/elbow")
    drive = physics.DriveAPI.Get(prim, "angular")
    assert np.degrees(drive.GetStiffnessAttr().Get()) == pytest.approx(motor.stiffness, rel=1e-6)
    assert np.degrees(drive.GetDampingAttr().Get()) == pytest.approx(motor.back_emf, rel=1e-6)
    assert drive.GetMaxForceAttr().Get() == pytest.approx(motor.force, rel=1e-6)
    axis = {
        name: prim.GetAttribute(f"physxJointAxis:angular:{name}").Get()
        for name in ("armature", "dynamicFrictionEffort")
    }
    assert list(axis.values()) == pytest.approx([p["armature"], p["friction_base"]], rel=1e-6)
    assert prim.GetAttribute("physics:upperLimit").Get() == 90.0
    refusal(
        lambda: written(tmp_path, "usd", ("wrist", servo), model=robot, output="x.usda"),
        "no joint",
        "/arm/elbow",
    )


@pytest.mark.parametrize("law", LAWS)
def test_an_onnx_graph_computes_what_core_computes(tmp_path, law):
    """At 10 000 random states of each law, in onnxruntime."""
    pytest.importorskip("onnx", reason="ONNX is not installed: pip install '.[export]'")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    values = published("xl330", law)
    servo = Servo(Drive(load_actuator("xl330"), law_named(law), values), 1.0)
    written(tmp_path, "onnx", ("a", servo), output="law.onnx")
    rng = np.random.default_rng(1)
    state = {name: rng.uniform(-1.0, 1.0, 10_000) for name in ("motor", "external", "velocity")}
    found = runtime.InferenceSession((tmp_path / "law.onnx").read_bytes()).run(None, state)
    np.testing.assert_allclose(
        found, friction_budget(law_named(law), values, **_named(state)), rtol=0.0, atol=1e-14
    )


def _named(state):
    return {
        "motor_torque": state["motor"],
        "external_torque": state["external"],
        "velocity": state["velocity"],
    }


def test_a_model_whose_meshes_are_missing_is_read(tmp_path):
    """As published models are without their assets: the joint's friction and controller count alone."""
    pytest.importorskip("mujoco")
    (tmp_path / "out.yaml").write_text(
        """<mujoco><asset><mesh name="m" file="absent.stl"/></asset><worldbody><body><joint name="a" damping="0.6"
        frictionloss="0.05" armature="0.03"/><geom type="mesh" mesh="m"/></body></worldbody>
        <actuator><position joint="a" kp="17.5" forcerange="-3 3"/></actuator></mujoco>"""
    )
    found = imported(tmp_path, "mjcf", "--kp", 16, servo="sts3215_12v")
    wanted = {"friction_viscous": 0.6, "friction_base": 0.05, "armature": 0.03}
    assert {name: found.values[name] for name in wanted} == pytest.approx(wanted)
    assert found.actuator.control.gain == pytest.approx(17.5 / 16)


@needs_xl330
def test_files_of_several_programs_are_compared_in_one_command(tmp_path, capsys):
    """A parameter file and what Isaac Lab's file holds of it: one error each; without gain or servo one line."""
    servo, own = servo_of(), tmp_path / "own.json"
    written(tmp_path, "isaaclab", ("elbow", servo))
    write_drive(own, servo.parameters)
    files = ["evaluate", "--params", str(own), str(tmp_path / "out.yaml")]
    recordings = ["--logdir", str(XL330 / "kp400_sin_sin.json"), "--arm-mass", "0"]
    known = ["--actuator", "xl330", "--file-supply", str(servo.voltage)]
    target = tmp_path / "errors.json"
    assert main([*files, *recordings, *known, "--file-kp", "400", "--json", str(target)]) == 0
    errors = [result["mae"] for result in json.loads(target.read_text())["results"]]
    assert errors[0] == pytest.approx(errors[1], rel=1e-9)
    assert main([*files, *recordings]) == 1
    assert main([*files, *recordings, *known]) == 1
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if "--servo" in line and "--kp" in line]
    assert "--kp" in said[-1]
