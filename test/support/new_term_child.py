"""What the copy of the package with a new term can do with it: run by test/model/test_new_term.py inside the copy."""

import csv
import ctypes
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import moving_arms
import swinging_leg
from compensating import model
from cpp_compensator import compiler
from recovery import MX106, Bench
from side_by_side import torques
from stribeck.cli.main import main
from stribeck.files.actuators import load_actuator
from stribeck.files.drives import read_drive, read_drives, write_drive
from stribeck.live.friction import cancelling_torque
from stribeck.model.joint import Drive
from stribeck.model.law import LAWS, friction_budget
from stribeck.recordings.bags.bag import write_bag
from virtual import Encoder, record

SMALL = Bench("mx106", (0.5, 1.5), 0.15, 0.05, (8.0, 32.0), MX106.supply_voltage)
STEP = 2.0 * np.pi / 4096.0
MOTOR, EXTERNAL, VELOCITY, POSITION = 0.3, -0.2, -2.5, 0.8


def told(*words: object) -> None:
    """Run a command; it must succeed."""
    assert main([str(word) for word in words]) == 0, words


def servo_file(folder: Path, law, parameter: str, value: float) -> Path:
    """A parameter file of published values and the new one."""
    servo, path = load_actuator("mx106"), folder / "servo.json"
    values = {"q_offset": 0.0, **servo.published["m1"], parameter: value}
    write_drive(path, Drive(servo, law, values))
    return path


def live(folder: Path, law, term: str, parameter: str, value: float) -> None:
    """Python and C++ cancel the term at the same motion; without it they do not."""
    joint = replace(model("a", **{parameter: value}), law=law)
    for other, differs in ((joint, False), (model("a"), True)):
        *_, (ours, theirs) = torques(joint, other, 200)
        assert np.isclose(ours[0], theirs[0], rtol=1e-9) != differs, (ours, theirs)


def exported(folder: Path, law, term: str, parameter: str, value: float) -> None:
    """C, ONNX and the table compute the law; MJCF says what it lacks."""
    import onnx.reference

    source = servo_file(folder, law, parameter, value)
    file = read_drive(source)
    assert file.law.terms == law.terms
    outputs = {form: folder / f"out.{form}" for form in ("c", "onnx", "csv", "mjcf")}
    for form, path in outputs.items():
        more = ("--plain", "--kp", "8", "--supply", "5") if form == "mjcf" else ()
        told("export", "--to", form, "--output", path, "--params", source, "--joint", "a", *more)
    given = {"motor": MOTOR, "external": EXTERNAL, "velocity": VELOCITY, "position": POSITION}
    expected = friction_budget(law, file.values, *given.values())
    inputs = {name: np.array([given[name]]) for name in law.arguments}
    found = onnx.reference.ReferenceEvaluator(str(outputs["onnx"])).run(None, inputs)
    np.testing.assert_allclose(np.ravel(found), expected, rtol=1e-12)
    c_torque(folder, outputs["c"], law, file.values, given)
    head, *rows = csv.reader(outputs["csv"].read_text().splitlines())
    table = dict(zip(head, np.array(rows).T, strict=True))
    numbers = {name: column.astype(float) for name, column in table.items() if name != "joint"}
    places = numbers.get("position [rad]", np.zeros(len(rows)))
    motor, speed = numbers["motor torque [N m]"], numbers["velocity [rad/s]"]
    positive, _ = friction_budget(law, file.values, motor, -motor, speed, places)
    np.testing.assert_allclose(numbers["friction + [N m]"], positive, rtol=1e-6, atol=1e-9)
    lost = json.loads(outputs["mjcf"].with_name("out.mjcf.loss").read_text())
    assert lost["joints"][0]["lost"][0] == f"the {term} effect"


def c_torque(folder: Path, header: Path, law, values, given) -> None:
    """The cancelling torque of the C header."""
    source = folder / "call.c"
    arguments = ", ".join(["0.5", *(repr(given[name]) for name in law.arguments)])
    text = f'#include "{header}"\nextern "C" double f() {{ return a_cancelling_torque({arguments}); }}\n'
    source.write_text(text)
    flags = ["-x", "c++", "-std=c++17", "-Wall", "-Wno-unused-function", "-Werror", "-shared", "-fPIC"]
    subprocess.run([compiler(), *flags, source, "-o", folder / "call.so"], check=True)
    function = ctypes.CDLL(str(folder / "call.so")).f
    function.restype = ctypes.c_double
    ours = cancelling_torque(
        law, values, 0.5, given["velocity"], given["motor"], given["external"], position=given["position"]
    )
    assert abs(function() - ours) < 1e-12


def servo(folder: Path, law, term: str, parameter: str, value: float) -> None:
    """`fit` finds the value from simulated recordings, and `report` shows it."""
    actuator = load_actuator("mx106")
    values = {"q_offset": 0.0, **actuator.published["m1"], parameter: value}
    rng = np.random.default_rng(0)
    write_bag(folder / "bags", record(actuator, law, values, list(SMALL.plays()), Encoder(STEP), rng))
    fitted = folder / "fitted.json"
    words = ["--logdir", folder / "bags", "--model", "m1", "--terms", term, "--trials", "3000"]
    told("fit", *words, "--actuator", "mx106", "--output", fitted, "--quiet")
    file = read_drive(fitted)
    found = file.estimates[parameter]
    assert abs(found.value - value) < 0.05 * abs(value), found
    assert found.interval[0] < found.value < found.interval[1]
    assert found.interval[1] - found.interval[0] < 0.2 * abs(value)
    page = folder / "report.html"
    told("report", "--params", fitted, "--logdir", folder / "bags", "--output", page)
    assert parameter in page.read_text()


def arm(folder: Path, law, term: str, parameter: str, value: float) -> None:
    """`identify-arm` finds the value in each joint, with an interval, and the compensation node's files hold it."""
    path = moving_arms.saved_arm(folder)
    p = dict.fromkeys(law.parameter_names, 0.0) | {parameter: value}
    run = moving_arms.recording(moving_arms.arm(folder), noise=0.1)
    budget = friction_budget(
        law, p | {"friction_base": 10.0}, 0.0 * run.velocity, 0.0, run.velocity, run.position
    )[0]
    more = np.sign(run.velocity) * (budget - 10.0)
    moving_arms.save(replace(run, effort=run.effort + more), folder / "train.csv")
    moving_arms.urdf(folder, mass=2.6)
    words = ["--config", path, "--data", folder / "train.csv", "--fits", "full", "--terms", term]
    told("identify-arm", *words, "--output", folder / "arm", "--json", folder / "arm.json", "--quiet")
    (path,) = (folder / "arm").glob("*.json")
    for joint in moving_arms.JOINTS:
        file = read_drives(path).drive(joint, path)
        found = file.estimates[parameter]
        assert abs(found.value - value) < 0.1 * abs(value), (joint, found)
        assert found.interval[0] < found.value < found.interval[1]


def robot(folder: Path, law, term: str, parameter: str, value: float) -> None:
    """`identify-robot` finds the value in the knee, with an interval."""
    from stribeck.identify.robot.forward import held_goals, simulate_robot
    from stribeck.identify.robot.rollout import DRIVE
    from stribeck.identify.robot.tree import load_tree

    path = swinging_leg.write_model(folder)
    tree, every = load_tree(path), 8
    zeros = {name: np.zeros(2) for name in (*DRIVE, *law.parameter_names)}
    p = zeros | {"stiffness": np.full(2, 30.0), "derivative": np.full(2, 1.0), "limit": np.full(2, 1e4)}
    for name in ("armature", "friction_base", "friction_viscous"):
        p[name] = np.array([true[name] for true in swinging_leg.TRUE.values()])
    p[parameter] = np.full(2, value)
    runs = []
    for k in range(3):
        wanted = swinging_leg.goals(1600, 0.7 * k)
        held = held_goals(wanted, np.full(2, 0.012), every, 0.005)
        moved = simulate_robot(tree, law, p, held, wanted[0], 0.005 / every, every)
        runs.append(folder / f"run{k}.npz")
        gains = {"kp": np.full(2, 30.0), "kd": np.full(2, 1.0)}
        np.savez(
            runs[-1],
            time=0.005 * np.arange(1600),
            dof_pos=np.round(moved / 3e-5) * 3e-5,
            des_dof_pos=wanted,
            **gains,
        )
    output = folder / "robot.json"
    words = ["--model", path, "--data", *runs, "--terms", term, "--no-polish", "--json", output, "--quiet"]
    told("identify-robot", *words)
    found = json.loads(output.read_text())["per_joint"]["knee"]["parameters"][parameter]
    low, high = found["interval"]
    assert abs(found["value"] - value) < 0.15 * abs(value), found
    assert low < found["value"] < high


if __name__ == "__main__":
    part, place, name, key, number = sys.argv[1:]
    globals()[part](Path(place), LAWS["m1"].with_terms(**{name: True}), name, key, float(number))
