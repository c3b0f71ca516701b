"""Time of an update in C++: seven joints, law M6, rigid-body dynamics and learning, one update each millisecond.

Beside it an update without a model, where nothing is learnt, and the same number of updates of the Python compensator (commands, states, learning of uncoupled joints).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from stribeck.files.actuators import load_actuator
from stribeck.live.compensator import Compensator
from stribeck.live.compiled import compiled
from stribeck.live.friction import JointModel
from stribeck.live.settings import Settings
from stribeck.model.joint_map import JointMap
from stribeck.model.law import LAWS
from stribeck.rigid.dynamics import IndependentJoints

CONTROLLERS = Path(__file__).resolve().parents[1] / "controllers"
STEPS = 10_000
JOINTS = 7


def measure() -> dict[str, dict[str, float]]:
    """Figures of both, in microseconds."""
    found = {"python": in_python()}
    compiler = shutil.which("g++")
    if compiler is None:
        print("no g++ here: nothing is measured in C++")
    else:
        found["c++"], found["no model"] = in_cpp(compiler, []), in_cpp(compiler, ["--without-model"])
    for name, figures in found.items():
        print(f"  {name:8}" + "".join(f"  {key} {value:g}" for key, value in figures.items()))
    return found


def in_cpp(compiler: str, options: list[str]) -> dict[str, float]:
    """Compile and run ``controllers/bench/update_time.cpp``."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "update_time"
        source = CONTROLLERS / "bench" / "update_time.cpp"
        flags = ["-std=c++17", "-O2", "-ffp-contract=off", f"-I{CONTROLLERS / 'include'}"]
        subprocess.run([compiler, *flags, str(source), "-o", str(program)], check=True)
        done = subprocess.run(
            [str(program), str(STEPS), *options], check=True, capture_output=True, text=True
        )
    return json.loads(done.stdout)


def in_python() -> dict[str, float]:
    """Updates of the Python compensator, one each millisecond."""
    servo = load_actuator("xl330")
    values = servo.published["m6"]
    names = [f"joint_{k}" for k in range(JOINTS)]
    joints = [JointModel(name, servo, LAWS["m6"], values, 0.3) for name in names]
    settings = Settings("sum", "motor", gain=0.8)
    dynamics = IndependentJoints(np.full(JOINTS, 0.01))
    compensator = Compensator(joints, [JointMap()] * JOINTS, settings, compiled, dynamics)
    compensator.enable()
    times, phase = np.empty(STEPS), 1.0 + 0.2 * np.arange(JOINTS)
    begin = time.perf_counter()
    for k in range(STEPS):
        now = 1e-3 * k
        position, velocity = 0.5 * np.sin(phase * now), 0.5 * phase * np.cos(phase * now)
        effort = np.full(JOINTS, 0.02 * np.sin(3.0 * now))
        time.sleep(max(0.0, begin + now - time.perf_counter()))
        start = time.perf_counter()
        compensator.on_command(now, now - 1e-4, names, position, velocity, effort)
        compensator.on_state(now, now, names, position, velocity, effort)
        times[k] = 1e6 * (time.perf_counter() - start)
    quantiles = {"p50_us": 0.5, "p99_us": 0.99, "p999_us": 0.999, "max_us": 1.0}
    return {name: round(float(np.quantile(times, share)), 1) for name, share in quantiles.items()}


if __name__ == "__main__":
    measure()
