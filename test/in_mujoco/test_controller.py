"""The controller in MuJoCo: the motion of our own simulation, in any model."""

import math

import numpy as np
import pytest
from pendulums import SMALL, bench_of, model_of, mujoco, parameters_of, played, xml_of

from stribeck.emulator.joint import EmulatedJoint, Firmware
from stribeck.errors import ConfigError
from stribeck.files.actuators import load_actuator
from stribeck.model.bench import STANDARD_GRAVITY, Pendulum
from stribeck.model.joint import Drive
from stribeck.model.law import LAWS, friction_budget, law_named
from stribeck.model.log import Setup
from stribeck.mujoco import Controller, Servo

HINGE = '<body><joint name="{name}" type="{kind}" axis="0 1 0" {more}/><geom size="0.02" mass="0.1" pos="0 0 -0.1"/>{inner}</body>'
M6 = parameters_of("xl330", "m6")
M1 = parameters_of("xl330", "m1")


def one_joint(kind="hinge", *, option="", more="", actuator="", extra="") -> mujoco.MjModel:
    body = HINGE.format(name="joint", kind=kind, more=more, inner="")
    return mujoco.MjModel.from_xml_string(
        f"<mujoco><option {option}>{extra}</option><worldbody>{body}</worldbody>{actuator}</mujoco>"
    )


def hold(model, controller, seconds, goals, enable=None):
    data = mujoco.MjData(model)
    for _ in range(round(seconds / model.opt.timestep)):
        controller.update(data, goals, enable)
        mujoco.mj_step(model, data)
    return data


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize(("name", "law"), [
    pytest.param(name, law, marks=[] if name == "xl330" or law == "m6" else pytest.mark.slow)
    for name in ("xl330", "mx64", "erob80_50", "erob80_100")
    for law in LAWS
])  # fmt: skip
def test_pendulums_move_as_in_our_simulation(name, law):
    """Five loads, gains and trajectories of 6 s each: below 3.5 mrad at 5 ms, of which torque off between steps costs 2.5."""
    bench = bench_of(parameters_of(name, law), 0.005, finer=4)
    model = model_of(bench.setups, bench.dt)
    errors = bench.errors(played(model, Controller(model, bench.servos()), bench))
    assert np.all(errors < 3.5e-3), errors
    assert np.all(np.ptp(bench.position, axis=0) > 0.2)  # they moved


@pytest.mark.ci
@pytest.mark.parametrize(
    "law", ["m1", *(pytest.param(law, marks=pytest.mark.slow) for law in list(LAWS)[1:])]
)
def test_pendulums_move_as_in_our_simulation_at_1_ms(law):
    """Below 0.6 mrad, half of it in the mean: torque off and the load of the step before are nearer."""
    bench = bench_of(parameters_of("xl330", law), 0.001, finer=4)
    model = model_of(bench.setups, bench.dt)
    errors = bench.errors(played(model, Controller(model, bench.servos()), bench))
    assert np.all(errors < 6e-4), errors
    assert np.mean(errors) < 3e-4


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("law", ["m1", "m2", "m6"])
def test_friction_that_differs_by_direction(law):
    """Asymmetric budgets and an offset torque, as in our simulation."""
    values = {"friction_base_negative": 0.003, "friction_viscous_negative": 0.008, "torque_offset": 0.02}
    chosen = law_named(law).with_terms(asymmetric=True, offset=True)
    bench = bench_of(parameters_of("xl330", chosen, values), 0.005, finer=4)
    symmetric = bench_of(parameters_of("xl330", law), 0.005)
    model = model_of(bench.setups, bench.dt)
    errors = bench.errors(played(model, Controller(model, bench.servos()), bench))
    assert np.all(errors < 3.5e-3), errors
    assert np.all(symmetric.errors(bench.position) > 4e-3)  # the terms matter


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize("integrator", ["Euler", "implicit", "implicitfast"])
def test_implicit_damping_has_no_part_in_it(integrator):
    """Viscous friction is in the budget, so what an integrator does to damping does not matter."""
    bench = bench_of(M1, 0.005)
    damped = model_of(bench.setups, bench.dt, option=f'integrator="{integrator}"', joint='damping="3"')
    plain = model_of(bench.setups, bench.dt)
    found, wanted = (played(model, Controller(model, bench.servos()), bench) for model in (damped, plain))
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("law", ["m1", "m6"])
@pytest.mark.parametrize("timestep", [0.001, 0.002, 0.005])
def test_a_joint_below_its_budget_stays(law, timestep):
    """95 % of the budget at rest, torque off, for 4 s: below 2 mrad. MuJoCo's own settings creep tens of times further."""
    parameters = parameters_of("xl330", law)
    length = 0.1
    mass = 0.95 * budget_at_rest(parameters, length) / (STANDARD_GRAVITY * length)
    model = model_of([Setup(mass, length, 0.0, 5.0, 400.0)], timestep)
    model.body_pos[1], model.body_quat[1] = 0.0, [math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0]  # horizontal at 0
    data = hold(model, Controller(model, {"joint0": Servo(parameters, 400.0)}), 4.0, [0.0], [0])
    assert abs(data.qpos[0]) < 2e-3
    assert abs(data.qfrc_bias[0]) > 0.9 * mass * STANDARD_GRAVITY * length  # it does carry the load


def budget_at_rest(parameters, length):
    """The load that the joint just holds with its motor off [N m], by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        load = 0.5 * (low + high)
        held = friction_budget(parameters.law, parameters.values, 0.0, -load, 0.0)[0] > load
        low, high = (load, high) if held else (low, load)
    return low


def test_the_defaults_of_mujoco_creep():
    """What the settings of the controller are for: the same joint with MuJoCo's own."""
    load = 0.95 * M1.values["friction_base"]
    model = one_joint(more=f'frictionloss="{M1.values["friction_base"]}" armature="{M1.values["armature"]}"')
    data = mujoco.MjData(model)
    model.opt.gravity[:] = 0.0
    data.qfrc_applied[0] = load
    for _ in range(round(4.0 / model.opt.timestep)):
        mujoco.mj_step(model, data)
    assert data.qpos[0] > 10e-3


@pytest.mark.ci
def test_joints_behind_others_of_any_kind():
    """A free body and a ball come first, the servo's joint is the last of three, a slide among them."""
    before = (
        '<body pos="5 0 0"><freejoint/><geom size="0.1" mass="1"/></body>'
        '<body pos="7 0 0"><joint type="ball"/><geom size="0.1" mass="1" pos="0 0 -0.5"/></body>'
        '<body pos="9 0 0"><joint type="slide" frictionloss="0.5"/><geom size="0.1" mass="1"/></body>'
    )
    bench = bench_of(M6, 0.005, finer=4)
    model = model_of(bench.setups, bench.dt, before=before)
    servos = dict(reversed(bench.servos().items()))  # another order than the model's
    controller = Controller(model, servos)
    data = mujoco.MjData(model)
    found = np.empty_like(bench.position)
    for k in range(len(found)):
        found[k] = data.qpos[-len(servos) :]
        controller.update(data, bench.goal[k, ::-1], bench.torque_enable[k, ::-1])
        mujoco.mj_step(model, data)
    assert controller.joints == tuple(servos)
    assert np.all(bench.errors(found) < 3.5e-3)


def test_equalities_that_come_and_go():
    """Rows of other constraints before the joint's friction change in number: the load is still its own."""
    bench = bench_of(M6, 0.005, SMALL[:2], finer=4)
    text = '<body name="a" pos="0 0 3"><joint name="a" type="slide"/><geom size="0.1"/></body>'
    spec = mujoco.MjSpec.from_string(xml_of(bench.setups, bench.dt, before=text))
    equality = spec.add_equality(type=mujoco.mjtEq.mjEQ_JOINT, name1="a")
    equality.active = True
    model = spec.compile()
    controller, data = Controller(model, bench.servos()), mujoco.MjData(model)
    found = np.empty_like(bench.position)
    for k in range(len(found)):
        data.eq_active[0] = k % 3 == 0
        found[k] = data.qpos[-2:]
        controller.update(data, bench.goal[k], bench.torque_enable[k])
        mujoco.mj_step(model, data)
    assert np.all(bench.errors(found) < 3.5e-3)


def test_a_linear_axis():
    """A servo of forces drives a slide: it holds its load, and settles at the goal without friction."""
    axis = load_actuator("force_axis")
    values = {"ratio": 1.0, "armature": 2.0, "q_offset": 0.0, "friction_base": 0.0, "friction_viscous": 40.0}
    servo = Servo(Drive(axis, law_named("m1"), values), kp=100.0)
    model = one_joint("slide", option='gravity="0 0 0"')
    data = hold(model, Controller(model, {"joint": servo}), 8.0, [0.1])
    assert data.qpos[0] == pytest.approx(0.1, abs=1e-3)


def test_the_load_of_an_arm_is_gravity_at_rest():
    """Two joints that hold still: what acts on each is the gravity that MuJoCo computes."""
    inner = HINGE.format(name="elbow", kind="hinge", more='pos="0 0 0.05"', inner="")
    text = HINGE.format(name="shoulder", kind="hinge", more="", inner=inner)
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{text}</worldbody></mujoco>")
    controller = Controller(
        model, {name: Servo(M6, 800.0, supply_voltage=5.0) for name in ("elbow", "shoulder")}
    )
    data = hold(model, controller, 3.0, [0.4, 0.3])
    gravity = -data.qfrc_bias[[model.joint("elbow").dofadr[0], model.joint("shoulder").dofadr[0]]]
    assert np.all(np.abs(gravity) > 0.02)
    np.testing.assert_allclose(controller.external_torque, gravity, rtol=1e-3)


@pytest.mark.slow
def test_a_reset_in_the_middle_is_a_new_beginning():
    """The same run after mj_resetData is the same to the bit, whatever the firmware remembered."""
    parameters = parameters_of("mx64", "m6")
    bench = bench_of(parameters, 0.005)
    model = model_of(bench.setups, bench.dt)
    controller, data = Controller(model, bench.servos(ki=2.0)), mujoco.MjData(model)
    first = played(model, controller, bench, data)
    mujoco.mj_resetData(model, data)
    np.testing.assert_array_equal(played(model, controller, bench, data), first)


def test_a_reset_after_one_step_is_a_new_beginning():
    """It takes no time back since the last update; the load is that of the new state all the same."""
    model = one_joint()
    controller, data = Controller(model, {"joint": Servo(M6, 400.0)}), mujoco.MjData(model)
    data.qpos[0] = 1.0
    controller.update(data, [1.0])
    assert abs(controller.external_torque[0]) > 0.05
    mujoco.mj_step(model, data)
    mujoco.mj_resetData(model, data)
    controller.update(data, [0.0])
    assert controller.external_torque[0] == pytest.approx(0.0, abs=1e-9)


def test_another_time_step_is_refused():
    """Firmware and friction solver are set up for the one that the model had."""
    model = one_joint()
    controller = Controller(model, {"joint": Servo(M1, 400.0)})
    model.opt.timestep = 0.001
    with pytest.raises(ConfigError, match=r"time step was 0.002 s .* is 0.001 s now"):
        controller.update(mujoco.MjData(model), [0.0])


def test_reset_takes_the_forces_of_the_state_that_was_put_in():
    """After a jump of the state the load is that of the new state, not of the last step."""
    model = one_joint()
    controller = Controller(model, {"joint": Servo(M6, 400.0)})
    data = hold(model, controller, 0.5, [0.0])
    data.qpos[0], data.qvel[0] = 1.2, 0.0
    controller.reset(data, [1.2])
    assert controller.external_torque[0] == pytest.approx(-data.qfrc_bias[0], rel=1e-9)
    assert abs(data.qfrc_bias[0]) > 0.05


def test_torque_off_leaves_the_joint_to_friction():
    """No motor torque at all, and on again at once."""
    model = one_joint()
    controller, data = Controller(model, {"joint": Servo(M6, 400.0)}), mujoco.MjData(model)
    controller.update(data, [1.0], [0])
    assert data.qfrc_applied[0] == 0.0
    mujoco.mj_step(model, data)
    controller.update(data, [1.0], [1])
    assert data.qfrc_applied[0] > 0.1


def test_a_joint_turns_on_without_limits():
    """Goals beyond a turn: angles do not wrap."""
    model = one_joint(option='gravity="0 0 0"')
    data = hold(model, Controller(model, {"joint": Servo(M1, 800.0, supply_voltage=6.0)}), 4.0, [15.0])
    assert data.qpos[0] == pytest.approx(15.0, abs=0.1)


def test_a_firmware_holds_its_output_between_its_cycles():
    """A period of five steps: the duty changes every fifth; a period of one step is none at all."""
    servo = Servo(M1, 100.0, period=0.005)
    model = one_joint(option='timestep="0.001" gravity="0 0 0"')
    controller, data = Controller(model, {"joint": servo}), mujoco.MjData(model)
    duties = []
    p = M1.values
    for k in range(40):
        controller.update(data, [0.01 * k])
        torque, before = data.qfrc_applied[0], data.qvel[0]
        mujoco.mj_step(model, data)
        speed = 0.5 * (before + data.qvel[0])
        duties.append((torque * p["R"] / p["kt"] + p["kt"] * speed) / servo.voltage)
    changed = np.flatnonzero(np.abs(np.diff(duties)) > 1e-3) + 1
    np.testing.assert_array_equal(changed, np.arange(5, 40, 5))
    bench = bench_of(M1, 0.005)
    plain, stepped = (
        played(model, Controller(model, bench.servos(period=period)), bench)
        for model, period in ((model_of(bench.setups, 0.005), None), (model_of(bench.setups, 0.005), 0.005))
    )
    np.testing.assert_array_equal(plain, stepped)


def test_the_supply_sags_as_that_of_an_emulated_servo():
    """Resistance of the supply: the motion of the emulator's joint, which is another than without."""
    setup, dt = Setup(0.2, 0.1, 0.0, 5.0, 800.0), 0.001
    goal = np.sin(np.linspace(0.0, 3.0, 3000) ** 2)
    joint = EmulatedJoint(M1, Pendulum(setup.mass, setup.length, 0.0), 3.0, dt)
    expected, motions = [], {}
    for value in goal:
        expected.append(joint.state.position)
        joint.step(Firmware("position", float(value), Servo(M1, 800.0).gains), 0.0, 5.0)
    for resistance in (0.0, 3.0):
        model = model_of([setup], dt)
        servo = Servo(M1, 800.0, supply_voltage=5.0, supply_resistance=resistance)
        controller, data = Controller(model, {"joint0": servo}), mujoco.MjData(model)
        motions[resistance] = []
        for value in goal:
            motions[resistance].append(data.qpos[0])
            controller.update(data, [value])
            mujoco.mj_step(model, data)
    # MuJoCo's Euler step is of first order, the emulator's of second.
    np.testing.assert_allclose(motions[3.0], expected, atol=4e-3)
    assert np.max(np.abs(np.subtract(motions[0.0], expected))) > 0.01


def test_commands_come_late():
    """The effect delay of a parameter file, as in our simulation of it."""
    actuator = load_actuator("xl330").with_effects(["delay"])
    values = {**M1.values, "command_delay": 0.013}
    plays = [SMALL[0], SMALL[2], SMALL[3]]
    bench = bench_of(Drive(actuator, M1.law, values), 0.005, plays, finer=4)
    model = model_of(bench.setups, bench.dt)
    late = bench.errors(played(model, Controller(model, bench.servos()), bench))
    assert np.all(late < 0.25 * bench_of(M1, 0.005, plays, finer=4).errors(bench.position)), late


@pytest.mark.parametrize(
    "own",
    ["position", pytest.param("pid", marks=pytest.mark.skipif(mujoco.__version__ < "4", reason="MuJoCo 4"))],
)
def test_own_actuators_make_way_when_asked(own):
    """The model's position servo, of one input or two, is switched off; without being asked the controller refuses."""
    actuator = f'<actuator><{own} name="arm" joint="joint" kp="50" kv="1"/></actuator>'
    with pytest.raises(ConfigError, match="'arm': remove it, or switch it off with replace_actuators"):
        Controller(one_joint(actuator=actuator), {"joint": Servo(M1, 400.0)})
    model, plain = one_joint(actuator=actuator), one_joint()
    taken = Controller(model, {"joint": Servo(M1, 400.0)}, replace_actuators=True)
    alone = Controller(plain, {"joint": Servo(M1, 400.0)})
    assert hold(model, taken, 0.3, [0.5]).qpos[0] == hold(plain, alone, 0.3, [0.5]).qpos[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"option": 'integrator="RK4"'}, "integrator is RK4.*need one of Euler, implicit, implicitfast"),
        ({"extra": '<flag frictionloss="disable"/>'}, "flag frictionloss is disabled"),
        ({"extra": '<flag constraint="disable"/>'}, "flag constraint is disabled"),
        ({"kind": "slide"}, "type slide, but xl330 is rotary and needs a hinge"),
        ({"kind": "ball"}, "type ball"),
    ],
)
def test_models_that_cannot_be_simulated_are_refused(arguments, message):
    """One clear line each."""
    with pytest.raises(ConfigError, match=message):
        Controller(one_joint(**arguments), {"joint": Servo(M1, 400.0)})


def test_names_goals_and_settings_are_checked():
    """What was found, and what is valid."""
    model = one_joint()
    with pytest.raises(ConfigError, match="no joint 'elbow'; it has: joint"):
        Controller(model, {"elbow": Servo(M1, 400.0)})
    with pytest.raises(ConfigError, match="no servos"):
        Controller(model, {})
    with pytest.raises(
        ConfigError, match=r"period of 0.003 s must be a multiple of the time step of 0.002 s"
    ):
        Controller(model, {"joint": Servo(M1, 400.0, period=0.003)})
    controller, data = Controller(model, {"joint": Servo(M1, 400.0)}), mujoco.MjData(model)
    for goals in ([], [math.nan], [0.0, 0.0]):
        with pytest.raises(ConfigError, match=r"expected 1 finite goals \(joint\)"):
            controller.update(data, goals)
    with pytest.raises(ConfigError, match="torque_enable must be 0 or 1"):
        controller.update(data, [0.0], [0.5])


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("xl330", {"kp": -1.0}, "kp must be zero or positive"),
        ("xl330", {"kp": 1.0, "supply_voltage": 0.0}, "supply_voltage must be positive"),
        ("xl330", {"kp": 1.0, "period": math.inf}, "period must be positive"),
        ("erob80_50", {"kp": 1.0, "ki": 1.0}, "has no ki"),
        ("erob80_100", {"kp": 1.0, "supply_resistance": 0.1}, "the voltage drop of the supply needs"),
    ],
)
def test_impossible_settings_are_refused(name, settings, message):
    """Before anything is simulated."""
    with pytest.raises(ConfigError, match=message):
        Servo(parameters_of(name, "m1"), **settings)
