"""Draws the pictures of README and documentation again, from programs and recordings: ``make figures``.

``python docs/draw_pictures.py [NAME …]`` draws some. Pictures of recordings of others are drawn where these are
(``$STRIBECK_DATA``, or ``../shared/data``); the others need the repository only.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from PIL import Image

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
DATA = Path(os.environ.get("STRIBECK_DATA", ROOT.parent / "shared" / "data"))

FRAMES_PER_SECOND = 12
MOVING = {
    "gravity": ("gravity compensated", "tab:orange"),
    "compensated": ("friction compensated too", "tab:blue"),
}
"""Motions that the moving picture compares with that without friction, with their label and colour."""


def stribeck(*words: object, folder: Path = ROOT) -> None:
    """Run a command of the program."""
    subprocess.run([sys.executable, "-m", "stribeck", *map(str, words)], check=True, cwd=folder)


def demo(work: Path) -> None:
    """``compensation.png``, and ``compensation.gif`` of the same motions: the emulated servos of the demo."""
    from stribeck.cli.demo import run
    from stribeck.cli.main import main

    drawings = []
    draw = run.draw_compensation

    def kept(found, *rest):
        drawings.extend(found)
        return draw(found, *rest)

    run.draw_compensation = kept
    if main(["demo", "--output", str(work)]):
        raise SystemExit("the demo failed")
    shutil.copy(work / "compensation.png", HERE / "compensation.png")
    animate(next(d for d in drawings if d.title.startswith("0.8 sin")), HERE / "compensation.gif")


def animate(drawing, target: Path) -> None:
    """Two pendulums, each in front of the one without friction, and their distance from it over time."""
    figure, (left, right, below) = plt.subplots(
        1, 3, figsize=(7.2, 2.4), dpi=80, width_ratios=(1, 1, 2), layout="constrained"
    )
    rods = []
    for panel, (name, (label, colour)) in zip((left, right), MOVING.items(), strict=True):
        panel.set(xlim=(-1.05, 1.05), ylim=(-1.25, 0.25), aspect="equal", xticks=[], yticks=[])
        panel.set_title(label, fontsize=9)
        free = panel.plot([], [], "o-", color="0.7", linewidth=5, markersize=13)[0]
        rods.append(
            (
                free,
                panel.plot([], [], "o-", color=colour, linewidth=2.5, markersize=8)[0],
                getattr(drawing, name),
            )
        )
    errors = [
        (below.plot([], [], color=colour)[0], 1e3 * (getattr(drawing, name) - drawing.frictionless))
        for name, (_, colour) in MOVING.items()
    ]
    limit = 1.1 * max(float(np.abs(error).max()) for _, error in errors)
    below.set(xlim=(drawing.time[0], drawing.time[-1]), ylim=(-limit, limit), xlabel="time [s]")
    below.set_title("distance from the motion without friction [mrad]", fontsize=9)
    rate = (len(drawing.time) - 1) / (drawing.time[-1] - drawing.time[0])

    def show(frame: int) -> None:
        row = min(round(frame * rate / FRAMES_PER_SECOND), len(drawing.time) - 1)
        for free, rod, position in rods:
            for line, angle in ((free, drawing.frictionless[row]), (rod, position[row])):
                line.set_data([0.0, np.sin(angle)], [0.0, -np.cos(angle)])
        for line, error in errors:
            line.set_data(drawing.time[:row], error[:row])

    frames = round((drawing.time[-1] - drawing.time[0]) * FRAMES_PER_SECOND)
    FuncAnimation(figure, show, frames).save(target, PillowWriter(FRAMES_PER_SECOND))
    plt.close(figure)


def fit(work: Path) -> None:
    """``fit.png``: M1 and M6 on a recording of the XL330, which lifts its load to a third of its goal."""
    rod = ("--arm-mass", "0")  # which the recordings do not state
    for law in ("m1", "m6"):
        stribeck("identify", "servo", DATA / "xl330", *rod, "--law", law, "--output", work / f"{law}.json")
    stribeck("evaluate", DATA / "xl330", *rod, "--params", work / "m1.json", work / "m6.json", "--plot", work)
    shutil.copy(work / "kp200_up_and_down.png", HERE / "fit.png")


def joint(work: Path) -> None:
    """``joint_friction.png``: joint 7 of a Franka arm."""
    table = next((DATA / "joint_friction").glob("*7*.csv"))
    stribeck("identify", "joint", table, "--plot", work / "joint.png")
    shutil.copy(work / "joint.png", HERE / "joint_friction.png")


def report(work: Path) -> None:
    """``report.png``: the top of the report on the bags of the repository, as Chromium shows it."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("report: Chromium is not installed, which draws the page")
    files = [work / f"{law}.json" for law in ("m1", "m3", "m4")]
    for file in files:
        words = ("--law", file.stem, "--hold-out-gain", "800", "--output", file)
        stribeck("identify", "servo", ROOT / "bags" / "xl330_simulated", *words)
    page = work / "report.html"
    stribeck("evaluate", ROOT / "bags" / "xl330_simulated", "--params", *files, "--report", page)
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1340,1255")
    target = HERE / "report.png"
    subprocess.run([browser, *options, f"--screenshot={target}", page.as_uri()], check=True)
    with Image.open(target) as picture:
        few = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    few.save(target, optimize=True)


def few_data(work: Path) -> None:
    """``bayes_few_data.png``: error of a TX40 after seconds of data; some minutes."""
    data = DATA / "tx40"
    words = ("--machine", "tx40", "--seconds", "0.5,1,2", "--plot", work)
    stribeck("identify", "arm", "--bayes", data, *words)
    shutil.copy(work / "error_by_seconds.png", HERE / "bayes_few_data.png")


def in_mujoco(work: Path, model: Path, fitted: list[Path], run: Path, *options: str) -> Path:
    """The picture of a run that was not fitted, simulated in MuJoCo with the drives of others."""
    words = ("--model", model, "--validate", run, *options, "--output", work / "result")
    stribeck("identify", "robot", *fitted, *words)
    program = ROOT / "examples" / "robot_in_mujoco.py"
    found = (model, work / "result" / "robot.json", run, work / "target")
    subprocess.run([sys.executable, str(program), *map(str, found)], check=True)
    return work / "target" / "motion.png"


def go2(work: Path) -> None:
    """``go2_in_mujoco.png``; two minutes."""
    *fitted, last = sorted((DATA / "go2").glob("rx_run*.npz"))
    shutil.copy(in_mujoco(work, DATA / "go2" / "go2.xml", fitted, last), HERE / "go2_in_mujoco.png")


def so101(work: Path) -> None:
    """``so101_in_mujoco.png``: every other recording is fitted; five minutes."""
    data = DATA / "so101"
    fitted = sorted(data.glob("*.npz"))[::2]
    model, run = data / "model" / "so101_new_calib.xml", data / "reaching_points.npz"
    picture = in_mujoco(work, model, fitted, run, "--exclude", "gripper", "--no-polish")
    shutil.copy(picture, HERE / "so101_in_mujoco.png")


def method_parameters(name: str, *options: str) -> Callable[[Path], None]:
    """Draws ``method_parameters_NAME.png``: how estimates move with step, weight and regularisation."""

    def draw(work: Path) -> None:
        program, picture = ROOT / "bench" / "method_parameters.py", f"method_parameters_{name}.png"
        data = DATA / f"furuta_{name}"
        files = sorted(path for path in data.iterdir() if path.suffix in (".mat", ".csv"))
        words = ["--model", f"furuta_{name}", "--data", *files, *options, "--output", HERE / picture]
        subprocess.run([sys.executable, str(program), *map(str, words)], check=True, cwd=work)

    return draw


def two_links(work: Path) -> None:
    """``validation_2r.png``: errors of the laws on a simulated arm of two links; eight minutes."""
    program = ROOT / "examples" / "two_links" / "validate_2r.py"
    subprocess.run([sys.executable, str(program), "--servos", "mx", "--output", str(work)], check=True)
    for name in ("validation_2r.png", "validation_2r_paths.png"):
        shutil.copy(next(work.glob(f"*{name.partition('_')[2]}")), HERE / name)


MOTOR = ("--methods", "regularization", "step")
"""Method parameters of the driven pendulum; half an hour at its step of 4 ms."""

PICTURES: dict[str, tuple[Callable[[Path], None], str, tuple[str, ...]]] = {
    "demo": (demo, "", ("compensation.png", "compensation.gif")),
    "report": (report, "", ("report.png",)),
    "fit": (fit, "xl330", ("fit.png",)),
    "joint": (joint, "joint_friction", ("joint_friction.png",)),
    "few_data": (few_data, "tx40", ("bayes_few_data.png",)),
    "go2": (go2, "go2", ("go2_in_mujoco.png",)),
    "so101": (so101, "so101", ("so101_in_mujoco.png",)),
    "lund": (method_parameters("lund"), "furuta_lund", ("method_parameters_lund.png",)),
    "motor": (method_parameters("motor", *MOTOR), "furuta_motor", ("method_parameters_motor.png",)),
    "two_links": (two_links, "", ("validation_2r.png", "validation_2r_paths.png")),
}
"""What draws pictures, the folder of recordings that it needs, and the pictures."""

BY_HAND = ("architecture.svg",)


def main() -> None:
    """Draw pictures by name, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PICTURES))
    names = parser.parse_args().names or list(PICTURES)
    if unknown := set(names) - set(PICTURES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(PICTURES)}")
    for name in names:
        draw, folder, _ = PICTURES[name]
        if folder and not (DATA / folder).is_dir():
            print(f"{name}: left out, {DATA / folder} is not there")
            continue
        with tempfile.TemporaryDirectory() as temporary:
            work = Path(temporary) / "work"
            work.mkdir()
            draw(work)
        print(f"{name}: drawn")


if __name__ == "__main__":
    main()
