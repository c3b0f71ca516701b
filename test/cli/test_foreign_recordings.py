"""From recordings of others to compensation, with a table of signals and a bench file: nothing else is written by hand."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from bags import Bag, message, multi_array
from helpers import assert_clear
from stribeck.cli.main import main
from stribeck.errors import RecordingError
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive
from stribeck.model.control_laws import VoltageControl
from stribeck.model.law import law_named
from stribeck.model.log import Log, Series, Setup, batch_of
from stribeck.model.step import simulate
from stribeck.model.trajectories import trajectory_named
from stribeck.recordings.bags.bag import read_bag

pytest.importorskip("jax", reason="a fit needs JAX: pip install '.[fit]'")

PERIOD, FINER = 0.01, 4
"""Sample period [s], and steps of the simulation in it."""

COUNTS = 4096 / (2.0 * np.pi)
TRAJECTORIES = ("sin_sin", "lift_and_drop")
XM430 = {
    "kt": 1.7,
    "R": 5.0,
    "armature": 0.012,
    "q_offset": 0.02,
    "friction_base": 0.09,
    "friction_viscous": 0.08,
}
XL330 = {**load_actuator("xl330").published["m1"], "q_offset": 0.0}


def played(
    servo: str, values: dict[str, float], setup: Setup, name: str, hold: int
) -> tuple[Log, np.ndarray]:
    """A simulated run with samples every 10 ms and a new goal in every ``hold``-th, and the motor's current [A]."""
    actuator, law, trajectory = load_actuator(servo), law_named("m1"), trajectory_named(name)
    time = PERIOD * np.arange(round(trajectory.duration / PERIOD) + 1)
    rest = Series(time, np.zeros_like(time), held=False)
    commanded = Log(
        name=name, actuator=servo, trajectory=name, setup=setup, position=rest, velocity=rest,
        goal=Series(time[::hold], trajectory.goal(time[::hold]), held=True),
        torque_enable=Series(time, trajectory.torque_enable(time), held=True),
    )  # fmt: skip
    samples = commanded.resample(PERIOD / FINER)
    motion = simulate(batch_of([samples]), actuator, law, {**law_defaults(servo), **values})
    position, velocity = motion.position[::FINER, 0], motion.velocity[::FINER, 0]
    control = actuator.control
    assert isinstance(control, VoltageControl)
    duty = np.clip(
        control.gain * setup.kp * (samples.goal[::FINER] - position), -control.duty_max, control.duty_max
    )
    current = (
        samples.torque_enable[::FINER] * (duty * setup.supply_voltage - values["kt"] * velocity) / values["R"]
    )
    moved = Log(
        name=name, actuator=servo, trajectory=name, setup=setup, goal=commanded.goal,
        position=Series(time, position, held=False), velocity=Series(time, velocity, held=False),
        torque_enable=commanded.torque_enable,
    )  # fmt: skip
    return moved, current


def law_defaults(servo: str) -> dict[str, float]:
    """Values of parameters that do not matter here."""
    return load_actuator(servo).parameters(law_named("m1")).values()


def register_bag(folder: Path, log: Log, current: np.ndarray) -> None:
    """A bag of registers: counts, 0.229 rev/min, 2.69 mA; a gripper on the same topic; goals at a fourth of the rate."""
    bag = Bag()
    rng = np.random.default_rng(0)
    for k, time in enumerate(1.7e9 + log.position.time):
        counts = np.round(2048 + COUNTS * (log.position.value[k] + 2e-4 * rng.standard_normal()))
        speed = np.round(log.velocity.value[k] * 30.0 / np.pi / 0.229)
        bag.add(
            time, "/dxl/present", registers(time, "tilt", counts, speed, np.round(1e3 * current[k] / 2.69))
        )
        bag.add(time + 0.003, "/dxl/present", registers(time + 0.003, "gripper", 900.0, 0.0, 0.0))
        bag.add(time, "/dxl/enabled", multi_array([log.torque_enable.value[k]]))
    for time, goal in zip(1.7e9 + log.goal.time, log.goal.value, strict=True):
        bag.add(time, "/dxl/goal", multi_array([np.round(2048 + COUNTS * goal), 900.0]))
    bag.write(folder)


def registers(time: float, joint: str, *values: float):
    """A JointState with registers in it."""
    seconds = int(time // 1)
    stamp = message("builtin_interfaces/Time", sec=seconds, nanosec=round((time - seconds) * 1e9))
    header = message("std_msgs/Header", stamp=stamp, frame_id="")
    position, velocity, effort = (np.array([float(value)]) for value in values)
    return message(
        "sensor_msgs/JointState",
        header=header,
        name=[joint],
        position=position,
        velocity=velocity,
        effort=effort,
    )


REGISTERS = """
position: {topic: /dxl/present, names: name, values: position, unit: counts, counts_per_turn: 4096, offset: -2048}
velocity: {topic: /dxl/present, names: name, values: velocity, unit: rpm, scale: 0.229}
effort: {topic: /dxl/present, names: name, values: effort, unit: mA, scale: 4.573}  # 2.69 mA times 1.7 N m/A
goal: {topic: /dxl/goal, values: data, order: [tilt, gripper], unit: counts, counts_per_turn: 4096, offset: -2048}
torque_enable: {topic: /dxl/enabled, values: data, order: [tilt]}
"""

REGISTER_BENCH = """
defaults: {actuator: xm430, joint: tilt, length: 0.15, arm_mass: 0.05, supply_voltage: 12, kp: 400}
runs:
  "m200g_*": {mass: 0.2}
  "m500g_*": {mass: 0.5}
  "m900g_*": {mass: 0.9}
"""


@pytest.fixture(scope="module")
def xm430(tmp_path_factory):
    """Nine bags of an XM430 with three masses, and the two files about them."""
    folder = tmp_path_factory.mktemp("xm430")
    for mass in (0.2, 0.5, 0.9):
        for name in TRAJECTORIES:
            setup = Setup(mass, 0.15, 0.05, 12.0, 400.0)
            run = played("xm430", XM430, setup, name, hold=4)
            register_bag(folder / "bags" / f"m{1e3 * mass:.0f}g_{name}", *run)
    (folder / "signals.yaml").write_text(REGISTERS)
    (folder / "bench.yaml").write_text(REGISTER_BENCH)
    return folder


CSV = """
time: {column: ms, unit: ms}
position: {column: angle, unit: deg}
goal: {column: target, unit: deg}
torque_enable: {column: enabled}
effort: {column: motor current, unit: mA, scale: 0.4}
supply_voltage: {column: battery, unit: mV}
"""


@pytest.fixture(scope="module")
def spreadsheets(tmp_path_factory):
    """Six CSV files of an XL330 in degrees, milliseconds and milliamperes, with a target only where it changes."""
    folder = tmp_path_factory.mktemp("xl330")
    (folder / "logs").mkdir()
    for mass in (0.05, 0.12):
        for name in TRAJECTORIES:
            log, current = played("xl330", XL330, Setup(mass, 0.1, 0.02, 5.0, 400.0), name, hold=2)
            with (folder / "logs" / f"{name} {1e3 * mass:.0f} g.csv").open("w", newline="") as file:
                writer = csv.writer(file, delimiter=";")
                writer.writerow(["ms", "angle", "target", "enabled", "motor current", "battery", "comment"])
                for k, time in enumerate(log.position.time):
                    angle = round(np.rad2deg(log.position.value[k]) / 0.088) * 0.088
                    target = f"{np.rad2deg(log.goal.value[k // 2]):.3f}" if k % 2 == 0 else ""
                    enabled = int(log.torque_enable.value[k])
                    row = [
                        f"{1e3 * time:.1f}",
                        f"{angle:.3f}",
                        target,
                        enabled,
                        round(1e3 * current[k]),
                        5000,
                        "",
                    ]
                    writer.writerow(row)
    (folder / "signals.yaml").write_text(CSV)
    (folder / "bench.yaml").write_text(
        "defaults: {actuator: xl330, length: 0.1, arm_mass: 0.02, supply_voltage: 5, kp: 400}\n"
        'runs:\n  "*50 g": {mass: 0.05}\n  "*120 g": {mass: 0.12}\n'
    )
    return folder


@pytest.mark.ci
@pytest.mark.parametrize(("name", "truth", "one"), [
    ("xm430", XM430, "m500g_sin_sin"),
    pytest.param("spreadsheets", XL330, "sin_sin 120 g", marks=pytest.mark.slow),
])  # fmt: skip
def test_import_fit_compensate(request, tmp_path, name, truth, one):
    """The friction of the simulation comes back from registers and from a spreadsheet; the motion is compensated."""
    source = request.getfixturevalue(name)
    raw = source / ("bags" if name == "xm430" else "logs")
    words = ["--signals", str(source / "signals.yaml"), "--bench", str(source / "bench.yaml")]
    bags, params, summary = tmp_path / "bags", tmp_path / "m1.json", tmp_path / "fit.json"
    assert main(["import", str(raw), *words, "--output", str(bags)]) == 0
    fit = [
        "fit",
        "--logdir",
        str(bags),
        "--model",
        "m1",
        "--output",
        str(params),
        "--quiet",
        "--trials",
        "2000",
        "--integrator",
        "paper",
        "--dt",
        "0.005",
    ]
    assert main([*fit, "--json", str(summary)]) == 0
    assert json.loads(summary.read_text())["train_mae"] < 4e-3
    values = read_drive(params).values
    for friction in ("friction_base", "friction_viscous"):
        assert values[friction] / values["kt"] == pytest.approx(truth[friction] / truth["kt"], rel=0.15), (
            friction
        )
    errors = []
    for folder, more in ((bags, []), (raw, words)):
        assert (
            main(
                ["evaluate", "--params", str(params), "--logdir", str(folder), *more, "--json", str(summary)]
            )
            == 0
        )
        errors.append(json.loads(summary.read_text())["results"][0]["mae"])
    assert errors[0] == pytest.approx(errors[1], rel=1e-4)
    (log,) = read_bag(bags / one)
    assert log.effort is not None
    torques = []
    signals = ["--signals", str(source / "signals.yaml")]
    (file,) = [path for path in raw.iterdir() if path.name.startswith(one)]
    joint = ["--joint", "tilt"] if name == "xm430" else []
    for states, more in ((bags / one, []), (file, [*signals, *joint])):
        output = tmp_path / "torque.csv"
        command = [
            "compensate",
            "--params",
            str(params),
            "--states",
            str(states),
            "--effort-meaning",
            "motor",
        ]
        assert main([*command, *more, "--output", str(output)]) == 0
        torques.append(np.loadtxt(output, delimiter=",", skiprows=1)[:, 1])
    assert 0.5 * truth["friction_base"] < np.max(np.abs(torques[0])) < 5.0 * truth["friction_base"]
    if name == "xm430":
        np.testing.assert_allclose(torques[0], torques[1], atol=1e-3 * truth["friction_base"])
    else:  # live, a velocity that nobody measures is the slope of past positions
        assert np.corrcoef(torques)[0, 1] > 0.9


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """The line with which a command is refused."""
    assert main([str(word) for word in words]) == 1
    return capsys.readouterr().err.splitlines()[-1]


def test_registers_taken_for_radians_are_refused(xm430, tmp_path, capsys):
    """What happened: fits of counts and degrees ended with 25 141 mrad and exit 0. What must happen: one line."""
    plain = tmp_path / "plain.yaml"
    plain.write_text(REGISTERS.replace("unit: counts, counts_per_turn: 4096, offset: -2048", "sign: 1"))
    words = ["--bench", xm430 / "bench.yaml", "--signals", plain]
    for verb in (
        ["fit", "--logdir"],
        ["import", "--output", tmp_path / "out"],
        ["evaluate", "--params", "x.json", "--logdir"],
    ):
        if verb[0] == "evaluate":
            continue
        said = refused(capsys, *verb, xm430 / "bags", *words)
        assert_clear(
            RecordingError(said), "m200g_lift_and_drop", "position reaches", "degrees or counts", "--signals"
        )
    assert not (tmp_path / "out").exists()


def test_degrees_taken_for_radians_are_refused(spreadsheets, tmp_path, capsys):
    """In a table, too."""
    plain = tmp_path / "plain.yaml"
    plain.write_text(CSV.replace(", unit: deg", ""))
    words = ["--bench", spreadsheets / "bench.yaml", "--signals", plain]
    assert "is it in degrees" in refused(capsys, "fit", "--logdir", spreadsheets / "logs", *words)


def test_what_is_missing_is_asked_for(xm430, spreadsheets, tmp_path, capsys):
    """A table of signals, a bench, a joint, a column: each in one line that names the option."""
    bags, logs = xm430 / "bags", spreadsheets / "logs"
    out = ["--output", tmp_path / "out"]
    signals, bench = ["--signals", xm430 / "signals.yaml"], ["--bench", xm430 / "bench.yaml"]
    assert "--bench" in refused(capsys, "import", bags, *signals, *out)
    assert "has no topic /joint_states" in refused(capsys, "import", bags, *bench, *out)
    no_joint = tmp_path / "bench.yaml"
    no_joint.write_text(REGISTER_BENCH.replace("joint: tilt, ", ""))
    assert "tilt, gripper" in refused(capsys, "import", bags, *signals, "--bench", no_joint, *out)
    lone = next(logs.iterdir())
    assert "--signals" in refused(capsys, "import", lone, *out)
    table = ["--signals", spreadsheets / "signals.yaml"]
    assert "--bench" in refused(capsys, "import", lone, *table, *out)
    assert "contains no recordings" in refused(capsys, "import", logs, *out)
    assert "--signals" in refused(capsys, "compensate", "--params", "x.json", "--states", lone)


def test_torque_that_was_off_and_masses_in_grams_are_noticed(xm430, tmp_path, capsys):
    """A constant torque_enable made fits of a dropped pendulum wrong by 64 %; grams went into the bags without a word."""
    (tmp_path / "signals.yaml").write_text(
        REGISTERS.replace("{topic: /dxl/enabled, values: data, order: [tilt]}", "{constant: 1}")
    )
    (tmp_path / "bench.yaml").write_text(REGISTER_BENCH.replace("mass: 0.9", "mass: 900"))
    words = ["--signals", str(tmp_path / "signals.yaml"), "--bench", str(tmp_path / "bench.yaml")]
    assert main(["import", str(xm430 / "bags"), *words, "--output", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().err
    assert "masses in grams" in said
    assert said.count("the joint hangs at rest") == 3, "once for each run that drops it"
    assert any(
        "m500g_lift_and_drop" in line and "the joint hangs at rest" in line for line in said.splitlines()
    )


@pytest.mark.one_case_is_quick
@pytest.mark.parametrize(("name", "servo"), [("xm430", "xm430"), ("spreadsheets", "xl330")])
def test_set_up_of_a_servo(request, tmp_path, capsys, name, servo):
    """The bench file of `setup-robot`, filled in, reads the recordings as the files written by hand do."""
    source = request.getfixturevalue(name)
    raw, new = source / ("bags" if name == "xm430" else "logs"), tmp_path / "new.yaml"
    assert main(["setup-robot", "--data", str(raw), "--actuator", servo, "--output", str(new)]) == 0
    assert "enter the values of defaults" in capsys.readouterr().out
    words = ["import", raw, "--bench", new, "--output", tmp_path / "bags"]
    assert "is still TODO" in refused(capsys, *words)
    text = new.read_text()
    values = {"length": 0.15, "arm_mass": 0.05, "supply_voltage": 12, "kp": 400}
    values |= {} if name == "xm430" else {"length": 0.1, "arm_mass": 0.02}
    for key, value in values.items():
        text = text.replace(f"{key}: TODO", f"{key}: {value}")
    new.write_text(text)
    assert main([str(word) for word in words]) == 0
    by_hand = [
        "--signals", str(source / "signals.yaml"), "--bench", str(source / "bench.yaml"), "--output", str(tmp_path / "hand")
    ]  # fmt: skip
    assert main(["import", str(raw), *by_hand]) == 0
    for path in sorted((tmp_path / "hand").iterdir()):
        (ours,), (theirs,) = read_bag(tmp_path / "bags" / path.name), read_bag(path)
        assert ours.setup == theirs.setup
        for signal in ("position", "velocity", "goal", "torque_enable"):
            ours_, theirs_ = getattr(ours, signal), getattr(theirs, signal)
            assert ours_.time == pytest.approx(theirs_.time), signal
            assert ours_.value == pytest.approx(theirs_.value, abs=1e-6), signal
