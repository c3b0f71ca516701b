"""Laws M2 to M6 as each format holds them, on recordings: error from the measurement, and from the law itself [mrad].

Fits every law, exports it with a projection and with ``--plain``, and reads what ``stribeck export`` writes beside the file.
M1 fitted directly is the least that a projection onto M1 can reach. ``controller`` is ``stribeck.mujoco.Controller`` with the law itself,
at a step of 1 ms beside the law at an accurate one. Takes about half an hour for a servo:

    python bench/exported_laws.py xl330 DATA/xl330 --arm-mass 0 [--law m6] [--format mjcf] [--fits FOLDER]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import tempfile
from pathlib import Path

import mujoco
import numpy as np

from stribeck.cli.main import main as stribeck
from stribeck.exports.mjcf_runs import pendulum, servo_of_run
from stribeck.files.drives import read_drive
from stribeck.model.joint import Servo
from stribeck.model.step import batch_for, simulate
from stribeck.mujoco import Controller
from stribeck.recordings.sources import read_recordings

URDF = """<robot name="bench"><link name="base"/><link name="bar"/><joint name="joint" type="continuous"><parent link="base"/>
<child link="bar"/></joint><transmission name="t"><type>transmission_interface/SimpleTransmission</type><joint name="joint"/>
<actuator name="motor"><mechanicalReduction>1</mechanicalReduction></actuator></transmission></robot>"""

FORMATS = ("controller", "c", "mjcf", "isaaclab", "urdf", "drake", "genesis")
SUFFIXES = {"isaaclab": ".py"}
ROW, STEP, ACCURATE = 0.005, 0.001, 0.0003125
"""Distance of compared positions, step of the controller and of the law beside it [s]."""


def run(words: list[str]) -> None:
    """A command of stribeck, quietly; what it says ends the benchmark if it fails."""
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        failed = stribeck(words)
    if failed:
        raise SystemExit(said.getvalue())


def controller(params: Path, recordings: Path, arm_mass: float) -> np.ndarray:
    """Errors of the runs (R,) [rad] of the controller in MuJoCo from the law itself."""
    file, logs = read_drive(params), read_recordings(recordings, arm_mass=arm_mass)
    every, accurate = round(ROW / STEP), round(ROW / ACCURATE)
    law = batch_for(logs, ACCURATE, "exponential")
    wanted = simulate(law, file.actuator, file.law, file.values).position[::accurate]
    runs = batch_for(logs, STEP, "semi-implicit")  # goals as they are at the beginning of each step
    found = np.empty_like(wanted)
    for r, log in enumerate(logs):
        option = f'<option timestep="{STEP!r}"/>'
        model = mujoco.MjModel.from_xml_string(pendulum(log.setup, file.values["q_offset"], option))
        servo = Controller(model, {"joint": servo_of_run(Servo(file, 1.0), runs, r)})
        data = mujoco.MjData(model)
        data.qpos[0], data.qvel[0] = runs.position[0, r], runs.velocity[0, r]
        for k in range(len(found)):
            found[k, r] = data.qpos[0]
            for row in range(every * k, min(every * (k + 1), len(runs.goal))):
                servo.update(data, [runs.goal[row, r]], [float(runs.torque_enable[row, r] >= 0.5)])
                mujoco.mj_step(model, data)
    weight = law.weight[::accurate] > 0.0
    return np.sum(weight * np.abs(found - wanted), axis=0) / np.sum(weight, axis=0)


def measure(options: argparse.Namespace, folder: Path) -> None:
    """Print one row for each law and format."""
    recordings = [str(options.recordings), "--arm-mass", options.arm_mass]
    (folder / "bench.urdf").write_text(URDF, encoding="utf-8")
    params = {law: options.fits / f"{options.servo}_{law}.json" for law in ("m1", *options.law)}
    for law, path in params.items():
        if not path.is_file():
            words = ["--servo", options.servo, "--law", law, "--output", str(path)]
            run(["identify", "servo", *recordings, *words])
    target = str(folder / "errors.json")
    run(["evaluate", *recordings, "--params", str(params["m1"]), "--json", target])
    direct = json.loads(Path(target).read_text(encoding="utf-8"))["results"][0]["mae"]
    print(f"{options.servo}: M1 fitted directly {1e3 * direct:.1f} mrad from the measurement", flush=True)
    print("law  format     itself  projected       --plain         projected/direct, projected/plain")
    for law in options.law:
        for form in options.format:
            if form == "controller":
                off = 1e3 * controller(params[law], options.recordings, float(options.arm_mass))
                print(
                    f"{law:4} {form:10} from the law itself {np.mean(off):.2f}, worst run {np.max(off):.2f}",
                    flush=True,
                )
                continue
            found = {}
            for name, more in (("projected", []), ("plain", ["--plain"])):
                output = folder / f"{law}_{form}_{name}{SUFFIXES.get(form, '')}"
                words = ["--params", str(params[law]), "--output", str(output), "--kp", options.kp, *more]
                model = ["--model", str(folder / "bench.urdf")] if form in ("urdf", "drake") else []
                run(["export", *recordings, "--format", form, *words, *model])
                text = output.with_name(f"{output.name}.loss").read_text(encoding="utf-8")
                found[name] = json.loads(text)["joints"][0]
            errors = {name: one["from_measurement"]["mean"] for name, one in found.items()}
            cells = [
                f"{1e3 * errors[name]:6.1f} ({1e3 * one['from_source']['mean']:5.1f})"
                for name, one in found.items()
            ]
            own = 1e3 * found["plain"]["source_from_measurement"]["mean"]
            ratios = f"{errors['projected'] / direct:.2f}  {errors['projected'] / errors['plain']:.2f}"
            print(f"{law:4} {form:10} {own:6.1f}  {cells[0]}  {cells[1]}  {ratios}", flush=True)


def main() -> None:
    """Read the options."""
    laws = ("m2", "m3", "m4", "m5", "m6")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("servo")
    parser.add_argument("recordings", type=Path)
    parser.add_argument("--arm-mass", default="0")
    parser.add_argument("--kp", default="400", help="gain in the file; runs are simulated with their own")
    parser.add_argument("--law", nargs="+", default=laws, choices=laws)
    parser.add_argument("--format", nargs="+", default=FORMATS, choices=FORMATS)
    parser.add_argument(
        "--fits", type=Path, help="folder with SERVO_LAW.json; missing ones are fitted into it"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        options.fits = options.fits or Path(folder)
        measure(options, Path(folder))


if __name__ == "__main__":
    main()
