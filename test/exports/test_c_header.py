"""The exported C header computes what ``core`` computes, in C99 and C++17, in double and float."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helpers import refusal
from stribeck.exports.registry import FORMATS
from stribeck.exports.task import ExportTask, JointServo
from stribeck.files.actuators import load_actuator
from stribeck.live.friction import cancelling_torque
from stribeck.model.control_laws import ServoCommand
from stribeck.model.joint import Drive, Servo
from stribeck.model.law import LAWS, friction_budget, friction_torque, law_named, stopping_torque

COMPILERS = {
    "c": [name for name in ("gcc", "clang") if shutil.which(name)],
    "c++": [name for name in ("g++", "clang++") if shutil.which(name)],
}
FLAGS = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-O2"]
STANDARD = {"c": "c99", "c++": "c++17"}
STATES = 100_000

needs_compiler = pytest.mark.skipif(not COMPILERS["c"], reason="no C compiler is here")


def servo_of(name: str, law: str, **more) -> Servo:
    """A servo with its published parameters and further terms."""
    terms = {"asymmetric": "friction_base_negative" in more, "offset": "torque_offset" in more}
    actuator = load_actuator(name)
    effects = {"current_limit": "current-limit", "torque_saturation": "saturation"}
    values = {"q_offset": 0.0, **actuator.published.get(law, {}), **more}
    file = Drive(
        actuator.with_effects([effect for name, effect in effects.items() if name in more]),
        law_named(law).with_terms(**terms),
        values,
    )
    return Servo(file, 100.0)


def joints() -> tuple[JointServo, ...]:
    """All laws, terms and control laws."""
    directional = {"friction_base_negative": 0.03, "friction_viscous_negative": 0.02, "torque_offset": -0.01}
    coasting = servo_of("xl330", "m2")
    file = coasting.parameters
    coasting = replace(
        coasting,
        parameters=replace(
            file, actuator=replace(file.actuator, control=replace(file.actuator.control, bridge="coast"))
        ),
    )
    go1 = {"ratio": 1.0, "armature": 0.01, "friction_base": 1.0, "friction_viscous": 0.1}
    return (
        *(JointServo(f"xl330 {law}", servo_of("xl330", law)) for law in LAWS),
        JointServo("asymmetric", servo_of("xl330", "m6", **directional)),
        JointServo("limited", servo_of("xl330", "m1", current_limit=0.9)),
        JointServo("saturated", servo_of("xl330", "m1", current_limit=0.9, torque_saturation=0.2)),
        JointServo("coasting", coasting),
        JointServo("1st", servo_of("erob80_50", "m5")),
        JointServo("go1", servo_of("unitree_go1", "m1", **go1)),
    )


def names() -> list[str]:
    """The joints' names in C."""
    return [f"xl330_{law}" for law in LAWS] + [
        "asymmetric",
        "limited",
        "saturated",
        "coasting",
        "_1st",
        "go1",
    ]


def header(folder: Path) -> Path:
    """The exported header of all joints."""
    path = folder / "laws.h"
    written = FORMATS["c"].write(ExportTask(joints(), path))
    for target, text in written.files.items():
        target.write_text(text)
    return path


def states() -> dict[str, np.ndarray]:
    """Random states, a tenth of each at exactly zero."""
    rng = np.random.default_rng(20)
    ranges = {"motor": 0.6, "external": 0.6, "velocity": 12.0, "share": 1.0, "output": 1.0}
    found = {
        name: np.where(rng.random(STATES) < 0.1, 0.0, rng.uniform(-top, top, STATES))
        for name, top in ranges.items()
    }
    found["velocity"] *= rng.random(STATES) ** 4  # much of the law happens at low speed
    return found


def program(folder: Path, language: str, real: str, compiler: str) -> Path:
    """A program that maps states on stdin to five numbers for each joint on stdout."""
    calls = "".join(
        f"""
      {name}_friction_budget(s[0], s[1], s[2], &r[0], &r[1]);
      r[2] = {name}_friction_torque(s[0], s[1], s[2], K(0.01), K(0.002));
      r[3] = {name}_cancelling_torque(s[3], s[0], s[1], s[2]);
      r[4] = {name}_motor_torque(s[4], K(7.4), s[2]);
      fwrite(r, sizeof r, 1, stdout);"""
        for name in names()
    )
    define = "#define STRIBECK_FLOAT\n" if real == "float" else ""
    source = folder / f"main_{real}.{'c' if language == 'c' else 'cpp'}"
    source.write_text(
        f"""#include <stdio.h>
{define}#include "laws.h"
#define K(x) STRIBECK_C(x)
int main(void) {{
  STRIBECK_REAL s[5], r[5];
  while (fread(s, sizeof s, 1, stdin) == 1) {{{calls}
  }}
  return 0;
}}
"""
    )
    binary = folder / f"{compiler}_{real}"
    subprocess.run([compiler, f"-std={STANDARD[language]}", *FLAGS, source, "-o", binary, "-lm"], check=True)
    return binary


def expected(joint: JointServo, s: dict[str, np.ndarray]) -> np.ndarray:
    """The same five numbers from ``core`` (5, n)."""
    file = joint.servo.parameters
    law, p = file.law, file.values
    budget = friction_budget(law, p, s["motor"], s["external"], s["velocity"])
    net = s["motor"] + s["external"] + p.get("torque_offset", 0.0)
    friction = friction_torque(stopping_torque(s["velocity"], net, 0.01, 0.002), budget)
    cancelling = cancelling_torque(law, p, s["share"], s["velocity"], s["motor"], s["external"])
    motor = file.actuator.control.torque(p, s["output"], ServoCommand(0.0, 1.0, 7.4), s["velocity"])
    return np.stack([*budget, friction, cancelling, motor])


@pytest.mark.one_case_is_quick
@needs_compiler
@pytest.mark.parametrize(("real", "tolerance"), [("double", 1e-12), ("float", 1e-5)])
@pytest.mark.parametrize("language", ["c", "c++"])
def test_the_header_computes_what_core_computes(tmp_path, language, real, tolerance):
    """At 100 000 random states for each law, with every compiler that is here, without a warning."""
    header(tmp_path)
    dtype = np.float64 if real == "double" else np.float32
    given = {name: values.astype(dtype).astype(np.float64) for name, values in states().items()}
    stacked = np.ascontiguousarray(np.stack(list(given.values()), axis=1), dtype=dtype)
    for compiler in COMPILERS[language]:
        binary = program(tmp_path, language, real, compiler)
        done = subprocess.run([binary], input=stacked.tobytes(), capture_output=True, check=True)
        found = np.frombuffer(done.stdout, dtype).reshape(STATES, len(names()), 5).astype(np.float64)
        for j, joint in enumerate(joints()):
            wanted = expected(joint, given)
            scale = np.maximum(np.abs(wanted), _terms(joint, given)) + 1e-30 if real == "float" else 1.0
            worst = np.max(np.abs(found[:, j].T - wanted) / scale, axis=1)
            assert np.all(worst < tolerance), (compiler, joint.joint, worst)


def _terms(joint: JointServo, s: dict[str, np.ndarray]) -> np.ndarray:
    """Size of the terms that a number is the sum of: float cannot keep more of their difference."""
    inertia = np.abs(s["velocity"]) * 0.01 / 0.002
    torque = np.abs(s["motor"]) + np.abs(s["external"])
    p = joint.servo.parameters.values
    electric = p.get("kt", 0.0) / p.get("R", 1.0) * (7.4 + p.get("kt", 0.0) * np.abs(s["velocity"]))
    return np.stack([torque, torque, inertia + torque, torque, electric + np.abs(s["output"])])


def test_the_header_has_no_state_and_no_heap(tmp_path):
    """Functions alone: no variable outside a function, no static one inside, no call but those of math.h."""
    text = re.sub(r"/\*.*?\*/", "", header(tmp_path).read_text(), flags=re.DOTALL)
    assert not re.search(r"malloc|calloc|free\(|new ", text)
    for line in text.splitlines():
        assert not re.match(r"\s*static(?! inline)", line), line
        assert re.match(r"#|static inline|\s|\}|$", line), line
    assert set(re.findall(r"#include <(.*)>", text)) == {"math.h"}


def test_joints_of_one_name_in_c_are_refused(tmp_path):
    """``a b`` and ``a-b`` are both ``a_b``."""
    servo = servo_of("xl330", "m1")
    task = ExportTask((JointServo("a b", servo), JointServo("a-b", servo)), tmp_path / "x.h")
    refusal(lambda: FORMATS["c"].write(task), "'a b'", "'a-b'", "a_b in C")
    refusal(
        lambda: ExportTask((JointServo("a", servo), JointServo("a", servo)), tmp_path / "x.h"), "'a' twice"
    )
