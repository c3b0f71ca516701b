"""A fit of law M1 as plain MJCF: what MuJoCo makes of it alone is what the fit says."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from pendulums import SETUPS, bench_of, mujoco, parameters_of, xml_of

from helpers import REPOSITORY
from stribeck.cli.main import main
from stribeck.errors import ConfigError
from stribeck.evaluate.assessment import Stepping
from stribeck.exports.mjcf import export_onto, simulated, snippet
from stribeck.exports.mjcf_joint import DC_MOTOR, exported
from stribeck.exports.runs import batch_of_source, bench_runs
from stribeck.exports.task import JointServo
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import write_drive
from stribeck.model.actuator import motor_torque
from stribeck.model.bench import STANDARD_GRAVITY
from stribeck.model.control_laws import Gains, ServoCommand
from stribeck.model.joint import Drive, Servo
from stribeck.model.law import LAWS, law_named
from stribeck.model.log import Setup
from stribeck.model.step import simulate

M1 = parameters_of("xl330", "m1")
SERVO = Servo(M1, 400.0, supply_voltage=5.0)
DEFAULTS = (
    '<default><joint actuatorfrcrange="-0.01 0.01"/><general gear="3" dyntype="filter"/>'
    '<position kp="4" ctrlrange="-0.1 0.1"/></default>'
)
"""What a model has for joints and actuators of its own."""

NEWER = pytest.mark.skipif(int(mujoco.__version__[0]) < 4, reason="actuators of MuJoCo 4")


@pytest.fixture
def params(tmp_path):
    write_drive(tmp_path / "m1.json", M1)
    return tmp_path / "m1.json"


@pytest.mark.parametrize(
    ("name", "kp", "kd", "fastest"),
    [
        ("xl330", 400.0, 0.0, 9.0),
        ("mx64", 16.0, 8.0, 9.0),
        ("erob80_50", 50.0, 0.0, 3.9),
        ("erob80_100", 50.0, 0.0, 9.0),
    ],
)
def test_the_numbers_are_the_control_law(name, kp, kd, fastest):
    """At random errors and speeds, most of them saturated or not, the affine actuator gives the servo's torque."""
    servo = Servo(parameters_of(name, "m1"), kp, kd=kd)
    plain, p = exported(servo, dc_motor=False), servo.parameters.values
    rng = np.random.default_rng(1)
    errors, speeds = rng.uniform(-2.0, 2.0, 500), rng.uniform(-fastest, fastest, 500)
    inside = plain.stiffness * errors - plain.feedback * speeds
    ours = np.clip(inside, -plain.force, plain.force) - plain.damping * speeds
    actuator = servo.parameters.actuator
    state = actuator.control.first_state(errors)
    command = ServoCommand(errors, 1.0, servo.voltage)
    theirs, _ = motor_torque(actuator, p, Gains(kp, 0.0, kd), state, command, np.zeros(500), speeds, 0.0)
    np.testing.assert_allclose(
        ours, theirs - p["friction_viscous"] * speeds, rtol=1e-7, atol=1e-7 * plain.force
    )
    assert 50 < np.sum(np.abs(inside) > plain.force) < 490


@pytest.mark.parametrize(
    ("name", "dt", "bound"), [("xl330", 0.005, 2e-3), ("xl330", 0.001, 1e-3), ("erob80_100", 0.005, 2e-3)]
)
def test_a_plain_joint_moves_as_law_m1(name, dt, bound):
    """frictionloss, damping, armature and one actuator each, nothing else: five runs with torque on."""
    plays = [(setup, "sin_sin" if run == "lift_and_drop" else run) for setup, run in SETUPS[name]]
    bench = bench_of(parameters_of(name, "m1"), dt, plays)
    found = np.empty_like(bench.position)
    for r, servo in enumerate(bench.servos().values()):
        text = xml_of([bench.setups[r]], dt).replace(
            'name="joint0"', f'name="joint0" class="{name}_m1_joint0"'
        )
        spec = mujoco.MjSpec.from_string(
            text.replace("<worldbody>", '<include file="servo.xml"/><worldbody>'),
            include={"servo.xml": snippet([JointServo("joint0", servo)], dt).encode()},
        )
        model = spec.compile()
        data = mujoco.MjData(model)
        for k in range(len(found)):
            found[k, r] = data.qpos[0]
            data.ctrl[0] = bench.goal[k, r]
            mujoco.mj_step(model, data)
    assert np.all(bench.errors(found) < bound), bench.errors(found)


def test_an_exported_joint_below_its_friction_stays(tmp_path):
    """95 % of the frictionloss for 10 s on the joint of a model of one's own: below 0.05 mrad."""
    load = 0.95 * M1.values["friction_base"]
    mass = load / (STANDARD_GRAVITY * 0.1)
    (tmp_path / "in.xml").write_text(
        xml_of([Setup(mass, 0.1, 0.0, 5.0, 400.0)], 0.002).replace(
            'pos="0 0 0"', 'pos="0 0 0" euler="0 90 0"', 1
        )
    )
    text, _ = export_onto(tmp_path / "in.xml", [JointServo("joint0", SERVO)])
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableactuator = 1
    data = mujoco.MjData(model)
    for _ in range(5000):
        mujoco.mj_step(model, data)
    assert abs(data.qfrc_bias[0]) == pytest.approx(load, rel=1e-3)
    assert abs(data.qpos[0]) < 5e-5


def test_a_model_keeps_the_rest(tmp_path):
    """The joint's own actuator keeps its name and place and becomes the servo; a joint without one gets one."""
    source = tmp_path / "arm.xml"
    source.write_text(
        """<mujoco><default><joint damping="7" frictionloss="3"/></default><worldbody>
        <body><joint name="a" axis="0 1 0"/><geom size="0.05" mass="1" pos="0 0 -0.2"/>
        <body><joint name="b" axis="0 1 0" range="-1 1"/><geom size="0.05" mass="1" pos="0 0 -0.4"/>
        <body><joint name="c" axis="0 1 0"/><geom size="0.05" mass="1" pos="0 0 -0.6"/></body></body></body></worldbody>
        <actuator><position name="first" joint="c" kp="9"/><position name="second" joint="b" kp="9" gear="2"/></actuator>
        </mujoco>"""
    )
    text, notes = export_onto(source, [JointServo("b", SERVO), JointServo("a", SERVO)])
    model = mujoco.MjModel.from_xml_string(text)
    plain = exported(SERVO)
    assert [model.actuator(k).name for k in range(model.nu)] == ["first", "second", "a_servo"]
    assert model.actuator("first").gainprm[0] == 9.0
    for k in (1, 2):
        if plain.motor is None:
            assert model.actuator_gainprm[k, 0] == pytest.approx(plain.stiffness)
            assert model.actuator_forcerange[k] == pytest.approx([-plain.force, plain.force])
        else:
            of_motor = [plain.motor.resistance, plain.motor.motorconst, plain.stiffness]
            assert model.actuator_gainprm[k, [0, 1, 4]] == pytest.approx(of_motor, rel=1e-5)
        assert model.actuator_gear[k, 0] == 1.0
    np.testing.assert_allclose(
        model.dof_frictionloss, [plain.frictionloss, plain.frictionloss, 3.0], rtol=1e-5
    )
    np.testing.assert_allclose(model.dof_armature, [plain.armature, plain.armature, 0.0], rtol=1e-5)
    np.testing.assert_allclose(model.jnt_range[1], np.radians([-1, 1]), rtol=1e-6)
    assert model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_EULERDAMP
    assert any("back-EMF" in note for note in notes)


@pytest.mark.parametrize(
    ("actuator", "limited"),
    [
        ('<motor joint="j" gear="3" ctrllimited="true" ctrlrange="-0.1 0.1"/>', False),
        ('<intvelocity joint="j" kp="2" actrange="-1 1"/>', False),
        ('<position joint="j" kp="4" kv="1" timeconst="0.1" ctrllimited="true" ctrlrange="-1 1"/>', True),
        pytest.param('<position joint="j" kp="4" nsample="9" delay="0.02"/>', False, marks=NEWER),
        pytest.param('<pid joint="j" kp="4" ki="1" kv="1"/>', False, marks=NEWER),
        ("", False),
    ],
)
def test_an_actuator_of_any_kind_becomes_the_servo(tmp_path, actuator, limited):
    """Its gear, dynamics, delay and gains go; a range of ctrl stays only where it was one of positions, of its own."""
    body = '<body><joint name="j" axis="0 1 0"/><geom size="0.02" pos="0 0 -0.1"/></body>'
    (tmp_path / "in.xml").write_text(
        f"<mujoco>{DEFAULTS if not actuator else ''}<worldbody>{body}</worldbody><actuator>{actuator}</actuator></mujoco>"
    )
    model = mujoco.MjModel.from_xml_string(export_onto(tmp_path / "in.xml", [JointServo("j", SERVO)])[0])
    data = mujoco.MjData(model)
    data.ctrl[0] = 0.5
    mujoco.mj_forward(model, data)
    assert data.qfrc_actuator[0] == pytest.approx(0.5 * exported(SERVO).stiffness, rel=1e-5)
    assert bool(model.actuator_ctrllimited[0]) == limited
    assert (model.nu, model.na) == (1, 0)
    assert not getattr(model, "actuator_delay", np.zeros(1))[0]


@pytest.mark.parametrize("place", ["before", "after"])
def test_files_to_include_beside_defaults_of_the_model(place):
    """Two servos of a kind in one model, whose own defaults for joints and actuators have no part in them."""
    bodies = "".join(
        f'<body pos="{k} 0 0"><joint name="{name}" class="xl330_m1_{name}" axis="0 1 0"/><geom size="0.02" pos="0 0 -0.1"/>'
        "</body>"
        for k, name in enumerate("ab")
    )
    included = '<include file="a.xml"/><include file="b.xml"/>'
    order = (included, DEFAULTS) if place == "before" else (DEFAULTS, included)
    servos = {"a": SERVO, "b": replace(SERVO, kp=200.0)}
    model = mujoco.MjSpec.from_string(
        f"<mujoco>{''.join(order)}<worldbody>{bodies}</worldbody></mujoco>",
        include={
            f"{name}.xml": snippet([JointServo(name, servo)]).encode() for name, servo in servos.items()
        },
    ).compile()
    data = mujoco.MjData(model)
    data.ctrl[:] = 0.5
    mujoco.mj_forward(model, data)
    torque = [0.5 * exported(servo).stiffness for servo in servos.values()]
    np.testing.assert_allclose(data.qfrc_actuator, torque, rtol=1e-6)
    assert model.na == 0


@pytest.mark.parametrize("law", [law for law in LAWS if law != "m1"])
def test_other_laws_are_refused(law):
    """With the controller as the way to go."""
    with pytest.raises(ConfigError, match=f"cannot express law {law.upper()}.*stribeck.mujoco.Controller"):
        exported(Servo(parameters_of("xl330", law), 400.0))


def test_what_plain_mjcf_has_no_place_for_is_refused():
    """Terms, effects, gains and time steps, one line each."""
    extra = {"friction_base_negative": 0.01, "friction_viscous_negative": 0.0, "torque_offset": 0.01}
    asymmetric = parameters_of(
        "xl330", law_named("m1").with_terms(asymmetric=True), {k: extra[k] for k in list(extra)[:2]}
    )
    offset = parameters_of("xl330", law_named("m1").with_terms(offset=True), {"torque_offset": 0.01})
    limited = Drive(
        load_actuator("xl330").with_effects(["current-limit"]), M1.law, {**M1.values, "current_limit": 1.75}
    )
    coasting = replace(M1.actuator, control=replace(M1.actuator.control, bridge="coast"))
    for servo, what in [
        (Servo(asymmetric, 400.0), "friction that differs by direction"),
        (Servo(offset, 400.0), "the offset torque"),
        (Servo(limited, 400.0), "the effect current-limit"),
        (Servo(replace(M1, actuator=coasting), 400.0), "a drive/coast bridge"),
        (Servo(parameters_of("mx64", "m1"), 16.0, ki=1.0), "an integral gain"),
        (Servo(M1, 400.0, supply_resistance=1.0), "the voltage drop of a supply"),
        (Servo(M1, 400.0, period=0.01), "a firmware period"),
        (
            Servo(parameters_of("erob80_50", "m1"), 50.0, supply_voltage=1.0),
            "1 V are too little for the current at rest",
        ),
    ]:
        with pytest.raises(ConfigError, match=what):
            exported(servo, dc_motor=False)
    with pytest.raises(ConfigError, match="kp is 0"):
        exported(Servo(M1, 0.0))
    with pytest.raises(ConfigError, match=r"time step of 0.05 s the damping is unstable"):
        snippet([JointServo("joint", SERVO)], 0.05)


def test_the_command_writes_a_file_to_include(params, tmp_path, capsys):
    """What it prints, and a file that a model includes."""
    output = tmp_path / "servo.xml"
    words = [
        "export",
        "--to",
        "mjcf",
        "--params",
        str(params),
        "--joint",
        "joint0",
        "--kp",
        "400",
        "--supply",
        "5",
    ]
    assert main([*words, "--timestep", "0.005", "--output", str(output)]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[:2] == [str(output), f"{output}.loss"]
    assert "back-EMF" in said.err
    assert output.read_text() == snippet([JointServo("joint0", SERVO)], 0.005)
    loss = json.loads(output.with_name("servo.xml.loss").read_text())
    assert loss["joints"][0]["lost"] == []
    assert loss["joints"][0]["from_source"]["worst"] < 5e-3


def test_the_command_puts_the_servo_into_a_model(params, tmp_path, capsys):
    """A new model beside the old one, which stays as it was; the same name is refused."""
    source, output = tmp_path / "in.xml", tmp_path / "out.xml"
    source.write_text(xml_of([Setup(0.2, 0.1, 0.0, 5.0, 400.0)], 0.002, option='integrator="implicitfast"'))
    before = source.read_bytes()
    words = [
        "export",
        "--to",
        "mjcf",
        "--params",
        str(params),
        "--joint",
        "joint0",
        "--kp",
        "400",
        "--supply",
        "5",
        "--model",
        str(source),
    ]
    assert main([*words, "--output", str(output)]) == 0
    assert "integrator is not Euler" in capsys.readouterr().err
    model = mujoco.MjModel.from_xml_path(str(output))
    assert model.dof_frictionloss[0] == pytest.approx(M1.values["friction_base"], rel=1e-5)
    assert main([*words, "--output", str(output), "--timestep", "0.001"]) == 1
    assert "with its own" in capsys.readouterr().err
    assert main([*words, "--output", str(source)]) == 1
    assert "is also an input of this command" in capsys.readouterr().err
    assert source.read_bytes() == before


def test_files_of_the_model_are_not_written_over(params, tmp_path, capsys):
    """An output that the model includes, by way of another file: one line, and nothing lost."""
    (tmp_path / "parts").mkdir()
    model, middle, part = tmp_path / "m.xml", tmp_path / "parts" / "middle.xml", tmp_path / "part.xml"
    joint = '<joint name="j"/><geom size="0.1"/>'
    model.write_text(
        f'<mujoco><include file="parts/middle.xml"/><worldbody><body>{joint}</body></worldbody></mujoco>'
    )
    middle.write_text('<mujoco><include file="part.xml"/></mujoco>')
    part.write_text('<mujoco><option timestep="0.001"/></mujoco>')
    words = ["--params", str(params), "--joint", "j", "--kp", "400", "--supply", "5", "--model", str(model)]
    for output in (middle, part):
        before = output.read_text()
        assert main(["export", "--to", "mjcf", *words, "--output", str(output)]) == 1
        assert f"{output} is also an input of this command" in capsys.readouterr().err
        assert output.read_text() == before
    assert main(["export", "--to", "mjcf", *words, "--output", str(tmp_path / "out.xml")]) == 0


@pytest.mark.parametrize(
    ("model", "joint", "message"),
    [
        ("<mujoco><worldbody/></mujoco>", "a", "no joint 'a'; it has: none"),
        ("<mujoco><worldbody>", "a", "in.xml: XML"),
        (None, "a", "in.xml"),
        (
            '<mujoco><worldbody><body><joint name="a"/><geom size="1"/></body></worldbody>'
            '<actuator><motor joint="a"/><motor joint="a"/></actuator></mujoco>',
            "a",
            "joint 'a' has 2 actuators",
        ),
        (
            '<mujoco><worldbody><body><joint name="a" type="slide"/><geom size="1"/></body></worldbody></mujoco>',
            "a",
            "type slide",
        ),
    ],
)
def test_models_that_do_not_fit_end_in_one_line(params, tmp_path, capsys, model, joint, message):
    """Exit code 1, nothing written."""
    if model is not None:
        (tmp_path / "in.xml").write_text(model)
    words = [
        "--params",
        str(params),
        "--joint",
        joint,
        "--kp",
        "400",
        "--supply",
        "5",
        "--model",
        str(tmp_path / "in.xml"),
    ]
    assert main(["export", "--to", "mjcf", *words, "--output", str(tmp_path / "out.xml")]) == 1
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not (tmp_path / "out.xml").exists()


def test_a_servo_with_limits_ramp_and_delay_is_a_dcmotor():
    """Current limit, goal ramp, integral gain and delay of commands: MuJoCo moves as our simulation, torque off included."""
    if not DC_MOTOR:
        pytest.skip("this MuJoCo has no dcmotor")
    actuator = load_actuator("xl330").with_effects(["current-limit", "delay"])
    actuator = replace(actuator, control=replace(actuator.control, goal_speed=2.0))
    values = {**M1.values, "current_limit": 0.3, "command_delay": 0.01}
    file = Drive(actuator, M1.law, values)
    logs = bench_runs(file, 600.0, 5.0)
    batch, source = batch_of_source(file, logs, Stepping(0.005))
    servo = Servo(file, 600.0, supply_voltage=5.0)
    found = simulated(servo, source, Stepping(0.005))
    errors = np.mean(np.abs(found - source.position), axis=0)
    assert np.all(errors < 6e-3), errors
    without = Drive(load_actuator("xl330"), M1.law, M1.values)
    free = simulate(batch, without.actuator, without.law, without.values)
    assert np.max(np.mean(np.abs(free.position - source.position), axis=0)) > 0.05


@pytest.mark.slow
def test_without_mujoco_one_line_says_what_to_install(tmp_path):
    """In a fresh interpreter in which MuJoCo cannot be imported."""
    words = [
        "export",
        "--to",
        "mjcf",
        "--params",
        "x",
        "--joint",
        "a",
        "--kp",
        "1",
        "--output",
        str(tmp_path / "y.xml"),
    ]
    code = (
        "import sys; sys.modules['mujoco'] = None\n"
        f"from stribeck.cli.main import main; sys.exit(main({words!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY)
    assert done.returncode == 1
    assert "pip install 'stribeck[mujoco]'" in done.stderr
    assert done.stderr.count("\n") == 1
